"""Searches from beginning to end on what is not a chain of square maps: residual blocks that leave, and signals."""

from __future__ import annotations

from pathlib import Path

import pytest

import symdsl
from symdsl.runner.evaluate import evaluate
from symdsl.runner.structure import Structure
from symdsl.runs.summary import summary
from symdsl.spec import load

pytestmark = pytest.mark.usefixtures("fitted")

BLOCKS = """
data synthetic(size = 4, classes = 3, train = 48, test = 24) |> standardize
network blocks {
  input image(channels, 4, 4)
  layer l1: CONV(3) -> 2 |> relu
  residual {
    layer l2: F-FC + CONV(3) -> 3 |> relu
    layer l3: CONV(3) -> 2
  }
  residual {
    layer l4: CONV(3) -> 2
  }
  flatten
  layer h1: FC -> classes
}
search {
  epochs = 3
  every  = 1
  batch  = 16
}
"""
LINE = """
data synthetic(size = 4, classes = 3, train = 48, test = 24) |> standardize |> unroll
network line {
  input signal(channels, 16)
  lift mirror
  layer l1: GCONV(5) + CONV(5) + F-FC -> 2 stride 2 |> relu
  residual {
    layer l2: GCONV(3) + S-CONV(3) -> 2
  }
  project max
  flatten
  layer h1: FC -> classes
}
search {
  epochs = 2
  every  = 1
  batch  = 16
}
"""


@pytest.fixture
def first_block_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every evidence step finds the evidence higher without the first block alone."""

    def gains(self: Structure, *others: object) -> dict[str, float]:
        return {block.join: 1.0 if block.layers[-1] == "l3" else -1.0 for block in self.trainer.net.active_blocks()}

    monkeypatch.setattr(Structure, "_gains_without_blocks", gains)


@pytest.mark.usefixtures("first_block_leaves")
def test_a_block_that_leaves_is_gone_from_all_that_a_run_writes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = symdsl.search(symdsl.parse(BLOCKS), device="cpu", out=run)
    layers = {layer["name"]: layer for layer in result["layers"]}
    assert [name for name, layer in layers.items() if not layer["kept"]] == ["l2", "l3"]
    assert [layers[name]["chosen"] for name in ("l2", "l3")] == [None, None]
    learned = load(run / "learned.sym")
    names = [node.name for node in learned.facts.network.nodes]
    assert names == ["input", "l1", "l4", "residual", "flatten", "h1"]
    assert "1 block removed" in (run / "architecture.dot").read_text(encoding="utf-8")
    assert evaluate(run)["nll"] == pytest.approx(result["test"]["nll"], rel=1e-6)
    seeds = {layer["name"]: layer for layer in summary([result.content, result.content])["layers"]}
    assert (seeds["l3"]["chosen"], seeds["l3"]["kept"], seeds["l4"]["kept"]) == (None, [], ["CONV"])


def test_a_signal_is_learned_from_beginning_to_end(tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = symdsl.search(symdsl.parse(LINE), device="cpu", out=run)
    assert 0 <= result["test"]["accuracy"] <= 1
    assert "input signal(1, 16)" in (run / "learned.sym").read_text(encoding="utf-8")
    assert evaluate(run)["nll"] == pytest.approx(result["test"]["nll"], rel=1e-6)
