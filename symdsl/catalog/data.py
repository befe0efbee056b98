"""Data sources and transforms: their arguments, and what they do to the shape of an example."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import attrs

from symdsl.catalog.signatures import Choice, Parameter, Quoted, Real, Signature, Switch, Value, Whole

_LARGEST_SIDE = 4096
_LARGEST_COUNT = 10**9

Arguments = Mapping[str, Value]


class MisfitError(Exception):
    """Arguments that do not fit the data they are applied to; the message says why."""


@attrs.frozen
class Outline:
    """What is known about a dataset before any of it is read.

    Attributes:
        channels: channels of an example.
        height: rows.
        width: columns.
        classes: classes, or target columns for regression.
        train: training examples.
        test: test examples.
        task: what the targets are.
    """

    channels: int
    height: int
    width: int
    classes: int
    train: int
    test: int
    task: Literal["classification", "regression"] = "classification"


@attrs.frozen
class Source:
    """A data source.

    Attributes:
        signature: its name and arguments.
        outline: from arguments to what is known; `None` where a file has to be looked into.
    """

    signature: Signature
    outline: Callable[[Arguments], Outline] | None


@attrs.frozen
class Transform:
    """A transform: its name and arguments, and what it does to the outline of a dataset.

    Attributes:
        signature: its name and arguments.
        apply: from outline and arguments to the outline afterwards; raises `MisfitError`.
    """

    signature: Signature
    apply: Callable[[Outline, Arguments], Outline]


def _whole(arguments: Arguments, name: str) -> int:
    value = arguments[name]
    assert isinstance(value, int), f"`{name}` (={value!r}) was checked to be a whole number"
    return value


def _digits(arguments: Arguments) -> Outline:
    size = _whole(arguments, "size")
    return Outline(1, size, size, classes=10, train=1437, test=360)


def _mnist(arguments: Arguments) -> Outline:
    return Outline(1, 28, 28, classes=10, train=60_000, test=10_000)


def _synthetic(arguments: Arguments) -> Outline:
    size = _whole(arguments, "size")
    channels, classes, train, test = (_whole(arguments, name) for name in ("channels", "classes", "train", "test"))
    return Outline(channels, size, size, classes, train, test)


def _unchanged(outline: Outline, arguments: Arguments) -> Outline:
    return outline


def _square(outline: Outline, size: int) -> Outline:
    return attrs.evolve(outline, height=size, width=size)


def _resize(outline: Outline, arguments: Arguments) -> Outline:
    return _square(outline, _whole(arguments, "size"))


def _pad(outline: Outline, arguments: Arguments) -> Outline:
    size = _whole(arguments, "size")
    if size < max(outline.height, outline.width):
        raise MisfitError(f"`size` (={size}) must not be smaller than the image ({outline.height}x{outline.width})")
    return _square(outline, size)


def _crop(outline: Outline, arguments: Arguments) -> Outline:
    size = _whole(arguments, "size")
    if size > min(outline.height, outline.width):
        raise MisfitError(f"`size` (={size}) must not be larger than the image ({outline.height}x{outline.width})")
    return _square(outline, size)


def _translate(outline: Outline, arguments: Arguments) -> Outline:
    pixels = _whole(arguments, "pixels")
    if pixels >= min(outline.height, outline.width):
        raise MisfitError(f"`pixels` (={pixels}) must be smaller than the image ({outline.height}x{outline.width})")
    return outline


def _quadrants(outline: Outline, arguments: Arguments) -> Outline:
    both = arguments["label"] == "both"
    if both and outline.task == "regression":
        raise MisfitError("`label = both` numbers classes, but the targets of this data are real numbers")
    classes = outline.classes * (4 if both else 1)
    return attrs.evolve(outline, height=2 * outline.height, width=2 * outline.width, classes=classes)


def _subset(outline: Outline, arguments: Arguments) -> Outline:
    n = _whole(arguments, "n")
    if n > outline.train:
        raise MisfitError(f"`n` (={n}) must not be larger than the number of training examples (={outline.train})")
    return attrs.evolve(outline, train=n)


_SIZE = Parameter("size", Whole(1, _LARGEST_SIDE), about="side of the square image, in pixels")

_DIGITS = Signature(
    "digits",
    (attrs.evolve(_SIZE, default=8),),
    "1,797 handwritten digits of 8x8 that ship with scikit-learn; 360 of them are test data",
)
_MNIST = Signature(
    "mnist",
    (
        Parameter("root", Quoted(), "~/data", "folder of the files"),
        Parameter("download", Switch(), False, "whether to fetch what is missing"),
    ),
    "70,000 handwritten digits of 28x28; 10,000 of them are test data",
)
_ARRAYS = Signature(
    "arrays",
    (
        Parameter("path", Quoted(), about="an `.npz` file, relative to the working folder"),
        Parameter("task", Choice(("auto", "classification", "regression")), "auto", "what the targets are"),
    ),
    "your own data: `x_train`, `y_train`, `x_test` and `y_test` of an `.npz` file",
)
_SYNTHETIC = Signature(
    "synthetic",
    (
        Parameter("channels", Whole(1, _LARGEST_SIDE), 1, "channels of an image"),
        attrs.evolve(_SIZE, default=8),
        Parameter("classes", Whole(2, 10**6), 4, "number of classes"),
        Parameter("train", Whole(1, _LARGEST_COUNT), 64, "training examples"),
        Parameter("test", Whole(1, _LARGEST_COUNT), 32, "test examples"),
    ),
    "images made up for tests",
)

SOURCES: dict[str, Source] = {
    source.signature.name: source
    for source in (
        Source(_DIGITS, _digits),
        Source(_MNIST, _mnist),
        Source(_ARRAYS, None),
        Source(_SYNTHETIC, _synthetic),
    )
}
"""Every data source by name."""

_QUADRANTS = Signature(
    "quadrants",
    (
        Parameter(
            "label", Choice(("digit", "both")), "digit", "`digit` keeps the label, `both` adds the quadrant to it"
        ),
        Parameter("copies", Whole(1, 1000), 4, "how often each image is placed"),
    ),
    "places each image in quadrants, drawn at random, of a map twice as large",
)
_DEGREES = Parameter("degrees", Real(0, 180), about="largest angle in either direction")
_PIXELS = Parameter("pixels", Whole(0, _LARGEST_SIDE), about="farthest in either direction")
_COUNT = Parameter("n", Whole(1, _LARGEST_COUNT), about="training examples to keep")

TRANSFORMS: dict[str, Transform] = {
    transform.signature.name: transform
    for transform in (
        Transform(Signature("standardize", about="mean 0 and variance 1 in each channel"), _unchanged),
        Transform(Signature("resize", (_SIZE,), "resamples images"), _resize),
        Transform(Signature("pad", (_SIZE,), "surrounds images with zeros"), _pad),
        Transform(Signature("crop", (_SIZE,), "keeps the middle of images"), _crop),
        Transform(Signature("rotate", (_DEGREES,), "turns each image by an angle of its own"), _unchanged),
        Transform(Signature("translate", (_PIXELS,), "moves each image by a distance of its own"), _translate),
        Transform(_QUADRANTS, _quadrants),
        Transform(Signature("subset", (_COUNT,), "keeps some of the training examples, drawn at random"), _subset),
    )
}
"""Every transform by name."""
