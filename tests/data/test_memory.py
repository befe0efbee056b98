from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from data.by_hand import facts, step, synthetic
from data.files import write_images
from symdsl.data import load, memory
from symdsl.data.memory import check_memory, free_memory
from symdsl.diagnostics import RunError

PLAIN = 4 * (30 + 11) * 2 * 7 * 7
DOUBLED = 3 * 4 * PLAIN


def with_free(size: int, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(memory, "free_memory", lambda: size)


def test_data_that_fit_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(PLAIN, monkeypatch)
    assert len(load(synthetic()).train) == 30
    placed = synthetic(step("quadrants", label="digit", copies=3), shape=(2, 14, 14))
    with_free(PLAIN + DOUBLED, monkeypatch)
    assert len(load(placed).train) == 90
    with_free(PLAIN + DOUBLED - 1, monkeypatch)
    with pytest.raises(RunError, match="do not fit in memory: 90 training and 33 test images of 2x14x14 take"):
        load(placed)


def test_what_does_not_fit_is_said_in_numbers_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(2**30, monkeypatch)
    source = step("synthetic", channels=3, size=224, classes=3, train=10**6, test=10**4)
    with pytest.raises(
        RunError,
        match=r"1,000,000 training and 10,000 test images of 3x224x224 take 566.4 GiB, .* 1132.7 GiB, and 1.0 GiB are",
    ):
        load(facts(source, step("standardize"), shape=(3, 224, 224), classes=3))


def test_images_that_are_resized_as_they_are_read_count_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = Image.new("L", (50, 50))
    write_images(tmp_path, {f"{part}/{name}/1.png": large for part in ("train", "test") for name in ("a", "b")})
    source = step("images", path=str(tmp_path), colour="auto")
    resize, standardize = step("resize", size=2), step("standardize")
    with_free(4 * 4 * 2 * 2 * 2, monkeypatch)
    assert load(facts(source, resize, standardize, shape=(1, 2, 2), classes=2)).train.x.shape == (2, 1, 2, 2)
    with pytest.raises(RunError, match="do not fit in memory"):
        load(facts(source, standardize, resize, shape=(1, 2, 2), classes=2))


def test_some_memory_is_free_and_a_container_may_allow_less(monkeypatch: pytest.MonkeyPatch) -> None:
    free = free_memory()
    assert 2**20 < free < 2**50
    monkeypatch.setattr(memory, "_allowed_in_container", lambda: 7)
    assert free_memory() == 7
    check_memory(facts(step("arrays", path="nowhere.npz", task="auto"), shape=(1, 2, 2)))
