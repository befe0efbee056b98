"""Charts as plain values that plotly.js draws, with colours for light and for dark pages."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import attrs

from symdsl.diagnostics import shortened
from symdsl.render.colours import colour, lightness, mixed
from symdsl.report.reading import EVIDENCE, Run
from symdsl.report.scores import BINS, Reliability

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from symdsl.analysis.facts import Layer

Pair = tuple[str, str]
"""A colour on light pages and one on dark pages."""

INK: Pair = ("#1a1a1a", "#e6e6e6")
QUIET: Pair = ("#767676", "#9a9a9a")
SURFACE: Pair = ("#ffffff", "#1d2127")
SERIES: tuple[Pair, ...] = (
    *(("#1f6feb", "#6cb0ff"), ("#c2410c", "#ffa05c"), ("#15803d", "#6fdc8c"), ("#8b3fd1", "#c79bff")),
    *(("#b3261e", "#ff8f86"), ("#0e7490", "#5fd4ea"), ("#8a6d00", "#e3c34a"), ("#9d3370", "#f08cc0")),
)
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_LEGEND_LINE = 20
"""Pixels of a line of a legend."""

MOST_POINTS = 2000
"""Points of a scatter plot, evenly over the examples where there are more."""

MOST_STEPS = 500
"""Evidence steps of a line, evenly over the run where there are more."""

MOST_CELLS = 40
"""Classes up to which a confusion matrix is legible."""

_MOST_APART = 10.0
"""How many times larger one target may vary than another, and share axes with it."""

_LONGEST_LABEL = 24
"""Letters of a class in the labels of an axis; the rest of a longer name is shown where the pointer is."""


@attrs.frozen
class Trace:
    """One series of a chart.

    Attributes:
        content: a trace of plotly.js.
        inks: its colours, by where they stand in it: `{"line.color": (light, dark)}`.
    """

    content: dict[str, Any]
    inks: dict[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Chart:
    """A chart of a page.

    Attributes:
        title: what it shows.
        traces: its series, first things first.
        layout: of plotly.js, without colours.
        height: in pixels.
        note: a sentence below it.
    """

    title: str
    traces: Sequence[Trace]
    layout: dict[str, Any]
    height: int = 300
    note: str = ""

    def content(self) -> dict[str, Any]:
        """Return the chart as values that the script of the page draws."""
        return {
            "data": [one.content for one in self.traces],
            "layout": self.layout | {"height": self.height},
            "inks": [one.inks for one in self.traces],
        }


def on_dark(rgb: str) -> str:
    """Return a colour that is legible on a dark page."""
    return rgb if lightness(rgb) >= 45 else mixed(rgb, "#ffffff", (45 - lightness(rgb)) / 75)


def plain(name: str) -> str:
    """Return a name as plotly.js shows it letter by letter: it reads `<b>` and `&amp;` as HTML."""
    return html.escape(name, quote=False)


def kind_pair(kind: str, place: int = 0) -> Pair:
    """Return the colours, on light and on dark pages, of a layer's candidate of a kind, paler from one to the next."""
    pale = mixed(colour(kind), "#ffffff", min(0.3 * place, 0.75))
    return pale, on_dark(pale)


def candidate_pairs(layer: Layer) -> dict[str, Pair]:
    """Return the colours of a layer's candidates, by name."""
    kinds = [one.kind for one in layer.candidates]
    return {
        one.name: kind_pair(one.kind, kinds[:number].count(one.kind)) for number, one in enumerate(layer.candidates)
    }


def curves(
    title: str,
    axis: str,
    lines: Sequence[tuple[str, Pair, str, Sequence[Any], Sequence[Any]]],
    legend: bool = False,
) -> Chart:
    """Return a chart of lines over epochs.

    Args:
        title: of the chart.
        axis: what the numbers are, with their unit.
        lines: each a name, its colours, its dash, epochs and numbers.
        legend: whether a single line has a legend, too.
    """
    traces = [
        Trace(
            {"type": "scatter", "mode": _mode(x), "name": plain(name), "x": list(x), "y": list(y)}
            | {"line": {"dash": dash}},
            {"line.color": pair},
        )
        for name, pair, dash, x, y in lines
    ]
    layout = _axes("epoch", axis) | {"hovermode": "x unified", "showlegend": legend or len(lines) > 1}
    return Chart(title, traces, layout, height=280 + _LEGEND_LINE * max(len(lines) - 1, 1))


