"""Whether a dataset fits in memory, found out before any of it is read."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from symdsl.analysis.dataset import trail
from symdsl.analysis.facts import Data
from symdsl.catalog.data import BadDataError, MisfitError, Outline
from symdsl.diagnostics import RunError

_NUMBER_BYTES = 4
_GIB = 2**30


def check_memory(data: Data) -> None:
    """Compares what the data take at most, before and after one of their steps together, with what is free.

    Raises:
        RunError: they do not fit; the message has the numbers.
    """
    try:
        outlines = _held(data, trail(data))
    except (BadDataError, MisfitError):
        return  # whoever reads the files says what is wrong with them
    needed, free = _peak(outlines), free_memory()
    if needed > free:
        largest = max(outlines, key=_bytes)
        raise RunError(
            f"the data do not fit in memory: {largest.train:,} training and {largest.test:,} test images of {largest} "
            f"take {_bytes(largest) / _GIB:.1f} GiB, reading and transforming them {needed / _GIB:.1f} GiB, and "
            f"{free / _GIB:.1f} GiB are free; use fewer or smaller images"
        )


def free_memory() -> int:
    """Bytes that a process may still take: of the machine, or of the container it runs in."""
    return min(_free_on_machine(), _allowed_in_container())


def _held(data: Data, outlines: Sequence[Outline]) -> Sequence[Outline]:
    """Outlines of what is in memory as a whole; `images` resizes each image as it is read."""
    at_once = data.source.name == "images" and bool(data.transforms) and data.transforms[0].name == "resize"
    return outlines[1:] if at_once else outlines


def _peak(outlines: Sequence[Outline]) -> int:
    return max([_bytes(outlines[0]), *(_bytes(before) + _bytes(after) for before, after in pairwise(outlines))])


def _bytes(outline: Outline) -> int:
    return _NUMBER_BYTES * (outline.train + outline.test) * outline.channels * outline.height * outline.width


def _free_on_machine() -> int:
    try:
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
    except OSError:
        found = None
    return int(found[1]) * 1024 if found else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _allowed_in_container() -> int:
    try:
        return int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 2**63 - 1  # no container, or one without a limit
