"""Where several searches run: in this process, in processes of their own, on Ray, or as jobs of Slurm."""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple, NoReturn

import attrs

from symdsl.data import Dataset
from symdsl.diagnostics import DONE, INTERRUPTED, RunError
from symdsl.progress import Callbacks
from symdsl.runner.device import cores
from symdsl.runner.tasks import Engine, Task, hand_on, performed

Place = Literal["local", "ray", "slurm"]
Resources = Mapping[str, str]
"""The resources of a run, by name, as they are written: `{"cpus": "4"}`."""

REPORTS = ".reports"
"""Folder beside the run folders in which runs elsewhere report; so it must be one that both sides reach."""

_LOOKING = 0.3
"""Seconds between looks at what runs elsewhere have reported."""


@attrs.frozen
class InProcess:
    """An engine that runs tasks one after another in this process and thread, where a Ctrl-C reaches them.

    Attributes:
        data: of specs with `data given(...)`.
    """

    data: Dataset | None = None

    def run(self, task: Task, callback: object) -> None:
        """Run one task to its end."""
        task.run(callback, self.data)

    def end(self) -> None:
        """Do nothing: what interrupts this thread has interrupted its task."""


class Children:
    """An engine that runs tasks in processes of their own.

    The processes are not reached by a terminal's Ctrl-C: `end` asks each of them, once, to leave its run in a state
    that can be resumed.

    Args:
        threads: how many threads each may compute with, unless `OMP_NUM_THREADS` says so.
        asked_for: whether the user asked for so many; then `OMP_NUM_THREADS` has no say.
    """

    def __init__(self, threads: int, asked_for: bool = False) -> None:
        own = {"OMP_NUM_THREADS": str(threads)}
        self._environment = os.environ | own if asked_for else own | os.environ
        self._running: set[subprocess.Popen[str]] = set()
        self._starting = threading.Lock()
        self._ended = False

    def run(self, task: Task, callback: object) -> None:
        """Run one task to its end in a process of its own."""
        heard = Callbacks([callback])
        with heard.hearing_failures():
            reason = ""
            with self._started() as process:
                assert process.stdin is not None, "it is a pipe"
                assert process.stdout is not None, "it is a pipe"
                with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                    json.dump({"task": attrs.asdict(task), "command": sys.argv}, pipe)
                for line in process.stdout:
                    reason = hand_on(line, heard) or reason
            with self._starting:
                self._running.discard(process)
            if process.returncode in (INTERRUPTED, -signal.SIGTERM):
                _raise_interrupted(self._ended)
            if process.returncode:
                raise RunError(reason or _ending(process.returncode))

    def end(self) -> None:
        """Interrupt every task that is running, and let none begin."""
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


def _raise_interrupted(ended: bool) -> NoReturn:
    """Tell that a run was interrupted: with all others, or alone and from outside, so that it is tried once more."""
    if ended:
        raise KeyboardInterrupt
    raise RunError("its process was ended from outside")


# ---------------------------------------------------------------- elsewhere


