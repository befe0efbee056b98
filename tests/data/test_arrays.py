from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from data.by_hand import facts, step
from symdsl.data import Dataset, load
from symdsl.diagnostics import RunError


def good(**changes: Any) -> dict[str, Any]:
    """Arrays of a dataset of three classes, 2x5x4 images; `None` leaves an array out."""
    random = np.random.default_rng(1)
    arrays = {
        "x_train": random.normal(size=(6, 2, 5, 4)),
        "y_train": np.arange(6) % 3,
        "x_test": random.normal(size=(3, 2, 5, 4)),
        "y_test": np.arange(3),
    }
    return {name: value for name, value in (arrays | changes).items() if value is not None}


def read(
    path: Path, shape: tuple[int, int, int] = (2, 5, 4), classes: int = 3, task: str = "classification"
) -> Dataset:
    return load(facts(step("arrays", path=str(path), task="auto"), shape=shape, classes=classes, task=task))


def saved(folder: Path, **changes: Any) -> Path:
    path = folder / "data.npz"
    np.savez(path, **good(**changes))
    return path


def test_floats_are_taken_as_they_are(tmp_path: Path) -> None:
    data = read(saved(tmp_path))
    assert torch.equal(data.train.x, torch.from_numpy(good()["x_train"]).float())
    assert (data.train.y.tolist(), data.train.y.dtype) == ([0, 1, 2, 0, 1, 2], torch.int64)
    assert len(data.test) == 3


def test_bytes_are_scaled_and_a_missing_channel_axis_added(tmp_path: Path) -> None:
    x = np.arange(6 * 20, dtype=np.uint8).reshape(6, 5, 4)
    data = read(saved(tmp_path, x_train=x, x_test=x[:3]), shape=(1, 5, 4))
    assert torch.equal(data.train.x, torch.from_numpy(x)[:, None].float() / 255)


@pytest.mark.parametrize("dtype", [">i4", "<u2", "int8"])
def test_labels_may_be_integers_of_any_kind(tmp_path: Path, dtype: str) -> None:
    assert read(saved(tmp_path, y_test=np.array([2, 0, 1], dtype=dtype))).test.y.tolist() == [2, 0, 1]


@pytest.mark.parametrize("shape", [(6,), (6, 2)])
def test_float_targets_are_regression(tmp_path: Path, shape: tuple[int, ...]) -> None:
    y = np.random.default_rng(2).normal(size=shape)
    path = saved(tmp_path, y_train=y, y_test=y[:3])
    data = read(path, classes=y.size // 6, task="regression")
    assert data.task == "regression"
    assert torch.equal(data.train.y, torch.from_numpy(y).float().reshape(6, -1))


def wrong(name: str, index: Any, value: Any) -> dict[str, Any]:
    array = good()[name].copy()
    array[index] = value
    return {name: array}


NAN, INF = float("nan"), float("inf")
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"y_test": None}, "`y_test` is missing: the file must hold `x_train`, `y_train`, `x_test`, `y_test`"),
    "negative label": (wrong("y_train", 4, -1), r"`y_train\[4\]` \(=-1\) must be a class from 0 to 2"),
    "large label": (wrong("y_test", 1, 3), r"`y_test\[1\]` \(=3\) must be a class from 0 to 2"),
    "nan": (wrong("x_train", (3, 1, 0, 0), NAN), r"`x_train\[3\]` holds a number that is not finite"),
    "inf": (wrong("x_test", (2, 0, 4, 3), INF), r"`x_test\[2\]` holds a number that is not finite"),
    "overflow": (wrong("x_test", (1, 0, 4, 3), 1e300), r"`x_test\[1\]` holds a number that is not finite"),
    "length": ({"y_train": np.arange(5) % 3}, "`x_train` has 6 examples, but `y_train` 5"),
    "empty": ({"x_test": np.zeros((0, 2, 5, 4)), "y_test": np.zeros(0, int)}, "`x_test` is empty"),
    "no channels": ({"x_test": np.zeros((3, 0, 5, 4))}, "`x_test` is empty"),
    "objects": ({"x_train": np.array([{}] * 6)}, "`x_train` cannot be read: it is damaged or holds Python objects"),
    "axes of images": ({"x_train": np.zeros((6, 5))}, r"`x_train` has 2 axes, expected \[n, c, h, w\] or \[n, h, w\]"),
    "a number": ({"x_train": np.zeros(())}, "`x_train` has 0 axes"),
    "type of images": ({"x_train": np.zeros((6, 5, 4), int)}, "`x_train` holds int64, expected floats or uint8"),
    "complex images": ({"x_train": np.zeros((6, 5, 4), complex)}, "`x_train` holds complex128, expected floats"),
    "axes of labels": ({"y_train": np.zeros((6, 3), int)}, "`y_train` has 2 axes, expected one label per example"),
    "float labels": ({"y_train": np.zeros(6)}, "`y_train` holds float64, expected integers"),
    "text labels": ({"y_train": np.array(["a"] * 6)}, "`y_train` holds <U1, expected integers"),
    "parts differ": ({"x_test": np.zeros((3, 2, 5, 5))}, "`x_train` holds 2x5x4 images, but `x_test` 2x5x5"),
}


