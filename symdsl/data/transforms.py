"""Data transforms, one function each, and the table the spec's names are looked up in.

A transform maps a whole dataset and may draw at random from its streams. Training and test data have streams of their
own, so the test set does not change with the number of training examples; what is drawn is drawn once and stays. Images
are changed a chunk at a time and kept in the dataset's room.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from attrs import evolve
from torch import Generator, Tensor
from torch.nn import functional

from symdsl.analysis.facts import Step
from symdsl.data.memory import Room, chunk_of
from symdsl.data.preprocessing import Statistics
from symdsl.data.records import Dataset, Examples, Streams, seeded
from symdsl.diagnostics import RunError

Transform = Callable[[Dataset, Step, Streams], Dataset]

_ROUNDING = 1e-9
"""The share of a step that rounding may take from a range: 0.3 is less than three steps of 0.1."""


def standardize(dataset: Dataset, step: Step, streams: Streams) -> Dataset:
    """Give every channel, or every target, mean 0 and variance 1 over the training examples, and positions.

    What is constant over the training data is only shifted. A dataset that has statistics already, those of the run it
    is made for, is standardized with these.
    """
    if dict(step.arguments).get("what") == "targets":
        return _standardized_targets(dataset)
    found = dataset.preprocessing.standardize or _statistics(dataset.train.x)
    kept = evolve(dataset.preprocessing, standardize=found)
    return evolve(_images(dataset, found.standardized), preprocessing=kept)


def _standardized_targets(dataset: Dataset) -> Dataset:
    if dataset.task != "regression":
        raise ValueError("`standardize(targets)` needs real numbers for targets, but they are class labels")
    found = dataset.preprocessing.targets or _statistics(dataset.train.y[:, :, None, None])
    train, test = (evolve(part, y=found.standardized(part.y)) for part in (dataset.train, dataset.test))
    return evolve(dataset, train=train, test=test, preprocessing=evolve(dataset.preprocessing, targets=found))


def _statistics(x: Tensor) -> Statistics:
    mean, spread = moments(x)
    spread[x.amax((0, 2, 3)) == x.amin((0, 2, 3))] = 1.0
    return Statistics(mean.tolist(), spread.tolist())


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of every channel over examples and positions, float64 `[channel]`."""
    positions = x[:, 0].numel()
    mean = _channel_sum(x, lambda chunk: chunk) / positions
    variance = _channel_sum(x, lambda chunk: (chunk - mean[:, None, None]).square()) / positions
    return mean, variance.sqrt()


def resize(dataset: Dataset, step: Step, streams: Streams) -> Dataset:
    """Resample images bilinearly to `size` x `size`."""
    size = step.whole("size")
    if all(part.x.shape[2:] == (size, size) for part in (dataset.train, dataset.test)):
        return dataset
    return _images(dataset, lambda x: resized(x, size))


def resized(x: Tensor, size: int) -> Tensor:
    """Return images `[example, channel, size, size]`, bilinearly resampled; smoothed first where they shrink.

    What is constant stays so to the last bit: `standardize` would take round-off for all there is to see.
    """
    if x.shape[2:] == (size, size):
        return x
    found = functional.interpolate(x, (size, size), mode="bilinear", antialias=size < max(x.shape[2:]))
    most = x.amax((2, 3), keepdim=True)
    return found.where(most != x.amin((2, 3), keepdim=True), most)


def pad(dataset: Dataset, step: Step, streams: Streams) -> Dataset:
    """Surround images with zeros up to `size` x `size`; an odd row or column goes to the bottom or right."""
    size = step.whole("size")
    _demand(all(side <= size for side in _sides(dataset)), step, "must not be smaller than", dataset)
    return _images(dataset, lambda x: _framed(x, size))


