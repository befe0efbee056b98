"""Circular convolution and phases in every form that they are computed in, beside plain definitions."""

import pytest
import torch

from oracles.comparison import assert_same, noise
from symdsl.nn import circular, polyphase


def by_definition(x, weight, stride):
    (rows, columns), (k, m) = stride, weight.shape[2:]
    y = x.new_zeros(len(x), len(weight), x.shape[2] // rows, x.shape[3] // columns)
    for i in range(k):
        for j in range(m):
            moved = x.roll((k // 2 - i, m // 2 - j), (2, 3))[:, :, ::rows, ::columns]
            y = y + torch.einsum("ncij,dc->ndij", moved, weight[:, :, i, j])
    return y


@pytest.mark.parametrize("most", [0, 1 << 16], ids=["padded", "dense"])
@pytest.mark.parametrize("planes", [3, 17])
@pytest.mark.parametrize(
    ("sides", "kernel", "stride"),
    [
        ((4, 6), (3, 3), (1, 1)),
        ((4, 6), (3, 5), (2, 3)),
        ((1, 9), (1, 3), (1, 3)),
        ((10, 8), (3, 1), (2, 1)),
        ((4, 6), (1, 1), (2, 3)),
    ],
)
def test_a_circular_convolution_and_its_gradients_are_those_of_its_definition(
    monkeypatch, most, planes, sides, kernel, stride
):
    monkeypatch.setattr(circular, "MOST_DENSE", most)
    x, weight = noise(2, planes, *sides).requires_grad_(), noise(5, planes, *kernel, seed=1).requires_grad_()
    expected = by_definition(x, weight, stride)
    found = circular.circular_conv(x, weight, stride)
    assert_same(found, expected, 1e-12)
    g = noise(*expected.shape, seed=2)
    for one, other in zip(*(torch.autograd.grad(y, (x, weight), g) for y in (found, expected)), strict=True):
        assert_same(one, other, 1e-12)


def test_a_kernel_of_one_tap_is_never_given_a_stride(monkeypatch):
    honest, strides = circular.functional.conv2d, []

    def watched(*inputs, stride, **others):
        strides.append(stride)
        return honest(*inputs, stride=stride, **others)

    monkeypatch.setattr(circular.functional, "conv2d", watched)
    x, weight = noise(64, 4, 32, 32), noise(8, 4, 1, 1, seed=1)
    assert_same(circular.circular_conv(x, weight, (2, 4)), by_definition(x, weight, (2, 4)), 1e-12)
    assert strides == [1]


@pytest.mark.parametrize(("side", "kernel"), [(2, 3), (1, 3), (3, 5), (2, 5)])
def test_a_filter_may_reach_around_the_torus(side, kernel):
    x, weight = noise(2, 3, side, side), noise(5, 3, kernel, kernel, seed=1)
    assert circular._is_dense(x, weight, (1, 1))
    assert_same(circular.circular_conv(x, weight), by_definition(x, weight, (1, 1)), 1e-12)


def test_a_convolution_first_seen_in_inference_can_be_trained_later():
    circular._reached.cache_clear()
    x, weight = noise(2, 3, 2, 2), noise(5, 3, 3, 3).requires_grad_()
    with torch.inference_mode():
        circular.circular_conv(x, weight)
    circular.circular_conv(x, weight).sum().backward()
    assert weight.grad is not None


def test_phases_are_read_from_their_first_sample_on_and_gradients_go_back():
    x = noise(6, 3, 4, 6).requires_grad_()
    phase = torch.arange(6)
    aligned = polyphase.align(x, phase, (2, 3))
    expected = torch.stack([one.roll((-(f // 3), -(f % 3)), (1, 2)) for f, one in enumerate(x)])
    assert torch.equal(aligned, expected)
    g = noise(*x.shape, seed=1)
    assert torch.equal(*(torch.autograd.grad(y, x, g)[0] for y in (aligned, expected)))


def test_the_strongest_phase_has_the_largest_norm():
    fine = noise(7, 2, 4, 6)
    norms = torch.stack([fine[:, :, f // 3 :: 2, f % 3 :: 3].square().sum((1, 2, 3)) for f in range(6)], 1)
    assert torch.equal(polyphase.strongest_phase(fine, (2, 3)), norms.argmax(1))


def test_one_large_sample_outweighs_several_small_ones_of_a_larger_sum():
    fine = torch.tensor([[[[3.0, 2.0, 0.0, 2.0]]]])
    assert polyphase.strongest_phase(fine, (1, 2)).tolist() == [0]
