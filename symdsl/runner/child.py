"""The process of one search of several: `python -m symdsl.runner.child`, the request on standard input."""

from __future__ import annotations

import json
import signal
import sys

from symdsl.diagnostics import NumericalError, RunError
from symdsl.runner.tasks import FAILED, INTERRUPTED, Reporting, Task


def main() -> None:
    """Runs the task and reports on standard output; exits like the command line."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    request, reporting = json.load(sys.stdin), Reporting(sys.stdout)
    sys.argv = request["command"]  # so that the run says what it was started with
    try:
        Task(**request["task"]).run(reporting)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (RunError, NumericalError) as error:
        reporting.failed(str(error))
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
