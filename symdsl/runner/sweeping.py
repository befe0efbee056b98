"""A grid of searches: every spec with every choice of settings, every objective and every seed."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs

from symdsl import runs, spec
from symdsl.analysis.overrides import Override
from symdsl.data.checks import check_handed_over
from symdsl.diagnostics import Diagnostic, RunError, SpecError
from symdsl.progress import Observers
from symdsl.report import report_html, without_damaged
from symdsl.runner.device import check_device
from symdsl.runner.engines import ENGINES, Place, Resources, check_resources
from symdsl.runner.many import run_all, run_and_write
from symdsl.runner.searching import objective_of
from symdsl.runner.seeds import numbered
from symdsl.runner.tasks import Task
from symdsl.runs.folder import METRICS
from symdsl.runs.schema import MOST_SEEDS, Objective
from symdsl.runs.sweeps import PAGE, TABLE, Point, SweepFolder, SweepRun
from symdsl.spec import Spec

MOST_RUNS = MOST_SEEDS
"""How many runs a sweep may have."""

_MOST_AT_A_TIME = 64
"""How many runs a scheduler is handed at a time by default; it queues those that have no room."""

_LONGEST = 80  # of a folder's name that tells what was set, in characters


@attrs.frozen(eq=False)
class Grid:
    """The grid of runs of a sweep.

    Attributes:
        points: the specs with their settings.
        runs: a run for every point, objective and seed.
        warnings: what the specs hardly mean, each once.
    """

    points: tuple[Point, ...]
    runs: tuple[SweepRun, ...]
    warnings: tuple[Diagnostic, ...]


def grid(
    specs: Sequence[str | os.PathLike[str]],
    settings: Mapping[str, Sequence[str]],
    seeds: int | Sequence[int] | None = None,
    objectives: Sequence[Objective | None] = (None,),
) -> Grid:
    """Return the runs of a sweep, all specs checked with all settings.

    Args:
        specs: files.
        settings: the values that each key takes, as they are written.
        seeds: the seeds, or how many, counted up from each spec's own, which alone is run if this is left out.
        objectives: `map`, or nothing for each spec's own, or both.

    Raises:
        SpecError: a spec is wrong with some settings; it carries all that is wrong with the first such choice.
        RunError: the data of a spec can only be handed over in Python.
        TypeError: the specs are no list of files.
        ValueError: a spec is given twice, a key has no list of values, the seeds make no sense or are set as well, an
            objective is unknown, or there would be too many runs.
    """
    listed = isinstance(specs, Sequence) and not isinstance(specs, str)
    if not listed or not all(isinstance(one, str | os.PathLike) for one in specs):
        raise TypeError(f"`specs` (={specs!r}) must be a list of files")
    for key, values in settings.items():
        if isinstance(values, str) or not values:
            raise ValueError(f"`settings[{key!r}]` (={values!r}) must be a list of one text or more")
    files = [Path(one).resolve() for one in specs]
    if twice := next((one for one, file in zip(specs, files, strict=True) if files.count(file) > 1), None):
        raise ValueError(f"`{twice}` is given twice")
    if seeds is not None and "search.seed" in settings:
        raise ValueError("`search.seed` is set, and seeds are given as well: leave one of them out")
    _demand_few(len(specs) * math.prod(map(len, settings.values())) * len(objectives))
    chosen = [dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values())]
    names = _names(files)
    loaded = [
        (name, _loaded(path, choice), choice) for name, path in zip(names, specs, strict=True) for choice in chosen
    ]
    for _, one, _ in loaded:
        check_handed_over(one.facts.data, None)
    points = [
        Point(name, choice, one.text(), attrs.asdict(one.profile) if one.profile else None)
        for name, one, choice in loaded
    ]
    wanted: list[SweepRun] = []
    for number, ((_, one, _), point) in enumerate(zip(loaded, points, strict=True)):
        own = one.facts.search.seed
        chosen_objectives = [objective_of(one, asked) for asked in objectives]
        for objective, seed in itertools.product(chosen_objectives, [own] if seeds is None else numbered(seeds, own)):
            name = _folder(point, objective if len(objectives) > 1 else "", seed, {one.folder for one in wanted})
            wanted.append(SweepRun(name, number, objective, seed))
    _demand_few(len(wanted))
    warnings = dict.fromkeys(warning for _, one, _ in loaded for warning in one.warnings)
    return Grid(tuple(points), tuple(wanted), tuple(warnings))


def _demand_few(runs: int) -> None:
    if runs > MOST_RUNS:
        raise ValueError(f"{runs:,} runs are more than {MOST_RUNS:,}: give fewer values or seeds")


def _names(files: Sequence[Path]) -> list[str]:
    """The name of every file without its ending, after as many of its folders as tell it from the others."""
    places = [(*file.parent.parts, file.stem) for file in files]
    tails = [[place[-length:] for length in range(1, len(place) + 1)] for place in places]
    shared = Counter(itertools.chain(*tails))
    return ["/".join(next((tail for tail in own if shared[tail] == 1), own[-1])) for own in tails]


def _loaded(path: str | os.PathLike[str], choice: Mapping[str, str]) -> Spec:
    overrides = [Override.parse(f"{key}={value}", number) for number, (key, value) in enumerate(choice.items(), 1)]
    return spec.load(os.fspath(path), {one.key: one for one in overrides})


def _folder(point: Point, objective: str, seed: int, taken: set[str]) -> str:
    """A name that says what a run is, and that no other run has."""
    settings = [f"{key.removeprefix('search.')}={value}" for key, value in point.settings.items()]
    words = "-".join(filter(None, [point.spec, *settings, objective]))
    plain = re.sub(r"[^\w.=+-]+", "_", re.sub(r"[][()\"\s]", "", words)).strip("._-")[:_LONGEST]
    more = itertools.chain([""], map("-{}".format, itertools.count(2)))
    names = (f"{plain}{number}-seed-{seed}" for number in more)
    return next(name for name in names if name not in taken)


def sweep(
    wanted: Grid | None = None,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    on: Place = "local",
    jobs: int | None = None,
    resources: Resources | None = None,
    device: str = "auto",
    watch: Observers | None = None,
) -> SweepFolder:
    """Run a grid of searches, each in a run folder of its own below one folder, and write one table of them.

    A run that fails is tried once more, then recorded; the others continue.

    Args:
        wanted: what to run; a sweep that is resumed knows its own.
        out: the folder, new or empty; `runs/sweeps/<time>` when left out.
        resume: the folder of an earlier sweep, to continue what is not finished.
        on: where the runs are computed.
        jobs: runs at a time; by default one on this machine, 64 elsewhere.
        resources: what a run gets there, see `symdsl.runner.engines`.
        device: `auto`, `cpu`, `cuda` or `cuda:n`.
        watch: shows how all runs go.

    Returns:
        The folder, with all that is known of the runs.

    Raises:
        ValueError: jobs, device, place or resources make no sense, or there is neither a grid nor a sweep to resume.
        RunError: the folder or the engine cannot be used.
        KeyboardInterrupt: on Ctrl-C, after saving what `resume` needs.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"`jobs` (={jobs}) must be at least 1")
    if (wanted is None) == (resume is None):
        raise ValueError("`wanted` or `resume` must be given, and not both")
    check_device(device)
    check_resources(on, resources or {})
    at_a_time = jobs or (1 if on == "local" else _MOST_AT_A_TIME)
    engine = ENGINES[on](resources or {}, device, at_a_time)
    with _opened(wanted, out, resume) as folder, watch or Observers() as watcher:
        watcher.on_start(folder.path)
        finished = folder.finished()
        tasks = [_task(folder, one, device) for one in folder.runs if one not in finished]

        def note(task: Task, status: runs.Status, reason: str | None) -> None:
            folder.note(Path(task.folder).name, status, reason)
            runs.write_atomic(folder.path / TABLE, folder.csv())

        run_and_write(
            lambda: run_all(tasks, engine, at_a_time, note, watcher), lambda: _write_tables(folder, watcher), watcher
        )
        return folder


