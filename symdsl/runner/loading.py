"""A finished run as a value: its network, its spec, its result, and what it predicts."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import attrs
import torch
from numpy.typing import NDArray
from torch import Tensor

from symdsl.data.inputs import Preparation, as_inputs
from symdsl.data.records import as_tensor
from symdsl.diagnostics import RunError
from symdsl.evidence.loss import LIKELIHOODS
from symdsl.graph.build import layers
from symdsl.nn import BIAS, Network, evaluation_mode, outputs_of
from symdsl.predictive import Posterior, Predicted, read_posterior
from symdsl.runner.device import resolve_device
from symdsl.runner.model import Model, read_model
from symdsl.runs import RunFolder
from symdsl.runs.folder import POSTERIOR, SPEC, WEIGHTS
from symdsl.spec import Spec, parse


@attrs.frozen(eq=False)
class Run:
    """A finished run: its network, result and predictions.

    Attributes:
        folder: of the run.
        model: the network, and all that a prediction needs.
        result: what `result.json` holds.
        prepare: takes images as the source of the data gives them, `[n, channel, row, column]`, 8 bits in [0, 1],
            through the transforms of the data that draw nothing at random.
    """

    folder: Path
    model: Model = attrs.field(repr=False)
    result: dict[str, Any] = attrs.field(repr=False)
    prepare: Preparation = attrs.field(repr=False)

    def __fspath__(self) -> str:
        return str(self.folder)

    @property
    def network(self) -> Network:
        """A `torch.nn.Module` without the paths that were pruned, ready to be trained on."""
        return self.model.network

    @property
    def precisions(self) -> dict[str, float]:
        """The precisions of the priors that the run ended with, by key of `network.tensors()`.

        With `curvature="joint"`, `symdsl.laplace.fit(run.network, data.train, precisions=run.precisions,
        noise=run.noise)` has about its evidence, for `standardize(targets)` in units of standardized targets.
        """
        measured = {layer["name"]: layer for layer in self.result["layers"]}
        found = {f"{name}.{BIAS}": one["bias"]["precision"] for name, one in measured.items()}
        for layer in layers(self.model.graph):
            for candidate, one in zip(layer.candidates, measured[layer.name]["candidates"], strict=True):
                keys = [f"{layer.name}.{candidate.name}.{tensor.name}" for tensor in candidate.tensors]
                found |= dict(zip(keys, one["precision"], strict=True))
        return {key: found[key] for key in self.network.tensors() if key in found}

    @property
    def noise(self) -> float:
        """The variance of a regression's noise, in the units that the network is trained in; 1 of a classification."""
        return self.model.noise

    @property
    def spec(self) -> Spec:
        """The spec as it was run.

        Raises:
            RunError: it is missing.
            SpecError: it is damaged, or the files of its data are gone.
        """
        text = RunFolder.view(self.folder).read_text(SPEC)
        return parse(text, source=str(self.folder / SPEC), name=self.result["spec"])

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes or targets, in the order of the outputs, or their numbers without names."""
        return self.model.preprocessing.names(self.model.data.classes)

    def predict(self, x: Tensor | NDArray[Any], calibrated: bool = True) -> Predicted:
        """Return what the run predicts for some inputs.

        Args:
            x: as the network reads them, `[n, channel, row, column]`: examples of the run's own data, or what `prepare`
                makes of others, by the statistics of the run.
            calibrated: whether to average over the posterior of the last layer's weights; without, the network's own
                outputs count.

        Returns:
            Probabilities of the classes; for a regression means and standard deviations in the units of the data.

        Raises:
            RunError: `x` does not hold floats, is not of the network's shape or not finite, or the posterior's file is
                missing or damaged.
        """
        x = as_inputs(x)
        if not x.is_floating_point():
            held = str(x.dtype).removeprefix("torch.")
            raise RunError(f"`x` holds {held}, expected floats, such as `prepare` returns")
        x = x.to(self.network.dtype)
        wanted = (self.model.data.channels, self.model.data.height, self.model.data.width)
        if x.ndim != 4 or tuple(x.shape[1:]) != wanted:
            raise RunError(f"`x` is of shape {tuple(x.shape)}, expected (n, {', '.join(map(str, wanted))})")
        if not bool(x.isfinite().all()):
            raise RunError("`x` holds a number that is not finite")
        found = None
        with evaluation_mode(self.network), contextlib.suppress(torch.linalg.LinAlgError):
            if calibrated:
                found = self.posterior().predict(self.network, x)
            else:
                likelihood = LIKELIHOODS[self.model.data.task]
                found = Predicted.plain(outputs_of(self.network, x), likelihood, self.model.noise)
        if found is None or not found.is_finite:
            raise RunError("the network's outputs are not finite: numbers in `x` are too large for it")
        targets = self.model.preprocessing.targets
        if targets is None or found.mean is None or found.std is None:
            return found
        scale = self.model.preprocessing.target_scale(found.mean.shape[1]).to(found.std.device)
        return Predicted(mean=targets.restored(found.mean), std=found.std * scale)

    def targets(self, y: Tensor | NDArray[Any]) -> Tensor:
        """Return labels as predictions have them: those of a regression in the units of the data.

        Args:
            y: of examples of `symdsl.data.load`, which `standardize(targets)` may have moved and scaled: `[n, target]`,
                or classes `[n]`.
        """
        return self.model.preprocessing.restored_targets(as_tensor(y, "y"))

    def posterior(self) -> Posterior:
        """Return the Laplace posterior of the last layer's weights.

        Raises:
            RunError: its file is missing or damaged.
        """
        folder = RunFolder.view(self.folder)
        try:
            folder.refuse_damaged(POSTERIOR)
            found = read_posterior(folder.path / POSTERIOR, LIKELIHOODS[self.model.data.task])
        except RunError as error:
            raise RunError(f"{error}; `--map` or `calibrated=False` predicts without it") from None
        return found.to(self.network.device)


@torch.inference_mode(False)
def load_run(path: str | os.PathLike[str], device: str | torch.device = "auto") -> Run:
    """Open a finished run.

    Args:
        path: its folder, for which its `Result` stands as well.
        device: the device of its network: `auto`, `cpu`, `cuda` or `cuda:n`.

    Raises:
        RunError: if it is not finished, or its files are damaged.
    """
    folder = RunFolder.view(path)
    result = folder.read_result()
    folder.refuse_damaged(WEIGHTS)
    model = read_model(folder.path / WEIGHTS)
    model.network.to(resolve_device(device))
    return Run(folder.path.resolve(), model, result, Preparation(model.data, model.preprocessing, result["seed"]))
