from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner_specs import SMALL
from symdsl import runner
from symdsl.spec import parse


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished search."""
    return runner.search(parse(SMALL), device="cpu", out=tmp_path_factory.mktemp("searched") / "run").folder


@pytest.fixture(scope="session")
def again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with another seed."""
    return runner.search(parse(SMALL), device="cpu", out=tmp_path_factory.mktemp("again") / "run", seed=5).folder


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished baseline."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    return runner.search(parse(SMALL), device="cpu", out=folder, objective="map").folder


@pytest.fixture
def changed(searched: Path, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """A copy of the search with other values in its `result.json` and `run.json`, and without some files."""

    def make(result: dict[str, Any] | None = None, info: dict[str, Any] | None = None, without: tuple[str, ...] = ()):  # type: ignore[no-untyped-def]
        folder = tmp_path / "changed"
        shutil.copytree(searched, folder)
        for name, values in (("result.json", result), ("run.json", info)):
            content = json.loads((folder / name).read_text()) | (values or {})
            (folder / name).write_text(json.dumps(content))
        for name in without:
            (folder / name).unlink()
        return folder

    return make
