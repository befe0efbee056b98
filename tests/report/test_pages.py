"""What a report says about runs."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import plotly.graph_objects as go
import pytest
import torch

from processes import output_of
from symdsl.diagnostics import RunError
from symdsl.predictive.posterior import Predicted
from symdsl.report import report_html
from symdsl.report.charts import SERIES, _decades, _ticks, confusion_chart, curves, kind_pair, targets_chart, time_chart
from symdsl.report.comparison import comparison, groups, run_names
from symdsl.report.page import Page, Section
from symdsl.report.reading import Run, read_runs, without_damaged
from symdsl.report.scores import BINS, confusion, most_confused, reliability
from symdsl.report.single import single
from symdsl.runs.predictions import Predictions


def section(page: Page, title: str) -> Section:
    return next(one for one in page.sections if one.title == title)


def charts(html: str) -> list[dict[str, Any]]:
    """The charts that a page draws."""
    (found,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', html, re.DOTALL)
    return json.loads(found)


def one(path: Path) -> Run:
    (run,) = read_runs([path])
    return run


def test_a_page_about_one_run_has_all_there_is_to_see(searched: Path) -> None:
    page = single(one(searched))
    assert [part.title for part in page.sections] == [
        "What was learned",
        "Training",
        "Which candidate each layer wants",
        "Prior precisions",
        "Layers",
        "Predictions",
        "The most confident mistakes",
        "Time",
    ]
    assert [chart.title for chart in section(page, "Training").charts] == [
        "Loss",
        "Negative log evidence",
        "Training accuracy",
    ]
    assert [chart.title for chart in section(page, "Prior precisions").charts] == ["l1", "l2", "h1"]
    assert [chart.title for chart in section(page, "Predictions").charts] == ["Confusion matrix", "Reliability"]
    assert dict(page.tiles).keys() >= {"test accuracy", "test NLL, nats", "test ECE", "parameters", "wall time"}


def test_shares_are_those_of_the_evidence_steps(searched: Path) -> None:
    run = one(searched)
    first, second = section(single(run), "Which candidate each layer wants").charts
    assert (first.title, second.title) == ("l1", "l2")  # h1 has no choice
    asked = [record["epoch"] for record in run.records if "shares" in record]
    result = {layer["name"]: layer for layer in json.loads((searched / "result.json").read_text())["layers"]}
    for chart in (first, second):
        sums = np.sum([trace.content["y"] for trace in chart.traces], axis=0)
        np.testing.assert_allclose(sums, 1)
        assert all(trace.content["x"] == asked for trace in chart.traces)
        names = [candidate["kind"] for candidate in result[chart.title]["candidates"]]
        assert [trace.content["name"] for trace in chart.traces] == names
    recorded = run.records[-1]["shares"]["l1"]
    assert [trace.content["y"][-1] for trace in first.traces] == [recorded["F-FC"], recorded["CONV"]]


def test_long_runs_are_drawn_by_some_of_their_steps(searched: Path) -> None:
    run = one(searched)
    step = run.evidence_steps[-1]
    records = [{**step, "epoch": epoch, "pruned": ["l1.F-FC"] * (epoch == 1234)} for epoch in range(1, 2002)]
    page = single(attrs.evolve(run, records=records))
    for name in ("Which candidate each layer wants", "Prior precisions"):
        epochs = section(page, name).charts[0].traces[0].content["x"]
        assert len(epochs) < 505
        assert {1234, 2001} <= set(epochs)
        assert epochs == sorted(epochs)


def test_a_pruned_candidate_is_marked_where_it_was(searched: Path) -> None:
    run = one(searched)
    records = [{**record, "pruned": ["l1.F-FC"]} if record["epoch"] == 2 else record for record in run.records]
    first, second = section(single(attrs.evolve(run, records=records)), "Which candidate each layer wants").charts
    assert [mark["text"] for mark in first.layout["annotations"]] == ["F-FC pruned"]
    both = [{**record, "pruned": ["l1.F-FC", "l1.CONV"]} if record["epoch"] == 2 else record for record in run.records]
    third, _ = section(single(attrs.evolve(run, records=both)), "Which candidate each layer wants").charts
    assert [mark["text"] for mark in third.layout["annotations"]] == ["F-FC, CONV pruned"]
    assert first.layout["shapes"][0]["x0"] == 2
    assert second.layout["annotations"] == []


def test_every_chart_is_one_that_plotly_knows(searched: Path, again: Path, trained: Path) -> None:
    for paths in ([searched], [searched, again, trained]):
        for chart in charts(report_html(paths)):
            figure = go.Figure(chart["data"], chart["layout"])  # raises for a name or value it does not know
            assert len(figure.data) == len(chart["inks"]) > 0


class Fetching(HTMLParser):
    """Addresses that a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        wanted = [value for name, value in attrs if name in {"src", "href", "srcset"} and value]
        self.found += [value for value in wanted if not value.startswith("data:")]


