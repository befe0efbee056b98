"""`metrics.jsonl`: one line per epoch."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from symdsl.diagnostics import RunError
from symdsl.runs.files import epoch_of, finite, names_the_file, parsed, read_if_there, write_atomic


def append(path: Path, metrics: Mapping[str, Any]) -> None:
    """Append the line of one epoch; numbers that are not finite become null.

    Raises:
        RunError: it cannot be written; the earlier lines still stand.
        ValueError: `epoch` is missing.
    """
    epoch_of(metrics)
    line = _line(metrics)
    with names_the_file(path), path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            if file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.truncate(file.fileno(), before)
            raise


def lines(path: Path) -> list[dict[str, Any]]:
    """Return one record per epoch, without a torn last line; none if there is no file.

    Raises:
        RunError: a line that was written whole is damaged.
    """
    records = []
    for number, record in enumerate(_records(path), start=1):
        if record is None:
            raise RunError(f"{path}: damaged, line {number} is not the record of an epoch")
        records.append(record)
    return records


def readable(path: Path) -> list[dict[str, Any]]:
    """Return one record per epoch, without those whose lines are torn or damaged."""
    return [record for record in _records(path) if record is not None]


def truncate(path: Path, epoch: int) -> None:
    """Remove damaged lines and those after an epoch.

    Raises:
        RunError: the file cannot be written.
    """
    kept = [record for record in readable(path) if record["epoch"] <= epoch]
    write_atomic(path, b"".join(map(_line, kept)))


def lost(records: Iterable[Mapping[str, Any]], epoch: int) -> list[int]:
    """Return the epochs up to this one of which there is no record."""
    there = {record["epoch"] for record in records}
    return [one for one in range(1, epoch + 1) if one not in there]


def epochs_in_words(numbers: Sequence[int]) -> str:
    """Return ascending numbers of epochs as a sentence has them: `epoch 3`, `epochs 3 to 5, 8`."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda one: one[1] - one[0])]
    parts = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"epoch{'s' if len(numbers) > 1 else ''} {', '.join(parts)}"


def _records(path: Path) -> Iterator[dict[str, Any] | None]:
    """The record in every line that ends; None for one that holds none."""
    *whole, _torn = (read_if_there(path) or b"").split(b"\n")
    for record in map(parsed, whole):
        yield record if record is not None and isinstance(record.get("epoch"), int) else None


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(finite(record), allow_nan=False, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"
