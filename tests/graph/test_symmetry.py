from analysis.specs import items
from graph.factory import TURNS, Chain, pyramid
from symdsl.graph import Symmetry, build, strict_symmetry


def symmetry(chain: Chain) -> Symmetry:
    return strict_symmetry(build(chain.facts()))


def test_network_that_shrinks_to_one_position_is_invariant():
    assert symmetry(pyramid("F-FC CONV")) == Symmetry(("translations",), (), ())
    assert str(symmetry(pyramid("F-FC CONV"))) == "invariant to translations"


def test_flatten_of_a_larger_map_keeps_positions():
    found = symmetry(Chain(1, 8, 8).layer("l1", "CONV", 4, stride=2).flatten().layer("h", "FC", 3))
    assert found.invariant == ()
    assert str(found) == "not invariant to translations: `flatten` at 4x4x4 keeps positions apart"


def test_layer_without_symmetric_candidate_ends_it_for_good():
    chain = Chain(1, 8, 8).layer("l1", "CONV", 4).layer("l2", "FC F-FC", 4).layer("l3", "CONV", 4).pool().flatten()
    assert symmetry(chain).lost == (("translations", "no candidate of `l2` follows them"),)


def test_pool_makes_invariant():
    assert symmetry(Chain(1, 8, 8).layer("l1", "CONV", 4).pool().flatten()).invariant == ("translations",)


def test_lifted_network_with_projection_and_pool_is_invariant_to_the_whole_group():
    chain = Chain(1, 8, 8).lift().layer("l1", "F-FC CONV GCONV", 4).project().pool().flatten().layer("h", "FC", 3)
    assert symmetry(chain).invariant == ("translations", TURNS)
    assert str(symmetry(chain)) == "invariant to translations and quarter turns"


def test_projection_alone_leaves_positions():
    chain = Chain(1, 4, 4).lift().layer("l1", "GCONV", 2).project().flatten()
    reason = "`flatten` at 2x4x4 keeps positions apart"
    assert symmetry(chain) == Symmetry((), (), (("translations", reason), (TURNS, reason)))


def test_flatten_without_projection_keeps_group_elements():
    chain = Chain(1, 4, 4).lift().layer("l1", "GCONV", 2).pool().flatten()
    reason = "`flatten` at 2xp4x1x1 keeps group elements apart"
    assert symmetry(chain) == Symmetry(("translations",), (), ((TURNS, reason),))


def test_one_plain_convolution_in_a_lifted_network_loses_the_turns_only():
    chain = Chain(1, 4, 4).lift().layer("l1", "GCONV", 2).layer("l2", "CONV F-FC", 2).project().pool().flatten()
    found = symmetry(chain)
    assert found.invariant == ("translations",)
    assert found.lost == ((TURNS, "no candidate of `l2` follows them"),)


def test_a_second_lift_to_fewer_movements_says_that_it_has_no_others():
    first = "lift p4m layer a: GCONV(3) -> 2 project max"
    twice = f"{first} lift mirror layer b: GCONV(3) -> 2 project max pool mean flatten"
    found = strict_symmetry(build(items(twice).facts))
    assert str(found) == (
        "invariant to translations and left-right flips; not to quarter turns: `lift-2` lifts to `mirror` alone"
    )


def test_a_block_without_a_symmetric_candidate_ends_it():
    chain = Chain(1, 4, 4).layer("l1", "CONV", 2).residual(("l2", "F-FC CONV", 3), ("l3", "F-FC", 2)).pool().flatten()
    assert symmetry(chain).lost == (("translations", "no candidate of `l3` follows them"),)


def test_symmetry_goes_through_blocks():
    chain = Chain(1, 4, 4).lift().layer("l1", "GCONV", 2).residual(("l2", "GCONV", 3), ("l3", "GCONV", 2))
    assert symmetry(chain.project().pool().flatten()).invariant == ("translations", TURNS)


def test_what_has_become_invariant_cannot_be_lost():
    chain = Chain(1, 4, 4).layer("l1", "CONV", 2).pool().layer("l2", "FC", 3).flatten().layer("h", "FC", 3)
    assert symmetry(chain) == Symmetry(("translations",), (), ())


def test_network_without_an_end_stays_equivariant():
    assert str(symmetry(Chain(1, 4, 4).layer("l1", "CONV", 2))) == "equivariant to translations"
