import errno
import fcntl
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from symdsl.diagnostics import RunError
from symdsl.runs import RunFolder, SeedsFolder, SweepFolder, default_folder, finite, new_folder, versions, write_atomic

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
NAN, INFINITY = float("nan"), float("inf")


class Killed(BaseException):
    """The process dies here: nothing that cleans up may be relied on."""


def begin(run: RunFolder) -> None:
    run.begin(
        spec="digits",
        objective="laplace",
        epochs=2,
        seed=711,
        device="cpu",
        command=["symdsl", "search"],
        dataset="abc",
        now=NOW,
    )


def result() -> dict:
    return {
        "schema": 1,
        "spec": "digits",
        "objective": "laplace",
        "seed": 711,
        "device": "cpu",
        "parameters": 10,
        "epochs": 2,
        "wall_s": {"total": 1.0, "training": 0.5, "evidence": 0.5},
        "train": {"accuracy": 1.0, "nll": 0.1},
        "test": {"accuracy": 0.9, "nll": 0.2, "ece": 0.1},
        "neg_log_evidence_per_example": 0.5,
        "layers": [
            {
                "name": "l1",
                "chosen": "CONV",
                "kept": ["CONV"],
                "candidates": [
                    {
                        "kind": "CONV",
                        "parameters": 9,
                        "precision": [1.0],
                        "weight_norm_sq": [2.0],
                        "effective": 3.0,
                        "normalised": 0.3,
                        "relative": 1.0,
                    }
                ],
            }
        ],
    }


@pytest.fixture
def run(tmp_path):
    with RunFolder.create(tmp_path / "run") as opened:
        begin(opened)
        yield opened


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# Names


@pytest.mark.parametrize("path", ["", "."])
def test_a_file_has_a_name(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="is a folder, name a file"):
        write_atomic(Path(path), b"content")


def test_default_folder():
    assert default_folder("digits", NOW, "0123456789abcdef") == Path("runs/digits/20260304T050607Z-01234567")


def test_a_path_that_is_taken_is_numbered(tmp_path):
    assert new_folder(tmp_path / "in" / "a.b") == tmp_path / "in" / "a.b"
    (tmp_path / "in" / "a.b-2").touch()
    assert new_folder(tmp_path / "in" / "a.b") == tmp_path / "in" / "a.b-3"
    assert (tmp_path / "in" / "a.b-3").is_dir()


def test_everyone_who_asks_at_once_gets_a_folder_of_his_own(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(new_folder, [tmp_path / "all"] * 40))
    assert len(set(found)) == 40


def test_names_that_are_not_utf8_are_kept(tmp_path):
    with RunFolder.create(tmp_path) as run:
        run.write_json("note.json", {"command": "s\udce9.sym"})
    assert json.loads((tmp_path / "note.json").read_text()) == {"command": "s\udce9.sym"}


def test_whoever_asks_whether_a_folder_is_in_use_keeps_nobody_from_it(tmp_path):
    RunFolder.create(tmp_path).close()
    with (tmp_path / ".lock").open("rb") as asked:
        fcntl.flock(asked, fcntl.LOCK_SH)
        threading.Timer(0.03, asked.close).start()
        RunFolder.create(tmp_path).close()


def test_default_folder_is_in_utc():
    east = NOW.astimezone(timezone(timedelta(hours=9)))
    assert default_folder("digits", east, "0" * 64) == default_folder("digits", NOW, "0" * 64)


@pytest.mark.parametrize(
    ("name", "safe"), [("a b/c", "a_b_c"), ("../..", "_"), ("..", "spec"), ("", "spec"), ("größe-1.2", "größe-1.2")]
)
def test_spec_name_cannot_leave_the_folder(name, safe):
    assert default_folder(name, NOW, "0" * 64).parent == Path("runs") / safe


def test_time_needs_a_zone():
    with pytest.raises(ValueError, match="must have a time zone"):
        default_folder("digits", datetime(2026, 3, 4), "0" * 64)


def test_versions_do_not_need_the_packages_imported():
    code = "import sys; from symdsl.runs import versions; versions(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "False\n"


