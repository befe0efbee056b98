from functools import partial
from itertools import product

import pytest
import torch
from torch.func import jacrev

from oracles.comparison import assert_same, noise
from oracles.equivariance import moved_lifted, shifted
from oracles.groups import ELEMENTS
from oracles.records import Chain, candidate, sparse
from symdsl import lowering, nn
from symdsl.groups import GROUPS, TRIVIAL
from symdsl.kinds.convolution.module import Conv
from symdsl.kinds.dense.module import FactoredFullyConnected, is_multiplied_out
from symdsl.kinds.group.module import GroupConv
from symdsl.kinds.sparse.basis import Basis, BasisPlan, sites, spread, squared_distances
from symdsl.kinds.sparse.module import SparseConv, SparseFullyConnected, _through_anchors
from symdsl.nn.activations import ACTIVATIONS

P4, PLAIN = GROUPS["p4"], GROUPS[TRIVIAL]
OPTIONS = list(product(("fixed", "learned"), ("values", "lengthscale")))


def generator(seed):
    return torch.Generator().manual_seed(seed)


def layer_of(*candidates, shape=(8, 6, 6), channels=32, stride=1, lift=None, seed=0, incoming=()):
    """One relaxed layer, its input having gone through `incoming`."""
    chain = Chain(shape[0], *shape[1:])
    chain = chain.lift(lift) if lift else chain
    first = chain.layer(candidate("CONV"), channels=shape[0], activations=incoming)
    nodes = tuple(first.layer(*candidates, channels=channels, stride=stride).nodes)
    return lowering.build(nodes, seed).stages["l2"].double()


