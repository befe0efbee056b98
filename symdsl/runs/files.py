"""Files written whole or not at all, and read with one clear line about what is wrong."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from symdsl.diagnostics import RunError

SCHEMA = 1

DATA_PICTURE = "data.png"
"""The pictures of its data that `symdsl data` leaves in a spec's folder of runs."""


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file atomically: readers see its old content or its new content. Its mode is kept.

    Raises:
        RunError: it cannot be written; what stood there before still does.
    """
    if not path.name:
        raise RunError(f"{path}: is a folder, name a file")
    new = draft(path)
    with names_the_file(path), removed_on_error(new):
        write_through(new, content)
        with contextlib.suppress(FileNotFoundError):
            new.chmod(stat.S_IMODE(path.stat().st_mode))
        os.replace(new, path)
        sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder, and those it is in, unless it is there.

    Raises:
        RunError: it is a file or cannot be written.
    """
    with names_the_file(path):
        if path.exists() and not path.is_dir():
            raise RunError(f"{path}: is a file; give a folder that is new or empty")
        path.mkdir(parents=True, exist_ok=True)


def draft(path: Path) -> Path:
    """Return the path of the temporary file in which a file's new content is written."""
    return path.with_name(f".{path.name}.tmp")


def is_draft(name: str) -> bool:
    """Return whether a file is such a temporary file."""
    return name.startswith(".") and name.endswith(".tmp")


def write_through(path: Path, content: bytes) -> None:
    """Write a file, and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the renames in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def names_the_file(path: Path, failure: str = "cannot be written") -> Iterator[None]:
    """Turn an error of the operating system into a `RunError` that names the file."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: {failure}: {error.strerror or error}") from error


@contextlib.contextmanager
def removed_on_error(*paths: Path) -> Iterator[None]:
    """Remove files if the block fails."""
    try:
        yield
    except BaseException:
        for path in paths:
            with contextlib.suppress(OSError):
                path.unlink()
        raise


def read(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        RunError: it is missing or cannot be read.
    """
    with names_the_file(path, "cannot be read"):
        return path.read_bytes()


def read_if_there(path: Path) -> bytes | None:
    """Return the content of a file, or None if it does not exist.

    Raises:
        RunError: it cannot be read.
    """
    return read(path) if path.exists() else None


def checksum(content: bytes) -> str:
    """Return the SHA-256 of some bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, which must have this version's schema.

    Raises:
        RunError: the file is missing or damaged, or another version wrote it.
    """
    document = parsed(read(path))
    if document is None:
        raise RunError(f"{path}: damaged, it is not a JSON object")
    if document.get("schema") != SCHEMA:
        found = document.get("schema")
        raise RunError(f"{path}: `schema` (={found!r}) must be {SCHEMA}; it was written by another version of symdsl")
    return document


def parsed(content: bytes) -> dict[str, Any] | None:
    """Return the JSON object in some bytes, or None if they hold none."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def finite(value: Any) -> Any:
    """Return a value with every number that JSON cannot hold (NaN, infinities) replaced by None."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def json_content(value: Any) -> bytes:
    """Return a value as the content of an indented JSON file; numbers that are not finite become null."""
    text = json.dumps(finite(value), indent=2, allow_nan=False, ensure_ascii=False)
    return f"{text}\n".encode(errors="backslashreplace")


def epoch_of(record: Mapping[str, Any]) -> int:
    """Return the epoch of a record.

    Raises:
        ValueError: it has none.
    """
    epoch = record.get("epoch")
    if not isinstance(epoch, int) or isinstance(epoch, bool):
        raise ValueError(f"`epoch` (={epoch!r}) must be an integer")
    return epoch