def test_versions_leave_out_what_is_not_installed(monkeypatch):
    monkeypatch.setattr("symdsl.runs.folder.PACKAGES", ("numpy", "no-such-package"))
    assert set(versions()) == {"python", "numpy"}


# Creating, resuming, viewing


def test_create_makes_parents(tmp_path):
    with RunFolder.create(tmp_path / "a" / "b") as run:
        assert run.path == tmp_path / "a" / "b"
        assert run.path.is_dir()


def test_create_takes_an_empty_folder(tmp_path):
    RunFolder.create(tmp_path).close()


def test_create_takes_what_a_run_left_that_died_before_it_wrote_anything(tmp_path):
    (tmp_path / ".run.json.tmp").write_text("{")
    RunFolder.create(tmp_path).close()
    RunFolder.create(tmp_path).close()


def test_create_refuses_a_file(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(RunError, match="taken: is a file; give a folder that is new or empty"):
        RunFolder.create(tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("several", [SeedsFolder, SweepFolder])
def test_a_file_is_no_folder_of_several_runs(tmp_path, several):
    (tmp_path / "taken").write_text("")
    with pytest.raises(RunError, match="taken: is a file; give a folder that is new or empty"):
        several.made(tmp_path / "taken")


def test_create_refuses_a_path_below_a_file(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(RunError, match="run: cannot be written: Not a directory"):
        RunFolder.create(tmp_path / "taken" / "run")


def test_a_new_run_may_stand_beside_the_pictures_of_its_data(tmp_path):
    (tmp_path / "data.png").write_text("mine")
    with RunFolder.create(tmp_path) as run:
        run.discard()
    assert files(tmp_path) == {"data.png": b"mine"}


def test_a_folder_of_runs_names_one_of_them(tmp_path):
    with pytest.raises(RunError, match=f"{tmp_path}: not a run folder, it holds no run.json"):
        RunFolder.view(tmp_path)
    for name in ("20260101T000000Z-a", "20260102T000000Z-b"):
        (tmp_path / "digits" / name).mkdir(parents=True)
        (tmp_path / "digits" / name / "run.json").touch()
    for path in (tmp_path, tmp_path / "digits"):
        with pytest.raises(RunError, match=r"it holds runs; choose one, such as .*/digits/20260102T000000Z-b$"):
            RunFolder.view(path)


def test_create_refuses_a_folder_of_other_files_and_leaves_it_alone(tmp_path):
    (tmp_path / "spec.sym").write_text("mine")
    with pytest.raises(RunError, match=r"is not empty \(it holds spec.sym\)"):
        RunFolder.create(tmp_path)
    assert files(tmp_path) == {"spec.sym": b"mine"}


def test_create_says_why_a_path_cannot_be_written(tmp_path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(RunError, match="new: cannot be written: Permission denied"):
        RunFolder.create(tmp_path / "new")


def test_create_says_why_a_folder_cannot_be_written(tmp_path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise PermissionError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(RunError, match="cannot be written: Read-only file system"):
        RunFolder.create(tmp_path)


def test_finished_run_is_never_overwritten(run):
    run.write_json("result.json", result())
    run.set_status("finished", LATER)
    run.close()
    before = files(run.path)
    with pytest.raises(RunError, match="holds a run that is finished; it is never overwritten"):
        RunFolder.create(run.path)
    with pytest.raises(RunError, match="this run is finished, there is nothing to resume"):
        RunFolder.resume(run.path)
    assert files(run.path) == before


@pytest.mark.parametrize("loss", ["result.json", "sealed.txt"])
def test_finished_run_that_lost_something_can_be_resumed(run, loss):
    run.write_json("result.json", result())
    run.write_text("sealed.txt", "as it was")
    run.seal("sealed.txt")
    run.set_status("finished", LATER)
    run.close()
    (run.path / loss).unlink()
    RunFolder.resume(run.path).close()


def test_sealed_files_are_known_again(run):
    run.write_text("a.txt", "one")
    run.write_text("b.txt", "two")
    run.seal("a.txt")
    run.seal("b.txt")
    assert (run.damaged(), run.missing()) == ([], [])
    assert run.is_as_sealed("a.txt", b"one")
    assert not run.is_as_sealed("a.txt", b"two")
    run.write_text("a.txt", "three")
    (run.path / "b.txt").unlink()
    assert (run.damaged(), run.missing()) == (["a.txt"], ["b.txt"])
    with pytest.raises(RunError, match=r"a.txt: damaged or edited, its checksum is not that in run.json"):
        run.refuse_damaged()
    with pytest.raises(RunError, match=r"b.txt: missing; the run has no checkpoint from which"):
        run.refuse_damaged("b.txt")
    run.seal("a.txt")
    assert run.damaged() == []


ENDINGS = [("running", "ended without a word"), ("interrupted", "was interrupted"), ("failed", "failed")]


@pytest.mark.parametrize(("status", "ending"), ENDINGS)
def test_unfinished_run_is_resumed_not_overwritten(run, status, ending):
    run.set_status(status, LATER)
    run.save_checkpoint({"epoch": 0}, b"tensors")
    run.close()
    with pytest.raises(RunError, match=f"holds a run that {ending}; `symdsl search --resume .*` continues it"):
        RunFolder.create(run.path)
    with RunFolder.resume(run.path) as again:
        again.set_status("running", LATER)


def test_refusals_give_the_lock_back(run):
    run.set_status("interrupted", LATER)
    run.close()
    for _ in range(2):
        with pytest.raises(RunError, match="holds a run that was interrupted"):
            RunFolder.create(run.path)
    RunFolder.resume(run.path).close()


@pytest.mark.parametrize("opened", [RunFolder.resume, RunFolder.view])
def test_what_is_no_run_is_refused(tmp_path, opened):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunError, match="missing: no such folder"):
        opened(tmp_path / "missing")
    with pytest.raises(RunError, match="file: not a folder"):
        opened(tmp_path / "file")
    with pytest.raises(RunError, match=r"folder: not a run folder, it holds no run\.json"):
        opened(tmp_path / "folder")
    assert not list((tmp_path / "folder").iterdir())


def test_view_reads_beside_a_live_run_and_writes_nothing(run):
    view = RunFolder.view(run.path)
    assert view.status == "running"
    for write in (
        lambda: view.write_text("a", "b"),
        lambda: view.append_metrics({"epoch": 1}),
        lambda: view.truncate_metrics(1),
        lambda: view.save_checkpoint({"epoch": 1}, b""),
    ):
        with pytest.raises(ValueError, match="is not open for writing"):
            write()


def test_closed_folder_is_not_written(run):
    run.close()
    run.close()
    with pytest.raises(ValueError, match="is not open for writing"):
        run.write_text("a", "b")


# The lock


def test_folder_in_use_is_refused(run):
    with pytest.raises(RunError, match="in use by a live run"):
        RunFolder.create(run.path)
    with pytest.raises(RunError, match="in use by a live run"):
        RunFolder.resume(run.path)


def test_folder_is_in_use_before_anything_is_written(tmp_path):
    with RunFolder.create(tmp_path), pytest.raises(RunError, match="in use by a live run"):
        RunFolder.create(tmp_path)


def test_a_run_is_resumable_once_nobody_is_at_it(run):
    save(run, 1)
    run.set_status("interrupted", LATER)
    assert not RunFolder.view(run.path).resumable
    run.close()
    assert RunFolder.view(run.path).resumable


def test_lock_dies_with_its_process(tmp_path):
    code = """
import os, sys
from datetime import UTC, datetime
from symdsl.runs import RunFolder
run = RunFolder.create(sys.argv[1])
run.begin(spec="s", objective="map", epochs=2, seed=1, device="cpu", command=[], dataset="d", now=datetime.now(UTC))
print("locked", flush=True)
sys.stdin.read()
os.kill(os.getpid(), 9)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(RunError, match="in use by a live run"):
            RunFolder.resume(tmp_path / "run")
        other.communicate("")
    assert other.returncode == -9
    with RunFolder.resume(tmp_path / "run") as run:
        assert run.status == "running"


def test_of_many_processes_one_gets_the_folder(tmp_path):
    code = """
import sys
from symdsl.diagnostics import RunError
from symdsl.runs import RunFolder
try:
    run = RunFolder.create(sys.argv[1])
    print("mine", flush=True)
except RunError:
    print("taken", flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    others = [subprocess.Popen(command, **pipes) for _ in range(3)]
    answers = [other.stdout.readline() for other in others]
    for other in others:
        other.communicate("")
    assert sorted(answers) == ["mine\n", "taken\n", "taken\n"]


# Files


def test_write_and_read(run):
    run.write_text("spec.sym", "größe // ü\n")
    run.write_bytes("model.safetensors", b"\x00\xff")
    run.write_json("some.json", {"a": [1, 2.5, None], "ö": (True,)})
    assert run.read_text("spec.sym") == "größe // ü\n"
    assert (run.path / "model.safetensors").read_bytes() == b"\x00\xff"
    assert json.loads(run.read_text("some.json")) == {"a": [1, 2.5, None], "ö": [True]}


def test_numbers_that_json_cannot_hold_become_null(run):
    run.write_json("some.json", {"a": NAN, "b": [INFINITY, {"c": (-INFINITY, 1.0)}]})
    run.append_metrics({"epoch": 1, "loss": NAN})
    assert json.loads(run.read_text("some.json")) == {"a": None, "b": [None, {"c": [None, 1.0]}]}
    assert run.read_text("metrics.jsonl") == '{"epoch": 1, "loss": null}\n'


def test_finite_keeps_everything_else():
    value = {"a": [1, True, "nan", None, 2.5]}
    assert finite(value) == value
    assert finite(value)["a"][1] is True


def test_read_says_what_is_wrong(run):
    (run.path / "bad").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(RunError, match="missing: cannot be read: No such file"):
        run.read_text("missing")
    with pytest.raises(RunError, match="bad: damaged, it is not UTF-8 text"):
        run.read_text("bad")


def failing(message_of: int, on_call: int, real):
    """`real`, but its call number `on_call` fails as the operating system would."""
    calls = iter(range(1, 1000))

    def call(*args, **kwargs):
        if next(calls) == on_call:
            raise OSError(message_of, os.strerror(message_of))
        return real(*args, **kwargs)

    return call


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_write_leaves_the_earlier_file(run, monkeypatch, step):
    run.write_text("a.txt", "earlier")
    before = files(run.path)
    monkeypatch.setattr(os, step, failing(errno.ENOSPC, 1, getattr(os, step)))
    with pytest.raises(RunError, match=r"a.txt: cannot be written: No space left on device"):
        run.write_text("a.txt", "later")
    assert files(run.path) == before


def test_full_disk_leaves_the_earlier_file(tmp_path, monkeypatch):
    write_atomic(tmp_path / "a.txt", b"earlier")

    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, content):
            self.file.write(content[:2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    real = Path.open
    monkeypatch.setattr(Path, "open", lambda path, mode="r", **more: Full(real(path, mode, **more)))
    with pytest.raises(RunError, match=r"a.txt: cannot be written: No space left on device"):
        write_atomic(tmp_path / "a.txt", b"later")
    monkeypatch.undo()
    assert files(tmp_path) == {"a.txt": b"earlier"}


def test_interrupt_during_a_write_leaves_the_earlier_file(tmp_path, monkeypatch):
    write_atomic(tmp_path / "a.txt", b"earlier")

    def interrupt(_descriptor):
        raise KeyboardInterrupt("stop")

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt, match="stop"):
        write_atomic(tmp_path / "a.txt", b"later")
    assert files(tmp_path) == {"a.txt": b"earlier"}


# run.json and result.json


def test_begin_tells_how_to_repeat_the_run(run):
    info = run.read_info()
    assert info.pop("versions")["python"]
    assert info == {
        "schema": 1,
        "status": "running",
        "spec": "digits",
        "objective": "laplace",
        "epochs": 2,
        "profile": None,
        "seed": 711,
        "device": "cpu",
        "command": ["symdsl", "search"],
        "dataset": "abc",
        "weights_from": None,
        "started": "2026-03-04T05:06:07Z",
        "updated": "2026-03-04T05:06:07Z",
    }


def test_set_status_keeps_the_rest(run):
    before = run.read_info()
    run.set_status("failed", LATER, reason="loss is not finite")
    changes = {"status": "failed", "updated": "2026-03-04T05:07:07Z", "reason": "loss is not finite"}
    assert run.read_info() == before | changes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "damaged, it is not a JSON object"),
        ("[]", "damaged, it is not a JSON object"),
        ("", "damaged, it is not a JSON object"),
        ('{"schema": 2}', r"`schema` \(=2\) must be 1; it was written by another version"),
        ('{"schema": 1, "status": "asleep"}', r"`status` \(='asleep'\) must be one of running, interrupted"),
        ('{"schema": 1}', r"`status` \(=None\) must be one of"),
    ],
)
def test_damaged_run_json(run, content, message):
    (run.path / "run.json").write_text(content)
    with pytest.raises(RunError, match=f"run.json: .*{message}"):
        run.read_info()


def test_result_round_trip(run):
    run.write_json("result.json", result())
    assert run.read_result() == result()


@pytest.mark.parametrize(("status", "ending"), ENDINGS)
def test_no_result_yet(run, status, ending):
    run.set_status(status, LATER)
    run.save_checkpoint({"epoch": 0}, b"tensors")
    run.close()
    with pytest.raises(RunError, match=f"no result yet, the run {ending}; `symdsl search --resume .*run` continues it"):
        run.read_result()


def test_no_result_of_a_failed_run_says_why(run):
    run.set_status("failed", LATER, "the disk is full")
    run.close()
    with pytest.raises(RunError, match=r"the run failed \(the disk is full\); it left no checkpoint to continue from"):
        run.read_result()


def test_no_result_of_a_live_run_advises_to_wait(run):
    with pytest.raises(RunError, match="no result yet, the run is still going on; wait for it to end"):
        RunFolder.view(run.path).read_result()


def test_an_atomic_write_keeps_the_mode(tmp_path):
    path = tmp_path / "kept"
    path.write_text("before")
    path.chmod(0o640)
    write_atomic(path, b"after")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"after", 0o640)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        ({"schema": 2}, "written by another version"),
        ({"objective": "entropy"}, r"`objective` \(='entropy'\) must be one of laplace, elbo, map"),
        ({"test": {"accuracy": 1.0}}, "`test` has no `nll`"),
        ({"train": None}, "`train` has no `accuracy`"),
        ({"layers": None}, "`layers` must be a list"),
        ({"layers": [{}]}, "a layer has no `name`"),
        ({"layers": [3]}, "a layer has no `name`"),
        (
            {"layers": [{"name": "l1", "chosen": None, "kept": [], "candidates": [{}]}]},
            "a candidate of `l1` has no `kind`",
        ),
        ({"layers": [{"name": "l1", "chosen": None, "kept": [], "candidates": 3}]}, "`candidates` must be a list"),
    ],
)
def test_damaged_result(run, harm, message):
    run.write_json("result.json", result() | harm)
    with pytest.raises(RunError, match=f"result.json: .*{message}"):
        run.read_result()


