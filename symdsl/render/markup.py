"""Graphviz's HTML-like labels, in the few elements the drawing needs."""

from __future__ import annotations

from html import escape

NOT_IN_XML = dict.fromkeys(range(32), "?") | {0xFFFE: "?", 0xFFFF: "?"} | dict.fromkeys(range(0xD800, 0xE000), "?")


def text(value: object) -> str:
    """Escape text for a Graphviz label; characters that XML forbids become `?`."""
    return escape(str(value).translate(NOT_IN_XML)).replace("\\", "&#92;")


def tag(name: str, *content: str, **attributes: object) -> str:
    """Return an element with its attributes in the order given."""
    written = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{name}{written}>{''.join(content)}</{name}>"


def font(content: str, **attributes: object) -> str:
    """Return content in another `face`, size (`point_size`) or `color`."""
    return tag("font", content, **{key.replace("_", "-"): value for key, value in attributes.items()})


def cell(*content: str, **attributes: object) -> str:
    """Return a cell of a row; content is aligned left by default."""
    return tag("td", *content, **({"align": "left"} | attributes))


def row(*cells: str) -> str:
    """Return a row of a table."""
    return tag("tr", *cells)


def table(*table_rows: str, **attributes: object) -> str:
    """Return a table, by default without borders, spacing or padding."""
    plain = {"border": 0, "cellborder": 0, "cellspacing": 0, "cellpadding": 0}
    return tag("table", *table_rows, **(plain | attributes))
