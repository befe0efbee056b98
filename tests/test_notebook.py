"""In a notebook: what shows itself, and the cell magic, in IPython's own shell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traitlets.config import Config

import symdsl
from symdsl.runner.result import Result

BODY = """
data synthetic(size = 4) |> standardize

network net {
  input image(1, 4, 4)
  layer l1: F-FC + CONV(3) -> width |> relu
  flatten
  layer out: FC -> classes
}
"""
SPEC = f"let width = 2\n{BODY}"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    """A shell with the extension, at work in an empty folder."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # a shell takes its place
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell(config=config)
    run(shell, "%load_ext symdsl").raise_error()
    return shell


def run(shell: InteractiveShell, cell: str) -> ExecutionResult:
    return shell.run_cell(cell, store_history=True)


def shown(shell: InteractiveShell, value: object) -> dict[str, str]:
    """What a front end gets of a value, by type."""
    data, _ = shell.display_formatter.format(value)
    return dict(data)


def test_a_cell_without_a_name_gives_its_spec(shell: InteractiveShell) -> None:
    found = run(shell, f"%%sym\n{SPEC}").result
    assert isinstance(found, symdsl.Spec)
    assert found.name == "net"
    assert found.facts.network.nodes[1].out_shape.channels == 2


def test_a_cell_with_a_name_binds_it_and_shows_nothing(shell: InteractiveShell) -> None:
    assert run(shell, f"%%sym small\n{SPEC}").result is None
    assert isinstance(shell.user_ns["small"], symdsl.Spec)


def test_what_stands_after_the_name_overrides_the_spec(shell: InteractiveShell) -> None:
    run(shell, f'%%sym small width=3 "search.epochs = 7"\n{SPEC}').raise_error()
    facts = shell.user_ns["small"].facts
    assert (facts.network.nodes[1].out_shape.channels, facts.search.epochs) == (3, 7)


def test_a_wrong_cell_shows_its_diagnostics_and_no_traceback(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, f"%%sym small\n{SPEC}")
    before = shell.user_ns["small"]
    done = run(shell, f"%%sym small\n{SPEC.replace('CONV', 'KONV')}")
    assert isinstance(done.error_in_exec, symdsl.SpecError)
    assert shell.user_ns["small"] is before
    complaint = "".join(capsys.readouterr())
    assert complaint.startswith("error[E302]: unknown kind `KONV`\n  --> In [3]:8:20\n")
    assert "Traceback" not in complaint


def test_any_wrong_spec_shows_its_diagnostics(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "import symdsl; symdsl.parse('let')")
    complaint = "".join(capsys.readouterr())
    assert "error[E104]: expected a name, found the end of the text" in complaint
    assert "Traceback" not in complaint


def test_warnings_are_told_and_do_not_stop(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, f"%%sym small\nlet unused = 1\n{SPEC}").raise_error()
    assert "warning[W102]: `unused` is never used" in capsys.readouterr().err
    assert "small" in shell.user_ns


@pytest.mark.parametrize("name", ["widths.sym", "cell.sym"])
def test_a_cell_can_import_from_the_working_folder(shell: InteractiveShell, name: str) -> None:
    Path(name).write_text("let width = 5\n")
    run(shell, f'%%sym small\nimport "{name}"\n{BODY}').raise_error()
    assert shell.user_ns["small"].facts.network.nodes[1].out_shape.channels == 5


@pytest.mark.parametrize("line", ["a b", "1st", "class", 's data.root="abc'])
def test_a_line_that_means_nothing_says_what_to_write(
    shell: InteractiveShell, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, f"%%sym {line}\n{SPEC}")
    assert f"write `%%sym NAME KEY=VALUE ...`, each part if it is needed; found `{line}`" in "".join(
        capsys.readouterr()
    )


def test_a_spec_shows_its_text_in_colour(shell: InteractiveShell) -> None:
    spec = symdsl.parse(SPEC)
    given = shown(shell, spec)
    assert given["text/plain"] == "Spec(name='net', warnings=())"
    assert given["text/markdown"] == f"```sym\n{spec.text()}```\n"
    assert "F-FC" in given["text/html"]
    assert "color:" in given["text/html"]


def test_a_graph_shows_its_picture(shell: InteractiveShell) -> None:
    given = shown(shell, symdsl.parse(SPEC).graph())
    assert given.keys() == {"text/plain", "image/svg+xml"}


def test_a_result_shows_table_and_picture(shell: InteractiveShell) -> None:
    spec = symdsl.parse(SPEC)
    candidate = {"parameters": 2, "precision": [1.0], "weight_norm_sq": 1.0, "effective": 1.0, "normalised": 0.5}
    layers = {"l1": ["F-FC", "CONV"], "out": ["FC"]}
    content = {
        "objective": "laplace",
        "seed": 7,
        "device": "cpu",
        "epochs": 2,
        "neg_log_evidence_per_example": 0.5,
        "wall_s": {"total": 2.0, "training": 1.5, "evidence": 0.5},
        "train": {"accuracy": 0.99, "nll": 0.01},
        "test": {"accuracy": 0.957, "nll": 0.12, "ece": 0.02},
        "layers": [
            {
                "name": name,
                "chosen": kinds[-1],
                "kept": kinds,
                "candidates": [{"kind": kind, "relative": 1 / len(kinds), **candidate} for kind in kinds],
            }
            for name, kinds in layers.items()
        ],
    }
    given = shown(shell, Result(content, Path("runs/net"), spec))
    assert given.keys() == {"text/plain", "text/html", "text/markdown", "image/svg+xml"}
    assert given["text/plain"].startswith("Result(folder=")
    assert "<svg" in given["text/html"]
    assert "chosen" in given["text/html"]