@pytest.mark.parametrize("key", [key for key in result() if key != "schema"])
def test_result_needs_every_key(run, key):
    run.write_json("result.json", {name: value for name, value in result().items() if name != key})
    with pytest.raises(RunError, match=f"damaged, the result has no `{key}`"):
        run.read_result()


# Metrics


def epochs(run: RunFolder) -> list[int]:
    return [record["epoch"] for record in run.read_metrics()]


def test_metrics_one_line_per_epoch(run):
    assert run.read_metrics() == []
    for epoch in (1, 2):
        run.append_metrics({"epoch": epoch, "loss": 1 / epoch})
    assert run.read_metrics() == [{"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": 0.5}]


@pytest.mark.parametrize("record", [{}, {"epoch": "1"}, {"epoch": True}])
def test_metrics_need_an_epoch(run, record):
    with pytest.raises(ValueError, match=r"`epoch` .* must be an integer"):
        run.append_metrics(record)
    assert run.read_metrics() == []


def test_truncate_drops_later_epochs(run):
    for epoch in (1, 2, 3):
        run.append_metrics({"epoch": epoch})
    run.truncate_metrics(2)
    run.append_metrics({"epoch": 3, "again": True})
    assert epochs(run) == [1, 2, 3]
    assert run.read_metrics()[-1]["again"] is True


