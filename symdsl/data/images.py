"""Reads a folder of image files."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from symdsl.analysis.facts import Data
from symdsl.analysis.images import (
    Header,
    check_colour,
    header_of,
    list_images,
    opened,
    read_header,
    same_size,
    size_difference,
)
from symdsl.catalog.data import BadDataError, located
from symdsl.data.memory import Room
from symdsl.data.records import Dataset, Examples, Streams, Watch
from symdsl.data.transforms import resized

_MODES = {1: "L", 3: "RGB"}


def images(data: Data, streams: Streams, room: Room, watch: Watch) -> Dataset:
    """Read the images of a folder, in [0, 1], ordered by class and name.

    Where `resize` is the first transform, each image is resized as it is read, so that sizes may be mixed and large
    images never are in memory together.

    Raises:
        BadDataError: a folder or an image cannot be used; the message names it.
    """
    colour = str(data.source.argument("colour"))
    first = data.transforms[0] if data.transforms else None
    size = first.whole("size") if first is not None and first.name == "resize" else None
    folder = list_images(located(str(data.source.argument("path"))))
    train, test = folder.labelled(folder.train), folder.labelled(folder.test)
    reader = _Reader(read_header(train[0][0], colour), colour, size, room, watch, len(train) + len(test))
    return Dataset(reader.examples(train, 0), reader.examples(test, len(train)), "classification")


@attrs.frozen
class _Reader:
    """Reads images that are all like the first, but for the size where they are resized.

    Attributes:
        first: the header of the first.
        colour: what the spec says about colours.
        size: what they are resized to, if they are.
        room: where they are kept.
        watch: told of every image read.
        total: how many there are.
    """

    first: Header
    colour: str
    size: int | None
    room: Room
    watch: Watch
    total: int

    def examples(self, files: Sequence[tuple[str, int]], before: int) -> Examples:
        """The examples in some files, of which so many were read before."""
        height, width = (self.first.height, self.first.width) if self.size is None else (self.size, self.size)
        x = self.room.empty(len(files), self.first.channels, height, width)
        for index, (path, _) in enumerate(files):
            x[index] = self._image(path)
            self.watch("reading images", before + index + 1, self.total)
        return Examples(x, torch.tensor([label for _, label in files]))

    def _image(self, path: str) -> Tensor:
        with opened(path) as image:
            header = header_of(image, path, self.colour)
            check_colour(self.first, header)
            if self.size is None and not same_size(self.first, header):
                difference = size_difference(self.first, header)
                raise BadDataError(f"{difference}: write `|> resize(size)` directly after `images`")
            x = pixels(image, self.first.channels)
        return x if self.size is None else resized(x[None], self.size)[0]


def pixels(image: Image.Image, channels: int) -> Tensor:
    """Return an image in grey or in colour, `[channel, row, column]`, float32 in [0, 1].

    A photograph is turned as its camera was held (the orientation in its EXIF data). What is transparent lies on white.
    """
    upright = ImageOps.exif_transpose(image) if image.format != "PNG" else image
    if upright.has_transparency_data:
        white = Image.new("RGBA", upright.size, "white")
        upright = Image.alpha_composite(white, upright.convert("RGBA"))
    values = np.array(upright.convert(_MODES[channels]))
    return torch.from_numpy(values).reshape(*values.shape[:2], -1).permute(2, 0, 1).float() / 255
