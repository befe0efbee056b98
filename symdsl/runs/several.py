"""A folder with several run folders in it, and a list of them that is kept while they run."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

from symdsl.diagnostics import RunError
from symdsl.runs.files import json_content, make_folder, read_json, write_atomic
from symdsl.runs.folder import RUN, RunFolder
from symdsl.runs.locks import LockedFolder, held, locked
from symdsl.runs.schema import Status

State = Status | Literal["waiting"]
"""How far a run has come; `waiting` before it has begun."""


class One(Protocol):
    """One run of several, and its status."""

    @property
    def folder(self) -> str:
        """The name of its run folder."""
        ...

    @property
    def status(self) -> State:
        """The status of the run."""
        ...

    @property
    def reason(self) -> str | None:
        """The reason why the run failed, or `None` if it did not."""
        ...

    def noted(self, status: State, reason: str | None) -> Self:
        """Return the same run in another state."""
        ...


Kept = TypeVar("Kept", bound=One)


class SeveralFolder(LockedFolder, ABC, Generic[Kept]):
    """A folder with a run folder for each of several runs.

    Attributes:
        LIST: name of the file that lists them.
        CALLED: a word for the runs.
        runs: the runs, in order, with what was last known of them.
    """

    LIST: ClassVar[str]
    CALLED: ClassVar[str]

    def __init__(self, path: Path, runs: Sequence[Kept], lock: IO[bytes] | None) -> None:
        """Not for callers: use `create`, `resume` or `view`."""
        super().__init__(path, lock)
        self.runs = tuple(runs)

    @classmethod
    @abstractmethod
    def view(cls, path: Path) -> Self:
        """Open a folder for reading.

        Raises:
            RunError: it holds no such list, or a damaged one.
        """

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Return what the list holds: the runs in their present states, and what else is known of them."""

    @classmethod
    def is_one(cls, path: Path) -> bool:
        """Return whether a folder is of this kind."""
        return (path / cls.LIST).is_file()

    @classmethod
    @contextlib.contextmanager
    def reading(cls, path: Path) -> Iterator[dict[str, Any]]:
        """Yield what the list of a folder holds, of which the block makes objects.

        Raises:
            RunError: there is no list, or it is damaged: no JSON, or not what the objects need.
        """
        if not cls.is_one(path):
            reason = f"does not hold {cls.CALLED}, there is no {cls.LIST}" if path.exists() else "no such folder"
            raise RunError(f"{path}: {reason}")
        content = read_json(path / cls.LIST)
        try:
            yield content
        except KeyError as error:
            raise RunError(f"{path / cls.LIST}: damaged, {error} is missing") from error
        except TypeError as error:
            raise RunError(f"{path / cls.LIST}: damaged, {error}") from error

    @classmethod
    def made(cls, path: Path) -> IO[bytes]:
        """Make the folder of new runs and lock it.

        Raises:
            RunError: it cannot be written, is not empty or in use.
        """
        make_folder(path)
        others = held(path)
        if cls.LIST in others:
            raise RunError(f"{path}: holds {cls.CALLED}; `--resume {path}` continues them")
        if others:
            raise RunError(f"{path}: is not empty (it holds {others[0]}); give a folder that is new or empty")
        return locked(path)

    def run(self, one: Kept) -> Path:
        """Return the run folder of one run."""
        return self.path / one.folder

    def has_begun(self, one: Kept) -> bool:
        """Return whether its folder holds a run."""
        return (self.run(one) / RUN).is_file()

    def begun(self) -> list[Path]:
        """Return the run folders that hold a run."""
        return [self.run(one) for one in self.runs if self.has_begun(one)]

    def finished(self) -> list[Kept]:
        """Return the runs that are finished, and of which nothing is lost."""

        def is_whole(one: Kept) -> bool:
            with contextlib.suppress(RunError):  # what it holds is told where the run is to go on
                return self.has_begun(one) and RunFolder.view(self.run(one)).is_whole
            return False

        return list(filter(is_whole, self.runs))

    def take_up(self) -> Self:
        """Record that the runs which are not finished wait to go on, whatever ended them; return the folder.

        Raises:
            RunError: the list cannot be written.
        """
        self.runs = tuple(one if one.status == "finished" else one.noted("waiting", None) for one in self.runs)
        self.write()
        return self

    def note(self, folder: str, status: Status, reason: str | None = None) -> None:
        """Record the status of the run in a folder, and write the list anew."""
        self.runs = tuple(one.noted(status, reason) if one.folder == folder else one for one in self.runs)
        self.write()

    def write(self) -> dict[str, Any]:
        """Write the list, and return what it holds.

        Raises:
            RunError: it cannot be written.
            ValueError: the folder was opened for reading.
        """
        content = self.content()
        write_atomic(self._writable / self.LIST, json_content(content))
        return content

    def results(self) -> Iterator[tuple[Kept, Mapping[str, Any] | None]]:
        """Yield every run in its present state, with the content of `result.json` where it is finished."""
        yield from map(self._read, self.runs)

    def _read(self, one: Kept) -> tuple[Kept, Mapping[str, Any] | None]:
        """A run as its folder describes it, and its result; one whose files cannot be read has failed."""
        if not self.has_begun(one):
            return (one.noted("waiting", None) if one.status == "finished" else one), None
        run = RunFolder.view(self.run(one))
        try:
            status, reason = run.present_status, run.read_info().get("reason")
            if status == "interrupted" and one.status == "failed":
                return one, None  # its process died without a word, and why is known from outside
            return one.noted(status, reason), run.read_result() if status == "finished" else None
        except RunError as error:
            return one.noted("failed", str(error)), None
