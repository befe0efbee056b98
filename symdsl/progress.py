"""Callbacks that follow a search while it runs, and the displays of the command line among them.

A display is a bar on a terminal, one plain line per epoch elsewhere, and nothing when quiet.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

Metrics = Mapping[str, Any]

_EVIDENCE = "neg_log_evidence_per_example"
PAUSE = 5.0
"""Seconds between plain lines about the loading of data."""

_COLUMNS = (("loss", "loss"), ("accuracy", "accuracy"), ("r2", "R²"), (_EVIDENCE, "-log evidence/example"))
_ON_BAR = (_COLUMNS[0], _COLUMNS[-1], *_COLUMNS[1:-1])
"""The same columns, what a search optimises first: a narrow terminal cuts the rest."""


class Callback:
    """The methods that a search calls on its callbacks; here they do nothing.

    `search(..., callbacks=[...])` takes any object that has some of these methods; it need not derive from this class.
    An exception in a callback ends the search, which can then be resumed, unless it has finished.
    """

    def on_loading(self, what: str, done: int, total: int) -> None:
        """Called while data are read or transformed: `done` of `total` examples, 0 if the total is unknown."""

    def on_start(self, folder: Path, epochs: int, resumed_from: int) -> None:
        """Called when the search starts in its run folder, or continues after `resumed_from` of `epochs` epochs."""

    def on_epoch(self, record: Metrics) -> None:
        """Called after every epoch; `record` is the line just written to `metrics.jsonl`."""

    def on_note(self, text: str) -> None:
        """Called with a line that the search prints, such as that a path was pruned."""

    def on_finish(self, result: Metrics) -> None:
        """Called when the search is over; `result` is the content of `result.json`, and the run folder is complete."""

    def on_fail(self, error: BaseException) -> None:
        """Called when the search failed or was interrupted after it had started."""


_EVENTS = ("on_loading", "on_start", "on_epoch", "on_note", "on_finish", "on_fail")


class Callbacks(Callback):
    """Calls several callbacks in order, skipping methods that one lacks."""

    def __init__(self, callbacks: Sequence[object]) -> None:
        """Hand on to `callbacks`.

        Raises:
            TypeError: one of them has none of the methods of `Callback`, or is a class, or they are no list.
        """
        if not isinstance(callbacks, Sequence):
            raise TypeError(f"`callbacks` (={callbacks!r}) must be a list")
        for number, one in enumerate(callbacks):
            if isinstance(one, type) or not any(callable(getattr(one, event, None)) for event in _EVENTS):
                raise TypeError(f"`callbacks[{number}]` (={one!r}) must have at least one of {', '.join(_EVENTS)}")
        self._callbacks = tuple(callbacks)
        self._started = False

    def on_loading(self, what: str, done: int, total: int) -> None:
        """Pass on the progress of loading."""
        self._tell("on_loading", what, done, total)

    def on_start(self, folder: Path, epochs: int, resumed_from: int) -> None:
        """Pass on the start of the search."""
        self._started = True
        self._tell("on_start", folder, epochs, resumed_from)

    def on_epoch(self, record: Metrics) -> None:
        """Pass on an epoch."""
        self._tell("on_epoch", record)

    def on_note(self, text: str) -> None:
        """Pass on a line."""
        self._tell("on_note", text)

    def on_finish(self, result: Metrics) -> None:
        """Pass on the result: from now on the search cannot fail any more."""
        self._started = False
        self._tell("on_finish", result)

    def on_fail(self, error: BaseException) -> None:
        """Pass on a failure."""
        self._tell("on_fail", error)

    @contextlib.contextmanager
    def hearing_failures(self) -> Iterator[None]:
        """Call `on_fail` with any exception in the block while the search runs, and raise it again.

        A callback that fails in `on_fail` keeps no other from hearing of it; the exception carries a note of that.
        """
        try:
            yield
        except BaseException as error:
            for one in self._callbacks if self._started else ():
                try:
                    Callbacks([one]).on_fail(error)
                except Exception as another:
                    error.add_note(f"`on_fail` of {one!r} failed, too: {another!r}")
            raise

    def _tell(self, event: str, *content: object) -> None:
        for one in self._callbacks:
            heard = getattr(one, event, None)
            if heard is not None:
                heard(*(copy.deepcopy(one) if isinstance(one, dict) else one for one in content))


class Silent(Callback):
    """An observer of one search that prints nothing, and remembers the run folder.

    Attributes:
        folder: where the run is kept, once it has started.
    """

    def __init__(self) -> None:
        """Nothing has started yet."""
        self.folder: Path | None = None

    def on_start(self, folder: Path, epochs: int, resumed_from: int) -> None:
        """Remember the run folder."""
        self.folder = folder


class Lines(Silent):
    """An observer that prints one plain line per epoch, for logs."""

    def __init__(self, stream: TextIO, title: str = "") -> None:
        """Write to `stream`, each line after the title, if there is one."""
        super().__init__()
        self._stream = stream
        self._lead = f"{title}: " if title else ""
        self._epochs = 0
        self._spoke_at = time.monotonic()

    def on_loading(self, what: str, done: int, total: int) -> None:
        """Print the progress of loading every few seconds."""
        if time.monotonic() - self._spoke_at >= PAUSE:
            self._spoke_at = time.monotonic()
            self.on_note(f"{what}: {done:,} of {total:,}" if total else what)

    def on_start(self, folder: Path, epochs: int, resumed_from: int) -> None:
        """Print the run folder, and the epoch that a resumed run continues from."""
        super().on_start(folder, epochs, resumed_from)
        self._epochs = epochs
        self.on_note(f"run folder {folder}" + (f", resumed after epoch {resumed_from}" if resumed_from else ""))

    def on_epoch(self, record: Metrics) -> None:
        """Print the metrics of the epoch."""
        self.on_note(f"epoch {record['epoch']}/{self._epochs}  {figures(record)}  {record['wall_s']:.1f} s")

    def on_note(self, text: str) -> None:
        """Print the text; a search outlives whoever read its log."""
        try:
            print(f"{self._lead}{text}", file=self._stream, flush=True)
        except OSError:
            discard_unwritable(self._stream)


class Bar(Silent):
    """A progress bar with phase, epoch, metrics and time left."""

    def __init__(self, display: Progress, title: str = "") -> None:
        """Add a bar to a display, with the title, if there is one, before the phase."""
        super().__init__()
        self._latest: dict[str, Any] = {}
        self._lead = f"{title}: " if title else ""
        self._progress = display
        self._task = self._progress.add_task(f"{self._lead}starting", total=None, figures="")

    def on_loading(self, what: str, done: int, total: int) -> None:
        """Advance the bar over the examples."""
        self._progress.update(self._task, total=total or None, completed=done, description=f"{self._lead}{what}")

    def on_start(self, folder: Path, epochs: int, resumed_from: int) -> None:
        """Set the bar to the epochs that are already done."""
        super().on_start(folder, epochs, resumed_from)
        self.on_note(f"run folder {folder}")
        self._progress.reset(self._task, total=epochs, completed=resumed_from, description=f"{self._lead}training")

    def on_epoch(self, record: Metrics) -> None:
        """Advance the bar; from the first evidence step on, the phase is the search for structure."""
        self._latest |= {name: value for name, value in record.items() if value is not None}
        phase = self._lead + ("learning structure" if _EVIDENCE in self._latest else "training")
        self._progress.update(
            self._task, completed=record["epoch"], description=phase, figures=figures(self._latest, _ON_BAR)
        )

    def on_note(self, text: str) -> None:
        """Print the text above the bar."""
        self._progress.console.print(text, markup=False, highlight=False)


class Observers:
    """The base of displays of one or several searches; it prints nothing.

    Attributes:
        folder: where the runs are kept, once they have started.
    """

    def __init__(self) -> None:
        """Nothing has started yet."""
        self.folder: Path | None = None

    def __enter__(self) -> Self:
        """Open the display, if there is one."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the display, whatever ended the searches."""

    def on_start(self, folder: Path) -> None:
        """Called when the searches start, or continue."""
        self.folder = folder

    def of(self, title: str = "") -> Silent:
        """Return the observer of one search; the title tells it from others."""
        return Silent()

    def on_note(self, text: str) -> None:
        """Called with a line that the searches print."""


