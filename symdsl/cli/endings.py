"""The ends of commands that run for long: what signals do, and the command that continues."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from symdsl.cli.terminal import say_why
from symdsl.diagnostics import FAILED, INTERRUPTED, RunError
from symdsl.progress import Observers, Silent


@contextlib.contextmanager
def ending_gently() -> Iterator[None]:
    """Let the signals that schedulers and closed terminals send act like Ctrl-C, unless they are ignored."""
    requests = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) == signal.SIG_DFL]
    for request in requests:
        signal.signal(request, signal.default_int_handler)
    try:
        yield
    finally:
        for request in requests:
            signal.signal(request, signal.SIG_DFL)


@contextlib.contextmanager
def telling_the_way_on(watcher: Silent | Observers, resumption: Callable[[Path], str]) -> Iterator[None]:
    """Print the command that continues what was interrupted or failed, if there is a folder to continue in.

    Args:
        watcher: knows the folder, and prints.
        resumption: returns the command for a folder.
    """
    from symdsl.ranks import RankLostError

    try:
        yield
    except RankLostError as error:
        if error.silent:
            sys.exit(FAILED)
        say_why(str(error) if error.folder is None else f"{error}; continue with: {resumption(error.folder)}")
        sys.exit(FAILED)
    except KeyboardInterrupt:
        if watcher.folder is None:
            raise
        watcher.on_note(f"interrupted; continue with: {resumption(watcher.folder)}")
        sys.exit(INTERRUPTED)
    except RunError:
        if watcher.folder is not None and watcher.folder.is_dir():  # nobody has deleted it
            watcher.on_note(f"failed; once that is fixed, continue with: {resumption(watcher.folder)}")
        raise
