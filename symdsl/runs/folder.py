"""The folder of one run: who may write it, and what it holds."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from symdsl.diagnostics import RunError
from symdsl.runs import checkpoint, metrics
from symdsl.runs.files import (
    SCHEMA,
    checksum,
    json_content,
    make_folder,
    names_the_file,
    parsed,
    read,
    read_if_there,
    read_json,
    write_atomic,
)
from symdsl.runs.locks import LOCK, LockedFolder, held, in_use, locked
from symdsl.runs.predictions import FILE as PREDICTIONS
from symdsl.runs.schema import Status, check_result, check_status, command_of

if TYPE_CHECKING:
    import networkx as nx

RUNS = "runs"
RUN, RESULT, METRICS = "run.json", "result.json", "metrics.jsonl"
SEEDS, SWEEP = "seeds.json", "sweep.json"
SPEC, GRAPH, LEARNED = "spec.sym", "graph.json", "learned.sym"
WEIGHTS, POSTERIOR = "model.safetensors", "posterior.safetensors"
PICTURE = "architecture.svg"
PICTURES: Mapping[str, Literal["dot", "svg", "png"]] = {
    "architecture.dot": "dot",
    PICTURE: "svg",
    "architecture.png": "png",
}
"""The pictures of a finished run with their formats."""

_FREE = frozenset({LEARNED, *PICTURES})
"""Files that a user may change: that they are there is checked, not what they hold."""

_LISTS = (RUN, SEEDS, SWEEP)
"""Files by which a folder of runs is known."""

_OWN = frozenset(
    {
        *_LISTS,
        RESULT,
        METRICS,
        SPEC,
        GRAPH,
        WEIGHTS,
        POSTERIOR,
        PREDICTIONS,
        LOCK,
        *checkpoint.STATES,
        *checkpoint.TENSORS,
    }
)
"""Files without which a run, or several, cannot be read or continued."""

CHANGED = "files may have changed, or another machine or version rounds them differently"
"""What data of another fingerprint than that in `run.json` may come from."""

OTHER_VERSION = "another version of symdsl, which alone can go on from it, wrote the checkpoint"

PACKAGES = ("symdsl", "torch", "torchvision", "numpy", "networkx", "scikit-learn", "safetensors")

ENDINGS: dict[Status, str] = {
    "running": "ended without a word",
    "interrupted": "was interrupted",
    "failed": "failed",
    "finished": "is finished",
}
"""What a message says of a run that is no longer going on, by its status."""


def default_folder(spec_name: str, now: datetime, digest: str) -> Path:
    """Return `runs/<spec>/<UTC time>-<short hash>` for a spec, a time with a zone and a hex digest.

    Raises:
        ValueError: `now` has no time zone.
    """
    safe = re.sub(r"[^\w.-]+", "_", spec_name).strip(".") or "spec"
    return Path(RUNS) / safe / f"{_utc(now):%Y%m%dT%H%M%SZ}-{digest[:8]}"


def new_folder(path: Path) -> Path:
    """Make a folder at a path or, where something is, at the first free one of `path-2`, `path-3` and so on; return it.

    Of several processes that ask for the same path each gets a folder of its own.

    Raises:
        RunError: it cannot be written.
    """

    def made(one: Path) -> bool:
        try:
            one.mkdir()
        except FileExistsError:
            return False
        return True

    more = (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))
    with names_the_file(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return next(filter(made, itertools.chain([path], more)))


def is_kept_file(path: Path, drawn: bool = False) -> bool:
    """Return whether a path is a file that a folder of runs needs as it is, or one that it has drawn, too."""
    file = path.resolve()
    return file.name in (_OWN | _FREE if drawn else _OWN) and any((file.parent / name).is_file() for name in _LISTS)


def resumption(folder: Path, objective: str, *spec: str) -> str:
    """Return the command that goes on with the search in a folder, with a spec or without one."""
    return shlex.join(["symdsl", command_of(objective), *spec, "--resume", str(folder)])


def new_run_advice(run: str | Path) -> str:
    """Return advice on how to train another spec from what a run has learned."""
    return f"`symdsl search SPEC --from {shlex.quote(str(run))}` starts a new run from its weights"


def versions() -> dict[str, str]:
    """Return the versions of Python and of installed packages that a result may depend on."""
    from importlib import metadata  # takes a moment, and only runs that begin or go on ask for it

    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


class RunFolder(LockedFolder):
    """The folder of one run.

    Opened by `create` (a new run), `resume` (an unfinished one) or `view` (any, for reading).
    """

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Self:
        """Make and lock the folder of a new run.

        Raises:
            RunError: the path is a file, cannot be written, holds another run or other files, or is in use.
        """
        folder = Path(path)
        make_folder(folder)
        if not (folder / LOCK).exists():
            _refuse_used(folder)
        run = cls(folder, locked(folder))
        with run._closed_on_error():
            _refuse_used(folder)
        return run

    @classmethod
    def resume(cls, path: str | os.PathLike[str]) -> Self:
        """Lock the folder of a run that is unfinished, or that has lost one of its files.

        Raises:
            RunError: the path is not a run folder, its run is finished, or it is in use.
        """
        folder = cls.view(path).path
        run = cls(folder, locked(folder))
        with run._closed_on_error():
            if run.is_whole:
                raise RunError(f"{folder}: this run is finished, there is nothing to resume; {new_run_advice(folder)}")
        return run

    @classmethod
    def view(cls, path: str | os.PathLike[str]) -> Self:
        """Open the folder of any run for reading.

        Raises:
            RunError: the path is not a run folder.
        """
        run = cls(Path(path), lock=None)
        with names_the_file(run.path, "cannot be read"):
            if not run.path.is_dir():
                raise RunError(f"{run.path}: {'not a folder' if run.path.exists() else 'no such folder'}")
            if (run.path / SEEDS).is_file():
                raise RunError(f"{run.path}: holds the runs of several seeds, each in a folder of its own; choose one")
            if (run.path / SWEEP).is_file():
                raise RunError(f"{run.path}: holds the runs of a sweep, each in a folder of its own; choose one")
            if not (run.path / RUN).is_file():
                below = sorted(one.parent for depth in ("*", "*/*") for one in run.path.glob(f"{depth}/{RUN}"))
                holds = f"runs; choose one, such as {below[-1]}" if below else f"no {RUN}"
                raise RunError(f"{run.path}: not a run folder, it holds {holds}")
        return run

    @property
    def has_begun(self) -> bool:
        """Whether the folder holds a run, and not the lock alone."""
        return (self.path / RUN).exists()

    def discard(self) -> None:
        """Release and remove the lock of a folder in which no run has begun, and the folder if it is empty then.

        Of a default folder those around it go, too, if they are empty.
        """
        if self._lock is not None:
            self.close()
            with contextlib.suppress(OSError):
                (self.path / LOCK).unlink()
                self.path.rmdir()
                for around in self.path.parents[:2] if self.path.parts[:-2] == (RUNS,) else ():
                    around.rmdir()

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write one file of the folder atomically.

        Raises:
            RunError: it cannot be written; what stood there before still does.
        """
        write_atomic(self._writable / name, content)

    def write_text(self, name: str, content: str) -> None:
        """Write a text file of the folder atomically, in UTF-8."""
        self.write_bytes(name, content.encode())

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file of the folder atomically, indented; numbers that are not finite become null."""
        self.write_bytes(name, json_content(content))

    def seal(self, *names: str) -> None:
        """Record the checksums of files in `run.json`.

        Raises:
            RunError: a file is missing, or `run.json` cannot be written.
        """
        info = self.read_info()
        sums = {name: checksum(read(self._writable / name)) for name in names}
        self.write_json(RUN, info | {"sha256": _sums(info) | sums})

    def is_as_sealed(self, name: str, content: bytes) -> bool:
        """Return whether a file had this content when its checksum was recorded."""
        return _sums(self.read_info()).get(name) == checksum(content)

    def damaged(self, *names: str) -> list[str]:
        """Return the names of files, by default of all, that have changed since their checksums were recorded."""
        found = []
        for name, expected in _sums(self.read_info()).items():
            asked = name in names if names else name not in _FREE
            content = read_if_there(self.path / name) if asked else None
            if content is not None and checksum(content) != expected:
                found.append(name)
        return found

    def missing(self) -> list[str]:
        """Return the names of files that have vanished since their checksums were recorded."""
        return [name for name in _sums(self.read_info()) if not (self.path / name).exists()]

    def refuse_damaged(self, *names: str) -> None:
        """Raise an error, with its remedy, if files, by default all, do not match their checksums.

        Raises:
            RunError: one of them is damaged, or one of those named is missing.
        """
        for name in sorted({*names} & {*self.missing()}):
            raise RunError(f"{self.path / name}: missing; {self._repair(name)}")
        for name in self.damaged(*names):
            reason = f"damaged or edited, its checksum is not that in {RUN}"
            raise RunError(f"{self.path / name}: {reason}; {self._repair(name)}")

    def _repair(self, name: str) -> str:
        """Which command writes a file of the run again."""
        if not has_checkpoint(self.path):
            return "the run has no checkpoint from which it could be written again"
        if name != SPEC:
            return f"`{self._resumption()}` writes it again"
        command = self._resumption("SPEC")
        return (
            f"`{command}`, with the spec and options it was started with, writes it again; {new_run_advice(self.path)}"
        )

    def _resumption(self, *spec: str) -> str:
        """Which command goes on with the run."""
        return resumption(self.path, self.read_info().get("objective", "laplace"), *spec)

    def _way_on(self) -> str:
        """What to do about a run that did not finish."""
        if has_checkpoint(self.path):
            return f"`{self._resumption()}` continues it"
        return "it left no checkpoint to continue from, the folder can be deleted"

    @property
    def is_whole(self) -> bool:
        """Whether the run is finished, and no file that it wrote at its end is lost or damaged."""
        if self.status != "finished" or self.damaged() or self.missing():
            return False
        with contextlib.suppress(RunError):
            return bool(self.read_result())
        return False

    def read_text(self, name: str) -> str:
        """Return the text of a file in the folder.

        Raises:
            RunError: it is missing, cannot be read, or is not UTF-8.
        """
        if name in self.missing():
            self.refuse_damaged(name)
        try:
            return read(self.path / name).decode()
        except UnicodeDecodeError as error:
            raise RunError(f"{self.path / name}: damaged, it is not UTF-8 text") from error

    def begin(
        self,
        *,
        spec: str,
        objective: str,
        epochs: int,
        seed: int,
        device: str,
        command: Sequence[str],
        dataset: str,
        now: datetime,
        profile: str | None = None,
        weights_from: str | None = None,
    ) -> None:
        """Write `run.json` for a run that starts now.

        Args:
            spec: name of the spec.
            objective: `laplace`, `elbo` or `map`.
            epochs: how many it is to have.
            seed: the seed of the run.
            device: what it runs on.
            command: the command line, or the call, that started it.
            dataset: fingerprint of the data.
            now: the time, with a zone.
            profile: name of the profile that was set, if one was.
            weights_from: folder of the run whose weights it starts from, if it does.

        Raises:
            RunError: it cannot be written.
        """
        known = {
            "spec": spec,
            "objective": objective,
            "epochs": epochs,
            "profile": profile,
            "seed": seed,
            "device": device,
            "command": list(command),
            "dataset": dataset,
            "weights_from": weights_from,
        }
        times = {"started": _stamp(now), "updated": _stamp(now)}
        self.write_json(RUN, {"schema": SCHEMA, "status": "running", **known, **times, "versions": versions()})

    def set_status(self, status: Status, now: datetime, reason: str | None = None) -> None:
        """Update the status in `run.json`, and the reason if the run failed or an exception interrupted it.

        Raises:
            RunError: it cannot be read or written.
        """
        self.write_json(RUN, self.read_info() | {"status": status, "updated": _stamp(now), "reason": reason})

    def take_up(self, epoch: int, device: str, now: datetime) -> str:
        """Record that the run goes on after an epoch, and on what; return a line if that has changed, else nothing.

        `earlier` in `run.json` then says until which epoch it ran on what.

        Raises:
            RunError: `run.json` cannot be read or written.
        """
        info, found = self.read_info(), versions()
        known = {"device": info.get("device"), **info.get("versions", {})}
        present = {"device": device, **found}
        changed = [
            f"{key} {value}, before {known[key]}" for key, value in present.items() if known.get(key, value) != value
        ]
        if changed:
            was = {"until_epoch": epoch, "device": info.get("device"), "versions": info.get("versions", {})}
            info |= {"device": device, "versions": found, "earlier": [*info.get("earlier", []), was]}
        self.write_json(RUN, info | {"status": "running", "updated": _stamp(now), "reason": None})
        return f"from here on with {'; '.join(changed)}" if changed else ""

    def read_info(self) -> dict[str, Any]:
        """Return the content of `run.json`.

        Raises:
            RunError: it is missing, damaged or of another version.
        """
        info = read_json(self.path / RUN)
        check_status(self.path / RUN, info)
        return info

    @property
    def present_status(self) -> Status:
        """The status, but `interrupted` if the process of a running run has died."""
        status = self.status
        return "interrupted" if status == "running" and not in_use(self.path) else status

    @property
    def resumable(self) -> bool:
        """Whether the run is unfinished, not running, and has a checkpoint."""
        return self.present_status in ("interrupted", "failed") and not in_use(self.path) and has_checkpoint(self.path)

    @property
    def status(self) -> Status:
        """The status in `run.json`; `running` also if the process has died without changing it."""
        status: Status = self.read_info()["status"]
        return status

    def read_result(self) -> dict[str, Any]:
        """Return the content of `result.json`.

        Raises:
            RunError: it is missing, damaged or of another version.
        """
        path = self.path / RESULT
        if self.status == "finished" and parsed(read_if_there(path) or b"") is None:
            reason = "damaged, it is not a JSON object" if path.exists() else "missing"
            raise RunError(f"{path}: {reason}; {self._repair(RESULT)}")
        if not path.exists():
            raise RunError(f"{path}: no result yet, {self.state()}")
        result = read_json(path)
        check_result(path, result)
        return result

    def read_graph(self) -> nx.DiGraph[str]:
        """Return the learned network with its data, as `symdsl.graph.build` does.

        Raises:
            RunError: `graph.json` is missing or damaged.
        """
        from symdsl.graph import from_json

        self.refuse_damaged(GRAPH)
        try:
            return from_json(json.loads(self.read_text(GRAPH)))
        except ValueError as error:
            raise RunError(f"{self.path / GRAPH}: damaged, {error}") from error

    def state(self) -> str:
        """Return how far an unfinished run has come, and what to do about it."""
        if in_use(self.path):
            return "the run is still going on; wait for it to end"
        info = self.read_info()
        reason = f" ({info['reason']})" if info.get("reason") else ""
        return f"the run {ENDINGS[info['status']]}{reason}; {self._way_on()}"

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Append the line of one epoch to `metrics.jsonl`; numbers that are not finite become null.

        Raises:
            RunError: it cannot be written; the earlier lines still stand.
            ValueError: `epoch` is missing.
        """
        metrics.append(self._writable / METRICS, record)

    def read_metrics(self, damaged: bool = False) -> list[dict[str, Any]]:
        """Return the records of `metrics.jsonl`, one per epoch, without a torn last line.

        Args:
            damaged: whether it may have damaged lines, which are left out then.

        Raises:
            RunError: a line that was written whole is damaged, and may not be.
        """
        return (metrics.readable if damaged else metrics.lines)(self.path / METRICS)

    def truncate_metrics(self, epoch: int) -> None:
        """Remove damaged lines and those after an epoch, so that a resumed run writes these anew.

        Raises:
            RunError: the file cannot be written.
        """
        metrics.truncate(self._writable / METRICS, epoch)

    def lost_metrics(self, epoch: int) -> list[int]:
        """Return the epochs up to this one of which `metrics.jsonl` has no line, or a damaged one."""
        return metrics.lost(self.read_metrics(damaged=True), epoch)

    def save_checkpoint(self, state: Mapping[str, Any], tensors: bytes) -> None:
        """Replace the checkpoint and keep the previous one; no crash leaves the folder without one.

        Args:
            state: what JSON can hold, with the integer `epoch`; numbers that are not finite become null.
            tensors: the contents of a safetensors file.

        Raises:
            RunError: it cannot be written; an earlier checkpoint can still be loaded.
            ValueError: `epoch` is missing.
        """
        checkpoint.save(self._writable, state, tensors)

    def load_checkpoint(self) -> tuple[dict[str, Any], bytes]:
        """Return the state and the tensors of the newest complete checkpoint.

        Raises:
            RunError: there is none, or every one is damaged.
        """
        return checkpoint.load(self.path)

    def lacks_newest_checkpoint(self) -> bool:
        """Return whether the newest checkpoint is damaged, so that the previous one is loaded."""
        return checkpoint.newest_is_damaged(self.path)

    @contextlib.contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise


