"""The command line as its users meet it: exit statuses, streams, files."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click import unstyle
from click.testing import CliRunner

import symdsl
from processes import call, output_of, started
from symdsl import runner, spec
from symdsl.cli import main
from symdsl.diagnostics import RunError
from symdsl.language.imports import LARGEST
from symdsl.progress import Callback, Silent
from symdsl.runner import engines
from symdsl.runs import RunFolder, checkpoint

TINY = """
let width = 2

data synthetic(channels = 1, size = 6, classes = 3, train = 48, test = 20) |> standardize

network tiny {
  input image(1, 6, 6)
  layer l1: F-FC + CONV(3) -> width |> relu
  layer l2: F-FC + CONV(3) -> 2*width stride 2 |> relu
  flatten
  layer out: FC -> classes
}

search {
  start = relaxed
  epochs = 3
  every  = 1
  batch  = 16
}
"""
WRONG = TINY.replace("FC -> classes", "FC -> clases").replace("epochs = 3", "epochs = -1")
FILES = {
    "spec.sym",
    "run.json",
    "metrics.jsonl",
    "checkpoint.safetensors",
    "checkpoint.json",
    "model.safetensors",
    "posterior.safetensors",
    "predictions.safetensors",
    "result.json",
    "learned.sym",
    "architecture.dot",
    "architecture.svg",
    "architecture.png",
}


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small spec in the working folder."""
    monkeypatch.chdir(tmp_path)
    path = Path("tiny.sym")
    path.write_text(TINY)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    runner.search(spec.parse(TINY), device="cpu", out=folder)
    return folder


def process(arguments: Sequence[object], cwd: Path, **streams: Any) -> subprocess.Popen[str]:
    """The command as a process of its own."""
    return started(["-m", "symdsl", *arguments], cwd, **streams)


def words(text: str) -> str:
    """A usage error without its frame, colours and line breaks."""
    return " ".join(unstyle(text).replace("│", " ").split())


def lines(text: str) -> list[str]:
    return text.splitlines()


# Around all commands


def test_help_names_every_command() -> None:
    shown = call("--help")
    assert shown.exit_code == 0
    before = ("new", "check", "fmt", "explain", "data", "compile", "search", "map", "sweep")
    for command in (*before, "runs", "show", "report", "eval", "lsp"):
        assert f" {command} " in shown.stdout


def test_version() -> None:
    assert call("--version").stdout == f"{symdsl.__version__}\n"


@pytest.mark.parametrize(
    ("said", "spins"),
    [({}, "3000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, None)],
)
def test_threads_soon_sleep_unless_told_how_to_wait(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, str], spins: str | None
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert call("check", tiny).exit_code == 0
    assert os.environ.get("GOMP_SPINCOUNT") == spins


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["frobnicate", "tiny.sym"], "No such command"),
        (["serach", "tiny.sym"], "No such command 'serach'. Did you mean 'search'?"),
        (["train", "tiny.sym"], "No such command 'train'. Did you mean 'search'?"),
        (["search", "tiny.sym", "--epochs", "5"], "No such option '--epochs'. Write `--set search.epochs=...`."),
        (["check", "tiny.sym", "--epochs", "5"], "No such option '--epochs'."),
        (["search"], "Missing argument"),
        (["search", "tiny.sym", "--set", "epochs"], "must have the form K=V"),
        (["search", "tiny.sym", "--set", "=3"], "must have the form K=V"),
        (["search", "tiny.sym", "--set", "width="], "must have the form K=V"),
        (["search", "tiny.sym", "--device", "tpu"], "must be auto, cpu, cuda or cuda:n"),
        (["search", "tiny.sym", "--device", "cuda:x"], "must be auto, cpu, cuda or cuda:n"),
        (["search", "tiny.sym", "--seed", "-1"], "--seed"),
        (["search", "tiny.sym", "--out", "a", "--resume", "b"], "exclude each other"),
        (["search"], "Missing argument 'SPEC': only `--resume RUN` needs none"),
        (["map", "--resume", "b", "--set", "width=3"], "leave `--set` and `--seed` out, or give its SPEC too"),
        (["search", "--resume", "b", "--seed", "3"], "leave `--set` and `--seed` out, or give its SPEC too"),
        (["search", "tiny.sym", "--from", "a", "--resume", "b"], "leave `--resume` and `--seeds` out"),
        (["map", "tiny.sym", "--from", "a", "--seeds", "2"], "leave `--resume` and `--seeds` out"),
        (["search", "tiny.sym", "--seeds", "some"], "must be a number of seeds, or seeds separated by commas"),
        (["search", "tiny.sym", "--seeds", "0"], "must be from 1 to 1000 seeds"),
        (["search", "tiny.sym", "--seeds", "4,4"], "must be different seeds"),
        (["search", "tiny.sym", "--seeds", "1,2", "--seed", "3"], "exclude each other"),
        (["search", "tiny.sym", "--seeds", "1,2", "--set", "search.seed=3"], "exclude each other"),
        (["search", "tiny.sym", "--seed", "1", "--set", "search.seed=3"], "exclude each other"),
        (["map", "tiny.sym", "--jobs", "2"], "give `--seeds` too"),
        (["compile", "tiny.sym", "--emit", "gif"], "--emit"),
        (["data", "tiny.sym", "--out", "a.jpg"], "must be a PNG: name it `a.png`"),
        (["data", "tiny.sym", "--out", "."], "must be a PNG: name it `data.png`"),
        (["compile", "tiny.sym", "-o", "tiny.sym"], "would overwrite what the command reads: name another file"),
        (["audit", "tiny.sym", "-o", "tiny.sym"], "would overwrite what the command reads: name another file"),
        (["audit", "tiny.sym", "-o", "audit.png"], "the picture is an SVG: name a file that ends with `.svg`"),
        (["eval", "run", "--set", "search.epochs=3"], "must begin with `data`"),
        (["eval", "run", "new.npz", "--set", "data.size=8"], "give one of them"),
        (["new", "../demo"], "must be letters"),
        (["new", "1st"], "must be letters"),
    ],
)
def test_usage_errors_end_with_2(tiny: Path, arguments: list[str], complaint: str) -> None:
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert complaint in words(done.stderr)


def test_a_hyphen_is_no_output(tiny: Path) -> None:
    done = call("compile", tiny, "-o", "-")
    assert done.exit_code == 2
    assert "`-` is no file: name one, or leave the option out" in words(done.stderr)
    assert not Path("-").exists()


@pytest.mark.parametrize("name", ["spec.sym", "run.json", "model.safetensors", "checkpoint.json"])
def test_no_output_replaces_a_file_that_a_run_needs(run: Path, tmp_path: Path, name: str) -> None:
    output = run / name
    before = output.read_bytes()
    for words_of_command in (
        ("show", run, "--emit", "svg"),
        ("report", run),
        ("audit", run),
        ("predict", run, "x.npz"),
        ("export", run, "--to", "pt2"),
        ("compile", run / "spec.sym"),
    ):
        done = call(*words_of_command, "-o", output)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "is a file that a run needs: name another" in words(done.stderr)
    (tmp_path / "link").symlink_to(output)
    assert call("show", run, "-o", tmp_path / "link").exit_code == 2
    assert output.read_bytes() == before
    done = call("show", run, "--emit", "svg", "-o", run / "architecture.svg")
    assert (done.exit_code, done.stdout) == (0, "")


