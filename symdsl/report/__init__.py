"""One HTML page about a run, or about several side by side, that needs nothing but itself to be read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from symdsl.report.reading import without_damaged

__all__ = ["report_html", "without_damaged"]


def report_html(paths: Sequence[Path]) -> str:
    """Return a page about the runs in some folders: everything about one run, or a comparison of several.

    It holds its charts, pictures and scripts, at most 6 MB for a run of usual size, and fetches nothing.

    Args:
        paths: run folders, or folders of several seeds or of a sweep, which stand for the runs in them.

    Raises:
        RunError: a folder holds no run, a file is damaged, or the packages of the extra `report` are missing; see
            `without_damaged`.
    """
    from symdsl.report.comparison import comparison
    from symdsl.report.page import page
    from symdsl.report.reading import read_runs
    from symdsl.report.single import single

    runs = read_runs(paths)
    return page(single(runs[0]) if len(runs) == 1 else comparison(runs))
