"""The process of one search of several: `python -m symdsl.runner.child`, the request on standard input."""

from __future__ import annotations

import json
import signal
import sys

from symdsl.runner.tasks import Task, performed


def main() -> None:
    """Run the task, report on standard output and exit like the command line."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    request = json.load(sys.stdin)
    sys.argv = request["command"]  # so that the run says what it was started with
    sys.exit(performed(Task(**request["task"]), sys.stdout))


if __name__ == "__main__":
    main()