def test_a_page_fetches_nothing_and_is_small(searched: Path) -> None:
    html = report_html([searched])
    reader = Fetching()
    reader.feed(html)
    assert reader.found == []
    assert "default-src 'none'" in html
    assert len(html.encode()) < 6_000_000


def test_names_of_specs_cannot_become_parts_of_the_page(changed: Callable[..., Path]) -> None:
    html = report_html([changed(result={"spec": "</script><b>bold"})])
    assert "<b>bold" not in html
    assert "&lt;/script&gt;&lt;b&gt;bold" in html


def test_a_report_needs_neither_torch_nor_the_data(searched: Path, tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom symdsl.report import report_html\n"
        f"print(len(report_html([Path({str(searched)!r})])) > 1000, 'torch' in sys.modules)"
    )
    assert output_of(program, tmp_path) == "True False\n"


def test_a_run_that_is_not_finished_is_shown_as_far_as_it_came(changed: Callable[..., Path]) -> None:
    unfinished = ("result.json", "architecture.svg", "predictions.safetensors")
    page = single(one(changed(info={"status": "failed", "reason": "no room"}, without=unfinished)))
    assert "failed after 4 epochs: no room" in page.facts
    assert page.tiles == []
    titles = [part.title for part in page.sections]
    assert titles == ["What was learned", "Training", "Which candidate each layer wants", "Prior precisions"]


def test_lost_predictions_are_told(changed: Callable[..., Path]) -> None:
    with pytest.raises(
        RunError, match=r"predictions.safetensors: missing; `symdsl search --resume .*` writes it again"
    ):
        one(changed(without=("predictions.safetensors",)))


def test_a_baseline_has_no_shares_to_show(trained: Path) -> None:
    titles = [part.title for part in single(one(trained)).sections]
    assert "Predictions" in titles
    assert not {"Which candidate each layer wants", "Prior precisions"} & set(titles)


def test_many_classes_are_shown_as_the_pairs_that_are_confused(searched: Path) -> None:
    target, predicted = np.array([49, 49, 3, 7], np.int32), np.array([2, 2, 3, 8], np.int32)
    pictures = np.zeros((1, 2, 2, 3), np.uint8)
    found = Predictions(
        "classification", (), target, predicted, np.array([0.9, 0.8, 0.7, 0.6]), np.array([0]), pictures
    )
    page = single(attrs.evolve(one(searched), predictions=found))
    part = section(page, "Predictions")
    assert [chart.title for chart in part.charts] == ["Reliability"]
    rows = [[text for text, _ in row] for row in part.tables[0].rows]
    assert rows == [["49", "2", "2"], ["7", "8", "1"]]
    assert section(page, "The most confident mistakes").pictures[0][1:] == (
        "is 49, taken for 2",
        "90.0% sure, example 0",
    )


def test_targets_are_shown_beside_what_was_predicted(searched: Path) -> None:
    target = np.array([[0.0], [1.0], [2.0]], np.float32)
    found = Predictions(
        "regression", (), target, target + 0.5, None, np.array([2, 0]), np.zeros((2, 2, 2, 1), np.uint8)
    )
    page = single(attrs.evolve(one(searched), predictions=found))
    (chart,) = section(page, "Predictions").charts
    assert (chart.traces[0].content["x"], chart.traces[0].content["y"]) == ([0.0, 1.0, 2.0], [0.5, 1.5, 2.5])
    assert [words for _, *words in section(page, "The largest errors").pictures] == [
        ["is 2", "predicted 2.5, example 2"],
        ["is 0", "predicted 0.5, example 0"],
    ]


