"""Residual blocks: the graph they make, what is refused, and the text of a network that has lost some of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from analysis.specs import codes, found, framed, items
from symdsl.analysis.facts import Join, Node
from symdsl.analysis.joins import emptied, joins, without
from symdsl.catalog.networks import ACTIVATIONS, AWAY_FROM_ZERO
from symdsl.graph import build, chain
from symdsl.spec import load, parse

GOOD = Path(__file__).parent.parent / "fixtures" / "good" / "residuals.sym"
NESTED = """layer l1: CONV(3) -> 4 |> relu
residual {
  residual { layer: CONV(3) -> 4 }
  layer: CONV(1) + CONV(3) -> 4
}
residual { layer: CONV(3) -> 6 |> relu layer: CONV(3) -> 4 }
flatten"""


def nodes(lines: str) -> tuple[Node, ...]:
    return items(lines).facts.network.nodes


def bodies(found: tuple[Node, ...]) -> dict[str, tuple[str, list[str]]]:
    """By name of a block: what it reads, and the nodes of its body."""
    return {join.name: (join.since, [node.name for node in body]) for join, body in joins(found)}


def test_a_block_is_a_fork_and_a_join() -> None:
    found = nodes(NESTED)
    assert bodies(found) == {
        "residual-2": ("l1", ["l2"]),
        "residual": ("l1", ["l2", "residual-2", "l3"]),
        "residual-3": ("residual", ["l4", "l5"]),
    }
    graph = build(items(NESTED).facts)
    assert chain(graph) == found
    assert set(graph.predecessors("residual")) == {"l1", "l3"}
    assert set(graph.successors("l1")) == {"l2", "residual-2", "residual"}
    join = next(node for node in found if isinstance(node, Join))
    assert join.in_shape == join.out_shape == found[1].out_shape


def test_a_block_that_reads_the_input_begins_there() -> None:
    assert bodies(nodes("residual { layer: CONV(3) -> 1 }\nflatten")) == {"residual": ("input", ["l1"])}


@pytest.mark.parametrize(("before", "last"), [("wide", "4"), ("4", "wide")])
def test_channels_that_are_not_known_are_not_compared(before: str, last: str) -> None:
    body = f"layer: CONV(3) -> {before}\nresidual {{ layer: CONV(3) -> {last} }}"
    text = f"input image(1, 8, 8)\n{body}\nflatten\nlayer h: FC -> classes"
    assert codes(framed(text)) == ["E301"]


def test_an_empty_residual_at_the_end_of_another_is_one_error() -> None:
    text = "input image(1, 8, 8)\nresidual { residual { } }\nflatten\nlayer h: FC -> classes"
    assert [one.message for one in found(framed(text))] == ["a `residual` has no layer"]


def test_the_use_that_ends_a_body_with_other_channels_is_named() -> None:
    blocks = "block b(w) { layer: CONV(3) -> w }\ninput image(1, 8, 8)\nlayer: CONV(3) -> 4\n"
    (one,) = found(framed(f"{blocks}residual {{\n  use b(4)\n  use b(5) as wide\n}}\nflatten\nlayer h: FC -> classes"))
    assert one.code == "E209"
    assert [place.line.strip() for place in one.notes] == ["residual {", "use b(5) as wide"]


@pytest.mark.parametrize("body", ["layer: CONV(3) -> 4 |> sigmoid", "residual { layer: CONV(3) -> 4 }"])
def test_the_use_that_ends_a_body_wrongly_is_named(body: str) -> None:
    text = f"block b {{ {body} }}\ninput image(1, 8, 8)\nlayer: CONV(3) -> 4\nresidual {{\n  use b as last\n}}\n"
    (one,) = found(framed(f"{text}flatten\nlayer h: FC -> classes"))
    assert [place.line.strip() for place in one.notes] == ["residual {", "use b as last"]


def test_layers_of_blocks_are_named_after_the_use_around_them() -> None:
    text = "block b { residual { layer: CONV(3) -> 1 layer last: CONV(1) -> 1 } }"
    spec = parse(framed(f"{text}\ninput image(1, 8, 8)\nuse b\nuse b as x\nflatten\nlayer h: FC -> classes"))
    assert [node.name for node in spec.facts.network.layers] == [*("b1/l1", "b1/last", "x/l1", "x/last", "h")]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "repeat [] as i { layer: CONV(3) -> i }",
        "layer: CONV(3) -> 5",
        "layer: CONV(3) -> 1 stride 2",
        "lift p4",
        "pool max",
        "flatten",
        "layer: CONV(3) -> 1 project max",
        "layer: CONV(3) -> 1 residual { layer: CONV(3) -> 1 }",
        *(f"layer: CONV(3) -> 1 |> {name}" for name in sorted(AWAY_FROM_ZERO)),
    ],
)
def test_a_body_that_does_not_keep_the_map_is_refused_once(body: str) -> None:
    text = f"input image(1, 8, 8)\nresidual {{ {body} }}\nlayer: CONV(3) -> 2 stride 2\nflatten\nlayer h: FC -> classes"
    assert codes(framed(text)) == ["E209"]


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS) - AWAY_FROM_ZERO))
def test_a_body_may_end_with_what_is_zero_at_zero(name: str) -> None:
    items(f"residual {{ layer: CONV(3) -> 1 |> {name} }}\nflatten")


@pytest.mark.parametrize(
    "body", ["layer: CNV(3) -> 1", "use nothing", "repeat nothing as i { layer: FC -> i }", "layer: CONV(3) -> n"]
)
def test_another_error_in_a_body_says_nothing_of_the_block(body: str) -> None:
    text = f"input image(1, 8, 8)\nresidual {{ {body} }}\nlayer: CONV(3) -> 2\nflatten\nlayer h: FC -> classes"
    assert codes(framed(text)) != []
    assert "E209" not in codes(framed(text))


def test_a_block_for_any_map_says_what_it_can() -> None:
    assert codes(framed("block b(w) { residual { layer: FC -> w } }")) == []
    assert codes(framed("block b(w) { residual { layer: FC -> w stride 2 } residual { } }")) == ["E209"]


def test_strides_in_a_block_in_use_are_named_with_the_use() -> None:
    text = "block b { layer: CONV(3) -> 1 stride 2 }\ninput image(1, 8, 8)\nresidual { use b }\nflatten\n"
    assert codes(framed(f"{text}layer h: FC -> classes")) == ["E209"]


# ---------------------------------------------------------------- removed blocks


def test_blocks_whose_last_layer_keeps_nothing_are_the_identity() -> None:
    found = nodes(NESTED)
    assert emptied(found, {"l2": [], "l4": [], "l3": ["CONV(1)"]}) == {"residual-2"}
    assert emptied(found, {"l3": []}) == {"residual"}


@pytest.mark.parametrize(
    ("removed", "left"),
    [
        ({"residual"}, {"residual-3": ("l1", ["l4", "l5"])}),
        ({"residual-2"}, {"residual": ("l1", ["l3"]), "residual-3": ("residual", ["l4", "l5"])}),
        ({"residual-3"}, {"residual-2": ("l1", ["l2"]), "residual": ("l1", ["l2", "residual-2", "l3"])}),
        ({"residual", "residual-2", "residual-3"}, {}),
    ],
)
def test_what_is_left_reads_what_the_removed_blocks_read(
    removed: set[str], left: dict[str, tuple[str, list[str]]]
) -> None:
    found = without(nodes(NESTED), removed)
    assert bodies(found) == left
    for before, after in pairwise(found):
        assert before.out_shape == after.in_shape  # type: ignore[union-attr]


def test_the_text_of_a_network_that_lost_a_block_has_no_trace_of_it() -> None:
    spec = items(NESTED)
    again = parse(spec.pruned({"l2": set(), "l3": {"CONV(1)"}}))
    assert bodies(again.facts.network.nodes) == {"residual": ("l1", ["l3"]), "residual-2": ("residual", ["l4", "l5"])}
    assert parse(spec.pruned({"l3": set(), "l2": set(), "l4": set(), "l5": set()})).facts.network.nodes[2].name == (
        "flatten"
    )


@pytest.mark.parametrize("keep", [{"l1": set()}, {"l2": set(), "l4": set()}, {"l3": {"FC"}}])
def test_only_the_last_layer_of_a_block_may_keep_nothing(keep: dict[str, set[str]]) -> None:
    with pytest.raises(ValueError, match="must be some of"):
        items(NESTED).pruned(keep)


def test_the_text_says_the_same_as_the_spec() -> None:
    spec = load(GOOD)
    for text in (spec.text(), spec.pruned({})):
        assert build(parse(text).facts).edges == build(spec.facts).edges