def test_no_other_picture_replaces_that_of_what_was_learned(run: Path) -> None:
    drawn = {name: (run / name).read_bytes() for name in ("architecture.svg", "architecture.png", "learned.sym")}
    for words_of_command in (
        ("audit", run, "-o", run / "architecture.svg"),
        ("data", run / "spec.sym", "--out", run / "architecture.png"),
        ("report", run, "-o", run / "learned.sym"),
    ):
        done = call(*words_of_command)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "is a file that a run needs: name another" in words(done.stderr)
    assert drawn == {name: (run / name).read_bytes() for name in drawn}


@pytest.mark.parametrize("name", ["mine.sym", "mine.npz"])
def test_no_output_replaces_a_file_that_commands_read(run: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    for words_of_command in (("show", run), ("report", run), ("compile", run / "spec.sym")):
        done = call(*words_of_command, "-o", tmp_path / name)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "would overwrite a spec or data: name another file" in words(done.stderr)
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", ">&-", "<&- >&- 2>&-"])
def test_a_search_outlives_streams_that_cannot_be_used(tiny: Path, tmp_path: Path, redirection: str) -> None:
    line = f'exec "$0" -m symdsl search tiny.sym --device cpu --seeds 2 --jobs 2 --out all {redirection}'
    shell = ["import os, sys; os.execv('/bin/sh', ['sh', '-c', *sys.argv[1:]])", line, sys.executable]
    with started(["-c", *shell], tmp_path) as running:
        printed, complaint = running.communicate()
    assert (running.returncode, complaint if "2>" in redirection else "") == (0, "")
    assert ("runs: all" in printed) is (">&-" not in redirection.replace("2>&-", ""))
    assert call("runs", "all").stdout.count("finished") == 2


@pytest.mark.parametrize(
    "arguments", [("check", "tiny.sym"), ("explain", "E203"), ("compile", "tiny.sym"), ("fmt", "-")]
)
def test_a_closed_stream_is_nothing(tiny: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    tiny.write_text(WRONG if arguments[0] == "check" else TINY)
    shell = ["import os, sys; os.execv('/bin/sh', ['sh', '-c', *sys.argv[1:]])"]
    line = f'exec "$0" -m symdsl {" ".join(arguments)} <&- >&-'
    with started(["-c", *shell, line, sys.executable], tmp_path) as running:
        printed, complaint = running.communicate()
    assert (running.returncode, printed) == (int(arguments[0] == "check"), "")
    assert "Traceback" not in complaint


@pytest.mark.parametrize("command", ["check", "fmt", "compile", "search", "map"])
@pytest.mark.parametrize("path", ["nowhere.sym", "folder"])
def test_a_path_that_is_no_spec_is_said_without_a_traceback(tiny: Path, command: str, path: str) -> None:
    Path("folder").mkdir()
    done = call(command, path)
    assert done.exit_code in (1, 3)
    assert done.stdout == ""
    assert path in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(os.listdir()) == ["folder", "tiny.sym"]


@pytest.mark.parametrize("arguments", [["check"], ["compile"], ["search", "--quiet"], ["map"]])
def test_a_wrong_spec_ends_with_1_and_all_its_diagnostics(tiny: Path, arguments: list[str]) -> None:
    tiny.write_text(WRONG)
    done = call(arguments[0], tiny, *arguments[1:])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "clases" in done.stderr
    assert "epochs = -1" in done.stderr


def test_an_override_is_checked_like_the_text(tiny: Path) -> None:
    done = call("compile", tiny, "--set", "width=-4")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "error[" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["check", "tiny.sym"], ["fmt", "tiny.sym"], ["compile", "tiny.sym"], ["compile", "tiny.sym", "--emit", "svg"]],
)
def test_torch_stays_out(tiny: Path, tmp_path: Path, arguments: list[str]) -> None:
    assert loaded_by(arguments, tmp_path) == "[]"


@pytest.mark.parametrize("emit", ["table", "json", "svg"])
def test_show_needs_no_torch(run: Path, tmp_path: Path, emit: str) -> None:
    assert loaded_by(["show", str(run), "--emit", emit], tmp_path) == "[]"


def loaded_by(arguments: list[str], cwd: Path) -> str:
    """Which of the slow libraries a command loads."""
    program = (
        "import sys\nfrom symdsl.cli import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print([name for name in ('torch', 'torchvision', 'sklearn') if name in sys.modules])"
    )
    return lines(output_of(program, cwd))[-1]


# check, explain, new


def test_check_of_a_right_spec_is_silent(tiny: Path) -> None:
    done = call("check", tiny)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_check_goes_on_to_the_next_spec(tiny: Path) -> None:
    Path("first.sym").write_text(WRONG)
    Path("second.sym").write_text(WRONG)
    done = call("check", "first.sym", tiny, "second.sym")
    assert done.exit_code == 1
    assert "first.sym:" in done.stderr
    assert "second.sym:" in done.stderr


@pytest.mark.parametrize(("given", "codes"), [(TINY, []), (WRONG, ["E301", "E402"]), (b"\xff", ["E102"])])
def test_check_of_standard_input(tiny: Path, given: str | bytes, codes: list[str]) -> None:
    done = CliRunner().invoke(main, ["check", "-", "tiny.sym", "--format", "json"], input=given)
    records = json.loads(done.stdout)
    assert done.exit_code == bool(codes)
    assert [record["code"] for record in records] == codes
    assert {record["filename"] for record in records} <= {"<stdin>"}


def test_standard_input_imports_from_the_working_folder_and_takes_settings(tiny: Path) -> None:
    Path("part.sym").write_text("network net {\n  input image(1, 8, 8)\n  flatten\n  layer h: FC -> classes\n}\n")
    text = 'import "part.sym"\nlet few = 3\ndata digits |> subset(few, few)\n'
    for settings, status in ([], 0), (["--set", "few=8"], 0), (["--set", "many=8"], 1):
        assert CliRunner().invoke(main, ["check", "-", *settings], input=text).exit_code == status


def test_check_as_json_gives_records_on_standard_output(tiny: Path) -> None:
    tiny.write_text(WRONG)
    done = call("check", tiny, "--format", "json")
    records = json.loads(done.stdout)
    assert done.exit_code == 1
    assert {record["filename"] for record in records} == {"tiny.sym"}
    assert all({"code", "message", "location", "end_location", "fix"} <= record.keys() for record in records)
    assert json.loads(call("check", "--format", "json", *[_written(tiny, TINY)]).stdout) == []


