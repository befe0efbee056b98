"""The page in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from symdsl.report import report_html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the page in")


def opened(page: Path, folder: Path) -> tuple[str, list[str]]:
    """What stands in the page once its scripts have run, and what it said on the console."""
    assert CHROMIUM is not None
    options = [f"--user-data-dir={folder}", "--virtual-time-budget=20000", "--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run(
        [CHROMIUM, *QUIET, *options, page.as_uri()], capture_output=True, text=True, timeout=600, check=True
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_every_chart_is_drawn_without_a_word_and_nothing_is_fetched(
    searched: Path, again: Path, tmp_path: Path
) -> None:
    for name, paths in (("one", [searched]), ("several", [searched, again])):
        page = tmp_path / f"{name}.html"
        page.write_text(report_html(paths), encoding="utf-8")
        body, console = opened(page, tmp_path / name)
        assert console == []
        asked = re.findall(r'<div class="chart[^"]*" id="(chart-\d+)"', body)
        assert len(asked) == len(set(asked)) > 2
        assert len(re.findall(r'class="plot-container', body)) == len(asked)


def test_the_test_sees_what_goes_wrong_in_a_page(tmp_path: Path) -> None:
    rule = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'">"""
    page = tmp_path / "wrong.html"
    page.write_text(f'<!doctype html>{rule}<img src="https://example.org/x.png"><script>nothing()</script>')
    _, console = opened(page, tmp_path / "wrong")
    assert any("nothing is not defined" in line for line in console)
    assert any("example.org" in line for line in console)
