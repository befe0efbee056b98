"""Kinds with fixed weights."""

import pytest

from analysis.specs import codes, found

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


@pytest.mark.parametrize("selector", ["h1.RFF", "h1.*", "*.RFF", "h1.RFF.w", "h1.bias.w", "h1.FC"])
def test_a_prior_of_fixed_weights_matches_nothing(selector: str) -> None:
    (only,) = found(SPEC.replace("h1.bias", selector))
    assert (only.code, only.message) == ("E501", "the weights of `RFF` are fixed: this prior matches nothing")


def test_a_prior_in_a_block_need_not_reach_weights_in_every_use() -> None:
    block = "block b(k: kinds) { layer: k ~ normal(precision = 2) -> 4 }"
    text = SPEC.replace("network", f"{block}\nnetwork").replace("prior { h1.bias ~ normal(variance = 2) }", "")
    one = text.replace("layer h1: RFF -> 8", "use b(RFF)")
    assert codes(one) == ["E501"]
    for uses in ("use b(RFF) use b(FC) as c", "use b(FC) use b(RFF) as c", "use b([FC, F-FC])"):
        assert codes(text.replace("layer h1: RFF -> 8", uses)) == []


@pytest.mark.parametrize("candidate", ["RFF ~ normal(precision = 3)", "RFF(lengthscale = 2) ~ normal(variance = 2)"])
def test_a_candidate_with_fixed_weights_has_no_prior(candidate: str) -> None:
    (only,) = found(SPEC.replace("RFF ->", f"{candidate} ->").replace("prior { h1.bias", "prior { out.FC"))
    assert (only.code, only.message) == ("E501", "the weights of `RFF` are fixed: this prior matches nothing")