def test_line_torn_by_a_crash_is_dropped(run):
    run.append_metrics({"epoch": 1})
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 2, "lo')
    assert epochs(run) == [1]
    run.truncate_metrics(5)
    run.append_metrics({"epoch": 2})
    assert epochs(run) == [1, 2]


def test_damaged_line_is_named(run):
    (run.path / "metrics.jsonl").write_text('{"epoch": 1}\n{"epo\n{"epoch": 3}\n')
    with pytest.raises(RunError, match=r"metrics.jsonl: damaged, line 2 is not the record of an epoch"):
        run.read_metrics()


def test_full_disk_leaves_the_earlier_lines(run, monkeypatch):
    run.append_metrics({"epoch": 1})
    real = Path.open

    class Full:
        def __init__(self, file):
            self.file = file
            self.tell, self.fileno = file.tell, file.fileno

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, content):
            return self.file.write(content[:4])

    monkeypatch.setattr(Path, "open", lambda path, mode="r", **more: Full(real(path, mode, **more)))
    with pytest.raises(RunError, match=r"metrics.jsonl: cannot be written: No space left on device"):
        run.append_metrics({"epoch": 2})
    monkeypatch.undo()
    assert run.read_text("metrics.jsonl") == '{"epoch": 1}\n'


# Checkpoints