def series(records: Sequence[Mapping[str, Any]], key: str) -> tuple[list[int], list[float]]:
    """Return the epochs and values of all records with a number of this name."""
    found = [(record["epoch"], record[key]) for record in records if record.get(key) is not None]
    return [epoch for epoch, _ in found], [value for _, value in found]


def shares(run: Run) -> Iterator[Chart]:
    """Yield a chart for each layer with a choice: its candidates' shares by evidence step, pruning marked."""
    steps = _thinned([record for record in run.evidence_steps if record.get("shares")])
    for layer in run.layers if steps else ():
        if len(layer.candidates) > 1:
            yield _shares(layer, steps)


def _thinned(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """At most `MOST_STEPS` records at equal distances, the last one included, and those of a pruning."""
    every = math.ceil(len(steps) / MOST_STEPS)
    return [one for left, one in enumerate(reversed(steps)) if left % every == 0 or one.get("pruned")][::-1]


def _shares(layer: Layer, steps: Sequence[Mapping[str, Any]]) -> Chart:
    epochs, pairs = [record["epoch"] for record in steps], candidate_pairs(layer)
    traces = [
        Trace(
            {
                "type": "scatter",
                "mode": _mode(epochs),
                "name": one.name,
                "stackgroup": "shares",
                "x": epochs,
                "y": [record["shares"][layer.name][one.name] for record in steps],
                "line": {"width": 1},
                "hovertemplate": "%{y:.1%}",
            },
            {"fillcolor": pairs[one.name], "line.color": SURFACE, "marker.color": pairs[one.name]},
        )
        for one in layer.candidates
    ]
    layout = _axes("epoch", "share") | {"hovermode": "x unified", "showlegend": True} | _marks(layer, steps)
    layout["yaxis"] |= {"tickformat": ".0%", "range": [0, 1]}
    return Chart(layer.name, traces, layout, height=250)


def _marks(layer: Layer, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    lead = f"{layer.name}."
    by_epoch = {
        record["epoch"]: [path.removeprefix(lead) for path in record.get("pruned", ()) if path.startswith(lead)]
        for record in steps
    }
    pruned = [(epoch, ", ".join(names)) for epoch, names in by_epoch.items() if names]
    line = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "line": {"dash": "dot", "width": 1}}
    text = {"yref": "paper", "y": 1, "yanchor": "bottom", "showarrow": False, "font": {"size": 10}}
    return {
        "shapes": [line | {"x0": epoch, "x1": epoch} for epoch, _ in pruned],
        "annotations": [text | {"x": epoch, "text": f"{name} pruned"} for epoch, name in pruned],
    }


def precisions(run: Run) -> Iterator[Chart]:
    """Yield a chart for each layer: the prior precisions of its tensors by evidence step, on a log axis."""
    steps = _thinned([record for record in run.evidence_steps if record.get("precisions")])
    for layer in run.layers if steps else ():
        yield _precisions(layer, steps)


def _precisions(layer: Layer, steps: Sequence[Mapping[str, Any]]) -> Chart:
    pairs = candidate_pairs(layer)
    named = [
        (f"{one.name} {tensor.name}", f"{layer.name}.{one.name}.{tensor.name}", pairs[one.name], dash)
        for one in layer.candidates
        for tensor, dash in zip(one.tensors, cycle(DASHES), strict=False)
    ]
    traces, epochs = [], [record["epoch"] for record in steps]
    drawn = [*named, ("bias", f"{layer.name}.bias", QUIET, "dot")]
    for name, key, pair, dash in drawn:
        y = [record["precisions"].get(key) for record in steps]
        content = {"type": "scatter", "mode": _mode(epochs), "name": name, "x": epochs, "y": y, "line": {"dash": dash}}
        traces.append(Trace(content | {"hovertemplate": "%{y:.3g}"}, {"line.color": pair}))
    layout = _axes("epoch", "precision") | {"hovermode": "x unified", "showlegend": True}
    own = [{"precisions": {key: record["precisions"].get(key) for _, key, *_ in drawn}} for record in steps]
    layout["yaxis"] |= {"type": "log", "exponentformat": "power"} | _ticks(own)
    return Chart(layer.name, traces, layout, height=280)


def _ticks(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Range and ticks of an axis of at least a decade; up to two have ticks at 1, 2 and 5 times powers of ten."""
    found = [math.log10(value) for record in steps for value in record["precisions"].values() if value]
    low, high = min(found, default=0.0), max(found, default=0.0)
    half = max(0.54 * (high - low), 0.5)
    ticks = {"dtick": _decades(steps)} if half > 1 else {"dtick": "D2", "tickformat": "~g"}
    return {"range": [(low + high) / 2 - half, (low + high) / 2 + half], **ticks}


def _decades(steps: Sequence[Mapping[str, Any]]) -> int:
    """Decades between ticks, so that an axis has about six."""
    found = [value for record in steps for value in record["precisions"].values() if value]
    return max(1, math.ceil(math.log10(max(found) / min(found)) / 6)) if found else 1


def confusion_chart(counts: NDArray[np.int64], names: Sequence[str]) -> Chart:
    """Return a chart of true classes (rows) against predicted ones; the colour is the share of the row."""
    import numpy as np

    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    content = {
        "type": "heatmap",
        "x": [plain(name) for name in names],
        "y": [plain(name) for name in names],
        "z": np.sqrt(share).tolist(),  # so that rare mistakes are seen
        "customdata": counts.tolist(),
        "zmin": 0,
        "zmax": 1,
        "xgap": 1,
        "ygap": 1,
        "showscale": False,
        "hovertemplate": "is %{y}, taken for %{x}: %{customdata}<extra></extra>",
    }
    if len(names) <= 12:
        text = [[str(count) if count else "" for count in row] for row in counts.tolist()]
        content |= {"text": text, "texttemplate": "%{text}"}
    scales = [[[0, low], [1, high]] for low, high in zip(("#f1f3f5", "#262b32"), ("#1f6feb", "#3b82f6"), strict=True)]
    layout = _axes("predicted class", "")  # a title of the rows would be drawn over long names
    layout["xaxis"] |= {"type": "category", "constrain": "domain", "showgrid": False}
    layout["yaxis"] |= {"type": "category", "autorange": "reversed", "scaleanchor": "x", "constrain": "domain"}
    if any(len(name) > _LONGEST_LABEL for name in names):
        brief = [plain(shortened(name, _LONGEST_LABEL, "…")) for name in names]
        for axis in ("xaxis", "yaxis"):
            layout[axis] |= {"tickmode": "array", "tickvals": content["x"], "ticktext": brief}
    return Chart(
        "Confusion matrix",
        [Trace(content, {"colorscale": scales})],
        layout,
        height=400,
        note="Rows are the true classes.",
    )


def reliability_chart(found: Reliability) -> Chart:
    """Return a chart of accuracy against confidence, above the number of examples in each bin."""
    centres = [(number + 0.5) / BINS for number in range(BINS)]
    bar = {"type": "bar", "x": centres, "width": 1 / BINS}
    accuracy = [None if math.isnan(value) else value for value in found.accuracy.tolist()]
    hover = "confidence %{x:.0%}: %{y:.1%} right, of %{customdata}<extra></extra>"
    counts = found.counts.tolist()
    traces = [
        Trace(
            bar | {"name": "accuracy", "y": accuracy, "customdata": counts, "hovertemplate": hover},
            {"marker.color": SERIES[0], "marker.line.color": SURFACE},
        ),
        Trace(
            {"type": "scatter", "mode": "lines", "name": "calibrated", "x": [0, 1], "y": [0, 1], "hoverinfo": "skip"}
            | {"line": {"dash": "dash", "width": 1.5}},
            {"line.color": INK},
        ),
        Trace(
            bar | {"name": "examples", "y": counts, "yaxis": "y2", "hovertemplate": "%{y} examples<extra></extra>"},
            {"marker.color": QUIET},
        ),
    ]
    layout = _axes("confidence", "accuracy") | {"showlegend": False}
    layout["xaxis"] |= {"range": [0, 1], "tickformat": ".0%", "anchor": "y2"}
    layout["yaxis"] |= {"range": [0, 1], "tickformat": ".0%", "domain": [0.34, 1]}
    layout["yaxis2"] = {"title": {"text": "examples"}, "domain": [0, 0.24], "nticks": 3, "automargin": True}
    return Chart("Reliability", traces, layout, height=400, note=f"ECE {found.ece:.4f}, over {BINS} bins.")


def targets_chart(target: NDArray[Any], predicted: NDArray[Any]) -> Chart:
    """Return a chart of predicted against true targets of a regression, a colour for each target.

    Targets of other scales are divided by their standard deviations, each by its own.
    """
    step = -(-len(target) // MOST_POINTS) or 1
    scales = target.std(0)
    varying = scales[scales > 0]
    unit = ""
    if len(varying) > 1 and varying.max() > _MOST_APART * varying.min():
        target, predicted = (one / (scales + (scales == 0)) for one in (target, predicted))
        unit = ", in standard deviations of each target"
    low, high = float(min(target.min(), predicted.min())), float(max(target.max(), predicted.max()))
    traces = [
        Trace(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"target {number}",
                "x": target[::step, number].tolist(),
                "y": predicted[::step, number].tolist(),
                "marker": {"size": 5, "opacity": 0.6},
            },
            {"marker.color": SERIES[number % len(SERIES)]},
        )
        for number in range(target.shape[1])
    ]
    line = {"type": "scatter", "mode": "lines", "name": "exact", "x": [low, high], "y": [low, high]}
    traces.append(Trace(line | {"line": {"dash": "dash", "width": 1}, "hoverinfo": "skip"}, {"line.color": INK}))
    return Chart(
        "Predicted and true targets",
        traces,
        _axes(f"true{unit}", f"predicted{unit}") | {"showlegend": True},
        height=400,
    )


def time_chart(runs: Sequence[tuple[str, Mapping[str, float]]]) -> Chart:
    """Return a chart of seconds by phase, a bar for each run."""
    phases = dict.fromkeys(phase for _, seconds in runs for phase in seconds if phase != "total")
    traces = [
        Trace(
            {
                "type": "bar",
                "orientation": "h",
                "name": phase,
                "y": [plain(name) for name, _ in runs],
                "x": [seconds.get(phase, 0.0) for _, seconds in runs],
                "hovertemplate": f"{phase}: %{{x:.1f}} s<extra></extra>",
            },
            {"marker.color": SERIES[number % len(SERIES)]},
        )
        for number, phase in enumerate(phases)
    ]
    layout = _axes("seconds", "") | {"barmode": "stack", "showlegend": True}
    layout["yaxis"] |= {"type": "category", "autorange": "reversed"}
    return Chart("Wall time by phase", traces, layout, height=130 + 28 * len(runs))


def _mode(x: Sequence[Any]) -> str:
    return "lines" if len(x) > 1 else "lines+markers"


def _axes(x: str, y: str) -> dict[str, Any]:
    return {
        "xaxis": {"title": {"text": x}, "automargin": True},
        "yaxis": {"title": {"text": y}, "automargin": True},
    }


TRAINING = (
    ("Loss", "nats per example", (("loss", "loss with prior"), ("nll", "NLL"))),
    ("Negative log evidence", "nats per example", ((EVIDENCE, "-log evidence"),)),
    ("Training accuracy", "share of the examples", (("accuracy", "accuracy"),)),
    ("Training R²", "share of the variance", (("r2", "R²"),)),
)
"""Charts over epochs: title, axis, and the numbers with their names."""
