"""Data sources and transforms: their arguments, and what they do to the shape of an example."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, cast

import attrs

from symdsl.catalog.shapes import Shape
from symdsl.catalog.signatures import Choice, Parameter, Quoted, Real, Signature, Switch, Value, Whole

_LARGEST_SIDE = 4096
_LARGEST_COUNT = 10**9
_LEAST_STEP = 1e-3
_FEW_CHANNELS = 4

QUADRANTS = ("top left", "top right", "bottom left", "bottom right")
"""The quadrants as `label = both` numbers them."""

_TEN = tuple("0123456789")

Arguments = Mapping[str, Value]
Task = Literal["classification", "regression"]


class MisfitError(Exception):
    """Arguments do not fit the data they are applied to; the message says why."""


class BadDataError(Exception):
    """Files cannot be used; the message names one and says why, and `help` what to do, if that is known."""

    def __init__(self, message: str, help: str = "") -> None:
        """Keep both."""
        self.help = help
        super().__init__(message)


RELATIVE = "paths are relative to the working directory"

ELSEWHERE = f"{RELATIVE}; `--set data.path=...` says where the data are now"
"""The help for data that are not where the spec says."""


def located(path: str) -> Path:
    """Return the path of files that a spec names, relative to the working directory; `~` is the home directory.

    Raises:
        BadDataError: it begins with `~`, but there is no such home directory.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        whose = path.partition("/")[0]
        help = f"write `~/{path[1:]}` for a path in your own" if len(whose) > 1 else ""
        raise BadDataError(f"`{path}`: there is no home directory `{whose}`", help) from error


@attrs.frozen
class Doubt:
    """Something suspicious about data that can nevertheless be used.

    Attributes:
        code: of the diagnostic.
        message: what it is.
        help: what to do about it.
    """

    code: str
    message: str
    help: str


def channels_last(channels: int, height: int, width: int) -> bool:
    """Return whether a shape looks like (rows, columns, channels) rather than (channels, rows, columns)."""
    return channels > _FEW_CHANNELS >= width and height > _FEW_CHANNELS


CHANNELS_FIRST = "turn the images with `x.transpose(0, 3, 1, 2)`: channels come before rows and columns"


@attrs.frozen
class Outline:
    """The shapes and counts of a dataset, known before it is loaded.

    Attributes:
        channels: channels of an example.
        height: rows.
        width: columns.
        classes: classes, or target columns for regression.
        train: training examples; 0 where they are not known before, and so for `test`.
        test: test examples.
        task: what the targets are.
        names: of the classes, in order, where they have any.
        uneven: which file differs from another in size, where one does: only `resize` takes such images.
        standardized: what a `standardize` step has been applied to.
        sided: the transform whose labels or targets a mirrored image would not keep, if there is one.
        targets: the least standard deviation of a target, and the largest root mean square, where they are known; 1
            elsewhere.
        doubts: what is hardly meant.
    """

    channels: int
    height: int
    width: int
    classes: int
    train: int
    test: int
    task: Task = "classification"
    names: tuple[str, ...] = ()
    uneven: str = ""
    standardized: frozenset[str] = frozenset()
    sided: str = ""
    targets: tuple[float, float] = (1.0, 1.0)
    doubts: tuple[Doubt, ...] = ()

    def __str__(self) -> str:
        return f"{self.channels}x{self.height}x{self.width}"


@attrs.frozen
class Source:
    """A data source: its arguments, and how to determine its outline.

    Attributes:
        signature: its name and arguments.
        outline: from arguments to what is known; `None` where a file has to be looked into.
    """

    signature: Signature
    outline: Callable[[Arguments], Outline] | None


@attrs.frozen
class Transform:
    """A transform: its arguments, and its effect on the outline of a dataset.

    Attributes:
        signature: its name and arguments.
        apply: from outline and arguments to the outline afterwards; raises `MisfitError`.
        on_batches: whether it acts on training batches as they are drawn, and not on the data once.
    """

    signature: Signature
    apply: Callable[[Outline, Arguments], Outline]
    on_batches: bool = False


