"""New inputs for a trained network: files read, and taken through the transforms of its data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import torch
from numpy.typing import NDArray
from torch import Tensor

from symdsl.analysis.dataset import source_outline, written
from symdsl.analysis.facts import Data, Step
from symdsl.analysis.images import SUFFIXES, header_of, images_below, opened
from symdsl.catalog.data import BadDataError
from symdsl.data.arrays import read_images, read_outcomes
from symdsl.data.checks import check_outcomes
from symdsl.data.images import pixels
from symdsl.data.loading import streamed
from symdsl.data.preprocessing import Preprocessing, shortlist
from symdsl.data.records import Dataset, Examples, Streams, as_tensor
from symdsl.data.transforms import TRANSFORMS, order_of
from symdsl.diagnostics import RunError

DRAWN = frozenset({"rotate", "translate", "scale", "quadrants", "subset", "augment"})
"""Transforms that draw at random for every image: a new input is taken as it is, as by a `shuffle` not `alike`."""

_COLOURS = {1: "grey", 3: "rgb"}
"""The colours of an image by its number of channels, in the words of the language."""

_SIZING = ("resize", "pad", "crop")
"""Transforms that make square images of their `size`."""

_ARRAYS, _OUTCOMES = ("x", "x_test"), ("y", "y_test")


@attrs.frozen
class Preparation:
    """The transforms that inputs go through before a network reads them.

    Attributes:
        data: of the network.
        found: what its training data were standardized with.
        seed: of the permutation of a `shuffle` that is the same for all images.
    """

    data: Data
    found: Preprocessing
    seed: int

    @property
    def left_out(self) -> tuple[Step, ...]:
        """The transforms of the training data that a new input does not go through."""
        return tuple(step for _, step, _, taken in self._of_images() if not taken)

    def remarks(self, x: Tensor) -> Iterator[str]:
        """Yield what to know of prepared inputs: steps that they skip, and values far from the training images'."""
        skipped = [step for step in self.left_out if step.name not in ("subset", "augment")]
        if skipped:
            steps = ", ".join(written(step) for step in skipped)
            yield f"note: the data of the run went through {steps}; these inputs do not"
        yield from self.doubts(x)

    def doubts(self, x: Tensor) -> Iterator[str]:
        """Yield what to know of prepared images: values far from the training images'."""
        doubt = self.found.doubt(x)
        if doubt:
            yield f"note: {doubt}, after the transforms: are the units the same?"

    def recipe(self) -> list[tuple[str, dict[str, Any]]]:
        """Return name and arguments of all transforms of a new input; `shuffle` has the `order` it takes positions in.

        Raises:
            RunError: only the data say how many positions a `shuffle` moves, and they cannot be read.
        """
        found = []
        for place, step, streams, taken in self._of_images():
            if taken:
                order = {"order": order_of(self._positions(place), streams).tolist()} if step.name == "shuffle" else {}
                found.append((step.name, dict(step.arguments) | order))
        return found

    @cached_property
    def _moved(self) -> dict[int, int]:
        """How many positions each `shuffle` moves that stands before a change of size, by its place.

        What another one moves shows in the size that it leaves.
        """
        return {
            place: self._positions(place)
            for place, step, _, taken in self._of_images()
            if taken and step.name == "shuffle" and self._is_sized_after(place)
        }

    def _is_sized_after(self, place: int) -> bool:
        return any(step.name in _SIZING for step in self.data.transforms[place:])

    def _positions(self, place: int) -> int:
        """How many positions the images have that the transform at a place reads, where it keeps their number."""
        before = self.data.transforms[:place]
        sized = [index for index, step in enumerate(before) if step.name in _SIZING]
        if not sized and not self._is_sized_after(place):
            return self.data.height * self.data.width
        since, (rows, columns) = (sized[-1], [before[sized[-1]].whole("size")] * 2) if sized else (0, self._sides())
        return rows * columns << 2 * sum(step.name == "quadrants" for step in before[since:])

    def _sides(self) -> tuple[int, int]:
        """Rows and columns of the images before all transforms, which runs of earlier versions did not keep."""
        if self.found.sides is not None:
            return self.found.sides
        try:
            source = source_outline(self.data.source)
        except BadDataError as error:
            raise RunError(f"`shuffle` moves as many pixels as the data have, which cannot be read: {error}") from error
        return source.height, source.width

    def _of_images(self) -> Iterator[tuple[int, Step, Streams, bool]]:
        """Every transform of images: its place, its streams, and whether a new input goes through it."""
        names = [step.name for step in self.data.transforms]
        first = len(names) - names[::-1].index("quadrants") if "quadrants" in names else 0
        for place, (step, streams) in enumerate(streamed(self.data.transforms, self.seed)):
            arguments = dict(step.arguments)
            if arguments.get("what") != "targets":
                drawn = step.name in DRAWN or not arguments.get("alike", True)
                yield place, step, streams, place >= first and not drawn

    def __call__(self, x: Tensor | NDArray[Any]) -> Tensor:
        """Return images as the network reads them.

        Args:
            x: `[n, channel, row, column]`, or `[n, row, column]`, as the source of the data gives them: floats, which
                for 8 bits are in [0, 1], or uint8.

        Raises:
            RunError: they are of another shape or type than that, or come out in another than the network reads.
        """
        x = as_inputs(x)
        x = x.unsqueeze(1) if x.ndim == 3 else x
        if x.dtype != torch.uint8 and not x.is_floating_point():
            raise RunError(f"it holds {str(x.dtype).removeprefix('torch.')}, expected floats or uint8")
        wanted = self.data.channels, self.data.height, self.data.width
        came, read = ("x".join(map(str, shape)) for shape in (x.shape[1:], wanted))
        if x.ndim != 4 or x.shape[1] != self.data.channels:
            raise RunError(f"it is {came or 'one number'}, but the network reads {read}")
        if not len(x):
            return torch.zeros(0, *wanted)
        x = x.float() / 255 if x.dtype == torch.uint8 else x.float()
        some, given = (Examples(part, torch.zeros(len(part))) for part in (x[:1], x))
        dataset = Dataset(some, given, "regression", preprocessing=self.found)
        try:
            for place, step, streams, taken in self._of_images():
                own = dataset.test.x[0, 0].numel()
                if own != (moved := self._moved.get(place, own)):
                    raise RunError(
                        f"it is {came}, so that `shuffle` finds {own:,} pixels where the data have {moved:,}"
                    )
                dataset = TRANSFORMS[step.name](dataset, step, streams) if taken else dataset
        except (ValueError, RuntimeError) as error:
            raise RunError(str(error)) from error
        if tuple(dataset.test.x.shape[1:]) != wanted:
            placed = any(step.name == "quadrants" for step in self.data.transforms)
            where = " and put it into one, as `quadrants` does with images of a quadrant's size" if placed else ""
            raise RunError(f"it is {came}, but the network reads {read}: resize it{where}")
        return dataset.test.x


