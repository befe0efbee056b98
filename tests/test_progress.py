from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

from symdsl import progress
from symdsl.progress import BarsOfAll, Callbacks, Lines, Metrics, Silent, figures, observers

FOLDER = Path("runs/demo")
FIRST = {"epoch": 1, "loss": 2.5, "nll": 2.25, "accuracy": 0.25, "lr": 0.005, "wall_s": 1.5}
SECOND = FIRST | {"epoch": 2, "loss": 1.25, "neg_log_evidence_per_example": 1.75, "wall_s": 3.0}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watch(watcher: Silent, resumed_from: int = 0) -> None:
    watcher.on_start(FOLDER, 2, resumed_from)
    watcher.on_epoch(FIRST)
    watcher.on_note("path [l1.F-FC] is pruned")
    watcher.on_epoch(SECOND)
    watcher.on_finish({"epochs": 2})


def watch_one(stream: io.StringIO, quiet: bool = False) -> Silent:
    with observers(quiet, stream) as display:
        watch(watcher := display.of())
    return watcher


def test_a_log_gets_one_plain_line_per_epoch() -> None:
    stream = io.StringIO()
    watch_one(stream)
    assert stream.getvalue().splitlines() == [
        "run folder runs/demo",
        "epoch 1/2  loss 2.5000  accuracy 0.2500  1.5 s",
        "path [l1.F-FC] is pruned",
        "epoch 2/2  loss 1.2500  accuracy 0.2500  -log evidence/example 1.7500  3.0 s",
    ]


def test_a_resumed_log_says_where_it_goes_on() -> None:
    stream = io.StringIO()
    watch(Lines(stream), resumed_from=1)
    assert stream.getvalue().splitlines()[0] == "run folder runs/demo, resumed after epoch 1"


def test_a_terminal_gets_a_bar_with_phase_figures_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    stream = Terminal()
    watch_one(stream)
    shown = stream.getvalue()
    assert "run folder runs/demo" in shown
    assert "path [l1.F-FC] is pruned" in shown
    last = next(line for line in reversed(shown.splitlines()) if "2/2" in line)
    for words in (
        "learning structure",
        "2/2",
        "loss 1.2500",
        "accuracy 0.2500",
        "-log evidence/example 1.7500",
        "0:00",
    ):
        assert words in last


def test_quiet_says_nothing_and_remembers_the_folder() -> None:
    stream = Terminal()
    watcher = watch_one(stream, quiet=True)
    assert stream.getvalue() == ""
    assert watcher.folder == FOLDER


def interrupted(stream: io.StringIO) -> None:
    with observers(quiet=False, stream=stream) as display:
        display.of().on_start(FOLDER, 2, 0)
        raise KeyboardInterrupt("stopped")


def test_the_bar_gives_the_terminal_back_when_a_search_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        interrupted(stream)
    assert stream.getvalue().rfind("\x1b[?25h") > stream.getvalue().rfind("\x1b[?25l")


def test_figures_that_are_not_there_are_left_out() -> None:
    assert figures({"loss": 1.0, "accuracy": None}) == "loss 1.0000"


def test_a_regression_shows_what_it_explains() -> None:
    assert figures({"loss": 1.0, "r2": 0.5}) == "loss 1.0000  R² 0.5000"


def load(watcher: Silent) -> None:
    watcher.on_loading("reading images", 10, 4000)
    watcher.on_loading("reading images", 4000, 4000)
    watcher.on_loading("standardize", 0, 0)
    watcher.on_start(FOLDER, 2, 0)


def test_a_log_says_how_far_the_data_are_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    load(Lines(stream, "seed 1"))
    assert stream.getvalue() == "seed 1: run folder runs/demo\n"
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    load(Lines(stream, "seed 1"))
    assert stream.getvalue().splitlines()[1:] == [
        "seed 1: reading images: 10 of 4,000",
        "seed 1: reading images: 4,000 of 4,000",
        "seed 1: standardize",
        "seed 1: run folder runs/demo",
    ]


def test_a_bar_goes_over_the_data_before_it_goes_over_the_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    stream = Terminal()
    display = BarsOfAll(stream)
    bar = display.of()
    with display:
        bar.on_loading("reading images", 4000, 4000)
    assert re.search(r"reading images.*4000/4000", stream.getvalue())
    with display:
        load(bar)
    assert re.search(r"training[^\n]*m0/2", stream.getvalue())


def test_a_path_in_brackets_is_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    stream = Terminal()
    with observers(quiet=False, stream=stream) as display:
        display.of("seed [1]").on_loading("reading /data/a[/b]/x.npz", 1, 2)
    assert "seed [1]: reading /data/a[/b]/x.npz" in stream.getvalue()


def watch_two(stream: io.StringIO) -> None:
    with observers(quiet=False, stream=stream) as all_of_them:
        all_of_them.on_start(FOLDER)
        first, second = (all_of_them.of(f"seed {seed}") for seed in (1, 2))
        watch(first)
        watch(second, resumed_from=1)
        all_of_them.on_note("seed 2 failed: no room")
        assert all_of_them.folder == FOLDER


