"""The contents of a folder of images, from the names of its files and the headers of some of them."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from symdsl.catalog.data import ELSEWHERE, BadDataError, Doubt, Outline, located
from symdsl.language.nearby import nearest

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_HEADERS = 400
"""How many headers are read to check a spec, which stays fast; loading the data reads all."""

_FORMATS = ("PNG", "JPEG")

SUFFIXES = (".png", ".jpg", ".jpeg")
_OTHER_SUFFIXES = (".avif", ".bmp", ".gif", ".heic", ".jp2", ".pgm", ".ppm", ".tif", ".tiff", ".webp")
"""The names of image files that are not read."""

_PLAIN: Mapping[str, int] = {"1": 1, "L": 1, "P": 3, "RGB": 3}
_CONVERTIBLE = (*_PLAIN, "LA", "PA", "RGBA", "CMYK", "YCbCr")
_CHANNELS: Mapping[str, Mapping[str, int]] = {
    "auto": _PLAIN,
    "grey": dict.fromkeys(_CONVERTIBLE, 1),
    "rgb": dict.fromkeys(_CONVERTIBLE, 3),
}
_LAYOUT = "images lie in `train/CLASS/` and `test/CLASS/`"
_COLOURS = {1: "grey", 3: "RGB"}
_ORIENTATION, _TURNED = 0x0112, (5, 6, 7, 8)
"""The tag of a camera's orientation in EXIF, and its values where rows are stored as columns."""


@attrs.frozen
class ImageFolder:
    """The image files of a folder by class, both in alphabetical order.

    Attributes:
        train: training images; a class is numbered by its place here.
        test: test images of some or all of these classes.
    """

    train: Mapping[str, Sequence[str]]
    test: Mapping[str, Sequence[str]]

    def labelled(self, files: Mapping[str, Sequence[str]]) -> list[tuple[str, int]]:
        """Return every path of `files`, which is `train` or `test`, with the number of its class."""
        return [(path, number) for number, name in enumerate(self.train) for path in files.get(name, ())]


@attrs.frozen
class Header:
    """The size of an image file, and its channels after the conversion that the spec asks for."""

    path: str
    channels: int
    height: int
    width: int


def outline_of_images(path: str, colour: str) -> Outline:
    """Return the outline of the dataset in a folder.

    Args:
        path: the folder, relative to the working directory; `~` is the home directory.
        colour: `auto`, `grey` or `rgb`.

    Raises:
        BadDataError: a folder is missing or empty, or one of the first `MOST_HEADERS` images, taken from the classes
            in turn, cannot be used.
    """
    root = located(path)
    folder = list_images(root)
    in_turn = chain.from_iterable(zip_longest(*folder.train.values(), *folder.test.values()))
    paths = islice((path for path in in_turn if path is not None), MOST_HEADERS)
    headers = [read_header(path, colour) for path in paths]
    first = headers[0]
    for other in headers:
        check_colour(first, other)
    uneven = next((size_difference(first, other) for other in headers if not same_size(first, other)), "")
    return Outline(
        first.channels,
        first.height,
        first.width,
        classes=len(folder.train),
        train=sum(map(len, folder.train.values())),
        test=sum(map(len, folder.test.values())),
        names=tuple(folder.train),
        uneven=uneven,
        doubts=_doubts_of_files(root, folder),
    )


def _doubts_of_files(path: Path, folder: ImageFolder) -> tuple[Doubt, ...]:
    """Return a doubt if there are images that are not read: of another format, or beside the folders of classes."""
    read = set(chain(*folder.train.values(), *folder.test.values()))
    below = chain.from_iterable(images_below(path / part, SUFFIXES + _OTHER_SUFFIXES) for part in ("train", "test"))
    left_out = [one for one in below if one not in read]
    if not left_out:
        return ()
    first, *others = left_out
    message = f"{len(left_out):,} images are left out: `{first}`, ..." if others else f"an image is left out: `{first}`"
    return (Doubt("W115", message, f"save images as PNG or JPEG; {_LAYOUT}"),)


def list_images(path: Path) -> ImageFolder:
    """Return the image files under `path/train/CLASS/` and `path/test/CLASS/`, in the order of their names.

    Raises:
        BadDataError: a folder is missing or has no images, or a class of the test images is none of the training
            images.
    """
    if not path.is_dir():
        near = nearest(path, "")
        help = f"did you mean `{near.as_posix()}`?" if near else ELSEWHERE
        raise BadDataError(f"there is no folder `{path}`", help)
    train, test = (_classes(path / part) for part in ("train", "test"))
    strange = next((name for name in test if name not in train), None)
    if strange is not None:
        raise BadDataError(f"`{path / 'test' / strange}` is a class that `{path / 'train'}` does not have")
    if len(train) < 2:
        raise BadDataError(f"`{path / 'train'}` holds a single class, `{next(iter(train))}`")
    return ImageFolder(train, test)


