import pytest
import torch

from oracles.comparison import assert_same
from symdsl.diagnostics import NumericalError
from symdsl.evidence.eigenvalues import symmetric_eigenvalues


def test_rank_deficient_float32_blocks_have_finite_eigenvalues_that_are_not_negative():
    column = torch.randn(6, 300, 1, generator=torch.Generator().manual_seed(0))
    values = symmetric_eigenvalues(column @ column.mT, "w")
    assert values.dtype == torch.float64
    assert bool((values >= 0).all())
    assert_same(values.view(6, 300)[:, -1], column.double().square().sum((1, 2)), 1e-5)


def test_a_failing_routine_is_retried_with_jitter_and_then_reported(monkeypatch):
    calls = []

    def failing(matrix):
        calls.append(matrix)
        return torch.full(matrix.shape[:-1], torch.nan)

    monkeypatch.setattr(torch.linalg, "eigvalsh", failing)
    with pytest.raises(NumericalError, match=r"l3\.CONV\.w, input factor did not converge"):
        symmetric_eigenvalues(torch.eye(2).unsqueeze(0), "l3.CONV.w, input factor")
    assert len(calls) == 3


def test_a_routine_that_raises_once_is_survived(monkeypatch):
    honest, calls = torch.linalg.eigvalsh, []

    def raising_once(matrix):
        calls.append(matrix)
        if len(calls) == 1:
            raise torch.linalg.LinAlgError("no convergence")
        return honest(matrix)

    monkeypatch.setattr(torch.linalg, "eigvalsh", raising_once)
    assert_same(symmetric_eigenvalues(torch.eye(2).unsqueeze(0), "w"), torch.ones(2, dtype=torch.float64), 1e-8)


def test_curvature_that_is_not_finite_is_reported():
    with pytest.raises(NumericalError, match=r"the curvature of l1\.FC\.w is not finite"):
        symmetric_eigenvalues(torch.full((1, 2, 2), torch.nan), "l1.FC.w")
