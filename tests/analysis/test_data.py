"""The data statement: what sources and transforms do to shapes, and what is in a file."""

from __future__ import annotations

import os
import re
import tracemalloc
import zipfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from analysis.specs import NETWORK, codes
from symdsl.analysis.arrays import MOST_LABELS
from symdsl.diagnostics import SpecError
from symdsl.spec import check_text, parse

REGRESSION = "network n {{ input image({}, {}, {})\nflatten\nlayer h: FC -> classes }}"


@pytest.mark.parametrize(
    ("steps", "outline"),
    [
        ("digits", (1, 8, 8, 10)),
        ("digits(16)", (1, 16, 16, 10)),
        ("mnist", (1, 28, 28, 10)),
        ("fashion_mnist", (1, 28, 28, 10)),
        ("cifar10", (3, 32, 32, 10)),
        ('cifar100(root = "nowhere")', (3, 32, 32, 100)),
        ("synthetic(channels = 3, size = 5, classes = 7)", (3, 5, 5, 7)),
        ("digits |> quadrants", (1, 16, 16, 10)),
        ("digits |> quadrants(label = both)", (1, 16, 16, 40)),
        ("digits |> quadrants(both) |> quadrants(both, 2)", (1, 32, 32, 160)),
        ("mnist |> pad(32) |> crop(30) |> resize(7)", (1, 7, 7, 10)),
        ("digits |> quadrants(copies = 2) |> subset(2874)", (1, 16, 16, 10)),
        ("cifar10 |> standardize |> augment(flip, shift = 4)", (3, 32, 32, 10)),
        ("digits |> rotate(90) |> translate(2) |> standardize |> subset(1437)", (1, 8, 8, 10)),
    ],
)
def test_outlines(steps: str, outline: tuple[int, ...]) -> None:
    channels, height, width, _ = outline
    data = parse(f"data {steps}\n{REGRESSION.format(channels, height, width)}").facts.data
    assert (data.channels, data.height, data.width, data.classes) == outline


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("digits |> pad(4)", r"`size` \(=4\) must not be smaller than the image \(8x8\)"),
        ("digits |> crop(9)", r"`size` \(=9\) must not be larger than the image \(8x8\)"),
        ("digits |> translate(8)", r"`pixels` \(=8\) must be smaller than the image \(8x8\)"),
        ("digits |> subset(1438)", r"`n` \(=1438\) must not be larger than the number of training examples \(=1437\)"),
        ("digits |> subset(9, 361)", r"`test` \(=361\) must not be larger than the number of test examples \(=360\)"),
        ("digits |> augment(shift = 8)", r"`shift` \(=8\) must be smaller than the image \(8x8\)"),
        ("digits |> augment |> pad(9) |> crop(8)", "must be the last transform"),
        ("digits |> augment(flip) |> augment", "must be the last transform"),
        ("digits |> rotate(9, step = 1e-20)", r"`step` \(=1e-20\) must be 0, for any angle, or at least 0.001 degrees"),
        ("digits |> quadrants(both) |> augment(flip)", r"not what `quadrants\(label = both\)` says of them"),
        ("digits |> rotate(9, label = angle) |> augment(flip)", r"not what `rotate\(label = angle\)` says of them"),
        ("digits |> subset(5) |> subset(6)", r"`n` \(=6\) must not be larger than .* \(=5\)"),
    ],
)
def test_transforms_that_do_not_fit(steps: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as raised:
        parse(f"data {steps}\n{NETWORK}")
    assert [one.code for one in raised.value.diagnostics] == ["E602"]


def save(path: Path, **changed: object) -> Path:
    x, y = np.zeros((4, 2, 3, 5), np.float32), np.array([0, 1, 2, 1])
    given = changed.get("y_train")
    y_test = (given if isinstance(given, np.ndarray) and given.ndim else y)[:2]
    arrays = {"x_train": x, "y_train": y, "x_test": x[:2], "y_test": y_test, **changed}
    np.savez(path / "a.npz", **{name: value for name, value in arrays.items() if value is not None})  # type: ignore[arg-type]
    return path / "a.npz"


def text(path: Path, options: str = "", shape: tuple[int, int, int] = (2, 3, 5)) -> str:
    return f'data arrays("{path}"{options})\n{REGRESSION.format(*shape)}'


def test_a_file_of_labels(tmp_path: Path) -> None:
    data = parse(text(save(tmp_path))).facts.data
    assert (data.channels, data.height, data.width, data.classes, data.task) == (2, 3, 5, 3, "classification")


def test_a_file_of_targets(tmp_path: Path) -> None:
    y = np.zeros((4, 6))
    data = parse(text(save(tmp_path, y_train=y, y_test=y[:2]))).facts.data
    assert (data.classes, data.task) == (6, "regression")
    data = parse(text(save(tmp_path, y_train=y[:, 0], y_test=y[:2, 0]))).facts.data
    assert (data.classes, data.task) == (1, "regression")


def test_images_without_channels(tmp_path: Path) -> None:
    x = np.zeros((4, 3, 5))
    assert parse(text(save(tmp_path, x_train=x, x_test=x[:2]), shape=(1, 3, 5))).facts.data.channels == 1


@pytest.mark.parametrize(
    ("y", "message", "help"),
    [
        (np.full(4, 5), "no example of 5 of 6 classes: 0 to 4", "return_inverse"),
        (np.array([0, 100, 200, 0]), "no example of 198 of 201 classes: 1 to 99, 101 to 199", "return_inverse"),
        (np.array([0, 1, 3, 3]), "no example of 1 of 4 classes: 2", "return_inverse"),
        (np.arange(4) * 1000, "no example of 2,997 of 3,001 classes: 1 to 999, 1001 to 1999, 2001", "return_inverse"),
        (np.eye(3)[[0, 1, 2, 1]], "the 3 targets of `y_train` look like one-hot labels", r"`y\.argmax\(1\)`"),
        (np.array([0.0, 1.0, 1.0, 0.0]), "look like labels of 2 classes", r"`y\.astype\(int\)`"),
        (
            np.asfortranarray(np.eye(3)[[0, 1, 2, 1]]),
            "the 3 targets of `y_train` look like one-hot",
            r"`y\.argmax\(1\)`",
        ),
        (np.arange(60) % 3 + 1.0, "look like labels of 3 classes", "`numpy.unique.y, return_inverse=True"),
        (np.arange(60) % 2 * 2.0 - 1.0, "look like labels of 2 classes", "`numpy.unique.y, return_inverse=True"),
    ],
)
def test_labels_and_targets_that_are_hardly_meant(tmp_path: Path, y: np.ndarray, message: str, help: str) -> None:
    (warning,) = parse(text(save(tmp_path, x_train=np.zeros((len(y), 2, 3, 5)), y_train=y))).warnings
    assert warning.code == ("W111" if y.dtype == float else "W110")
    assert re.search(message, warning.message)
    assert re.search(help, warning.help)


@pytest.mark.parametrize(
    "y",
    [
        np.array([0.0, 0.5, 1.0, 0.0]),
        np.array([1.0, 2.0, 2.0, 1.0]),
        np.array([0.0, 1.0, 2.0, 3.0]),
        np.zeros(4),
        np.eye(4)[[0, 1, 2, 2]] * 2,
        np.ones((4, 2)),
        np.zeros((4, 6)),
    ],
)
def test_real_targets_are_no_labels(tmp_path: Path, y: np.ndarray) -> None:
    assert parse(text(save(tmp_path, y_train=y))).warnings == ()


@pytest.mark.parametrize("scale", [1.0, 20.0])
@pytest.mark.parametrize("options", ["", ", task = regression"])
def test_large_targets_are_to_be_standardized(tmp_path: Path, scale: float, options: str) -> None:
    path = save(tmp_path, y_train=scale * np.array([[0.5, 0.1], [1.5, 0.3], [-0.8, 0.2], [1.1, 0.1]]))
    assert [one.code for one in parse(text(path, options)).warnings] == (["W114"] if scale > 1 else [])
    standardized = text(path, options).replace(")\n", ") |> standardize(targets)\n", 1)
    assert parse(standardized).warnings == ()


@pytest.mark.parametrize(
    ("scales", "warned"), [((1, 1e-3), True), ((1e-3, 1e-3), True), ((1, 0), False), ((1, 1), False)]
)
def test_small_targets_are_to_be_standardized(tmp_path: Path, scales: tuple[float, float], warned: bool) -> None:
    path = save(tmp_path, y_train=np.array([[0.5, 0.1], [1.5, 0.3], [-0.8, 0.2], [1.1, 0.1]]) * scales)
    warnings = parse(text(path)).warnings
    assert [one.code for one in warnings] == ["W114"] * warned
    assert all("the targets have a standard deviation of" in one.message for one in warnings)
    assert parse(text(path).replace(")\n", ") |> standardize(targets)\n", 1)).warnings == ()


@pytest.mark.parametrize("value", [1e200, np.inf, np.nan])
def test_targets_beyond_all_numbers_are_not_called_large(tmp_path: Path, value: float) -> None:
    assert parse(text(save(tmp_path, y_train=np.array([value, 0.5, 1.5, 0.0])))).warnings == ()


def test_what_is_wrong_with_arrays_says_how_to_mend_it(tmp_path: Path) -> None:
    wrong = {
        "x[:, :, None, None]": {"x_train": np.zeros((4, 7))},
        "input image(7, 1, 1)": {"x_train": np.zeros((4, 7))},
        "`x[:, None, None, :]` makes rows signals, `input signal(1, 7)`": {"x_train": np.zeros((4, 7))},
        "if all are from 0 to 255, or `x.astype(numpy.float32)`": {"x_train": np.zeros((4, 1, 8, 8), np.uint16)},
        "numpy.unique(y_train, return_inverse=True)[1]": {"y_train": np.array(["cat", "dog", "cat", "dog"])},
        "save `x.astype(numpy.uint8)`": {"x_train": np.zeros((4, 1, 8, 8), int)},
    }
    for help, changed in wrong.items():
        with pytest.raises(SpecError) as raised:
            parse(text(save(tmp_path, **changed)))
        assert help in raised.value.diagnostics[0].help


def test_bytes_and_floats_are_not_mixed(tmp_path: Path) -> None:
    path = save(tmp_path, x_train=np.zeros((4, 1, 8, 8), np.uint8), x_test=np.zeros((2, 1, 8, 8), np.float32))
    with pytest.raises(SpecError, match="`x_train` holds uint8 and `x_test` float32: both must hold uint8"):
        parse(text(path))


def test_signals_of_several_channels_are_told_their_layout(tmp_path: Path) -> None:
    x = np.zeros((4, 3, 20), np.float32)
    spec = 'data arrays("{}")\nnetwork n {{ input signal(3, 20)\nflatten\nlayer h: FC -> classes }}'
    with pytest.raises(SpecError) as raised:
        parse(spec.format(save(tmp_path, x_train=x, x_test=x[:2])))
    assert "save `x[:, :, None, :]`" in raised.value.diagnostics[0].help
    parse(spec.format(save(tmp_path, x_train=x[:, :, None, :], x_test=x[:2, :, None, :])))


def test_targets_that_look_like_labels_may_be_meant(tmp_path: Path) -> None:
    y = np.array([0.0, 1.0, 1.0, 0.0])
    path = save(tmp_path, y_train=y)
    assert parse(text(path)).warnings
    assert parse(text(path, ", task = regression")).warnings == ()


@pytest.mark.parametrize(("examples", "classes", "warned"), [(120, 120, True), (190, 100, False), (300, 120, False)])
def test_whole_numbers_that_hardly_repeat_may_be_targets(
    tmp_path: Path, examples: int, classes: int, warned: bool
) -> None:
    x, y = np.zeros((examples, 1, 1), np.uint8), np.arange(examples) % classes
    path = save(tmp_path, x_train=x, x_test=x[:2], y_train=y)
    found = parse(text(path, shape=(1, 1, 1))).warnings
    assert [one.code for one in found] == ["W111"] * warned
    assert all("save `y.astype(float)` for a regression" in one.help for one in found)
    assert parse(text(path, ", task = classification", shape=(1, 1, 1))).warnings == ()


def test_only_the_first_of_many_targets_are_read(tmp_path: Path) -> None:
    x, y = np.zeros((200_000, 1, 1), np.uint8), np.arange(200_000) % 2 + 0.5
    y[:70_000] -= 0.5
    path = save(tmp_path, x_train=x, x_test=x[:2], y_train=y)
    assert [one.code for one in parse(text(path, shape=(1, 1, 1))).warnings] == ["W111"]


def test_channels_that_come_last_are_told(tmp_path: Path) -> None:
    x = np.zeros((4, 8, 6, 1), np.float32)
    path = save(tmp_path, x_train=x, x_test=x[:2])
    (warning,) = parse(text(path, shape=(8, 6, 1))).warnings
    assert warning.code == "W112"
    with pytest.raises(SpecError) as raised:
        parse(text(path, shape=(1, 8, 6)))
    found = {one.code: one.help for one in raised.value.diagnostics}
    assert found.keys() == {"W112", "E208"}
    assert all("x.transpose(0, 3, 1, 2)" in help for help in found.values())
    assert np.zeros((4, 8, 6, 1)).transpose(0, 3, 1, 2).shape == (4, 1, 8, 6)


@pytest.mark.parametrize("shape", [(3, 8, 8), (64, 8, 8), (3, 8, 1), (8, 1, 1), (1, 1, 8)])
def test_channels_that_come_first_are_not_told(tmp_path: Path, shape: tuple[int, int, int]) -> None:
    x = np.zeros((4, *shape), np.float32)
    assert parse(text(save(tmp_path, x_train=x, x_test=x[:2]), shape=shape)).warnings == ()


def test_one_hot_integers_are_told_how_to_become_labels(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="too many for classification") as raised:
        parse(text(save(tmp_path, y_train=np.eye(3, dtype=int)[[0, 1, 2, 1]])))
    assert "`y.argmax(1)`" in raised.value.diagnostics[0].help


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("standardize(targets)", "needs real numbers for targets, but these data have classes"),
        ("standardize |> pad(9) |> standardize", "the images are standardized already"),
        ("rotate(9, label = angle) |> standardize(targets) |> standardize(targets)", "the targets are standardized"),
        (
            "rotate(9, label = angle) |> standardize(targets) |> rotate(9, label = angle)",
            "the angle would replace them",
        ),
        ("rotate(0, label = angle) |> standardize(targets)", "`degrees` is 0: all angles are 0, and all targets equal"),
        (
            "rotate(9, label = angle) |> rotate(5, label = angle)",
            "the angle of an earlier `rotate` is the target already",
        ),
        ("rotate(9, step = 10, label = angle)", r"`step` \(=10\) is above `degrees` \(=9\): all angles are 0"),
        ("rotate(9, label = angle) |> quadrants(both)", "the targets of this data are real numbers"),
    ],
)
def test_targets_that_transforms_do_not_fit(steps: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as raised:
        parse(f"data digits |> {steps}\nnetwork n {{ input image(1, 8, 8)\nflatten\nlayer h: FC -> classes }}")
    assert "E602" in [one.code for one in raised.value.diagnostics]


@pytest.mark.parametrize(
    ("group", "size", "message"),
    [
        ("p4", (4, 8), "`p4` turns images, but 4x8 ones are not square"),
        ("p4m", (4, 8), "`p4m` turns images, but 4x8 ones are not square"),
        ("rotations(12)", (1, 64), "`rotations(12)` turns images, but 1x64 ones are not square"),
        (
            "translations",
            (8, 6),
            "`translations` move by quarters of a side, but 4 does not divide those of 8x6 images",
        ),
        ("translations", (4, 8), ""),
        ("p4", (6, 6), ""),
    ],
)
def test_a_regulariser_fits_the_size_of_the_images(group: str, size: tuple[int, int], message: str) -> None:
    height, width = size
    data = f"data given(channels = 1, height = {height}, width = {width}, classes = 2)"
    found = check_text(f"{data}\n{REGRESSION.format(1, *size)}\nsearch {{ invariance = logit({group}) }}", "x", None)
    assert [(one.code, one.message) for one in found] == ([("E602", message)] if message else [])


def test_the_angle_is_one_target() -> None:
    steps = "digits |> rotate(degrees = 45, label = angle) |> standardize |> standardize(targets)"
    data = parse(f"data {steps}\n{REGRESSION.format(1, 8, 8)}").facts.data
    assert (data.task, data.classes) == ("regression", 1)


def test_numbering_quadrants_needs_classes(tmp_path: Path) -> None:
    path = save(tmp_path, y_train=np.zeros(4), y_test=np.zeros(2))
    source = text(path, shape=(2, 6, 10)).replace(")\nnetwork", ") |> quadrants(both)\nnetwork")
    with pytest.raises(
        SpecError, match="`label = both` numbers classes, but the targets of this data are real numbers"
    ):
        parse(source)


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({"y_test": None}, "", "lacks `y_test`"),
        ({"x_train": np.zeros((4, 2))}, "", r"`x_train` must be \[n, c, h, w\] or \[n, h, w\], found \[4, 2\]"),
        ({"x_train": np.array(["a"] * 4)}, "", "`x_train` must hold numbers"),
        ({"x_train": np.array([None] * 4)}, "", "`x_train` must hold numbers"),
        ({"x_train": np.zeros((3, 2, 3, 5))}, "", "must have the same number of examples, at least one"),
        ({"x_test": np.zeros((2, 2, 3, 4))}, "", "must be images of one shape"),
        ({"x_test": np.zeros((2, 2, 3, 5), int)}, "", "`x_test` holds int64, expected floats or uint8"),
        ({"y_test": np.zeros(2)}, "", r"`y_test` holds float64, expected whole numbers, as in `y_train` \(int64\)"),
        ({"y_test": np.zeros((2, 1), int)}, "", "must have the same targets per example"),
        ({"y_train": np.zeros((4, 2)), "y_test": np.zeros((2, 3))}, "", "must have the same targets per example"),
        ({"y_train": np.zeros(4), "y_test": np.zeros(2, int)}, "", "`y_test` holds int64, expected floats"),
        ({"y_train": np.array([0, 1, 2, -1])}, "", "holds the label -1"),
        ({"y_train": np.zeros(4, int)}, "", "holds a single class"),
        ({"y_train": np.zeros((4, 1), int)}, "", "has 2 axes, too many for classification"),
        ({"y_train": np.zeros((4, 1, 1))}, "", "has 3 axes, too many for regression"),
        ({"y_train": np.zeros((4, 0))}, "", r"`y_train` \(of shape \[4, 0\]\) holds no target"),
        ({}, ", task = regression", "regression targets must be floats, but `y_train` holds int64"),
        ({"y_train": np.zeros(4)}, ", task = classification", "class labels must be whole numbers"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, changed: dict[str, object], options: str, message: str) -> None:
    with pytest.raises(SpecError, match=rf"E601\].*{message}"):
        parse(text(save(tmp_path, **changed), options))


@pytest.mark.parametrize(
    ("y", "help"),
    [
        (np.array([0, 1, 2, -1]), "numpy.unique"),
        (np.array(["a", "b", "a", "b"]), "numpy.unique"),
        (np.array([0, 1, 2, 10**6]), "numpy.unique"),
        (np.eye(3, dtype=bool)[[0, 1, 2, 1]], "y.argmax(1)"),
        (np.eye(3, dtype=int)[[0, 1, 2, 1]], "y.argmax(1)"),
        (np.ones(4, complex), ""),
    ],
)
def test_labels_that_cannot_be_used_get_a_way_out(tmp_path: Path, y: np.ndarray, help: str) -> None:
    with pytest.raises(SpecError) as raised:
        parse(text(save(tmp_path, y_train=y)))
    (found,) = raised.value.diagnostics
    assert help in found.help
    assert bool(help) == bool(found.help)


def test_a_missing_file_gets_a_suggestion(tmp_path: Path) -> None:
    save(tmp_path)
    with pytest.raises(SpecError, match="there is no file") as raised:
        parse(text(tmp_path / "aa.npz"))
    assert raised.value.diagnostics[0].help == f"did you mean `{(tmp_path / 'a.npz').as_posix()}`?"
    with pytest.raises(SpecError, match="there is no file") as raised:
        parse(text(tmp_path / "unlike.npz"))
    assert "`--set data.path=...` says where" in raised.value.diagnostics[0].help


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    whole = save(tmp_path).read_bytes()
    for length in (0, 10, 200, len(whole) // 2, len(whole) - 30):
        (tmp_path / "cut.npz").write_bytes(whole[:length])
        assert codes(text(tmp_path / "cut.npz")) == ["E601"]
    assert codes(text(tmp_path / "none.npz")) == ["E601"]
    assert codes(text(tmp_path)) == ["E601"]
    np.save(tmp_path / "one.npy", np.zeros(3))
    assert codes(text(tmp_path / "one.npy")) == ["E601"]


MEBIBYTE = 2**20


def peak(text: str) -> int:
    """Bytes that are held at a time while a text is checked."""
    codes(text)
    tracemalloc.start()
    codes(text)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small file of more labels than are read."""
    path, count = tmp_path_factory.mktemp("many") / "a.npz", MOST_LABELS // 8 + 1
    images, labels = np.zeros((count, 1, 1), np.uint8), np.zeros(count, np.int64)
    np.savez_compressed(path, x_train=images, y_train=labels, x_test=images[:2], y_test=labels[:2])
    return path


def test_labels_that_take_too_much_are_not_read(many: Path) -> None:
    assert many.stat().st_size < MEBIBYTE
    with pytest.raises(SpecError, match=r"E601\].*`y_train` holds 4,194,305 labels as int64, more than 32 MiB"):
        parse(text(many, shape=(1, 1, 1)))
    assert peak(text(many, shape=(1, 1, 1))) < 16 * MEBIBYTE


def rewritten(path: Path, compression: int = zipfile.ZIP_DEFLATED, **changed: bytes) -> Path:
    """A usable file, with other bytes for some of what it holds, or more of it."""
    with zipfile.ZipFile(save(path)) as old, zipfile.ZipFile(path / "b.npz", "w", compression) as new:
        held = {name: old.read(name) for name in old.namelist()}
        for name, content in {**held, **{f"{name}.npy": content for name, content in changed.items()}}.items():
            new.writestr(name, content)
    return path / "b.npz"


def test_a_header_that_never_ends_is_not_read(tmp_path: Path) -> None:
    length = 64 * MEBIBYTE
    endless = b"\x93NUMPY\x02\x00" + length.to_bytes(4, "little") + bytes(length)
    assert codes(text(rewritten(tmp_path))) == []
    path = rewritten(tmp_path, x_train=endless)
    assert codes(text(path)) == ["E601"]
    assert peak(text(path)) < 16 * MEBIBYTE


def test_a_table_of_contents_that_never_ends_is_not_read(tmp_path: Path) -> None:
    path = rewritten(tmp_path, **{f"{number:0>1000}": b"" for number in range(1_200)})
    assert codes(text(path)) == ["E601"]


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_archives_that_may_unpack_slowly_are_not_read(tmp_path: Path, compression: int) -> None:
    with pytest.raises(SpecError, match=r"E601\].*`x_train` is compressed in a way that numpy does not use"):
        parse(text(rewritten(tmp_path, compression)))


def test_devices_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    for path in (tmp_path / "pipe.npz", Path("/dev/zero")):
        with pytest.raises(SpecError, match=rf"E601\].*`{path}` is a device, not a file"):
            parse(text(path))
    with pytest.raises(SpecError, match=rf"E601\].*`{tmp_path}` is a folder, not a file"):
        parse(text(tmp_path))


def test_a_pipe_among_images_is_not_read(tmp_path: Path) -> None:
    for part, name in product(("train", "test"), "ab"):
        (tmp_path / part / name).mkdir(parents=True)
        os.mkfifo(tmp_path / part / name / "1.png")
    with pytest.raises(SpecError, match=r"E601\].*cannot read the image .*: it is a folder or a device"):
        parse(f'data images("{tmp_path}")\n{REGRESSION.format(1, 3, 5)}')


@pytest.mark.parametrize(
    ("changed", "options", "help"),
    [
        ({"y_train": np.zeros((4, 1), int)}, "", "save `y.reshape(-1)`"),
        ({}, ", task = regression", "save `y.astype(float)`, of the test data too"),
        ({"y_train": np.array([0, 1, 2, 10**6])}, "", "number the classes from 0"),
    ],
)
def test_labels_that_cannot_be_used_are_told_a_way_out(
    tmp_path: Path, changed: dict[str, object], options: str, help: str
) -> None:
    with pytest.raises(SpecError, match="E601") as raised:
        parse(text(save(tmp_path, **changed), options))
    assert help in raised.value.diagnostics[0].help


@pytest.mark.parametrize(("last", "told"), [(90, False), (400, True)])
def test_labels_with_many_gaps_may_be_targets(tmp_path: Path, last: int, told: bool) -> None:
    (warning,) = parse(text(save(tmp_path, y_train=np.array([0, 1, 2, last])))).warnings
    assert warning.code == "W110"
    assert ("`y.astype(float)` if the numbers are targets" in warning.help) is told


def test_a_step_above_the_largest_angle_turns_nothing() -> None:
    network = "network n { input image(1, 8, 8)\nflatten\nlayer h: FC -> classes }"
    with pytest.raises(SpecError, match=r"E602.*`step` \(=100\) is above `degrees` \(=45\): no image would be turned"):
        parse(f"data digits |> rotate(degrees = 45, step = 100)\n{network}")


def test_a_word_in_the_place_of_another_parameter_is_told_its_name() -> None:
    source = f"data digits |> rotate(degrees = 45, angle)\n{REGRESSION.format(1, 8, 8)}"
    with pytest.raises(SpecError) as raised:
        parse(source)
    (found,) = raised.value.diagnostics
    assert (found.code, found.help) == ("E401", "write `label = angle`")
    assert found.message == "`angle` stands in the place of `step`, but is a value of `label`"
    assert found.fix is not None
    assert found.fix.content == "label = angle"