def test_check_for_github_annotates(tiny: Path) -> None:
    tiny.write_text(WRONG)
    done = call("check", tiny, "--format", "github")
    assert done.exit_code == 1
    assert all(line.startswith("::error file=tiny.sym,line=") for line in lines(done.stdout))
    assert len(lines(done.stdout)) == 2


SETTINGS = ["--set", "width = 8", "--set", "search.epochs =  ten"]


def test_check_says_where_a_setting_is_wrong(tiny: Path) -> None:
    done = call("check", tiny, *SETTINGS)
    assert done.exit_code == 1
    assert "error[E301]: unknown name `ten`\n  --> --set:2:18\n   2 | search.epochs =  ten\n" in done.stderr
    assert call("check", tiny, "--set", "width=8").exit_code == 0


def test_check_says_so_in_records_and_annotations(tiny: Path) -> None:
    (record,) = json.loads(call("check", tiny, *SETTINGS, "--format", "json").stdout)
    assert (record["filename"], record["location"]) == ("--set", {"line": 2, "column": 18})
    annotated = call("check", tiny, *SETTINGS, "--format", "github").stdout
    assert annotated == "::error title=E301::--set:2:18: unknown name `ten`\n"


def test_records_have_the_second_place(tiny: Path) -> None:
    (record,) = json.loads(call("check", tiny, "--set", "width=0", "--format", "json").stdout)[:1]
    assert record["notes"][-1]["message"] == "a value comes from here"
    assert (record["notes"][-1]["filename"], record["notes"][-1]["location"]["column"]) == ("--set", 7)


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_diagnostics_are_coloured_if_asked_for(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], coloured: bool
) -> None:
    tiny.write_text(WRONG)
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[1;31merror[" in call("check", tiny).stderr) is coloured


@pytest.mark.parametrize(("environment", "coloured"), [({"TERM": "xterm"}, True), ({"NO_COLOR": "1"}, False)])
def test_diagnostics_are_coloured_on_a_terminal(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], coloured: bool
) -> None:
    tiny.write_text(WRONG)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ours, theirs = pty.openpty()
    with process(["check", "tiny.sym"], Path.cwd(), stderr=theirs) as running, open(ours, "rb") as terminal:
        os.close(theirs)
        assert running.wait() == 1
        assert (b"\x1b[1;31merror[" in terminal.read1()) is coloured


def test_a_misspelt_spec_gets_a_suggestion(tiny: Path) -> None:
    assert "did you mean `tiny.sym`?" in call("check", "tniy.sym").stderr


def test_strict_counts_warnings(tiny: Path) -> None:
    tiny.write_text(f"let unused = 3\n{TINY}")
    assert call("check", tiny).exit_code == 0
    assert "warning[" in call("check", tiny).stderr
    assert call("check", tiny, "--strict").exit_code == 1


def test_explain_says_what_a_code_means() -> None:
    shown = call("explain", "e203")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("E203: ")
    assert "GCONV" in shown.stdout


def test_explain_colours_its_examples_where_colours_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = call("explain", "E203").stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = call("explain", "E203").stdout
    assert coloured != plain
    assert unstyle(coloured) == plain


def test_explain_of_an_unknown_code_is_one_line() -> None:
    done = call("explain", "E2033")
    assert (done.exit_code, done.stdout) == (3, "")
    assert lines(done.stderr) == ["error: there is no diagnostic `E2033`: did you mean `E203`?"]


def test_explain_of_what_is_no_code_says_which_there_are() -> None:
    done = call("explain", "F-FC")
    assert lines(done.stderr) == [
        "error: there is no diagnostic `F-FC`: there are `E101` to `W115`, as in `error[E101]`"
    ]


def test_a_run_in_the_place_of_a_spec_is_told_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "spec.sym").write_text("let a = 1\n")
    done = call("compile", str(tmp_path))
    assert f"= help: a run has its spec in `{tmp_path / 'spec.sym'}`" in done.stderr


def test_new_writes_a_spec_that_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("new", "demo").exit_code == 0
    assert call("check", "demo.sym", "--strict").exit_code == 0


def test_new_never_overwrites(tiny: Path) -> None:
    done = call("new", "tiny")
    assert done.exit_code == 3
    assert lines(done.stderr) == ["error: `tiny.sym` exists already: choose another name"]
    assert tiny.read_text() == TINY


# fmt


def test_fmt_refuses_what_is_too_large_without_reading_on(tiny: Path) -> None:
    done = CliRunner().invoke(main, ["fmt", "-"], input=b" " * (LARGEST + 2))
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"error[E103]: `<stdin>` has more than {LARGEST} bytes" in done.stderr


MESSY, TIDY = "let  a=1 // one\n", "let a = 1  // one\n"


@pytest.fixture
def messy(tiny: Path) -> Path:
    """A spec that is not in canonical layout, in the working folder."""
    path = Path("messy.sym")
    path.write_text(MESSY)
    path.chmod(0o640)
    return path


def test_fmt_rewrites_in_place_and_keeps_the_mode(tiny: Path, messy: Path) -> None:
    done = call("fmt", messy)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert (messy.read_text(), messy.stat().st_mode & 0o777) == (TIDY, 0o640)
    assert sorted(os.listdir()) == ["messy.sym", "tiny.sym"]


def test_fmt_follows_a_link(messy: Path) -> None:
    Path("link.sym").symlink_to(messy)
    assert call("fmt", "link.sym").exit_code == 0
    assert Path("link.sym").is_symlink()
    assert messy.read_text() == TIDY


