"""Pictures and tables of a network and of what was learned about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from symdsl.render.cells import table_text
from symdsl.render.data import data_tables
from symdsl.render.page import result_html, result_markdown, seeds_html
from symdsl.render.runs import runs_table
from symdsl.render.seeds import seeds_table
from symdsl.render.table import compile_table, result_table

if TYPE_CHECKING:
    import networkx as nx

Format = Literal["dot", "svg", "png", "pdf"]

__all__ = [
    "Format",
    "architecture",
    "compile_table",
    "data_tables",
    "mean_architecture",
    "result_html",
    "result_markdown",
    "result_table",
    "runs_table",
    "seeds_html",
    "seeds_table",
    "table_text",
]


def architecture(graph: nx.DiGraph[str], result: Mapping[str, Any] | None, format: Format) -> bytes:
    """Draw a network: a box for each layer, coloured by its type, with each candidate's share.

    The same input gives the same bytes.

    Args:
        graph: the network.
        result: what a search found (the parsed `result.json`), or None to show each candidate's parameter count.
        format: `dot` (UTF-8 text), `svg`, `png` or `pdf`.

    Raises:
        ValueError: `format` is unknown, or `result` is not of this graph.
        RunError: Graphviz cannot draw.
    """
    from symdsl.render.dot import architecture_dot
    from symdsl.render.image import render

    return render(architecture_dot(graph, result), format)


def mean_architecture(graph: nx.DiGraph[str], content: Mapping[str, Any], format: Format) -> bytes:
    """Draw a network with mean shares over several seeds, as `architecture` does.

    Args:
        graph: the network.
        content: the parsed `seeds.json`.
        format: as in `architecture`.
    """
    test = {name.removeprefix("test."): found["mean"] for name, found in content["metrics"].items() if "test." in name}
    return architecture(graph, {**content, "test": test}, format)
