"""The state that a run takes over: its own spec and state where it is resumed, or another run's weights."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor

from symdsl import nn
from symdsl.analysis.facts import Arguments, Layer
from symdsl.diagnostics import RunError
from symdsl.graph.build import layers
from symdsl.runner.model import weights_of
from symdsl.runs import RunFolder
from symdsl.runs.folder import OTHER_VERSION, SPEC, WEIGHTS, has_checkpoint, new_run_advice
from symdsl.runs.metrics import epochs_in_words
from symdsl.spec import Spec, parse


def spec_to_resume(run: RunFolder, given: Spec | None, overrides: Mapping[str, object] | None = None) -> Spec:
    """Return the spec that a run continues with: its own, which a given one must equal.

    Where the run's copy is damaged or missing, the spec it was started from takes its place.

    Args:
        run: its folder.
        given: the spec, if one is.
        overrides: of the run's own spec, where its data are now.

    Raises:
        RunError: the run has no checkpoint, its copy is damaged, or the spec given is another one.
        SpecError: another version wrote the spec, and it is none for this one.
    """
    if run.status != "finished" and not has_checkpoint(run.path):
        raise RunError(f"{run.path}: {run.state()}")
    if SPEC in run.damaged() or SPEC in run.missing():
        if given is not None and run.is_as_sealed(SPEC, given.text().encode()):
            return given
        run.refuse_damaged(SPEC)
    text = run.read_text(SPEC)
    if given is None:
        return parse(text, overrides, source=str(run.path / SPEC), name=run.read_info()["spec"])
    if given.text() != text:
        way_on = f"`--resume {run.path}` without a spec continues with its own, {new_run_advice(run.path)}"
        raise RunError(f"{run.path}: was started from another spec; {way_on}")
    return given


def losses(run: RunFolder, epoch: int) -> list[str]:
    """Return a line for each damaged or missing file of a run that resuming after an epoch restores."""
    lines = [f"{run.path / name} was damaged; it is written again" for name in run.damaged()]
    lines += [f"{run.path / name} was missing; it is written again" for name in run.missing()]
    if run.status == "finished":
        lines.append("the run was finished; its result is written again")
    if run.lacks_newest_checkpoint():
        lines.append(f"the newest checkpoint is damaged; continuing from the one before, after epoch {epoch}")
    if lost := run.lost_metrics(epoch):
        lines.append(f"metrics.jsonl has lost the metrics of {epochs_in_words(lost)}")
    return lines


@attrs.frozen(eq=False)
class Weights:
    """The weights of a run, to begin another with.

    Attributes:
        run: its folder.
        epoch: epochs they were trained for.
        layers: of its network.
        tensors: by the keys of `Network.tensors`.
        pruned: candidates that had been pruned, as `layer.candidate`; their weights are zero.
    """

    run: Path
    epoch: int
    layers: tuple[Layer, ...]
    tensors: dict[str, Tensor] = attrs.field(repr=False)
    pruned: frozenset[str]

    @classmethod
    def of(cls, run: str | os.PathLike[str]) -> Weights:
        """Return the weights a finished run ended with, or those of the last checkpoint of another.

        Raises:
            RunError: it has none, or they are damaged.
        """
        folder = RunFolder.view(run)
        known = layers(folder.read_graph())
        if folder.status != "finished" or not (folder.path / WEIGHTS).exists():
            state, content = folder.load_checkpoint()
            try:
                found = load_tensors(content)
                epoch, left = state["epoch"], frozenset(state["trainer"]["pruned"])
            except SafetensorError as error:
                raise RunError(f"{folder.path}: the weights are damaged: {error}") from error
            except KeyError as error:
                raise RunError(f"{folder.path}: {OTHER_VERSION}") from error
            parameters = {
                key.removeprefix("parameter/"): one for key, one in found.items() if key.startswith("parameter/")
            }
            return cls(folder.path, epoch, known, parameters, left)
        folder.refuse_damaged(WEIGHTS)
        weights, pruned = weights_of(folder.path / WEIGHTS)
        return cls(folder.path, folder.read_result()["epochs"], known, weights, frozenset(pruned))

    def give_to(self, net: nn.Network, own: Iterable[Layer]) -> list[str]:
        """Set the parameters of a network to these weights.

        The network is that of the run, or one of some of its candidates only, such as its `learned.sym` has. A layer of
        fewer candidates divides their sum by less, for which the weights make up. A path that is linear in none of
        its tensors has no weight that could. What had been pruned keeps its own initial weights: at zero it might have
        no gradient.

        Args:
            net: the network.
            own: its layers.

        Returns:
            The candidates of the run, as `layer.candidate`, and the biases that the network lacks.

        Raises:
            RunError: the network has candidates that the run has not, or other shapes.
        """
        there, here = _names(self.layers), _names(own)
        before, now = (Counter(layer for layer, *which in names if which) for names in (there, here))
        for place, name in here.items():
            if place not in there:
                several = any(one[:3] == place[:3] for one in there)
                has = f"has another number of candidates like `{name}`" if several else f"has no `{name}` as here"
                raise RunError(f"{self.run}: its weights do not fit: the network of the run {has}")
            of_run, layer = there.pop(place), net.layer(place[0])
            if of_run in self.pruned:
                continue
            path = layer.paths[name.removeprefix(f"{place[0]}.")] if len(place) > 1 else None
            factors = path.linear_in if isinstance(path, nn.Path) else ()
            tensors = {"": layer.bias} if path is None else {f".{key}": one for key, one in path.named_parameters()}
            for key, parameter in tensors.items():
                given, shape = self.tensors.get(of_run + key), list(parameter.shape)
                if given is None or list(given.shape) != shape:
                    found = "missing" if given is None else f"{list(given.shape)}"
                    reason = f"`{name}{key}` is {found} there, but {shape} here"
                    raise RunError(f"{self.run}: its weights do not fit: {reason}")
                parameter.data.copy_(given)
                if key[1:] in factors:
                    parameter.data.mul_((now[place[0]] / before[place[0]]) ** (0.5 / len(factors)))
        return list(there.values())

    def beginning_anew(self, own: Iterable[Layer]) -> list[str]:
        """Return the candidates of a network, as `layer.candidate`, that had been pruned in the run."""
        there = _names(self.layers)
        return [name for place, name in _names(own).items() if there.get(place) in self.pruned]

    def used_otherwise(self, own: Iterable[Layer]) -> list[str]:
        """Return the names of the layers of a network that have other strides or activations in that of the run."""
        there = {layer.name: (layer.strides, layer.activations) for layer in self.layers}
        return [one.name for one in own if there.get(one.name) not in (None, (one.strides, one.activations))]


def _names(own: Iterable[Layer]) -> dict[tuple[Any, ...], str]:
    """The name of every candidate, and the key of every bias, of some layers.

    A candidate is known by its kind and arguments: its name may be shorter where there are fewer in its layer. Of equal
    ones, it is known by their number and its place among them.
    """
    found: dict[tuple[Any, ...], str] = {}
    for layer in own:
        equal = Counter((one.kind, one.arguments) for one in layer.candidates)
        seen = Counter[tuple[str, Arguments]]()
        for one in layer.candidates:
            which = one.kind, one.arguments
            seen[which] += 1
            found[layer.name, *which, seen[which], equal[which]] = f"{layer.name}.{one.name}"
        if layer.bias is not None:
            found[layer.name,] = f"{layer.name}.bias"
    return found