@attrs.frozen
class Errand:
    """A task on its way to another machine that sees the same folders.

    Attributes:
        task: the fields of a `Task`.
        command: the command line that started it all.
        folder: the working folder that its paths are relative to.
        report: file that it reports to, in that folder.
        threads: to compute with.
    """

    task: dict[str, Any]
    command: list[str]
    folder: str
    report: str
    threads: int

    @classmethod
    def of(cls, task: Task, threads: int) -> Errand:
        """Return the errand of a task that is started here."""
        run = Path(task.folder)
        report = run.parent / REPORTS / f"{run.name}.jsonl"
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text("")
        return cls(attrs.asdict(task), sys.argv, os.getcwd(), str(report), threads)

    def __call__(self) -> int:
        """Run the task and return the exit status that a process of its own would end with."""
        import torch

        signal.signal(signal.SIGTERM, signal.default_int_handler)
        os.chdir(self.folder)
        sys.argv = self.command
        torch.set_num_threads(self.threads)
        with Path(self.report).open("a") as stream:
            return performed(Task(**self.task), stream)

    def checkpoint(self) -> Any:
        """Return what Slurm runs again after it took the machine away: the same errand, from its checkpoint."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class _Elsewhere(ABC):
    """Hands tasks to a scheduler, and follows what they report in a folder that both sides see.

    Args:
        threads: that each task computes with.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._running: dict[str, Any] = {}
        self._starting = threading.Lock()
        self._ended = False

    @abstractmethod
    def submitted(self, errand: Errand) -> Any:
        """Hand an errand to the scheduler and return its job."""

    @abstractmethod
    def done(self, job: Any) -> bool:
        """Return whether a job has ended, however it did."""

    @abstractmethod
    def status(self, job: Any) -> int:
        """Return the exit status of the errand of a job that has ended.

        Raises:
            RunError: it ended without a word.
        """

    @abstractmethod
    def cancel(self, job: Any) -> None:
        """Interrupt a job."""

    def run(self, task: Task, callback: object) -> None:
        """Run one task to its end as a job of the scheduler."""
        heard = Callbacks([callback])
        errand = Errand.of(task, self._threads)
        with self._starting:
            if self._ended:
                raise KeyboardInterrupt
            job = self._running[task.folder] = self.submitted(errand)
        with heard.hearing_failures():
            reason = ""
            for line in self._reported(job, Path(errand.report)):
                reason = hand_on(line, heard) or reason
            with self._starting:
                self._running.pop(task.folder)
            status = INTERRUPTED if self._ended else self.status(job)
            if status == INTERRUPTED:
                _raise_interrupted(self._ended)
            if status != DONE:
                raise RunError(reason or f"its process ended with status {status}")

    def _reported(self, job: Any, report: Path) -> Iterator[str]:
        """Whole lines of a report as they come, until the job has ended."""
        rest, ended = "", False
        with report.open() as stream:
            while not ended:
                ended = self.done(job)
                *lines, rest = (rest + stream.read()).split("\n")
                yield from lines
                if not ended:
                    time.sleep(_LOOKING)

    def end(self) -> None:
        """Interrupt every task that is running, and let none begin."""
        with self._starting:
            self._ended = True
            for job in self._running.values():
                self.cancel(job)


class OnRay(_Elsewhere):
    """An engine that runs tasks on a cluster of Ray, or on this machine by Ray where no `address` is given.

    Args:
        resources: `cpus` (1 unless given) and `gpus` of a run, and the `address` of the cluster.
        device: where runs compute; on GPUs a run gets one unless `gpus` says otherwise.

    Raises:
        RunError: Ray is not installed or not reached, or a resource is not on this machine.
    """

    def __init__(self, resources: Resources, device: str) -> None:
        self._ray = _package("ray", "ray")
        cpus, gpus = _number(resources, "cpus", 1), _number(resources, "gpus", float(device.startswith("cuda")))
        super().__init__(max(1, round(cpus)))
        try:
            self._ray.init(
                address=resources.get("address"), ignore_reinit_error=True, log_to_driver=False, logging_level=40
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise RunError(f"Ray cannot be started or reached: {error}") from error
        here = self._ray.cluster_resources()
        for name, asked, offered in (("cpus", cpus, here.get("CPU", 0.0)), ("gpus", gpus, here.get("GPU", 0.0))):
            if "address" not in resources and asked > offered:
                raise RunError(f"the resource `{name}` (={asked:g}) must be at most {offered:g}, which Ray has here")
        self._call = self._ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=0)(Errand.__call__)

    def submitted(self, errand: Errand) -> Any:
        """Hand an errand to Ray and return its job."""
        return self._call.remote(errand)

    def done(self, job: Any) -> bool:
        """Return whether a job of Ray has ended, however it did."""
        ready, _ = self._ray.wait([job], timeout=0)
        return bool(ready)

    def status(self, job: Any) -> int:
        """Return the exit status of the errand of a job of Ray that has ended."""
        try:
            return int(self._ray.get(job))
        except self._ray.exceptions.TaskCancelledError:
            return INTERRUPTED
        except self._ray.exceptions.RayError as error:
            raise RunError(f"its task on Ray ended: {_lines(error)[0]}") from error

    def cancel(self, job: Any) -> None:
        """Interrupt a job of Ray."""
        self._ray.cancel(job)


