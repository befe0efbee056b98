"""A network as a drawing in Graphviz's language: one column, read from top to bottom, legible at any depth.

Shortcuts of residual blocks run beside it; a block that is the identity is a dashed line. The range of an average is a
fan for a rotation, arrows for translations, and a bar for scales and shears.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from symdsl.analysis.averages import range_words, with_ranges
from symdsl.analysis.facts import Average, Input, Join, Layer, Lift, Mean, Node, Pool, Project
from symdsl.analysis.joins import edges, emptied, without
from symdsl.graph import chain
from symdsl.render.cells import is_unlearned
from symdsl.render.colours import FAINT, INK, PAPER, QUIET, colour, ink_on
from symdsl.render.markup import cell, font, row, table, text
from symdsl.render.shares import Row, refuse_others, rows

if TYPE_CHECKING:
    import graphviz
    import networkx as nx

FONT, BOLD = "Helvetica", "Helvetica-Bold"  # <b> would shift the baseline
NAME_WIDTH, BAR_WIDTH, NUMBER_WIDTH, BAR_HEIGHT = 76, 150, 58, 9
WIDTH = NAME_WIDTH + BAR_WIDTH + NUMBER_WIDTH + 10  # with the padding of the three columns
SWATCH_WIDTH = 18

_HEADLINES: Mapping[str, Callable[[float], str]] = {
    "accuracy": lambda value: f"test accuracy {100 * value:.1f} %",
    "rmse": lambda value: f"test RMSE {value:.3g}",
    "r2": lambda value: f"R² {value:.3f}",
}
"""Texts of the test metrics in the title, for those that there are."""

FAN = "#8fb8de"
SCALE_WIDTH, SCALE_SHOWN = 40, 1.0
_ARROWS = {"translate_x": "\N{LEFT RIGHT ARROW}", "translate_y": "\N{UP DOWN ARROW}"}

OUTCOMES = {
    "laplace": "learned structure",
    "elbo": "learned by the variational bound",
    "map": "trained, structure not learned",
}


def architecture_dot(graph: nx.DiGraph[str], result: Mapping[str, Any] | None) -> str:
    """Return the drawing of a network as the text of a Graphviz digraph.

    Args:
        graph: the network.
        result: the parsed `result.json`, or None for a network that is only compiled.

    Raises:
        ValueError: `result` is not of this graph.
    """
    import graphviz

    nodes = tuple(with_ranges(node, found_ranges(result)) for node in chain(graph))
    shown = {node.name: rows(node, result) for node in nodes if isinstance(node, Layer)}
    refuse_others(shown, result)
    title = graph.graph["name"]
    drawing = graphviz.Digraph(name=text(title), graph_attr=_graph_attributes(_title(title, result)))
    drawing.attr("node", shape="plain", fontname=FONT, fontsize="11", fontcolor=INK)
    drawing.attr("edge", fontname=FONT, fontsize="9", fontcolor=QUIET, color=QUIET, arrowsize="0.6", weight="100")
    kept = {name: [each.name for each in layer if each.kept] for name, layer in shown.items()}
    left = without(nodes, emptied(nodes, kept))
    _draw_nodes(drawing, left, shown)
    _draw_edges(drawing, nodes, left)
    _draw_legend(drawing, len(left) - 1, [each for layer in shown.values() for each in layer])
    return str(drawing.source)


def found_ranges(result: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the learned ranges of a result, by `average.generator`; none where nothing was learned."""
    entries = (result or {}).get("averages", ())
    return {f"{one['name']}.{key}": value for one in entries for key, value in one["ranges"].items()}


def _graph_attributes(label: str) -> dict[str, str]:
    return {
        "label": f"<{label}>",
        "labelloc": "t",
        "fontname": FONT,
        "fontsize": "13",
        "fontcolor": INK,
        "bgcolor": PAPER,
        "nodesep": "0.1",
        "ranksep": "0.07",
        "pad": "0.1",
    }


def _title(name: str, result: Mapping[str, Any] | None) -> str:
    lines = [row(cell(font(text(name), face=BOLD), align="center"))]
    if result is not None:
        lines.append(row(cell(font(text(_outcome(result)), point_size=10), align="center")))
    return table(*lines, cellpadding=1)


