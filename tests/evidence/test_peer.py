"""Factors and evidence beside those of laplace-torch, where both stand on the same ground.

That library has neither circular padding nor our bias of a convolution; an image whose border is zero makes circular
and zero padding the same, and weights are compared by their blocks.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from oracles.comparison import assert_same
from oracles.records import Chain, candidate
from symdsl import laplace, lowering
from symdsl.data import Examples

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")

FC, CONV = candidate("FC"), candidate("CONV")


@pytest.fixture(autouse=True)
def double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def theirs(net: nn.Module, data: Examples, precision: Tensor) -> Any:
    """Their Kronecker-factored Laplace approximation with all columns of the Gauss-Newton matrix."""
    from laplace import Laplace
    from laplace.curvature import CurvlinopsGGN

    likelihood = "regression" if data.y.is_floating_point() else "classification"
    found = Laplace(
        net,
        likelihood,
        subset_of_weights="all",
        hessian_structure="kron",
        prior_precision=precision,
        backend=CurvlinopsGGN,
        backend_kwargs={"stochastic": False},
    )
    found.fit(DataLoader(TensorDataset(data.x, data.y), batch_size=len(data.x)))
    return found


def images(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


TARGETS = {"classification": torch.arange(7) % 4, "regression": images(7, 4, seed=1)}


@pytest.mark.parametrize("task", TARGETS)
def test_the_evidence_of_a_small_fc_network_is_theirs(task: str) -> None:
    net = lowering.build(
        tuple(Chain(2, 1, 3).flatten().layer(FC, channels=5, activations=("tanh",)).layer(FC, channels=4).nodes), 0
    ).double()
    peer = nn.Sequential(nn.Flatten(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4))
    tensors = net.tensors()
    own = ("l1.FC.w", "l1.bias", "l2.FC.w", "l2.bias")
    for key, parameter in zip(own, peer.parameters(), strict=True):
        tensors[key].data.add_(0.1)
        parameter.data.copy_(tensors[key].data.reshape(parameter.shape))
    data = Examples(images(7, 2, 1, 3), TARGETS[task])
    precisions = dict(zip(own, (0.5, 2.0, 3.0, 0.7), strict=True))
    found = laplace.fit(net, data, precisions=precisions)
    expected = theirs(peer, data, torch.tensor(list(precisions.values())))
    assert found.log_evidence() == pytest.approx(float(expected.log_marginal_likelihood()), rel=1e-9)


def test_the_blocks_of_a_zero_padded_convolution_are_theirs() -> None:
    chain = Chain(2, 6, 5).layer(CONV, channels=3, activations=("relu",)).flatten().layer(FC, channels=4)
    net = lowering.build(tuple(chain.nodes), 0).double()
    peer = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(90, 4))
    tensors = net.tensors()
    for key, parameter in zip(("l1.CONV.w", "l1.bias", "l2.FC.w", "l2.bias"), peer.parameters(), strict=True):
        parameter.data.copy_(tensors[key].data.reshape(parameter.shape))
    x = nn.functional.pad(images(7, 2, 4, 3), (1, 1, 1, 1))
    data = Examples(x, TARGETS["classification"])
    assert_same(net(x).detach(), peer(x).detach(), 1e-12)
    blocks = curvature(net, data)
    convolution, _, head, head_bias = theirs(peer, data, torch.tensor(1.0)).H_facs.kfacs
    assert_same(blocks["l1.CONV.w"], torch.kron(*convolution))
    assert_same(blocks["l2.FC.w"], torch.kron(*head))
    assert_same(blocks["l2.bias"], head_bias[0])


def curvature(net: nn.Module, data: Examples) -> dict[str, Tensor]:
    from symdsl.evidence import CURVATURES, Categorical, Exact, KroneckerFactors, estimate

    kfac = CURVATURES["kfac-expand"]
    found = estimate(net, data.x, data.y, Categorical(), Exact(), torch.Generator(), kfac).ggn  # type: ignore[arg-type]
    assert isinstance(found, KroneckerFactors)
    return {key: block.dense() for key, block in found.blocks.items()}