def save(run: RunFolder, epoch: int) -> None:
    run.save_checkpoint({"epoch": epoch, "rate": 0.1 * epoch}, tensors(epoch))


def tensors(epoch: int) -> bytes:
    return bytes([epoch]) * 1000


def loaded_epoch(folder: Path) -> int:
    """The epoch of the checkpoint that is found, its state and tensors being of the same epoch."""
    state, content = RunFolder(folder, lock=None).load_checkpoint()
    assert state["rate"] == 0.1 * state["epoch"]
    assert content == tensors(state["epoch"])
    return state["epoch"]


def test_checkpoint_round_trip(run):
    state = {"epoch": 3, "nested": {"1": [0.1, 1e-300, None, "ö"]}, "flag": True}
    run.save_checkpoint(state, b"\x00weights")
    assert run.load_checkpoint() == (state, b"\x00weights")


def test_checkpoint_state_as_json_reads_it_back(run):
    run.save_checkpoint({"epoch": 1, "loss": NAN, "pair": (1, 2), "map": {3: 4}}, b"")
    assert run.load_checkpoint()[0] == {"epoch": 1, "loss": None, "pair": [1, 2], "map": {"3": 4}}


def test_checkpoint_needs_an_epoch(run):
    with pytest.raises(ValueError, match=r"`epoch` \(=None\) must be an integer"):
        run.save_checkpoint({}, b"")


