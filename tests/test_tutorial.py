"""The tutorial: what is cheap to run is run, and prints what is written."""

from __future__ import annotations

import doctest
import re
import runpy
from pathlib import Path

import pytest
from click import Context

import symdsl
from shipped import ROOT
from symdsl.cli import main

SCRIPT = runpy.run_path(str(ROOT / "docs" / "tutorial.py"))
TEXT = (ROOT / "docs" / "tutorial.md").read_text()
COMMANDS = dict(SCRIPT["commands"](TEXT))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the cheap commands have been run, and printed what is written."""
    folder = tmp_path_factory.mktemp("tutorial")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(symdsl.__file__).parents[1]))
        now = SCRIPT["refreshed"](TEXT, folder)
    assert now == TEXT, "a command prints something else: run `python docs/tutorial.py`"
    return folder


def test_it_shows_all_that_a_newcomer_needs(folder: Path) -> None:
    shown = set(re.findall(r"^symdsl (\w+)", "\n".join(COMMANDS), re.MULTILINE))
    assert shown == {"new", "check", "compile", "search", "show", "map", "eval", "report", "predict", "export"}
    assert shown <= set(main.list_commands(Context(main)))
    assert "error[E302]" in COMMANDS["symdsl check typo.sym"]
    assert COMMANDS["symdsl check photos.sym"] == ""
    specs = {"demo.sym", "typo.sym", "angle.sym", "turned.sym", "fan.sym", "photos.sym"}
    assert {path.name for path in folder.iterdir()} == specs | {"bin", "photos.py", "photos", "plain.py"}


def test_no_command_failed_when_it_was_written() -> None:
    outputs = {command: output for command, output in COMMANDS.items() if command != "symdsl check typo.sym"}
    assert [command for command, output in outputs.items() if re.search(r"error|Traceback", output)] == []
    assert all(COMMANDS[command] for command in COMMANDS if re.match(r"symdsl (search|map|predict|eval)", command))


def test_python_prints_what_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (block,) = re.findall(r"^```pycon\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest(block, {}, "tutorial", "docs/tutorial.md", 0)
    assert len(test.examples) > 3
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_cell_of_the_notebook_is_a_spec() -> None:
    (cell,) = re.findall(r"^```\n%%sym small width=2\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert symdsl.parse(cell, {"width": "2"}).facts.network.nodes[1].out_shape.channels == 2


def test_what_was_learned_is_of_the_network_that_was_searched(folder: Path) -> None:
    layers = [node.name for node in symdsl.load(folder / "demo.sym").facts.network.nodes if hasattr(node, "stride")]
    table = COMMANDS["symdsl search demo.sym --out runs/demo"]
    assert re.findall(r"^ (l\d|h\d) ", table, re.MULTILINE) == layers


def test_long_logs_are_shortened() -> None:
    epochs = "".join(f"epoch {number}/9  loss\n" for number in range(1, 10))
    assert SCRIPT["_shortened"](f"folder\n{epochs}end\n") == "folder\nepoch 1/9  loss\n...\nepoch 9/9  loss\nend\n"
