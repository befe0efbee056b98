"""What a path leads to, and the file that was likely meant where there is none of that name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from symdsl.diagnostics import suggest

_MOST_LISTED = 1000


def other_than_file(path: Path) -> str:
    """Return what a path leads to instead of a file, `a folder` or `a device`; empty for a file, or for nothing.

    Raises:
        OSError: that cannot be told.
    """
    if not path.exists() or path.is_file():
        return ""
    return "a folder" if path.is_dir() else "a device"


def nearest(path: Path, suffix: str) -> Path | None:
    """Return an existing file with a similar name, in the same folder or in one with a similar name, or nothing.

    Args:
        path: of the file that is missing.
        suffix: of the files that can be meant; empty where a folder is.
    """
    folder = path.parent
    if not folder.is_dir():
        beside = _named(folder.parent, Path.is_dir)
        other = suggest(folder.name, beside)
        folder = beside[other] if other else folder
    files = _named(folder, lambda one: one.suffix == suffix and (one.is_file() if suffix else one.is_dir()))
    stems = {name.removesuffix(suffix): one for name, one in files.items()}  # or all short names would be similar
    near = suggest(path.name.removesuffix(suffix), stems)
    return stems[near] if near else None


def _named(folder: Path, wanted: Callable[[Path], bool]) -> dict[str, Path]:
    """What is in a folder, if it can be listed, by name."""
    try:
        return {one.name: one for one in itertools.islice(folder.iterdir(), _MOST_LISTED) if wanted(one)}
    except OSError:
        return {}
