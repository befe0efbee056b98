"""The groups: axioms, subgroups, cosets, and agreement with dihedral algebra."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from oracles.groups import ELEMENTS, act, inverse, times
from symdsl.groups import GROUPS, MOVEMENTS, Group, Matrix, generated

EVERY = pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
OFFSETS = [(0, 1), (1, 0), (2, -3)]


def moved(matrix: Matrix, offset: tuple[int, int]) -> tuple[int, int]:
    (a, b), (c, d) = matrix
    return a * offset[0] + b * offset[1], c * offset[0] + d * offset[1]


@EVERY
def test_elements_are_those_of_dihedral_algebra_in_order(group: Group) -> None:
    elements = ELEMENTS[group.name]
    assert group.order == len(elements)
    for matrix, element in zip(group.elements, elements, strict=True):
        assert [moved(matrix, offset) for offset in OFFSETS] == [act(element, offset) for offset in OFFSETS]


@EVERY
def test_products_and_inverses_are_those_of_dihedral_algebra(group: Group) -> None:
    elements = ELEMENTS[group.name]
    for (i, one), (j, other) in product(enumerate(elements), repeat=2):
        assert elements[group.compose(i, j)] == times(one, other)
    assert [elements[group.inverse(i)] for i in range(group.order)] == [inverse(one) for one in elements]


@EVERY
def test_the_movements_in_words_generate_the_group(group: Group) -> None:
    assert generated(frozenset(group.movements)) == set(group.elements)
    for left_out in group.movements:
        assert generated(frozenset(group.movements) - {left_out}) < set(group.elements)


def test_the_intersection_of_two_groups_has_a_name() -> None:
    known = [set(group.elements) for group in GROUPS.values()]
    for one, other in product(known, repeat=2):
        assert one & other in known


def test_subgroups_come_largest_first() -> None:
    names = {name: [subgroup.name for subgroup in group.subgroups()] for name, group in GROUPS.items()}
    assert names["p4m"] == ["p4m", "flips", "p4", "C2", "mirror", "trivial"]
    assert names["p4"] == ["p4", "C2", "trivial"]
    assert names["flips"] == ["flips", "C2", "mirror", "trivial"]


@EVERY
def test_a_group_is_the_disjoint_union_of_its_cosets(group: Group) -> None:
    for subgroup in group.subgroups():
        planes = group.cosets(subgroup)
        assert sorted(planes) == list(range(group.order))
        for start in range(0, group.order, subgroup.order):
            coset = planes[start : start + subgroup.order]
            place = {element: coset.index(element) for element in coset}
            for k, other in product(range(subgroup.order), repeat=2):
                moved = group.compose(group.elements.index(subgroup.elements[k]), coset[other])
                assert place[moved] == subgroup.compose(k, other)


def test_cosets_of_a_group_that_is_not_contained() -> None:
    with pytest.raises(ValueError, match=r"`subgroup` \(=flips\) must be contained in p4"):
        GROUPS["p4"].cosets(GROUPS["flips"])


@pytest.mark.parametrize(
    ("name", "left"),
    [("p4", "C2"), ("p4m", "flips"), ("flips", "flips"), ("mirror", "mirror"), ("C2", "C2"), ("trivial", "trivial")],
)
def test_what_is_left_of_a_group_on_a_map_that_is_not_square(name: str, left: str) -> None:
    assert GROUPS[name].on(4, 6) is GROUPS[left]
    assert GROUPS[name].on(5, 5) is GROUPS[name]
    assert GROUPS[name].needs_square == (name != left)


def test_movements_have_different_matrices() -> None:
    assert len(set(MOVEMENTS.values())) == len(MOVEMENTS)


PAGE = (Path(__file__).parent.parent / "docs" / "groups.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in GROUPS if name != "trivial"])
def test_the_page_says_of_each_group_what_is_so(name: str) -> None:
    group = GROUPS[name]
    (row,) = (line.split("|")[2:-1] for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
    order, moves, within, maps = (cell.strip() for cell in row)
    assert int(order) == group.order
    assert moves.startswith(group.moves)
    smaller = [subgroup.name for subgroup in group.subgroups()[1:-1]]
    assert [part.strip("`") for part in within.split(", ") if part] == smaller
    assert (maps == "square") == group.needs_square