class OnSlurm(_Elsewhere):
    """An engine that runs each task as a job of Slurm, by submitit; a preempted job goes on from its checkpoint.

    Args:
        resources: `cpus` (1 unless given), `gpus`, `hours` and `memory_gb` of a run; anything that begins with
            `slurm_`, such as `slurm_partition`, goes to submitit, and `cluster` is `slurm`, or `local` to try
            it out without one.
        device: where runs compute; on GPUs a run gets one unless `gpus` says otherwise.

    Raises:
        RunError: submitit is not installed, or there is no Slurm here.
    """

    def __init__(self, resources: Resources, device: str) -> None:
        self._submitit = _package("submitit", "slurm")
        cpus = int(_number(resources, "cpus", 1))
        super().__init__(cpus)
        self._cluster = resources.get("cluster", "slurm")
        self._settings: dict[str, Any] = {
            "name": "symdsl",
            "cpus_per_task": cpus,
            "gpus_per_node": int(_number(resources, "gpus", device.startswith("cuda"))),
            "timeout_min": max(1, math.ceil(60 * _number(resources, "hours", 24))),
            **{
                name: _SUBMITIT.get(name, _TEXT).read(text)
                for name, text in resources.items()
                if name.startswith("slurm_")
            },
        }
        if "memory_gb" in resources:
            self._settings["mem_gb"] = _number(resources, "memory_gb", 0)
        with TemporaryDirectory() as folder:  # so that a mistake is reported at once
            self._executor(Path(folder))

    def _executor(self, folder: Path) -> Any:
        try:
            executor = self._submitit.AutoExecutor(folder=folder, cluster=self._cluster)
            executor.update_parameters(**self._settings)
        except (ValueError, RuntimeError, NameError, TypeError, AssertionError) as error:
            raise RunError(f"Slurm cannot be used: {_lines(error)[0]}") from error
        return executor

    def submitted(self, errand: Errand) -> Any:
        """Hand an errand to Slurm and return its job."""
        executor = self._executor(Path(errand.report).parent / "slurm")
        try:
            return executor.submit(errand)
        except self._submitit.core.utils.FailedJobError as error:
            raise RunError(f"Slurm refuses the job: {_lines(error)[-1]}") from error

    def done(self, job: Any) -> bool:
        """Return whether a job of Slurm has ended, however it did."""
        return bool(job.done())

    def status(self, job: Any) -> int:
        """Return the exit status of the errand of a job of Slurm that has ended."""
        error = job.exception()
        if error is not None:
            raise RunError(
                f"its job {job.job_id} ended in state {job.state}: {_lines(error)[0]}; see {job.paths.stderr}"
            )
        return int(job.result())

    def cancel(self, job: Any) -> None:
        """Interrupt a job of Slurm."""
        job.cancel(check=False)


