"""The content of a page about one run."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from symdsl.render.cells import number_text, percent_text
from symdsl.render.runs import time_text
from symdsl.render.table import RESULT_COLUMNS, result_sections, unlearned_words
from symdsl.report import charts
from symdsl.report.charts import Chart
from symdsl.report.page import Page, Section, Table
from symdsl.report.reading import EVIDENCE, Run
from symdsl.report.scores import confusion, most_confused, reliability
from symdsl.runs.metrics import epochs_in_words
from symdsl.runs.predictions import MOST_TARGETS, Predictions
from symdsl.runs.summary import value_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TILES = (
    ("test accuracy", ("test", "accuracy"), percent_text),
    ("test RMSE", ("test", "rmse"), number_text),
    ("test R²", ("test", "r2"), number_text),
    ("test NLL, nats", ("test", "nll"), number_text),
    ("test ECE", ("test", "ece"), number_text),
    ("-log evidence per example, nats", (EVIDENCE,), number_text),
    ("parameters", ("parameters",), "{:,}".format),
    ("wall time", ("wall_s", "total"), time_text),
)
"""The figures at the head of a page: a name, where the result has it, and how it is written."""


def single(run: Run) -> Page:
    """Return the content of a page about one run, finished or not."""
    from symdsl.highlight import classes_html

    figures = ((name, value_at(run.result or {}, path), text) for name, path, text in TILES)
    tiles = [(name, text(value)) for name, value, text in figures if value is not None]
    sections = [
        Section("What was learned", picture=picture_uri(run), spec=classes_html(run.spec)),
        Section("Training", "By epoch, on the training data.", list(_training(run))),
        Section(
            "Which candidate each layer wants",
            "Relative effective number of parameters of every candidate, by evidence step. Steps may take fewer "
            "examples than the result, which the table of layers has.",
            list(charts.shares(run)),
        ),
        Section(
            "Prior precisions",
            "By evidence step; a large one keeps its weights at zero.",
            list(charts.precisions(run)),
        ),
        Section("Layers", tables=_layer_tables(run)),
        *(_CONTENTS[run.predictions.task](run.predictions, run.data.classes) if run.predictions else ()),
        Section("Time", charts=[charts.time_chart([("this run", run.result["wall_s"])])] if run.result else []),
    ]
    return Page(run.name, _facts(run), tiles, [one for one in sections if one.filled])


def _facts(run: Run) -> list[str]:
    info, result = run.info, run.result
    objective = str((result or info).get("objective", ""))
    return [
        *([objective] if objective else []),
        f"seed {info['seed']}",
        f"{run.epoch} epochs" if result else f"{info['status']} after {run.epoch} epochs{run.reason}",
        *(unlearned_words(result) if result else []),
        *([f"the metrics of {epochs_in_words(run.lost)} are lost"] if run.lost else []),
        str(info["device"]),
        f"started {info['started']}",
        str(run.folder),
    ]


def _training(run: Run) -> Iterator[Chart]:
    for title, axis, wanted in charts.TRAINING:
        found = [(name, *charts.series(run.records, key)) for key, name in wanted]
        lines = [(name, charts.SERIES[number], "solid", x, y) for number, (name, x, y) in enumerate(found) if x]
        if lines:
            yield charts.curves(title, axis, lines)


def _layer_tables(run: Run) -> list[Table]:
    if run.result is None:
        return []
    pairs = {layer.name: charts.candidate_pairs(layer) for layer in run.layers}
    rows, swatches = [], []
    for section in result_sections(run.result):
        for number, cells in enumerate(section):
            layer, candidate, *others = cells
            chosen = others[-1] == "chosen"
            rows.append([("" if number else layer, False), (candidate, chosen), *((cell, False) for cell in others)])
            swatches.append({1: pairs[layer][candidate]})
    return [Table(RESULT_COLUMNS, rows, swatches)]


def picture_uri(run: Run) -> str:
    """Return the picture of a run as a data URI, or nothing if there is none."""
    return f"data:image/svg+xml;base64,{_base64(run.picture.encode())}" if run.picture else ""


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _of_classes(found: Predictions, outputs: int) -> list[Section]:
    import numpy as np

    assert found.confidence is not None, "classes are predicted with confidence"
    classes = max(outputs, 1 + int(max(found.target.max(initial=0), found.predicted.max(initial=0))))
    names = found.names or tuple(map(str, range(classes)))
    counts = confusion(found.target.astype(np.int64), found.predicted.astype(np.int64), classes)
    matrix = [charts.confusion_chart(counts, names)] if classes <= charts.MOST_CELLS else []
    confident = charts.reliability_chart(reliability(found.target, found.predicted, found.confidence))
    rows = [
        [(names[one], False), (names[other], False), (f"{count:,}", False)]
        for one, other, count in most_confused(counts, most=20)
    ]
    pairs = [Table((("is", "left"), ("taken for", "left"), ("examples", "right")), rows)] if rows else []
    captions = [
        (
            f"is {names[found.target[one]]}, taken for {names[found.predicted[one]]}",
            f"{found.confidence[one]:.1%} sure, example {one}",
        )
        for one in found.worst.tolist()
    ]
    return [
        Section("Predictions", "On the test data.", [*matrix, confident], [] if matrix else pairs),
        Section("The most confident mistakes", "On the test data.", pictures=_pictures(found, captions)),
    ]


def _of_targets(found: Predictions, outputs: int) -> list[Section]:
    def numbers(values: NDArray[Any]) -> str:
        return ", ".join(map(number_text, values.tolist()))

    captions = [
        (f"is {numbers(found.target[one])}", f"predicted {numbers(found.predicted[one])}, example {one}")
        for one in found.worst.tolist()
    ]
    kept = found.target.shape[1]
    said = f"On the test data{f', of the first {kept} targets' if kept == MOST_TARGETS != outputs else ''}."
    return [
        Section("Predictions", said, [charts.targets_chart(found.target, found.predicted)]),
        Section("The largest errors", said, pictures=_pictures(found, captions)),
    ]


_CONTENTS = {"classification": _of_classes, "regression": _of_targets}


def _pictures(found: Predictions, captions: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
    return [(_png(image), *caption) for image, caption in zip(found.images, captions, strict=True)]


def _png(image: NDArray[np.uint8]) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image).save(file, "PNG")
    return f"data:image/png;base64,{_base64(file.getvalue())}"
