"""A table of runs beside the published one, as Markdown."""

from __future__ import annotations

import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from published import Figures, Row

from symdsl.runs.schema import Objective
from symdsl.runs.summary import moments

Result = Mapping[str, Any]
HEAD = (
    *("row", "objective", "seeds", "test accuracy, %", "published", "test NLL", "published"),
    *("-log evidence / example", "published", "parameters", "published", "chosen"),
    *("share over layers, % (least-most)", "published", "wall s (evidence)"),
)


@attrs.frozen
class Line:
    """A line of the table: a row's runs with one objective.

    Attributes:
        row: the row.
        objective: how it was trained.
        results: of the finished runs, by seed.
        folders: of all runs, by seed.
        reasons: why the others have none.
    """

    row: Row
    objective: Objective
    results: Mapping[int, Result]
    folders: Mapping[int, Path]
    reasons: tuple[str, ...]


def markdown(title: str, scales: Sequence[str], lines: Sequence[Line], out: Path) -> str:
    """The whole page; links are relative to `out`."""
    cells = [HEAD, *(tuple(_cells(line)) for line in lines)]
    filled = [at for at in range(len(HEAD)) if any(row[at] for row in cells[1:])]
    table = [_row([row[at] for at in filled]) for row in cells]
    rule = "|" + "---|" * len(filled)
    failures = [f"- {line.row.name}, {line.objective} failed: {why}" for line in lines for why in line.reasons]
    parts = [f"# {title}", "\n".join(f"{one}." for one in scales), "\n".join([table[0], rule, *table[1:]])]
    parts += ["\n".join(failures), _comparison(lines), _pictures(lines, out)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _cells(line: Line) -> Iterator[str]:
    results, printed = list(line.results.values()), line.row.figures(line.objective)
    failed = "failed" if line.reasons and not results else ""
    yield line.row.title
    yield line.objective
    yield " ".join(map(str, line.results))
    yield failed or _figure([100 * one["test"]["accuracy"] for one in results], ".2f")
    yield from _measured(results, printed)
    yield f"{results[0]['parameters']:,}" if results else ""
    yield line.row.parameters
    yield _chosen(results)
    yield _shares(results)
    yield printed.shares
    yield _wall(results)


def _measured(results: Sequence[Result], printed: Figures) -> Iterator[str]:
    yield _printed(printed.accuracy, ".2f")
    yield _figure([one["test"]["nll"] for one in results], ".4f")
    yield _printed(printed.nll, ".3f")
    yield _figure([one["neg_log_evidence_per_example"] for one in results], ".4f")
    yield _printed(printed.evidence, ".3f")


def _printed(value: float | None, form: str) -> str:
    return "" if value is None else f"{value:{form}}"


def _figure(values: Sequence[float], form: str) -> str:
    """The mean, and the standard deviation between seeds where there are several."""
    if not values:
        return ""
    mean, spread = (moments(values)[key] for key in ("mean", "spread"))
    return f"{mean:{form}}" if spread is None else f"{mean:{form}} ± {spread:{form}}"


def _chosen(results: Sequence[Result]) -> str:
    """How many layers chose what, over all seeds; nothing where there is no choice."""
    counts = Counter(layer["chosen"] for result in results for layer in _choices(result))
    return ", ".join(f"{kind} {count}" for kind, count in counts.most_common())


def _shares(results: Sequence[Result]) -> str:
    """Each kind's relative effective number over the layers of all seeds: mean, least and most."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for candidate in (one for result in results for layer in _choices(result) for one in layer["candidates"]):
        found[candidate["kind"]].append(100 * candidate["relative"])
    return ", ".join(
        f"{kind} {statistics.fmean(shares):.0f} ({min(shares):.0f}-{max(shares):.0f})" for kind, shares in found.items()
    )


def _choices(result: Result) -> list[Result]:
    return [layer for layer in result["layers"] if len(layer["candidates"]) > 1]


def _wall(results: Sequence[Result]) -> str:
    if not results:
        return ""
    total, evidence = (statistics.fmean(one["wall_s"][key] for one in results) for key in ("total", "evidence"))
    return f"{total:.0f} ({100 * evidence / total:.0f} %)"


def _comparison(lines: Sequence[Line]) -> str:
    """In how many rows learned priors have the lower mean test NLL."""
    means: defaultdict[str, dict[Objective, float]] = defaultdict(dict)
    for line in lines:
        if line.results:
            means[line.row.name][line.objective] = statistics.fmean(one["test"]["nll"] for one in line.results.values())
    compared = {name: found for name, found in means.items() if len(found) == 2}
    worse = [name for name, found in compared.items() if found["laplace"] >= found["map"]]
    if not compared:
        return ""
    exceptions = f", not in {', '.join(worse)}" if worse else ""
    count = f"{len(compared) - len(worse)} of {len(compared)} rows"
    return f"With learned priors the test NLL is lower than by MAP in {count}{exceptions}."


def _pictures(lines: Sequence[Line], out: Path) -> str:
    links = [
        f"[{line.row.name}, seed {seed}]({os.path.relpath(line.folders[seed] / 'architecture.svg', out)})"
        for line in lines
        for seed, result in line.results.items()
        if line.objective == "laplace" and _choices(result)
    ]
    return f"Learned layers: {', '.join(links)}." if links else ""