def _opened(wanted: Grid | None, out: str | Path | None, resume: str | Path | None) -> SweepFolder:
    if wanted is None:
        assert resume is not None, "one of both was given"
        return SweepFolder.resume(Path(resume))
    default = Path("runs", "sweeps", f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    return SweepFolder.create(runs.new_folder(default) if out is None else Path(out), wanted.points, wanted.runs)


def _task(folder: SweepFolder, one: SweepRun, device: str) -> Task:
    point = folder.points[one.point]
    return Task(
        text=point.text,
        name=Path(point.spec).name,
        seed=one.seed,
        device=device,
        objective=one.objective,
        folder=str(folder.run(one)),
        title=one.folder,
        profile=point.profile,
    )


def _write_tables(folder: SweepFolder, watcher: Observers) -> None:
    """Write the table, and the page where there is something to show and the packages that it needs are there."""
    folder.write()
    runs.write_atomic(folder.path / TABLE, folder.csv())
    begun = [path for path in folder.begun() if (path / METRICS).exists()]  # as far as a first epoch
    if not begun:
        return
    try:
        readable = without_damaged([folder.path], watcher.on_note)
        page = report_html([path for path in readable if path in begun] or begun)
    except (RunError, SpecError) as error:
        (folder.path / PAGE).unlink(missing_ok=True)  # an earlier one would show other runs
        watcher.on_note(f"{PAGE} is not written: {error}")
    else:
        runs.write_atomic(folder.path / PAGE, page.encode())