def test_previous_checkpoint_is_kept(run):
    for epoch in (1, 2, 3):
        save(run, epoch)
    names = {file.name for file in run.path.iterdir()}
    assert names == {
        *(".lock", "run.json", "checkpoint.json", "checkpoint.safetensors"),
        *("checkpoint.previous.json", "checkpoint.previous.safetensors"),
    }
    assert loaded_epoch(run.path) == 3
    (run.path / "checkpoint.json").unlink()
    assert loaded_epoch(run.path) == 2


def test_no_checkpoint_yet(run):
    with pytest.raises(RunError, match="no checkpoint was written yet"):
        run.load_checkpoint()


@pytest.mark.parametrize("name", ["checkpoint.json", "checkpoint.safetensors"])
@pytest.mark.parametrize("harm", [lambda content: content[:-1], lambda content: b"", lambda content: content + b"x"])
def test_damaged_checkpoint_gives_way_to_the_previous(run, name, harm):
    save(run, 1)
    save(run, 2)
    path = run.path / name
    path.write_bytes(harm(path.read_bytes()))
    assert loaded_epoch(run.path) == 1


def test_changed_state_is_damaged(run):
    save(run, 1)
    save(run, 2)
    path = run.path / "checkpoint.json"
    path.write_text(path.read_text().replace('"rate": 0.2', '"rate": 0.3'))
    assert loaded_epoch(run.path) == 1


@pytest.mark.parametrize("harm", [{"schema": 2}, {"sha256": None}, {"sha256": {}}, {"state": {}}, {"state": None}])
def test_checkpoints_of_another_form_are_damaged(run, harm):
    save(run, 1)
    path = run.path / "checkpoint.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | harm))
    with pytest.raises(RunError, match="every checkpoint is damaged; start a new run"):
        run.load_checkpoint()


