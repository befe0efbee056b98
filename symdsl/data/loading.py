"""From what a spec says about its data to tensors."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve

from symdsl.analysis.facts import Data, Step
from symdsl.data.checks import check_shape, check_values
from symdsl.data.memory import room_for
from symdsl.data.records import Dataset, Streams, seeded
from symdsl.data.sources import SOURCES
from symdsl.data.transforms import TRANSFORMS

if TYPE_CHECKING:
    from symdsl.spec import Spec


def load(source: Spec | Data, seed: int | None = None) -> Dataset:
    """Reads the data a spec names and applies its transforms, in the order written.

    The same spec and seed give the same numbers: what is drawn at random is drawn here, once.

    Args:
        source: a spec, or the data part of its facts.
        seed: what random draws depend on; by default the seed of the spec's search, or 0 for facts alone.

    Returns:
        Training and test examples on the CPU, not augmented; in memory, or mapped from files where that is too small.

    Raises:
        RunError: when the data cannot be read or are not what the spec says; one line that says what and where.
    """
    if isinstance(source, Data):
        return _load(source, 0 if seed is None else seed)
    return _load(source.facts.data, source.facts.search.seed if seed is None else seed)


def stages(data: Data, seed: int) -> Iterator[tuple[Step, Dataset]]:
    """The source and what it delivers, then every transform and what is there after it; raises what `load` raises."""
    room, origin = room_for(data), _origin(data.source)
    source = SOURCES[data.source.name]
    dataset = evolve(source(data, partial(seeded, seed, data.source.name), room), room=room)
    check_values(dataset, origin, _source_classes(data))
    yield data.source, dataset
    for step, streams in zip(data.transforms, _streams(data.transforms, seed), strict=True):
        dataset = TRANSFORMS[step.name](dataset, step, streams)
        yield step, dataset
    check_shape(dataset, origin, (data.channels, data.height, data.width))


def _load(data: Data, seed: int) -> Dataset:
    ((_, dataset),) = deque(stages(data, seed), maxlen=1)
    return dataset


def _origin(source: Step) -> str:
    return next((str(value) for name, value in source.arguments if name == "path"), f"`{source.name}`")


def _source_classes(data: Data) -> int:
    numbered = (step.name == "quadrants" and step.argument("label") == "both" for step in data.transforms)
    return data.classes // math.prod(4 for each in numbered if each)


def _streams(steps: tuple[Step, ...], seed: int) -> list[Streams]:
    # Counted among transforms of its own name, so that a `subset` put in front moves nobody else's draws.
    seen: Counter[str] = Counter()
    streams: list[Streams] = []
    for step in steps:
        streams.append(partial(seeded, seed, step.name, seen[step.name]))
        seen[step.name] += 1
    return streams
