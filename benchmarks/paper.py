"""The papers' tables, one command each, beside what is published.

    python benchmarks/paper.py table1 --profile cpu --root ~/data --jobs 2
    python benchmarks/paper.py table2 --profile cpu --cifar-images ~/cifar10 --list

Every row runs by MAP and with learned priors, each in a folder of its own below `--out`. What is finished there is
read, what was interrupted goes on, what fails is tried once more, and again by the same command. A row that fails is
reported with its reason while the others run; the command then ends with status 1. The table goes to standard output
and to `OUT/TABLE-PROFILE.md`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from kept import setting
from paper_table import Line, markdown
from published import TABLES, Row

from symdsl.analysis.dataset import trail
from symdsl.diagnostics import INTERRUPTED, Collector, SpecError
from symdsl.graph import cost
from symdsl.language import ast
from symdsl.language.imports import read_file
from symdsl.language.printer import print_program
from symdsl.progress import Observers, Silent
from symdsl.runner.engines import Children
from symdsl.runner.many import run_all
from symdsl.runner.tasks import Task, reason_of
from symdsl.runs import RunFolder, Status
from symdsl.runs.schema import Objective
from symdsl.spec import Spec, load, parse

SPECS = Path(__file__).parent.parent / "specs" / "paper"
OBJECTIVES: tuple[Objective, ...] = ("map", "laplace")


# ---------------------------------------------------------------- specs


def spec_of(row: Row, options: argparse.Namespace) -> Spec:
    """The spec of a row at the scale that is asked for; raises `SpecError`."""
    path = SPECS / f"{row.spec}.sym"
    program = _read(path)
    photographs = options.cifar_images is not None and _source(program).name.text == "cifar10"
    overrides: dict[str, object] = {**options.profile, **row.overrides, **options.set}
    if options.root is not None and not photographs:
        overrides["data.root"] = str(options.root)
    if not photographs:
        return load(path, overrides)
    return parse(print_program(_with_images(program, options.cifar_images)), overrides)


def _read(path: Path) -> ast.Program:
    collector = Collector()
    program = read_file(path, str(path), collector)
    collector.raise_errors()
    assert program is not None, "without a tree there is an error"
    return program


def _source(program: ast.Program) -> ast.Call:
    return next(one for one in program.statements if isinstance(one, ast.Data)).steps[0]


def _with_images(program: ast.Program, folder: Path) -> ast.Program:
    """The program with a folder of images as its source."""
    images = ast.Call(ast.Word("images"), (ast.Argument(None, ast.Text(str(folder))),))
    statements = (
        attrs.evolve(one, steps=(images, *one.steps[1:])) if isinstance(one, ast.Data) else one
        for one in program.statements
    )
    return attrs.evolve(program, statements=tuple(statements))


# ---------------------------------------------------------------- runs


@attrs.frozen(eq=False)
class Run:
    """One search of a row: what it is, and where it is kept."""

    row: Row
    objective: Objective
    seed: int
    spec: Spec
    folder: Path
    device: str

    @property
    def title(self) -> str:
        return f"{self.row.name}, {self.objective}, seed {self.seed}"

    @property
    def cost(self) -> tuple[int, bool]:
        return cost.multiply_adds(self.spec.graph()), self.objective == "laplace"

    @property
    def task(self) -> Task:
        return Task(
            text=self.spec.text(),
            name=self.row.spec,
            seed=self.seed,
            device=self.device,
            objective=self.objective,
            folder=str(self.folder),
            title=self.title,
            profile=self.spec.profile,
        )


def runs_of(row: Row, spec: Spec, options: argparse.Namespace, out: Path) -> Iterator[Run]:
    """The runs of a row, one for each objective and seed."""
    of_objective: dict[Objective, list[int]] = {"map": options.map_seeds, "laplace": options.seeds}
    for objective in options.objectives:
        for seed in of_objective[objective]:
            yield Run(row, objective, seed, spec, out / f"{row.name}-{objective}-{seed}", options.device)


def outcomes(runs: Sequence[Run], jobs: int) -> dict[Run, Mapping[str, Any] | str]:
    """The result of every run, or the reason why it has none; `jobs` at a time, the cheapest first."""
    found: dict[str, Mapping[str, Any] | str] = {}

    def note(task: Task, status: Status, reason: str | None) -> None:
        if status == "finished":
            result = found[task.folder] = RunFolder.view(task.folder).read_result()
            test = result["test"]
            seconds = result["wall_s"]["total"]
            _say(f"{task.title}: {100 * test['accuracy']:.2f} %, NLL {test['nll']:.4f}, {seconds:.0f} s")
        else:
            found[task.folder] = reason or status

    tasks = {run.task: run for run in sorted(runs, key=lambda run: run.cost)}
    run_all(list(tasks), Children(threads=1), jobs, note, _Saying())
    return {run: found[task.folder] for task, run in tasks.items()}


class _Saying(Observers):
    """A line when a run begins, and for every run that fails."""

    def of(self, title: str = "") -> Silent:
        _say(f"{title} begins")
        return Silent()

    def on_note(self, text: str) -> None:
        _say(text)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- the command


def listing(specs: Mapping[Row, Spec | str]) -> str:
    """The rows with what they cost, the cheapest first."""
    lines = ["| row | parameters | multiply-adds per example |", "|---|---|---|"]
    graphs = {row.name: spec.graph() for row, spec in specs.items() if isinstance(spec, Spec)}
    for name, graph in sorted(graphs.items(), key=lambda one: cost.multiply_adds(one[1])):
        lines.append(f"| {name} | {cost.parameters(graph):,} | {cost.multiply_adds(graph):,} |")
    lines += [f"| {row.name} | {reason} | |" for row, reason in specs.items() if isinstance(reason, str)]
    return "\n".join(lines)


def scale(spec: Spec) -> str:
    """How large a search is, and what its profile changed to make it so."""
    outline = trail(spec.facts.data)[-1]
    size = f"{outline.train:,} training and {outline.test:,} test images of {outline}"
    return f"{size}, {spec.facts.search.epochs} epochs" + (f" ({spec.profile})" if spec.profile else "")


def lines_of(
    rows: Mapping[Row, Spec | str], found: Mapping[Run, Mapping[str, Any] | str], objectives: Sequence[Objective]
) -> Iterator[Line]:
    """The lines of the table, in the order of the published one."""
    for row, spec in rows.items():
        for objective in objectives:
            if isinstance(spec, str):
                yield Line(row, objective, {}, {}, (spec,))
                continue
            of_line = {run: one for run, one in found.items() if run.row is row and run.objective == objective}
            results = {run.seed: one for run, one in of_line.items() if not isinstance(one, str)}
            reasons = tuple(f"seed {run.seed}: {one}" for run, one in of_line.items() if isinstance(one, str))
            yield Line(row, objective, results, {run.seed: run.folder for run in of_line}, reasons)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    rows = {row: _spec_or_reason(row, options) for row in TABLES[options.table] if row.name in options.rows}
    if options.list:
        print(listing(rows))
        return 0
    name = f"{options.table}-{options.profile['profile']}" if options.profile else options.table
    specs = {row: spec for row, spec in rows.items() if isinstance(spec, Spec)}
    runs = [run for row, spec in specs.items() for run in runs_of(row, spec, options, options.out / name)]
    try:
        found = outcomes(runs, options.jobs)
    except KeyboardInterrupt:
        _say("interrupted; the same command goes on")
        return INTERRUPTED
    lines = list(lines_of(rows, found, options.objectives))
    text = markdown(name, sorted({scale(spec) for spec in specs.values()}), lines, options.out)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{name}.md").write_text(text, encoding="utf-8")
    print(text, end="")
    return 1 if any(line.reasons for line in lines) else 0


def _spec_or_reason(row: Row, options: argparse.Namespace) -> Spec | str:
    try:
        return spec_of(row, options)
    except SpecError as error:
        return reason_of(error)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument(
        "--profile",
        type=lambda name: {"profile": name},
        default={},
        help="`paper` as published, `desk` with fewer epochs, `cpu` in minutes, or another that the specs have",
    )
    parser.add_argument(
        "--root", type=Path, help="folder of MNIST's and CIFAR-10's files, which `--set data.download=true` fetches"
    )
    parser.add_argument("--cifar-images", type=Path, help="a folder train/CLASS, test/CLASS in the place of CIFAR-10")
    parser.add_argument("--out", type=Path, default=Path("runs/paper"), help="where everything is kept")
    parser.add_argument("--rows", nargs="+", help="some rows only, by name")
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, default=OBJECTIVES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[711])
    parser.add_argument("--map-seeds", type=int, nargs="+", help="those by MAP; without it `--seeds`")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, in processes of one thread each")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="K=V", help="as of `symdsl`")
    parser.add_argument("--list", action="store_true", help="print the rows and what they cost, and run nothing")
    options = parser.parse_args(arguments)
    names = [row.name for row in TABLES[options.table]]
    options.rows = names if options.rows is None else options.rows
    strange = [name for name in options.rows if name not in names]
    if strange:
        parser.error(f"{options.table} has no row `{strange[0]}`; there are {', '.join(names)}")
    options.map_seeds = options.seeds if options.map_seeds is None else options.map_seeds
    options.set = dict(options.set)
    return options


if __name__ == "__main__":
    sys.exit(main())