def test_fmt_leaves_a_tidy_spec_untouched(messy: Path) -> None:
    messy.write_text(TIDY)
    before = messy.stat()
    assert call("fmt", messy).exit_code == 0
    assert (messy.stat().st_ino, messy.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_fmt_check_names_what_would_change(tiny: Path, messy: Path) -> None:
    Path("tidy.sym").write_text(TIDY)
    done = call("fmt", "--check", "tidy.sym", messy)
    assert (done.exit_code, done.stdout, done.stderr) == (1, "messy.sym\n", "")
    assert call("fmt", "--check", "tidy.sym").exit_code == 0
    assert messy.read_text() == MESSY


@pytest.mark.parametrize(("options", "status"), [(["--diff"], 0), (["--diff", "--check"], 1)])
def test_fmt_diff_writes_nothing(messy: Path, options: list[str], status: int) -> None:
    done = call("fmt", messy, *options)
    assert done.exit_code == status
    assert lines(done.stdout)[2:] == ["@@ -1 +1 @@", "-let  a=1 // one", "+let a = 1  // one"]
    assert messy.read_text() == MESSY


def test_fmt_diff_says_where_the_last_line_is_not_ended(messy: Path) -> None:
    messy.write_text("let a=1")
    assert lines(call("fmt", messy, "--diff").stdout)[3:] == ["-let a=1", "\\ No newline at end of file", "+let a = 1"]


def test_fmt_of_a_wrong_spec_leaves_it_alone_and_goes_on(tiny: Path, messy: Path) -> None:
    tiny.write_text("let a =")
    done = call("fmt", tiny, messy)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "error[E104]" in done.stderr
    assert (tiny.read_text(), messy.read_text()) == ("let a =", TIDY)


@pytest.mark.parametrize(
    ("given", "status", "printed"), [(MESSY, 0, TIDY), (TIDY, 0, TIDY), ("let a =", 1, ""), (b"\xff", 1, "")]
)
def test_fmt_of_standard_input(tmp_path: Path, given: str | bytes, status: int, printed: str) -> None:
    done = CliRunner().invoke(main, ["fmt", "-"], input=given)
    assert (done.exit_code, done.stdout) == (status, printed)
    assert ("<stdin>:1:" in done.stderr) == bool(status)


def test_fmt_of_what_cannot_be_written_is_one_line(messy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the mode of a file does not bind every user
    done = call("fmt", messy)
    assert (done.exit_code, lines(done.stderr)) == (3, ["error: messy.sym: cannot be written: it is read-only"])
    assert messy.read_text() == MESSY


# compile


def test_compile_shows_every_layer_and_candidate(tiny: Path) -> None:
    shown = call("compile", tiny).stdout
    for word in ("l1", "l2", "out", "F-FC", "CONV", "translations"):
        assert word in shown


def test_compile_as_json_follows_the_overrides(tiny: Path) -> None:
    narrow, wide = (json.loads(call("compile", tiny, "--emit", "json", "--set", f"width={w}").stdout) for w in (2, 3))
    assert [layer["name"] for layer in narrow["layers"]] == ["l1", "l2", "out"]
    assert narrow["parameters"] < wide["parameters"]


@pytest.mark.parametrize(("emit", "start"), [("svg", b"<"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("dot", b"digraph")])
def test_compile_writes_pictures(tiny: Path, emit: str, start: bytes) -> None:
    done = call("compile", tiny, "--emit", emit, "-o", f"out.{emit}")
    assert (done.exit_code, done.stdout) == (0, "")
    content = Path(f"out.{emit}").read_bytes()
    assert content.startswith(start)
    assert call("compile", tiny, "--emit", emit).stdout_bytes == content


def test_a_binary_picture_is_kept_off_a_terminal(tiny: Path) -> None:
    terminal, side = os.openpty()
    with process(["compile", "tiny.sym", "--emit", "png"], cwd=Path.cwd(), stdout=side) as running:
        _, complaint = running.communicate()
    os.close(side)
    os.close(terminal)
    assert running.returncode == 2
    assert "name a file with `-o FILE`" in words(complaint)


def test_an_output_that_cannot_be_written_is_one_line(tiny: Path) -> None:
    done = call("compile", tiny, "--emit", "svg", "-o", "nowhere/out.svg")
    assert done.exit_code == 3
    assert lines(done.stderr) == ["error: nowhere/out.svg: No such file or directory"]


def test_compile_on_a_device_measures_a_batch(tiny: Path) -> None:
    shown = call("compile", tiny, "--device", "cpu").stdout
    assert "cpu" in shown
    assert "ms" in shown


@pytest.mark.parametrize("command", ["search", "map", "compile"])
def test_a_device_that_is_not_there_is_one_line(tiny: Path, command: str) -> None:
    done = call(command, tiny, "--device", "cuda:99")
    assert (done.exit_code, done.stdout) == (3, "")
    (line,) = lines(done.stderr)
    assert line.startswith("error: no CUDA device")
    assert not Path("runs").exists()


# search, map


@pytest.mark.parametrize(("command", "objective"), [("search", "laplace"), ("map", "map")])
def test_a_search_fills_its_folder_and_shows_the_result(tiny: Path, command: str, objective: str) -> None:
    done = call(command, tiny, "--out", "out", "--set", "search.epochs=2", "--seed", "3", "--device", "cpu")
    assert done.exit_code == 0, done.output
    assert set(os.listdir("out")) >= FILES
    result = json.loads(Path("out/result.json").read_text())
    assert (result["objective"], result["seed"], result["epochs"]) == (objective, 3, 2)
    assert "l1" in done.stdout
    assert lines(done.stdout)[-1] == "picture: out/architecture.svg"
    assert sum(line.startswith("epoch ") for line in lines(done.stderr)) == 2
    assert spec.load(Path("out/spec.sym")).facts.search.seed == 3
    assert candidates(Path("out/learned.sym")) == {layer["name"]: layer["kept"] for layer in result["layers"]}


def candidates(path: Path) -> dict[str, list[str]]:
    """Names of the candidates of each layer of a spec."""
    layers = spec.load(path).facts.network.layers
    return {layer.name: [candidate.name for candidate in layer.candidates] for layer in layers}


def test_a_search_says_what_to_do_next_with_commands_that_work(tiny: Path) -> None:
    done = call("search", tiny, "--out", "out", "--set", "search.epochs=1", "--device", "cpu")
    first, second = lines(done.stderr)[-2:]
    assert first.startswith("next: symdsl map out/spec.sym  # the baseline"), "with settings, the spec as it was run"
    assert second.startswith("      symdsl report out ")
    done = call("map", "out/spec.sym", "--out", "map", "--device", "cpu")
    assert lines(done.stderr)[-1] == "next: symdsl report map  # one HTML page about it"
    names = {json.loads(Path(folder, "run.json").read_text())["spec"] for folder in ("out", "map")}
    assert names == {tiny.stem}, "the baseline is called like what it is compared with"
    assert "next" not in call("map", tiny, "--out", "quiet", "--device", "cpu", "--quiet").output
    done = call("search", tiny, "--out", "unset", "--device", "cpu")
    assert lines(done.stderr)[-2].startswith(f"next: symdsl map {tiny} ")


def test_quiet_and_json_leave_the_result_alone(tiny: Path) -> None:
    tiny.write_text(f"let unused = 3\n{TINY}")
    done = call("search", tiny, "--out", "out", "--quiet", "--json", "--device", "cpu")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads(Path("out/result.json").read_text())


def test_the_default_folder_is_named_after_the_spec(tiny: Path) -> None:
    assert call("map", tiny, "--quiet", "--set", "search.epochs=1").exit_code == 0
    (folder,) = Path("runs/tiny").iterdir()
    assert (folder / "result.json").exists()


def test_a_finished_run_is_never_overwritten(run: Path, tiny: Path) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    done = call("search", tiny, "--out", run)
    assert (done.exit_code, done.stdout, len(lines(done.stderr))) == (3, "", 1)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_an_out_that_is_a_file_is_one_line(tiny: Path) -> None:
    done = call("search", tiny, "--out", "tiny.sym")
    assert (done.exit_code, done.stdout, len(lines(done.stderr))) == (3, "", 1)
    assert tiny.read_text() == TINY


def test_an_out_that_cannot_be_made_is_one_line(tiny: Path) -> None:
    done = call("search", tiny, "--out", "/proc/nowhere/run")
    assert (done.exit_code, done.stdout, len(lines(done.stderr))) == (3, "", 1)
    assert "/proc/nowhere" in done.stderr


@pytest.mark.parametrize(
    ("name", "index", "value", "complaint"),
    [
        ("x_train", (7, 0, 2, 3), np.nan, "`x_train[7]` holds a number that is not finite"),
        ("y_test", 5, 3, "`y_test[5]` (=3) must be a class from 0 to 2"),
    ],
)
def test_bad_data_are_one_line(tiny: Path, name: str, index: Any, value: float, complaint: str) -> None:
    rows = {"train": 12, "test": 6}
    found = {f"x_{part}": np.ones((count, 1, 6, 6)) for part, count in rows.items()}
    found |= {f"y_{part}": np.arange(count) % 3 for part, count in rows.items()}
    found[name][index] = value
    np.savez("data.npz", **found)
    tiny.write_text(re.sub(r"synthetic\(.*?\)", 'arrays("data.npz")', TINY))
    done = call("search", tiny, "--out", "out", "--device", "cpu")
    assert (done.exit_code, done.stdout) == (3, "")
    assert lines(done.stderr) == [f"error: data.npz: {complaint}"]
    assert not Path("out").exists()


def test_a_truncated_data_file_is_said_where_the_spec_names_it(tiny: Path) -> None:
    Path("data.npz").write_bytes(b"PK\x03\x04 cut short")
    tiny.write_text(re.sub(r"synthetic\(.*?\)", 'arrays("data.npz")', TINY))
    done = call("search", tiny, "--out", "out")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "data.npz" in done.stderr
    assert not Path("out").exists()


def without_times(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return {name: value for name, value in result.items() if name != "wall_s"}


def test_interrupted_and_resumed_equals_uninterrupted(tiny: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Silent, "on_epoch", interrupting)
        first = call("search", tiny, "--out", "out", "--device", "cpu", "--quiet")
    assert (first.exit_code, first.stdout) == (130, "")
    assert RunFolder.view("out").status == "interrupted"
    second = call("search", "--device", "cpu", "--quiet", "--resume", "out")
    assert second.exit_code == 0, second.output
    assert without_times(Path("out")) | {"spec": "tiny"} == without_times(run) | {"spec": "tiny"}
    assert (Path("out") / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()


def interrupting(watcher: Silent, metrics: dict[str, Any]) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("request_to_end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_search_says_how_to_go_on(tiny: Path, request_to_end: signal.Signals) -> None:
    settings = ["--set", "search.epochs=2000", "--set", "width=3"]
    with process(["search", "tiny.sym", *settings, "--out", "my run", "--device", "cpu"], cwd=Path.cwd()) as running:
        assert running.stderr is not None
        heard = [next(running.stderr), next(running.stderr)]
        waiting = call("show", "my run")
        running.send_signal(request_to_end)
        rest = running.communicate()[1]
    assert running.returncode == 130
    assert heard[0] == "run folder my run\n"
    assert lines(rest)[-1] == "interrupted; continue with: symdsl search --device cpu --resume 'my run'"
    assert RunFolder.view("my run").status == "interrupted"
    assert lines(waiting.stderr) == [
        "error: my run/result.json: no result yet, the run is still going on; wait for it to end"
    ]


def test_a_signal_that_is_ignored_stays_ignored(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    monkeypatch.setattr(Silent, "on_epoch", lambda watcher, metrics: os.kill(os.getpid(), signal.SIGHUP))
    try:
        done = call("map", tiny, "--out", "out", "--quiet", "--device", "cpu")
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, kept)
    assert done.exit_code == 0, done.output


def test_a_disk_that_fills_up_costs_no_more_than_an_interruption(
    tiny: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write_through", _full_after(2))  # one checkpoint is two files
        first = call("search", tiny, "--out", "out", "--device", "cpu")
    assert (first.exit_code, first.stdout) == (3, "")
    assert lines(first.stderr)[-2:] == [
        "failed; once that is fixed, continue with: symdsl search --device cpu --resume out",
        "error: out/checkpoint.safetensors: cannot be written: No space left on device",
    ]
    assert RunFolder.view("out").status == "failed"
    second = call("search", "out/spec.sym", "--device", "cpu", "--quiet", "--resume", "out")
    assert second.exit_code == 0, second.output
    assert without_times(Path("out"))["spec"] == "tiny"
    assert (Path("out") / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()


def _full_after(writes: int) -> Callable[[Path, bytes], None]:
    """Writes that many files, then finds the disk full."""
    left = iter(range(writes))

    def write(path: Path, content: bytes) -> None:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        path.write_bytes(content)

    return write


# show, eval


def test_show_prints_the_table_and_the_result(run: Path) -> None:
    shown = call("show", run).stdout
    for word in ("l1", "F-FC", "CONV", "effective"):
        assert word in shown
    assert json.loads(call("show", run, "--emit", "json").stdout) == json.loads((run / "result.json").read_text())


@pytest.mark.parametrize("emit", ["dot", "svg", "png"])
def test_show_draws_the_picture_of_the_run(run: Path, tmp_path: Path, emit: str) -> None:
    done = call("show", run, "--emit", emit, "-o", tmp_path / "out")
    assert (done.exit_code, done.stdout) == (0, "")
    assert (tmp_path / "out").read_bytes() == (run / f"architecture.{emit}").read_bytes()


@pytest.mark.parametrize("command", ["show", "eval"])
def test_what_is_no_run_folder_is_one_line(tiny: Path, command: str) -> None:
    for path in ("nowhere", "tiny.sym", "."):
        done = call(command, path)
        assert (done.exit_code, done.stdout, len(lines(done.stderr))) == (3, "", 1)


def test_a_damaged_graph_is_one_line(run: Path, tmp_path: Path) -> None:
    for path in run.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "graph.json").write_text('{"schema": 1}')
    done = call("show", tmp_path, "--emit", "svg")
    assert done.exit_code == 3
    (line,) = lines(done.stderr)
    assert line.startswith(f"error: {tmp_path}/graph.json: damaged")


def test_a_reader_that_leaves_early_is_no_error(run: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with process(["show", run], cwd=tmp_path, stdout=writing) as running:
        os.close(writing)
        _, complaint = running.communicate()
    assert (running.returncode, complaint) == (0, "")


def test_a_full_standard_output_is_one_line(run: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full, process(["show", run], cwd=tmp_path, stdout=full) as running:
        _, complaint = running.communicate()
    assert (running.returncode, lines(complaint)) == (3, ["error: No space left on device"])


def test_a_search_outlives_the_reader_of_its_log(tiny: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with process(["map", "tiny.sym", "--out", "out"], cwd=Path.cwd(), stderr=writing) as running:
        os.close(writing)
        shown, _ = running.communicate()
    assert running.returncode == 0
    assert lines(shown)[-1] == "picture: out/architecture.svg"


def test_eval_repeats_the_metrics_of_the_result(run: Path) -> None:
    expected = json.loads((run / "result.json").read_text())["test"]
    measured = json.loads(call("eval", run, "--device", "cpu", "--json").stdout)
    assert {name: measured[name] for name in expected} == pytest.approx(expected)
    assert f"accuracy: {expected['accuracy']:.4f}" in call("eval", run, "--device", "cpu").stdout


def test_eval_takes_other_data(run: Path) -> None:
    other = json.loads(call("eval", run, "--set", "data.test=200", "--device", "cpu", "--json").stdout)
    assert other["nll"] != json.loads((run / "result.json").read_text())["test"]["nll"]


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


# data


def test_data_are_described_and_drawn(tiny: Path) -> None:
    done = call("data", tiny)
    assert done.exit_code == 0
    assert re.search(r"\|> standardize +training +48 +1x6x6 +0.000 +1.000", done.stdout)
    assert re.search(r"\n ?2 +16 +\d+ +█{24}\n", done.stdout)
    assert lines(done.stdout)[-1] == "pictures: runs/tiny/data.png"
    assert Path("runs/tiny/data.png").read_bytes().startswith(b"\x89PNG")


def test_data_that_do_not_fit_in_memory_are_said_to_be_mapped(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = call("data", tiny).stdout
    monkeypatch.setattr("symdsl.data.memory.free_memory", lambda: 12_000)
    done = call("data", tiny)
    assert (done.exit_code, done.stdout) == (0, expected)
    assert re.fullmatch(r"note: 48 training and 20 test images of 1x6x6 take 0.0 GiB, .* are mapped .*\n", done.stderr)
    assert "0.0 GiB of memory" in json.loads(call("data", tiny, "--json").stdout)["mapped"]


def test_data_as_json_with_pictures_elsewhere(tiny: Path) -> None:
    done = call("data", tiny, "--json", "--out", "sheets/tiny.png", "--set", "data.classes=50", "--examples", "1")
    content = json.loads(done.stdout)
    assert (content["task"], content["classes"], len(content["labels"])) == ("classification", 50, 50)
    assert done.stderr == "pictures: sheets/tiny.png\n"
    assert not Path("runs").exists()
    assert Path("sheets/tiny.png").exists()
    assert (
        "50 classes; examples of each: training 0 to 1, test 0 to 1"
        in call("data", tiny, "--set", "data.classes=50").stdout
    )


def test_pictures_are_opened_on_request(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("click.launch", opened.append)
    monkeypatch.setattr("rich_click.launch", opened.append)
    call("data", tiny, "--open", "--out", "a.png")
    assert opened == ["a.png"]


def test_targets_are_described(tiny: Path) -> None:
    x, y = np.zeros((6, 6, 6), np.float32), np.arange(6.0)
    np.savez("a.npz", x_train=x, y_train=y, x_test=x, y_test=-y)
    tiny.write_text(re.sub(r"data .*", 'data arrays("a.npz")', TINY))
    shown = call("data", tiny).stdout
    assert re.search(r"\n ?0 +training +2.5 +1.708 +0 +5 *\n +test +-2.5 +1.708 +-5 +-?0\n", shown)


# Several seeds


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search with two seeds."""
    folder = tmp_path_factory.mktemp("several") / "seeds"
    runner.search_seeds(spec.parse(TINY), [1, 2], device="cpu", out=folder)
    return folder


def test_seeds_are_counted_up_from_the_spec_s(tiny: Path) -> None:
    done = call("map", tiny, "--seeds", "2", "--seed", "8", "--out", "all", "--device", "cpu")
    assert done.exit_code == 0
    assert {path.name for path in Path("all").iterdir()} - {".lock"} == {
        *("seed-8", "seed-9"),
        *("seeds.json", "seeds.txt", "spec.sym", "architecture.svg"),
    }
    assert RunFolder.view("all/seed-9").read_result()["objective"] == "map"
    assert "map, 2 of 2 seeds finished" in done.stdout
    assert lines(done.stdout)[-2:] == [
        "runs: all, a folder for each seed",
        "picture of mean shares: all/architecture.svg",
    ]
    assert "seed 9: epoch 3/3" in done.stderr


def test_seeds_as_json(tiny: Path) -> None:
    done = call("search", tiny, "--seeds", "5,", "--quiet", "--json", "--device", "cpu")
    assert (done.exit_code, done.stderr) == (0, "")
    assert [one["seed"] for one in json.loads(done.stdout)["seeds"]] == [5]
    (folder,) = Path("runs", "tiny").iterdir()
    assert folder.name.endswith("-seeds")


@pytest.mark.parametrize(
    ("emit", "expected"),
    [
        ("table", "all of them chose the same type in"),
        ("json", '"finished": 2'),
        ("svg", "learned structure, mean of 2 seeds, test accuracy"),
    ],
)
def test_show_of_seeds(several: Path, emit: str, expected: str) -> None:
    assert expected in call("show", several, "--emit", emit).stdout


def test_show_of_seeds_needs_no_torch(several: Path, tmp_path: Path) -> None:
    assert loaded_by(["show", str(several)], tmp_path) == "[]"


def test_a_single_run_is_asked_for_where_several_are(several: Path) -> None:
    done = call("eval", several)
    assert done.exit_code == 3
    assert "holds the runs of several seeds, each in a folder of its own; choose one" in done.stderr


def test_seeds_that_fail_end_with_3_after_the_table(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest, failing = runner.seeds.Task.run, {2}

    def run(task: runner.seeds.Task, observer: Any, data: Any) -> None:
        if task.seed in failing:
            raise RunError("no room")
        honest(task, observer, data)

    monkeypatch.setattr(runner.seeds.Task, "run", run)
    done = call("search", tiny, "--seeds", "1,2", "--out", "all", "--set", "width=1", "--device", "cpu")
    assert done.exit_code == 3
    assert "seed 2 failed: no room" in done.stdout
    assert lines(done.stderr)[-1] == (
        "error: 1 of 2 seeds failed; once that is fixed, continue with: symdsl search --device cpu --resume all"
    )
    failing.clear()
    assert "started from another spec" in call("search", tiny, "--device", "cpu", "--resume", "all").stderr
    assert call("search", "--device", "cpu", "--resume", "all").exit_code == 0
    assert call("search", tiny, "--set", "width=1", "--device", "cpu", "--resume", "all").exit_code == 0


def test_interrupted_seeds_say_how_to_go_on(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(task: runner.seeds.Task, observer: Any, data: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.seeds.Task, "run", run)
    done = call("search", tiny, "--seeds", "3", "--jobs", "1", "--out", "all")
    assert (done.exit_code, done.stdout) == (130, "")
    assert lines(done.stderr)[-1] == "interrupted; continue with: symdsl search --jobs 1 --resume all"
    assert "seed 711 was interrupted" in call("show", "all").stdout
    refused = call("show", "all", "--emit", "svg")
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert "no seed is finished, there is nothing to draw yet" in refused.stderr


# ---------------------------------------------------------------- sweeps


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a sweep stay in this process, where they take a moment."""
    monkeypatch.setitem(engines.ENGINES, "local", lambda resources, device, jobs: engines.InProcess())


def test_a_sweep_ends_in_a_table_a_page_and_folders(tiny: Path, in_process: None) -> None:
    done = call("sweep", tiny, "--set", "width=1,2", "--objective", "both", "--out", "all", "--device", "cpu")
    assert (done.exit_code, lines(done.stderr)[0]) == (0, "4 runs")
    assert "4 of 4 runs finished" in done.stdout
    assert lines(done.stdout)[-2:] == ["table: all/sweep.csv", "report: all/sweep.html"]
    names = {f"tiny-width={width}-{objective}-seed-711" for width in (1, 2) for objective in ("laplace", "map")}
    assert {path.name for path in Path("all").iterdir() if path.is_dir()} == names
    assert call("show", "all").stdout == "".join(f"{line}\n" for line in lines(done.stdout)[:-2])
    assert [row["width"] for row in json.loads(call("show", "all", "--emit", "json").stdout)] == ["1", "1", "2", "2"]
    assert "a sweep has no picture; choose one of its runs" in call("show", "all", "--emit", "svg").stderr
    assert call("report", "all", "-o", "page.html").exit_code == 0
    assert call("runs", "all").stdout.count("finished") == 4
    refused = call("eval", "all")
    assert (refused.exit_code, "holds the runs of a sweep" in refused.stderr) == (3, True)


def test_a_sweep_that_fails_or_is_interrupted_says_how_to_go_on(
    tiny: Path, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, raised = engines.Task.run, [KeyboardInterrupt(), RunError("no room"), RunError("no room")]

    def run(task: engines.Task, observer: Any, data: Any) -> None:
        if raised:
            raise raised.pop(0)
        honest(task, observer, data)

    monkeypatch.setattr(engines.Task, "run", run)
    done = call("sweep", tiny, "--out", "all", "--device", "cpu", "--resource", "cpus=1")
    way_on = "symdsl sweep --resource cpus=1 --device cpu --resume all"
    assert (done.exit_code, lines(done.stderr)[-1]) == (130, f"interrupted; continue with: {way_on}")
    done = call("sweep", "--device", "cpu", "--resume", "all")
    assert done.exit_code == 3
    assert "tiny-seed-711 failed: no room" in done.stdout
    assert lines(done.stderr)[-1] == (
        "error: 1 of 1 runs failed; once that is fixed, continue with: symdsl sweep --device cpu --resume all"
    )
    done = call("sweep", "--device", "cpu", "--resume", "all", "--quiet", "--json")
    assert (done.exit_code, done.stderr, json.loads(done.stdout)[0]["status"]) == (0, "", "finished")


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        ([], 2, "Missing argument 'SPEC...': only"),
        (["tiny.sym", "--set", "width"], 2, "`width` must have the form K=V or K=V,V,..."),
        (["tiny.sym", "--set", "width=1,,2"], 2, "must have the form"),
        (["tiny.sym", "--set", "width=1", "--set", "width=2"], 2, "`width` is given twice: write `width=V,V`"),
        (["tiny.sym", "--set", "width=1,1"], 2, "must list different values"),
        (["tiny.sym", "--set", "search.seed=9007199254740993,9007199254740992", "--seeds", "2"], 2, "seeds are given"),
        (["tiny.sym", "--set", "rate=0.01,1e-2"], 2, "must list different values"),
        (["tiny.sym", "--resource", "four"], 2, "`four` must have the form K=V"),
        (["tiny.sym", "--resume", "all"], 2, "a sweep continues as it was started"),
        (["tiny.sym", "--set", "widht=1,2"], 1, "did you mean `width`?"),
        (["tiny.sym", "--set", "width=1,0"], 1, "--set:1:7"),
        (["tiny.sym", "--resource", "cpu=2"], 2, "did you mean `cpus`?"),
        (["tiny.sym", "--resource", "cpus=1.5"], 2, "must be a whole number"),
        (["tiny.sym", "--resource", "cpus=1", "--resource", "cpus=2"], 2, "`cpus` is given twice"),
        (["--resume", "nowhere"], 3, "error: nowhere: no such folder"),
        (["--resume", "."], 3, "error: .: does not hold runs of a sweep, there is no sweep.json"),
    ],
)
def test_a_sweep_that_cannot_be_run(tiny: Path, arguments: list[str], status: int, complaint: str) -> None:
    done = call("sweep", *arguments)
    assert done.exit_code == status
    assert " ".join(complaint.split()) in " ".join(done.stderr.replace("│", "").split())
    assert not Path("runs").exists()


# ---------------------------------------------------------------- profiles

PROFILE = """
profile quick {
  width         = 3
  search.epochs = 1
}
"""
QUICK = "profile quick: width 2 -> 3, search.epochs 3 -> 1\n"


@pytest.fixture
def quick(tiny: Path) -> Path:
    """The small spec with a profile."""
    tiny.write_text(TINY + PROFILE)
    return tiny


@pytest.mark.parametrize("command", ["search", "map"])
def test_a_run_says_what_its_profile_changed(quick: Path, command: str) -> None:
    done = call(command, quick, "--set", "profile=quick", "--out", "out", "--device", "cpu")
    assert done.exit_code == 0
    assert done.stderr.startswith(QUICK)
    info = json.loads(Path("out/run.json").read_text())
    assert (info["profile"], json.loads(Path("out/result.json").read_text())["epochs"]) == ("quick", 1)
    assert "profile" not in Path("out/spec.sym").read_text()
    assert spec.load("out/spec.sym").facts.network.nodes[1].out_shape.channels == 3


def test_a_quiet_run_does_not_say_it(quick: Path) -> None:
    done = call("map", quick, "--set", "profile=quick", "--quiet", "--out", "out", "--device", "cpu")
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["compile", "data"])
def test_what_shows_a_spec_says_what_its_profile_changed(quick: Path, command: str) -> None:
    assert call(command, quick, "--set", "profile=quick", "--set", "search.epochs=9").stderr.startswith(
        "profile quick: width 2 -> 3\n"
    )
    assert "profile" not in call(command, quick).stderr


def test_a_run_with_a_profile_is_resumed_with_it(quick: Path) -> None:
    settings = ["--set", "profile=quick", "--set", "search.epochs=2"]

    class Interrupting(Callback):
        def on_epoch(self, metrics: Any) -> None:
            raise KeyboardInterrupt

    loaded = spec.load(quick, {"profile": "quick", "search.epochs": 2})
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        runner.search(loaded, device="cpu", out="out", callbacks=[Interrupting()])
    assert "started from another spec" in call("search", quick, "--device", "cpu", "--resume", "out").stderr
    resume = ["--device", "cpu", "--resume", "out"]
    assert call("search", quick, *settings, *resume).exit_code == 0
    info = json.loads(Path("out/run.json").read_text())
    assert (info["status"], info["profile"]) == ("finished", "quick")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_every_seed_of_a_search_says_which_profile_it_has(quick: Path, jobs: str) -> None:
    options = ["--seeds", "1,2", "--jobs", jobs, "--out", "all", "--device", "cpu"]
    done = call("search", quick, "--set", "profile=quick", *options)
    assert done.exit_code == 0
    assert [json.loads(path.read_text())["profile"] for path in Path("all").glob("*/run.json")] == ["quick", "quick"]


def test_a_run_without_a_profile_keeps_them_in_its_spec(quick: Path) -> None:
    assert call("map", quick, "--set", "search.epochs=1", "--out", "out", "--device", "cpu").exit_code == 0
    assert json.loads(Path("out/run.json").read_text())["profile"] is None
    assert spec.load("out/spec.sym", {"profile": "quick"}).facts.search.epochs == 1


def test_another_seed_leaves_the_profile(quick: Path) -> None:
    result = runner.search(spec.load(quick, {"profile": "quick"}), device="cpu", out="out", seed=5)
    assert (result["seed"], json.loads(Path("out/run.json").read_text())["profile"]) == (5, "quick")
    assert result.spec.profile is not None
    assert str(result.spec.profile) == QUICK.strip()


def test_a_rotten_profile_fails_a_check(quick: Path) -> None:
    assert call("check", quick).exit_code == 0
    quick.write_text((TINY + PROFILE).replace("width         = 3", "width         = 0"))
    done = call("check", quick)
    assert done.exit_code == 1
    assert done.stderr.count("error[E402]: `channels` (=0) must be at least 1") == 2
    assert "a value comes from here" in done.stderr
    assert "profile quick {\n     |         ----- with this profile\n" in done.stderr


def test_the_help_of_set_names_profiles() -> None:
    assert "profile=NAME" in unstyle(call("check", "--help").stdout)


# ---------------------------------------------------------------- runs, report, --log


def test_runs_are_listed(run: Path) -> None:
    shown = call("runs", run.parent)
    assert shown.exit_code == 0
    assert "finished" in shown.stdout
    (found,) = json.loads(call("runs", run.parent, "--json").stdout)
    assert (found["folder"], found["status"], found["seed"]) == (str(run), "finished", 711)
    assert found["accuracy"] == json.loads((run / "result.json").read_text())["test"]["accuracy"]


def test_where_there_are_no_runs_it_says_so(tmp_path: Path) -> None:
    empty = call("runs", tmp_path)
    assert (empty.exit_code, empty.stdout, empty.stderr) == (0, "", f"no runs in {tmp_path}\n")
    missing = call("runs", tmp_path / "none")
    assert (missing.exit_code, missing.stderr) == (3, f"error: {tmp_path / 'none'}: no such folder\n")


def test_listing_and_reporting_need_no_torch(run: Path, tmp_path: Path) -> None:
    program = (
        "import sys\nfrom symdsl.cli import main\n"
        f"main(['runs', {str(run.parent)!r}], standalone_mode=False)\n"
        f"main(['report', {str(run)!r}, '-o', 'page.html'], standalone_mode=False)\n"
        "print('torch' in sys.modules)"
    )
    assert output_of(program, tmp_path).endswith("report: page.html\nFalse\n")


def test_a_report_is_one_page(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("report", run)
    assert (done.exit_code, done.stdout) == (0, "report: report.html\n")
    assert os.listdir(tmp_path) == ["report.html"]
    assert "<title>tiny" in Path("report.html").read_text()
    wrong = call("report", tmp_path)
    assert (wrong.exit_code, wrong.stderr) == (3, f"error: {tmp_path}: not a run folder, it holds no run.json\n")


def test_a_search_is_logged_as_asked(tiny: Path) -> None:
    options = ["--set", "search.epochs=2", "--device", "cpu", "--quiet", "--log", "csv", "--log", "tensorboard"]
    done = call("search", tiny, "--out", "out", *options)
    assert done.exit_code == 0, done.output
    assert len(lines(Path("out/metrics.csv").read_text())) == 3
    assert len(os.listdir("out/tensorboard")) == 1
    assert call("search", tiny, "--out", "other", "--log", "nothing").exit_code == 2


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_every_seed_is_logged(tiny: Path, jobs: str) -> None:
    options = ["--seeds", "1,2", "--jobs", jobs, "--device", "cpu", "--log", "csv", "--set", "search.epochs=2"]
    assert call("search", tiny, *options, "--out", "all").exit_code == 0
    for seed in (1, 2):
        assert len(lines(Path(f"all/seed-{seed}/metrics.csv").read_text())) == 3


def test_the_way_on_names_the_loggers(tiny: Path) -> None:
    with process(
        ["search", "tiny.sym", "--set", "search.epochs=2000", "--log", "csv", "--out", "out"], Path.cwd()
    ) as run:
        assert run.stderr is not None
        next(run.stderr), next(run.stderr)
        run.send_signal(signal.SIGINT)
        rest = run.communicate()[1]
    assert lines(rest)[-1] == "interrupted; continue with: symdsl search --log csv --resume out"


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["-o", "out.svg"], b"<?xml"),
        (["-o", "out.json"], b"{"),
        (["-o", "out.txt"], b"\n layer"),
        (["-o", "out.svg", "--emit", "json"], b"{"),
        (["--emit", "json", "-o", "out.svg"], b"{"),
    ],
)
def test_the_suffix_of_an_output_says_what_is_written(tiny: Path, words: list[str], start: bytes) -> None:
    assert call("compile", tiny, *words).exit_code == 0
    (output,) = Path().glob("out.*")
    assert output.read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["out.jpg", "out.JPEG", "out.webp"])
def test_pictures_of_other_formats_are_refused(tiny: Path, name: str) -> None:
    done = call("compile", tiny, "-o", name)
    assert done.exit_code == 2
    assert "name one of summary, json, graph, dot, svg, png" in " ".join(done.stderr.replace("│", " ").split())
    assert os.listdir() == ["tiny.sym"]
    assert call("compile", tiny, "-o", name, "--emit", "svg").exit_code == 0


@pytest.mark.parametrize("chained", ["cause", "context"])
def test_an_error_in_place_of_ctrl_c_ends_as_ctrl_c_does(monkeypatch: pytest.MonkeyPatch, chained: str) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            if chained == "cause":
                raise RuntimeError("in an import") from error
            raise RuntimeError("in an import")  # noqa: B904

    monkeypatch.setattr("symdsl.runs.listing.listed", interrupted)
    done = call("runs")
    assert (done.exit_code, done.stdout, lines(done.stderr)) == (130, "", ["interrupted"])


def test_an_error_of_its_own_is_no_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    error = RuntimeError("a bug")
    error.__cause__ = error
    monkeypatch.setattr("symdsl.runs.listing.listed", lambda folder: (_ for _ in ()).throw(error))
    done = call("runs")
    assert done.exception is error
