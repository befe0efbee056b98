"""One search of several as plain values, and the reports of the process that runs it."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TextIO

import attrs

from symdsl.analysis.profiles import Change, Profile
from symdsl.catalog.data import ELSEWHERE, RELATIVE
from symdsl.data import Dataset
from symdsl.diagnostics import DONE, FAILED, INTERRUPTED, NumericalError, RunError, SpecError
from symdsl.progress import Callbacks
from symdsl.runner.searching import search
from symdsl.runs import RunFolder
from symdsl.runs.folder import RESULT, RUN, SPEC, has_checkpoint
from symdsl.runs.locks import in_use
from symdsl.runs.schema import Objective
from symdsl.spec import Spec, parse

_PAUSE = 0.2
"""Seconds between reports about the loading of data."""


def _profile(found: Profile | Mapping[str, Any] | None) -> Profile | None:
    """The profile, also where it was handed on as plain values."""
    if found is None or isinstance(found, Profile):
        return found
    return Profile(found["name"], tuple(Change(**one) for one in found["changes"]))


@attrs.frozen
class Task:
    """One search, as plain values that another process can be handed.

    Attributes:
        text: the spec.
        name: its name.
        seed: replaces the spec's own.
        device: `auto`, `cpu`, `cuda` or `cuda:n`.
        objective: `laplace`, `elbo` or `map`.
        folder: the run folder: new, or of the same run, which goes on.
        title: what it is called among others.
        profile: the profile of the spec that was set.
    """

    text: str
    name: str
    seed: int
    device: str
    objective: Objective
    folder: str
    title: str
    profile: Profile | None = attrs.field(default=None, converter=_profile)

    @property
    def is_finished(self) -> bool:
        """Whether the folder holds the finished run, and nothing of it is lost.

        Raises:
            RunError: it holds a run of another spec, or a damaged one.
        """
        if not self._has_begun:
            return False
        run = RunFolder.view(self.folder)
        if run.status == "finished" and not run.is_as_sealed(SPEC, self._spec().text().encode()):
            raise RunError(f"{self.folder}: holds a run of another spec; delete it or give another --out")
        return run.is_whole

    def run(self, callback: object, data: Dataset | None = None) -> None:
        """Search, or go on where an earlier attempt was left; one that left nothing is cleared away.

        Raises what `search` raises.

        Args:
            callback: of the search.
            data: of a spec that has `data given(...)`.
        """
        if self.is_finished:
            return
        folder, resumed = Path(self.folder), self._has_begun
        if not resumed and (folder / RUN).exists():
            shutil.rmtree(folder)
        out, resume = (None, folder) if resumed else (folder, None)
        search(self._spec(), self.device, out, resume, objective=self.objective, callbacks=[callback], data=data)

    def _spec(self) -> Spec:
        parsed = parse(self.text, {"search.seed": self.seed}, name=self.name)
        return attrs.evolve(parsed, profile=self.profile)

    @property
    def _has_begun(self) -> bool:
        """Whether there is a run to go on with."""
        folder = Path(self.folder)
        return (folder / RUN).exists() and (in_use(folder) or has_checkpoint(folder) or (folder / RESULT).exists())


class Engine(Protocol):
    """A place that runs tasks, each when it is asked to, from several threads."""

    def run(self, task: Task, callback: object) -> None:
        """Run one task to its end.

        Raises:
            RunError: it failed.
            NumericalError: its numbers went wrong.
            KeyboardInterrupt: it was interrupted.
        """
        ...

    def end(self) -> None:
        """Interrupt every task that is running, and let none begin."""
        ...


def performed(task: Task, stream: TextIO) -> int:
    """Run a task, report on it to a stream, and return the exit status of its process."""
    reporting = Reporting(stream)
    try:
        task.run(reporting)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (RunError, NumericalError, SpecError) as error:
        reporting.failed(reason_of(error))
        return FAILED
    return DONE


def reason_of(error: Exception) -> str:
    """Return why something failed, in one line."""
    if isinstance(error, SpecError):
        wrong = next(one for one in error.diagnostics if one.severity == "error")
        return f"{wrong.message}; {RELATIVE}" if wrong.help == ELSEWHERE else wrong.message
    return " ".join(str(error).split())


class Reporting(Callbacks):
    """A callback that tells the process that started this one what happens, a line of JSON each."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        super().__init__(())
        self._stream = stream
        self._reported_at = 0.0

    def on_loading(self, what: str, done: int, total: int) -> None:
        """Report how far the data are, a few times a second."""
        if time.monotonic() - self._reported_at >= _PAUSE:
            self._reported_at = time.monotonic()
            super().on_loading(what, done, total)

    def on_fail(self, error: BaseException) -> None:
        """Report nothing: `failed` says why, in words."""

    def failed(self, reason: str) -> None:
        """Report why the search cannot go on."""
        self._write({"failed": reason})

    def _tell(self, event: str, *content: object) -> None:
        self._write({event: content})

    def _write(self, line: dict[str, Any]) -> None:
        try:
            print(json.dumps(line, default=os.fspath), file=self._stream, flush=True)
        except BrokenPipeError:
            raise KeyboardInterrupt from None  # nobody waits for this search any more


def hand_on(line: str, callbacks: Callbacks) -> str:
    """Hand on what a line of `Reporting` says; return the reason of a failure."""
    try:
        ((event, content),) = json.loads(line).items()
    except ValueError:
        return ""  # torn: its process was killed while it wrote
    if event == "failed":
        return str(content)
    if event == "on_start":
        content[0] = Path(content[0])
    getattr(callbacks, event)(*content)
    return ""
