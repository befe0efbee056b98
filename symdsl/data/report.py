"""Shapes and statistics of the data of a spec, after each of their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
from torch import Tensor

from symdsl.analysis.dataset import trail, written
from symdsl.catalog.data import Outline
from symdsl.data.loading import stages
from symdsl.data.records import Dataset, Examples
from symdsl.data.sheet import sheet
from symdsl.data.transforms import moments
from symdsl.diagnostics import not_a_spec

if TYPE_CHECKING:
    from symdsl.spec import Spec


@attrs.frozen(eq=False)
class Inspection:
    """Counts, means, labels and pictures of data as a network sees them.

    Attributes:
        content: plain values: `task`, `classes`, `names`, `mapped` (why images are mapped from files, in numbers; None
            if they are in memory), `steps` (each with the examples, shape, mean and spread per channel after it), and
            how often each of `labels` occurs or how the `targets` are spread.
        picture: a PNG file with examples of each class.
    """

    content: dict[str, Any]
    picture: bytes = attrs.field(repr=False)

    def _repr_png_(self) -> bytes:
        return self.picture


def inspect(spec: Spec, seed: int | None = None, examples: int = 8, given: Dataset | None = None) -> Inspection:
    """Load the data of a spec, and summarise them after every step.

    Args:
        spec: the spec.
        seed: for all random draws; by default the spec's.
        examples: training examples of each class in the picture, at least 1.
        given: the data of a spec that has `data given(...)`, before its transforms.

    Raises:
        TypeError: `spec` is something else, such as the path of one.
        ValueError: if `examples` is below 1, or data are given, but the spec names another source.
        RunError: if the data cannot be read, or are not what the spec says.
    """
    if not hasattr(spec, "facts"):
        raise not_a_spec(spec)
    if examples < 1:
        raise ValueError(f"`examples` (={examples}) must be at least 1")
    data, seed = spec.facts.data, spec.facts.search.seed if seed is None else seed
    steps = []
    for step, dataset in stages(data, seed, given=given):
        steps.append({"step": written(step), "train": _part(dataset.train), "test": _part(dataset.test)})
    outline = trail(data)[-1]
    mapped = dataset.room.reason or None
    head = {"task": data.task, "classes": data.classes, "names": list(outline.names), "mapped": mapped, "steps": steps}
    content = head | _OUTCOMES[data.task](dataset, outline)
    return Inspection(content, sheet(dataset, data, outline.names, examples, seed))


def _part(examples: Examples) -> dict[str, Any]:
    mean, spread = (found.tolist() for found in moments(examples.x))
    return {"examples": len(examples), "shape": list(examples.x.shape[1:]), "mean": mean, "spread": spread}


def _labels(dataset: Dataset, outline: Outline) -> dict[str, Any]:
    counts = [part.y.bincount(minlength=outline.classes).tolist() for part in (dataset.train, dataset.test)]
    names = outline.names or [str(label) for label in range(outline.classes)]
    return {
        "labels": [
            {"label": label, "name": name, "train": train, "test": test}
            for label, (name, train, test) in enumerate(zip(names, *counts, strict=True))
        ]
    }


def _targets(dataset: Dataset, outline: Outline) -> dict[str, Any]:
    train, test = (dataset.preprocessing.restored_targets(part.y.double()) for part in (dataset.train, dataset.test))
    return {
        "targets": [
            {"target": target, "train": _spread(train[:, target]), "test": _spread(test[:, target])}
            for target in range(outline.classes)
        ]
    }


def _spread(values: Tensor) -> dict[str, float]:
    exact = values.double()
    return {
        "mean": float(exact.mean()),
        "spread": float(exact.std(correction=0)),
        "min": float(exact.min()),
        "max": float(exact.max()),
    }


_OUTCOMES = {"classification": _labels, "regression": _targets}
