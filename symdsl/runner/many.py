"""Several searches on one engine, some at a time: a run that fails is reported and tried once more; others go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

import attrs

from symdsl.diagnostics import NumericalError, RunError, SpecError
from symdsl.progress import Callbacks, Observers
from symdsl.runner.engines import InProcess
from symdsl.runner.tasks import Engine, Task, reason_of
from symdsl.runs import Status
from symdsl.runs.locks import in_use

ATTEMPTS = 2
"""How often a run that fails is begun, the first time included."""

Written = TypeVar("Written")

Note = Callable[[Task, Status, str | None], None]
"""Records the status of a task, and why it failed if it did."""


def run_all(
    tasks: Sequence[Task],
    engine: Engine,
    jobs: int,
    note: Note,
    watch: Observers | None = None,
    callbacks: Callable[[Task], Sequence[object]] = lambda task: (),
) -> None:
    """Run tasks to their ends, in the order given.

    What an interrupted attempt left goes on; runs that are finished stay as they are.

    Args:
        tasks: the searches.
        engine: runs them.
        jobs: how many at a time.
        note: is called with every task in the end, by one thread at a time.
        watch: shows how they go.
        callbacks: gives those of a task, anew for each attempt; see `search`.

    Raises:
        KeyboardInterrupt: after all runs were left in a state to go on from.
    """
    one = _Running(engine, note, watch or Observers(), callbacks).one
    if isinstance(engine, InProcess):
        for task in tasks:
            one(task)
        return
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        futures = [pool.submit(one, task) for task in tasks]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            engine.end()
            raise


def run_and_write(run: Callable[[], None], write: Callable[[], Written], watch: Observers) -> Written:
    """Write what is known of all runs, however they end, and return it; if that fails after an error it is a note."""
    try:
        run()
    except BaseException:
        try:
            write()
        except RunError as error:
            watch.on_note(str(error))
        raise
    return write()


@attrs.frozen
class _Running:
    """Runs tasks one by one, and says what becomes of them."""

    engine: Engine
    note: Note
    watch: Observers
    callbacks: Callable[[Task], Sequence[object]]
    _noting: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def one(self, task: Task) -> None:
        """Run a task until it is finished or has failed too often."""
        observer = self.watch.of(task.title)
        for left in reversed(range(ATTEMPTS)):
            reason = self._attempt(task, observer)
            if reason is None:
                return
            if in_use(Path(task.folder)):  # by a process that an earlier attempt left behind
                break
            if left:
                self.watch.on_note(f"{task.title} failed and is tried once more: {reason}")
        self._record(task, "failed", reason)
        self.watch.on_note(f"{task.title} failed: {reason}")

    def _attempt(self, task: Task, observer: object) -> str | None:
        """The reason why a run failed; None where it did not."""
        try:
            if not task.is_finished:
                self.engine.run(task, Callbacks([observer, *self.callbacks(task)]))
        except (RunError, NumericalError, SpecError) as error:
            return reason_of(error)
        except KeyboardInterrupt:
            self._record(task, "interrupted", None)
            raise
        self._record(task, "finished", None)
        return None

    def _record(self, task: Task, status: Status, reason: str | None) -> None:
        with self._noting:
            self.note(task, status, reason)
