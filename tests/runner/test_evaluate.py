"""A learned network on other data: classes are matched by name, and what does not fit is one clear line."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from data.files import write_images
from symdsl import runner
from symdsl.diagnostics import RunError
from symdsl.report.reading import read_runs
from symdsl.report.single import single
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


def test_data_of_other_units_are_told(tmp_path):
    x, y = np.random.default_rng(0).uniform(size=(20, 1, 4, 4)).astype(np.float32), np.arange(20) % 2
    for name, factor in (("own", 1), ("other", 255)):
        np.savez(tmp_path / f"{name}.npz", x_train=x, y_train=y, x_test=factor * x, y_test=y)
    text = SPEC.replace('images("{path}")', 'arrays("{path}")').format(path=tmp_path / "own.npz", outputs=2)
    runner.search(parse(text), device="cpu", out=tmp_path / "run", objective="map")
    told = []
    runner.evaluate(tmp_path / "run", {"data.path": str(tmp_path / "own.npz")}, device="cpu", tell=told.append)
    assert told == []
    runner.evaluate(tmp_path / "run", {"data.path": str(tmp_path / "other.npz")}, device="cpu", tell=told.append)
    assert [line.endswith("are the units the same?") for line in told] == [True]


def test_an_audit_finds_data_that_have_moved(run, tmp_path):
    moved = folder(tmp_path / "moved")
    shutil.copytree(run, tmp_path / "run")
    found = audit_spec_or_run(tmp_path / "run", "p4", "cpu", overrides={"data.path": str(moved)}).found
    assert found.accuracies[0] == 1
    spec = tmp_path / "n.sym"
    spec.write_text(SPEC.format(path=tmp_path / "gone", outputs=3))
    assert audit_spec_or_run(spec, "p4", "cpu", overrides={"data.path": str(moved)}).found.examples == 12


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


def test_labels_that_the_other_training_data_lack_are_measured(tmp_path):
    x, y = np.zeros((6, 4, 4)), np.arange(6)
    np.savez(tmp_path / "own.npz", x_train=x, x_test=x, y_train=y % 3, y_test=y % 3)
    np.savez(tmp_path / "other.npz", x_train=x, x_test=x, y_train=y % 2, y_test=y % 3)
    text = SPEC.format(path="", outputs="classes").replace('images("")', f'arrays("{tmp_path / "own.npz"}")')
    runner.search(parse(text, {"search.epochs": 1}), device="cpu", out=tmp_path / "run", objective="map")
    assert accuracy(tmp_path / "run", tmp_path / "other.npz") == pytest.approx(1 / 3)


def test_a_search_ends_where_outputs_for_test_data_overflow(tmp_path):
    x, y, notes = np.random.default_rng(0).uniform(size=(12, 4, 4)), np.arange(12) % 2, []
    np.savez(tmp_path / "a.npz", x_train=x, x_test=np.full((2, 4, 4), 3e38), y_train=y, y_test=y[:2])
    text = SPEC.format(path="", outputs="classes").replace('images("")', f'arrays("{tmp_path / "a.npz"}")')
    watcher = SimpleNamespace(on_note=notes.append)
    result = runner.search(
        parse(text.replace("|> standardize", ""), {"search.epochs": 1}),
        device="cpu",
        out=tmp_path / "run",
        callbacks=[watcher],
    )
    assert set(result["test"].values()) == {None}
    assert "outputs for the test data are not finite: some of their numbers are too large" in notes
    with pytest.raises(RunError, match="outputs are not finite: numbers in the inputs are too large"):
        runner.evaluate(tmp_path / "run", device="cpu")
    assert "Predictions" not in {part.title for part in single(*read_runs([tmp_path / "run"])).sections}


def test_inputs_are_measured_by_the_folders_they_lie_in(run, tmp_path):
    """Folders of other names lie around those of the classes; the transforms are those of the run."""
    files = {f"new/{CLASSES[one]}/{copy}.png": image(one, [8, one, copy]) for one in (2, 0) for copy in range(3)}
    path = write_images(tmp_path, files)
    measured = runner.evaluate(run, device="cpu", inputs=[path / "new"])
    assert measured["accuracy"] == 1
    own = runner.evaluate(run, device="cpu", inputs=[run.parent / "data" / "test"])
    assert own == pytest.approx(runner.evaluate(run, device="cpu"))
    (path / "new" / "ant").rename(path / "new" / "bee")
    assert runner.evaluate(run, device="cpu", inputs=[str(path / "new")])["accuracy"] == 0.5


def test_inputs_in_an_array_have_numbers_of_classes(run, tmp_path):
    x = np.stack([np.asarray(image(one, [8, one])) for one in (0, 1, 2, 2)])
    np.savez(tmp_path / "new.npz", x_test=x, y_test=[0, 1, 2, 0])
    assert runner.evaluate(run, device="cpu", inputs=[tmp_path / "new.npz"])["accuracy"] == 0.75
    both = [tmp_path / "new.npz", run.parent / "data" / "test"]
    assert runner.evaluate(run, device="cpu", inputs=both)["accuracy"] == pytest.approx(15 / 16)


def test_inputs_far_from_the_training_images_are_told(run, tmp_path):
    told = []
    np.savez(tmp_path / "new.npz", x=np.full((2, 4, 4), 200.0), y=[0, 1])
    runner.evaluate(run, device="cpu", tell=told.append, inputs=[tmp_path / "new.npz"])
    assert len(told) == 1
    assert "are the units the same?" in told[0]


X = np.zeros((2, 4, 4))


@pytest.mark.parametrize(
    ("arrays", "line"),
    [
        ({"x": X}, r"`y` is missing: labels or targets stand beside the images"),
        ({"x": X, "y": [0]}, r"holds 2 images, but 1 labels or targets"),
        ({"x": X, "y": [0, 3]}, r"`y\[1\]` \(=3\) must be a class from 0 to 2"),
        ({"x": X, "y": [0.0, 1.0]}, r"`y` holds float64, expected integers"),
        ({"x": X[:0], "y": np.arange(0)}, r"`x` is empty"),
    ],
)
def test_labels_of_inputs_that_do_not_fit_are_one_clear_line(arrays, line, run, tmp_path):
    np.savez(tmp_path / "new.npz", **arrays)
    with pytest.raises(RunError, match=rf"^{tmp_path}/new\.npz: {line}"):
        runner.evaluate(run, device="cpu", inputs=[tmp_path / "new.npz"])


def test_an_image_of_no_class_is_one_clear_line(run, tmp_path):
    path = write_images(tmp_path, {"new/dog/0.png": image(0, 1)}) / "new"
    line = r"dog/0\.png: lies in no folder of a class that the run has learned: these are `ant`, `bee`, `cat`$"
    with pytest.raises(RunError, match=line):
        runner.evaluate(run, device="cpu", inputs=[path])


def test_folders_inside_that_of_a_class_are_of_it(run, tmp_path):
    """As `images` reads them: also where they are called as another class, or where a link leads there."""
    files = {f"{name}/{copy}.png": image(2, [8, copy]) for copy, name in enumerate(("in/cat/day", "in/cat/ant", "far"))}
    path = write_images(tmp_path, files)
    (path / "far" / "back").symlink_to(path)
    (path / "in" / "bee").symlink_to(path / "far")
    measured = runner.evaluate(run, device="cpu", inputs=path / "in")
    assert measured["accuracy"] == pytest.approx(2 / 3)  # only what lies in `bee` is called otherwise
    (path / "far").rename(path / "cat")
    assert runner.evaluate(run, device="cpu", inputs=[path / "cat"])["accuracy"] == 1
    assert runner.evaluate(run, device="cpu", inputs=[path / "cat" / "2.png"])["accuracy"] == 1


def test_a_list_of_inputs_holds_one(run):
    with pytest.raises(ValueError, match=r"`inputs` \(=\[\]\) must name at least one file or folder"):
        runner.evaluate(run, device="cpu", inputs=[])


def test_inputs_and_other_data_exclude_each_other(run):
    with pytest.raises(ValueError, match="`inputs` are measured in place of the spec's data"):
        runner.evaluate(run, {"data.path": "new"}, device="cpu", inputs=["new.npz"])


def test_targets_of_inputs_are_in_the_units_of_the_data(tmp_path):
    drawn = np.random.default_rng(0)
    x = drawn.normal(size=(60, 4, 4))
    y = 50 + 10 * x[:, 0, :2]
    np.savez(tmp_path / "data.npz", x_train=x[:40], y_train=y[:40], x_test=x[40:], y_test=y[40:])
    np.savez(tmp_path / "new.npz", x=x[40:], y=y[40:])
    np.savez(tmp_path / "one.npz", x=x[40:], y=y[40:, 0])
    text = SPEC.format(path="", outputs="classes").replace('images("")', f'arrays("{tmp_path / "data.npz"}")')
    spec = parse(text.replace("standardize\n", "standardize |> standardize(targets)\n"), {"search.epochs": 3})
    runner.search(spec, device="cpu", out=tmp_path / "run", objective="map")
    measured = runner.evaluate(tmp_path / "run", device="cpu", inputs=[tmp_path / "new.npz"])
    assert measured == pytest.approx(runner.evaluate(tmp_path / "run", device="cpu"))
    with pytest.raises(RunError, match=r"`y` has 1 targets per example, but the spec says 2$"):
        runner.evaluate(tmp_path / "run", device="cpu", inputs=[tmp_path / "one.npz"])
    picture = write_images(tmp_path, {"dog/0.png": image(0, 1)}) / "dog"
    with pytest.raises(RunError, match=r"an image has no targets: give an \.npz file with `x` and `y`$"):
        runner.evaluate(tmp_path / "run", device="cpu", inputs=[picture])
