"""The command that runs the papers' tables, on a few made-up images."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from data.files import pixels, write_idx, write_images
from shipped import ROOT
from symdsl.diagnostics import INTERRUPTED, RunError
from symdsl.progress import Callback, Metrics
from symdsl.runner.tasks import Task
from symdsl.spec import load

TINY = ("data.n=8", "data.test=6", "width=1", "size=16", "search.epochs=2", "search.every=1", "search.burnin=0")


class Stopping(Callback):
    """Presses Ctrl-C after the first epoch."""

    def on_epoch(self, metrics: Metrics) -> None:
        raise KeyboardInterrupt


class Paper:
    """The command, run in this process and not in the processes of its own that take seconds to start.

    Attributes:
        tasks: what has been run.
        broken: names of folders whose runs fail.
        stopped: names of folders whose runs are interrupted.
        ended: whether what was running was told to end.
    """

    def __init__(self, module: Any, folder: Path) -> None:
        self.module, self.folder = module, folder
        self.tasks: list[Task] = []
        self.broken: set[str] = set()
        self.stopped: set[str] = set()
        self.ended = False

    def __call__(self, *arguments: str, changes: Sequence[str] = TINY) -> tuple[int, str]:
        """Status and page."""
        self.tasks.clear()
        sets = [word for one in changes for word in ("--set", one)]
        out = ("--out", str(self.folder / "out"))
        status = self.module.main([*arguments, *out, "--profile", "cpu", "--root", str(self.folder), *sets])
        page = self.folder / "out" / f"{arguments[0]}-cpu.md"
        return status, page.read_text() if page.exists() else ""

    @property
    def ran(self) -> set[str]:
        return {Path(task.folder).name for task in self.tasks}

    def run(self, task: Task, callback: object) -> None:
        name = Path(task.folder).name
        self.tasks.append(task)
        if name in self.broken:
            raise RunError("the numbers\nwent wrong")
        task.run(Stopping() if name in self.stopped else callback)

    def end(self) -> None:
        self.ended = True

    def path(self, run: str, table: str = "table1") -> Path:
        return self.folder / "out" / f"{table}-cpu" / run


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Paper]:
    write_idx(tmp_path / "MNIST" / "raw", 10)
    with monkeypatch.context() as patched:
        patched.syspath_prepend(str(ROOT / "benchmarks"))
        module = importlib.import_module("paper")
        paper = Paper(module, tmp_path)
        patched.setattr(module, "Children", lambda threads: paper)
        yield paper


def cells(page: str, row: str, objective: str) -> list[str]:
    line = next(line for line in page.splitlines() if line.startswith(f"| {row} | {objective} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_stands_beside_the_published_one(paper: Paper, capsys: pytest.CaptureFixture[str]) -> None:
    status, page = paper("table1", "--rows", "digit_conv", "position_learned", "--seeds", "3", "4")
    assert status == 0
    assert capsys.readouterr().out == page
    assert "8 training and 6 test images of 1x16x16, 2 epochs (profile cpu: " in page
    row, objective, seeds, accuracy, published = cells(page, "digit, CONV", "map")[:5]
    result = json.loads((paper.path("digit_conv-map-3") / "result.json").read_text())
    assert (row, objective, seeds, published) == ("digit, CONV", "map", "3 4", "99.38")
    other = json.loads((paper.path("digit_conv-map-4") / "result.json").read_text())
    mean = 50 * (result["test"]["accuracy"] + other["test"]["accuracy"])
    assert accuracy.startswith(f"{mean:.2f} ± ")
    learned = cells(page, "position, F-FC + CONV", "laplace")
    assert learned[2] == "3 4"
    assert re.fullmatch(r"\d+\.\d\d ± \d+\.\d\d", learned[3])
    assert learned[4] == "99.00"
    assert sum(map(int, re.findall(r"(?:F-FC|CONV) (\d+)", learned[9]))) == 2 * 8
    assert "(table1-cpu/position_learned-laplace-4/architecture.svg)" in page
    assert paper.path("position_learned-laplace-4/architecture.svg").is_file()


def test_map_may_run_with_seeds_of_its_own(paper: Paper) -> None:
    _, page = paper("table1", "--rows", "digit_conv", "--seeds", "3", "4", "--map-seeds", "4")
    assert paper.ran == {"digit_conv-map-4", "digit_conv-laplace-3", "digit_conv-laplace-4"}
    assert cells(page, "digit, CONV", "map")[2] == "4"


def test_the_table_says_in_how_many_rows_learned_priors_are_better(paper: Paper) -> None:
    _, page = paper("table1", "--rows", "digit_conv", "position_conv", "--seeds", "3")
    losses = {
        (task, way): json.loads((paper.path(f"{task}_conv-{way}-3") / "result.json").read_text())["test"]["nll"]
        for task in ("digit", "position")
        for way in ("map", "laplace")
    }
    worse = [f"{task}_conv" for task in ("digit", "position") if losses[task, "laplace"] >= losses[task, "map"]]
    ending = f", not in {', '.join(worse)}" if worse else ""
    assert f"lower than by MAP in {2 - len(worse)} of 2 rows{ending}.\n" in page


def test_what_is_finished_is_not_run_again(paper: Paper) -> None:
    _, page = paper("table1", "--rows", "digit_conv", "--seeds", "3")
    assert paper.ran == {"digit_conv-map-3", "digit_conv-laplace-3"}
    assert paper("table1", "--rows", "digit_conv", "--seeds", "3") == (0, page)
    assert paper.ran == set()


def test_a_row_that_fails_is_reported_and_tried_again(paper: Paper) -> None:
    paper.broken = {"digit_conv-map-3"}
    status, page = paper("table1", "--rows", "digit_conv", "--seeds", "3")
    assert status == 1
    assert cells(page, "digit, CONV", "map")[3] == "failed"
    assert "- digit_conv, map failed: seed 3: the numbers went wrong\n" in page
    assert re.fullmatch(r"\d+\.\d\d", cells(page, "digit, CONV", "laplace")[3])
    paper.broken = set()
    status, page = paper("table1", "--rows", "digit_conv", "--seeds", "3")
    assert (status, paper.ran) == (0, {"digit_conv-map-3"})
    assert "failed" not in page


def test_what_was_interrupted_goes_on(paper: Paper) -> None:
    paper.stopped = {"digit_conv-map-3"}
    arguments = ("table1", "--rows", "digit_conv", "--seeds", "3", "--objectives", "map")
    assert paper(*arguments) == (INTERRUPTED, "")
    assert paper.ended
    begun = json.loads((paper.path("digit_conv-map-3") / "run.json").read_text())["started"]
    paper.stopped = set()
    assert paper(*arguments)[0] == 0
    info = json.loads((paper.path("digit_conv-map-3") / "run.json").read_text())
    assert info["started"] == begun


def test_what_left_no_checkpoint_begins_anew(paper: Paper) -> None:
    folder = paper.path("digit_conv-map-3")
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    assert paper("table1", "--rows", "digit_conv", "--seeds", "3", "--objectives", "map")[0] == 0
    assert paper.ran == {"digit_conv-map-3"}
    assert (folder / "result.json").exists()


def test_a_run_at_another_scale_is_not_taken_for_this_one(paper: Paper) -> None:
    arguments = ("table1", "--rows", "digit_conv", "--seeds", "3", "--objectives", "map")
    paper(*arguments)
    status, page = paper(*arguments, changes=[*TINY, "search.epochs=3"])
    assert status == 1
    assert "holds a run of another spec; delete it or give another --out" in page


def test_photographs_stand_in_for_the_published_files(paper: Paper, tmp_path: Path) -> None:
    image = Image.fromarray(pixels(32, 32, 3))
    files = {f"{part}/{name}/{n}.jpg": image for part in ("train", "test") for name in ("a", "b") for n in range(4)}
    folder = write_images(tmp_path / "photographs", files)
    status, page = paper("table2", "--rows", "conv", "--objectives", "laplace", "--cifar-images", str(folder))
    assert status == 0, page
    assert f'images("{folder}")' in (paper.path("conv-laplace-711", "table2") / "spec.sym").read_text()
    missing = str(tmp_path / "nowhere")
    status, page = paper("table2", "--rows", "conv", "--objectives", "laplace", "--cifar-images", missing)
    assert status == 1
    assert f"- conv, laplace failed: there is no folder `{missing}`" in page


def test_rows_are_listed_with_what_they_cost(paper: Paper, capsys: pytest.CaptureFixture[str]) -> None:
    assert paper.module.main(["table2", "--list"]) == 0
    names = re.findall(r"^\| (\w+) \| [\d,]+ \|", capsys.readouterr().out, re.MULTILINE)
    assert sorted(names) == sorted(row.name for row in paper.module.TABLES["table2"])
    assert names[-1] == "fc_conv"
    with pytest.raises(SystemExit, match="2"):
        paper.module.main(["table2", "--rows", "convv"])
    assert "table2 has no row `convv`; there are fc, conv," in capsys.readouterr().err


def test_every_row_has_a_spec_with_both_profiles(paper: Paper) -> None:
    rows = [row for rows in paper.module.TABLES.values() for row in rows]
    for row in rows:
        changed = {load(ROOT / "specs" / "paper" / f"{row.spec}.sym", {"profile": name}).profile for name in PROFILES}
        assert {profile.name for profile in changed if profile} == set(PROFILES)


PROFILES = ("paper", "cpu")
