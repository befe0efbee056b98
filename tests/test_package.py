"""The front door: public names, found when asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import symdsl
from processes import output_of
from shipped import ROOT
from symdsl import laplace, lowering, runner, spec


def test_every_public_name_is_there() -> None:
    assert all(getattr(symdsl, name) is not None for name in symdsl.__all__)
    assert set(dir(symdsl)) == set(symdsl.__all__)


def test_names_are_what_they_say() -> None:
    assert symdsl.load is spec.load
    assert symdsl.parse is spec.parse
    assert symdsl.compile is lowering.compile
    assert symdsl.search is runner.search
    assert symdsl.laplace is laplace
    assert symdsl.data.load.__module__ == "symdsl.data.loading"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module `symdsl` has no attribute `train`"):
        symdsl.train  # noqa: B018


def test_importing_the_package_loads_nothing_heavy(tmp_path: Path) -> None:
    heavy = "('torch', 'networkx', 'numpy', 'lark')"
    program = f"import sys, symdsl\nprint([name for name in {heavy} if name in sys.modules])"
    assert output_of(program, tmp_path) == "[]\n"


def test_every_file_that_names_the_version_names_this_one() -> None:
    assert json.loads((ROOT / "editors/vscode/package.json").read_text())["version"] == symdsl.__version__
    assert re.findall(r"^## (\d\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == symdsl.__version__


def test_the_citation_names_the_paper_and_the_licence() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert text.startswith("cff-version: 1.2.0\n")
    assert re.findall(r"^license: (\S+)", text, re.MULTILINE) == ["Apache-2.0"]
    assert "https://arxiv.org/abs/2310.06131" in text
