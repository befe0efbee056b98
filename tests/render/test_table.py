import io
import math
import re
from collections import Counter

import pytest
from rich.console import Console

from graph.factory import Chain, pyramid
from render.results import result
from symdsl.graph import build
from symdsl.render import compile_table, result_table, table_text
from symdsl.render.cells import add_section, new_table
from symdsl.render.predictions import predictions_table
from symdsl.render.table import size_text


def printed(renderable, width=160) -> list[list[str]]:
    """The words of each line."""
    console = Console(file=io.StringIO(), width=width)
    console.print(renderable)
    return [line.split() for line in console.file.getvalue().splitlines() if line.strip()]


def lines(renderable) -> list[str]:
    return [" ".join(words) for words in printed(renderable)]


def small():
    return build(Chain(3, 2, 5).layer("l[1]", "F-FC CONV", 7).flatten().layer("out", "FC", 4).facts())


def test_compile_table_has_a_row_per_candidate_and_bias():
    shown = lines(compile_table(small()))
    assert shown[2:8] == [
        "l[1] 3x2x5 to 7x2x5 F-FC 420 nothing 10 ⊗ 7·3, 7 ⊗ 3·10 2.0 KiB 420",
        "CONV 189 translations 7 ⊗ 27 3.0 KiB 1,890",
        "bias 7 everything 7 200 B",
        "out 70 to 4 FC 280 nothing 4 ⊗ 70 19.2 KiB 280",
        "bias 4 everything 4 68 B",
        "900 parameters, 2,590 multiply-adds per example",
    ]


def test_compile_table_ends_with_what_the_network_preserves():
    assert lines(compile_table(build(pyramid().facts())))[-1] == "the network, strictly: invariant to translations"


def test_compile_table_gives_memory_for_the_batch():
    assert lines(compile_table(small()))[8].startswith("memory: parameters 3.5 KiB, activations 5.4 KiB (batch of 8)")


def test_result_table_is_table_4():
    shown = lines(result_table(result(small(), {"l[1]": [0.0, 1.0]})))
    assert shown[0] == "layer candidate parameters precision ‖θ‖² effective normalised relative"
    assert shown[2:5] == [
        "l[1] F-FC 420 3.588e+06, 3.588e+06 0, 0 0 0 0.00 % removed",
        "CONV 189 0.0751 10.74 40 0.8 100.00 % chosen",
        "out FC 280 0.0751 10.74 40 0.8 100.00 % chosen",
    ]


def test_a_candidate_is_called_removed_where_it_was():
    learned = result(small(), {"l[1]": [0.0, 1.0]})
    learned["layers"][0]["candidates"][0]["pruned"] = False
    assert lines(result_table(learned))[2].endswith("0.00 % below 1 %")


def test_result_table_ends_with_the_scores():
    assert lines(result_table(result(small(), {"l[1]": [0.0, 1.0]})))[-3:] == [
        "test: accuracy 95.70 %, NLL 0.12 nats, ECE 0.02",
        "train: accuracy 99.00 %, NLL 0.01 nats, negative log evidence per example 0.5 nats",
        "laplace, seed 7, 2 epochs on cpu in 2 s (evidence 0.5 s)",
    ]


def test_a_regression_ends_with_its_own_scores():
    measured = {"rmse": 3.14159, "r2": 0.9876543, "nll": 2.5}
    found = result(small(), {"l[1]": [0.0, 1.0]}) | {
        "train": measured,
        "test": measured | {"r2": None},
        "noise_std": 3.25,
        "wall_s": {"total": 3.25, "loading": 1.0, "training": 1.5, "evidence": 0.5, "posterior": 0.25},
    }
    assert lines(result_table(found))[-4:] == [
        "test: RMSE 3.142, R² –, NLL 2.5 nats",
        "train: RMSE 3.142, R² 0.9877, NLL 2.5 nats, negative log evidence per example 0.5 nats",
        "noise: standard deviation 3.25",
        "laplace, seed 7, 2 epochs on cpu in 3.25 s (loading 1 s, evidence 0.5 s, posterior 0.25 s)",
    ]
    found["targets"] = [
        {"name": "0", "test_rmse": 0.5, "noise_std": 0.25},
        {"name": "1", "test_rmse": 4, "noise_std": 3},
    ]
    assert lines(result_table(found))[-4:-1] == [
        "noise: standard deviation 3.25",
        "target 0: test RMSE 0.5, noise 0.25",
        "target 1: test RMSE 4, noise 3",
    ]
    found["targets"] *= 5
    assert lines(result_table(found))[-3:-1] == ["target 1: test RMSE 4, noise 3", "and 2 more targets in result.json"]


@pytest.mark.parametrize(
    ("mean", "std", "shown"),
    [
        (1000012.3, 221.31, "1000012 ± 221.3"),
        (-12.345678, 0.012345, "-12.34568 ± 0.01235"),
        (0.5, 2.0, "0.5 ± 2"),
        (0.0, 1e-9, "0 ± 1e-09"),
        (1.0, 0.0, "1 ± 0"),
        (math.inf, 1.0, "inf ± 1"),
        (1.0, 5e-324, "1 ± 4.941e-324"),
    ],
)
def test_a_mean_has_the_digits_of_its_deviation(mean, std, shown):
    content = {"predictions": [{"input": "x", "mean": [mean], "std": [std]}], "targets": ["y"]}
    assert lines(predictions_table(content))[-1] == f"x {shown}"


def test_unknown_numbers_are_dashes():
    shown = lines(result_table(result(small(), None, "map")))
    assert shown[2] == "l[1] F-FC 420 0.0751, 0.0751 10.74, 10.74 – – –"
    assert shown[-2] == "train: accuracy 99.00 %, NLL 0.01 nats, negative log evidence per example – nats"


def test_norm_may_be_one_number_for_the_candidate():
    found = result(small(), {"l[1]": [0.4, 0.6]})
    found["layers"][0]["candidates"][0]["weight_norm_sq"] = 1.25
    assert lines(result_table(found))[2] == "l[1] F-FC 420 0.0751, 0.0751 1.25 16 0.32 40.00 %"


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("table", [compile_table(small()), result_table(result(small(), {"l[1]": [0.2, 0.8]}))])
def test_no_number_or_name_is_cut_on_a_narrow_terminal(table, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    wide, narrow = table_text(table), re.sub("\x1b\\[[0-9;]*m", "", table_text(table, terminal=True))
    assert len(set(re.findall(r"[\w.,]*\d[\w.,]*", wide))) > 15
    for words in (r"[\w.,]*\d[\w.,]*", r"F-FC|CONV|bias|l\[1\]|out|chosen"):
        assert Counter(re.findall(words, wide)) == Counter(re.findall(words, narrow))


def test_a_path_is_not_broken_in_a_file():
    table = new_table((("run", "left"), ("status", "left"), ("NLL", "right")))
    path = "/".join(["a folder of many words"] * 9)
    add_section(table, [(path, "finished", "0.123")])
    assert any(path in line for line in table_text(table).splitlines())


def test_a_table_in_a_notebook_is_text(monkeypatch):
    expected = table_text(compile_table(small()))
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert table_text(compile_table(small())) == expected


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1.5 * 2**20, "1.5 MiB"),
        (2**33, "8.0 GiB"),
        (2**60, "1048576.0 TiB"),
    ],
)
def test_sizes(size, words):
    assert size_text(size) == words
