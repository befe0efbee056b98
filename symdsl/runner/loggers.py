"""Callbacks that write a search down for other programs: a table, and TensorBoard's event files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symdsl.diagnostics import RunError
from symdsl.progress import Callback, Metrics
from symdsl.runs import RunFolder, write_atomic
from symdsl.runs.files import names_the_file

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

TABLE, EVENTS = "metrics.csv", "tensorboard"


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without nesting: `{"shares": {"l1": {"FC": 1.0}}}` becomes `{"shares/l1/FC": 1.0}`.

    Lists become words separated by blanks.
    """
    return dict(_flat(record, ""))


def _flat(record: Mapping[str, Any], lead: str) -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{lead}{key}/")
        else:
            yield f"{lead}{key}", " ".join(map(str, value)) if isinstance(value, list | tuple) else value


class CsvLogger(Callback):
    """A callback that keeps `metrics.csv`: a row per epoch, and columns for shares, precisions and all else.

    The file is written anew when an evidence step brings columns, and when a run goes on from an earlier epoch.
    """

    def __init__(self) -> None:
        """Start without a file; nothing is written yet."""
        self._last = 0

    def on_start(self, folder: Path, epochs: int, resumed_from: int) -> None:
        """Write the epochs that are done already."""
        self._run = RunFolder.view(folder)
        self._write()

    def on_epoch(self, record: Metrics) -> None:
        """Add the row of an epoch."""
        row = flat(record)
        if row.keys() <= set(self._columns) and record["epoch"] == self._last + 1:
            table = self._run.path / TABLE
            with names_the_file(table), table.open("a", encoding="utf-8", newline="") as file:
                csv.DictWriter(file, self._columns).writerow(row)
            self._last = record["epoch"]
        else:
            self._write()

    def _write(self) -> None:
        rows = [flat(record) for record in self._run.read_metrics()]
        self._columns = list(dict.fromkeys(key for row in rows for key in row))
        self._last = rows[-1]["epoch"] if rows else 0
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self._columns)
        writer.writeheader()
        writer.writerows(rows)
        write_atomic(self._run.path / TABLE, text.getvalue().encode())


class TensorBoardLogger(Callback):
    """A callback that writes event files to `tensorboard`: every number per epoch, and the picture at the end."""

    def __init__(self) -> None:
        """Start without a file; nothing is written yet.

        Raises:
            RunError: the package `tensorboard` is not installed.
        """
        if find_spec("tensorboard") is None:
            raise RunError("`--log tensorboard` needs `tensorboard`: run `pip install 'symdsl[tensorboard]'`")
        self._last = 0
        self._writer: SummaryWriter | None = None

    def on_start(self, folder: Path, epochs: int, resumed_from: int) -> None:
        """Open an event file that replaces what others say of later epochs."""
        self._folder = folder
        self._open(resumed_from)

    def on_epoch(self, record: Metrics) -> None:
        """Write the numbers of an epoch."""
        epoch, writer = record["epoch"], self._writer
        if writer is None or epoch <= self._last:  # the search went back to its checkpoint
            writer = self._open(epoch - 1)
        with names_the_file(self._folder / EVENTS):
            for key, value in flat(record).items():
                if key != "epoch" and isinstance(value, int | float):
                    writer.add_scalar(key, value, epoch)
            writer.flush()
        self._last = epoch

    def on_finish(self, result: Metrics) -> None:
        """Write the test metrics and the picture of what was learned."""
        import numpy as np
        from PIL import Image

        with names_the_file(self._folder / EVENTS):
            writer = self._writer or self._open(self._last)
            for key, value in flat({"test": result["test"]}).items():
                if value is not None:
                    writer.add_scalar(key, value, result["epochs"])
            if (self._folder / "architecture.png").exists():  # not where there is no Graphviz
                with Image.open(self._folder / "architecture.png") as picture:
                    pixels = np.asarray(picture.convert("RGB"))
                writer.add_image("architecture", pixels, result["epochs"], dataformats="HWC")
            self._close()

    def on_fail(self, error: BaseException) -> None:
        """Close the event file, if it could be opened."""
        self._close()

    def _open(self, last: int) -> SummaryWriter:
        from torch.utils.tensorboard import SummaryWriter

        self._close()
        self._last = last
        self._writer = SummaryWriter(str(self._folder / EVENTS), purge_step=last + 1)
        return self._writer

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


LOGGERS: dict[str, Callable[[], Callback]] = {"csv": CsvLogger, "tensorboard": TensorBoardLogger}
"""The loggers that `--log` can name."""
