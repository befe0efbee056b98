"""Predictions as a table for the terminal, and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symdsl.render.cells import Cells, add_section, new_table, number_text, percent_text

if TYPE_CHECKING:
    from rich.table import Table

_RUNNERS_UP = 2


def predictions_table(content: Mapping[str, Any]) -> Table:
    """Return a table of predictions: the three likeliest classes of each input, or its targets with deviations.

    Args:
        content: `classes` or `targets`, their names, and `predictions`: of each its `input`, and either its `class` and
            `probabilities`, or `mean` and `std`, in the order of the names.
    """
    of_classes = "classes" in content
    names = content["classes" if of_classes else "targets"]
    titles = (("class", "left"), ("probability", "right"), ("next", "left")) if of_classes else ()
    columns = titles or tuple((f"target {name}", "right") for name in names)
    table = new_table((("input", "left"), *columns))
    for one in content["predictions"]:
        cells = _of_classes(one, names) if of_classes else _of_targets(one)
        add_section(table, [(one["input"], *cells)])
    return table


def predictions_csv(content: Mapping[str, Any]) -> bytes:
    """Return all predictions as CSV, a line for each input below a header."""
    predictions = content["predictions"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if "classes" in content:
        writer.writerow(("input", "class", *(f"p({name})" for name in content["classes"])))
        writer.writerows((one["input"], one["class"], *one["probabilities"]) for one in predictions)
    else:
        writer.writerow(("input", *(f"{what}({name})" for name in content["targets"] for what in ("mean", "std"))))
        for one in predictions:
            pairs = zip(one["mean"], one["std"], strict=True)
            writer.writerow((one["input"], *(value for pair in pairs for value in pair)))
    return text.getvalue().encode()


def _of_classes(one: Mapping[str, Any], names: Sequence[str]) -> Cells:
    ranked = sorted(zip(one["probabilities"], names, strict=True), key=lambda pair: -pair[0])
    following = ", ".join(f"{name} {percent_text(share)}" for share, name in ranked[1 : 1 + _RUNNERS_UP])
    return one["class"], percent_text(ranked[0][0]), following


def _of_targets(one: Mapping[str, Any]) -> Cells:
    """Every mean, to the last digit that its standard deviation has, and that."""
    pairs = zip(one["mean"], one["std"], strict=True)
    return tuple(f"{mean:.{_digits(mean, std)}g} ± {number_text(std)}" for mean, std in pairs)


def _digits(mean: float, std: float) -> int:
    larger = math.log10(abs(mean)) - math.log10(std) if 0 < std < abs(mean) < math.inf else 0.0
    return min(4 + math.floor(larger), 17)
