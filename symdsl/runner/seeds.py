"""The same search with several seeds, one after another or side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import attrs

from symdsl import render, runs
from symdsl.catalog.searches import LARGEST_SEED
from symdsl.data import Dataset, fingerprint
from symdsl.data.checks import check_handed_over
from symdsl.progress import Observers
from symdsl.render.page import picture_or_warning
from symdsl.runner.device import check_device, cores
from symdsl.runner.engines import Children, InProcess
from symdsl.runner.many import run_all, run_and_write
from symdsl.runner.result import Recorded
from symdsl.runner.searching import check_arguments, objective_of, picture_or_note
from symdsl.runner.tasks import Task
from symdsl.runs import SeedsFolder
from symdsl.runs.files import checksum
from symdsl.runs.folder import PICTURE, SPEC
from symdsl.runs.schema import MOST_SEEDS, Objective
from symdsl.runs.seeds import TABLE, Seed
from symdsl.spec import Spec, parse

USUAL_SEEDS = 5
"""The default number of seeds."""


@attrs.frozen(eq=False)
class SeedsResult(Recorded):
    """The result of a search with several seeds, recorded in `seeds.json` beside a run folder for each seed."""

    def _repr_svg_(self) -> str | None:
        if not self.content["finished"]:
            return None
        return picture_or_warning(partial(render.mean_architecture, self.spec.graph(), self.content, "svg"))

    def _repr_html_(self) -> str:
        return render.seeds_html(self.content, self._repr_svg_())


def search_seeds(
    spec: Spec | None = None,
    seeds: int | Sequence[int] | None = None,
    device: str = "auto",
    out: str | Path | None = None,
    resume: str | Path | None = None,
    objective: Objective | None = None,
    jobs: int = 1,
    watch: Observers | None = None,
    callbacks: Callable[[int], Sequence[object]] = lambda seed: (),
    data: Dataset | None = None,
) -> SeedsResult:
    """Run a search with several seeds, each in a run folder of its own below one folder.

    A seed that fails is tried once more, then recorded; the others continue.

    Args:
        spec: the spec to learn; a resumed search keeps its own.
        seeds: the seeds, or how many, counted up from the spec's own; by default five, or those of a folder to resume.
        device: `auto`, `cpu`, `cuda` or `cuda:n`.
        out: the folder, new or empty; `runs/<spec>/<time>-<hash>-seeds` when left out.
        resume: the folder of an earlier such search, to continue what is not finished, and run seeds it lacks.
        objective: `map` keeps the priors fixed, as the baseline; by default what the spec says.
        jobs: seeds to run at a time; if more than one, each in a process of its own.
        watch: displays the progress of all seeds.
        callbacks: returns the callbacks for the search with a seed; see `search`.
        data: the data of a spec with `data given(...)`, see `symdsl.data.from_tensors`; seeds then run one at a time.

    Raises:
        ValueError: if `seeds` or `jobs` is out of range, or arguments exclude each other.
        TypeError: if spec, data, seeds or callbacks are of another type.
        SpecError: if the spec in the folder to resume is wrong.
        RunError: if the folder cannot be used, or data must be handed over.
        KeyboardInterrupt: on Ctrl-C, after saving what `resume` needs.
    """
    check_arguments(spec, data, objective)
    check_device(device)
    if not callable(callbacks):
        raise TypeError(f"`callbacks` (={callbacks!r}) must be a function of the seed")
    if jobs < 1:
        raise ValueError(f"`jobs` (={jobs}) must be at least 1")
    if out is not None and resume is not None:
        raise ValueError("`out` is for new searches; leave it out to resume one")
    if data is not None and jobs > 1:
        raise ValueError(f"`data` stay in this process, where seeds run one at a time: leave `jobs` (={jobs}) out")
    if spec is None:
        spec = _own_spec(resume)
    check_handed_over(spec.facts.data, data)
    usual = () if resume else range(spec.facts.search.seed, spec.facts.search.seed + USUAL_SEEDS)
    numbers = usual if seeds is None else numbered(seeds, spec.facts.search.seed)
    maximised = objective_of(spec, objective)
    with _opened(spec, tuple(numbers), out, resume, maximised, data) as folder, watch or Observers() as watcher:
        watcher.on_start(folder.path)
        finished = folder.finished()
        tasks = [_task(folder, one, spec, device, maximised) for one in folder.runs if one not in finished]
        engine = Children(max(1, cores() // jobs)) if jobs > 1 else InProcess(data)

        def note(task: Task, status: runs.Status, reason: str | None) -> None:
            folder.note(Path(task.folder).name, status, reason)

        content = run_and_write(
            lambda: run_all(tasks, engine, jobs, note, watcher, lambda task: callbacks(task.seed)),
            lambda: _written(folder, spec, watcher),
            watcher,
        )
        return SeedsResult(content, folder.path, spec)


def _written(folder: SeedsFolder, spec: Spec, watcher: Observers) -> dict[str, Any]:
    """Write the list, the table, and the picture of what has finished; return the content of the list."""
    content = folder.write()
    runs.write_atomic(folder.path / TABLE, render.table_text(render.seeds_table(content)).encode())
    if content["finished"]:
        draw = partial(render.mean_architecture, spec.graph(), content, "svg")
        picture = picture_or_note(draw, folder.path, watcher.on_note)
        if picture is not None:
            runs.write_atomic(folder.path / PICTURE, picture)
    return content


def numbered(seeds: int | Sequence[int], first: int) -> tuple[int, ...]:
    """Return the seeds meant by a number of them, counted up from `first`, or by a list.

    Raises:
        TypeError: it is neither.
        ValueError: there are none or too many, or one is negative, too large or given twice.
    """
    given = tuple(seeds) if isinstance(seeds, Iterable) else (seeds,)
    if not all(isinstance(one, Integral) and not isinstance(one, bool) for one in given):
        raise TypeError(f"`seeds` (={seeds!r}) must be a whole number or a list of them")
    number = len(given) if isinstance(seeds, Iterable) else int(given[0])
    if not 1 <= number <= MOST_SEEDS:
        raise ValueError(f"`seeds` (={seeds}) must be from 1 to {MOST_SEEDS} seeds")
    numbers = tuple(map(int, given)) if isinstance(seeds, Iterable) else tuple(range(first, first + number))
    if min(numbers) < 0 or max(numbers) > LARGEST_SEED or len(set(numbers)) < len(numbers):
        raise ValueError(f"`seeds` (={seeds}, from {first} on) must be different whole numbers, from 0 to 2^63 - 1")
    return numbers


def _opened(
    spec: Spec,
    numbers: tuple[int, ...],
    out: str | Path | None,
    resume: str | Path | None,
    objective: Objective,
    data: Dataset | None,
) -> SeedsFolder:
    given = None if data is None else fingerprint(data)
    if resume is not None:
        return SeedsFolder.resume(Path(resume), spec.text(), objective, numbers, given)
    digest = checksum(f"{objective}\n{numbers}\n{spec.text()}".encode())
    default = runs.default_folder(spec.name, datetime.now(UTC), digest)
    path = runs.new_folder(default.with_name(f"{default.name}-seeds")) if out is None else Path(out)
    return SeedsFolder.create(path, spec.name, spec.text(), objective, numbers, given)


def _own_spec(resume: str | Path | None) -> Spec:
    if resume is None:
        raise ValueError("`spec` can be left out only to resume a search with its own")
    folder = SeedsFolder.view(Path(resume))
    return parse(folder.read_spec(), source=str(folder.path / SPEC), name=folder.spec)


def _task(folder: SeedsFolder, seed: Seed, spec: Spec, device: str, objective: Objective) -> Task:
    return Task(
        text=spec.text(),
        name=spec.name,
        seed=seed.seed,
        device=device,
        objective=objective,
        folder=str(folder.run(seed)),
        title=f"seed {seed.seed}",
        profile=spec.profile,
    )
