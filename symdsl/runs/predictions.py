"""A network's predictions of all test examples, small enough to keep with the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from symdsl.catalog.data import Task
from symdsl.diagnostics import RunError
from symdsl.runs.files import read_if_there

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FILE = "predictions.safetensors"

MOST_TARGETS = 8
"""How many regression targets are kept, the first ones."""


@attrs.frozen(eq=False)
class Predictions:
    """Targets and predictions of all test examples, and pictures of the worst mistakes.

    They take at most 24 bytes per example for classes and 64 for regression, whatever the size of the images.

    Attributes:
        task: `classification` or `regression`.
        names: of the classes, where they have any.
        target: true classes, int32 `[example]`, or regression targets, float32 `[example, target]`: the first
            `MOST_TARGETS`.
        predicted: predicted classes, or regression outputs; of the shape and type of `target`.
        confidence: probability of the predicted class, float64 `[example]`; None for regression.
        worst: numbers of the examples with the worst mistakes, int64 `[mistake]`: the most confident first, or those
            with the largest squared error in these targets.
        images: pictures of them, uint8 `[mistake, row, column, channel]`, of one channel (grey) or three.
    """

    task: Task
    names: tuple[str, ...]
    target: NDArray[Any]
    predicted: NDArray[Any]
    confidence: NDArray[np.float64] | None
    worst: NDArray[np.int64]
    images: NDArray[np.uint8]

    def to_bytes(self) -> bytes:
        """Return the content of a safetensors file that `read` reads."""
        from safetensors.numpy import save

        arrays = {"target": self.target, "predicted": self.predicted, "worst": self.worst, "images": self.images}
        if self.confidence is not None:
            arrays["confidence"] = self.confidence
        # safetensors writes several entries in an order that changes from one process to the next
        return bytes(save(arrays, {"classes": json.dumps([self.task, self.names], ensure_ascii=False)}))


def read(folder: Path) -> Predictions | None:
    """Return the predictions in a run folder, or None if the run has not got so far.

    Raises:
        RunError: the file is damaged.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / FILE
    if read_if_there(path) is None:
        return None
    try:
        with safe_open(path, "numpy") as file:
            said, arrays = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        needed = {key: arrays[key] for key in ("target", "predicted", "worst", "images")}
        # earlier versions wrote two entries
        task, names = json.loads(said["classes"]) if "classes" in said else (said["task"], json.loads(said["names"]))
        return Predictions(task, tuple(names), confidence=arrays.get("confidence"), **needed)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path}: damaged, {error}") from error
