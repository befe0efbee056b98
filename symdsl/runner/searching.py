"""The search from beginning to end: folder, loop, checkpoint, resume, result."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import attrs
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from symdsl import data as data_room
from symdsl import lowering, ranks, render, runs
from symdsl.data import Dataset
from symdsl.data.checks import check_dataset
from symdsl.diagnostics import NumericalError, RunError, not_a_spec
from symdsl.graph import to_json
from symdsl.nn import derivatives_on, outputs_of
from symdsl.predictive import Posterior, fit_last_layer, posterior_bytes
from symdsl.progress import Callbacks
from symdsl.runner.advice import diagnosis
from symdsl.runner.device import describe, is_out_of_memory, resolve_device
from symdsl.runner.estimating import final_laplace
from symdsl.runner.model import model_bytes
from symdsl.runner.predictions import predictions_of
from symdsl.runner.report import Evidence, describe_run
from symdsl.runner.result import Result
from symdsl.runner.resuming import Weights, losses, spec_to_resume
from symdsl.runner.start import StartKind, begin, settle, starts, stated_start
from symdsl.runner.structure import Structure
from symdsl.runner.training import EpochMetrics, Trainer
from symdsl.runner.trial import BEST_EVIDENCE, LEAST_GAIN, is_behind, late_evidence, trial_epochs
from symdsl.runner.variational import Variational
from symdsl.runs import RunFolder
from symdsl.runs.files import checksum
from symdsl.runs.folder import (
    GRAPH,
    LEARNED,
    OTHER_VERSION,
    PICTURES,
    POSTERIOR,
    RESULT,
    SPEC,
    WEIGHTS,
    OnlookersFolder,
    new_run_advice,
)
from symdsl.runs.locks import in_use
from symdsl.runs.predictions import FILE as PREDICTIONS
from symdsl.runs.schema import Objective, command_of
from symdsl.spec import Spec

_SAVING_SHARE = 0.05
"""Checkpoints may take this share of the time; a network that takes long to save is saved less often."""

_PHASES = {"loading": 0.0, "training": 0.0, "evidence": 0.0, "posterior": 0.0}
"""Seconds of each phase before it has begun."""

_EVIDENCE = {"neg_log_evidence_per_example", BEST_EVIDENCE}

_PATIENCE = 5
"""Epochs after which a network should do better than guess; a tenth of them, if the run is long."""

_GUESSING = 0.02
"""Share of the deviance explained below which a network has learned next to nothing."""


@derivatives_on()
def search(
    spec: Spec | None = None,
    device: str | torch.device = "auto",
    out: str | Path | None = None,
    resume: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    objective: Objective | None = None,
    callbacks: Sequence[object] = (),
    weights_from: str | os.PathLike[str] | None = None,
    data: Dataset | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Result:
    """Train a spec's network, learn its priors by the evidence, and write the run folder.

    Processes of one `torch.distributed` group divide the work; all of them must call this function. The first writes
    the folder and calls the callbacks.

    Args:
        spec: the spec to learn; a resumed run keeps its own.
        device: `auto`, `cpu`, `cuda` or `cuda:n`.
        out: folder of a new run; `runs/<spec>/<time>-<hash>` when left out.
        resume: folder of an unfinished run to continue instead, of the same spec if one is given. Of a finished one,
            what was lost or damaged since is written again.
        seed: replaces the spec's own.
        objective: `map` keeps the priors fixed, as the baseline; by default what the spec says.
        callbacks: objects with some of the methods of `symdsl.Callback`.
        weights_from: folder of a run, finished or not, of the same network or one with more candidates, such as that
            of whose `learned.sym` this is; a new run starts from its weights, and nothing else.
        data: the data of a spec with `data given(...)`, see `symdsl.data.from_tensors`; a resumed run needs the same.
        overrides: of a run that is resumed without a spec, where its data are now, such as `{"data.path": "new.npz"}`;
            they must be the same data.

    Raises:
        ValueError: if there is neither a spec nor a run to resume, arguments exclude each other, or the device is
            unknown, or torch's default dtype is not float32, or its default device not the CPU.
        SpecError: if the spec in the folder to resume is wrong, or the seed.
        TypeError: if spec or data are of another type, or a callback has none of those methods.
        RunError: if data, device or folder cannot be used; the message says what to do.
        NumericalError: if the loss or the curvature is not finite, again after a retry at half the learning rate.
        KeyboardInterrupt: on Ctrl-C, after saving what `resume` needs.
    """
    check_arguments(spec, data, objective)
    if torch.get_default_dtype() != torch.float32:
        raise ValueError(f"torch's default dtype (={torch.get_default_dtype()}) must be float32, in which runs compute")
    if torch.get_default_device().type != "cpu":
        raise ValueError(
            f"torch's default device (={torch.get_default_device()}) must be the CPU: give `device` instead"
        )
    if resume is not None and (out is not None or weights_from is not None):
        raise ValueError("`resume` continues a run unchanged: leave `out` and `weights_from` out")
    if spec is None and (resume is None or seed is not None):
        raise ValueError("`spec` can be left out only to resume a run with its own seed")
    if overrides and (spec is not None or resume is None or not all(key.startswith("data.") for key in overrides)):
        raise ValueError("`overrides` say where the data of a run are that is resumed without a spec: keys `data.KEY`")
    if spec is not None and seed is not None:
        spec = spec.with_seed(seed)
    heard = Callbacks(callbacks)
    if ranks.rank():
        heard = Callbacks(())
    target = resolve_device(device)
    if resume is not None:
        given, folder_to_resume = spec, resume
        spec = ranks.from_first(lambda: spec_to_resume(RunFolder.view(folder_to_resume), given, overrides))
    assert spec is not None, "a spec or a run to resume is given"
    maximised = objective_of(spec, objective)
    weights = None if weights_from is None else ranks.from_first(lambda: Weights.of(weights_from))
    with _open(spec, maximised, out, resume) as folder, heard.hearing_failures():
        with _ending_noted(folder, noted=resume is None):  # a refused resume leaves the run as it was
            started = time.perf_counter()
            dataset = ranks.together(lambda: data_room.load(spec, watch=heard.on_loading, given=data))
            loading = time.perf_counter() - started
            run = _Run(spec, dataset, target, folder, maximised, heard, loading, weights)
            notes = run.begin() if resume is None else run.restore()
        with _ending_noted(folder):
            return run.finish(notes)


def check_arguments(spec: Spec | None, data: Dataset | None, objective: Objective | None) -> None:
    """Raise an error unless spec, data and objective are of the types that a search takes.

    Raises:
        ValueError: the objective is unknown.
        TypeError: spec or data are of another type.
    """
    if objective not in (None, *get_args(Objective)):
        raise ValueError(f'`objective` (="{objective}") must be "map", or what the spec says')
    if spec is not None and not isinstance(spec, Spec):
        raise not_a_spec(spec)
    check_dataset(data)


def objective_of(spec: Spec, asked: Objective | None = None) -> Objective:
    """Return what a search of a spec maximises.

    Args:
        spec: says what it is where nothing is asked for.
        asked: `map`, or what the spec says.

    Raises:
        ValueError: another objective is asked for.
    """
    own = spec.facts.search.objective.name
    if asked not in (None, own, "map"):
        raise ValueError(f'`objective` (="{asked}") must be "map", or "{own}" as the spec says')
    return asked or own


def _open(spec: Spec, objective: Objective, out: str | Path | None, resume: str | os.PathLike[str] | None) -> RunFolder:
    """Return the run folder: open and locked on the first rank, only known by its path on the others."""
    opened: list[RunFolder] = []

    def locked() -> Path:
        if resume is not None:
            opened.append(RunFolder.resume(resume))
        else:
            default = runs.default_folder(
                spec.name, datetime.now(UTC), checksum(f"{objective}\n{spec.text()}".encode())
            )
            opened.append(RunFolder.create(out or runs.new_folder(default)))
        return opened[0].path

    try:
        path = ranks.from_first(locked)
    except BaseException:
        if opened and not opened[0].has_begun:  # another rank is lost
            opened[0].discard()
        raise
    return opened[0] if opened else OnlookersFolder(path, lock=None)


@contextlib.contextmanager
def _ending_noted(folder: RunFolder, noted: bool = True) -> Iterator[None]:
    """Record how a run ended that has not finished, where that is to be noted; discard one that has not begun."""

    def note_end(status: Literal["interrupted", "failed"], error: Exception | None = None) -> None:
        if not folder.has_begun:
            folder.discard()
        elif noted:
            with contextlib.suppress(RunError):
                if folder.status != "finished":
                    folder.set_status(status, datetime.now(UTC), None if error is None else _reason(error))

    try:
        yield
    except KeyboardInterrupt:
        note_end("interrupted")
        raise
    except ranks.RankLostError as error:
        error.folder, error.silent = folder.path, ranks.rank() > 0 and in_use(folder.path)
        note_end("failed", error)
        raise
    except (RunError, NumericalError) as error:
        note_end("failed", error)
        raise
    except Exception as error:
        if not is_out_of_memory(error):  # what a callback raises ends a search as Ctrl-C does
            note_end("interrupted", error)
            raise
        reason = RunError("out of memory; lower `search.batch` or the network's width, or choose another device")
        note_end("failed", reason)
        raise reason from error


def _reason(error: Exception) -> str:
    """What a run folder says of its end; an error that symdsl does not raise is told with its type."""
    return str(error) if isinstance(error, RunError | NumericalError) else f"{type(error).__name__}: {error}"


def picture_or_note(draw: Callable[[], bytes], folder: Path, note: Callable[[str], None]) -> bytes | None:
    """Return a picture, or where Graphviz cannot draw tell how to draw it later."""
    try:
        return draw()
    except RunError as error:
        note(f"{error}; then: symdsl show {folder} --emit svg -o FILE")
        return None


class _Run:
    """One search in one folder."""

    def __init__(
        self,
        spec: Spec,
        dataset: Dataset,
        device: torch.device,
        folder: RunFolder,
        objective: Objective,
        callbacks: Callbacks,
        loading: float,
        weights: Weights | None,
    ) -> None:
        # On the device once: each start, and each retry, has a trainer of its own.
        self.spec, self.dataset, self.device = spec, dataset.trained_on(device), device
        self.folder, self.objective, self.callbacks, self._weights = folder, objective, callbacks, weights
        self.seconds = _PHASES | {"loading": loading}
        self._losses: list[float] = []
        self.retried = False
        self._saved_at, self._saving_took = 0.0, 0.0
        self._untried: list[StartKind] = []
        self._trial: list[dict[str, Any]] = []
        self._left_out: list[str] = []
        if objective == "laplace":
            first, *others = starts(spec.facts, len(dataset.train))
            self._untried = others if weights is None else []
            self._set_up(first)
        else:
            self._set_up(None)

    def _set_up(self, kind: StartKind | None) -> None:
        """Put the search at its first step, from one kind of start, or from the priors as stated."""
        facts, train = self.spec.facts, self.dataset.train
        self.start, seed = kind, facts.search.seed
        net = lowering.compile(self.spec, seed).to(self.device)
        settle(net, train.x, seed)
        start = stated_start(net, facts) if kind is None else begin(net, facts, len(train), kind)
        compared = trial_epochs(facts.search) if self._untried else 0
        if self._weights is not None:
            self._left_out = self._weights.give_to(net, facts.network.layers)
        self.trainer = Trainer(net, facts, self.dataset, seed, start)
        self.learner = (
            Variational(self.trainer, start.learned, given=self._weights is not None)
            if self.objective == "elbo"
            else Structure(self.trainer, start, self.callbacks.on_note, compared)
        )

    def begin(self) -> list[str]:
        """Write what is known before the first epoch; return lines for the user."""
        weights = self._weights
        self.folder.begin(
            spec=self.spec.name,
            objective=self.objective,
            epochs=self.spec.facts.search.epochs,
            seed=self.trainer.seed,
            device=describe(self.device),
            command=sys.argv,
            dataset=self._fingerprint(),
            now=datetime.now(UTC),
            profile=self.spec.profile.name if self.spec.profile else None,
            weights_from=None if weights is None else str(weights.run),
        )
        self._write_spec()
        self._save()
        if weights is None:
            return []
        without = f", without {', '.join(self._left_out)}" if self._left_out else ""
        notes = [f"starts from the weights of {weights.run}, after its epoch {weights.epoch}{without}"]
        if anew := weights.beginning_anew(self.spec.facts.network.layers):
            notes.append(f"pruned there, and beginning anew: {', '.join(anew)}")
        otherwise = weights.used_otherwise(self.spec.facts.network.layers)
        if otherwise:
            notes.append(f"other strides or activations than there: {', '.join(otherwise)}")
        return notes

    def _write_spec(self) -> None:
        self.folder.write_text(SPEC, self.spec.text())
        self.folder.write_json(GRAPH, to_json(self.spec.graph()))
        self.folder.seal(SPEC, GRAPH)

    def _fingerprint(self) -> str:
        """Return the fingerprint of the data.

        Raises:
            RunError: not all ranks have the same.
        """
        own = data_room.fingerprint(self.dataset)
        if any(other != own for other in ranks.gathered(own)):
            raise RunError("the ranks have read different data: all machines must see the same files")
        return own

    def restore(self) -> list[str]:
        """Take up the last checkpoint; return a line for each thing that was lost since the run was left."""
        fingerprint = self._fingerprint()
        state, content, notes = ranks.from_first(lambda: self._left(fingerprint))
        loading = self.seconds["loading"]
        self._take_up(state, content)
        self.seconds["loading"] += loading
        changed = self.folder.take_up(self.trainer.epoch, describe(self.device), datetime.now(UTC))
        return [*notes, changed]

    def _left(self, fingerprint: str) -> tuple[dict[str, Any], bytes, list[str]]:
        """Return the last checkpoint and what was lost since; write a spec that was lost again."""
        state, content = self.folder.load_checkpoint()
        if state.get("objective", self.objective) != self.objective:
            command = command_of(state["objective"])
            raise RunError(f"{self.folder.path}: was started with `symdsl {command}`; resume it with that")
        if self.folder.read_info()["dataset"] != fingerprint:
            raise RunError(
                f"{self.folder.path}: the data are not those the run was started with: restore them, or start a new run"
            )
        notes = losses(self.folder, state["epoch"])
        lost = {SPEC, GRAPH} & {*self.folder.damaged(), *self.folder.missing()}
        if lost or self.folder.read_text(SPEC) != self.spec.text():  # its data have moved
            self._write_spec()
        return state, content, notes

    def _take_up(self, state: dict[str, Any], content: bytes) -> None:
        try:
            tensors = load_tensors(content)
            self._untried, self._trial = state["untried"], state["trial"]
            self._set_up(state["start"])
            self.trainer.restore(state["trainer"], tensors)
            self.learner.restore(state["structure"], tensors)
            self.seconds, self.retried = _PHASES | state["seconds"], state["retried"]
        except KeyError as error:
            raise RunError(f"{self.folder.path}: {OTHER_VERSION}; {new_run_advice(self.folder.path)}") from error
        except (SafetensorError, RuntimeError) as error:
            if is_out_of_memory(error):
                raise
            raise RunError(f"{self.folder.path}: the checkpoint does not fit the network: {error}") from error
        self.folder.truncate_metrics(self.trainer.epoch)
        if self._trial:
            self._rewrite_metrics(self._trial)
        self._losses = ranks.from_first(lambda: [record["loss"] for record in self.folder.read_metrics()])

    def _rewrite_metrics(self, records: Sequence[Mapping[str, Any]]) -> None:
        self.folder.truncate_metrics(0)
        for record in records:
            self.folder.append_metrics(record)

    def finish(self, notes: Sequence[str]) -> Result:
        """Tell of the start and of `notes`, run the epochs that are left, then write the result."""
        search = self.spec.facts.search
        self.callbacks.on_start(self.folder.path, search.epochs, self.trainer.epoch)
        for note in (*notes, self.dataset.room.reason):
            if note:
                self.callbacks.on_note(note)
        while self.trainer.epoch < search.epochs:
            if self._untried and self.trainer.epoch == trial_epochs(search):
                self._choose_start()
            try:
                self._epoch()
            except NumericalError as error:
                self._retry(error)
        with self._timed("evidence"):
            evidence = final_laplace(self.trainer) if self.objective == "map" else self.learner.final()
        content = ranks.from_first(lambda: self._concluded(evidence))
        self.callbacks.on_finish(content)
        return Result(content, self.folder.path, self.spec)

    def _concluded(self, evidence: Evidence) -> dict[str, Any]:
        """Measure the network, write the result, and return the content of `result.json`."""
        one = self.trainer
        with self._timed("posterior"):
            one.net.eval()
            posterior = fit_last_layer(one.net, one.train, one.likelihood, one.precisions, noise=one.noise)
        head = {
            "schema": runs.SCHEMA,
            "spec": self.folder.read_info()["spec"],  # a run may be resumed from its own spec.sym
            "objective": self.objective,
            "start": self.start,
            "priors_learned": self.objective != "map" and self.learner.priors_learned,
            "seed": one.seed,
            "device": describe(self.device),
            "epochs": one.epoch,
            "wall_s": {"total": sum(self.seconds.values()), **self.seconds},
        }
        outputs = outputs_of(one.net, self.dataset.test.x)
        content = head | describe_run(one, self.dataset, evidence, outputs)
        if content["test"]["nll"] is None:
            self.callbacks.on_note("outputs for the test data are not finite: some of their numbers are too large")
        self._write_result(content, outputs, posterior)
        return content

    def _choose_start(self) -> None:
        """Train from the other start for as many epochs, and go on from it if its evidence is better by `LEAST_GAIN`.

        That is the evidence under the best precisions, in the mean over the second half of these epochs, in which both
        networks still learn. Of networks that fit every example the evidence says less. A start that falls behind is
        given up before these epochs are over.
        """
        self._save()
        trial = trial_epochs(self.spec.facts.search)
        first, first_records = (self.start, self.trainer, self.learner), self._trial
        self._set_up(self._untried[0])
        assert isinstance(self.learner, Structure), "starts are compared by the Laplace evidence"
        notes: list[str] = []
        self.learner.note = notes.append  # they are for the user only if this start is gone on from
        tried, self._untried, self._trial = self.start, [], []
        self.callbacks.on_note(f"trying a {tried} start, too, for at most {trial} epoch{'s' * (trial > 1)}")
        records: list[dict[str, Any]] = []
        behind = False
        try:
            while len(records) < trial and not behind:
                records.append(self._trained())
                behind = ranks.from_first(lambda: is_behind(records, first_records))
        except NumericalError as error:
            self.callbacks.on_note(f"a {tried} start does not work: {error}")
            records = []
        own, other = late_evidence(first_records[: len(records)]), late_evidence(records)
        found = f"; -log evidence/example {own:.4f} from a {first[0]} one, {other:.4f} from a {tried} one"
        if behind and len(records) < trial:
            found += f", given up after {len(records)} epochs"
        if not behind and ranks.from_first(lambda: own - other > LEAST_GAIN):
            self.learner.note = self.callbacks.on_note
            self._rewrite_metrics(records)
            self._losses = [record["loss"] for record in records]
        else:
            self.start, self.trainer, self.learner = first
            records, notes = [], []
        self._save()
        for record in records:
            self.callbacks.on_epoch(record)
        notes.append(f"going on from the {self.start} start{found if math.isfinite(own - other) else ''}")
        for note in notes:
            self.callbacks.on_note(note)

    def _trained(self) -> dict[str, Any]:
        """Train for an epoch; return its record, as `metrics.jsonl` has it."""
        started = time.perf_counter()
        if self.objective != "map":
            metrics, found, evidence_s = self.learner.train_epoch()
        else:
            metrics, found, evidence_s = self.trainer.train_epoch(), {}, 0.0
            self.trainer.noise = self.trainer.residual_variance
        wall_s = time.perf_counter() - started
        self.seconds["evidence"] += evidence_s
        self.seconds["training"] += wall_s - evidence_s
        record = {"epoch": self.trainer.epoch, **self._figures(metrics), **found, "wall_s": wall_s}
        for key in _EVIDENCE & record.keys():
            record[key] += self.dataset.preprocessing.nats
        return record

    def _epoch(self) -> None:
        record = self._trained()
        self._losses.append(record["loss"])
        if self._untried:
            self._trial.append(record)
        self._remark(record["fit"])
        self.folder.append_metrics(record)
        self._save_in_turn()
        self.callbacks.on_epoch(record)

    def _remark(self, fit: float) -> None:
        """Say once if the network does not learn, early in the run."""
        epoch = self.trainer.epoch
        if epoch == max(_PATIENCE, self.spec.facts.search.epochs // 10) and fit < _GUESSING:
            cause = diagnosis(self.trainer, self._losses)
            self.callbacks.on_note(f"after {epoch} epochs the network does no better than guessing: {cause}")

    def _figures(self, metrics: EpochMetrics) -> dict[str, Any]:
        """Metrics of an epoch: of a regression R² in place of the accuracy, and densities in the targets' units."""
        name, nats = "r2" if self.trainer.likelihood.has_noise else "accuracy", self.dataset.preprocessing.nats
        densities = {"loss": metrics.loss + nats, "nll": metrics.nll + nats}
        return densities | {"fit": metrics.fit, name: metrics.score, "lr": metrics.lr}

    def _retry(self, error: NumericalError) -> None:
        if self.retried:
            cause = diagnosis(self.trainer, self._losses)
            raise NumericalError(f"{error}, again at half the learning rate: {cause}") from None
        self._take_up(*ranks.from_first(self.folder.load_checkpoint))
        self.retried = True
        self.trainer.step_size /= 2
        self.callbacks.on_note(f"{error}; continuing from epoch {self.trainer.epoch} at half the learning rate")

    @contextlib.contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[phase] += time.perf_counter() - started

    def _save_in_turn(self) -> None:
        last = self.trainer.epoch == self.spec.facts.search.epochs
        if last or time.perf_counter() - self._saved_at >= self._saving_took / _SAVING_SHARE:
            self._save()

    def _save(self) -> None:
        if ranks.rank():
            return
        started = time.perf_counter()
        state = {
            "epoch": self.trainer.epoch,
            "objective": self.objective,
            "start": self.start,
            "untried": self._untried,
            "trial": self._trial,
            "seconds": self.seconds,
            "retried": self.retried,
            "trainer": self.trainer.state(),
            "structure": self.learner.state(),
        }
        self.folder.save_checkpoint(state, save_tensors(self.trainer.tensors() | self.learner.tensors()))
        self._saved_at = time.perf_counter()
        self._saving_took = self._saved_at - started

    def _write_result(self, content: dict[str, Any], outputs: Tensor, posterior: Posterior) -> None:
        trainer = self.trainer
        least, most = self.dataset.train.x.aminmax()
        preprocessing = attrs.evolve(self.dataset.preprocessing, extent=(float(least), float(most)))
        model = model_bytes(trainer.net, self.spec.graph(), preprocessing, trainer.noise)
        self.folder.write_bytes(WEIGHTS, model)
        predictions = predictions_of(outputs, self.dataset.test, self.dataset.preprocessing)
        self.folder.write_bytes(PREDICTIONS, predictions.to_bytes())
        self.folder.write_bytes(POSTERIOR, posterior_bytes(posterior))
        self.folder.seal(WEIGHTS, PREDICTIONS, POSTERIOR)
        kept = {layer["name"]: set(layer["kept"]) for layer in content["layers"]}
        self.folder.write_text(LEARNED, self.spec.pruned(kept, trainer.net.ranges()))
        drawn = self._draw(content)
        self.folder.write_json(RESULT, content)
        self.folder.seal(LEARNED, *drawn)
        self.folder.set_status("finished", datetime.now(UTC))

    def _draw(self, content: dict[str, Any]) -> list[str]:
        """Write the pictures, return their names; where Graphviz cannot draw, say so and go on."""
        drawn: list[str] = []
        for name, form in PICTURES.items():
            draw = partial(render.architecture, self.spec.graph(), content, form)
            picture = picture_or_note(draw, self.folder.path, self.callbacks.on_note)
            if picture is None:
                break
            self.folder.write_bytes(name, picture)
            drawn.append(name)
        return drawn
