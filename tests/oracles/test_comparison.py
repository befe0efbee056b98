import pytest
import torch

from oracles.comparison import assert_same

ONES = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (ONES * 1.001, "largest difference"),
        (torch.ones(3, 2), "shape"),
        (ONES * torch.nan, "not finite"),
        (ONES * torch.inf, "not finite"),
    ],
)
def test_the_comparison_fails_on_what_is_wrong(found, message):
    with pytest.raises(AssertionError, match=message):
        assert_same(found, ONES, 1e-6)


def test_the_comparison_passes_what_is_right():
    assert_same(ONES + 1e-12, ONES)
