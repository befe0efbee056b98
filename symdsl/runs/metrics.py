"""`metrics.jsonl`: one line per epoch."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
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
    *whole, _torn = (read_if_there(path) or b"").split(b"\n")
    records = []
    for number, line in enumerate(whole, start=1):
        record = parsed(line)
        if record is None or not isinstance(record.get("epoch"), int):
            raise RunError(f"{path}: damaged, line {number} is not the record of an epoch")
        records.append(record)
    return records


def truncate(path: Path, epoch: int) -> None:
    """Remove the lines after an epoch.

    Raises:
        RunError: the file is damaged or cannot be written.
    """
    kept = [record for record in lines(path) if record["epoch"] <= epoch]
    write_atomic(path, b"".join(map(_line, kept)))


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(finite(record), allow_nan=False, ensure_ascii=False).encode() + b"\n"
