"""What is kept of a network's predictions of the test data."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save

from symdsl import runner
from symdsl.data import Examples
from symdsl.data.preprocessing import Preprocessing, Statistics
from symdsl.diagnostics import RunError
from symdsl.runner.predictions import MISTAKES, predictions_of
from symdsl.runs import predictions
from symdsl.runs.predictions import MOST_TARGETS


def examples(labels, channels=1, side=4):
    generator = torch.Generator().manual_seed(0)
    return Examples(torch.randn(len(labels), channels, side, side, generator=generator), labels)


def test_classes_are_kept_with_their_confidence_and_the_surest_mistakes_first():
    logits = torch.tensor([[2.0, 0.0], [0.0, 3.0], [1.0, 0.0], [0.0, 0.5]])
    found = predictions_of(logits, examples(torch.tensor([0, 0, 1, 1])), Preprocessing(classes=("cat", "dog")))
    assert found.names == ("cat", "dog")
    assert found.target.tolist() == [0, 0, 1, 1]
    assert found.predicted.tolist() == [0, 1, 0, 1]
    np.testing.assert_allclose(found.confidence, logits.double().softmax(1).max(1).values, rtol=1e-12)
    assert found.worst.tolist() == [1, 2]
    assert found.images.shape == (2, 4, 4, 1)
    assert (found.images.min(), found.images.max()) == (0, 255)


def test_targets_are_kept_with_the_largest_errors_first():
    target = torch.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    outputs = target + torch.tensor([[0.1, 0.0], [0.0, -3.0], [1.0, 1.0]])
    units = Statistics(mean=(5.0, -1.0), std=(10.0, 2.0))
    found = predictions_of(outputs, examples(target), Preprocessing(targets=units))
    assert (found.task, found.confidence) == ("regression", None)
    np.testing.assert_allclose(found.target, target * torch.tensor([10.0, 2.0]) + torch.tensor([5.0, -1.0]))
    np.testing.assert_allclose(found.predicted, outputs * torch.tensor([10.0, 2.0]) + torch.tensor([5.0, -1.0]))
    assert found.worst.tolist() == [1, 2, 0]


def test_of_many_targets_the_first_are_kept_and_ranked():
    target = torch.zeros(3, MOST_TARGETS + 2)
    outputs = torch.zeros(3, MOST_TARGETS + 2)
    outputs[0, -1], outputs[1, 0], outputs[2, MOST_TARGETS - 1] = 9.0, 1.0, 2.0
    found = predictions_of(outputs, examples(target), Preprocessing())
    assert found.target.shape == (3, MOST_TARGETS)
    assert found.worst.tolist() == [2, 1, 0]


def test_what_is_kept_stays_small():
    count = 60
    labels = torch.zeros(count, dtype=torch.int64)
    logits = torch.zeros(count, 500)
    logits[:, 1] = 5.0
    found = predictions_of(logits, examples(labels, channels=5, side=200), Preprocessing())
    assert len(found.worst) == MISTAKES
    assert found.images.shape == (MISTAKES, 128, 128, 1)  # five channels have no colours
    assert len(found.to_bytes()) < 24 * count + MISTAKES * 128 * 128 + 1000


@pytest.mark.parametrize("right", [True, False])
def test_predictions_are_read_as_they_were_written(tmp_path, right):
    labels = torch.tensor([0, 1]) if right else torch.tensor([1, 0])
    found = predictions_of(torch.eye(2), examples(labels, channels=3), Preprocessing(classes=("a", "b")))
    assert len(found.worst) == (0 if right else 2)
    (tmp_path / predictions.FILE).write_bytes(found.to_bytes())
    again = predictions.read(tmp_path)
    assert (again.task, again.names) == (found.task, found.names)
    for name in ("target", "predicted", "confidence", "worst", "images"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))


def test_the_same_predictions_are_the_same_bytes_in_every_process():
    found = predictions_of(torch.eye(2), examples(torch.tensor([1, 0]), channels=3), Preprocessing(classes=("a", "b")))
    content = found.to_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert header["__metadata__"] == {"classes": '["classification", ["a", "b"]]'}  # the order of several changes


def test_predictions_of_earlier_versions_are_read(tmp_path):
    found = predictions_of(torch.eye(2), examples(torch.tensor([1, 0]), channels=3), Preprocessing(classes=("a", "b")))
    arrays = {name: getattr(found, name) for name in ("target", "predicted", "confidence", "worst", "images")}
    (tmp_path / predictions.FILE).write_bytes(save(arrays, {"task": "classification", "names": '["a", "b"]'}))
    assert predictions.read(tmp_path).names == ("a", "b")


def test_a_run_keeps_its_predictions(small, tmp_path):
    result = runner.search(small(search__epochs=1), device="cpu", out=tmp_path / "run")
    found = predictions.read(tmp_path / "run")
    assert len(found.target) == 24
    assert (found.target == found.predicted).mean() == pytest.approx(result["test"]["accuracy"])


def test_there_may_be_none(tmp_path):
    assert predictions.read(tmp_path) is None


def test_damaged_predictions_are_told(tmp_path):
    (tmp_path / predictions.FILE).write_bytes(b"nothing of the kind")
    with pytest.raises(RunError, match=r"predictions\.safetensors: damaged"):
        predictions.read(tmp_path)
