"""The documents: what they link to is there, and their Python runs."""

from __future__ import annotations

import doctest
import pydoc
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import symdsl
from shipped import ROOT
from symdsl.graph import content_hash

PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if "examples" not in page.parts)
MOST_WORDS, MOST_WORDS_OF_A_PAGE = 25_000, 3_000
"""Of all pages together, and of each but the reference of the language; code and tables count."""

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


def words(page: Path) -> int:
    """How many words `wc -w` counts in a page."""
    return len(page.read_text(encoding="utf-8").split())


def test_the_pages_together_can_be_read_in_a_day() -> None:
    assert sum(map(words, PAGES)) <= MOST_WORDS, "remove what is said twice or what no reader needs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_short(page: Path) -> None:
    assert words(page) <= MOST_WORDS_OF_A_PAGE or page.name == "language.md"


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


def test_the_stages_of_how_it_works_are_modules_or_functions() -> None:
    text = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    packages = "language|analysis|graph|lowering|evidence|runner|render"
    stages = re.findall(rf"`((?:{packages})(?:\.\w+)*)`", text)
    assert len(stages) > 8
    assert [name for name in stages if pydoc.locate(f"symdsl.{name}") is None] == []


def test_every_page_is_in_a_table_of_contents() -> None:
    docs = ROOT / "docs"
    listed = {docs / "index.md"}
    for page in docs.rglob("*.md"):
        for entries in re.findall(
            r"^```{toctree}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            for entry in re.findall(r"^[^:\s].*$", entries, re.MULTILINE):
                listed |= set(page.parent.glob(f"{entry}.md"))
    assert {page.name for page in set(PAGES) - listed} == set(), "add it to docs/index.md, under the caption that fits"


def blocks(document: str, language: str) -> list[str]:
    """The code in a language that a document has, in order."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like the project's, where searches of the specs in the README and in `using.md` take an epoch."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    for name in ("digits_angle.sym", "digits.sym"):
        text, changed = re.subn(r"epochs = \d+", "epochs = 1", (ROOT / "specs" / name).read_text())
        assert changed == 1
        (tmp_path / "specs" / name).write_text(text)
    return tmp_path


def test_the_spec_of_the_readme_is_the_one_that_it_runs() -> None:
    (shown,) = blocks("README.md", "sym")
    assert content_hash(symdsl.parse(shown).graph()) == content_hash(
        symdsl.load(ROOT / "specs/digits_angle.sym").graph()
    )


def test_the_python_of_the_readme_runs(short: Path) -> None:
    (block,) = blocks("README.md", "python")
    names: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), names)
    assert names["found"].mean.shape == names["found"].std.shape == (360, 1)


def test_the_python_about_results_runs(short: Path) -> None:
    symdsl.search(symdsl.load("specs/digits.sym"), device="cpu", out="runs/digits")
    names: dict[str, Any] = {"images": torch.rand(3, 1, 16, 16)}
    opened, predicted, _ = blocks("docs/using.md", "python")
    for block in (opened, predicted):
        exec(compile(block, "docs/using.md", "exec"), names)
    assert names["found"].probabilities.shape == (360, 10)
