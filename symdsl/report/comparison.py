"""The content of a page about several runs side by side."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from symdsl.analysis.facts import Arguments
from symdsl.analysis.overrides import Override, apply_overrides
from symdsl.diagnostics import Collector
from symdsl.language.imports import inline
from symdsl.language.printer import print_program
from symdsl.render.cells import UNKNOWN, is_unlearned
from symdsl.report import charts
from symdsl.report.charts import Chart
from symdsl.report.page import Cell, Page, Section, Table
from symdsl.report.reading import EVIDENCE, Run
from symdsl.report.single import TILES, picture_uri
from symdsl.runs.folder import CHANGED
from symdsl.runs.summary import moments, value_at

_LARGER_IS_BETTER = frozenset({"accuracy", "r2"})
_NOT_RANKED = frozenset({"parameters"})
_MOST_DIFFERENCES = 3


@attrs.frozen(eq=False)
class Group:
    """Runs that differ in their seed alone, and began alike.

    Attributes:
        name: tells it from the others.
        runs: its runs, in the order given.
    """

    name: str
    runs: tuple[Run, ...]

    @property
    def by_seed(self) -> list[Mapping[str, Any]]:
        """A result for every seed that has one, of several runs with the same seed the first."""
        return list({run.info["seed"]: run.result for run in reversed(self.runs) if run.result}.values())


def comparison(runs: Sequence[Run]) -> Page:
    """Return the content of a page about several runs: metrics, overlaid curves, agreement on layer types."""
    found = groups(runs)
    names = run_names(found)
    finished = [(names[run], run) for group in found for run in group.runs if run.result]
    comparable = all(_measured_on(run) == _measured_on(runs[0]) for run in runs)
    words = "The best of each column is bold." if comparable else "The data differ, so none is called best."
    if comparable and any(len(read) > 1 for read in _read_by_seed(runs)):
        words += f" With the same seed, not all runs have read the same numbers: {CHANGED}."
    if comparable and _has_bounds_and_evidences(run for _, run in finished):
        words += " Bounds (`elbo`) and Laplace evidences are not compared."
    if any(len(group.by_seed) > 1 for group in found):
        words += " Spreads are standard deviations between seeds."
    if any(len(group.by_seed) < sum(run.result is not None for run in group.runs) for group in found):
        words += " A mean takes the first of several runs with the same seed."
    chose = "What each search chose, and its share."
    if unlearned := [name for name, run in finished if run.result and is_unlearned(run.result)]:
        chose += f" No prior was learned by {'; '.join(unlearned)}: the networks fit too little."
    sections = [
        Section("Metrics", words, tables=[_metrics(found, names, comparable)]),
        Section("Training", "By epoch, on the training data.", list(_training(found, names))),
        Section("Layer types", chose, tables=list(_agreements(finished))),
        Section(
            "What was learned",
            pictures=[(picture_uri(run), name, run.name) for name, run in finished if run.picture],
            large=True,
        ),
        Section(
            "Time",
            charts=[charts.time_chart([(name, run.result["wall_s"]) for name, run in finished if run.result])]
            if finished
            else [],
        ),
    ]
    title = ", ".join(dict.fromkeys(run.name for run in runs))
    return Page(title, [f"{len(runs)} runs"], [], [one for one in sections if one.filled])


def groups(runs: Sequence[Run]) -> list[Group]:
    """Group runs that differ in their seed alone, in the order of their first runs.

    A run that started from the weights of another is told from those that did not.
    """
    by_setup: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        begun_from = run.info.get("weights_from")
        objective = str((run.result or run.info).get("objective"))
        learned = f"{objective}, from {begun_from}" if begun_from else objective
        by_setup.setdefault((learned, _without_seed(run.spec)), []).append(run)
    plain = {setup: f"{found[0].name}, {setup[0]}" for setup, found in by_setup.items()}
    lines = {setup: Counter(line.strip() for line in setup[1].splitlines()) for setup in by_setup}
    common: dict[str, Counter[str]] = {}
    for setup, name in plain.items():
        common[name] = common.get(name, lines[setup]) & lines[setup]
    names = {setup: _distinct(name, lines[setup] - common[name]) for setup, name in plain.items()}
    times = Counter(names.values())
    return [
        Group(name if times[name] == 1 else f"{name}, {by_setup[setup][0].folder}", tuple(by_setup[setup]))
        for setup, name in names.items()
    ]


def _without_seed(text: str) -> str:
    """The spec with another seed, by its tree alone: its data may be gone, and packages with kinds not installed."""
    collector = Collector()
    program = inline(text, "", None, collector)
    seedless = None if program is None else apply_overrides(program, [Override.of("search.seed", 0, 1)], collector)[0]
    return text if seedless is None or collector.failed else print_program(seedless)


def _distinct(name: str, lines: Counter[str]) -> str:
    """A name with the lines of the spec that those of the same name do not all have."""
    own = list(lines.elements())
    more = ", ..." if len(own) > _MOST_DIFFERENCES else ""
    return f"{name}, {', '.join(own[:_MOST_DIFFERENCES])}{more}" if own else name


def run_names(found: Sequence[Group]) -> dict[Run, str]:
    """Return a unique name for every run."""
    plain = {
        run: f"{group.name}, seed {run.info['seed']}" if len(found) > 1 else f"seed {run.info['seed']}"
        for group in found
        for run in group.runs
    }
    times = Counter(plain.values())
    return {run: name if times[name] == 1 else f"{name}, {run.folder}" for run, name in plain.items()}


def _measured_on(run: Run) -> tuple[list[tuple[str, Arguments]], str]:
    """The steps that gave the run its data, but for augmentation, and the fingerprint of data that were handed over."""
    steps = [step for step in (run.data.source, *run.data.transforms) if step.name != "augment"]
    given = run.info["dataset"] if run.data.source.name == "given" else ""
    return [(step.name, step.arguments) for step in steps], given


def _read_by_seed(runs: Sequence[Run]) -> Iterable[set[str]]:
    """The fingerprints of the data that runs of the same seed have read."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    for run in runs:
        found[run.info["seed"]].add(run.info["dataset"])
    return found.values()


