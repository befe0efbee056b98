"""The process of one search of several: `python -m symdsl.runner.child`, the request on standard input."""

from __future__ import annotations

import json
import os
import signal
import sys

from symdsl.runner.tasks import Task, performed


def main() -> None:
    """Run the task, report on standard output and exit like the command line."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Whatever else is printed here, by a plug-in or a library, must not come between the reports.
    reports = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = json.load(sys.stdin)
    sys.argv = request["command"]  # so that the run says what it was started with
    sys.exit(performed(Task(**request["task"]), reports))


if __name__ == "__main__":
    main()