def _outcome(result: Mapping[str, Any]) -> str:
    test = result["test"]
    measured = "".join(f", {written(test[key])}" for key, written in _HEADLINES.items() if test.get(key) is not None)
    several = f", mean of {result['finished']} seeds" if "finished" in result else ""
    outcome = "trained, no prior learned" if is_unlearned(result) else OUTCOMES[result["objective"]]
    return outcome + several + measured


def _draw_nodes(drawing: graphviz.Digraph, nodes: tuple[Node, ...], shown: Mapping[str, tuple[Row, ...]]) -> None:
    for number, node in enumerate(nodes):
        box = _layer(node, shown[node.name]) if isinstance(node, Layer) else _plain(node)
        drawing.node(f"n{number}", label=f"<{box}>", tooltip=text(node.name))
        if isinstance(node, Average) and "rotation" in dict(node.ranges):
            _draw_fan(drawing, f"n{number}", dict(node.ranges)["rotation"])


def _draw_fan(drawing: graphviz.Digraph, beside: str, angle: float) -> None:
    """Draw the angles that a map is turned by as a fan around straight up, beside a node."""
    if angle <= 90:
        before, middle = (FAINT, (90 - angle) / 360), (FAN, 2 * angle / 360)
    else:
        before, middle = (FAN, (90 + angle) / 360), (FAINT, 1 - 2 * angle / 360)
    parts = [(ground, share) for ground, share in (before, middle) if share > 1e-3]
    rest = 1 - sum(share for _, share in parts)
    parts += [(before[0], rest)] if rest > 1e-3 else []
    wedges = ":".join(f"{ground};{share:.4f}" for ground, share in parts)
    look = {"style": "wedged", "fillcolor": wedges} if angle < 180 else {"style": "filled", "fillcolor": parts[0][0]}
    # without outlines: Graphviz begins the first wedge at three o'clock, where the part around it would be cut in two
    size = {"shape": "circle", "width": "0.3", "height": "0.3", "fixedsize": "true", "color": "transparent"}
    drawing.node(f"{beside}-fan", label="", tooltip=f"turns within {range_words('rotation', angle)}", **size, **look)
    with drawing.subgraph() as level:
        level.attr(rank="same")
        level.edge(beside, f"{beside}-fan", style="invis", weight="1")


def _draw_edges(drawing: graphviz.Digraph, nodes: tuple[Node, ...], left: tuple[Node, ...]) -> None:
    """Draw an edge between nodes that are left, dashed where blocks between them are not, and one past each block."""
    places = {node.name: place for place, node in enumerate(nodes)}
    numbers = {node.name: f"n{number}" for number, node in enumerate(left)}
    for before, after in pairwise(left):
        between = nodes[places[before.name] + 1 : places[after.name]]
        removed = sum(isinstance(node, Join) for node in between)
        size = str(before.out_shape).replace("x", "\u00d7")
        blocks = "1 block" if removed == 1 else f"{removed} blocks"
        label = f"  {size}" + (f", {blocks} removed" if removed else "")
        style = {"style": "dashed"} if removed else {}
        drawing.edge(numbers[before.name], numbers[after.name], label=label, **style)
    for since, join in edges(left)[len(left) - 1 :]:
        drawing.edge(f"{numbers[since]}:e", f"{numbers[join]}:e", weight="1")


def _plain(node: Node) -> str:
    if isinstance(node, Average):  # arrows as long as its moves, a bar for each scale, and the numbers
        head = row(cell(font(f"average over {node.samples} copies", point_size=10), colspan=2))
        lines = [
            row(
                cell(_range(name, value)),
                cell(font(f"{name} \N{PLUS-MINUS SIGN}{range_words(name, value)}", point_size=9)),
            )
            for name, value in node.ranges
        ]
        return table(head, *lines, border=1, color=QUIET, cellpadding=2, style="rounded")
    return table(
        row(cell(font(text(_words(node)), point_size=10))), border=1, color=QUIET, cellpadding=3, style="rounded"
    )


def _range(name: str, value: float) -> str:
    if name == "rotation":
        return font("\N{CLOCKWISE OPEN CIRCLE ARROW}", point_size=10)
    if name.startswith("translate"):
        return font(_ARROWS[name], point_size=f"{8 + 12 * min(1.0, 2 * value):.0f}")
    return _bar(min(1.0, value / SCALE_SHOWN), SCALE_WIDTH, FAN)