def _whole(arguments: Arguments, name: str) -> int:
    value = arguments[name]
    assert isinstance(value, int), f"`{name}` (={value!r}) was checked to be a whole number"
    return value


def _digits(arguments: Arguments) -> Outline:
    size = _whole(arguments, "size")
    return Outline(1, size, size, classes=10, train=1437, test=360, names=_TEN)


def _synthetic(arguments: Arguments) -> Outline:
    size = _whole(arguments, "size")
    channels, classes, train, test = (_whole(arguments, name) for name in ("channels", "classes", "train", "test"))
    return Outline(channels, size, size, classes, train, test)


def _standardize(outline: Outline, arguments: Arguments) -> Outline:
    what = str(arguments.get("what", "images"))
    if what == "targets" and outline.task != "regression":
        raise MisfitError("`standardize(targets)` needs real numbers for targets, but these data have classes")
    if what in outline.standardized:
        raise MisfitError(f"the {what} are standardized already: keep the last of the two")
    return attrs.evolve(outline, standardized=outline.standardized | {what})


_BY_ANGLE = "rotate(label = angle)"


def _rotate(outline: Outline, arguments: Arguments) -> Outline:
    degrees, step = (cast(float, arguments[name]) for name in ("degrees", "step"))
    if 0 < step < _LEAST_STEP:
        raise MisfitError(f"`step` (={step:g}) must be 0, for any angle, or at least {_LEAST_STEP:g} degrees")
    if degrees and min(outline.height, outline.width) == 1:
        size = f"{outline.height}x{outline.width}"
        raise MisfitError(f"a map of {size} cannot be turned: drop it, or turn before `unroll`")
    if arguments.get("label") != "angle":
        if step > degrees > 0:
            raise MisfitError(f"`step` (={step:g}) is above `degrees` (={degrees:g}): no image would be turned")
        return outline
    if degrees == 0 or step > degrees:
        few = f"`step` (={step:g}) is above `degrees` (={degrees:g})" if step > degrees else "`degrees` is 0"
        raise MisfitError(f"{few}: all angles are 0, and all targets equal")
    if "targets" in outline.standardized:
        raise MisfitError("the targets are standardized already, and the angle would replace them: move it in front")
    if outline.sided == _BY_ANGLE:
        raise MisfitError("the angle of an earlier `rotate` is the target already, and this one would replace it")
    return attrs.evolve(
        outline, task="regression", classes=1, names=(), sided=_BY_ANGLE, targets=(degrees / 3**0.5,) * 2
    )


def _given(arguments: Arguments) -> Outline:
    named = tuple(name for name in ("size", "height", "width") if arguments.get(name) is not None)
    if named not in (("size",), ("height", "width")):
        raise BadDataError("`given` takes either `size`, or `height` and `width`", "write `size` for square images")
    channels, classes, height, width = (
        _whole(arguments, name) for name in ("channels", "classes", named[0], named[-1])
    )
    regression = arguments["task"] == "regression"
    return Outline(channels, height, width, classes, 0, 0, "regression" if regression else "classification")


def _unchanged(outline: Outline, arguments: Arguments) -> Outline:
    return outline


def _square(outline: Outline, size: int) -> Outline:
    return attrs.evolve(outline, height=size, width=size)


def _resize(outline: Outline, arguments: Arguments) -> Outline:
    return attrs.evolve(_square(outline, _whole(arguments, "size")), uneven="")


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


def _unroll(outline: Outline, arguments: Arguments) -> Outline:
    return attrs.evolve(outline, height=1, width=outline.height * outline.width)


def _moved(name: str) -> Callable[[Outline, Arguments], Outline]:
    """A transform that moves images by up to `name` pixels, those of one row along it."""

    def apply(outline: Outline, arguments: Arguments) -> Outline:
        pixels = _whole(arguments, name)
        if pixels >= Shape(outline.channels, outline.height, outline.width).shortest_side:
            raise MisfitError(f"`{name}` (={pixels}) must be smaller than the image ({outline.height}x{outline.width})")
        return outline

    return apply


