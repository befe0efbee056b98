"""Where the images of a dataset are kept: in memory, or mapped from files. Decided before any of them is read.

A mapped tensor is a tensor, so all else stays the same; a loader would transform an image anew in every epoch. The
files have no name, so a killed run leaves nothing behind. Their blocks are reserved before anything is written,
because writing to a mapped file on a full disk kills the process.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from pathlib import Path

import attrs
import torch
from torch import Tensor

from symdsl.analysis.dataset import trail
from symdsl.analysis.facts import Data
from symdsl.catalog.data import BadDataError, MisfitError, Outline
from symdsl.diagnostics import RunError

_NUMBER_BYTES = 4
_GIB = 2**30

_CHUNK_EXAMPLES, _CHUNK_NUMBERS = 4096, 1 << 24
"""Most examples and numbers of a chunk: they bound the memory of intermediate results."""

_UNLIMITED = 2**63 - 1
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = ("memory.max", "memory.current", "inactive_file")
"""Files of a control group with its limit and what it uses, and the statistic of cached files, by version."""

_STREAMED = ("images", "arrays")
"""Sources that are read a piece at a time; any other is in memory as a whole while it is read."""


@attrs.frozen
class Room:
    """A place for images: memory, or files that are mapped into it.

    Attributes:
        folder: where files for them are made; None means that they are in memory.
        reason: why that is, in numbers; empty for memory.
    """

    folder: Path | None = None
    reason: str = ""

    def empty(self, *shape: int) -> Tensor:
        """Return an uninitialised float32 tensor; a file behind it has no name and vanishes with it.

        Raises:
            RunError: the file cannot be made as large.
        """
        size = _NUMBER_BYTES * math.prod(shape)
        try:
            if self.folder is None or not size:
                return torch.empty(shape, dtype=torch.float32)
            with tempfile.NamedTemporaryFile(dir=self.folder, prefix="symdsl-") as file:
                _reserve(file.fileno(), size)
                mapped = torch.from_file(file.name, shared=True, size=math.prod(shape), dtype=torch.float32)
        except (OSError, RuntimeError) as error:
            where, why = f"`{self.folder}`" if self.folder else "memory", getattr(error, "strerror", "") or "too large"
            raise RunError(f"cannot keep {size / _GIB:.1f} GiB in {where}: {why}") from error
        return mapped.view(shape)

    def changed(self, x: Tensor, change: Callable[..., Tensor], *drawn: Tensor) -> Tensor:
        """Apply a function to images, a chunk of them at a time.

        Args:
            x: images, `[example, channel, row, column]`, at least one.
            change: from some images, and their share of what was `drawn`, to images, as many for each.
            drawn: for every example, `[example, ...]`.
        """
        size = min(chunk_of(x), len(x))
        parts = (change(*part) for part in zip(*(each.split(size) for each in (x, *drawn)), strict=True))
        first = next(parts)
        into, done = self.empty(len(x) * (len(first) // size), *first.shape[1:]), 0
        for some in chain((first,), parts):
            into[done : done + len(some)] = some
            done += len(some)
        return into

    def chosen(self, x: Tensor, index: Tensor) -> Tensor:
        """Return the images with these indices, in this order."""
        into = self.empty(len(index), *x.shape[1:])
        for place, some in zip(into.split(chunk_of(x)), index.split(chunk_of(x)), strict=True):
            place.copy_(x[some])
        return into


MEMORY = Room()


def chunk_of(x: Tensor) -> int:
    """Return how many images of a shape are processed at a time."""
    return max(1, min(_CHUNK_EXAMPLES, _CHUNK_NUMBERS // max(1, x[:1].numel())))


def room_for(data: Data) -> Room:
    """Choose memory or mapped files, by comparing what the data and their transforms need with what is free.

    Returns:
        Memory, or where that is too small and the disk is not, a folder: `TMPDIR` if it is set, else `/var/tmp`.

    Raises:
        RunError: they fit neither; the message has the numbers. Or `TMPDIR` is needed and is no folder to write to.
    """
    try:
        outlines = _held(data, trail(data))
    except (BadDataError, MisfitError):
        return MEMORY  # whoever reads the files says what is wrong with them
    needed, free = _peak(outlines), free_memory()
    if needed <= free:
        return MEMORY
    largest, folder = max(outlines, key=_bytes), _folder()
    spare = free_disk(folder)
    numbers = (
        f"{largest.train:,} training and {largest.test:,} test images of {largest} take {_bytes(largest) / _GIB:.1f} "
        f"GiB, reading and transforming them {needed / _GIB:.1f} GiB, and {free / _GIB:.1f} GiB of memory"
    )
    source = 0 if data.source.name in _STREAMED else _bytes(outlines[0])
    if source > free:
        raise RunError(
            f"the data do not fit in memory: {numbers} are free; `{data.source.name}` is read as a whole, which alone "
            f"takes {source / _GIB:.1f} GiB"
        )
    if needed > spare:
        raise RunError(
            f"the data do not fit in memory: {numbers} and {spare / _GIB:.1f} GiB in `{folder}` are free; use fewer or "
            "smaller images, or set TMPDIR to a folder on a larger disk"
        )
    return Room(folder, f"{numbers} are free: the images are mapped from files without a name in `{folder}`")


def free_memory() -> int:
    """Return the bytes that this process may still allocate, within its machine and container."""
    return min(_free_on_machine(), _left_in_groups())


def free_disk(folder: Path) -> int:
    """Return the bytes that files in a folder may still take."""
    return shutil.disk_usage(folder).free


def _folder() -> Path:
    """A folder for large files; `/tmp` often is memory."""
    wanted = os.environ.get("TMPDIR")
    folder = Path(wanted or "/var/tmp")
    if folder.is_dir() and os.access(folder, os.W_OK):
        return folder
    if wanted:
        raise RunError(f"the data do not fit in memory, and TMPDIR (={wanted}) is no folder that files can be made in")
    return Path(tempfile.gettempdir())


def _reserve(file: int, size: int) -> None:
    """Make a file so large, its blocks reserved: writing to a mapped file on a full disk ends the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)


def _held(data: Data, outlines: Sequence[Outline]) -> Sequence[Outline]:
    """Outlines of what is kept as a whole; `images` resizes each image as it is read."""
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


def _left_in_groups(listed: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int:
    """The least memory that a control group around this process leaves it, in bytes; a container is such a group."""
    try:
        entries = [line.split(":", 2)[1:] for line in listed.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return _UNLIMITED
    found = [_UNLIMITED]
    for controllers, path in entries:
        if controllers and "memory" not in controllers.split(","):
            continue
        top, files = (root / "memory", _VERSION_1) if controllers else (root, _VERSION_2)
        own = top / path.lstrip("/")
        found += [_left(one, *files) for one in (own, *own.parents) if one.is_relative_to(top)]
    return min(found)


def _left(group: Path, limit: str, usage: str, cached: str) -> int:
    """The bytes that a control group may still allocate; what caches files is given back when it is needed."""
    try:
        most, used = (int((group / name).read_text(encoding="ascii")) for name in (limit, usage))
        statistics = dict(line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
        return max(most - used + int(statistics.get(cached, 0)), 0)
    except (OSError, ValueError):
        return _UNLIMITED  # no such group here, or one without a limit
