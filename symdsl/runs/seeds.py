"""The folder of the same search with several seeds: a run folder for each, and what they have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

import attrs

from symdsl.diagnostics import RunError
from symdsl.runs.files import SCHEMA, checksum, read_if_there, write_atomic
from symdsl.runs.folder import SEEDS, SPEC, resumption
from symdsl.runs.locks import locked
from symdsl.runs.schema import command_of
from symdsl.runs.several import SeveralFolder, State
from symdsl.runs.summary import summary

TABLE = "seeds.txt"


@attrs.frozen
class Seed:
    """One seed and the status of its run.

    Attributes:
        seed: its number.
        status: how far the run has come; `waiting` before it has begun.
        reason: why it failed, where it did.
    """

    seed: int
    status: State = "waiting"
    reason: str | None = None

    @property
    def folder(self) -> str:
        """The name of its run folder."""
        return f"seed-{self.seed}"

    def noted(self, status: State, reason: str | None) -> Seed:
        """Return the same seed in another state."""
        return attrs.evolve(self, status=status, reason=reason)


class SeedsFolder(SeveralFolder[Seed]):
    """A folder with one run folder for each seed.

    Opened by `create`, `resume` or `view`.
    """

    LIST, CALLED = SEEDS, "runs of several seeds"

    def __init__(self, path: Path, head: Mapping[str, Any], seeds: Sequence[Seed], lock: IO[bytes] | None) -> None:
        """Not for callers: use `create`, `resume` or `view`."""
        super().__init__(path, seeds, lock)
        self._head = dict(head)

    @classmethod
    def create(
        cls, path: Path, spec: str, text: str, objective: str, seeds: Sequence[int], given: str | None = None
    ) -> Self:
        """Make and lock the folder of a new search with several seeds.

        Args:
            path: the folder, new or empty.
            spec: name of the spec.
            text: the spec as run, but for the seed.
            objective: `laplace`, `elbo` or `map`.
            seeds: the numbers.
            given: the fingerprint of data that were handed over.

        Raises:
            RunError: it cannot be written, is not empty or in use.
        """
        lock = cls.made(path)
        head = {"spec": spec, "objective": objective, "sha256": {SPEC: checksum(text.encode())}}
        head |= {} if given is None else {"given": given}
        folder = cls(path, head, [Seed(seed) for seed in seeds], lock)
        write_atomic(path / SPEC, text.encode())
        folder.write()
        return folder

    @classmethod
    def resume(cls, path: Path, text: str, objective: str, seeds: Sequence[int], given: str | None = None) -> Self:
        """Lock the folder of a search that continues, possibly with more seeds.

        Raises:
            RunError: it is no such folder, in use, or of another spec or objective, or other data were handed over.
        """
        folder = cls.view(path)
        if not folder._is_spec(text.encode()) and folder.read_spec() != text:
            raise RunError(
                f"{path}: was started from another spec; `--resume {path}` without one continues with its own"
            )
        if folder._head["objective"] != objective:
            command = command_of(folder._head["objective"])
            raise RunError(f"{path}: was started with `symdsl {command}`; resume it with that")
        if folder._head.get("given", given) != given:
            raise RunError(f"{path}: was started with other data; hand over the same")
        known = {one.seed for one in folder.runs}
        more = [Seed(seed) for seed in seeds if seed not in known]
        lock = locked(path)
        if read_if_there(path / SPEC) != text.encode():
            write_atomic(path / SPEC, text.encode())  # its copy was lost or damaged
        return cls(path, folder._head, [*folder.runs, *more], lock).take_up()

    @classmethod
    def view(cls, path: Path) -> Self:
        """Open a folder for reading.

        Raises:
            RunError: it holds no seeds, or its `seeds.json` is damaged.
        """
        with cls.reading(path) as content:
            head = {key: content[key] for key in ("spec", "objective")} | {"sha256": content.get("sha256", {})}
            head |= {"given": content["given"]} if "given" in content else {}
            seeds = [Seed(one["seed"], one["status"], one["reason"]) for one in content["seeds"]]
        return cls(path, head, seeds, lock=None)

    @property
    def spec(self) -> str:
        """The name of the spec."""
        return str(self._head["spec"])

    def read_spec(self) -> str:
        """Return the text of the spec that all seeds share.

        Raises:
            RunError: it is missing, or not as it was when the search began.
        """
        content = read_if_there(self.path / SPEC)
        if content is None or not self._is_spec(content):
            reason = "missing" if content is None else f"damaged or edited, its checksum is not that in {SEEDS}"
            command = resumption(self.path, self._head["objective"], "SPEC")
            repair = f"`{command}`, with the spec and options it was started with, writes it again"
            raise RunError(f"{self.path / SPEC}: {reason}; {repair}")
        return content.decode(errors="replace")

    def _is_spec(self, content: bytes) -> bool:
        """Whether this is the spec that the search began with."""
        sealed: str | None = self._head["sha256"].get(SPEC)
        return sealed == checksum(content)

    def content(self) -> dict[str, Any]:
        """Return the content of `seeds.json`: the seeds with their status, and a summary of the finished ones."""
        found = list(self.results())
        listed = [
            {"seed": one.seed, "folder": one.folder, "status": one.status, "reason": one.reason} for one, _ in found
        ]
        results = [result for _, result in found if result is not None]
        return {"schema": SCHEMA, **self._head, "seeds": listed, **summary(results)}
