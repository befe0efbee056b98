"""Averages over transformed copies: the nodes they make, what is refused, and what they cost and keep."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from analysis.specs import codes, found, framed, items
from symdsl.analysis.averages import averages, copies, insensitive_to
from symdsl.analysis.facts import Average, Join, Mean, Node
from symdsl.graph import build, chain, from_json, memory, multiply_adds, strict_symmetry, to_json
from symdsl.graph.summary import summary_json
from symdsl.language.formatter import format_text
from symdsl.render.table import _totals
from symdsl.spec import check_text, load, parse

GOOD = Path(__file__).parent.parent / "fixtures" / "good" / "averages.sym"
NESTED = """average affine(rotation = 5, samples = 3) {
  layer a: CONV(3) -> 2 |> relu
  average affine(translate_x = 0, shear = 0.1, fixed, samples = 4) { layer b: CONV(3) -> 2 |> relu }
  flatten
  layer c: FC -> 5
}"""


def nodes(lines: str) -> tuple[Node, ...]:
    return items(lines).facts.network.nodes


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"average.shear": 1.0}, "`ranges` names `average.shear`, but the network has no such range"),
        ({"average.rotation": math.nan}, r"`ranges\['average.rotation'\]` \(=nan\) must be from 0 to 180"),
        ({"average.rotation": -1.0}, r"`ranges\['average.rotation'\]` \(=-1.0\) must be from 0 to 180"),
    ],
)
def test_ranges_of_a_pruned_spec_are_those_that_it_may_have(ranges: dict[str, float], message: str) -> None:
    spec = items("average affine(rotation = 5) {\nlayer l1: CONV(3) -> 4\n}\nflatten")
    with pytest.raises(ValueError, match=message):
        spec.pruned({}, ranges)


def test_an_average_is_two_nodes_around_its_body() -> None:
    bodies = {begin.name: [node.name for node in body] for begin, body in averages(nodes(NESTED))}
    assert bodies == {
        "average-2": ["b", "average-2:mean"],
        "average": ["a", "average-2", "b", "average-2:mean", "flatten", "c", "average:mean"],
    }
    first, second = (node for node in nodes(NESTED) if isinstance(node, Average))
    assert (first.ranges, first.samples, first.fixed) == ((("rotation", 5.0),), 3, False)
    assert (second.ranges, second.samples, second.fixed) == ((("translate_x", 0.0), ("shear", 0.1)), 4, True)


def test_layers_see_the_product_of_the_copies_around_them() -> None:
    seen = copies(nodes(NESTED))
    assert [seen[name] for name in ("input", "average", "a", "average-2", "b", "average-2:mean", "c", "h")] == [
        *(1, 3, 3, 12, 12, 3, 3, 1)
    ]
    assert seen["average:mean"] == 1


def test_costs_count_every_copy() -> None:
    once, often = (
        build(items(f"average affine(rotation = 5, samples = {samples}) {{ flatten layer a: FC -> 5 }}").facts)
        for samples in (1, 7)
    )
    assert multiply_adds(once) == 64 * 5 + 5 * 10
    assert multiply_adds(often) == 7 * 64 * 5 + 5 * 10
    seen = 64 + 64 + 2 * 5  # by the body alone, of one copy and example: two maps, and a layer without activation
    assert memory(often, 2).activations - memory(once, 2).activations == 4 * 2 * 6 * (seen - 5)


def test_the_graph_is_kept_in_json_and_in_the_text() -> None:
    spec = load(GOOD)
    graph = build(spec.facts)
    assert chain(from_json(to_json(graph))) == chain(graph)
    for text in (spec.text(), spec.pruned({})):
        assert build(parse(text).facts).edges == graph.edges


def test_learned_ranges_are_those_that_the_text_begins_with() -> None:
    text = items(NESTED).pruned({}, {"average.rotation": 172.33333, "average-2.shear": 0.0})
    again = [node for node in parse(text).facts.network.nodes if isinstance(node, Average)]
    assert [dict(node.ranges) for node in again] == [{"rotation": 172.3}, {"translate_x": 0.0, "shear": 0.0}]
    assert [node.fixed for node in again] == [False, True]


def test_a_range_that_hardly_moved_is_written_as_it_is() -> None:
    text = items(NESTED).pruned({}, {"average.rotation": 5.01})
    first, _ = (node for node in parse(text).facts.network.nodes if isinstance(node, Average))
    assert dict(first.ranges) == {"rotation": 5.01}


def test_ranges_that_did_not_move_are_written_as_they_were_stated() -> None:
    stated = items(NESTED.replace("rotation = 5", "rotation = 157.25").replace("shear = 0.1", "shear = 0.1234567"))
    read = {"average.rotation": 157.25, "average-2.shear": 0.12345670163631439}
    again = [node for node in parse(stated.pruned({}, read)).facts.network.nodes if isinstance(node, Average)]
    assert [dict(node.ranges) for node in again] == [{"rotation": 157.25}, {"translate_x": 0.0, "shear": 0.1234567}]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("average affine(samples = 3) { layer: CONV(3) -> 1 }\nflatten", "E212"),
        ("average affine { layer: CONV(3) -> 1 }\nflatten", "E212"),
        ("average affine(rotation = 3) { }\nflatten", "E212"),
        ("average affine(rotation = 3) { flatten }", "E212"),
        ("lift p4\naverage affine(rotation = 3) { layer: GCONV(3) -> 1 }\nproject max\nflatten", "E212"),
        ("flatten\naverage affine(rotation = 3) { layer: FC -> 3 }", "E204"),
        ("average affin(rotation = 3) { layer: CONV(3) -> 1 }\nflatten", "E304"),
        ("average affine(rotate = 3) { layer: CONV(3) -> 1 }\nflatten", "E303"),
        ("average affine(rotation = 3, samples = 0) { layer: CONV(3) -> 1 }\nflatten", "E402"),
        ("average affine(rotation = 181) { layer: CONV(3) -> 1 }\nflatten", "E402"),
        ("average affine(rotation = 3) { input image(1, 8, 8) layer: CONV(3) -> 1 }\nflatten", "E211"),
        ("residual { average affine(rotation = 3) { layer: CONV(3) -> 1 } }\nflatten", "E209"),
    ],
)
def test_what_cannot_be_averaged_is_refused_once(lines: str, code: str) -> None:
    assert codes(framed(f"\ninput image(1, 8, 8)\n{lines}\nlayer h: FC -> classes")) == [code]


def test_a_line_is_refused() -> None:
    data = "data given(channels = 1, height = 1, width = 8, classes = 2)\n"
    network = "network n {\ninput signal(1, 8)\naverage affine(rotation = 3) { flatten layer: FC -> 2 }\n}"
    assert "E212" in [one.code for one in found(data + network)]


def test_a_block_for_any_map_may_hold_an_average() -> None:
    text = "block b(w) { average affine(rotation = 3) { layer: CONV(3) -> w } average affine(shear = 1) { } }"
    assert codes(framed(text)) == ["E212"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("rotation = 30", "rotations within 30°"),
        ("rotation = 180", "all rotations"),
        (
            "translate_x = 0.1, scale_y = 0.2",
            "translations along rows within 10 % and scale along columns within a logarithm of 0.2",
        ),
        ("rotation = 0", "nothing"),
    ],
)
def test_the_summary_says_what_it_is_roughly_invariant_to(arguments: str, words: str) -> None:
    spec = items(f"average affine({arguments}) {{ flatten layer a: FC -> 5 |> relu }}")
    (begin,) = (begin for begin, _ in averages(spec.facts.network.nodes))
    assert insensitive_to(begin) == words
    graph = build(spec.facts)
    assert f"roughly invariant to {words}" in "\n".join(_totals(graph))
    assert summary_json(graph, 1)["averages"][0]["insensitive_to"] == words
    assert summary_json(graph, 1)["averages"][0]["layers"] == ["a"]


def symmetry(arguments: str) -> str:
    body = "lift p4 layer a: GCONV(3) -> 2 |> tanh project mean pool mean flatten"
    return str(strict_symmetry(build(items(f"average affine({arguments}) {{ {body} }}").facts)))


def test_turns_commute_with_rotations_alone() -> None:
    assert symmetry("rotation = 20") == "invariant to quarter turns; not to translations: `average` transforms the map"
    assert symmetry("rotation = 20, scale_x = 0.1").startswith(
        "not invariant to translations: `average` transforms the map; not"
    )
    assert isinstance(nodes(NESTED)[-2], Mean)


def test_the_missing_lift_is_put_on_a_line_of_its_own_inside_the_innermost_average() -> None:
    text = (
        "data digits\n\nnetwork n {\n  input image(1, 8, 8)\n"
        "  average affine(rotation = 5) {\n    layer l1: CONV(3) -> 2\n"
        "    average affine(shear = 0.1) {\n      layer l2: GCONV(3) -> 2\n"
        "      project max\n    }\n  }\n  flatten\n  layer h: FC -> classes\n}\n"
    )
    assert format_text(text) == text
    fix = found(text)[0].fix
    assert fix is not None
    lines = text.splitlines(keepends=True)
    line = lines[fix.span.line - 1]
    lines[fix.span.line - 1] = line[: fix.span.column - 1] + fix.content + line[fix.span.column - 1 :]
    mended = "".join(lines)
    assert not found(mended)
    assert format_text(mended) == mended


def test_an_average_whose_layers_are_all_removed_is_left_out_of_the_pruned_spec() -> None:
    spec = items(
        "layer a: CONV(3) -> 2\n"
        "average affine(shear = 0.1) { residual { layer b: CONV(3) -> 2 } }\n"
        "residual {\n"
        "  average affine(rotation = 5) {\n"
        "    average affine(shear = 0.1) { residual { layer c: CONV(3) -> 2 } }\n"
        "  }\n"
        "  layer d: CONV(3) -> 2\n"
        "}\n"
        "average affine(rotation = 5) { residual { layer e: CONV(3) -> 2 }\n  flatten }"
    )
    left = parse(spec.pruned({"b": set(), "c": set(), "e": set()}))
    assert [node.name for node in left.facts.network.nodes] == ["input", "a", "d", "residual", "flatten", "h"]
    assert [node.since for node in left.facts.network.nodes if isinstance(node, Join)] == ["a"]
    kept = parse(spec.pruned({"b": set(), "c": set()})).facts.network.nodes
    assert [node.ranges for node in kept if isinstance(node, Average)] == [(("rotation", 5.0),)]


def test_a_lift_goes_after_an_average_which_needs_a_plain_map() -> None:
    text = (
        "data digits\nnetwork n {\n  input image(1, 8, 8)\n  average affine(rotation = 5) {\n    layer: CONV(3) -> 4\n"
        "  }\n  layer: GCONV(3) -> 4\n  project max\n  flatten\n  layer h: FC -> classes\n}\n"
    )
    missing, project = check_text(text, "x", None)
    assert missing.help == "add `lift p4` after the `average` on line 4, or drop this candidate"
    assert project.help == "add `lift p4` after the `average`, or drop this line"
    assert missing.fix is not None
    lines = text.split("\n")
    lines[missing.fix.span.line - 1] += missing.fix.content
    assert check_text("\n".join(lines), "x", None) == ()


def test_a_line_is_lifted_to_its_mirror_image() -> None:
    text = "data digits |> unroll\nnetwork n {\n  input signal(1, 64)\n  layer: CONV(3) -> 4\n  project max\n}\n"
    assert "add `lift mirror` after `input`, or drop this line" in [one.help for one in check_text(text, "x", None)]