def test_targets_of_other_scales_are_shown_in_their_standard_deviations() -> None:
    target = np.array([[0.0, 0.0, 5.0], [2.0, 2e6, 5.0]])
    chart = targets_chart(target, target + np.array([0.5, 1e6, 1.0]))
    assert chart.layout["xaxis"]["title"]["text"] == "true, in standard deviations of each target"
    assert [trace.content["x"] for trace in chart.traces[:3]] == [[0.0, 2.0], [0.0, 2.0], [5.0, 5.0]]
    assert [trace.content["y"] for trace in chart.traces[:3]] == [[0.5, 2.5], [1.0, 3.0], [6.0, 6.0]]
    plain = targets_chart(target[:, :1], target[:, :1])
    assert plain.layout["xaxis"]["title"]["text"] == "true"


@pytest.mark.parametrize(
    ("targets", "told"), [(7, "On the test data."), (8, "On the test data, of the first 8 targets.")]
)
def test_a_page_says_that_only_the_first_targets_are_kept(searched: Path, targets: int, told: str) -> None:
    target = np.zeros((2, targets), np.float32)
    found = Predictions("regression", (), target, target, None, np.array([0]), np.zeros((1, 2, 2, 1), np.uint8))
    page = single(attrs.evolve(one(searched), predictions=found))
    assert [section(page, title).words for title in ("Predictions", "The largest errors")] == [told, told]


def test_a_page_of_exactly_as_many_targets_as_are_kept_has_them_all(searched: Path) -> None:
    run, target = one(searched), np.zeros((2, 8), np.float32)
    found = Predictions("regression", (), target, target, None, np.array([0]), np.zeros((1, 2, 2, 1), np.uint8))
    page = single(attrs.evolve(run, predictions=found, data=attrs.evolve(run.data, classes=8)))
    assert section(page, "Predictions").words == "On the test data."


# ---------------------------------------------------------------- several runs


def rows_of(page: Page, title: str) -> dict[str, list[tuple[str, bool]]]:
    (table,) = section(page, title).tables
    return {row[0][0]: list(row[1:]) for row in table.rows}


def scored(run: Run, seed: int, accuracy: float, nll: float) -> Run:
    assert run.result is not None
    result = run.result | {"seed": seed, "test": {"accuracy": accuracy, "nll": nll, "ece": None}}
    return attrs.evolve(run, result=result, info={**run.info, "seed": seed}, folder=Path(f"runs/{seed}"))


def test_the_best_is_bold_and_seeds_have_a_mean_with_a_spread(searched: Path, again: Path, trained: Path) -> None:
    first, second = scored(one(searched), 711, 0.9, 0.5), scored(one(again), 5, 0.8, 0.25)
    baseline = scored(one(trained), 711, 0.7, 1.0)
    rows = rows_of(comparison([first, second, baseline]), "Metrics")
    assert list(rows) == [
        "small, laplace, seed 711",
        "small, laplace, seed 5",
        "mean of small, laplace",
        "small, map, seed 711",
    ]
    assert [row[0] for row in rows.values()] == [
        ("90.00 %", True),
        ("80.00 %", False),
        ("85.00 % ± 7.07 %", True),
        ("70.00 %", False),
    ]
    assert [row[1] for row in rows.values()] == [
        ("0.5", False),
        ("0.25", True),
        ("0.375 ± 0.1768", True),
        ("1", False),
    ]


def test_a_run_that_failed_says_why_beside_others(searched: Path, again: Path) -> None:
    first = scored(one(searched), 711, 0.9, 0.5)
    failed = attrs.evolve(scored(one(again), 5, 0.8, 0.25), result=None)
    failed = attrs.evolve(failed, info=failed.info | {"status": "failed", "reason": "no room"})
    rows = rows_of(comparison([first, failed]), "Metrics")
    assert list(rows) == ["seed 711", "seed 5 (failed: no room)"]


def test_a_mean_takes_every_seed_once(searched: Path, again: Path) -> None:
    first, second = scored(one(searched), 711, 0.9, 0.5), scored(one(again), 5, 0.8, 0.25)
    copy = attrs.evolve(scored(one(searched), 711, 0.2, 0.5), folder=Path("runs/copy"))
    found = section(comparison([first, copy, second]), "Metrics")
    assert found.words.endswith("A mean takes the first of several runs with the same seed.")
    assert rows_of(comparison([first, copy, second]), "Metrics")["mean of small, laplace"][0][0] == "85.00 % ± 7.07 %"
    twice = section(comparison([first, copy]), "Metrics")
    assert "standard deviations" not in twice.words
    assert len(twice.tables[0].rows) == 2