def _package(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise RunError(f"this needs `{name}`: run `pip install 'symdsl[{extra}]'`") from error


class _Values(NamedTuple):
    """The values that a resource may have, in words, and how one is read; a wrong one raises ValueError or KeyError."""

    words: str
    read: Callable[[str], Any]


_MOST = 1_000_000


def _numbers(words: str, allow: Callable[[float], bool]) -> _Values:
    def read(text: str) -> float:
        if not allow(value := float(text)):
            raise ValueError
        return value

    return _Values(words, read)


_COUNT = _numbers(f"a whole number from 1 to {_MOST:,}", lambda value: 1 <= value <= _MOST and value.is_integer())
_COUNT_OR_NONE = _numbers(
    f"a whole number from 0 to {_MOST:,}", lambda value: 0 <= value <= _MOST and value.is_integer()
)
_AMOUNT = _numbers(f"a number above 0, at most {_MOST:,}", lambda value: 0 < value <= _MOST)
_AMOUNT_OR_NONE = _numbers(f"a number from 0 to {_MOST:,}", lambda value: 0 <= value <= _MOST)
_TEXT = _Values("text", str)
_COMMAND = _Values("a command", lambda text: [text])
_SWITCH = _Values("true or false", lambda text: {"true": True, "false": False}[text.lower()])
_ONE = _Values("1, as a run is one task on one machine", lambda text: {"1": 1}[text])
_PAIR = _Values("of the form K=V", lambda text: dict([text.split("=", 1)]))

_RESOURCES: dict[Place, dict[str, _Values]] = {
    "local": {"cpus": _COUNT},
    "ray": {"cpus": _AMOUNT_OR_NONE, "gpus": _AMOUNT_OR_NONE, "address": _TEXT},
    "slurm": {"cpus": _COUNT, "gpus": _COUNT_OR_NONE, "hours": _AMOUNT, "memory_gb": _AMOUNT}
    | dict.fromkeys(("cluster", "slurm_partition", "slurm_account", "slurm_qos"), _TEXT),
}
"""The resources of every place."""

_SUBMITIT = {
    **dict.fromkeys(("slurm_setup", "slurm_teardown", "slurm_srun_args"), _COMMAND),
    **dict.fromkeys(("slurm_use_srun", "slurm_stderr_to_stdout", "slurm_exclusive"), _SWITCH),
    **dict.fromkeys(("slurm_nodes", "slurm_ntasks_per_node"), _ONE),
    "slurm_additional_parameters": _PAIR,
}
"""Settings of submitit that are not text."""


def check_resources(place: Place, resources: Resources) -> None:
    """Check what a run is to get at a place; which other names begin with `slurm_` is left to submitit.

    Raises:
        ValueError: the place or a resource is unknown, or a value is none that it may have.
    """
    if place not in _RESOURCES:
        raise ValueError(f'`on` (="{place}") must be one of {", ".join(_RESOURCES)}')
    known = _RESOURCES[place]
    for name, text in resources.items():
        if name not in known and not (place == "slurm" and name.startswith("slurm_")):
            close = difflib.get_close_matches(name, known, 1)
            meant = f"; did you mean `{close[0]}`?" if close else f"; there are {', '.join(known)}"
            raise ValueError(f"unknown resource `{name}` of a run on {place}{meant}")
        values = known.get(name) or _SUBMITIT.get(name, _TEXT)
        try:
            values.read(text)
        except (ValueError, KeyError):
            raise ValueError(f"the resource `{name}` (={text}) must be {values.words}") from None


def _number(resources: Resources, name: str, default: float) -> float:
    return float(resources.get(name, default))


def _ending(status: int) -> str:
    """Return how a process without a reason of its own ended, from the status that `subprocess` gives it."""
    if status >= 0:
        return f"its process ended with status {status}"
    cause = ", as when memory runs out" * (-status == signal.SIGKILL)
    return f"a signal has ended its process: {signal.strsignal(-status)}{cause}"


def _lines(error: Exception) -> list[str]:
    """The lines of an error's message that say something, or its type."""
    return [line for line in str(error).splitlines() if line.strip("- ")] or [type(error).__name__]


def _local(resources: Resources, device: str, jobs: int) -> Engine:
    threads = max(1, cores() // jobs)
    return Children(int(_number(resources, "cpus", threads)), asked_for="cpus" in resources)


ENGINES: dict[Place, Callable[[Resources, str, int], Engine]] = {
    "local": _local,
    "ray": lambda resources, device, jobs: OnRay(resources, device),
    "slurm": lambda resources, device, jobs: OnSlurm(resources, device),
}
"""Functions that make the engine of a place, given the resources of a run, its device and how many run at a time."""