def _words(node: Node) -> str:
    if isinstance(node, Mean):
        return "mean of the copies"
    if isinstance(node, Input):
        return node.name
    if isinstance(node, Join):
        return "+"
    if isinstance(node, Lift):
        return f"lift {node.out_shape.group}"
    if isinstance(node, Project | Pool):
        return f"{type(node).__name__.lower()} {node.reduction}"
    return type(node).__name__.lower()


def _layer(layer: Layer, shown: tuple[Row, ...]) -> str:
    compared = len(shown) > 1 or shown[0].share is None
    body = tuple(map(_candidate, shown)) if compared else ()
    return table(_header(layer, shown), *body, border=1, color=INK, cellpadding=2)


def _header(layer: Layer, shown: tuple[Row, ...]) -> str:
    chosen = next((each for each in shown if each.chosen), None)
    ground = FAINT if chosen is None else colour(chosen.kind)
    kind = "" if chosen is None else chosen.name
    ink = ink_on(ground)
    left = font(text(f"{layer.name}  {kind}".rstrip()), face=BOLD, color=ink)
    channels = f"{layer.in_shape.channels} to {layer.out_shape.channels}" + ("" if layer.in_shape.flat else " channels")
    strided = [f"stride {layer.stride}"] if layer.stride > 1 else []
    right = font(text(", ".join([channels, *strided, *layer.activations])), point_size=9, color=ink)
    line = table(row(cell(left), cell(right, align="right")), cellpadding=1)
    return row(cell(line, colspan=3 if shown[0].share is not None else 4, bgcolor=ground, align="center", width=WIDTH))


def _candidate(shown: Row) -> str:
    ink = INK if shown.kept else QUIET
    face = BOLD if shown.chosen else FONT
    number = f"{shown.parameters:,}" if shown.share is None else f"{100 * shown.share:.0f} %"
    return row(
        cell(font(text(shown.name), point_size=10, color=ink, face=face), width=NAME_WIDTH),
        *_middle(shown),
        cell(font(text(number), point_size=10, color=ink), width=NUMBER_WIDTH, align="right"),
    )


def _middle(shown: Row) -> tuple[str, ...]:
    if shown.share is not None:
        return (cell(_bar(shown.share, BAR_WIDTH, colour(shown.kind)), width=BAR_WIDTH),)
    keeps = font(text("keeps " + (", ".join(shown.preserves) or "nothing")), point_size=9, color=QUIET)
    return _swatch(shown.kind), cell(keeps, width=BAR_WIDTH - SWATCH_WIDTH)


def _bar(share: float, width: int, ground: str) -> str:
    filled = round(width * share)
    parts = [(filled, ground), (width - filled, PAPER)]
    return table(row(*(_block(one, shown) for one, shown in parts if one > 0)), border=1, color=QUIET)


def _block(width: int, ground: str) -> str:
    return cell("", width=width, height=BAR_HEIGHT, fixedsize="true", bgcolor=ground)


def _draw_legend(drawing: graphviz.Digraph, last: int, shown: list[Row]) -> None:
    kinds = dict.fromkeys(each.kind for each in shown)
    swatches = [
        part for kind in kinds for part in (_swatch(kind), cell(font(f"\u2002{text(kind)}\u2003", point_size=9)))
    ]
    lines = [row(cell(table(row(*swatches), cellpadding=1)))]
    notes = ["number: parameters"]
    if any(each.share is not None for each in shown):
        notes = ["bar: share of the layer\u2019s effective parameters", "bold: the chosen type; grey: not kept"]
    lines += [row(cell(font(note, point_size=9, color=QUIET))) for note in notes]
    drawing.node("legend", label=f"<{table(*lines, cellpadding=1)}>", tooltip="legend")
    drawing.edge(f"n{last}", "legend", style="invis")


def _swatch(kind: str) -> str:
    size = {"width": SWATCH_WIDTH + 2, "height": BAR_HEIGHT + 2, "fixedsize": "true"}
    return cell(table(row(_block(SWATCH_WIDTH, colour(kind))), border=1, color=QUIET, **size))
