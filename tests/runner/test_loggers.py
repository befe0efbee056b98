"""Searches written down for other programs."""

import csv
import json
import warnings
from pathlib import Path

import pytest

from symdsl import runner
from symdsl.diagnostics import RunError
from symdsl.progress import Callback
from symdsl.runner import loggers
from symdsl.runner.loggers import CsvLogger, TensorBoardLogger, flat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its packages say is not about us
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils import tensorboard as _  # noqa: F401


class Interrupting(Callback):
    """Presses Ctrl-C after an epoch."""

    def __init__(self, after):
        self.after = after

    def on_epoch(self, record):
        if record["epoch"] == self.after:
            raise KeyboardInterrupt


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def rows(folder):
    with (folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def events(folder):
    found = EventAccumulator(str(folder / "tensorboard"), {"images": 0, "scalars": 0})
    found.Reload()
    return found


def scalars(folder, key):
    return [(event.step, pytest.approx(event.value, rel=1e-6)) for event in events(folder).Scalars(key)]


def searched(spec, folder, logger, interrupted):
    """The result of a search with a logger, at one go or interrupted after its third epoch."""
    if not interrupted:
        return runner.search(spec, device="cpu", out=folder, callbacks=[logger()])
    with pytest.raises(KeyboardInterrupt):
        runner.search(spec, device="cpu", out=folder, callbacks=[logger(), Interrupting(3)])
    return runner.search(spec, device="cpu", resume=folder, callbacks=[logger()])


def test_records_are_flattened():
    assert flat({"epoch": 1, "shares": {"l1": {"FC": 1.0}}, "pruned": ["l1.F-FC", "l2.FC"]}) == {
        "epoch": 1,
        "shares/l1/FC": 1.0,
        "pruned": "l1.F-FC l2.FC",
    }


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_table_has_a_row_for_every_epoch(small, tmp_path, interrupted):
    folder = tmp_path / "run"
    searched(small(), folder, CsvLogger, interrupted)
    found, records = rows(folder), metrics(folder)
    assert [int(row["epoch"]) for row in found] == [1, 2, 3, 4]
    for row, record in zip(found, records, strict=True):
        assert float(row["loss"]) == record["loss"]
        assert row["shares/l1/CONV"] == ("" if "shares" not in record else str(record["shares"]["l1"]["CONV"]))
    assert float(found[3]["precisions/l1.CONV.w"]) == records[3]["precisions"]["l1.CONV.w"]


def test_a_table_follows_a_search_that_goes_back(tmp_path, monkeypatch):
    class Run:
        path = tmp_path
        records = ()

        def read_metrics(self):
            return list(self.records)

    run, logger = Run(), CsvLogger()
    monkeypatch.setattr(loggers.RunFolder, "view", lambda folder: run)
    logger.on_start(tmp_path, 3, 0)
    for epoch, loss in ((1, 4.0), (2, 3.0), (2, 2.5), (3, 1.0)):
        record = {"epoch": epoch, "loss": loss}
        run.records = (*(one for one in run.records if one["epoch"] < epoch), record)
        logger.on_epoch(record)
    assert [(row["epoch"], row["loss"]) for row in rows(tmp_path)] == [("1", "4.0"), ("2", "2.5"), ("3", "1.0")]


@pytest.mark.parametrize("interrupted", [False, True])
def test_tensorboard_gets_numbers_shares_and_the_picture(small, tmp_path, interrupted):
    folder = tmp_path / "run"
    result = searched(small(), folder, TensorBoardLogger, interrupted)
    records = metrics(folder)
    assert scalars(folder, "loss") == [(record["epoch"], record["loss"]) for record in records]
    asked = [record for record in records if "shares" in record]
    assert scalars(folder, "shares/l1/CONV") == [(one["epoch"], one["shares"]["l1"]["CONV"]) for one in asked]
    precisions = [(one["epoch"], one["precisions"]["l1.CONV.w"]) for one in asked]
    assert scalars(folder, "precisions/l1.CONV.w") == precisions
    assert scalars(folder, "test/nll") == [(4, result["test"]["nll"])]
    (picture,) = events(folder).Images("architecture")
    assert picture.encoded_image_string.startswith(b"\x89PNG")
    assert picture.step == 4


def test_a_search_that_goes_back_replaces_its_events(tmp_path):
    logger = TensorBoardLogger()
    logger.on_start(tmp_path, 3, 0)
    for epoch, loss in ((1, 4.0), (2, 3.0), (2, 2.5), (3, 1.0)):
        logger.on_epoch({"epoch": epoch, "loss": loss})
    logger.on_fail(RunError("no room"))
    assert scalars(tmp_path, "loss") == [(1, 4.0), (2, 2.5), (3, 1.0)]


def test_an_event_file_that_cannot_be_opened_is_not_closed(tmp_path):
    (tmp_path / "tensorboard").touch()
    logger = TensorBoardLogger()
    with pytest.raises(FileExistsError) as caught:
        logger.on_start(tmp_path, 3, 0)
    logger.on_fail(caught.value)


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(loggers, "find_spec", lambda name: None)
    with pytest.raises(RunError, match=r"needs `tensorboard`: run `pip install 'symdsl\[tensorboard\]'`"):
        TensorBoardLogger()


@pytest.mark.parametrize("logger", [CsvLogger, TensorBoardLogger])
def test_a_file_that_cannot_be_written_is_named(logger, tmp_path, monkeypatch):
    class Run:
        path = tmp_path

        def read_metrics(self):
            return [{"epoch": 1, "loss": 1.0}]

    monkeypatch.setattr(loggers.RunFolder, "view", lambda folder: Run())
    one = logger()
    one.on_start(tmp_path, 3, 1)

    def full(*arguments, **named):
        raise OSError(28, "No space left on device")

    target = Path if logger is CsvLogger else type(one._writer)
    monkeypatch.setattr(target, "open" if logger is CsvLogger else "flush", full)
    with pytest.raises(RunError, match=r"(metrics.csv|tensorboard): cannot be written: No space left on device"):
        one.on_epoch({"epoch": 2, "loss": 0.5})
