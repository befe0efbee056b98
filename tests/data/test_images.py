"""Folders of images, as a check sees them and as they are loaded."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from analysis.specs import found
from data.files import pixels, write_images
from symdsl.analysis import images as outlines
from symdsl.data import load
from symdsl.data.inputs import input_files
from symdsl.data.transforms import resized
from symdsl.diagnostics import RunError, SpecError
from symdsl.spec import Spec, parse

NETWORK = "network n {{ input image({}, {}, {})\nflatten\nlayer h: FC -> classes }}"


def grey(height: int = 4, width: int = 5) -> Image.Image:
    return Image.fromarray(pixels(height, width))


def coloured(height: int = 4, width: int = 5) -> Image.Image:
    return Image.fromarray(pixels(height, width, 3))


def folder(path: Path, image: Image.Image, **more: Image.Image) -> Path:
    """Two classes, an image each, and one of the first class to test on."""
    files = {"train/cat/1.png": image, "train/dog/1.PNG": image, "test/cat/1.png": image}
    return write_images(path, files | {name.replace("__", "/") + ".png": one for name, one in more.items()})


def text(path: Path, more: str = "", shape: tuple[int, int, int] = (1, 4, 5)) -> str:
    return f'data images("{path}"{more}\n{NETWORK.format(*shape)}'


def spec(path: Path, more: str = ")", shape: tuple[int, int, int] = (1, 4, 5)) -> Spec:
    return parse(text(path, more, shape))


def said(path: Path, more: str = ")") -> str:
    (only,) = found(text(path, more))
    assert only.code == "E601"
    return f"{only.message} {only.help}"


def test_what_a_check_finds_out(tmp_path: Path) -> None:
    data = spec(folder(tmp_path, grey())).facts.data
    assert (data.channels, data.height, data.width, data.classes) == (1, 4, 5, 2)
    outline = outlines.outline_of_images(str(tmp_path), "auto")
    assert (outline.names, outline.train, outline.test) == (("cat", "dog"), 2, 1)


@pytest.mark.parametrize("name", [b"caf\xe9", b"\x1b[31mred"])
def test_a_class_whose_name_cannot_be_printed_is_refused(name: bytes, tmp_path: Path) -> None:
    (folder(tmp_path, grey()) / "train" / "dog").rename(os.fsdecode(os.fsencode(tmp_path / "train") + b"/" + name))
    assert "has letters that cannot be printed" in said(tmp_path)


def test_images_are_loaded_class_by_class_as_they_are(tmp_path: Path) -> None:
    red = Image.new("RGB", (5, 4), (255, 0, 51))
    data = load(spec(folder(tmp_path, coloured(), train__dog__0=red), shape=(3, 4, 5)))
    assert data.train.y.tolist() == [0, 1, 1]
    assert data.test.y.tolist() == [0]
    first = torch.from_numpy(np.array(coloured())).permute(2, 0, 1).float() / 255
    assert torch.equal(data.train.x[0], first)
    assert data.train.x[1, :, 3, 4].tolist() == pytest.approx([1, 0, 0.2])


def test_jpeg_is_read_and_other_files_are_left_alone(tmp_path: Path) -> None:
    write_images(tmp_path, {f"{part}/{name}/1.jpg": grey() for part in ("train", "test") for name in ("a", "b")})
    (tmp_path / "train" / "a" / "notes.txt").write_text("not an image")
    (tmp_path / "train" / "a" / "._1.jpg").write_text("left by another system")
    (tmp_path / "train" / ".cache").mkdir()
    data = load(spec(tmp_path))
    assert data.train.x.shape == (2, 1, 4, 5)
    torch.testing.assert_close(data.train.x[0, 0], torch.from_numpy(np.array(grey())) / 255, atol=0.3, rtol=0)


def test_a_palette_is_colour_and_black_and_white_is_grey(tmp_path: Path) -> None:
    assert spec(folder(tmp_path / "p", coloured().convert("P")), shape=(3, 4, 5)).facts.data.channels == 3
    one = load(spec(folder(tmp_path / "1", grey().convert("1"))))
    assert set(one.train.x.flatten().tolist()) <= {0.0, 1.0}


def test_colour_can_be_converted(tmp_path: Path) -> None:
    folder(tmp_path, coloured(), train__cat__2=grey(), test__dog__1=coloured().convert("RGBA"))
    data = load(spec(tmp_path, ", colour = grey)"))
    assert data.train.x.shape == (3, 1, 4, 5)
    torch.testing.assert_close(data.train.x[0, 0], torch.from_numpy(np.array(coloured().convert("L"))) / 255)
    assert load(spec(tmp_path, ", colour = rgb)", (3, 4, 5))).test.x.shape == (2, 3, 4, 5)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_lies_on_white(mode: str, tmp_path: Path) -> None:
    drawn = Image.new("RGBA", (5, 4))
    drawn.putpixel((1, 2), (0, 0, 0, 255))
    image = drawn.convert(mode)
    assert image.has_transparency_data
    expected = torch.ones(1, 4, 5)
    expected[0, 2, 1] = 0
    assert torch.equal(load(spec(folder(tmp_path, image), ", colour = grey)")).train.x[0], expected)


def test_whoever_loads_is_told_of_every_image(tmp_path: Path) -> None:
    folder(tmp_path, grey(), train__cat__2=grey())
    told: list[tuple[str, int, int]] = []
    load(spec(tmp_path), watch=lambda *what: told.append(what))
    count = len(list(tmp_path.rglob("*.*")))
    assert told[1:] == [("reading images", done, count) for done in range(1, count + 1)]


def test_mixed_colours_name_two_files(tmp_path: Path) -> None:
    folder(tmp_path, coloured(), train__dog__2=grey())
    assert f"`{tmp_path}/train/dog/2.png` is grey, but `{tmp_path}/train/cat/1.png` RGB" in said(tmp_path)


def test_modes_that_are_neither_grey_nor_rgb_name_the_file(tmp_path: Path) -> None:
    folder(tmp_path, coloured(), test__cat__1=coloured().convert("RGBA"))
    assert f"`{tmp_path}/test/cat/1.png` is of mode RGBA, neither grey nor RGB" in said(tmp_path)
    assert "`colour = rgb` or `colour = grey` converts it" in said(tmp_path)
    deep = Image.fromarray(np.zeros((4, 5), np.uint16))
    write_images(tmp_path, {"test/cat/1.png": deep})
    assert "is of mode I;16, neither grey nor RGB with 8 bits" in said(tmp_path, ", colour = rgb)")


def test_mixed_sizes_are_an_error_unless_resized_first(tmp_path: Path) -> None:
    folder(tmp_path, grey(), train__cat__2=grey(7, 6))
    message = f"`{tmp_path}/train/cat/2.png` is 7x6, but `{tmp_path}/train/cat/1.png` 4x5"
    for more in (")", ") |> standardize |> resize(3)"):
        assert f"{message} write `|> resize(size)` directly after it" in said(tmp_path, more)
    data = load(spec(tmp_path, ") |> resize(3)", (1, 3, 3)))
    larger = torch.from_numpy(pixels(7, 6))[None, None].float() / 255
    torch.testing.assert_close(data.train.x[1], resized(larger, 3)[0])


def test_what_a_check_did_not_look_at_is_found_when_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlines, "MOST_HEADERS", 3)
    folder(tmp_path, grey(), train__cat__2=grey(7, 6))
    with pytest.raises(RunError, match=rf"^`{tmp_path}/train/cat/2.png` is 7x6, but .* 4x5: write `\|> resize"):
        load(spec(tmp_path))
    write_images(tmp_path, {"train/cat/2.png": coloured()})
    with pytest.raises(RunError, match=f"^`{tmp_path}/train/cat/2.png` is RGB, but .* grey: set `colour = rgb`"):
        load(spec(tmp_path))


@pytest.mark.parametrize("content", [b"", b"GIF89a nonsense", b"\x89PNG\r\n\x1a\n\0\0"])
def test_what_is_no_image_is_named_by_the_check(tmp_path: Path, content: bytes) -> None:
    folder(tmp_path, grey())
    (tmp_path / "train" / "dog" / "1.PNG").write_bytes(content)
    assert f"cannot read the image `{tmp_path}/train/dog/1.PNG`: it is damaged, or neither PNG nor JPEG" in said(
        tmp_path
    )


@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_an_image_cut_short_is_named_when_loading(tmp_path: Path, suffix: str) -> None:
    write_images(folder(tmp_path, grey(40, 50)), {f"train/cat/2.{suffix}": grey(40, 50)})
    cut = tmp_path / "train" / "cat" / f"2.{suffix}"
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    with pytest.raises(RunError, match=f"^cannot read the image `{cut}`: it is damaged"):
        load(spec(tmp_path, shape=(1, 40, 50)))


def test_a_misspelt_folder_gets_a_suggestion(tmp_path: Path) -> None:
    folder(tmp_path / "pets", grey())
    assert said(tmp_path / "pet") == f"there is no folder `{tmp_path}/pet` did you mean `{tmp_path}/pets`?"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], r"cannot read the folder `.*/train` \(No such file or directory\); images lie in `train/CLASS/`"),
        (["train/x.png", "test/x.png"], "`.*/train` has no folders of classes"),
        (["train/a/x.png", "test/a/x.png"], "`.*/train` holds a single class, `a`"),
        (["train/a/x.png", "train/b/x.png"], "cannot read the folder `.*/test`"),
        (["train/a/x.png", "train/b/x.gif", "test/a/x.png"], "`.*/train/b` holds no PNG or JPEG image"),
        (["train/a/x.png", "train/b/x.png", "test/c/x.png"], "`.*/test/c` is a class that `.*/train` does not have"),
    ],
)
def test_a_folder_laid_out_otherwise_is_explained(tmp_path: Path, files: list[str], message: str) -> None:
    write_images(tmp_path, dict.fromkeys(files, grey()))
    with pytest.raises(SpecError, match=message):
        spec(tmp_path)


def test_images_in_folders_of_a_class_are_read_too(tmp_path: Path) -> None:
    deep = folder(tmp_path / "deep", grey(), train__cat__more__2=grey(), train__cat__more__even__3=grey())
    write_images(deep, {"train/dog/.hidden/9.png": coloured()})
    data = spec(deep).facts.data
    assert load(spec(deep)).train.y.tolist() == [0, 0, 0, 1]
    assert data.channels == 1
    (tmp_path / "deep" / "train" / "cat" / "1.png").unlink()
    assert len(load(spec(deep)).train) == 3


def turned(path: Path, orientation: int) -> None:
    """A photograph of two halves, dark and light, as a camera stores it that was held that way."""
    upright = Image.fromarray(np.repeat([[0], [255]], 8, 0).repeat(24, 1).astype(np.uint8))
    stored = {1: upright, 6: upright.rotate(90, expand=True), 8: upright.rotate(-90, expand=True)}[orientation]
    marks = Image.Exif()
    marks[0x0112] = orientation
    stored.save(path, quality=95, exif=marks)


@pytest.mark.parametrize("orientation", [6, 8])
def test_photographs_are_turned_as_the_camera_was_held(tmp_path: Path, orientation: int) -> None:
    path = folder(tmp_path / "photos", grey(16, 24))
    for name in ("train/cat/2.jpg", "train/dog/2.jpg"):
        turned(path / name, 1)
    turned(path / "train/cat/3.jpg", orientation)
    x = load(spec(path, shape=(1, 16, 24))).train.x
    assert x.shape == (5, 1, 16, 24)
    assert float((x[1] - x[2]).abs().max()) < 0.1


def test_images_of_16_bits_are_told_a_way_out(tmp_path: Path) -> None:
    deep = Image.fromarray(np.zeros((4, 5), np.uint16))
    assert "save it with 8 bits, or all images as floats in an .npz file" in said(folder(tmp_path, deep))


def test_a_resize_with_a_wrong_size_is_all_that_is_told(tmp_path: Path) -> None:
    path = folder(tmp_path, grey(), train__cat__2=grey(6, 6))
    assert [one.code for one in found(text(path, ") |> resize(0)"))] == ["E402"]


def test_links_in_the_folder_of_a_class_are_followed_once(tmp_path: Path) -> None:
    far = write_images(tmp_path / "far", {"2.png": grey(), "deep/3.png": grey()})
    path = folder(tmp_path / "near", grey())
    (path / "train" / "cat" / "more").symlink_to(far)
    (path / "train" / "cat" / "again").symlink_to(far)
    (far / "deep" / "back").symlink_to(far)
    assert len(load(spec(path)).train) == 4
    assert [Path(one).parts[-2] for one in outlines.images_below(path / "train" / "cat")] == ["cat", "again", "deep"]


@pytest.mark.parametrize(
    ("strange", "message"),
    [
        (["train/cat/2.webp"], "an image is left out: `{}`"),
        (["test/dog.png"], "an image is left out: `{}`"),
        (["test/cat/2.BMP", "train/cat/deep/1.tif"], "2 images are left out: `{}`, ..."),
    ],
)
def test_images_that_are_left_out_are_counted(tmp_path: Path, strange: list[str], message: str) -> None:
    path = folder(tmp_path, grey())
    for name in strange:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).touch()
    (path / "train" / "cat" / "notes.txt").touch()
    (path / "train" / "cat" / ".hidden.webp").touch()
    (doubt,) = found(text(path, ")"))
    assert (doubt.code, doubt.message) == ("W115", message.format(path / sorted(strange, reverse=True)[0]))
    assert len(load(spec(path)).train) == 2


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder(tmp_path, grey(), train__cat__deep__2=grey())
    honest = os.scandir

    def scandir(place: str | Path) -> object:
        if os.path.basename(place) == "deep":
            raise PermissionError(13, "Permission denied", str(place))
        return honest(place)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(RunError, match=r"cat/deep: cannot be read: Permission denied"):
        list(input_files([path / "train"]))
    assert "cannot read the folder" in said(path)
