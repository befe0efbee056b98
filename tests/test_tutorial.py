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
    shown = {command.split()[1] for command in COMMANDS if command.startswith("symdsl ")}
    assert shown == {"new", "check", "explain", "compile", "search", "show", "map", "eval"}
    assert shown <= set(main.list_commands(Context(main)))
    assert "error[E302]" in COMMANDS["symdsl check typo.sym"]
    assert COMMANDS["symdsl check quadrants.sym"] == ""
    assert {path.name for path in folder.iterdir()} == {"bin", "demo.sym", "typo.sym", "quadrants.sym"}


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
    learned = symdsl.parse(COMMANDS["cat runs/quadrants/digit/learned.sym"]).facts.network
    searched = symdsl.load(folder / "quadrants.sym").facts.network
    assert [(node.name, node.out_shape) for node in learned.nodes] == [
        (node.name, node.out_shape) for node in searched.nodes
    ]
    table = COMMANDS["symdsl search quadrants.sym --out runs/quadrants/digit"]
    assert re.findall(r"^ (l\d|h\d) ", table, re.MULTILINE) == [f"l{one}" for one in range(1, 8)] + ["h1", "h2"]


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert len(links) > 5
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
