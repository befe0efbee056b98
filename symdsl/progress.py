"""What a search says while it runs: a bar on a terminal, one plain line per epoch elsewhere, nothing when quiet."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

Metrics = Mapping[str, Any]

_EVIDENCE = "neg_log_evidence_per_example"
_COLUMNS = (("loss", "loss"), ("accuracy", "accuracy"), (_EVIDENCE, "-log evidence/example"))


class Silent:
    """Follows a search without a word, remembering what its caller needs afterwards.

    Attributes:
        folder: where the run is kept, once it has started.
    """

    def __init__(self) -> None:
        """Nothing has started yet."""
        self.folder: Path | None = None

    def __enter__(self) -> Self:
        """Open the display, if there is one."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the display, whatever ended the search."""

    def started(self, folder: Path, epochs: int, resumed_from: int) -> None:
        """The search begins, or goes on after `resumed_from` epochs of `epochs`."""
        self.folder = folder

    def epoch(self, metrics: Metrics) -> None:
        """An epoch is over; its metrics are a line of `metrics.jsonl`."""

    def note(self, text: str) -> None:
        """Something worth a line happened."""

    def finished(self, result: Metrics) -> None:
        """The search is over, with the content of `result.json`."""


class Lines(Silent):
    """One plain line per epoch, for logs."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        super().__init__()
        self._stream = stream
        self._epochs = 0

    def started(self, folder: Path, epochs: int, resumed_from: int) -> None:
        """Name the run folder, and the epoch a resumed run goes on from."""
        super().started(folder, epochs, resumed_from)
        self._epochs = epochs
        self.note(f"run folder {folder}" + (f", resumed after epoch {resumed_from}" if resumed_from else ""))

    def epoch(self, metrics: Metrics) -> None:
        """Print the epoch's figures."""
        self.note(f"epoch {metrics['epoch']}/{self._epochs}  {figures(metrics)}  {metrics['wall_s']:.1f} s")

    def note(self, text: str) -> None:
        """Print the text; a search outlives whoever read its log."""
        try:
            print(text, file=self._stream, flush=True)
        except BrokenPipeError:
            discard_unwritable(self._stream)


class Bar(Silent):
    """A progress bar with phase, epoch, figures and time left, for terminals."""

    def __init__(self, stream: TextIO) -> None:
        """Draw on the terminal `stream`."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        super().__init__()
        self._latest: dict[str, Any] = {}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=Console(file=stream),
            speed_estimate_period=600,  # long, since only every few epochs have an evidence step
        )
        self._task = self._progress.add_task("starting", total=None, figures="")

    def __enter__(self) -> Self:
        """Show the bar."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last state of the bar on the screen."""
        self._progress.stop()

    def started(self, folder: Path, epochs: int, resumed_from: int) -> None:
        """Set the bar to the epochs that are done already."""
        super().started(folder, epochs, resumed_from)
        self.note(f"run folder {folder}")
        self._progress.update(self._task, total=epochs, completed=resumed_from, description="training")

    def epoch(self, metrics: Metrics) -> None:
        """Advance the bar; from the first evidence on, the phase is the search for structure."""
        self._latest |= {name: value for name, value in metrics.items() if value is not None}
        phase = "learning structure" if _EVIDENCE in self._latest else "training"
        self._progress.update(self._task, completed=metrics["epoch"], description=phase, figures=figures(self._latest))

    def note(self, text: str) -> None:
        """Print the text above the bar."""
        self._progress.console.print(text, markup=False, highlight=False)


def figures(metrics: Metrics) -> str:
    """The figures of an epoch that are there, with their names."""
    present = ((title, metrics.get(key)) for key, title in _COLUMNS)
    return "  ".join(f"{title} {value:.4f}" for title, value in present if value is not None)


def observer(quiet: bool, stream: TextIO | None = None) -> Silent:
    """The observer that fits where standard error, or `stream`, leads."""
    stream = sys.stderr if stream is None else stream
    if quiet:
        return Silent()
    return Bar(stream) if stream.isatty() else Lines(stream)


def discard_unwritable(stream: TextIO) -> None:
    """Leads a stream nowhere if what it holds cannot be written, which would raise again when the program ends."""
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
