"""A sheet of pictures: some examples of each class, as a network sees them."""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import torch
from torch import Tensor

from symdsl.analysis.facts import Data
from symdsl.data.augment import Augmentation
from symdsl.data.records import Dataset, Examples, seeded

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_ROWS = 40
_REGRESSION_ROWS = 8
_LEAST_SIDE, _MOST_SIDE = 40, 112  # of a picture, in pixels of the sheet
_TEXT, _GAP, _MARGIN, _PART_GAP = 13, 4, 12, 24
_NO_LETTER = "\U0010fffd"
_HEAD = _MARGIN + 2 * _TEXT
_INK, _PAPER, _QUIET = "#1c1c1c", "#ffffff", "#6b6b6b"


@attrs.frozen(eq=False)
class _Row:
    """Examples with something in common.

    Attributes:
        title: what it is.
        train: numbers of training examples.
        test: numbers of test examples.
    """

    title: str
    train: Tensor
    test: Tensor


def sheet(dataset: Dataset, data: Data, names: Sequence[str], columns: int, seed: int) -> bytes:
    """Draw random examples of each class, or of each range of the first regression target.

    Training examples are shown as the first epoch augments them, test examples as they are. All pictures share one
    scale from black to white.

    Args:
        dataset: after all transforms.
        data: what the spec says about its data.
        names: of the classes; may be empty.
        columns: training examples in a row; test examples are half as many.
        seed: of the search, and of the choice of examples.

    Returns:
        A PNG file.
    """
    found = _rows(dataset, names)
    rows = _chosen(found, columns, seed)
    augmentation = Augmentation.of(data)
    change = augmentation.epoch(len(dataset.train), seeded(seed, "augment", 0), "cpu")
    train = [change(dataset.train[row.train], row.train).x for row in rows]
    test = [dataset.test[row.test].x for row in rows]
    title = "training examples" + ("" if augmentation == Augmentation() else ", augmented")
    return _draw([row.title for row in rows], (_Part(title, train), _Part("test examples", test)), _notes(found, data))


def _rows(dataset: Dataset, names: Sequence[str]) -> list[_Row]:
    train, test, titles = _GROUPS[dataset.task](dataset.train, dataset.test, names)
    by_part = (
        numbers.argsort(stable=True).split(numbers.bincount(minlength=len(titles)).tolist())
        for numbers in (train, test)
    )
    return [_Row(title, *examples) for title, *examples in zip(titles, *by_part, strict=True)]


def _classes(train: Examples, test: Examples, names: Sequence[str]) -> tuple[Tensor, Tensor, list[str]]:
    count = 1 + max(int(train.y.max()), int(test.y.max()))
    plain = (_without_accents(name) for name in names)
    known = {label: name for label, name in enumerate(plain) if _is_drawable(name)}
    return train.y, test.y, [known.get(label, f"class {label}") for label in range(count)]


