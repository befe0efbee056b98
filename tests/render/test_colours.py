from itertools import pairwise

import pytest

from symdsl.kinds import KINDS
from symdsl.render.colours import INK, OTHER, PAPER, colour, ink_on, lightness

COLOURS = {kind.name: kind.colour for kind in KINDS.built_in.values()}


def contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG 2, from lightness."""
    dark, light = sorted(((lightness(each) + 16) / 116) ** 3 for each in (one, other))
    return (light + 0.05) / (dark + 0.05)


def test_lightness_of_known_greys():
    assert lightness("#000000") == pytest.approx(0, abs=1e-9)
    assert lightness("#ffffff") == pytest.approx(100, abs=1e-3)
    assert lightness("#777777") == pytest.approx(50.03, abs=0.05)


def test_every_two_kinds_differ_in_grey():
    levels = sorted(map(lightness, COLOURS.values()))
    assert min(after - before for before, after in pairwise(levels)) > 7


def test_kinds_that_compete_most_differ_most():
    levels = sorted(lightness(COLOURS[kind]) for kind in ("FC", "CONV", "GCONV"))
    assert min(after - before for before, after in pairwise(levels)) > 24
    assert lightness(COLOURS["F-FC"]) - lightness(COLOURS["CONV"]) > 30


@pytest.mark.parametrize("kind", [*COLOURS, "some other kind"])
def test_text_is_legible_on_every_colour(kind):
    assert contrast(ink_on(colour(kind)), colour(kind)) > 4.5


def test_kind_without_a_colour_of_its_own():
    assert colour("HEXCONV") == OTHER


def test_ink_is_dark_on_light_and_light_on_dark():
    assert (ink_on("#ffffff"), ink_on("#000000")) == (INK, PAPER)