def test_saving_over_damaged_checkpoints_mends_them(run):
    save(run, 1)
    (run.path / "checkpoint.safetensors").write_bytes(b"torn")
    save(run, 2)
    assert loaded_epoch(run.path) == 2


def test_tensors_that_do_not_change_between_epochs(run):
    for epoch in (1, 2, 3):
        run.save_checkpoint({"epoch": epoch}, b"same")
        assert run.load_checkpoint() == ({"epoch": epoch}, b"same")


def after_crashes(run: RunFolder, monkeypatch, crashes: list[int], error: BaseException) -> None:
    """Saves epoch 1, 2, 3, ...; of each save after the first, the rename of the given number fails with `error`."""
    real = os.replace
    save(run, 1)
    for epoch, crash in enumerate(crashes, start=2):
        calls = iter(range(1, 1000))

        def replace(source, target, calls=calls, crash=crash):
            if next(calls) == crash:
                raise error
            real(source, target)

        monkeypatch.setattr(os, "replace", replace)
        try:
            save(run, epoch)
        except (RunError, Killed):
            assert loaded_epoch(run.path) >= 1
    monkeypatch.setattr(os, "replace", real)


NEVER = 99
TWICE = [[first, second] for first in (1, 2, 3, 4, NEVER) for second in (1, 2, 3, 4, NEVER)]


@pytest.mark.parametrize("crashes", TWICE)
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), Killed()], ids=["error", "killed"])
def test_some_checkpoint_survives_a_failed_rename_at_every_step(run, monkeypatch, crashes, error):
    after_crashes(run, monkeypatch, [NEVER, *crashes], error)
    written = [epoch for epoch, crash in enumerate([NEVER, *crashes], start=2) if crash == NEVER]
    assert loaded_epoch(run.path) >= max(written)
    save(run, 9)
    assert loaded_epoch(run.path) == 9
    (run.path / "checkpoint.json").unlink()
    assert loaded_epoch(run.path) >= max(written)


def test_every_moment_of_a_save_leaves_a_checkpoint(run, monkeypatch, tmp_path):
    """A copy of the folder before each rename is what a loss of power at that moment leaves, drafts included."""
    real, moments = os.replace, []

    def replace(source, target):
        moments.append(shutil.copytree(run.path, tmp_path / f"moment{len(moments)}"))
        real(source, target)

    save(run, 1)
    save(run, 2)
    monkeypatch.setattr(os, "replace", replace)
    save(run, 3)
    assert [loaded_epoch(moment) for moment in moments] == [2, 2, 2, 2]
    assert not any(RunFolder(moment, lock=None).lacks_newest_checkpoint() for moment in moments)
    assert loaded_epoch(run.path) == 3


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda run: run.write_text("a.txt", "content"), ["file", "rename", "folder"]),
        (lambda run: save(run, 2), ["file", "file", *["rename"] * 4, "folder"]),
    ],
    ids=["file", "checkpoint"],
)
def test_content_is_on_the_disk_before_its_name_and_the_name_before_the_end(run, monkeypatch, write, expected):
    """A loss of power may undo a rename that its folder was not synchronised after."""
    save(run, 1)
    events = []
    synchronise, rename = os.fsync, os.replace

    def fsync(descriptor):
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        synchronise(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", lambda source, target: events.append("rename") or rename(source, target))
    write(run)
    assert events == expected


def test_error_names_the_checkpoint_and_leaves_no_draft(run, monkeypatch):
    save(run, 1)
    before = files(run.path)
    monkeypatch.setattr(os, "fsync", failing(errno.ENOSPC, 2, os.fsync))
    with pytest.raises(RunError, match=re.escape("checkpoint.safetensors: cannot be written: No space left on device")):
        save(run, 2)
    assert files(run.path) == before


def test_unreadable_checkpoint_is_told(run):
    (run.path / "checkpoint.json").mkdir()
    with pytest.raises(RunError, match=r"checkpoint.json: cannot be read: Is a directory"):
        run.load_checkpoint()