def _augment(outline: Outline, arguments: Arguments) -> Outline:
    if arguments["flip"] and outline.sided:
        raise MisfitError(f"`flip` would mirror the images, but not what `{outline.sided}` says of them")
    return _moved("shift")(outline, arguments)


def _quadrants(outline: Outline, arguments: Arguments) -> Outline:
    both = arguments["label"] == "both"
    if both and outline.task == "regression":
        raise MisfitError("`label = both` numbers classes, but the targets of this data are real numbers")
    copies = _whole(arguments, "copies")
    larger = attrs.evolve(
        outline,
        height=2 * outline.height,
        width=2 * outline.width,
        train=copies * outline.train,
        test=copies * outline.test,
    )
    if not both:
        return larger
    names = tuple(f"{name}, {quadrant}" for name in outline.names for quadrant in QUADRANTS)
    sided = "quadrants(label = both)"
    return attrs.evolve(larger, classes=len(QUADRANTS) * outline.classes, names=names, sided=sided)


def _subset(outline: Outline, arguments: Arguments) -> Outline:
    n = _whole(arguments, "n")
    if outline.train and n > outline.train:
        raise MisfitError(f"`n` (={n}) must not be larger than the number of training examples (={outline.train})")
    test = _whole(arguments, "test") if "test" in arguments else outline.test
    if outline.test and test > outline.test:
        raise MisfitError(f"`test` (={test}) must not be larger than the number of test examples (={outline.test})")
    return attrs.evolve(outline, train=n, test=test)


_SIZE = Parameter("size", Whole(1, _LARGEST_SIDE), about="side of the square image, in pixels")

