"""Checkpoints: a state in JSON and tensors in safetensors, of which some whole pair survives any crash.

The state holds the checksum of its tensors. A pair that matches is whole, whichever of its files is called `previous`:
a crash between two renames leaves a state beside the tensors of another epoch, but always a whole pair as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import attrs

from symdsl.diagnostics import RunError
from symdsl.runs.files import (
    SCHEMA,
    checksum,
    draft,
    epoch_of,
    finite,
    names_the_file,
    parsed,
    read_if_there,
    removed_on_error,
    sync_folder,
    write_through,
)

STATES = ("checkpoint.json", "checkpoint.previous.json")
TENSORS = ("checkpoint.safetensors", "checkpoint.previous.safetensors")


@attrs.frozen
class Checkpoint:
    """A state and its tensors, and the names of the files they were read from."""

    state_name: str
    tensors_name: str
    state: dict[str, Any]
    tensors: bytes


def save(folder: Path, state: Mapping[str, Any], tensors: bytes) -> None:
    """Replace the checkpoint of a folder, and keep the previous one.

    The newest whole pair is moved to `previous` before the new files take their names, so an error or a crash at any
    moment leaves a checkpoint that `load` finds.

    Raises:
        RunError: it cannot be written.
        ValueError: `state` has no integer `epoch`.
    """
    epoch_of(state)
    read_back = json.loads(json.dumps(finite(state), allow_nan=False))
    sums = {"tensors": checksum(tensors), "state": _sum_json(read_back)}
    document = json.dumps({"schema": SCHEMA, "sha256": sums, "state": read_back}).encode()
    state_path, tensors_path = folder / STATES[0], folder / TENSORS[0]
    drafts = draft(state_path), draft(tensors_path)
    with names_the_file(tensors_path), removed_on_error(*drafts):
        write_through(drafts[1], tensors)
        write_through(drafts[0], document)
        _keep_previous(folder)
        os.replace(drafts[1], tensors_path)
        os.replace(drafts[0], state_path)
        sync_folder(folder)


def load(folder: Path) -> tuple[dict[str, Any], bytes]:
    """Read the newest complete checkpoint of a folder.

    Raises:
        RunError: there is none, or every one is damaged.
    """
    newest = _newest(folder)
    if newest is not None:
        return newest.state, newest.tensors
    if any((folder / name).exists() for name in (*STATES, *TENSORS)):
        raise RunError(f"{folder}: every checkpoint is damaged; start a new run")
    raise RunError(f"{folder}: no checkpoint was written yet; start a new run")


def newest_is_damaged(folder: Path) -> bool:
    """Return whether the newest checkpoint of a folder exists but is incomplete.

    A state takes its name after its tensors and gives it up before them, so no crash leaves one without them.
    """
    newest = _newest(folder)
    return (folder / STATES[0]).exists() and (newest is None or newest.state_name != STATES[0])


def _keep_previous(folder: Path) -> None:
    newest = _newest(folder)
    if newest is None:
        return
    for name, previous in ((newest.state_name, STATES[1]), (newest.tensors_name, TENSORS[1])):
        if name != previous:
            os.replace(folder / name, folder / previous)


def _newest(folder: Path) -> Checkpoint | None:
    states = [(name, _read_state(folder / name)) for name in STATES]
    tensors = [(name, _read_tensors(folder / name)) for name in TENSORS]
    whole = [
        Checkpoint(state_name, tensors_name, found[1], content[1])
        for (state_name, found), (tensors_name, content) in product(states, tensors)
        if found is not None and content is not None and found[0] == content[0]
    ]
    return max(whole, key=lambda each: epoch_of(each.state), default=None)


def _read_tensors(path: Path) -> tuple[str, bytes] | None:
    """Checksum and content, or None where there is no such file."""
    content = read_if_there(path)
    return None if content is None else (checksum(content), content)


def _read_state(path: Path) -> tuple[str, dict[str, Any]] | None:
    """The checksum of its tensors and the state, or None where it is missing, damaged or of another version."""
    document = parsed(read_if_there(path) or b"") or {}
    try:
        if document["schema"] != SCHEMA or document["sha256"]["state"] != _sum_json(document["state"]):
            return None
        epoch_of(document["state"])
        return str(document["sha256"]["tensors"]), document["state"]
    except (KeyError, TypeError, AttributeError, ValueError):
        return None


def _sum_json(value: Any) -> str:
    return checksum(json.dumps(value, sort_keys=True).encode())