def test_lines_of_several_searches_have_their_titles() -> None:
    stream = io.StringIO()
    watch_two(stream)
    shown = stream.getvalue().splitlines()
    assert shown[0] == "seed 1: run folder runs/demo"
    assert shown[4] == "seed 2: run folder runs/demo, resumed after epoch 1"
    assert shown[-1] == "seed 2 failed: no room"


def test_a_terminal_gets_a_bar_for_each_of_several_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    stream = Terminal()
    watch_two(stream)
    last = stream.getvalue().splitlines()[-3:]
    assert any("seed 1: learning structure" in line for line in last)
    assert any("seed 2: learning structure" in line for line in last)
    assert "seed 2 failed: no room" in stream.getvalue()


def test_quiet_observers_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with observers(quiet=True) as all_of_them:
        all_of_them.on_start(FOLDER)
        watch(all_of_them.of("seed 1"))
        all_of_them.on_note("nothing")
    assert capsys.readouterr() == ("", "")


class Hearing:
    """Has no more than two of the methods, and no base."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def on_epoch(self, record: Metrics) -> None:
        self.heard.append(record["epoch"])

    def on_fail(self, error: BaseException) -> None:
        self.heard.append(error)


def test_a_callback_hears_what_it_has_a_method_for() -> None:
    few, silent = Hearing(), Silent()
    watch_with = Callbacks([few, silent])
    watch_with.on_start(FOLDER, 2, 0)
    watch_with.on_epoch(FIRST)
    watch_with.on_note("nobody has a method for it")
    watch_with.on_finish({"epochs": 2})
    assert few.heard == [1]
    assert silent.folder == FOLDER


def test_an_object_without_the_methods_is_no_callback() -> None:
    with pytest.raises(TypeError, match=r"`callbacks\[1\]` \(=3\) must have at least one of on_loading, on_start"):
        Callbacks([Hearing(), 3])


def test_a_list_of_objects_is_wanted() -> None:
    with pytest.raises(TypeError, match=r"`callbacks` \(=.*Silent object.*\) must be a list"):
        Callbacks(Silent())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"`callbacks\[0\]` \(=<class .*Silent'>\) must have at least one of"):
        Callbacks([Silent])


def test_what_one_callback_changes_no_other_hears() -> None:
    class Changing(Silent):
        def on_finish(self, result: Any) -> None:
            result["layers"].clear()
            result.clear()

    class Keeping(Silent):
        def on_finish(self, result: Any) -> None:
            self.heard = result

    keeping, result = Keeping(), {"epochs": 2, "layers": ["l1"]}
    Callbacks([Changing(), keeping]).on_finish(result)
    assert keeping.heard == result == {"epochs": 2, "layers": ["l1"]}


def raising(callbacks: Callbacks, error: BaseException) -> None:
    with callbacks.hearing_failures():
        raise error


@pytest.mark.parametrize("begun", [True, False])
def test_failures_are_heard_of_once_a_search_has_begun(begun: bool) -> None:
    hearing, error = Hearing(), KeyboardInterrupt("stopped")
    callbacks = Callbacks([hearing])
    if begun:
        callbacks.on_start(FOLDER, 2, 0)
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        raising(callbacks, error)
    assert hearing.heard == [error] * begun


def test_a_callback_that_fails_at_the_end_does_not_make_the_search_a_failure() -> None:
    class Impatient(Hearing):
        def on_finish(self, result: Any) -> None:
            raise ValueError("too late")

    def finished() -> None:
        with callbacks.hearing_failures():
            callbacks.on_finish({"epochs": 2})

    hearing = Impatient()
    callbacks = Callbacks([hearing])
    callbacks.on_start(FOLDER, 2, 0)
    with pytest.raises(ValueError, match="too late"):
        finished()
    assert hearing.heard == []


def test_a_callback_that_fails_on_a_failure_keeps_no_other_from_hearing_of_it() -> None:
    class Deaf(Silent):
        def on_fail(self, error: BaseException) -> None:
            raise OSError("no network")

    hearing, error = Hearing(), KeyboardInterrupt("stopped")
    callbacks = Callbacks([Deaf(), hearing])
    callbacks.on_start(FOLDER, 2, 0)
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        raising(callbacks, error)
    assert hearing.heard == [error]
    assert "failed, too: OSError('no network')" in error.__notes__[0]


@pytest.mark.parametrize("width", [60, 80, 100, 150])
def test_a_narrow_terminal_cuts_the_figures_alone(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    stream = Terminal()
    display = BarsOfAll(stream)
    bar = display.of()
    with display:
        watch(bar)
    lines = stream.getvalue().splitlines()
    last = next(line for line in reversed(lines) if "2/2" in line)
    assert re.search(r"2/2.*loss.*\d:\d\d:\d\d", last)
    assert ("…" in last) == (width < 150)
    assert ("-log evidence/example 1.75" in last) == (width >= 80)
