"""The folder of the same search with several seeds: a run folder for each, and what they have in common."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

import attrs

from symdsl.diagnostics import RunError
from symdsl.runs.files import SCHEMA, checksum, finite, names_the_file, read, read_json, write_atomic
from symdsl.runs.folder import LOCK, RUN, SEEDS, SPEC, RunFolder, locked
from symdsl.runs.schema import Status
from symdsl.runs.summary import summary

TABLE, PICTURE = "seeds.txt", "architecture.svg"


@attrs.frozen
class Seed:
    """One seed, and what became of its run.

    Attributes:
        seed: its number.
        status: how far the run has come; `waiting` before it has begun.
        reason: why it failed, where it did.
    """

    seed: int
    status: Status | Literal["waiting"] = "waiting"
    reason: str | None = None

    @property
    def folder(self) -> str:
        """Name of its run folder."""
        return f"seed-{self.seed}"


class SeedsFolder:
    """A folder with a run folder for every seed.

    Opened by `create`, `resume` or `view`, and locked like a `RunFolder`.

    Attributes:
        path: the folder.
        seeds: the seeds, in order, with what was last known of them.
    """

    def __init__(self, path: Path, head: Mapping[str, Any], seeds: Sequence[Seed], lock: IO[bytes] | None) -> None:
        """Not for callers: use `create`, `resume` or `view`."""
        self.path = path
        self.seeds = tuple(seeds)
        self._head = dict(head)
        self._lock = lock

    @classmethod
    def create(cls, path: Path, spec: str, text: str, objective: str, seeds: Sequence[int]) -> Self:
        """Makes and locks the folder of a new search.

        Args:
            path: the folder, new or empty.
            spec: name of the spec.
            text: the spec as run, but for the seed.
            objective: `laplace` or `map`.
            seeds: the numbers.

        Raises:
            RunError: it cannot be written, is not empty or in use.
        """
        with names_the_file(path):
            path.mkdir(parents=True, exist_ok=True)
            held = sorted(name for name in os.listdir(path) if name != LOCK)
        if SEEDS in held:
            raise RunError(f"{path}: holds runs of several seeds; `--resume {path}` goes on with them")
        if held:
            raise RunError(f"{path}: is not empty (it holds {held[0]}); give a folder that is new or empty")
        head = {"spec": spec, "objective": objective, "sha256": {SPEC: checksum(text.encode())}}
        folder = cls(path, head, [Seed(seed) for seed in seeds], locked(path))
        write_atomic(path / SPEC, text.encode())
        folder.write()
        return folder

    @classmethod
    def resume(cls, path: Path, text: str, objective: str, seeds: Sequence[int]) -> Self:
        """Locks the folder of a search that goes on, possibly with more seeds.

        Raises:
            RunError: it is no such folder, in use, or of another spec or objective.
        """
        folder = cls.view(path)
        if folder.read_spec() != text:
            raise RunError(f"{path}: was started from another spec; `--resume {path}` without one goes on with its own")
        if folder._head["objective"] != objective:
            command = {"laplace": "search", "map": "map"}[folder._head["objective"]]
            raise RunError(f"{path}: was started with `symdsl {command}`; resume it with that")
        known = {one.seed for one in folder.seeds}
        more = [Seed(seed) for seed in seeds if seed not in known]
        return cls(path, folder._head, [*folder.seeds, *more], locked(path))

    @classmethod
    def view(cls, path: Path) -> Self:
        """Opens a folder for reading.

        Raises:
            RunError: it holds no seeds, or its `seeds.json` is damaged.
        """
        content = read_json(path / SEEDS)
        try:
            head = {key: content[key] for key in ("spec", "objective")} | {"sha256": content.get("sha256", {})}
            seeds = [Seed(one["seed"], one["status"], one["reason"]) for one in content["seeds"]]
        except (KeyError, TypeError) as error:
            raise RunError(f"{path / SEEDS}: damaged, {error} is missing") from error
        return cls(path, head, seeds, lock=None)

    @staticmethod
    def is_one(path: Path) -> bool:
        """Whether a folder is one of several seeds."""
        return (path / SEEDS).is_file()

    def __enter__(self) -> Self:
        """The folder itself, closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def spec(self) -> str:
        """Name of the spec."""
        return str(self._head["spec"])

    def read_spec(self) -> str:
        """The text of the spec that all seeds run, but for the seed.

        Raises:
            RunError: it is missing, or not as it was when the search began.
        """
        content = read(self.path / SPEC)
        if self._head["sha256"].get(SPEC, checksum(content)) != checksum(content):
            raise RunError(f"{self.path / SPEC}: damaged or edited, its checksum is not that in {SEEDS}")
        return content.decode(errors="replace")

    def run(self, seed: Seed) -> Path:
        """The run folder of a seed."""
        return self.path / seed.folder

    def has_begun(self, seed: Seed) -> bool:
        """Whether a seed's run folder holds a run."""
        return (self.run(seed) / RUN).is_file()

    def finished(self) -> list[Seed]:
        """The seeds whose runs are finished."""
        return [one for one in self.seeds if self._present(one).status == "finished"]

    def note(self, seed: int, status: Status, reason: str | None = None) -> None:
        """Takes down what became of a seed, and writes the summary anew."""
        self.seeds = tuple(Seed(seed, status, reason) if one.seed == seed else one for one in self.seeds)
        self.write()

    def content(self) -> dict[str, Any]:
        """What `seeds.json` holds: the seeds with the present state of their runs, and a summary of the finished ones.

        Raises:
            RunError: a file of a run is damaged.
        """
        seeds = [self._present(one) for one in self.seeds]
        results = [RunFolder.view(self.run(one)).read_result() for one in self.finished()]
        listed = [{"seed": one.seed, "folder": one.folder, "status": one.status, "reason": one.reason} for one in seeds]
        return {"schema": SCHEMA, **self._head, "seeds": listed, **summary(results)}

    def write(self) -> None:
        """Writes `seeds.json`.

        Raises:
            RunError: it cannot be written, or a file of a run is damaged.
            ValueError: the folder was opened for reading.
        """
        if self._lock is None:
            raise ValueError(f"the folder {self.path} is not open for writing")
        text = json.dumps(finite(self.content()), indent=2, allow_nan=False, ensure_ascii=False)
        write_atomic(self.path / SEEDS, f"{text}\n".encode())

    def _present(self, seed: Seed) -> Seed:
        """The seed as its run folder describes it; what is no longer going on but says so was cut off."""
        if not self.has_begun(seed):
            return seed
        run = RunFolder.view(self.run(seed))
        return Seed(seed.seed, run.present_status, run.read_info().get("reason"))