def _metrics(found: Sequence[Group], names: Mapping[Run, str], comparable: bool) -> Table:
    """A row for every run, and one for the mean of each group of several; the best is bold if they are comparable."""
    results = [run.result for group in found for run in group.runs if run.result]
    shown = [tile for tile in TILES if any(value_at(result, tile[1]) is not None for result in results)]
    heads = (("run", "left"), *((name, "right") for name, _, _ in shown))
    best_run = [_best(path, [value_at(result, path) for result in results]) for _, path, _ in shown]
    means = [[_mean(group, path) for _, path, _ in shown] for group in found]
    best_mean = [_best(path, [row[column] for row in means]) for column, (_, path, _) in enumerate(shown)]
    mixed = _has_bounds_and_evidences(run for group in found for run in group.runs)
    for column, (_, path, _) in enumerate(shown):
        if not comparable or (mixed and path == (EVIDENCE,)):
            best_run[column] = best_mean[column] = None
    rows: list[list[Cell]] = []
    for group, mean in zip(found, means, strict=True):
        for run in group.runs:
            state = "" if run.result else f" ({run.info['status']}{run.reason})"
            values = [value_at(run.result or {}, path) for _, path, _ in shown]
            cells = zip(values, shown, best_run, strict=True)
            rows.append([(names[run] + state, False), *(_cell(value, tile[2], best) for value, tile, best in cells)])
        if len(group.by_seed) > 1:
            rows.append([(f"mean of {group.name}", False), *_mean_cells(group, mean, shown, best_mean)])
    return Table(heads, rows)


def _has_bounds_and_evidences(runs: Iterable[Run]) -> bool:
    """Return whether some runs report the variational bound, and others Laplace's evidence."""
    return len({run.result["objective"] == "elbo" for run in runs if run.result}) > 1


