from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from PIL import Image

from data.by_hand import facts, step, synthetic
from data.files import pixels, write_images
from symdsl.analysis.facts import Data
from symdsl.data import Dataset, fingerprint, load, memory
from symdsl.data.memory import Room, free_disk, free_memory, room_for
from symdsl.diagnostics import RunError

PLAIN = 4 * (30 + 11) * 2 * 7 * 7
DOUBLED = 3 * 4 * PLAIN


def with_free(size: int, patch: pytest.MonkeyPatch, disk: int = 2**40) -> None:
    patch.setattr(memory, "free_memory", lambda: size)
    patch.setattr(memory, "free_disk", lambda folder: disk)


def placed(copies: int = 3) -> Data:
    return synthetic(step("quadrants", label="digit", copies=copies), shape=(2, 14, 14))


def is_mapped(dataset: Dataset) -> bool:
    return all(part.x.untyped_storage().filename is not None for part in (dataset.train, dataset.test))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files for images are made."""
    there = tmp_path / "large"
    there.mkdir()
    monkeypatch.setenv("TMPDIR", str(there))
    monkeypatch.setattr("tempfile.tempdir", None)
    return there


def test_data_that_fit_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(PLAIN, monkeypatch, disk=0)
    found = load(synthetic())
    assert len(found.train) == 30
    assert found.room == Room()
    assert not is_mapped(found)
    with_free(PLAIN + DOUBLED, monkeypatch, disk=0)
    assert len(load(placed()).train) == 90
    with_free(PLAIN + DOUBLED - 1, monkeypatch, disk=0)
    with pytest.raises(RunError, match="do not fit in memory: 90 training and 33 test images of 2x14x14 take"):
        load(placed())


def test_what_does_not_fit_is_said_in_numbers_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(2**40, monkeypatch, disk=2**31)
    source = step("synthetic", channels=3, size=224, classes=3, train=10**6, test=10**4)
    with pytest.raises(
        RunError,
        match=r"1,000,000 training and 10,000 test images of 3x224x224 take 566.4 GiB, .* 1132.7 GiB, and 1024.0 GiB "
        r"of memory and 2.0 GiB in `.*` are free; use fewer",
    ):
        load(facts(source, step("standardize"), shape=(3, 224, 224), classes=3))


def test_a_column_of_pixels_after_the_other_cannot_be_mapped(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = step("arrays", path=str(npz(tmp_path / "a.npz", "float64", "F")), task="auto")
    plain = step("arrays", path=str(npz(tmp_path / "b.npz", "float64")), task="auto")
    found, expected = (load(facts(one, shape=(1, 5, 6), classes=2)) for one in (source, plain))
    assert fingerprint(found) == fingerprint(expected)
    with_free(0, monkeypatch)
    with pytest.raises(
        RunError, match=r"`x_train` is stored column by column, .* save `numpy\.ascontiguousarray` of it"
    ):
        load(facts(source, shape=(1, 5, 6), classes=2))


def test_a_folder_for_files_that_is_none_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(PLAIN, monkeypatch)
    monkeypatch.setenv("TMPDIR", "/nowhere/at/all")
    with pytest.raises(RunError, match=r"TMPDIR \(=/nowhere/at/all\) is no folder that files can be made in"):
        room_for(placed())


def test_a_source_that_is_made_as_a_whole_must_fit_in_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(PLAIN, monkeypatch)
    assert is_mapped(load(placed()))
    with_free(PLAIN - 1, monkeypatch)
    with pytest.raises(
        RunError, match=r"of memory are free; `synthetic` is read as a whole, which alone takes 0\.0 GiB"
    ):
        load(placed())


def npz(path: Path, dtype: str, order: Literal["C", "F"] = "C") -> Path:
    values = pixels(14, 5, 6)
    images = values if dtype == "uint8" else (values / 7).astype(dtype)
    train, test = (part.copy(order) for part in (images[:9], images[9:]))
    labels = np.arange(14) % 2
    np.savez(path, x_train=train, y_train=labels[:9], x_test=test, y_test=labels[9:])
    return path


TRANSFORMS = {
    "nothing": ((), (1, 5, 6)),
    "subset": ((step("subset", n=7, test=3),), (1, 5, 6)),
    "resize, standardize": ((step("resize", size=8), step("standardize")), (1, 8, 8)),
    "pad, rotate, crop": ((step("pad", size=9), step("rotate", degrees=90, step=0), step("crop", size=5)), (1, 5, 5)),
    "translate, quadrants": (
        (step("translate", pixels=2), step("quadrants", label="both", copies=3), step("standardize")),
        (1, 10, 12),
    ),
}


@pytest.mark.parametrize("dtype", ["uint8", "float64"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_mapped_data_are_the_data(
    name: str, dtype: str, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transforms, shape = TRANSFORMS[name]
    source = step("arrays", path=str(npz(tmp_path / "a.npz", dtype)), task="auto")
    data = facts(source, *transforms, shape=shape, classes=8 if "quadrants" in name else 2)
    expected = load(data)
    assert not is_mapped(expected)
    with_free(0, monkeypatch)
    for chunk in (memory._CHUNK_NUMBERS, 60):
        monkeypatch.setattr(memory, "_CHUNK_NUMBERS", chunk)
        found = load(data)
        assert is_mapped(found)
        assert found.room.folder == folder
        torch.testing.assert_close(found.train.x, expected.train.x)
        torch.testing.assert_close(found.test.x, expected.test.x)
        assert torch.equal(found.train.y, expected.train.y)
        if chunk > 60 or not transforms:
            assert fingerprint(found) == fingerprint(expected)


def test_images_are_mapped_as_they_are_read(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        f"{part}/{name}/{i}.png": Image.fromarray(pixels(8, 8) + i)
        for part in ("train", "test")
        for i, name in enumerate("ab")
    }
    source = step("images", path=str(write_images(tmp_path / "images", files)), colour="auto")
    data = facts(source, step("standardize"), shape=(1, 8, 8), classes=2)
    expected = load(data)
    with_free(0, monkeypatch)
    found = load(data)
    assert is_mapped(found)
    assert fingerprint(found) == fingerprint(expected)


def test_images_that_are_resized_as_they_are_read_count_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = Image.new("L", (50, 50))
    write_images(tmp_path, {f"{part}/{name}/1.png": large for part in ("train", "test") for name in ("a", "b")})
    source = step("images", path=str(tmp_path), colour="auto")
    resize, standardize = step("resize", size=2), step("standardize")
    with_free(4 * 4 * 2 * 2, monkeypatch, disk=0)
    assert load(facts(source, resize, shape=(1, 2, 2), classes=2)).train.x.shape == (2, 1, 2, 2)
    with_free(4 * 4 * 2 * 2 * 2, monkeypatch, disk=0)
    assert load(facts(source, resize, standardize, shape=(1, 2, 2), classes=2)).train.x.shape == (2, 1, 2, 2)
    with pytest.raises(RunError, match="do not fit in memory"):
        load(facts(source, standardize, resize, shape=(1, 2, 2), classes=2))


def test_a_mapped_file_has_no_name(folder: Path) -> None:
    x = Room(folder).empty(3, 2).fill_(7)
    assert x.dtype == torch.float32
    assert list(folder.iterdir()) == []
    assert x.sum() == 42


def test_a_file_that_cannot_be_made_is_said_with_its_size(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(RunError, match=r"cannot keep 0.0 GiB in `.*missing`: No such file or directory"):
        Room(tmp_path / "missing").empty(3)
    with pytest.raises(RunError, match=r"cannot keep 4294967296.0 GiB in `.*large`"):
        Room(folder).empty(2**60)
    with pytest.raises(RunError, match=r"cannot keep 4294967296.0 GiB in memory"):
        Room().empty(2**60)


def test_files_are_made_on_a_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    with_free(PLAIN, monkeypatch)
    assert room_for(placed()).folder == Path("/var/tmp")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert room_for(placed()).folder == tmp_path
    assert free_disk(tmp_path) > 2**20


def test_some_memory_is_free_and_a_container_may_allow_less(monkeypatch: pytest.MonkeyPatch) -> None:
    free = free_memory()
    assert 2**20 < free < 2**50
    monkeypatch.setattr(memory, "_left_in_groups", lambda: 7)
    assert free_memory() == 7
    assert room_for(facts(step("arrays", path="nowhere.npz", task="auto"), shape=(1, 2, 2))) == Room()


def group(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"memory.{name}").write_text(f"{content}\n")


def test_the_tightest_group_around_the_process_says_what_is_left(tmp_path: Path) -> None:
    listed = tmp_path / "cgroup"
    listed.write_text("4:cpu,cpuacct:/elsewhere\n0::/slice/job\n")
    assert memory._left_in_groups(listed, tmp_path) == memory._left_in_groups(tmp_path / "none", tmp_path) > 2**60
    group(tmp_path / "slice" / "job", max="max", current=10, stat="inactive_file 3")
    group(tmp_path / "slice", max=100, current=70, stat="anon 50\ninactive_file 20")
    group(tmp_path, max=90, current=20, stat="inactive_file 0")
    assert memory._left_in_groups(listed, tmp_path) == 50
    group(tmp_path / "slice" / "job", max=30)
    assert memory._left_in_groups(listed, tmp_path) == 23
    listed.write_text("2:memory:/job\n0::/\n")
    group(tmp_path / "memory" / "job", limit_in_bytes=40, usage_in_bytes=45, stat="total_inactive_file 4")
    assert memory._left_in_groups(listed, tmp_path) == 0