@pytest.mark.parametrize(("changes", "fault"), FAULTS.values(), ids=FAULTS.keys())
def test_each_fault_is_one_clear_line(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    path = saved(tmp_path, **changes)
    with pytest.raises(RunError, match=f"^{path}: {fault}[^\n]*$"):
        read(path)


TARGET_FAULTS: dict[str, tuple[Any, str]] = {
    "integers": (np.arange(6), "`y_train` holds int64, expected floats"),
    "axes": (np.zeros((6, 1, 1)), r"`y_train` has 3 axes, expected \[n\] or \[n, targets\]"),
    "nan": (np.array([0, 0, NAN, 0, 0, 0]), r"`y_train\[2\]` holds a number that is not finite"),
    "constant": (np.full(6, 0.5), "all targets of `y_train` are the same: there is nothing to learn"),
    "columns": (np.zeros((6, 2)), "`y_train` has 2 targets per example, but the spec says 1"),
    "no columns": (np.zeros((6, 0)), "`y_train` has 0 targets per example, but the spec says 1"),
}


@pytest.mark.parametrize(("y", "fault"), TARGET_FAULTS.values(), ids=TARGET_FAULTS.keys())
def test_each_fault_of_regression_targets_is_one_clear_line(tmp_path: Path, y: Any, fault: str) -> None:
    path = saved(tmp_path, y_train=y, y_test=np.zeros(3))
    with pytest.raises(RunError, match=f"^{path}: {fault}[^\n]*$"):
        read(path, classes=1, task="regression")


def test_images_of_another_shape_than_the_spec_s_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    with pytest.raises(RunError, match="images come out as 2x5x4, but the spec says 3x5x4"):
        read(path, shape=(3, 5, 4))


def test_numbers_that_transforms_make_infinite_are_refused(tmp_path: Path) -> None:
    x = good()["x_test"]
    x[1, 0, 2, 3] = np.finfo(np.float32).min
    steps = (step("arrays", path=str(saved(tmp_path, x_test=x)), task="auto"), step("standardize", what="images"))
    with pytest.raises(
        RunError, match=r"too large for the transforms, `x_test\[1\]` holds a number that is not finite"
    ):
        load(facts(*steps, shape=(2, 5, 4), classes=3))


def lone_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def damaged_member(path: Path) -> None:
    whole = io.BytesIO()
    np.savez_compressed(whole, **good())
    content = bytearray(whole.getvalue())
    start = content.index(b"x_train.npy") + 60
    content[start : start + 40] = bytes(40)
    path.write_bytes(content)


def changed_number(path: Path) -> None:
    np.savez(path, **good())
    content = bytearray(path.read_bytes())
    content[content.index(b"x_train.npy") + 200] ^= 1
    path.write_bytes(content)


def foreign_archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in good():
            archive.writestr(f"{name}.npy", "not an array")


def truncated(path: Path) -> None:
    np.savez(path, **good())
    path.write_bytes(path.read_bytes()[:-300])


def overlong_member(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in good().items():
            whole = io.BytesIO()
            np.save(whole, values)
            archive.writestr(f"{name}.npy", whole.getvalue() + b"more")


def boastful_header(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in good().items():
            whole = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                whole, {"descr": "<f4", "fortran_order": False, "shape": (10**20, *values.shape[1:])}
            )
            archive.writestr(f"{name}.npy", whole.getvalue() + values.tobytes())


UNREADABLE = {
    "boastful header": boastful_header,
    "overlong member": overlong_member,
    "garbage": lambda path: path.write_bytes(b"not an archive at all"),
    "empty": lambda path: path.write_bytes(b""),
    "cut short": truncated,
    "pickle": lambda path: path.write_bytes(b"\x80\x04K\x01."),
    "lone array": lone_array,
    "damaged member": damaged_member,
    "changed number": changed_number,
    "foreign archive": foreign_archive,
    "folder": lambda path: path.mkdir(),
    "missing": lambda path: None,
}


@pytest.mark.parametrize("write", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_no_npz_file_is_one_clear_line(tmp_path: Path, write: Any) -> None:
    path = tmp_path / "data.npz"
    write(path)
    with pytest.raises(
        RunError, match=rf"^[^\n]*{path}[^\n]*(?:\.npz file|cannot be read|cannot read|directory)[^\n]*$"
    ):
        read(path)


def test_a_lack_of_memory_is_no_fault_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)

    def exhausted(piece: object) -> None:
        raise MemoryError

    monkeypatch.setattr("symdsl.data.arrays._float32", exhausted)
    with pytest.raises(RunError, match=f"not enough memory to read {path}"):
        read(path)


def test_pickled_objects_are_never_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    path = saved(tmp_path, y_test=np.array([Trap()] * 3, dtype=object))
    with pytest.raises(RunError, match="holds Python objects"):
        read(path)
    assert not (tmp_path / "sprung").exists()