def test_bounds_and_evidences_are_not_compared(searched: Path, again: Path) -> None:
    first, second = scored(one(searched), 711, 0.9, 0.5), scored(one(again), 5, 0.8, 0.25)
    bounded = attrs.evolve(second, result=(second.result or {}) | {"objective": "elbo"})
    for other, compared in ((second, True), (bounded, False)):
        found = section(comparison([first, other]), "Metrics")
        heads = [name for name, _ in found.tables[0].heads]
        accuracy, evidence = heads.index("test accuracy"), heads.index("-log evidence per example, nats")
        assert any(row[evidence][1] for row in found.tables[0].rows) == compared
        assert any(row[accuracy][1] for row in found.tables[0].rows)
        assert ("Bounds (`elbo`) and Laplace evidences are not compared." in found.words) != compared


def test_of_runs_with_other_data_none_is_called_best(searched: Path, again: Path) -> None:
    first, second = scored(one(searched), 711, 0.9, 0.5), scored(one(again), 5, 0.8, 0.25)
    other = attrs.evolve(second, data=attrs.evolve(second.data, transforms=()))
    page = comparison([first, other])
    assert section(page, "Metrics").words.startswith("The data differ, so none is called best.")
    assert not any(bold for row in rows_of(page, "Metrics").values() for _, bold in row)
    assert section(comparison([first, second]), "Metrics").words.startswith("The best of each column is bold.")


def test_runs_of_one_seed_that_read_other_numbers_are_told(searched: Path, trained: Path) -> None:
    first, second = scored(one(searched), 711, 0.9, 0.5), scored(one(trained), 711, 0.8, 0.25)
    assert section(comparison([first, second]), "Metrics").words == "The best of each column is bold."
    changed = attrs.evolve(second, info={**second.info, "dataset": "0" * 64})
    told = "With the same seed, not all runs have read the same numbers: files may have changed, or another machine"
    assert told in section(comparison([first, changed]), "Metrics").words
    other_seed = attrs.evolve(changed, info={**changed.info, "seed": 5})
    assert section(comparison([first, other_seed]), "Metrics").words == "The best of each column is bold."


def test_runs_that_learned_no_prior_are_named(searched: Path, again: Path) -> None:
    first, second = (
        attrs.evolve(run, result=(run.result or {}) | {"priors_learned": learned})
        for run, learned in ((scored(one(searched), 711, 0.9, 0.5), True), (scored(one(again), 5, 0.8, 0.25), False))
    )
    told = "What each search chose, and its share. No prior was learned by seed 5: the networks fit too little."
    assert section(comparison([first, second]), "Layer types").words == told
    assert section(comparison([first, first]), "Layer types").words == "What each search chose, and its share."


def test_names_are_shown_letter_by_letter_in_charts() -> None:
    names = ["a<b>old", "x&amp;y"]
    chart = confusion_chart(np.eye(2, dtype=np.int64), names)
    shown = ["a&lt;b&gt;old", "x&amp;amp;y"]
    assert (chart.traces[0].content["x"], chart.traces[0].content["y"]) == (shown, shown)
    lines = [(name, SERIES[0], "solid", [1], [1.0]) for name in names * 8]
    drawn = curves("Loss", "nats", lines)
    assert [trace.content["name"] for trace in drawn.traces[:2]] == shown
    assert drawn.height >= 300 + 14 * 20 == curves("Loss", "nats", lines[:2]).height + 14 * 20
    assert [trace.content["y"] for trace in time_chart([(name, {"training": 1.0}) for name in names]).traces] == [shown]


def test_long_names_of_classes_are_shortened_on_axes() -> None:
    names = ["a class with a name of more than two dozen letters", "b"]
    chart = confusion_chart(np.eye(2, dtype=np.int64), names)
    assert chart.traces[0].content["x"] == names
    for axis in ("xaxis", "yaxis"):
        assert chart.layout[axis]["tickvals"] == names
        assert chart.layout[axis]["ticktext"] == ["a class with a name of …", "b"]