def as_inputs(x: Any) -> Tensor:
    """Return a tensor of inputs in any form.

    Raises:
        RunError: they are no numbers, or some of them are masked.
    """
    try:
        return as_tensor(x)
    except TypeError as error:
        raise RunError(str(error)) from error


def read_inputs(paths: Iterable[Path], prepare: Preparation) -> tuple[list[str], Tensor]:
    """Read inputs from files; return their names and the prepared tensor `[n, channel, row, column]`.

    Args:
        paths: PNG and JPEG files, folders of them, looked through to the bottom, and `.npz` files with an array `x` or
            `x_test`, or with a single one.
        prepare: brings them into the network's form.

    Raises:
        RunError: a file cannot be used; the line names it.
    """
    names: list[str] = []
    parts: list[Tensor] = []
    for path, x in _prepared(paths, prepare):
        name = os.fsencode(path).decode(errors="replace")
        names += [name] if path.suffix.lower() != ".npz" else [f"{name}[{index}]" for index in range(len(x))]
        parts.append(x)
    return names, torch.cat(parts)


def read_examples(paths: Iterable[Path], prepare: Preparation) -> Examples:
    """Read inputs with their labels or targets, as a network learns them.

    Args:
        paths: see `read_inputs`; an image lies in a folder with the name of its class, or in folders of that, an `.npz`
            file has an array `y` or `y_test`: numbers of classes, or targets in the units of the data.
        prepare: brings them into the network's form.

    Raises:
        RunError: a file cannot be used, or it is not known of which class it is; the line names it.
    """
    parts = [
        Examples(x, _outcomes(path, root, len(x), prepare)) for root in paths for path, x in _prepared([root], prepare)
    ]
    found = Examples(*(torch.cat([getattr(one, name) for one in parts]) for name in ("x", "y")))
    if not len(found):
        raise RunError("there are no examples to measure the network on")
    return found


def _prepared(paths: Iterable[Path], prepare: Preparation) -> Iterator[tuple[Path, Tensor]]:
    """Every file that is meant, and what it holds, in the network's form."""
    for path in input_files(paths):
        try:
            found = read_images(path, _ARRAYS) if path.suffix.lower() == ".npz" else _image(path, prepare.data.channels)
            x = prepare(found)
            if not bool(x.isfinite().all()):
                raise RunError("it holds numbers that are too large for the transforms of the data")
        except (RunError, BadDataError) as error:
            raise RunError(f"{error}" if str(path) in str(error) else f"{path}: {error}") from error
        yield path, x


def _outcomes(path: Path, root: Path, count: int, prepare: Preparation) -> Tensor:
    """The labels, or targets, of so many inputs of a file, which was found from a path on."""
    data, found = prepare.data, prepare.found
    if path.suffix.lower() != ".npz":
        if data.task == "regression":
            raise RunError(f"{path}: an image has no targets: give an .npz file with `x` and `y`")
        names = found.names(data.classes)
        folder = root if root.is_dir() else root.parent
        below = path.relative_to(folder).parts[:-1]
        called = next((one for one in below if one in names), folder.absolute().name)
        if called not in names:
            raise RunError(
                f"{path}: lies in no folder of a class that the run has learned: these are {shortlist(names)}"
            )
        return torch.tensor([names.index(called)])
    y = read_outcomes(path, _OUTCOMES, data.task)
    if len(y) != count:
        raise RunError(f"{path}: holds {count} images, but {len(y)} labels or targets")
    check_outcomes(y, data.task, f"{path}: `y", data.classes)
    if data.task == "classification":
        return y
    return found.targets.standardized(y) if found.targets is not None else y.float()


def input_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that are meant by files and folders.

    Raises:
        RunError: a folder holds none, or cannot be read.
    """
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        try:
            found = sorted(one for one in map(Path, images_below(path)) if one.is_file())
        except OSError as error:
            raise RunError(f"{error.filename}: cannot be read: {error.strerror}") from error
        if not found:
            raise RunError(f"{path}: holds no PNG or JPEG file")
        yield from found


def _image(path: Path, channels: int) -> Tensor:
    if path.suffix.lower() not in SUFFIXES:
        if not path.exists():
            raise RunError("cannot be read: No such file or directory")
        raise RunError("an input is a PNG or JPEG file, a folder of them, or an .npz file")
    if channels not in _COLOURS:
        raise RunError(f"the network reads {channels} channels, which an image does not have: give an .npz file")
    with opened(str(path)) as image:
        header_of(image, str(path), _COLOURS[channels])
        return pixels(image, channels)[None]
