"""Parts of the benchmarks on which published figures rest."""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

from symdsl.progress import Callback
from symdsl.runner import search
from symdsl.spec import Spec, parse

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
TEXT = """data synthetic(size = 4, classes = 3, train = 16, test = 8) |> standardize
network tiny {
  input image(channels, 4, 4)
  flatten
  layer h1: FC -> classes
}
search { epochs = 2 batch = 8 }"""


def benchmark(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(name)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("kept", monkeypatch)


def spec(**overrides: object) -> Spec:
    return parse(TEXT, {name.replace("_", "."): value for name, value in overrides.items()})


def test_a_finished_run_is_read_and_not_run_again(kept: ModuleType, tmp_path: Path) -> None:
    first = kept.result_of(spec(), tmp_path / "run", "map")
    written = (tmp_path / "run" / "result.json").stat().st_mtime_ns
    assert kept.result_of(spec(), tmp_path / "run", "map") == first
    assert (tmp_path / "run" / "result.json").stat().st_mtime_ns == written


class Interrupting(Callback):
    """Stops after the first epoch."""

    def on_epoch(self, record: object) -> None:
        raise KeyboardInterrupt


def test_an_interrupted_run_goes_on(kept: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        search(spec(), "cpu", tmp_path / "run", objective="map", callbacks=[Interrupting()])
    found = kept.result_of(spec(), tmp_path / "run", "map")
    assert found["test"] == kept.result_of(spec(), tmp_path / "whole", "map")["test"]
    epochs = [json.loads(line)["epoch"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert epochs == [1, 2]


def test_the_run_of_another_spec_or_objective_is_no_result(kept: ModuleType, tmp_path: Path) -> None:
    kept.result_of(spec(), tmp_path / "run", "map")
    with pytest.raises(SystemExit, match=r"run: holds a run of another spec; delete it or give another --out"):
        kept.result_of(spec(search_epochs=4), tmp_path / "run", "map")
    with pytest.raises(SystemExit, match=r"run: holds a run by map, not laplace; give another --out"):
        kept.result_of(spec(), tmp_path / "run", None)


def test_a_setting_is_a_key_and_a_value(kept: ModuleType) -> None:
    assert kept.setting("search.epochs=[a = b]") == ("search.epochs", "[a = b]")
    for text in ("width", "width=", "=3"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"`{text}` must have the form K=V"):
            kept.setting(text)


def test_a_large_factor_is_timed_as_vectors_beside_its_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(benchmark("layers", monkeypatch).large())
    assert row.ours().effective["w"] == pytest.approx(512, rel=0.01)
