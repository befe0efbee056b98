"""The specs that ship with the package, and one that has one of each."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
SPECS = (*sorted((ROOT / "specs").rglob("*.sym")), ROOT / "tests" / "fixtures" / "good" / "everything.sym")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
