"""Laws that the curvature of every kind obeys, on whatever shapes, groups, strides and batches."""

from __future__ import annotations

import attrs
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from limits import built, noise, placed
from oracles.comparison import assert_same
from oracles.dense import dense_factors, dense_ggn
from oracles.naive import Naive
from oracles.records import Chain, candidate
from sites import FORMS, candidates, sites
from symdsl.analysis.facts import Candidate, Layer, Node, Shape
from symdsl.evidence import CURVATURES, Categorical, Exact, Gaussian, KroneckerFactors, estimate
from symdsl.evidence.kfac import Sharing
from symdsl.kinds import Site
from symdsl.nn import Network

Nodes = tuple[Node, ...]
SHARINGS: list[Sharing] = ["expand", "reduce"]


def network(site: Site, found: list[Candidate], end: str = "flatten") -> Nodes:
    """A layer of these candidates on a lifted image, and a head."""
    chain = Chain(site.reads.channels, site.reads.height, site.reads.width)
    chain = chain.lift(site.reads.group) if site.reads.group != "trivial" else chain
    chain.layer(*found, channels=site.writes.channels, stride=site.reads.width // site.writes.width)
    if end == "mean":
        chain.pool("mean")
        chain = chain.project("mean") if site.reads.group != "trivial" else chain
        return tuple(chain.flatten().nodes)
    chain.nodes[-1] = _activated(chain.nodes[-1])
    chain.flatten()
    head = placed("FC", Site(chain.shape, Shape(2, 1, 1, flat=True)), {})
    assert head is not None, "FC stands everywhere"
    return tuple(chain.layer(head, channels=2).nodes)


def _activated(node: Node) -> Node:
    assert isinstance(node, Layer), "the layer comes last"
    return attrs.evolve(node, activations=("tanh",))


def curvature(
    net: Network, x: torch.Tensor, sharing: Sharing, batch: int = 512, likelihood: Categorical | Gaussian | None = None
) -> KroneckerFactors:
    y = torch.zeros(len(x), dtype=torch.int64)
    if isinstance(likelihood, Gaussian):
        y = torch.zeros(len(x), net(x).shape[1], dtype=torch.float64)
    found = estimate(
        net, x, y, likelihood or Categorical(), Exact(), torch.Generator(), CURVATURES[f"kfac-{sharing}"], batch
    )
    assert isinstance(found.ggn, KroneckerFactors), "KFAC gives factors"
    return found.ggn


@st.composite
def networks(draw: st.DrawFn, form: str, largest: int, kernels: tuple[int, ...] = (1, 3), others: int = 0) -> Nodes:
    """A layer with a candidate of a kind, and up to so many of any other."""
    site = draw(sites(largest, form))
    first = draw(candidates(site, kernels, form))
    more = draw(st.lists(candidates(site, kernels), max_size=others, unique_by=lambda one: one.name))
    return network(site, [first, *(one for one in more if one.name != first.name)])


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(data=st.data(), batch=st.integers(1, 4), sharing=st.sampled_from(SHARINGS))
def test_splitting_a_batch_never_changes_a_factor(form: str, data: st.DataObject, batch: int, sharing: Sharing) -> None:
    nodes = data.draw(networks(form, 4, (1, 3, 5), others=1))
    net, x = built(nodes), noise(5, nodes[0].out_shape)
    whole, split = curvature(net, x, sharing), curvature(net, x, sharing, batch)
    assert whole.blocks.keys() == split.blocks.keys() == net.tensors().keys()
    for key, block in whole.blocks.items():
        assert_same(split.blocks[key].output.blocks(), block.output.blocks())
        assert_same(split.blocks[key].input.blocks(), block.input.blocks())


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(data=st.data(), sharing=st.sampled_from(SHARINGS))
def test_every_factor_equals_its_definition(form: str, data: st.DataObject, sharing: Sharing) -> None:
    nodes = data.draw(networks(form, 2))
    net, x = built(nodes), noise(2, nodes[0].out_shape)
    found = curvature(net, x, sharing).blocks
    for key, (left, right) in dense_factors(Naive(nodes, net.tensors()), x, "classification", sharing).items():
        if not key.endswith(".bias"):
            assert_same(torch.block_diag(*found[key].output.blocks()), left)
            assert_same(torch.block_diag(*found[key].input.blocks()), right)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(data=st.data())
def test_factors_have_the_sizes_that_the_records_say_and_are_semidefinite(form: str, data: st.DataObject) -> None:
    nodes = data.draw(networks(form, 3))
    net, x = built(nodes), noise(2, nodes[0].out_shape)
    for sharing in SHARINGS:
        found = curvature(net, x, sharing).blocks
        for layer in (node for node in nodes if isinstance(node, Layer)):
            for one in layer.candidates:
                for tensor in one.tensors:
                    block = found[f"{layer.name}.{one.name}.{tensor.name}"]
                    for factor, size in ((block.output.blocks(), tensor.left), (block.input.blocks(), tensor.right)):
                        assert factor.shape == (size.blocks, size.side, size.side)
                        assert float(torch.linalg.eigvalsh(factor).min()) >= -1e-12 * float(factor.abs().max())


@pytest.mark.parametrize("factor", ["full", "separable", "depthwise", "pointwise"])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_a_tensor_used_once_on_one_example_has_its_exact_block(factor: str, sharing: Sharing) -> None:
    """On a single position over a group of one element there is one use, but for slots; one channel leaves one slot."""
    nodes = tuple(
        Chain(1, 1, 1)
        .layer(candidate("GCONV", 1, factor, group="trivial"), channels=3, activations=("tanh",))
        .flatten()
        .layer(candidate("FC"), channels=3)
        .nodes
    )
    net, x = built(nodes), noise(1, nodes[0].out_shape)
    found = curvature(net, x, sharing).blocks
    for key in (key for key in found if "GCONV" in key):
        _, path, tensor = key.split(".")
        expected = dense_ggn(net, f"stages.l1.paths.{path}.{tensor}", x, "classification")
        assert_same(found[key].dense(), expected)


@pytest.mark.parametrize("group", ["p4", "p4m", "flips"])
@pytest.mark.parametrize(("factor", "channels"), [("separable", 2), ("depthwise", 1), ("depthwise", 2)])
def test_reduce_is_exact_for_linear_networks_that_average(group: str, factor: str, channels: int) -> None:
    """Where the gradient is the same at every use. Slots of several channels have blocks of their own only."""
    site = Site(Shape(channels, 4, 4, group), Shape(3, 4, 4, group))
    made = placed("GCONV", site, {"k": 3, "factor": factor})
    assert made is not None, "it stands there"
    nodes = network(site, [made], end="mean")
    net, x = built(nodes), noise(3, nodes[0].out_shape)
    found = curvature(net, x, "reduce", likelihood=Gaussian()).blocks
    whole = {"separable": ["w1"], "depthwise": ["w0"] if channels > 1 else ["w0", "w1", "w2"]}[factor]
    for tensor in whole:
        expected = dense_ggn(net, f"stages.l1.paths.{made.name}.{tensor}", x, "regression")
        assert_same(found[f"l1.{made.name}.{tensor}"].dense(), expected)
