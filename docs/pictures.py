"""Draws the diagrams of the documentation: `python docs/pictures.py` writes an SVG beside each `docs/images/*.dot`."""

from __future__ import annotations

from pathlib import Path

from symdsl.render.image import render

if __name__ == "__main__":
    for source in (Path(__file__).parent / "images").glob("*.dot"):
        source.with_suffix(".svg").write_bytes(render(source.read_text(encoding="utf-8"), "svg"))
