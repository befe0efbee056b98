"""What is said to be preserved is, exactly, and nothing else: of kinds, of random networks, of every shipped spec."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.factory import SEARCH
from limits import (
    assert_layer_breaks,
    assert_layer_follows,
    assert_statement,
    clear,
    follows,
    movable,
    narrowed,
    placed,
    relaxed,
)
from oracles.groups import ELEMENTS
from oracles.records import Chain
from sites import FORMS, candidates, sites
from symdsl import nn
from symdsl.analysis.facts import Candidate, Data, Facts, Network, Shape, Step, Value
from symdsl.graph import Symmetry, build, strict_symmetry
from symdsl.kinds import Site
from symdsl.spec import load

ROOT = Path(__file__).parent.parent
WHOLE = [path for path in sorted((ROOT / "specs").rglob("*.sym")) if path.parent.name != "blocks"]
WHOLE += [ROOT / "tests" / "fixtures" / "good" / "groups.sym"]


@st.composite
def layers(draw: st.DrawFn, form: str, others: int) -> tuple[Site, list[Candidate]]:
    """A map, a candidate of a kind, and up to so many of any other."""
    site = draw(sites(form=form))
    first = draw(candidates(site, form=form))
    more = draw(st.lists(candidates(site), max_size=others, unique_by=lambda one: one.name))
    return site, [first, *(one for one in more if one.name != first.name)]


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=50, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_candidate_follows_what_it_says_and_nothing_else(form: str, data: st.DataObject) -> None:
    site, (one,) = data.draw(layers(form, others=0))
    module = relaxed(site, [one])
    assert_layer_follows(module, site, one.preserves)
    for word in movable(site.reads):
        if not follows(one.preserves, [word]):
            assert_layer_breaks(module, site, word)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_layer_is_strict_once_the_paths_that_break_a_symmetry_are_zero(form: str, data: st.DataObject) -> None:
    site, found = data.draw(layers(form, others=3))
    kept = found[0].preserves
    others = [one for one in found if not follows(one.preserves, kept)]
    module = relaxed(site, found)
    for word in movable(site.reads):
        if follows(kept, [word]) and any(not follows(one.preserves, [word]) for one in others):
            assert_layer_breaks(module, site, word)
    clear(module, [one.name for one in others])
    assert_layer_follows(module, site, kept)


@st.composite
def branches(draw: st.DrawFn, shape: Shape) -> tuple[tuple[Candidate, ...], int, str]:
    """A layer of the body of a residual block."""
    kernels = (3, 5) if min(shape.height, shape.width) > 1 else (1,)
    site = Site(shape, shape)
    found = draw(st.lists(candidates(site, kernels), min_size=1, max_size=2, unique_by=lambda one: one.name))
    return tuple(found), shape.channels, "tanh"


@st.composite
def networks(draw: st.DrawFn) -> Facts:
    """Lift, some strided layers, residual blocks, and any of the ways to end.

    Kernels of 1 are left out where a larger one fits: they follow any permutation of the pixels, more than
    is said of them.
    """
    group = draw(st.sampled_from(sorted(ELEMENTS)))
    side = draw(st.sampled_from([4, 6, 8, 9]))
    chain = Chain(draw(st.integers(1, 2)), side, draw(st.sampled_from([side, side, 4])))
    chain = chain.lift(group) if group != "trivial" else chain
    for _ in range(draw(st.integers(1, 3))):
        fitting = [s for s in (1, 2, 3) if chain.shape.height % s == chain.shape.width % s == 0]
        stride = draw(st.sampled_from(fitting))
        out = attrs.evolve(
            chain.shape, channels=2, height=chain.shape.height // stride, width=chain.shape.width // stride
        )
        site = Site(chain.shape, out)
        kernels = (3, 5) if min(site.reads.height, site.reads.width) > 1 else (1,)
        found = draw(st.lists(candidates(site, kernels), min_size=1, max_size=3, unique_by=lambda one: one.name))
        chain.layer(*found, channels=2, stride=stride, activations=("tanh",))
        if draw(st.booleans()):
            chain.residual(*(draw(branches(chain.shape)) for _ in range(draw(st.integers(1, 2)))))
    if draw(st.booleans()):
        chain.pool(draw(st.sampled_from(["max", "mean"])))
    if group != "trivial" and draw(st.booleans()):
        chain.project(draw(st.sampled_from(["max", "mean"])))
    chain.flatten()
    head = placed("FC", Site(chain.shape, Shape(3, 1, 1, flat=True)), {})
    assert head is not None, "FC stands everywhere"
    nodes = tuple(chain.layer(head, channels=3).nodes)
    data = Data(Step("synthetic", (), nodes[0].span), (), 1, 1, 1, 3, "classification")
    return Facts("made", data, Network("made_net", nodes), SEARCH)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(networks())
def test_a_network_keeps_what_it_says_and_loses_what_it_says(facts: Facts) -> None:
    symmetry = strict_symmetry(build(facts))
    assert not symmetry.equivariant
    assert_statement(facts.network.nodes, symmetry)


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_what_is_said_of_a_shipped_network_is_true(path: Path) -> None:
    spec = load(path)
    assert_statement(narrowed(spec.facts.network.nodes), strict_symmetry(spec.graph()))


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_what_is_said_of_the_candidates_of_a_shipped_network_is_true(path: Path) -> None:
    nodes = narrowed(load(path).facts.network.nodes)
    seen = set()
    for node in nodes:
        for one in getattr(node, "candidates", ()):
            site = Site(node.in_shape, node.out_shape)
            if (site, one.kind, one.arguments) in seen or node.in_shape.flat:
                continue
            seen.add((site, one.kind, one.arguments))
            module = relaxed(site, [one])
            assert_layer_follows(module, site, one.preserves)
            for word in movable(site.reads):
                if not follows(one.preserves, [word]):
                    assert_layer_breaks(module, site, word)


# ---------------------------------------------------------------- the checks themselves


def lifted_layer(kind: str, **arguments: Value) -> tuple[nn.RelaxedLayer, Site]:
    site = Site(Shape(2, 4, 4, "p4"), Shape(2, 2, 2, "p4"))
    made = placed(kind, site, {"k": 3, **arguments} if kind != "F-FC" else {})
    assert made is not None, "it stands there"
    return relaxed(site, [made]), site


@pytest.mark.parametrize(
    ("kind", "arguments", "word"),
    [
        ("CONV", {}, "quarter turns"),
        ("GCONV", {"group": "C2"}, "quarter turns"),
        ("F-FC", {}, "translations"),
        ("F-FC", {}, "half turns"),
    ],
)
def test_a_layer_that_breaks_a_symmetry_is_noticed(kind: str, arguments: dict[str, Value], word: str) -> None:
    layer, site = lifted_layer(kind, **arguments)
    with pytest.raises(AssertionError, match="largest difference"):
        assert_layer_follows(layer, site, [word])


@pytest.mark.parametrize("word", ["translations", "quarter turns", "half turns"])
def test_a_layer_that_follows_is_noticed(word: str) -> None:
    layer, site = lifted_layer("GCONV")
    with pytest.raises(AssertionError, match=f"follows {word}"):
        assert_layer_breaks(layer, site, word)


@pytest.mark.parametrize(
    ("symmetry", "complaint"),
    [
        (Symmetry(("translations", "quarter turns"), (), ()), "no candidate of `l1` follows"),
        (Symmetry(("translations",), (), (("half turns", "of no reason"),)), "said to be lost"),
        (Symmetry((), (), (("translations", "of no reason"),)), "said to be lost"),
    ],
)
def test_a_wrong_statement_is_noticed(symmetry: Symmetry, complaint: str) -> None:
    site = Site(Shape(1, 4, 4, "p4"), Shape(2, 2, 2, "p4"))
    made = placed("GCONV", site, {"k": 3, "group": "C2"})
    assert made is not None, "it stands there"
    chain = Chain(1, 4, 4).lift("p4").layer(made, channels=2, stride=2, activations=("tanh",)).pool("max")
    nodes = tuple(chain.project("max").flatten().nodes)
    assert_statement(nodes, Symmetry(("translations", "half turns"), (), (("quarter turns", "of C2"),)))
    with pytest.raises(AssertionError, match=complaint):
        assert_statement(nodes, symmetry)
