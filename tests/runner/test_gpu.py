"""Searches and what follows them on a GPU, a pretended one: no tensor is left behind on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

import symdsl
from pretended import gpu
from symdsl import data, runner
from symdsl.export import export_run
from symdsl.runner import estimating, start, training
from symdsl.runner.audits import audit_spec_or_run
from symdsl.runner.evaluate import evaluate
from symdsl.runner.timing import probe
from symdsl.spec import parse

__all__ = ["gpu"]

NETWORK = """
data synthetic(size = 6, classes = 3, train = 24, test = 8) |> standardize |> augment(flip, shift = 1)

network n {
  input image(channels, 6, 6)
  average affine(rotation = 5, samples = 2) {
    layer l1: F-FC + S-CONV(3, on = lengthscale) -> 2 |> relu
  }
  residual {
    layer l2: S-FC + CONV(3) -> 2
  }
  lift p4
  layer l3: F-GFC + GCONV(3, factor = separable) -> 2 stride 2 |> relu
  project max
  flatten
  layer h1: FC -> classes
}

search {
  epochs     = 2
  every      = 2
  batch      = 12
  start      = symmetric
  objective  = laplace(kfac)
  invariance = logit(group = p4)
}
"""
SMALL = """
data synthetic(size = 4, classes = 3, train = 24, test = 8) |> standardize

network n {
  input image(channels, 4, 4)
  layer l1: F-FC + CONV(3) -> 2 stride 2 |> relu
  flatten
  layer h1: FC -> classes
}

search { epochs = 3  every = 2  batch = 12 }
"""
FEATURES = """
data synthetic(size = 4, classes = 3, train = 48, test = 20) |> standardize

network n {
  input image(channels, 4, 4)
  average affine(rotation = 5) { flatten  layer f: RFF -> 8 }
  layer h1: FC -> classes
}

search { objective = elbo  epochs = 3  batch = 16 }
"""
REGRESSION = """
data digits |> subset(60, 20) |> rotate(degrees = 45, label = angle) |> standardize |> standardize(targets)

network n {
  input image(channels, 8, 8)
  layer l1: F-FC + CONV(3) -> 2 stride 2 |> relu
  flatten
  layer h1: FC -> classes
}

search { epochs = 2  batch = 20 }
"""


class Stopped:
    def on_epoch(self, record: Any) -> None:
        if record["epoch"] == 2:
            raise KeyboardInterrupt


def numbers(found: Any) -> dict[str, Any]:
    return {key: found[key] for key in ("test", "train", "neg_log_evidence_per_example", "start")}


@pytest.mark.parametrize(
    "text",
    [NETWORK, FEATURES, REGRESSION],
    ids=["laplace", "elbo", "regression"],
)
def test_a_search_on_a_gpu_finds_what_it_does_on_the_cpu(text: str, gpu: str, tmp_path: Path) -> None:
    spec = parse(text)
    there = runner.search(spec, gpu, out=tmp_path / "gpu")
    assert there["device"] == "cuda (pretended)"
    assert numbers(there) == numbers(runner.search(spec, "cpu", out=tmp_path / "cpu"))


def test_many_examples_are_searched_on_a_gpu_as_on_the_cpu(
    gpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond a number of examples the optimizer is SOAP, and the uses of a weight are summed first."""
    for module in (training, start, estimating):
        monkeypatch.setattr(module, "FEW_EXAMPLES", 10)
    made = Mock(wraps=training.Soap)
    monkeypatch.setattr(training, "Soap", made)
    spec = parse(NETWORK.replace("laplace(kfac)", "laplace"))
    there, here = (runner.search(spec, device, out=tmp_path / device) for device in (gpu, "cpu"))
    assert numbers(there) == numbers(here)
    assert made.called


def test_what_follows_a_search_on_a_gpu(gpu: str, tmp_path: Path) -> None:
    spec = parse(SMALL)
    with pytest.raises(KeyboardInterrupt):
        runner.search(spec, gpu, out=tmp_path / "run", callbacks=[Stopped()])
    result = runner.search(device=gpu, resume=tmp_path / "run")
    assert numbers(result) == numbers(runner.search(spec, gpu, out=tmp_path / "whole"))
    assert evaluate(tmp_path / "run", device=gpu) == evaluate(tmp_path / "run", device="cpu")
    run, test = symdsl.load_run(tmp_path / "run", gpu), data.load(spec).test
    found = run.predict(test.x)
    assert found.probabilities is not None
    assert found.probabilities.device != test.y.device
    assert found.nll(test.y) == pytest.approx(symdsl.load_run(tmp_path / "run", "cpu").predict(test.x).nll(test.y))
    assert 0 < found.brier(test.y) < 2
    assert 0 <= found.calibration_error(test.y) <= 1
    assert audit_spec_or_run(tmp_path / "run", "p4", gpu).found.examples == 8
    export_run(run, "torch", tmp_path / "net")
    assert runner.search(spec, gpu, out=tmp_path / "on", weights_from=tmp_path / "run")["device"] == "cuda (pretended)"
    assert probe(spec, gpu)["device"] == "cuda (pretended)"


def test_laplace_fits_a_network_on_a_gpu_to_examples_in_memory(gpu: str) -> None:
    spec = parse(SMALL)
    examples = data.load(spec).train
    here, there = symdsl.compile(spec, 0), symdsl.compile(spec, 0).to(gpu)
    for curvature in ("kfac-reduce", "joint"):
        evidences = [symdsl.laplace.fit(net, examples, curvature).log_evidence() for net in (here, there)]
        assert evidences[0] == pytest.approx(evidences[1])


def test_the_pretended_gpu_refuses_what_a_gpu_does(gpu: str) -> None:
    there, here = torch.ones(3, device=gpu), torch.ones(3)
    assert (there + torch.tensor(1.0)).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="same device"):
        there + here
    with pytest.raises(RuntimeError, match="same device"):
        here[there.long()]
    with pytest.raises(RuntimeError, match="generator"):
        torch.randn(3, device=gpu, generator=torch.Generator())
