"""The documents: what they link to is there, and how a spec travels is what happens."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

from shipped import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "editors").rglob("*.md")])


def links(document: Path) -> list[tuple[Path, str]]:
    """File and anchor of every link that stays in the project."""
    found = re.findall(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)", document.read_text(encoding="utf-8"))
    return [(document.parent / path if path else document, anchor) for path, anchor in found]


def anchors(document: Path) -> set[str]:
    """Of its headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(document: Path) -> None:
    missing = [
        f"{path}#{anchor}"
        for path, anchor in links(document)
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path))
    ]
    assert missing == []


def test_there_are_links_to_follow() -> None:
    followed = [link for document in DOCUMENTS for link in links(document)]
    assert len(followed) > 40
    assert any(anchor for _, anchor in followed)


def test_how_it_works_is_how_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    attempted = 0
    for block in re.findall(r"^```pycon\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        test = doctest.DocTestParser().get_doctest(block, names, "how-it-works", "docs/how-it-works.md", 0)
        found = doctest.DocTestRunner().run(test, clear_globs=False)
        assert found.failed == 0
        attempted, names = attempted + found.attempted, test.globs
    assert attempted > 15