def test_runs_of_one_spec_are_told_apart_by_what_differs(searched: Path, again: Path) -> None:
    first, second = one(searched), one(again)
    longer = attrs.evolve(second, spec=second.spec.replace("epochs = 4", "epochs = 9"))
    assert [group.name for group in groups([first, second])] == ["small, laplace"]
    assert [group.name for group in groups([first, longer])] == [
        "small, laplace, epochs = 4",
        "small, laplace, epochs = 9",
    ]
    line = next(line for line in first.spec.splitlines() if "layer" in line)
    doubled = attrs.evolve(second, spec=second.spec.replace(line, f"{line}\n{line}"))
    names = [group.name for group in groups([first, doubled])]
    assert names == ["small, laplace", f"small, laplace, {line.strip()}"]
    head, *lines = first.spec.splitlines(keepends=True)
    turned = attrs.evolve(first, spec="".join([*lines, head]), folder=Path("elsewhere"))
    assert [group.name for group in groups([first, turned])] == [
        f"small, laplace, {searched}",
        "small, laplace, elsewhere",
    ]
    gone = [attrs.evolve(run, spec=re.sub("data .*", 'data arrays("gone.npz")', run.spec)) for run in (first, second)]
    assert [(group.name, len(group.runs)) for group in groups(gone)] == [("small, laplace", 2)]
    twin = attrs.evolve(first, folder=Path("elsewhere"))
    assert list(run_names(groups([first, twin])).values()) == [f"seed 711, {searched}", "seed 711, elsewhere"]


def test_a_run_from_the_weights_of_another_is_no_further_seed(searched: Path, again: Path) -> None:
    first, second = one(searched), one(again)
    warm = attrs.evolve(second, info={**second.info, "weights_from": "runs/before"})
    names = ["small, laplace", "small, laplace, from runs/before"]
    assert [group.name for group in groups([first, warm])] == names
    assert "Spreads are" not in section(comparison([first, warm]), "Metrics").words


def test_a_report_tells_which_epochs_have_lost_their_metrics(searched: Path, tmp_path: Path) -> None:
    assert not any("lost" in fact for fact in single(one(searched)).facts)
    broken = shutil.copytree(searched, tmp_path / "broken")
    metrics = broken / "metrics.jsonl"
    lines = metrics.read_bytes().splitlines(keepends=True)
    metrics.write_bytes(b"".join([lines[0], b"{}\n", lines[2]]))
    facts = single(one(broken)).facts
    assert "4 epochs" in facts
    assert "the metrics of epochs 2, 4 are lost" in facts
    metrics.unlink()
    facts = single(one(broken)).facts
    assert {"4 epochs", "the metrics of epochs 1 to 4 are lost"} <= set(facts)


def test_a_comparison_says_where_searches_agree(searched: Path, again: Path, trained: Path) -> None:
    first = one(searched)
    assert first.result is not None
    layers = json.loads(json.dumps(first.result["layers"]))
    layers[0]["chosen"] = "CONV" if layers[0]["chosen"] == "F-FC" else "F-FC"
    other = attrs.evolve(first, result=first.result | {"layers": layers}, folder=Path("other"))
    rows = rows_of(comparison([first, other, one(trained)]), "Layer types")  # the baseline learned no types
    assert {layer: cells[0] for layer, cells in rows.items()} == {
        "l1": ("1 of 2", False),
        "l2": ("2 of 2", True),
        "h1": ("2 of 2", True),
    }
    assert rows["h1"][1:] == [("FC 100%", False)] * 2


def test_a_comparison_shows_layers_whose_block_was_removed(searched: Path) -> None:
    first = one(searched)
    assert first.result is not None
    removed, *layers = first.result["layers"]
    layers = [{**removed, "chosen": None, "kept": []}, *layers]
    other = attrs.evolve(first, result=first.result | {"layers": layers}, folder=Path("other"))
    rows = rows_of(comparison([other, other]), "Layer types")
    assert rows["l1"] == [("2 of 2", True), ("\N{EN DASH}", False), ("\N{EN DASH}", False)]
    assert rows_of(comparison([first, other]), "Layer types")["l1"][0] == ("1 of 2", False)


def test_curves_are_overlaid(searched: Path, again: Path, trained: Path) -> None:
    found = section(comparison(read_runs([searched, again, trained])), "Training").charts
    assert [(chart.title, len(chart.traces)) for chart in found] == [
        ("NLL", 3),
        ("Negative log evidence", 2),
        ("Training accuracy", 3),
    ]
    assert [trace.content["line"]["dash"] for trace in found[0].traces] == ["solid", "dash", "solid"]


def test_a_folder_given_twice_counts_once(searched: Path, again: Path) -> None:
    detour = again / ".." / searched.name
    assert [run.folder for run in read_runs([searched, again, searched, detour])] == [searched, again]


