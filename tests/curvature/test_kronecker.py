import pytest
import torch

from oracles.comparison import assert_same
from symdsl.curvature.kronecker import gram


@pytest.mark.parametrize("shape", [(3, 1), (5, 256), (2, 7, 257), (3, 600), (2, 4, 1025)])
def test_a_gram_matrix_is_the_product_of_its_rows(shape):
    rows = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert_same(gram(rows), rows.mT @ rows)
