"""RFF: what it computes, that none of it is learned, and that the evidence knows of what follows alone."""

import pytest
import torch

import symdsl
from oracles.comparison import assert_same, noise
from symdsl import nn
from symdsl.data import Examples
from symdsl.evidence import fit
from symdsl.kinds import KINDS, Site, label
from symdsl.kinds.dense.module import FullyConnected
from symdsl.kinds.dense.weight_use import fully_connected
from symdsl.kinds.features.module import RandomFeatures

FEATURES = """
data synthetic(channels = 1, size = 4, classes = 3)

network n {
  input image(1, 4, 4)
  flatten
  layer h1: RFF(0.8) -> 7
  layer out: FC -> classes
}
"""


def test_features_are_cosines():
    path = RandomFeatures((2, 3, 1), (5, 1, 1), 1.5, torch.Generator().manual_seed(0)).double()
    x = noise(4, 2, 3, 1)
    expected = torch.stack(
        [torch.stack([((x[n].flatten() * path.w[k]).sum() + path.phase[k]).cos() for k in range(5)]) for n in range(4)]
    )
    assert_same(path(x).flatten(1), (2 / 5) ** 0.5 * expected, 1e-12)


@pytest.mark.parametrize("lengthscale", [0.5, 2.0])
def test_products_of_many_features_are_near_the_kernel(lengthscale):
    features = RandomFeatures((1, 3, 5), (20_000, 1, 1), 1 / lengthscale, torch.Generator().manual_seed(1)).double()
    x = noise(6, 1, 3, 5)
    y = features(x).flatten(1)
    squared = (x[:, None] - x[None]).square().mean((2, 3, 4))
    torch.testing.assert_close(y @ y.T, (-squared / (2 * lengthscale**2)).exp(), atol=0.03, rtol=0)


@pytest.mark.parametrize("before", ["FC -> 64 |> relu", "RFF -> 64"])
def test_the_lengthscale_is_in_units_of_what_the_layer_reads(before):
    text = FEATURES.replace("layer h1: RFF(0.8) -> 7", f"layer h0: {before}\n  layer h1: RFF(0.8) -> 2000")
    w = symdsl.compile(symdsl.parse(text)).stages["h1"].paths["RFF"].w
    assert float(w.std()) == pytest.approx(1 / (0.8 * 64**0.5), rel=0.02)


def test_the_seed_draws_the_features_and_nothing_is_learned():
    net, again, other = (symdsl.compile(symdsl.parse(FEATURES), seed) for seed in (3, 3, 4))
    assert_same(again.stages["h1"].paths["RFF"].w, net.stages["h1"].paths["RFF"].w, 0)
    assert not torch.equal(other.stages["h1"].paths["RFF"].w, net.stages["h1"].paths["RFF"].w)
    learned = {key for key, one in net.tensors().items() if one.requires_grad}
    assert learned == {"out.FC.w", "out.bias"}


def test_the_layer_after_starts_at_the_scale_of_its_prior():
    net = symdsl.compile(symdsl.parse(FEATURES.replace("-> 7", "-> 2000")))
    assert net.tensors()["out.FC.w"].std().item() == pytest.approx(1, abs=0.05)


def test_the_evidence_is_that_of_the_layer_after_on_the_features():
    net = symdsl.compile(symdsl.parse(FEATURES)).double()
    path = FullyConnected((7, 1, 1), (3, 1, 1))
    path.weight_use = fully_connected
    alone = nn.Network({"out": nn.RelaxedLayer({"FC": path}, 3)}).double()
    alone.load_state_dict({key: value for key, value in net.state_dict().items() if key.startswith("out.")})
    x, y = noise(11, 1, 4, 4), torch.arange(11) % 3
    features = net.stages["h1"](x.flatten(1)[:, :, None, None])
    found, expected = (
        fit(one, Examples(given, y), curvature="kfac-expand", fisher="exact").log_evidence()
        for one, given in ((net, x), (alone, features))
    )
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("written", "name"), [("RFF(1.0)", "RFF"), ("RFF(1)", "RFF"), ("RFF(2.0)", "RFF(lengthscale = 2.0)")]
)
def test_the_default_lengthscale_is_left_out_of_the_label_however_it_is_written(written, name):
    layer, *_ = symdsl.parse(FEATURES.replace("RFF(0.8)", written)).facts.network.layers
    (found,) = layer.candidates
    site = Site(layer.in_shape, layer.out_shape)
    assert label(KINDS[found.kind], dict(found.arguments), site) == name