# anchors


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (5, 5), (4, 6), (7, 2), (16, 16), (9, 20)])
def test_half_the_sites_leave_none_further_than_a_pixel_from_an_anchor(rows, columns):
    points = sites(rows, columns)
    chosen = spread(points, -(-len(points) // 2))
    assert len(set(chosen.tolist())) == len(chosen)
    assert float(squared_distances(points[chosen], points).min(0).values.max()) == 1


@pytest.mark.parametrize("count", range(4, 64, 6))
def test_no_side_of_a_map_has_more_of_the_anchors(count):
    points = sites(8, 8)
    places = points[spread(points, count), :2] - 3.5
    assert float(places.mean(0).abs().max()) <= 3.5 / count
    quadrants = torch.bincount((places[:, 0] > 0).long() * 2 + (places[:, 1] > 0), minlength=4)
    assert int(quadrants.max() - quadrants.min()) <= 1 + count // 8


def test_the_anchors_of_a_small_filter_are_its_centre_and_corners():
    assert sorted(spread(sites(3, 3), 5).tolist()) == [0, 2, 4, 6, 8]


def test_every_group_element_has_its_share_of_the_anchors():
    chosen = spread(sites(5, 4, P4), 40)
    assert max(abs(int(found) - 10) for found in torch.bincount(chosen // 20)) <= 1


def test_anchors_are_the_same_every_time():
    assert torch.equal(spread(sites(6, 5, P4), 33), spread(sites(6, 5, P4), 33))


def test_all_sites_can_be_anchors():
    assert sorted(spread(sites(3, 4), 12).tolist()) == list(range(12))


@pytest.mark.parametrize("group", GROUPS.values(), ids=list(GROUPS))
def test_the_distance_of_two_elements_is_how_far_they_take_a_point_of_the_unit_circle_apart(group):
    points = sites(1, 1, group)
    found = squared_distances(points, points)
    angles = torch.linspace(0, 2 * torch.pi, 9, dtype=torch.float64)[:-1]
    circle = torch.stack((angles.cos(), angles.sin()))
    carried = torch.tensor(group.elements, dtype=torch.float64) @ circle
    expected = (carried[:, None] - carried).square().sum(2).mean(2)
    assert_same(found, expected, 1e-12)
    for g, h, k in product(range(group.order), repeat=3):
        left, right = (group.compose(k, g), group.compose(k, h)), (group.compose(g, k), group.compose(h, k))
        assert found[g, h] == found[left] == found[right]


@pytest.mark.parametrize("group", GROUPS.values(), ids=list(GROUPS))
def test_basis_functions_on_a_group_are_positive_definite_however_wide(group):
    points = sites(2, 2, group)
    for omega in (0.3, 1.0, 3.0):
        kernel = torch.exp(-(omega**2) * squared_distances(points, points))
        assert float(torch.linalg.eigvalsh(kernel).min()) > 0


# basis functions


def basis(moves=True, scales=True, group=PLAIN):
    made = Basis(sites(3, 4, group), BasisPlan(5, moves, scales)).double()
    omega = made.new_omega().double() + 0.1 * noise(5, seed=1)
    return made, omega.detach(), noise(5, 2, seed=2)


@pytest.mark.parametrize("group", [PLAIN, P4])
def test_the_slopes_are_the_derivatives_of_the_basis_functions(group):
    made, omega, moved = basis(group=group)
    each = torch.arange(5)
    in_omega = jacrev(lambda value: made(value, moved))(omega)[each, :, each]
    assert_same(made.slopes_in_omega(omega, moved)[:, 0], in_omega, 1e-12)
    in_anchors = jacrev(lambda value: made(omega, value))(moved)[each, :, each].transpose(1, 2)
    assert_same(made.slopes_in_anchors(omega, moved), in_anchors, 1e-12)


def test_a_basis_function_falls_to_one_over_e_at_the_mean_distance_of_anchors():
    made = Basis(sites(6, 6), BasisPlan(9))
    phi = made(None, None)
    near = made.apart == 4
    assert bool(near.any())
    assert_same(phi[near], torch.full_like(phi[near], float(torch.tensor(-1.0).exp())), 1e-6)


def test_nothing_is_learned_of_a_basis_unless_its_plan_says_so():
    made = Basis(sites(3, 3), BasisPlan(5))
    assert made.new_omega() is None
    assert made.new_anchors() is None
    assert list(made.parameters()) == []


# initial weights


def plans(sites, options):
    moves, scales = options
    return BasisPlan(-(-sites // 2), moves == "learned", scales == "lengthscale")


def dense(group, options, seed, scale):
    reads, writes = (8 * group.order, 6, 6), (16 * group.order, 3, 3)
    outer, inner = plans(9 * group.order, options), plans(36 * group.order, options)
    return SparseFullyConnected(reads, writes, outer, inner, group, scale, generator(seed))


PATHS = {
    "S-FC": partial(dense, PLAIN),
    "S-GFC": partial(dense, P4),
    "S-CONV": lambda options, seed, scale: SparseConv(
        8, 16, 3, plans(9, options), scale=scale, generator=generator(seed)
    ),
    "S-GCONV": lambda options, seed, scale: SparseConv(
        8, 16, 3, plans(36, options), scale=scale, generator=generator(seed), group=P4
    ),
}


def second_moment(kind, options, activation, scale=1.0):
    """Of the output over several draws of the weights, which expect what the activation gives."""
    share, gain = nn.moments((activation,)).share, nn.moments((activation,)).gain
    inputs = ACTIVATIONS[activation](torch.randn(8, 32 if "G" in kind else 8, 6, 6, generator=generator(99)))
    outputs = []
    for seed in range(12):
        path = PATHS[kind](options, seed, scale * gain)
        path.expect_mean(share)
        outputs.append(path(inputs).detach().square().mean())
    return float(torch.stack(outputs).mean())


@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("activation", ["identity", "relu", "gelu"])
def test_every_option_alone_has_pre_activations_of_unit_variance(kind, options, activation):
    assert second_moment(kind, options, activation) == pytest.approx(1, rel=0.2)


@pytest.mark.parametrize("kind", PATHS)
def test_the_scale_is_that_of_the_output(kind):
    assert second_moment(kind, OPTIONS[0], "tanh", scale=0.1) == pytest.approx(0.01, rel=0.2)


def test_the_mean_share_of_an_activation_is_its_mean_at_unit_second_moment():
    assert nn.moments(()).share == pytest.approx(0, abs=1e-12)
    assert nn.moments(("relu",)).share == pytest.approx(torch.pi**-0.5, rel=1e-6)


def test_a_compiled_network_expects_the_mean_of_what_its_layers_read():
    after, first = (layer_of(sparse("S-CONV"), incoming=incoming).paths["S-CONV"] for incoming in (("relu",), ()))
    expected = (
        nn.moments(("relu",)).gain * (first.basis.power() / first.basis.power(nn.moments(("relu",)).share)) ** 0.5
    )
    assert_same(after.u.detach(), first.u.detach() * expected, 1e-6)
    assert expected < 1


# what they compute


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_a_sparse_convolution_is_a_convolution(kernel):
    path = SparseConv(3, 4, kernel, BasisPlan(-(-(kernel**2) // 2)), generator=generator(0)).double()
    plain = Conv(3, 4, kernel).double()
    plain.w.data = path.filters().detach()
    assert_same(path(noise(2, 3, 5, 6)), plain(noise(2, 3, 5, 6)), 1e-12)


def test_a_sparse_group_convolution_is_a_group_convolution():
    path = SparseConv(2, 3, 3, BasisPlan(18), generator=generator(0), group=P4).double()
    plain = GroupConv(2, 3, P4, 3).double()
    plain.w.data = (path.u @ path.phi()).detach().unflatten(2, (4, 3, 3))
    assert_same(path(noise(2, 8, 5, 5)), plain(noise(2, 8, 5, 5)), 1e-12)


def test_a_sparse_dense_path_is_the_factored_one_with_sparse_weights():
    path = SparseFullyConnected((3, 4, 4), (5, 2, 2), BasisPlan(2), BasisPlan(8), generator=generator(0)).double()
    plain = FactoredFullyConnected((3, 4, 4), (5, 2, 2)).double()
    plain.w1.data = (path.u1 @ path.basis1(None, None)).detach()
    plain.w2.data = (path.u2 @ path.basis2(None, None)).detach()
    assert_same(path(noise(2, 3, 4, 4)), plain(noise(2, 3, 4, 4)), 1e-12)


def test_all_orders_of_the_sums_give_the_same():
    path = SparseFullyConnected((3, 4, 4), (5, 2, 2), BasisPlan(2), BasisPlan(8), generator=generator(0)).double()
    x = noise(40, 3, 4, 4)
    assert _through_anchors(1, path.phi2(), 5)
    assert _through_anchors(1, path.phi1(), 3)
    assert not _through_anchors(40, path.phi2(), 5)
    assert not _through_anchors(40, path.phi1(), 3)
    assert is_multiplied_out(16, 4)
    at_once = path(x).detach()
    assert_same(at_once, path(x, lambda *use: None).detach(), 1e-12)
    assert_same(at_once, torch.cat([path(one, lambda *use: None) for one in x.split(1)]).detach(), 1e-12)


def test_as_many_anchors_as_taps_can_make_any_filter():
    path = SparseConv(2, 3, 3, BasisPlan(9)).double()
    wanted = noise(3, 2, 9)
    path.u.data = torch.linalg.solve(path.phi().T, wanted.flatten(0, 1).T).T.unflatten(0, (3, 2))
    assert_same(path.filters().flatten(2), wanted, 1e-10)


def test_the_filter_is_constant_where_omega_vanishes():
    path = SparseConv(2, 3, 3, BasisPlan(5, scales=True), generator=generator(0))
    path.omega.data.zero_()
    filters = path.filters().detach().flatten(2)
    assert_same(filters, filters[:, :, :1].expand_as(filters), 1e-6)


def test_a_dense_path_ignores_places_where_omega_vanishes():
    plans = BasisPlan(5, scales=True), BasisPlan(8, scales=True)
    path = SparseFullyConnected((2, 4, 4), (3, 2, 5), *plans, generator=generator(0)).double()
    path.omega1.data.zero_()
    path.omega2.data.zero_()
    x = noise(2, 2, 4, 4)
    y = path(x).detach()
    assert_same(y, y[:, :, :1, :1].expand_as(y), 1e-12)
    assert_same(path(shifted(x, 1, 3)).detach(), y, 1e-12)


def test_the_same_seed_gives_the_same_weights():
    for kind in PATHS:
        lift = "p4" if "G" in kind else None
        first, second, other = (layer_of(sparse(kind), lift=lift, seed=seed).state_dict() for seed in (0, 0, 1))
        for key in (name for name in first if ".u" in name):
            assert torch.equal(first[key], second[key])
            assert not torch.equal(first[key], other[key])


# symmetry

STRICT = {
    "S-CONV": [sparse("S-CONV", anchors=anchors, on=on) for anchors, on in OPTIONS],
    "S-GCONV": [sparse("S-GCONV", anchors=anchors, on=on) for anchors, on in OPTIONS],
}
BREAKING = {"S-FC": sparse("S-FC"), "S-GFC": sparse("S-GFC"), "F-GFC": candidate("F-GFC")}


def stirred(layer, seed=0):
    """The layer with every parameter moved from where it starts, the anchors and lengthscales among them."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator(seed), dtype=torch.float64))
    return layer


def assert_follows_shifts(layer, x, stride):
    for rows, columns in ((0, 1), (1, 0), (1, 2), (2, 1)):
        moved = shifted(x, rows * stride, columns * stride)
        assert_same(layer(moved).detach(), shifted(layer(x).detach(), rows, columns), 1e-10)


def assert_follows_group(layer, x, group):
    """Every element that maps the grid to itself."""
    square = x.shape[-2] == x.shape[-1]
    for element in ELEMENTS[group]:
        if square or element[0] % 2 == 0:
            found, expected = layer(moved_lifted(x, element, group)), moved_lifted(layer(x), element, group)
            assert_same(found.detach(), expected.detach(), 1e-10)


@pytest.mark.parametrize("one", STRICT["S-CONV"], ids=lambda one: str(one.arguments[1:3]))
@pytest.mark.parametrize(("size", "stride"), [((5, 5), 1), ((6, 4), 1), ((6, 6), 2), ((4, 10), 2), ((9, 6), 3)])
def test_a_sparse_convolution_moves_with_its_input(one, size, stride):
    layer = stirred(layer_of(one, shape=(2, *size), channels=3, stride=stride))
    assert_follows_shifts(layer, noise(2, 2, *size), stride)


@pytest.mark.parametrize("one", STRICT["S-GCONV"], ids=lambda one: str(one.arguments[1:3]))
@pytest.mark.parametrize("group", [name for name in GROUPS if name != TRIVIAL])
@pytest.mark.parametrize(("size", "stride"), [((5, 5), 1), ((6, 6), 2), ((4, 6), 2), ((9, 9), 3)])
def test_a_sparse_group_convolution_moves_with_its_input(one, group, size, stride):
    layer = stirred(layer_of(one, shape=(2, *size), channels=3, stride=stride, lift=group))
    x = noise(2, 2 * GROUPS[group].order, *size)
    assert_follows_shifts(layer, x, stride)
    assert_follows_group(layer, x, group)


@pytest.mark.parametrize("name", BREAKING)
@pytest.mark.parametrize("group", ["p4", "p4m", "flips"])
@pytest.mark.parametrize(("size", "stride"), [((5, 5), 1), ((6, 6), 2), ((6, 4), 2)])
def test_a_relaxed_layer_is_strict_only_where_its_breaking_path_is_zero(name, group, size, stride):
    layer = layer_of(BREAKING[name], sparse("S-GCONV"), shape=(2, *size), channels=3, stride=stride, lift=group)
    stirred(layer)
    x = noise(2, 2 * GROUPS[group].order, *size)
    with pytest.raises(AssertionError, match="largest difference"):
        assert_follows_shifts(layer, x, stride)
    with pytest.raises(AssertionError, match="largest difference"):
        assert_follows_group(layer, x, group)
    layer.prune(name)
    assert_follows_shifts(layer, x, stride)
    assert_follows_group(layer, x, group)


@pytest.mark.parametrize("group", ["p4", "mirror"])
def test_a_dense_path_on_lengthscales_follows_shifts_and_the_group_where_they_vanish(group):
    layer = stirred(layer_of(sparse("S-GFC", on="lengthscale"), shape=(2, 4, 4), channels=3, lift=group))
    x = noise(2, 2 * GROUPS[group].order, 4, 4)
    with pytest.raises(AssertionError, match="largest difference"):
        assert_follows_group(layer, x, group)
    layer.paths["S-GFC"].omega1.data.zero_()
    layer.paths["S-GFC"].omega2.data.zero_()
    assert_follows_shifts(layer, x, 1)
    assert_follows_group(layer, x, group)
