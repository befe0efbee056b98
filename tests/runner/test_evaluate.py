"""A learned network on other data: classes are matched by name, and what does not fit is one clear line."""

import shutil

import numpy as np
import pytest
from PIL import Image

from data.files import write_images
from symdsl import runner
from symdsl.diagnostics import RunError
from symdsl.runner.audits import audit_spec_or_run
from symdsl.spec import parse

SPEC = """
data images("{path}") |> standardize

network n {{
  input image(1, 4, 4)
  flatten
  layer h: FC -> {outputs}
}}

search {{
  epochs = 30
  batch = 8
  optimizer = adam(lr = 0.05)
}}
"""
CLASSES = ("ant", "bee", "cat")


def image(number, seed):
    """A bright row, another for each class, in noise."""
    values = np.random.default_rng(seed).integers(0, 80, (4, 4), dtype=np.uint8)
    values[number] += 150
    return Image.fromarray(values)


def folder(path, called=CLASSES, tested=(0, 1, 2), seed=0):
    """Images of three classes, those of `tested` also to test on, in folders with the names `called`."""
    files = {f"train/{called[one]}/{copy}.png": image(one, [seed, one, copy]) for one in range(3) for copy in range(8)}
    files |= {f"test/{called[one]}/{copy}.png": image(one, [9, one, copy]) for one in tested for copy in range(4)}
    return write_images(path, files)


@pytest.fixture(scope="module", params=["classes", "3"])
def run(request, tmp_path_factory):
    """A finished run that tells the classes apart; the outputs are named by the data or counted in the spec."""
    path = tmp_path_factory.mktemp("images")
    text = SPEC.format(path=folder(path / "data"), outputs=request.param)
    result = runner.search(parse(text), device="cpu", out=path / "run")
    assert result["test"]["accuracy"] == 1
    return path / "run"


def accuracy(run, path):
    return runner.evaluate(run, {"data.path": str(path)}, device="cpu")["accuracy"]


def test_a_run_keeps_the_names_of_its_classes(run):
    assert runner.load_run(run, "cpu").classes == CLASSES


def test_folders_in_another_order_are_matched_by_name(run, tmp_path):
    """Without a folder that came first, every number moves."""
    path = folder(tmp_path / "other")
    for part in ("train", "test"):
        shutil.rmtree(path / part / "ant")
    assert accuracy(run, path) == 1


def test_an_audit_matches_classes_by_name_too(run, tmp_path):
    path = run.parent / "data"
    for part in ("train", "test"):
        (path / part / "ant").rename(tmp_path / part)
    try:
        assert audit_spec_or_run(run, "p4", "cpu").found.accuracies[0] == 1
    finally:
        for part in ("train", "test"):
            (tmp_path / part).rename(path / part / "ant")


def test_data_that_have_changed_since_are_told(run):
    told = []
    runner.evaluate(run, device="cpu", tell=told.append)
    assert told == []
    changed = run.parent / "data" / "train" / "cat" / "0.png"
    before = changed.read_bytes()
    image(2, 77).save(changed)
    try:
        runner.evaluate(run, device="cpu", tell=told.append)
        audit_spec_or_run(run, "p4", "cpu", told.append)
        accuracy(run, run.parent / "data")
    finally:
        changed.write_bytes(before)
    assert [line.partition(":")[0] for line in told] == ["note", "note"]
    assert all("these are not the numbers that run learned from: files may have changed" in line for line in told)


def test_renamed_folders_are_one_clear_line(run, tmp_path):
    path = folder(tmp_path / "other", called=("x_ant", "bee", "a_cat"))
    line = "^`a_cat`, `x_ant` of these data are not among the classes that the run has learned: `ant`, `bee`, `cat`$"
    with pytest.raises(RunError, match=line):
        accuracy(run, path)


def test_exchanged_names_are_what_they_say(run, tmp_path):
    assert accuracy(run, folder(tmp_path / "other", called=("bee", "ant", "cat"))) == pytest.approx(1 / 3)


def test_only_the_names_of_test_images_count(run, tmp_path):
    path = folder(tmp_path / "other", tested=(1, 2))
    (path / "train" / "ant").rename(path / "train" / "newt")
    assert accuracy(run, path) == 1


def test_labels_beyond_those_learned_are_one_clear_line(tmp_path):
    arrays = {"x_train": np.zeros((6, 4, 4)), "x_test": np.zeros((6, 4, 4))}
    for name, classes in (("few", 2), ("many", 3)):
        np.savez(tmp_path / f"{name}.npz", **arrays, y_train=np.arange(6) % classes, y_test=np.arange(6) % classes)
    text = SPEC.format(path="", outputs="classes").replace('images("")', f'arrays("{tmp_path / "few.npz"}")')
    runner.search(parse(text, {"search.epochs": 1}), device="cpu", out=tmp_path / "run", objective="map")
    with pytest.raises(RunError, match=r"^the data hold the label 2, but the run has learned 2 classes$"):
        accuracy(tmp_path / "run", tmp_path / "many.npz")