class OnlookersFolder(RunFolder):
    """The folder of a run that another process writes; writing to it here does nothing."""

    def write_bytes(self, name: str, content: bytes) -> None:
        """Leave the file to the other process."""

    def seal(self, *names: str) -> None:
        """Leave the checksums to the other process."""

    def set_status(self, status: Status, now: datetime, reason: str | None = None) -> None:
        """Leave the status to the other process."""

    def take_up(self, epoch: int, device: str, now: datetime) -> str:
        """Leave the record to the other process."""
        return ""

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Leave the metrics to the other process."""

    def truncate_metrics(self, epoch: int) -> None:
        """Leave the metrics to the other process."""

    def save_checkpoint(self, state: Mapping[str, Any], tensors: bytes) -> None:
        """Leave the checkpoint to the other process."""


def _sums(info: Mapping[str, Any]) -> dict[str, str]:
    """The checksums that `run.json` holds, by file; none where an earlier version wrote it."""
    return dict(info.get("sha256", {}))


def _refuse_used(folder: Path) -> None:
    """Refuse a folder that holds more than pictures of data and what a run left that died before it wrote anything."""
    others = held(folder)
    if RUN in others:
        run = RunFolder.view(folder)
        advice = "it is never overwritten" if run.status == "finished" else run._way_on()
        raise RunError(f"{folder}: holds a run that {ENDINGS[run.status]}; {advice}; give another folder for a new run")
    if others:
        raise RunError(f"{folder}: is not empty (it holds {others[0]}); give a folder that is new or empty")


def has_checkpoint(folder: Path) -> bool:
    """Return whether a folder has a checkpoint, complete or not."""
    return all(any((folder / name).exists() for name in names) for names in (checkpoint.STATES, checkpoint.TENSORS))


def _stamp(now: datetime) -> str:
    return f"{_utc(now):%Y-%m-%dT%H:%M:%SZ}"


def _utc(now: datetime) -> datetime:
    if now.tzinfo is None:
        raise ValueError(f"`now` (={now}) must have a time zone")
    return now.astimezone(UTC)
