"""Kinds with fixed weights."""

from analysis.specs import codes

SPEC = """
data digits(size = 8)

network n {
  input image(1, 8, 8)
  flatten
  layer h1: RFF -> 8
  layer out: FC -> classes
}

prior { h1.bias ~ normal(variance = 2) }
"""


def test_a_prior_of_a_bias_that_is_not_there_matches_nothing() -> None:
    assert codes(SPEC) == ["E501"]