_DIGITS = Signature(
    "digits",
    (attrs.evolve(_SIZE, default=8),),
    "1,797 handwritten digits of 8x8 that ship with scikit-learn; 360 of them are test data",
)
_FILES = (
    Parameter("root", Quoted(), "~/data", "folder of the files"),
    Parameter("download", Switch(), False, "whether to fetch what is missing"),
)
_GARMENTS = (
    *("t-shirt", "trousers", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
_THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_IMAGES = Signature(
    "images",
    (
        Parameter("path", Quoted(), about="a folder that holds `train/CLASS/` and `test/CLASS/`"),
        Parameter(
            "colour",
            Choice(("auto", "grey", "rgb")),
            "auto",
            "`grey` and `rgb` convert; `auto` takes images as they are, which must be all alike",
        ),
    ),
    "your own images: PNG and JPEG files in one folder for each class, under `train` and `test`",
)
_ARRAYS = Signature(
    "arrays",
    (
        Parameter("path", Quoted(), about="an `.npz` file, relative to the working folder"),
        Parameter("task", Choice(("auto", "classification", "regression")), "auto", "what the targets are"),
    ),
    "your own data: `x_train`, `y_train`, `x_test` and `y_test` of an `.npz` file; x is `[n, channel, row, column]` or "
    "`[n, row, column]`, y classes from 0 on, or real targets",
)
_GIVEN = Signature(
    "given",
    (
        Parameter("channels", Whole(1, _LARGEST_SIDE), about="channels of an image"),
        attrs.evolve(_SIZE, default=None),
        Parameter("classes", Whole(1, 10**6), about="number of classes, or of targets"),
        Parameter("height", Whole(1, _LARGEST_SIDE), None, "rows, where images are not square"),
        Parameter("width", Whole(1, _LARGEST_SIDE), None, "columns, where images are not square"),
        Parameter("task", Choice(("classification", "regression")), "classification", "what the targets are"),
    ),
    "your own data, handed over in Python",
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


def _published(name: str, about: str, outline: Outline) -> Source:
    """A published dataset that torchvision reads; its outline is known without its files."""
    return Source(Signature(name, _FILES, about), lambda arguments: outline)


SOURCES: dict[str, Source] = {
    source.signature.name: source
    for source in (
        Source(_DIGITS, _digits),
        _published(
            "mnist",
            "70,000 handwritten digits of 28x28; 10,000 of them are test data",
            Outline(1, 28, 28, classes=10, train=60_000, test=10_000, names=_TEN),
        ),
        _published(
            "fashion_mnist",
            "70,000 pictures of clothes, grey and 28x28; 10,000 of them are test data",
            Outline(1, 28, 28, classes=10, train=60_000, test=10_000, names=_GARMENTS),
        ),
        _published(
            "cifar10",
            "60,000 colour photographs of ten things, 32x32; 10,000 of them are test data",
            Outline(3, 32, 32, classes=10, train=50_000, test=10_000, names=_THINGS),
        ),
        _published(
            "cifar100",
            "60,000 colour photographs of a hundred things, 32x32; 10,000 of them are test data",
            Outline(3, 32, 32, classes=100, train=50_000, test=10_000),
        ),
        Source(_IMAGES, None),
        Source(_ARRAYS, None),
        Source(_GIVEN, _given),
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
_STEP = Parameter("step", Real(0, 180), 0.0, "angles are whole multiples of it; 0 for any angle")
_ANGLE = Parameter(
    "label",
    Choice(("kept", "angle")),
    "kept",
    "`angle` makes it the target of a regression, in degrees and counter-clockwise; `kept` leaves labels as they are",
)
_STANDARDIZE = Signature(
    "standardize",
    (
        Parameter(
            "what",
            Choice(("images", "targets")),
            "images",
            "`images` by channel, or the `targets` of a regression; figures are given in the targets' own units",
        ),
    ),
    "mean 0 and variance 1 over the training examples; test data and new inputs use the same statistics",
)
_PIXELS = Parameter("pixels", Whole(0, _LARGEST_SIDE), about="farthest in either direction")
_LOGARITHM = Parameter("logarithm", Real(0, 2), about="largest logarithm of the factor, or of one over it")
_SHUFFLE = Signature(
    "shuffle",
    (Parameter("alike", Switch(), True, "whether all images are shuffled alike, or each differently"),),
    "moves every pixel to another place, so that neighbours are lost",
)
_SUBSET = Signature(
    "subset",
    (
        Parameter("n", Whole(1, _LARGEST_COUNT), about="training examples to keep"),
        Parameter("test", Whole(1, _LARGEST_COUNT), None, "test examples to keep, the same for every seed; or all"),
    ),
    "keeps some of the training examples, drawn at random, and all or some of the test examples",
)
_AUGMENT = Signature(
    "augment",
    (
        Parameter("flip", Switch(), False, "mirror an image, with probability one half"),
        Parameter("shift", Whole(0, _LARGEST_SIDE), 4, "farthest in either direction, in pixels; zeros move in"),
    ),
    "flips and shifts training images, anew in every epoch; the last transform. The evidence and the test data see "
    "none of it",
)

TRANSFORMS: dict[str, Transform] = {
    transform.signature.name: transform
    for transform in (
        Transform(_STANDARDIZE, _standardize),
        Transform(
            Signature(
                "resize",
                (_SIZE,),
                "resamples images to a square, bilinearly; directly after `images` they may be of mixed sizes",
            ),
            _resize,
        ),
        Transform(Signature("pad", (_SIZE,), "surrounds images with zeros"), _pad),
        Transform(Signature("crop", (_SIZE,), "keeps the middle of images"), _crop),
        Transform(
            Signature(
                "rotate", (_DEGREES, _STEP, _ANGLE), "turns each image once, by an angle of its own; zeros move in"
            ),
            _rotate,
        ),
        Transform(
            Signature("translate", (_PIXELS,), "moves each image once, by a distance of its own; zeros move in"),
            _moved("pixels"),
        ),
        Transform(
            Signature(
                "scale",
                (_LOGARITHM,),
                "scales each image once, about its centre, by a factor of its own; zeros move in",
            ),
            _unchanged,
        ),
        Transform(_SHUFFLE, _unchanged),
        Transform(Signature("unroll", about="reads the rows of images one after the other, as a line"), _unroll),
        Transform(_QUADRANTS, _quadrants),
        Transform(_SUBSET, _subset),
        Transform(_AUGMENT, _augment, on_batches=True),
    )
}
"""Every transform by name."""
