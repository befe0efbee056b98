"""The command that makes the gallery, on a small spec."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from shipped import ROOT

GALLERY = runpy.run_path(str(ROOT / "docs" / "gallery.py"))
TINY = """// What do a few images want?
// Not much.
data synthetic(size = 4, classes = 3, train = 32, test = 8) |> standardize

network tiny {
  input image(channels, 4, 4)
  layer l1: F-FC + CONV(3) -> width |> relu
  flatten
  layer out: FC -> classes
}

search {
  epochs = 9
}

profile cpu {
  search.epochs = 2
  search.every  = 1
}

let width = 2
"""


def gallery(folder: Path, *arguments: str) -> int:
    out = ["--runs", str(folder / "runs"), "--out", str(folder / "docs"), "--device", "cpu"]
    return int(GALLERY["main"]([*arguments, *out]))


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.sym"
    path.write_text(TINY)
    return path


def test_the_page_shows_picture_numbers_and_time_and_runs_are_kept(tiny: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.sym"
    missing.write_text(TINY.replace("synthetic(size = 4, classes = 3, train = 32, test = 8)", 'arrays("no.npz")'))
    assert gallery(tmp_path, str(tiny), str(missing)) == 3
    page = (tmp_path / "docs" / "gallery.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith("| [")]
    assert str(tiny) in row
    assert row.count("|") == 7
    assert "| 2 |" in row  # the epochs of the profile
    assert "What do a few images want? Not much." in page
    assert f"`symdsl search {tiny} --set profile=cpu`" in page
    (picture,) = (tmp_path / "docs" / "images" / "gallery").iterdir()
    assert f"(images/gallery/{picture.name})" in page
    assert picture.read_text().startswith("<?xml")
    assert "## Not run" in page
    assert "no.npz" in page.split("## Not run")[1]
    (result,) = (tmp_path / "runs").rglob("result.json")
    before = result.stat().st_mtime_ns
    assert gallery(tmp_path, str(tiny)) == 0
    assert result.stat().st_mtime_ns == before


def test_layers_in_a_row_that_became_the_same_are_named_once() -> None:
    chosen = {"l1": "F-FC", "l2": "CONV", "l3": "CONV", "l4": None, "l5": None, "l6": None, "h": "FC"}
    layers = [{"name": name, "chosen": kind} for name, kind in chosen.items()]
    assert list(GALLERY["_alike"](layers)) == ["l1 F-FC", "l2 to l3 CONV", "l4 to l6 removed", "h FC"]


def test_a_run_of_another_spec_is_not_taken_for_this_one(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gallery(tmp_path, str(tiny)) == 0
    assert gallery(tmp_path, str(tiny), "--set", "width=3") == 3
    assert "holds a run of another spec; delete it to run this one" in capsys.readouterr().err


def test_every_shipped_spec_but_the_libraries_is_in_it() -> None:
    found = {path.relative_to(ROOT / "specs").as_posix() for path in GALLERY["shipped"]()}
    assert {"starter.sym", "digits.sym", "paper/table1_digit.sym"} <= found
    assert not any("blocks/" in name for name in found)
