"""Load the data that a spec names, and apply its transforms."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import torch
from attrs import evolve

from symdsl.analysis.dataset import source_outline, trail, written
from symdsl.analysis.facts import Data, Step
from symdsl.catalog.data import BadDataError, MisfitError
from symdsl.data.checks import check_finite, check_handed_over, check_shape, check_targets, check_task, check_values
from symdsl.data.memory import room_for
from symdsl.data.preprocessing import UNPREPARED, Preprocessing
from symdsl.data.records import Dataset, Streams, Watch, seeded, unwatched
from symdsl.data.sources import SOURCES
from symdsl.data.transforms import TRANSFORMS
from symdsl.diagnostics import RunError, not_a_spec

if TYPE_CHECKING:
    from symdsl.spec import Spec


@torch.inference_mode(False)
def load(
    source: Spec | Data,
    seed: int | None = None,
    preprocessing: Preprocessing | None = None,
    watch: Watch = unwatched,
    given: Dataset | None = None,
) -> Dataset:
    """Read the data that a spec names, and apply its transforms in the order written.

    The same spec and seed give the same numbers: what is drawn at random is drawn here, once.

    Args:
        source: a spec, or the data part of its facts.
        seed: for all random draws; by default the seed of the spec's search, or 0 for facts alone.
        preprocessing: the statistics of an earlier run, which `standardize` then uses; by default it computes them
            from the training examples.
        watch: is called with every step, and how many of its examples are done.
        given: the data of a spec that has `data given(...)`, before its transforms.

    Returns:
        Training and test examples on the CPU, not augmented; in memory, or mapped from files where that is too small.

    Raises:
        TypeError: `source` is something else, such as the path of a spec.
        ValueError: if data are given, but the spec names another source.
        RunError: if the data are missing, cannot be read, or are not what the spec says; the message says what and
            where.
    """
    if isinstance(source, Data):
        data, seed = source, 0 if seed is None else seed
    elif not hasattr(source, "facts"):
        raise not_a_spec(source)
    else:
        data, seed = source.facts.data, source.facts.search.seed if seed is None else seed
    with torch.device("cpu"):  # also where torch's default device is another
        ((_, dataset),) = deque(stages(data, seed, preprocessing, watch, given), maxlen=1)
    return _with_float32_targets(dataset)


def stages(
    data: Data,
    seed: int,
    preprocessing: Preprocessing | None = None,
    watch: Watch = unwatched,
    given: Dataset | None = None,
) -> Iterator[tuple[Step, Dataset]]:
    """Yield the source with its data, then every transform with the data after it; raises what `load` raises."""
    check_handed_over(data, given)
    room, source = room_for(data), _as_delivered(data)
    origin = next((str(value) for name, value in data.source.arguments if name == "path"), f"`{data.source.name}`")
    watch(f"reading {origin}", 0, 0)
    if given is None:
        try:
            dataset = SOURCES[data.source.name](source, partial(seeded, seed, data.source.name), room, watch)
        except BadDataError as error:
            raise RunError(str(error)) from error
    else:
        dataset = given
    check_task(dataset, origin, source.task)
    check_values(dataset, origin, source.classes)
    rows, columns = dataset.train.x.shape[2:]
    found = evolve(preprocessing or UNPREPARED, classes=class_names(data), sides=(rows, columns))
    dataset = evolve(dataset, room=room, preprocessing=found)
    yield data.source, dataset
    for step, streams in streamed(data.transforms, seed):
        watch(written(step), 0, 0)
        dataset = TRANSFORMS[step.name](dataset, step, streams)
        yield step, dataset
    for name, part in (("train", dataset.train), ("test", dataset.test)) if data.transforms else ():
        check_finite(part.x, f"{origin}: too large for the transforms, `x_{name}")
    check_targets(_with_float32_targets(dataset), origin)
    check_shape(dataset, origin, (data.channels, data.height, data.width))


def _with_float32_targets(dataset: Dataset) -> Dataset:
    """The dataset with the targets of a regression as networks learn them; before, offsets may be large."""
    if dataset.task != "regression":
        return dataset
    train, test = (evolve(part, y=part.y.float()) for part in (dataset.train, dataset.test))
    return evolve(dataset, train=train, test=test)


def streamed(steps: Iterable[Step], seed: int) -> Iterator[tuple[Step, Streams]]:
    """Yield every transform with the streams it draws from.

    They are counted among transforms of the same name, so that a `subset` put in front moves nobody else's draws.
    """
    seen: Counter[str] = Counter()
    for step in steps:
        yield step, partial(seeded, seed, step.name, seen[step.name])
        seen[step.name] += 1


def class_names(data: Data) -> tuple[str, ...] | None:
    """Return the names of the classes after all transforms, in order, or none where they have no names."""
    try:
        return trail(data)[-1].names or None
    except (BadDataError, MisfitError):
        return None  # whoever reads the files says what is wrong with them


def _as_delivered(data: Data) -> Data:
    """The data with the task and the classes, or targets, of the source alone."""
    labels = [dict(step.arguments).get("label") for step in data.transforms]
    if "angle" in labels:
        try:
            outline = source_outline(data.source)
        except BadDataError as error:
            raise RunError(str(error)) from error
        return evolve(data, task=outline.task, classes=outline.classes)
    return evolve(data, classes=data.classes // 4 ** labels.count("both"))
