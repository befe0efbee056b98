"""Folders that one process at a time writes to."""

from __future__ import annotations

import time
from pathlib import Path
from typing import IO, Self

from symdsl.diagnostics import RunError
from symdsl.runs.files import DATA_PICTURE, is_draft, names_the_file

LOCK = ".lock"

_PATIENCE = 0.1
"""Seconds for which a lock is asked for again: whoever asks whether a folder is in use holds it for a moment."""


def held(folder: Path) -> list[str]:
    """Return the sorted names in a folder but for a lock, drafts of files, and pictures of data.

    Raises:
        RunError: it cannot be read.
    """
    with names_the_file(folder, "cannot be read"):
        names = sorted(file.name for file in folder.iterdir())
    return [name for name in names if name not in (LOCK, DATA_PICTURE) and not is_draft(name)]


class LockedFolder:
    """A folder, locked by whoever writes to it until `close`, the end of a `with` block, or that of the process.

    Writing to one that was opened for reading is a `ValueError`.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: Path, lock: IO[bytes] | None) -> None:
        """Not for callers: use `create`, `resume` or `view`."""
        self.path = path
        self._lock = lock

    def __enter__(self) -> Self:
        """The folder itself, closed at the end of the block."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the folder."""
        self.close()

    def close(self) -> None:
        """Release the lock; closing twice does no harm."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def _writable(self) -> Path:
        if self._lock is None:
            raise ValueError(f"the folder {self.path} is not open for writing")
        return self.path


def locked(folder: Path) -> IO[bytes]:
    """Open and lock a folder's lock file; the operating system releases it when the process ends.

    Raises:
        RunError: it is in use, or cannot be locked.
    """
    import fcntl

    with names_the_file(folder):
        lock = (folder / LOCK).open("ab")
    until = time.monotonic() + _PATIENCE
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise
                time.sleep(_PATIENCE / 10)
    except OSError as error:
        lock.close()
        held = isinstance(error, BlockingIOError)
        reason = "in use by a live run; wait for it to end" if held else f"cannot be locked: {error.strerror}"
        raise RunError(f"{folder}: {reason}, or give another folder") from error
    return lock


def in_use(folder: Path) -> bool:
    """Return whether a live run holds the lock of a folder."""
    import fcntl

    try:
        with (folder / LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no lock file, or a file system without locks
    return False