def read_header(path: str, colour: str) -> Header:
    """Return the size and channels of an image file.

    Raises:
        BadDataError: it is no PNG or JPEG file, or its colours are not what `colour` takes.
    """
    with opened(path) as image:
        return header_of(image, path, colour)


def header_of(image: Image, path: str, colour: str) -> Header:
    """Return the header of an opened image; see `read_header`."""
    (width, height), mode = image.size, image.mode
    if image.format != "PNG" and image.getexif().get(_ORIENTATION) in _TURNED:
        width, height = height, width
    if mode not in _CHANNELS[colour]:
        way_out = "; `colour = rgb` or `colour = grey` converts it" if mode in _CONVERTIBLE else ""
        help = "" if way_out else "save it with 8 bits, or all images as floats in an .npz file, for `arrays`"
        raise BadDataError(f"`{path}` is of mode {mode}, neither grey nor RGB with 8 bits{way_out}", help)
    return Header(path, _CHANNELS[colour][mode], height, width)


@contextlib.contextmanager
def opened(path: str) -> Iterator[Image]:
    """Open an image file; a damaged file, or one that is no image, raises `BadDataError`."""
    from PIL import Image

    if os.path.exists(path) and not os.path.isfile(path):
        raise BadDataError(f"cannot read the image `{path}`: it is a folder or a device, not a file")
    try:
        with Image.open(path, formats=_FORMATS) as image:
            yield image
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, Image.DecompressionBombError) as error:
        reason = getattr(error, "strerror", None) or "it is damaged, or neither PNG nor JPEG"
        raise BadDataError(f"cannot read the image `{path}`: {reason}") from error


def same_size(first: Header, other: Header) -> bool:
    """Return whether two images have equally many rows and columns."""
    return (first.height, first.width) == (other.height, other.width)


def size_difference(first: Header, other: Header) -> str:
    """Describe how two images differ in size."""
    return f"`{other.path}` is {_size(other)}, but `{first.path}` {_size(first)}"


def check_colour(first: Header, other: Header) -> None:
    """Raise an error if two images differ in their channels.

    Raises:
        BadDataError: they differ.
    """
    if first.channels != other.channels:
        raise BadDataError(
            f"`{other.path}` is {_COLOURS[other.channels]}, but `{first.path}` {_COLOURS[first.channels]}: "
            "set `colour = rgb` or `colour = grey`"
        )


def _size(header: Header) -> str:
    return f"{header.height}x{header.width}"


def _classes(folder: Path) -> dict[str, list[str]]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))
        found = {name: _images(folder / name) for name in names}
    except OSError as error:
        raise BadDataError(f"cannot read the folder `{error.filename}` ({error.strerror}); {_LAYOUT}") from error
    if not found:
        raise BadDataError(f"`{folder}` has no folders of classes; {_LAYOUT}")
    if unreadable := next((name for name in names if not name.isprintable()), None):
        raise BadDataError(f"the name of the folder of a class, {unreadable!a}, has letters that cannot be printed")
    return found


def _images(folder: Path) -> list[str]:
    """The images of a class."""
    paths = images_below(folder)
    if not paths:
        raise BadDataError(f"`{folder}` holds no PNG or JPEG image; {_LAYOUT}")
    return paths


def images_below(folder: Path, suffixes: tuple[str, ...] = SUFFIXES) -> list[str]:
    """Return the paths of the images in a folder and in folders in it, links followed, sorted; no hidden ones.

    Args:
        folder: to look into.
        suffixes: how the names of images end, in small letters.

    Raises:
        OSError: a folder cannot be read.
    """

    def fail(error: OSError) -> None:
        raise error

    paths, known = list[str](), set[str]()
    for here, folders, files in os.walk(folder, onerror=fail, followlinks=True):
        place = os.path.realpath(here)
        if place in known:  # through another link
            folders.clear()
            continue
        known.add(place)
        folders[:] = sorted(name for name in folders if name[0] != ".")
        paths += [os.path.join(here, name) for name in files if name.lower().endswith(suffixes) and name[0] != "."]
    return sorted(paths)
