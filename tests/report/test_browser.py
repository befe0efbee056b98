"""The page in a real browser."""

from __future__ import annotations

import json
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


BROWSERS_OWN = "not an origin"
"""Initiator, in a net log, of requests that no page asked for."""


def opened(page: Path, folder: Path) -> tuple[str, list[str], set[str]]:
    """What stands in the page once its scripts have run, what it said on the console, and what it requested."""
    assert CHROMIUM is not None
    log = folder.with_suffix(".json")
    options = [f"--user-data-dir={folder}", "--virtual-time-budget=20000", f"--log-net-log={log}"]
    options += ["--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run(
        [CHROMIUM, *QUIET, *options, page.as_uri()], capture_output=True, text=True, timeout=600, check=True
    )
    told = (event.get("params", {}) for event in json.loads(log.read_text(encoding="utf-8"))["events"])
    asked = {one["url"] for one in told if "url" in one and one.get("initiator", BROWSERS_OWN) != BROWSERS_OWN}
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line], asked


def test_every_chart_is_drawn_without_a_word_and_nothing_is_fetched(
    searched: Path, again: Path, tmp_path: Path
) -> None:
    for name, paths in (("one", [searched]), ("several", [searched, again])):
        page = tmp_path / f"{name}.html"
        page.write_text(report_html(paths), encoding="utf-8")
        body, console, requests = opened(page, tmp_path / name)
        assert (console, requests) == ([], set())
        asked = re.findall(r'<div class="chart[^"]*" id="(chart-\d+)"', body)
        assert len(asked) == len(set(asked)) > 2
        assert len(re.findall(r'class="plot-container', body)) == len(asked)


def test_the_test_sees_what_goes_wrong_in_a_page(tmp_path: Path) -> None:
    rule = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'">"""
    page = tmp_path / "wrong.html"
    page.write_text(f'<!doctype html>{rule}<img src="https://example.org/x.png"><script>nothing()</script>')
    _, console, _ = opened(page, tmp_path / "wrong")
    assert any("nothing is not defined" in line for line in console)
    assert any("example.org" in line for line in console)
    page.write_text('<!doctype html><img src="http://localhost:48999/x.png">')
    assert opened(page, tmp_path / "asking")[2] == {"http://localhost:48999/x.png"}