class LinesOfAll(Observers):
    """Prints plain lines."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        super().__init__()
        self._stream = stream

    def of(self, title: str = "") -> Silent:
        """Return an observer whose lines begin with the title, if there is one."""
        return Lines(self._stream, title)

    def on_note(self, text: str) -> None:
        """Print a line."""
        Lines(self._stream).on_note(text)


class BarsOfAll(Observers):
    """Shows a progress bar for each search on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        """Draw on the terminal `stream`."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn
        from rich.table import Column
        from rich.text import Text

        class Figures(TextColumn):
            """Text that is cut where the terminal is too narrow for all columns: the only one that may become less."""

            def render(self, task: Task) -> Text:
                text = super().render(task)
                text.no_wrap, text.overflow = True, "ellipsis"
                return text

        super().__init__()
        console = Console(file=stream)
        self._display = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=max(6, min(20, (console.width - 52) // 4)), table_column=Column(no_wrap=True)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            Figures("{task.fields[figures]}", markup=False, table_column=Column()),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            console=console,
            speed_estimate_period=600,  # long, since only every few epochs have an evidence step
        )

    def __enter__(self) -> Self:
        """Show the display."""
        self._display.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the last state of all bars on the screen."""
        self._display.stop()

    def of(self, title: str = "") -> Silent:
        """Return a progress bar with the title, if there is one."""
        return Bar(self._display, title)

    def on_note(self, text: str) -> None:
        """Print a line above the bars."""
        self._display.console.print(text, markup=False, highlight=False)


def figures(metrics: Metrics, columns: Sequence[tuple[str, str]] = _COLUMNS) -> str:
    """Return the metrics of an epoch with their names, as text, in the order of some columns."""
    present = ((title, metrics.get(key)) for key, title in columns)
    return "  ".join(f"{title} {value:.4f}" for title, value in present if value is not None)


def observers(quiet: bool, stream: TextIO | None = None) -> Observers:
    """Return the display that suits standard error, or `stream`: bars, plain lines, or nothing."""
    stream = sys.stderr if stream is None else stream
    if quiet:
        return Observers()
    return BarsOfAll(stream) if stream.isatty() else LinesOfAll(stream)


def discard_unwritable(stream: TextIO) -> None:
    """Redirect a stream that cannot be written, so that flushing it at exit raises no error."""
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