def _without_accents(text: str) -> str:
    """The text without what the font's letters do not have: accents, dots and rings above or below them."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


def _is_drawable(text: str) -> bool:
    """Whether the font has all letters of a text, and not a box in place of one."""
    from PIL import ImageFont

    font = ImageFont.load_default(_TEXT)
    box = bytes(font.getmask(_NO_LETTER))
    return all(bytes(font.getmask(letter)) != box for letter in text)


def _stretches(train: Examples, test: Examples, names: Sequence[str]) -> tuple[Tensor, Tensor, list[str]]:
    """The training targets in equal parts by size; test targets by the same bounds."""
    values = train.y[:, 0].double().sort().values
    parts = values.tensor_split(min(_REGRESSION_ROWS, len(values)))
    bounds = torch.stack([part[0] for part in parts[1:]]) if len(parts) > 1 else values[:0]
    first, second = (torch.bucketize(part.y[:, 0].double().contiguous(), bounds, right=True) for part in (train, test))
    titles = [f"{float(part[0]):.3g} to {float(part[-1]):.3g}" for part in parts]
    return first, second, titles


_GROUPS = {"classification": _classes, "regression": _stretches}


def _chosen(rows: Sequence[_Row], columns: int, seed: int) -> list[_Row]:
    """Rows and examples that fit on the sheet: rows evenly over all, examples at random."""
    count = min(len(rows), MOST_ROWS)
    shown = [rows[number * len(rows) // count] for number in range(count)]
    stream = seeded(seed, "sheet")
    return [
        _Row(row.title, _some(row.train, columns, stream), _some(row.test, -(-columns // 2), stream)) for row in shown
    ]


def _some(numbers: Tensor, count: int, stream: torch.Generator) -> Tensor:
    return numbers[torch.randperm(len(numbers), generator=stream)[:count]]


def _notes(rows: Sequence[_Row], data: Data) -> str:
    """Return what the sheet leaves out, in words."""
    some = f"; {MOST_ROWS} of {len(rows)} classes are shown" if len(rows) > MOST_ROWS else ""
    return some + ("" if data.channels in (1, 3) else f"; the first of {data.channels} channels is shown")


@attrs.frozen(eq=False)
class _Part:
    """One half of the sheet: for every row its images `[example, channel, row, column]`."""

    title: str
    rows: list[Tensor]

    @property
    def columns(self) -> int:
        return max(len(images) for images in self.rows)


@attrs.frozen
class _Scale:
    """A linear map from the numbers of an image to the colours of its picture."""

    low: float
    high: float
    side: int

    @classmethod
    def of(cls, images: Tensor) -> _Scale:
        """The scale that fits images of any number."""
        longest = max(images.shape[2:])
        larger = max(1, -(-_LEAST_SIDE // longest))
        return cls(float(images.min()), float(images.max()), min(larger * longest, _MOST_SIDE))

    def picture(self, image: Tensor) -> Image:
        """A picture whose longer side is `side`; of other channels than three, the first in grey."""
        from PIL import Image

        shown = image if len(image) == 3 else image[:1].expand(3, -1, -1)
        span = self.high - self.low or 1.0
        values = ((shown - self.low) / span * 255).round().clamp(0, 255).to(torch.uint8)
        picture = Image.fromarray(values.permute(1, 2, 0).contiguous().numpy())
        return picture.resize(self.size(image), Image.Resampling.BOX)

    def size(self, image: Tensor) -> tuple[int, int]:
        """Width and height of an image's picture; a line is drawn as thick as its title."""
        height, width = image.shape[-2:]
        longest = max(height, width)
        return max(_TEXT, self.side * width // longest), max(_TEXT, self.side * height // longest)

    def __str__(self) -> str:
        return f"black is {self.low:.3g}, white is {self.high:.3g}"


def _draw(titles: Sequence[str], parts: Sequence[_Part], notes: str) -> bytes:
    """The sheet from left to right: titles of the rows, then the parts; below, the scale and the notes."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(_TEXT)
    shown = torch.cat([images for part in parts for images in part.rows])
    scale = _Scale.of(shown)
    width, height = (side + _GAP for side in scale.size(shown))
    widths = [max([font.getlength(title) for title in titles])]
    widths += [max(part.columns * width, font.getlength(part.title)) for part in parts]
    lefts = [_MARGIN + int(sum(widths[:number])) + number * _PART_GAP for number in range(len(widths) + 1)]
    foot = _HEAD + len(titles) * height
    note = f"{scale}{notes}"
    right = max(lefts[-1] - _PART_GAP, _MARGIN + math.ceil(font.getlength(note)))
    page = Image.new("RGB", (right + _MARGIN, foot + 2 * _TEXT + _MARGIN), _PAPER)
    pen = ImageDraw.Draw(page)
    for number, title in enumerate(titles):
        pen.text((_MARGIN, _HEAD + number * height + (height - _GAP - _TEXT) // 2), title, _INK, font)
    for part, left in zip(parts, lefts[1:], strict=False):
        pen.text((left, _MARGIN), part.title, _INK, font)
        for row, images in enumerate(part.rows):
            for column, image in enumerate(images):
                page.paste(scale.picture(image), (left + column * width, _HEAD + row * height))
    pen.text((_MARGIN, foot + _TEXT // 2), note, _QUIET, font)
    file = io.BytesIO()
    page.save(file, "PNG")
    return file.getvalue()
