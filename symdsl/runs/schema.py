"""The schemas of `run.json` and `result.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from symdsl.diagnostics import RunError

Status = Literal["running", "interrupted", "failed", "finished"]
Objective = Literal["laplace", "elbo", "map"]

MOST_SEEDS = 1000
RESULT_KEYS = (
    *("spec", "objective", "seed", "device", "parameters", "epochs", "wall_s", "train", "test"),
    *("neg_log_evidence_per_example", "layers"),
)
SECONDS = ("total", "training", "evidence")
PART_KEYS = {
    "classification": {"wall_s": SECONDS, "train": ("accuracy", "nll"), "test": ("accuracy", "nll", "ece")},
    "regression": {"wall_s": SECONDS, "train": ("rmse", "nll"), "test": ("rmse", "nll")},
}
LAYER_KEYS = ("name", "chosen", "kept", "candidates")
CANDIDATE_KEYS = ("kind", "parameters", "precision", "weight_norm_sq", "effective", "normalised", "relative")


def command_of(objective: str) -> str:
    """Return the command that starts a search with an objective."""
    return "map" if objective == "map" else "search"


def is_device(text: str) -> bool:
    """Return whether a text names a device that a run can be asked for: `auto`, `cpu`, `cuda` or `cuda:n`."""
    return re.fullmatch(r"auto|cpu|cuda(:\d+)?", text) is not None


def check_status(path: Path, info: Mapping[str, Any]) -> None:
    """Check the status in the content of `run.json`.

    Raises:
        RunError: it is none of the four states.
    """
    _require_one_of(path, "status", info.get("status"), get_args(Status))


def check_result(path: Path, result: Mapping[str, Any]) -> None:
    """Check that the content of `result.json` has every key of its schema.

    Raises:
        RunError: one is missing, or has another type.
    """
    _require_keys(path, "the result", result, RESULT_KEYS)
    _require_one_of(path, "objective", result["objective"], get_args(Objective))
    test = result["test"]
    task = "regression" if isinstance(test, Mapping) and "rmse" in test else "classification"
    for part, keys in PART_KEYS[task].items():
        _require_keys(path, f"`{part}`", result[part], keys)
    for layer in _require_list(path, "layers", result["layers"]):
        _require_keys(path, "a layer", layer, LAYER_KEYS)
        for candidate in _require_list(path, "candidates", layer["candidates"]):
            _require_keys(path, f"a candidate of `{layer['name']}`", candidate, CANDIDATE_KEYS)


def _require_keys(path: Path, what: str, record: Any, keys: Sequence[str]) -> None:
    held = record if isinstance(record, Mapping) else {}
    missing = next((key for key in keys if key not in held), None)
    if missing is not None:
        raise RunError(f"{path}: damaged, {what} has no `{missing}`")


def _require_one_of(path: Path, key: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise RunError(f"{path}: damaged, `{key}` (={value!r}) must be one of {', '.join(allowed)}")


def _require_list(path: Path, key: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise RunError(f"{path}: damaged, `{key}` must be a list")
    return value
