"""The folder of a grid of runs: specs, settings and seeds, with a run folder for each, and one table of them all."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

import attrs

from symdsl.runs.files import SCHEMA
from symdsl.runs.folder import SWEEP
from symdsl.runs.locks import locked
from symdsl.runs.schema import Objective
from symdsl.runs.several import SeveralFolder, State
from symdsl.runs.summary import METRICS, value_at

TABLE, PAGE = "sweep.csv", "sweep.html"

FIGURES = (("parameters",), ("epochs",), ("priors_learned",), *METRICS)
"""Where `result.json` has the numbers that the table shows, each named by its path with dots."""

_COLUMNS = {"run", "spec", "objective", "seed", "status", "reason", "layers", *map(".".join, FIGURES)}


@attrs.frozen
class Point:
    """One spec with one choice of settings.

    Attributes:
        spec: name of the spec.
        settings: what was set, by key, as it was written.
        text: the spec with these settings, which reproduces a run but for its seed.
        profile: the profile that was set, as plain values; None where none was.
    """

    spec: str
    settings: Mapping[str, str]
    text: str = attrs.field(repr=False)
    profile: Mapping[str, Any] | None = None


@attrs.frozen
class SweepRun:
    """One run of a sweep, with its status.

    Attributes:
        folder: name of its run folder.
        point: number of its point.
        objective: `laplace`, `elbo` or `map`.
        seed: its seed.
        status: how far it has come; `waiting` before it has begun.
        reason: why it failed, where it did.
    """

    folder: str
    point: int
    objective: Objective
    seed: int
    status: State = "waiting"
    reason: str | None = None

    def noted(self, status: State, reason: str | None) -> SweepRun:
        """Return the same run in another state."""
        return attrs.evolve(self, status=status, reason=reason)


class SweepFolder(SeveralFolder[SweepRun]):
    """A folder with a run folder for every combination.

    Opened by `create`, `resume` or `view`.

    Attributes:
        points: the specs with their settings, by number.
    """

    LIST, CALLED = SWEEP, "runs of a sweep"

    def __init__(self, path: Path, points: Sequence[Point], found: Sequence[SweepRun], lock: IO[bytes] | None) -> None:
        """Not for callers: use `create`, `resume` or `view`."""
        super().__init__(path, found, lock)
        self.points = tuple(points)

    @classmethod
    def create(cls, path: Path, points: Sequence[Point], wanted: Sequence[SweepRun]) -> Self:
        """Make and lock the folder of a new sweep.

        Raises:
            RunError: it cannot be written, is not empty or in use.
        """
        folder = cls(path, points, wanted, cls.made(path))
        folder.write()
        return folder

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Lock the folder of a sweep that goes on.

        Raises:
            RunError: it is no such folder, or in use.
        """
        folder = cls.view(path)
        return cls(path, folder.points, folder.runs, locked(path)).take_up()

    @classmethod
    def view(cls, path: Path) -> Self:
        """Open a folder for reading.

        Raises:
            RunError: it holds no sweep, or its `sweep.json` is damaged.
        """
        with cls.reading(path) as content:
            points = [Point(**one) for one in content["points"]]
            found = [SweepRun(**one) for one in content["runs"]]
            if any(not 0 <= one.point < len(points) for one in found):
                raise KeyError("a point of a run")
        return cls(path, points, found, lock=None)

    def content(self) -> dict[str, Any]:
        """Return what `sweep.json` holds: the points, and the runs in their present states."""
        present = [attrs.asdict(one) for one, _ in self.results()]
        return {"schema": SCHEMA, "points": [attrs.asdict(one) for one in self.points], "runs": present}

    def rows(self) -> list[dict[str, Any]]:
        """Return the table, a row for every run: what it is, its status, its figures, and the type of every layer.

        Figures are named by their paths in `result.json`, such as `test.nll`; what is not known is None.
        """
        return [self._row(one, result or {}) for one, result in self.results()]

    def _row(self, one: SweepRun, result: Mapping[str, Any]) -> dict[str, Any]:
        point = self.points[one.point]
        layers = (f"{layer['name']}={layer['chosen'] or '-'}" for layer in result.get("layers", ()))
        return {
            "run": one.folder,
            "spec": point.spec,
            **dict.fromkeys(self.axes),
            **{_column(key): value for key, value in point.settings.items()},
            "objective": one.objective,
            "seed": one.seed,
            "status": one.status,
            "reason": one.reason,
            **{".".join(path): value_at(result, path) for path in FIGURES},
            "layers": " ".join(layers) or None,
        }

    @property
    def axes(self) -> list[str]:
        """The columns of the keys that are set."""
        return list(dict.fromkeys(_column(key) for point in self.points for key in point.settings))

    def csv(self) -> bytes:
        """Return the rows as text with commas; figures that no run has are left out."""
        rows = self.rows()
        kept = [
            name
            for name in (rows[0] if rows else ())
            if tuple(name.split(".")) not in FIGURES or any(row[name] is not None for row in rows)
        ]
        text = io.StringIO()
        writer = csv.DictWriter(text, kept, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode()


def _column(key: str) -> str:
    """The column of a key: its name, but for a `let` that is called like a column that every sweep has."""
    return f"set.{key}" if key in _COLUMNS else key