def crop(dataset: Dataset, step: Step, streams: Streams) -> Dataset:
    """Keep the central `size` x `size` of every image."""
    size = step.whole("size")
    _demand(all(side >= size for side in _sides(dataset)), step, "must not be larger than", dataset)
    top, left = ((side - size) // 2 for side in _sides(dataset))
    return _images(dataset, lambda x: x[:, :, top : top + size, left : left + size])


def rotate(dataset: Dataset, step: Step, streams: Streams) -> Dataset:
    """Turn every image about its centre by its own angle, uniform in `[-degrees, degrees]`; zeros move in.

    With a `step` the angle is one of its multiples in that range; -180 and 180 degrees count as the one turn they are.
    With `label = angle` the angle, in degrees and counter-clockwise, becomes the target of a regression.
    """
    degrees, unit = _number(step, "degrees"), _number(step, "step")
    size, draw = (unit, partial(_among, multiples(degrees, unit))) if unit else (degrees, _symmetric)
    drawn = _drawn(dataset, streams, draw)
    turned = _moved(dataset, rotated, [math.radians(size) * one for one in drawn])
    if dict(step.arguments).get("label") != "angle":
        return turned
    train, test = (
        evolve(part, y=(size * one).float()[:, None])
        for part, one in zip((turned.train, turned.test), drawn, strict=True)
    )
    return evolve(turned, train=train, test=test, task="regression")


def multiples(degrees: float, step: float) -> range:
    """Return the whole numbers of steps within `[-degrees, degrees]`; of -180 and 180 degrees the second only."""
    most = math.floor(degrees / step + _ROUNDING)
    return range(-most + math.isclose(most * step, 180), most + 1)


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    """Return images turned counter-clockwise by `angles` (radians, `[example]`), bilinearly resampled."""
    height, width = x.shape[2:]
    cos, sin, zero = angles.cos(), angles.sin(), torch.zeros_like(angles)
    # The grid measures rows and columns in units of half a side, which differ where the image is not square.
    across = torch.stack((cos, -sin * height / width, zero), 1)
    down = torch.stack((sin * width / height, cos, zero), 1)
    return _resampled(x, torch.stack((across, down), 1))


def translate(dataset: Dataset, step: Step, streams: Streams) -> Dataset:
    """Move every image by its own whole number of rows and columns, uniform in `[-pixels, pixels]`; zeros move in."""
    pixels = step.whole("pixels")
    drawn = _drawn(
        dataset, streams, lambda count, stream: torch.randint(-pixels, pixels + 1, (count, 2), generator=stream)
    )
    return _moved(dataset, partial(shifted, margin=pixels), drawn)


def shifted(x: Tensor, by: Tensor, margin: int) -> Tensor:
    """Return images moved down and right by `by` (`[example, 2]`, whole pixels, at most `margin`); zeros move in.

    Images of one row, such as signals, move along it only.
    """
    height, width = x.shape[2:]
    above = margin if height > 1 else 0
    rows = torch.arange(height, device=x.device) + above - by[:, :1] * (height > 1)
    columns = torch.arange(width, device=x.device) + margin - by[:, 1:]
    examples = torch.arange(len(x), device=x.device)[:, None, None]
    framed = functional.pad(x, (margin, margin, above, above)).permute(0, 2, 3, 1)
    return framed[examples, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).contiguous()


def scale(dataset: Dataset, step: Step, streams: Streams) -> Dataset:
    """Scale every image about its centre by its own factor, its logarithm uniform in `[-logarithm, logarithm]`.

    Rows and columns are scaled alike; zeros move in.
    """
    drawn = _drawn(dataset, streams, _symmetric)
    return _moved(dataset, scaled, [(_number(step, "logarithm") * one).exp() for one in drawn])


def scaled(x: Tensor, factors: Tensor) -> Tensor:
    """Return images made larger by `factors` (`[example]`), bilinearly resampled."""
    matrices = torch.eye(2, 3, dtype=factors.dtype, device=factors.device) / factors[:, None, None]
    return _resampled(x, matrices)


def _resampled(x: Tensor, matrices: Tensor) -> Tensor:
    """Images that have at a position what `x` has where a matrix (`[example, 2, 3]`, half sides) maps it to."""
    grid = functional.affine_grid(matrices, list(x.shape), align_corners=False)
    return functional.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def shuffle(dataset: Dataset, step: Step, streams: Streams) -> Dataset:
    """Permute the positions of every image, channels together: of all `alike`, or of each in a way of its own."""
    positions = math.prod(_sides(dataset))
    if step.argument("alike"):
        order = order_of(positions, streams)
        return _images(dataset, lambda x: _permuted(x, order.expand(len(x), -1)))
    drawn = _drawn(dataset, streams, lambda count, stream: _orders(count, positions, stream))
    return _moved(dataset, _permuted, drawn)


def order_of(positions: int, streams: Streams) -> Tensor:
    """Return the permutation of the positions of all images alike, `[position]`: where each one's value comes from."""
    return torch.randperm(positions, generator=streams("positions"))


def _orders(count: int, positions: int, stream: Generator) -> Tensor:
    """A permutation of the positions for every example, `[example, position]`."""
    return torch.rand(count, positions, generator=stream, dtype=torch.float64).argsort(1)


def _permuted(x: Tensor, order: Tensor) -> Tensor:
    planes = x.flatten(2)
    return planes.gather(2, order[:, None].expand_as(planes)).view_as(x)


def unroll(dataset: Dataset, step: Step, streams: Streams) -> Dataset:
    """Put the rows of every image side by side: `[example, channel, 1, row * column]`."""
    return _images(dataset, lambda x: x.flatten(2).unsqueeze(2))


def quadrants(dataset: Dataset, step: Step, streams: Streams) -> Dataset:
    """Place every image `copies` times on a map twice as large, each time in a quadrant drawn at random.

    The draws are independent, so two copies of an image may fall on the same quadrant. The quadrants are counted
    from the top left, row by row; with `label = both` the label becomes `4 label + quadrant`.
    """
    copies, both = step.whole("copies"), step.argument("label") == "both"
    if both and dataset.task != "classification":
        raise ValueError("`quadrants(label = both)` needs class labels, but the targets are real numbers")
    train, test = (
        _placed(part, torch.randint(4, (len(part), copies), generator=streams(name)), both, dataset.room)
        for name, part in _parts(dataset)
    )
    return evolve(dataset, train=train, test=test)


def subset(dataset: Dataset, step: Step, streams: Streams) -> Dataset:
    """Keep `n` training examples and, where it is given, `test` test examples, drawn without replacement.

    The test examples are drawn once and for all, whatever the seed, so that runs with different seeds are measured
    on the same ones.

    Raises:
        RunError: when there are fewer.
    """
    train = _some(dataset.train, step.whole("n"), streams("train"), step, "training", dataset.room)
    if "test" not in dict(step.arguments):
        return evolve(dataset, train=train)
    test = _some(dataset.test, step.whole("test"), seeded("subset", "test"), step, "test", dataset.room)
    return evolve(dataset, train=train, test=test)


def augment(dataset: Dataset, step: Step, streams: Streams) -> Dataset:
    """Leave the data as they are: training batches are changed as they are drawn, by an `Augmentation`."""
    return dataset


TRANSFORMS: dict[str, Transform] = {
    function.__name__: function
    for function in (
        *(standardize, resize, pad, crop, rotate, translate, scale, shuffle, unroll, quadrants, subset, augment),
    )
}
"""Every transform by the name a spec calls it."""


def _images(dataset: Dataset, change: Callable[[Tensor], Tensor]) -> Dataset:
    train, test = (evolve(part, x=dataset.room.changed(part.x, change)) for part in (dataset.train, dataset.test))
    return evolve(dataset, train=train, test=test)


def _parts(dataset: Dataset) -> tuple[tuple[str, Examples], ...]:
    return ("train", dataset.train), ("test", dataset.test)


def _drawn(dataset: Dataset, streams: Streams, draw: Callable[[int, Generator], Tensor]) -> list[Tensor]:
    """Return what is drawn for the training and for the test examples, `[example, ...]`."""
    return [draw(len(part), streams(name)) for name, part in _parts(dataset)]


def _moved(dataset: Dataset, change: Callable[[Tensor, Tensor], Tensor], drawn: Sequence[Tensor]) -> Dataset:
    train, test = (
        evolve(part, x=dataset.room.changed(part.x, change, one))
        for (_, part), one in zip(_parts(dataset), drawn, strict=True)
    )
    return evolve(dataset, train=train, test=test)


def _channel_sum(x: Tensor, what: Callable[[Tensor], Tensor]) -> Tensor:
    # In chunks, so that there never is a float64 copy of all images.
    return torch.stack([what(chunk.double()).sum((0, 2, 3)) for chunk in x.split(chunk_of(x))]).sum(0)


def _some(examples: Examples, count: int, stream: Generator, step: Step, what: str, room: Room) -> Examples:
    available = len(examples)
    if count > available:
        given = ", ".join(f"{name} = {value}" for name, value in step.arguments)
        raise RunError(f"`subset({given})` asks for more {what} examples than there are (={available}): lower it")
    index = torch.randperm(available, generator=stream)[:count]
    return Examples(room.chosen(examples.x, index), examples.y[index])


def _sides(dataset: Dataset) -> tuple[int, int]:
    return dataset.train.x.shape[2], dataset.train.x.shape[3]


def _number(step: Step, name: str) -> float:
    value = step.argument(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"`{name}` of `{step.name}` (={value!r}) must be a number")
    return value


def _demand(holds: bool, step: Step, relation: str, dataset: Dataset) -> None:
    if not holds:
        height, width = _sides(dataset)
        raise ValueError(f"`size` of `{step.name}` (={step.argument('size')}) {relation} the image ({height}x{width})")


def _framed(x: Tensor, size: int) -> Tensor:
    height, width = x.shape[2:]
    top, left = (size - height) // 2, (size - width) // 2
    return functional.pad(x, (left, size - width - left, top, size - height - top))


def _symmetric(count: int, stream: Generator) -> Tensor:
    return 2 * torch.rand(count, generator=stream) - 1


def _among(numbers: range, count: int, stream: Generator) -> Tensor:
    return torch.randint(numbers.start, numbers.stop, (count,), generator=stream)


def _placed(examples: Examples, quadrant: Tensor, both: bool, room: Room) -> Examples:
    y = examples.y.repeat_interleave(quadrant.shape[1], 0)
    x = room.changed(examples.x, _in_quadrants, quadrant)
    return Examples(x, 4 * y + quadrant.reshape(-1) if both else y)


def _in_quadrants(x: Tensor, quadrant: Tensor) -> Tensor:
    """Copies of each image, each in its quadrant (`[example, copy]`) of a map of zeros."""
    copies = x.repeat_interleave(quadrant.shape[1], 0)
    count, channels, height, width = copies.shape
    where = quadrant.reshape(-1)
    cells = x.new_zeros(count, channels, 2, height, 2, width)
    cells[torch.arange(count), :, where // 2, :, where % 2] = copies
    return cells.reshape(count, channels, 2 * height, 2 * width)
