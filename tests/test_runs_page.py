"""The page about runs: its example for W&B does what it says, with a stand-in for the package."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import symdsl
from shipped import ROOT
from symdsl.progress import Callback
from symdsl.runner.loggers import LOGGERS

TEXT = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
SPEC = """
data synthetic(size = 4, classes = 3, train = 32, test = 8) |> standardize

network small {
  input image(channels, 4, 4)
  layer l1: F-FC + CONV(3) -> 2 |> relu
  flatten
  layer h1: FC -> classes
}

search {
  start = relaxed
  epochs = 2
  every  = 1
}
"""


class Recorded:
    """What a run of W&B was given."""

    def __init__(self) -> None:
        self.named: dict[str, Any] = {}
        self.steps: dict[str, str] = {}
        self.logged: list[Any] = []
        self.summary: dict[str, Any] = {}
        self.ended: list[int] = []

    def init(self, **named: Any) -> Recorded:
        self.named = named
        return self

    def define_metric(self, name: str, step_metric: str) -> None:
        self.steps[name] = step_metric

    def log(self, record: Any) -> None:
        self.logged.append(record)

    def finish(self, exit_code: int = 0) -> None:
        self.ended.append(exit_code)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """A stand-in for W&B, in a folder where the example finds its spec."""
    found = Recorded()
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=found.init))  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    Path("specs").mkdir()
    Path("specs/digits.sym").write_text(SPEC)
    return found


def run_the_example() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    exec(compile(example, "docs/runs.md", "exec"), {})


def test_the_example_logs_a_search(recorded: Recorded) -> None:
    run_the_example()
    folder = recorded.named["dir"]
    assert recorded.named["name"] == folder.name
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert recorded.steps == {"*": "epoch"}
    assert [record["epoch"] for record in recorded.logged] == [1, 2]
    assert [record["shares"] for record in recorded.logged] == [line["shares"] for line in lines]
    assert recorded.summary["accuracy"] == json.loads((folder / "result.json").read_text())["test"]["accuracy"]
    assert recorded.ended == [0]


def test_the_example_says_when_a_search_fails(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(record: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(recorded, "log", full)
    with pytest.raises(OSError, match="no room"):
        run_the_example()
    assert recorded.ended == [1]


def test_the_page_names_every_method_and_logger() -> None:
    methods = {name for name in vars(Callback) if name.startswith("on_")}
    assert set(re.findall(r"^\| `(on_\w+)\(", TEXT, re.MULTILINE)) == methods
    assert all(f"--log {name}" in TEXT for name in LOGGERS)
    assert symdsl.Callback is Callback
