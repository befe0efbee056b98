"""The state that a run takes over: its own spec and state where it is resumed, or another run's weights."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import attrs
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor

from symdsl.diagnostics import RunError
from symdsl.nn import Network
from symdsl.runner.model import weights_of
from symdsl.runs import RunFolder
from symdsl.runs.folder import SPEC, WEIGHTS
from symdsl.spec import Spec, parse


def spec_to_resume(run: RunFolder, given: Spec | None) -> Spec:
    """Return the spec that a run continues with: its own, which a given one must equal.

    Where the run's copy is damaged or missing, the spec it was started from takes its place.

    Raises:
        RunError: the run's copy is damaged, or the spec given is another one.
        SpecError: another version wrote the spec, and it is none for this one.
    """
    if SPEC in run.damaged() or SPEC in run.missing():
        if given is not None and run.is_as_sealed(SPEC, given.text().encode()):
            return given
        run.refuse_damaged(SPEC)
    text = run.read_text(SPEC)
    if given is None:
        return parse(text, source=str(run.path / SPEC), name=run.read_info()["spec"])
    if given.text() != text:
        way_on = f"`--resume {run.path}` without a spec continues with its own, {run.new_run_advice()}"
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
        lines.append(f"metrics.jsonl has lost the metrics of {_epochs(lost)}")
    return lines


def _epochs(numbers: list[int]) -> str:
    """Epochs in words: `epoch 3`, `epochs 3 to 5, 8`."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda one: one[1] - one[0])]
    parts = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"epoch{'s' if len(numbers) > 1 else ''} {', '.join(parts)}"


@attrs.frozen(eq=False)
class Weights:
    """The weights of a run, to begin another with.

    Attributes:
        run: its folder.
        epoch: epochs they were trained for.
        tensors: by the keys of `Network.tensors`.
    """

    run: Path
    epoch: int
    tensors: dict[str, Tensor] = attrs.field(repr=False)

    @classmethod
    def of(cls, run: str | Path) -> Weights:
        """Return the weights a finished run ended with, or those of the last checkpoint of another.

        Raises:
            RunError: it has none, or they are damaged.
        """
        folder = RunFolder.view(run)
        if folder.status != "finished" or not (folder.path / WEIGHTS).exists():
            state, content = folder.load_checkpoint()
            try:
                found = load_tensors(content)
            except SafetensorError as error:
                raise RunError(f"{folder.path}: the weights are damaged: {error}") from error
            parameters = {
                key.removeprefix("parameter/"): one for key, one in found.items() if key.startswith("parameter/")
            }
            return cls(folder.path, state["epoch"], parameters)
        folder.refuse_damaged(WEIGHTS)
        return cls(folder.path, folder.read_result()["epochs"], weights_of(folder.path / WEIGHTS))

    def give_to(self, net: Network) -> None:
        """Set the parameters of a network to these weights.

        Raises:
            RunError: it has other parameters, or of other shapes.
        """
        own = net.tensors()
        for key in sorted(own.keys() ^ self.tensors.keys()):
            lacks = "this network" if key in self.tensors else "that of the run"
            raise RunError(f"{self.run}: its weights do not fit: {lacks} has no `{key}`")
        for key, parameter in own.items():
            there, here = (list(one.shape) for one in (self.tensors[key], parameter))
            if there != here:
                raise RunError(f"{self.run}: its weights do not fit: `{key}` is {there} there, but {here} here")
            parameter.data.copy_(self.tensors[key])
