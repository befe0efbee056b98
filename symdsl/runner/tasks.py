"""One search of several: as a value, and as a process of its own that reports to the one that started it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO, TypeVar

import attrs

from symdsl.analysis.profiles import Change, Profile
from symdsl.diagnostics import RunError
from symdsl.progress import Callback, Callbacks, Metrics
from symdsl.runner.searching import Objective, search
from symdsl.spec import parse

Found = TypeVar("Found")

_PAUSE = 0.2
"""Seconds between reports about the loading of data."""

FAILED, INTERRUPTED = 3, 130
"""How a process says with its exit status what became of its task."""


def _profile(found: Profile | Mapping[str, Any] | None) -> Profile | None:
    """A profile, or one that was made plain values of."""
    if found is None or isinstance(found, Profile):
        return found
    return Profile(found["name"], tuple(Change(**one) for one in found["changes"]))


@attrs.frozen
class Task:
    """One seed's search, as plain values that another process can be handed.

    Attributes:
        text: the spec.
        name: its name.
        seed: replaces the spec's own.
        device: `auto`, `cpu`, `cuda` or `cuda:n`.
        objective: `laplace` or `map`.
        folder: the run folder.
        resumed: whether it holds an unfinished run to go on with.
        profile: the profile of the spec that was set.
    """

    text: str
    name: str
    seed: int
    device: str
    objective: Objective
    folder: str
    resumed: bool
    profile: Profile | None = attrs.field(default=None, converter=_profile)

    def run(self, callback: object) -> None:
        """Searches; raises what `search` raises."""
        parsed = parse(self.text, {"search.seed": self.seed})
        spec = attrs.evolve(parsed, name=self.name, profile=self.profile)
        out, resume = (None, self.folder) if self.resumed else (self.folder, None)
        search(spec, self.device, out, resume, objective=self.objective, callbacks=[callback])


class Children:
    """Runs tasks in processes of their own, from several threads.

    The processes are not reached by a terminal's Ctrl-C: `end` asks each of them, once, to leave its run in a state
    that can be resumed.

    Args:
        threads: how many threads each may compute with, unless `OMP_NUM_THREADS` says so.
    """

    def __init__(self, threads: int) -> None:
        self._environment = {"OMP_NUM_THREADS": str(threads)} | os.environ
        self._running: set[subprocess.Popen[str]] = set()
        self._starting = threading.Lock()
        self._ended = False

    def run(self, task: Task, callback: object) -> None:
        """Runs one task to its end.

        Raises:
            RunError: it failed.
            KeyboardInterrupt: it was interrupted.
        """
        heard = Callbacks([callback])
        with heard.hearing_failures():
            self._run(task, heard)

    def _run(self, task: Task, heard: Callbacks) -> None:
        reason = ""
        with self._started() as process:
            assert process.stdin is not None, "it is a pipe"
            assert process.stdout is not None, "it is a pipe"
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                json.dump({"task": attrs.asdict(task), "command": sys.argv}, pipe)
            for line in process.stdout:
                reason = _told(json.loads(line), heard) or reason
        with self._starting:
            self._running.discard(process)
        if process.returncode in (INTERRUPTED, -signal.SIGTERM):
            raise KeyboardInterrupt
        if process.returncode:
            raise RunError(reason or f"its process ended with status {process.returncode}")

    def end(self) -> None:
        """Interrupts every task that is running, and lets none begin."""
        with self._starting:
            self._ended = True
            for process in self._running:
                process.terminate()

    def _started(self) -> subprocess.Popen[str]:
        with self._starting:
            if self._ended:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                [sys.executable, "-m", "symdsl.runner.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=self._environment,
                start_new_session=True,
            )
            self._running.add(process)
            return process


def side_by_side(works: Sequence[Callable[[], Found]], jobs: int, children: Children) -> list[Found]:
    """Does works that run tasks as `children`, `jobs` at a time in threads, and gives what they found, in order.

    Whatever one of them raises, or Ctrl-C, interrupts the others.
    """
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work) for work in works]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            children.end()
            raise


class Reporting(Callback):
    """Tells the process that started this one what happens, a line of JSON each."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        self._stream = stream
        self._told_at = 0.0

    def on_loading(self, what: str, done: int, total: int) -> None:
        """Report how far the data are, a few times a second."""
        if time.monotonic() - self._told_at >= _PAUSE:
            self._told_at = time.monotonic()
            self._tell("loading", [what, done, total])

    def on_start(self, folder: Path, epochs: int, resumed_from: int) -> None:
        """Report the beginning."""
        self._tell("start", [str(folder), epochs, resumed_from])

    def on_epoch(self, record: Metrics) -> None:
        """Report an epoch."""
        self._tell("epoch", record)

    def on_note(self, text: str) -> None:
        """Report a line."""
        self._tell("note", text)

    def on_finish(self, result: Metrics) -> None:
        """Report the result."""
        self._tell("finish", result)

    def failed(self, reason: str) -> None:
        """Report why the search cannot go on."""
        self._tell("failed", reason)

    def _tell(self, what: str, content: Any) -> None:
        try:
            print(json.dumps({what: content}), file=self._stream, flush=True)
        except BrokenPipeError:
            raise KeyboardInterrupt from None  # nobody waits for this search any more


def _told(report: Mapping[str, Any], callbacks: Callbacks) -> str:
    """Hands a report on; returns the reason of a failure."""
    ((what, content),) = report.items()
    match what:
        case "loading":
            callbacks.on_loading(*content)
        case "start":
            folder, epochs, resumed_from = content
            callbacks.on_start(Path(folder), epochs, resumed_from)
        case "epoch":
            callbacks.on_epoch(content)
        case "note":
            callbacks.on_note(content)
        case "finish":
            callbacks.on_finish(content)
        case "failed":
            return str(content)
    return ""