def _mean_cells(
    group: Group,
    mean: Sequence[float | None],
    shown: Sequence[tuple[str, tuple[str, ...], Callable[[Any], str]]],
    best: Sequence[float | None],
) -> Iterator[Cell]:
    for value, (_, path, text), least in zip(mean, shown, best, strict=True):
        spread = moments(_values(group, path))["spread"] if value is not None else None
        written, bold = _cell(value, text, least)
        yield (f"{written} ± {text(spread)}" if spread else written, bold)


def _values(group: Group, path: Sequence[str]) -> list[float]:
    found = (value_at(result, path) for result in group.by_seed)
    return [value for value in found if value is not None]


def _mean(group: Group, path: Sequence[str]) -> float | None:
    values = _values(group, path)
    mean = moments(values)["mean"] if values else None
    return round(mean) if mean is not None and path == ("parameters",) else mean


def _best(path: Sequence[str], values: Sequence[float | None]) -> float | None:
    """The best of some numbers; None where there is nothing to choose, or no better and worse."""
    known = {value for value in values if value is not None}
    if len(known) < 2 or path[-1] in _NOT_RANKED:
        return None
    return max(known) if path[-1] in _LARGER_IS_BETTER else min(known)


def _cell(value: float | None, text: Callable[[Any], str], best: float | None) -> Cell:
    return (UNKNOWN, False) if value is None else (text(value), value == best)


def _training(found: Sequence[Group], names: Mapping[Run, str]) -> Iterator[Chart]:
    """One chart per number, a line per run: a colour for each group and a dash for each seed, or a colour for each."""
    styles = {
        run: (number, place) if len(found) > 1 else (place, place // len(charts.SERIES))
        for number, group in enumerate(found)
        for place, run in enumerate(group.runs)
    }
    for title, axis, wanted in charts.TRAINING:
        key = wanted[-1][0]
        lines = [
            (names[run], charts.SERIES[one % len(charts.SERIES)], charts.DASHES[two % len(charts.DASHES)], x, y)
            for run, (one, two) in styles.items()
            for x, y in [charts.series(run.records, key)]
            if x
        ]
        if lines:
            yield charts.curves("NLL" if key == "nll" else title, axis, lines, legend=True)


def _agreements(finished: Sequence[tuple[str, Run]]) -> Iterator[Table]:
    """For searches over the same layers and candidates the chosen types, and how many chose what most did."""
    alike: dict[tuple[tuple[str, ...], ...], list[tuple[str, Run]]] = {}
    for name, run in finished:
        if not run.evidence_steps:
            continue  # its types were not learned
        layers = tuple((layer.name, *(one.name for one in layer.candidates)) for layer in run.layers)
        alike.setdefault(layers, []).append((name, run))
    for runs in alike.values():
        yield _agreement(runs)


def _agreement(runs: Sequence[tuple[str, Run]]) -> Table:
    heads = (("layer", "left"), ("agree", "left"), *((name, "left") for name, _ in runs))
    rows: list[list[Cell]] = []
    swatches = []
    for number, layer in enumerate(runs[0][1].layers):
        pairs = charts.candidate_pairs(layer)
        found = [run.result["layers"][number] for _, run in runs if run.result]
        often = Counter(one["chosen"] for one in found).most_common(1)[0][1]
        cells = ((_chosen(one), False) for one in found)
        swatches.append({column: pairs[one["chosen"]] for column, one in enumerate(found, start=2) if one["chosen"]})
        rows.append([(layer.name, False), (f"{often} of {len(found)}", often == len(found)), *cells])
    return Table(heads, rows, swatches)


def _chosen(layer: Mapping[str, Any]) -> str:
    """Return a layer's type and its share, or a dash for a layer whose residual block was removed."""
    shares = {one["kind"]: one["relative"] for one in layer["candidates"]}
    return f"{layer['chosen']} {shares[layer['chosen']]:.0%}" if layer["chosen"] else UNKNOWN