def test_a_run_that_is_named_must_be_readable(changed: Callable[..., Path]) -> None:
    folder = changed(without=("graph.json",))
    assert without_damaged([folder], pytest.fail) == [folder]
    with pytest.raises(RunError, match=r"graph.json"):
        read_runs([folder])


def test_a_spec_that_was_edited_is_not_shown_as_that_of_the_run(changed: Callable[..., Path]) -> None:
    folder = changed()
    spec = folder / "spec.sym"
    spec.write_text(f"{spec.read_text()}\n# edited\n")
    with pytest.raises(RunError, match=r"spec.sym: damaged or edited"):
        read_runs([folder])


def test_without_its_packages_a_report_says_what_to_install(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(RunError, match=r"a report needs `plotly.offline`: run `pip install 'symdsl\[report\]'`"):
        report_html([searched])


# ---------------------------------------------------------------- scores


def test_the_page_and_the_result_agree_on_bins_at_their_edges() -> None:
    confidence = np.array([number / BINS for number in range(1, BINS + 1)])
    target, predicted = np.arange(BINS) % 2, np.zeros(BINS, int)
    rest = (1 - confidence[:, None]) / 15 * np.ones((BINS, 15))
    probabilities = torch.from_numpy(np.hstack([confidence[:, None], rest]))
    assert (probabilities.argmax(1) == 0).all()
    expected = Predicted(probabilities).calibration_error(torch.from_numpy(target))
    assert reliability(target, predicted, confidence).ece == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("largest", "ticks"), [(1e2, 1), (1e6, 1), (1e12, 2), (1e13, 3)])
def test_an_axis_of_precisions_has_about_six_ticks(largest: float, ticks: int) -> None:
    assert _decades([{"precisions": {"a": 1.0, "b": largest}}]) == ticks


@pytest.mark.parametrize("values", [(1.37, 4.61), (1.0, 1.24), (0.9, 50.0), (1.0, 1e9)])
def test_an_axis_of_precisions_has_labels(values: tuple[float, float]) -> None:
    found = _ticks([{"precisions": {"a": values[0], "b": values[1], "pruned": None}}])
    (low, high), step = found["range"], found["dtick"]
    assert low < math.log10(values[0]) < math.log10(values[1]) < high
    powers = np.arange(-20, 20, 1 if step == "D2" else step, dtype=float)
    ticks = [power + math.log10(digit) for power in powers for digit in ((1, 2, 5) if step == "D2" else (1,))]
    assert 2 <= sum(low <= tick <= high for tick in ticks) <= 8


def test_candidates_of_one_kind_differ_in_colour() -> None:
    assert len({pair for place in range(3) for pair in [kind_pair("CONV", place)]}) == 3
    assert kind_pair("CONV") == kind_pair("CONV", 0)


def test_reliability_is_that_of_its_definition() -> None:
    target = np.array([0, 1, 1, 0, 2])
    predicted = np.array([0, 1, 0, 0, 2])
    confidence = np.array([0.95, 0.95, 0.95, 0.5, 1.0])
    found = reliability(target, predicted, confidence)
    # bins of 1/15: 0.95 and 1.0 are in the last, 0.5 in the eighth
    assert found.counts.tolist() == [0] * 7 + [1] + [0] * 6 + [4]
    assert found.accuracy[14] == pytest.approx(3 / 4)
    assert found.confidence[14] == pytest.approx((3 * 0.95 + 1.0) / 4)
    assert found.ece == pytest.approx(abs(0.5 - 1) / 5 + abs(0.75 - 3.85 / 4) * 4 / 5)


def test_the_ece_of_a_report_is_that_of_the_result(searched: Path) -> None:
    run = one(searched)
    assert run.predictions is not None
    assert run.predictions.confidence is not None
    assert run.result is not None
    found = reliability(run.predictions.target, run.predictions.predicted, run.predictions.confidence)
    assert found.ece == pytest.approx(run.result["test"]["ece"])


def test_confusion_counts_every_pair() -> None:
    counts = confusion(np.array([0, 0, 2, 1, 1]), np.array([0, 2, 2, 0, 0]), 3)
    assert counts.tolist() == [[1, 0, 1], [2, 0, 0], [0, 0, 1]]
    assert most_confused(counts, most=5) == [(1, 0, 2), (0, 2, 1)]
    assert most_confused(counts, most=1) == [(1, 0, 2)]
