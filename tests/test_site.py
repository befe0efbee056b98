"""The site: it builds without a warning, and what is wrong in a page is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import symdsl
from shipped import ROOT

pytest.importorskip("sphinx", reason="needs the extra `docs`")

DOCS = ROOT / "docs"
WRONG = """# A page

[no page](nowhere.md), [no heading](#nowhere), $\\left( x$, $\\lambbda$

```{toctree}
lost
```
"""
API = """# Python

```{eval-rst}
.. autofunction:: symdsl.load
.. autofunction:: symdsl.nn.Path.tensors_without_words
```
"""


def built(source: Path, scratch: Path) -> subprocess.CompletedProcess[str]:
    """What a strict build of a folder says, with the configuration of the site."""
    program = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-c",
        str(DOCS),
        "-d",
        str(scratch / "trees"),
    ]
    environment = {"PYTHONPATH": str(Path(symdsl.__file__).parents[1]), "PATH": "/usr/bin:/bin", "NO_COLOR": "1"}
    return subprocess.run(
        [*program, str(source), str(scratch / "site")], env=environment, capture_output=True, text=True, check=False
    )


def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    done = built(DOCS, tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)
    assert "<math" in (tmp_path / "site" / "how-it-works.html").read_text()
    assert "symdsl.search" in (tmp_path / "site" / "api.html").read_text()
    assert (tmp_path / "site" / "mathematics.html").read_text().count("<math") > 150
    assert "Contributing" in (tmp_path / "site" / "contributing.html").read_text()


def test_what_is_wrong_in_a_page_fails_the_build(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "index.md").write_text(WRONG)
    (source / "api.md").write_text(API)
    done = built(source, tmp_path)
    assert done.returncode == 1
    for fault in (
        "'nowhere.md'",
        "'nowhere'",
        "no formula: \\left( x",
        "no formula: \\lambbda: a command is unknown",
        "nonexisting document 'lost'",
        "document isn't included in any toctree",
        "`symdsl.search` is public, but not described",
        "`symdsl.data.load` is public, but not described",
        "tensors_without_words",
    ):
        assert fault in done.stderr, fault
    assert "`symdsl.load` is public" not in done.stderr


def test_a_public_name_needs_a_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS)
    from importlib import import_module

    undocumented = import_module("conf").undocumented
    assert list(undocumented("symdsl.Spec")) == []
    monkeypatch.setattr(symdsl.Spec.graph, "__doc__", None)
    monkeypatch.setattr(symdsl.load, "__doc__", None)
    assert list(undocumented("symdsl.Spec")) == ["symdsl.Spec.graph"]
    assert list(undocumented("symdsl.load")) == ["symdsl.load"]
