"""The list of the runs below a folder."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from symdsl.diagnostics import RunError
from symdsl.render import runs_table, table_text
from symdsl.render.runs import time_text
from symdsl.runs import RunFolder
from symdsl.runs.listing import Listed, listed

TEST = {"accuracy": 0.9, "nll": 0.25, "ece": 0.01}


def result(test: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": 1,
        "spec": "digits",
        "objective": "laplace",
        "seed": 1,
        "device": "cpu",
        "parameters": 10,
        "epochs": 2,
        "wall_s": {"total": 4.0, "training": 3.0, "evidence": 1.0},
        "train": test,
        "test": test,
        "neg_log_evidence_per_example": 0.5,
        "layers": [],
    }


def begun(path: Path, hour: int, seed: int = 1) -> RunFolder:
    run = RunFolder.create(path)
    now = datetime(2026, 1, 1, hour, tzinfo=UTC)
    run.begin(spec="digits", objective="laplace", epochs=2, seed=seed, device="cpu", command=[], dataset="d", now=now)
    return run


def epoch(run: RunFolder, number: int, **more: float) -> None:
    run.append_metrics({"epoch": number, "loss": 1.0, "wall_s": 1.5, **more})


def finished(path: Path, hour: int, test: dict[str, Any]) -> None:
    with begun(path, hour) as run:
        epoch(run, 2)
        run.write_json("result.json", result(test))
        run.set_status("finished", datetime.now(UTC))


def text(found: list[Listed]) -> str:
    return table_text(runs_table([one.content() for one in found]))


def test_runs_are_listed_with_what_became_of_them(tmp_path: Path) -> None:
    finished(tmp_path / "a" / "done", 1, TEST)
    with begun(tmp_path / "a" / "cut_off", 2, seed=7) as run:
        run.save_checkpoint({"epoch": 1}, b"")
        epoch(run, 1, neg_log_evidence_per_example=0.75)
        epoch(run, 2)
    with begun(tmp_path / "b" / "broken", 3) as run:
        run.set_status("failed", datetime.now(UTC), "no room")
    going_on = begun(tmp_path / "b" / "live", 4)
    going_on.save_checkpoint({"epoch": 0}, b"")
    found = listed(tmp_path)
    going_on.close()
    assert [(one.folder.name, one.status, one.resumable) for one in found] == [
        ("live", "running", False),
        ("broken", "failed", False),  # it left no checkpoint
        ("cut_off", "interrupted", True),
        ("done", "finished", False),
    ]
    _, broken, cut_off, done = found
    assert broken.reason == "no room"
    assert (cut_off.seed, cut_off.epoch, cut_off.epochs, cut_off.wall_s) == (7, 2, 2, 3.0)
    assert (cut_off.neg_log_evidence_per_example, cut_off.accuracy) == (0.75, None)
    assert (done.accuracy, done.nll, done.wall_s) == (0.9, 0.25, 4.0)
    shown = text(found)
    assert "90.00 %" in shown
    assert "interrupted, resumable" in shown
    assert "broken: no room" in shown
    assert shown.endswith("`symdsl search --resume RUN` continues a run that is resumable.\n")
    assert "RMSE" not in shown
    assert "R²" not in shown


def test_a_regression_has_an_error_and_no_accuracy(tmp_path: Path) -> None:
    finished(tmp_path / "line", 1, {"nll": 0.25, "rmse": 0.125, "r2": 0.75})
    found = listed(tmp_path)
    assert (found[0].accuracy, found[0].rmse, found[0].r2) == (None, 0.125, 0.75)
    assert "RMSE" in text(found)
    assert "0.125" in text(found)


def test_a_damaged_run_stops_no_list(tmp_path: Path) -> None:
    finished(tmp_path / "good", 1, TEST)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_text("{")
    good, bad = listed(tmp_path)
    assert (good.status, bad.status) == ("finished", "damaged")
    assert "bad: run.json: damaged, it is not a JSON object" in text([bad])
    assert json.dumps(bad.content())


def test_a_finished_run_that_lost_its_metrics_has_all_its_epochs(tmp_path: Path) -> None:
    finished(tmp_path / "run", 1, TEST)
    (tmp_path / "run" / "metrics.jsonl").unlink()
    assert [one.epoch for one in listed(tmp_path / "run")] == [2]


def test_a_reason_that_names_the_folder_names_it_once(tmp_path: Path) -> None:
    with begun(tmp_path / "run", 1) as run:
        run.set_status("failed", datetime.now(UTC), f"{tmp_path / 'run'}: cannot be used")
    assert "run: cannot be used" in text(listed(tmp_path)).replace(f"{tmp_path}/", "")


def test_a_damaged_line_of_metrics_does_not_make_the_run_damaged(tmp_path: Path) -> None:
    finished(tmp_path / "run", 1, TEST)
    (tmp_path / "run" / "metrics.jsonl").write_text('{"epoch": "x"\n{"epoch": 2}\n')
    assert [(one.status, one.nll) for one in listed(tmp_path)] == [("finished", TEST["nll"])]


def test_a_folder_that_is_a_run_is_listed_itself(tmp_path: Path) -> None:
    finished(tmp_path / "run", 1, TEST)
    assert [one.folder for one in listed(tmp_path / "run")] == [tmp_path / "run"]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="none: no such folder"):
        listed(tmp_path / "none")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(7.26, "7.3 s"), (59.97, "1 min 0 s"), (125.0, "2 min 5 s"), (3 * 3600 + 240.0, "3 h 4 min")],
)
def test_time_is_said_as_a_person_says_it(seconds: float, said: str) -> None:
    assert time_text(seconds) == said


def test_runs_by_way_of_links_are_listed_once(tmp_path: Path) -> None:
    finished(tmp_path / "scratch" / "a", 8, TEST)
    here = tmp_path / "here"
    here.mkdir()
    (here / "a").symlink_to(tmp_path / "scratch" / "a")
    (here / "again").symlink_to(here)
    assert [one.folder for one in listed(here)] == [here / "a"]


def test_a_run_with_a_number_for_its_beginning_stops_no_list(tmp_path: Path) -> None:
    for name in ("good", "odd"):
        finished(tmp_path / name, 1, TEST)
    info = json.loads((tmp_path / "odd" / "run.json").read_text())
    (tmp_path / "odd" / "run.json").write_text(json.dumps(info | {"started": 5}))
    assert {one.folder.name: one.started for one in listed(tmp_path)}["odd"] == 5  # type: ignore[comparison-overlap]


def test_a_run_whose_files_were_changed_stops_no_list(tmp_path: Path) -> None:
    finished(tmp_path / "good", 1, TEST)
    finished(tmp_path / "odd", 1, TEST)
    (tmp_path / "odd" / "metrics.jsonl").write_text('{"epoch": 1, "wall_s": "a"}\n')
    assert sorted(one.status for one in listed(tmp_path)) == ["damaged", "finished"]
