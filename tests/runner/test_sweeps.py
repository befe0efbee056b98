"""Grids of searches, and the engines that several searches run on."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import symdsl
from processes import call, started
from symdsl.cli.sweeping import parts_of
from symdsl.diagnostics import FAILED, NumericalError, RunError, SpecError
from symdsl.progress import Observers, Silent
from symdsl.render import table_text
from symdsl.render.sweeps import sweep_table
from symdsl.runner import engines, grid, sweep
from symdsl.runner.engines import Children, Errand, InProcess, OnSlurm, check_resources
from symdsl.runner.many import run_all
from symdsl.runner.tasks import Task, performed
from symdsl.runs import RunFolder, SweepFolder

TINY = """
let width = 2
let kinds = [F-FC, CONV(3)]

data synthetic(size = 4, classes = 3, train = 16, test = 8) |> standardize

network tiny {
  input image(channels, 4, 4)
  layer l1: kinds -> width |> relu
  flatten
  layer h1: FC -> classes
}

search {
  epochs = 2
  every  = 1
  batch  = 8
  seed   = 5
}
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.sym"
    path.write_text(TINY)
    return path


@pytest.fixture
def in_process(monkeypatch):
    """Runs of a sweep stay in this process, where they take a moment."""
    monkeypatch.setitem(engines.ENGINES, "local", lambda resources, device, jobs: InProcess())


class Told(Observers):
    def __init__(self):
        super().__init__()
        self.notes = []

    def on_note(self, text):
        self.notes.append(text)


def failing(monkeypatch, broken):
    """Makes the runs in some folders fail so often; returns the folders of all attempts."""
    honest, attempts = Task.run, []

    def run(task, callback, data):
        name = os.path.basename(task.folder)
        attempts.append(name)
        if broken.get(name, 0) > 0:
            broken[name] -= 1
            raise NumericalError("the numbers\nwent wrong")
        honest(task, callback, data)

    monkeypatch.setattr(Task, "run", run)
    return attempts


def table(folder):
    with (folder / "sweep.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("4,8,16", ["4", "8", "16"]),
        ("[CONV(3)],[F-FC, CONV(3)]", ["[CONV(3)]", "[F-FC, CONV(3)]"]),
        ('"a,b", "c"', ['"a,b"', '"c"']),
        ("adam(lr = 0.1, clip = 1),adam(lr = 1)", ["adam(lr = 0.1, clip = 1)", "adam(lr = 1)"]),
        ("4", ["4"]),
        ("4,,8", ["4", "", "8"]),
    ],
)
def test_values_are_parted_at_commas_outside_brackets_and_quotes(text, parts):
    assert list(parts_of(text)) == parts


def test_a_grid_has_every_combination_under_a_name_of_its_own(tiny):
    settings = {"width": ("2", "3"), "kinds": ("[CONV(3)]", "[CONV (3)]")}
    found = grid([tiny], settings, 2, ("laplace", "map"))
    assert len(found.runs) == len({one.folder for one in found.runs}) == 2 * 2 * 2 * 2
    assert found.runs[0].folder == "tiny-width=2-kinds=CONV3-laplace-seed-5"
    assert {one.seed for one in found.runs} == {5, 6}
    chosen = [found.points[one.point].settings for one in found.runs if (one.seed, one.objective) == (6, "map")]
    assert chosen == [{"width": w, "kinds": k} for w in settings["width"] for k in settings["kinds"]]
    assert "let width = 3" in found.points[2].text
    assert [one.seed for one in grid([tiny], {}).runs] == [5]


def test_specs_of_one_file_name_are_told_apart_by_their_folders(tiny, tmp_path):
    others = [tmp_path / "deep" / "a" / "tiny.sym", tmp_path / "deep" / "b" / "tiny.sym"]
    for path in others:
        path.parent.mkdir(parents=True)
        path.write_text(tiny.read_text())
    found = grid(others, {})
    assert [one.spec for one in found.points] == ["a/tiny", "b/tiny"]
    assert [one.folder for one in found.runs] == ["a_tiny-seed-5", "b_tiny-seed-5"]


def test_a_grid_is_refused_where_it_is_wrong_or_too_large(tiny):
    with pytest.raises(SpecError) as caught:
        grid([tiny], {"widht": ("2", "3")})
    (found,) = caught.value.diagnostics
    assert (found.code, found.span.source, "did you mean `width`?" in (found.help or "")) == ("E310", "--set", True)
    for wrong in (str(tiny), tiny, [symdsl.load(tiny)], iter([tiny])):
        with pytest.raises(TypeError, match=r"`specs` \(=.*\) must be a list of files"):
            grid(wrong, {})
    with pytest.raises(ValueError, match=r"tiny.sym` is given twice"):
        grid([tiny, tiny], {})
    with pytest.raises(ValueError, match=r"`search.seed` is set, and seeds are given as well"):
        grid([tiny], {"search.seed": ("1", "2")}, (1, 2))
    (tiny.parent / "handed.sym").write_text(
        tiny.read_text().replace("synthetic(size = 4, classes = 3, train = 16, test = 8)", "given(1, 4, 3)")
    )
    with pytest.raises(RunError, match="the data of this spec are handed over in Python"):
        grid([tiny.parent / "handed.sym"], {})
    for values in ("16", ()):
        with pytest.raises(ValueError, match=r"`settings\['width'\]` \(=.*\) must be a list of one text or more"):
            grid([tiny], {"width": values})
    with pytest.raises(ValueError, match=r"1,002 runs are more than 1,000"):
        grid([tiny], {"width": tuple(map(str, range(1, 502)))}, None, ("laplace", "map"))


def test_a_sweep_is_a_folder_of_runs_and_a_table(tiny, tmp_path, in_process):
    told = Told()
    folder = sweep(grid([tiny], {"width": ("2", "3")}, [1, 2]), out=tmp_path / "all", device="cpu", watch=told)
    rows = table(folder.path)
    assert [(row["run"], row["width"], row["seed"], row["status"]) for row in rows] == [
        ("tiny-width=2-seed-1", "2", "1", "finished"),
        ("tiny-width=2-seed-2", "2", "2", "finished"),
        ("tiny-width=3-seed-1", "3", "1", "finished"),
        ("tiny-width=3-seed-2", "3", "2", "finished"),
    ]
    result = RunFolder.view(tmp_path / "all" / "tiny-width=3-seed-2").read_result()
    assert float(rows[3]["test.nll"]) == result["test"]["nll"]
    assert rows[3]["priors_learned"] == str(result["priors_learned"])
    unlearned = sum(row["priors_learned"] == "False" for row in rows)
    shown = call("show", folder.path).stdout
    words = f"no prior was learned in {unlearned} run{'s' * (unlearned != 1)}:"
    assert (words in shown) == bool(unlearned) == ("no prior was learned in" in shown)
    assert rows[3]["layers"] == " ".join(f"{one['name']}={one['chosen']}" for one in result["layers"])
    assert "test.rmse" not in rows[0]
    assert "let width = 3" in (tmp_path / "all" / "tiny-width=3-seed-1" / "spec.sym").read_text()
    assert "width = 3" in (tmp_path / "all" / "sweep.html").read_text()
    assert told.notes == []
    with pytest.raises(RunError, match="holds runs of a sweep; `--resume"):
        sweep(grid([tiny], {}), out=tmp_path / "all")
    with pytest.raises(RunError, match="holds the runs of a sweep, each in a folder of its own; choose one"):
        RunFolder.view(tmp_path / "all")


def test_a_setting_may_have_the_name_of_a_column(tiny, tmp_path, in_process):
    tiny.write_text(TINY.replace("width", "layers"))
    folder = sweep(grid([tiny], {"layers": ("2", "3")}), out=tmp_path / "all", device="cpu")
    rows = table(folder.path)
    assert [row["set.layers"] for row in rows] == ["2", "3"]
    assert all(row["layers"].startswith("l1=") for row in rows)
    shown = table_text(sweep_table(folder.rows(), folder.axes))
    assert shown.count("1 of 1") == 2


def test_a_process_tells_why_its_spec_is_wrong(tmp_path):
    stream = io.StringIO()
    text = (
        f'data images("{tmp_path}/gone")\nnetwork n {{\n  input image(1, 4, 4)\n  flatten\n  layer: FC -> classes\n}}'
    )
    task = Task(text, "n", 1, "cpu", "laplace", str(tmp_path / "run"), "n")
    assert performed(task, stream) == FAILED
    assert "gone" in json.loads(stream.getvalue())["failed"]


def test_a_run_that_fails_is_told_tried_once_more_and_does_not_stop_the_others(tiny, tmp_path, in_process, monkeypatch):
    broken = {"tiny-width=2-seed-5": 1, "tiny-width=3-seed-5": 2}
    attempts, told = failing(monkeypatch, broken), Told()
    folder = sweep(grid([tiny], {"width": ("2", "3", "4")}), out=tmp_path / "all", device="cpu", watch=told)
    assert attempts == [f"tiny-width={width}-seed-5" for width in (2, 2, 3, 3, 4)]
    assert told.notes == [
        "tiny-width=2-seed-5 failed and is tried once more: the numbers went wrong",
        "tiny-width=3-seed-5 failed and is tried once more: the numbers went wrong",
        "tiny-width=3-seed-5 failed: the numbers went wrong",
    ]
    assert [(row["status"], row["reason"]) for row in table(folder.path)] == [
        ("finished", ""),
        ("failed", "the numbers went wrong"),
        ("finished", ""),
    ]
    attempts.clear()
    again = sweep(resume=tmp_path / "all", device="cpu")
    assert attempts == ["tiny-width=3-seed-5"]
    assert len(again.finished()) == 3
    assert {row["status"] for row in table(folder.path)} == {"finished"}


def test_an_interrupted_sweep_goes_on_where_it_was(tiny, tmp_path, in_process, monkeypatch):
    honest = Task.run

    def run(task, callback, data):
        if task.seed == 2:
            raise KeyboardInterrupt
        honest(task, callback, data)

    monkeypatch.setattr(Task, "run", run)
    with pytest.raises(KeyboardInterrupt):
        sweep(grid([tiny], {}, [1, 2, 3]), out=tmp_path / "all", device="cpu")
    monkeypatch.setattr(Task, "run", honest)
    states = [one["status"] for one in json.loads((tmp_path / "all" / "sweep.json").read_text())["runs"]]
    assert states == ["finished", "interrupted", "waiting"]
    assert [row["status"] for row in table(tmp_path / "all")] == states
    before = (tmp_path / "all" / "tiny-seed-1" / "result.json").read_bytes()
    sweep(resume=tmp_path / "all", device="cpu")
    assert {row["status"] for row in table(tmp_path / "all")} == {"finished"}
    assert (tmp_path / "all" / "tiny-seed-1" / "result.json").read_bytes() == before


def test_a_sweep_that_makes_no_sense(tiny, tmp_path):
    with pytest.raises(ValueError, match=r"`jobs` \(=0\) must be at least 1"):
        sweep(grid([tiny], {}), jobs=0)
    with pytest.raises(ValueError, match="`wanted` or `resume` must be given"):
        sweep()
    with pytest.raises(ValueError, match="unknown resource `cpu` of a run on local; did you mean `cpus`"):
        sweep(grid([tiny], {}), out=tmp_path / "all", resources={"cpu": "1"})
    with pytest.raises(ValueError, match=r"`on` \(=\"mars\"\) must be one of local, ray, slurm"):
        sweep(grid([tiny], {}), out=tmp_path / "all", on="mars")
    with pytest.raises(ValueError, match=r"`device` \(=\"moon\"\) must be auto, cpu, cuda or cuda:n"):
        sweep(grid([tiny], {}), out=tmp_path / "all", device="moon")
    assert not (tmp_path / "all").exists()


@pytest.mark.parametrize(
    ("place", "name", "value", "what"),
    [
        ("local", "cpus", "many", "a whole number from 1 to 1,000,000"),
        ("local", "cpus", "0", "a whole number from 1 to 1,000,000"),
        ("local", "cpus", "1.5", "a whole number from 1 to 1,000,000"),
        ("slurm", "gpus", "0.5", "a whole number from 0 to 1,000,000"),
        ("slurm", "hours", "0", "a number above 0, at most 1,000,000"),
        ("slurm", "memory_gb", "nan", "a number above 0, at most 1,000,000"),
        ("slurm", "cpus", "1e30", "a whole number from 1 to 1,000,000"),
        ("ray", "cpus", "inf", "a number from 0 to 1,000,000"),
    ],
)
def test_a_resource_out_of_range(place, name, value, what):
    with pytest.raises(ValueError, match=rf"the resource `{name}` \(={value}\) must be {what}"):
        check_resources(place, {name: value})


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("slurm_nodes", "2", "must be 1, as a run is one task on one machine"),
        ("slurm_use_srun", "no", "must be true or false"),
        ("slurm_additional_parameters", "x", "must be of the form K=V"),
    ],
)
def test_settings_of_submitit_that_cannot_be_used_are_refused(name, value, wanted):
    with pytest.raises(ValueError, match=rf"the resource `{name}` \(={value}\) {wanted}"):
        check_resources("slurm", {name: value})


def test_settings_of_submitit_reach_it_as_what_they_are(tmp_path, monkeypatch):
    pytest.importorskip("submitit", reason="needs the extra `slurm`")
    monkeypatch.chdir(tmp_path)
    written = {"slurm_setup": "module load x, y", "slurm_use_srun": "False", "slurm_nodes": "1", "slurm_qos": "7"}
    resources = {"cluster": "local", "slurm_additional_parameters": "reservation=a=b", **written}
    check_resources("slurm", resources)
    assert {
        name: value for name, value in OnSlurm(resources, "cpu")._settings.items() if name.startswith("slurm_")
    } == {
        "slurm_additional_parameters": {"reservation": "a=b"},
        "slurm_setup": ["module load x, y"],
        "slurm_use_srun": False,
        "slurm_nodes": 1,
        "slurm_qos": "7",
    }
    assert not [*tmp_path.iterdir()]


def test_resources_that_a_place_has():
    check_resources("local", {"cpus": "2.0"})
    check_resources("ray", {"cpus": "0.5", "gpus": "0.25", "address": "here:1"})
    check_resources("slurm", {"gpus": "0", "hours": "1.5", "slurm_mem_per_gpu": "8G"})


@pytest.mark.parametrize("content", ["", "{}", '{"schema": 1, "points": [], "runs": [{}]}'])
def test_a_damaged_list_of_runs_is_one_clear_line(tmp_path, content):
    (tmp_path / "sweep.json").write_text(content)
    with pytest.raises(RunError, match=r"^[^\n]*sweep.json: (damaged|`schema`)[^\n]*$"):
        SweepFolder.view(tmp_path)
    (tmp_path / "sweep.json").write_text('{"schema": 1, "points": [{"extra": 1}], "runs": []}')
    with pytest.raises(RunError, match=r"sweep.json: damaged, .*unexpected keyword argument 'extra'$"):
        SweepFolder.view(tmp_path)


def test_a_page_that_cannot_be_written_is_an_error(tiny, tmp_path, in_process, monkeypatch):
    honest = Task.run

    def run(task, callback, data):
        (tmp_path / "all" / "sweep.html").mkdir()
        honest(task, callback, data)

    monkeypatch.setattr(Task, "run", run)
    with pytest.raises(RunError, match=r"sweep.html"):
        sweep(grid([tiny], {}), out=tmp_path / "all", device="cpu")


def test_an_interruption_stays_one_where_the_page_cannot_be_written(tiny, tmp_path, in_process, monkeypatch):
    honest, told = Task.run, Told()

    def run(task, callback, data):
        honest(task, callback, data)
        (tmp_path / "all" / "sweep.html").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(Task, "run", run)
    with pytest.raises(KeyboardInterrupt):
        sweep(grid([tiny], {}), out=tmp_path / "all", device="cpu", watch=told)
    assert "sweep.html" in told.notes[-1]


def test_a_run_whose_data_are_not_where_the_sweep_is_resumed_tells_what_paths_are_relative_to(
    tiny, tmp_path, in_process, monkeypatch
):
    x, y = np.random.default_rng(0).random((24, 1, 4, 4), np.float32), np.arange(24) % 3
    np.savez("small.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    tiny.write_text(re.sub("data .*", 'data arrays("small.npz") |> standardize', TINY))
    wanted = grid([tiny], {})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    told = Told()
    sweep(wanted, out=tmp_path / "all", device="cpu", watch=told)
    assert told.notes[-1].endswith("there is no file `small.npz`; paths are relative to the working directory")


def test_a_page_that_cannot_be_made_leaves_none_of_earlier(tiny, tmp_path, in_process, monkeypatch):
    def refuse(paths):
        raise RunError("a file is damaged")

    told = Told()
    sweep(grid([tiny], {}), out=tmp_path / "all", device="cpu")
    page = tmp_path / "all" / "sweep.html"
    assert page.exists()
    monkeypatch.setattr("symdsl.runner.sweeping.report_html", refuse)
    sweep(resume=tmp_path / "all", device="cpu", watch=told)
    assert not page.exists()
    assert told.notes[-1] == "sweep.html is not written: a file is damaged"


def test_a_run_that_is_damaged_keeps_no_other_from_the_page(tiny, tmp_path, in_process):
    folder = sweep(grid([tiny], {}, [1, 2]), out=tmp_path / "all", device="cpu")
    first, second = (folder.path / one.folder for one in folder.runs)
    (first / "run.json").write_text("{")
    told = Told()
    sweep(resume=folder.path, device="cpu", watch=told)
    assert second.name in (folder.path / "sweep.html").read_text()
    assert told.notes[-1] == f"left out of the report: {first / 'run.json'}: damaged, it is not a JSON object"
    (second / "run.json").write_text("{")
    sweep(resume=folder.path, device="cpu", watch=told)
    assert not (folder.path / "sweep.html").exists()
    assert told.notes[-1].startswith("sweep.html is not written: ")


def test_a_run_that_another_process_goes_on_with_is_not_tried_again(tiny, tmp_path, in_process):
    folder = sweep(grid([tiny], {}), out=tmp_path / "all", device="cpu")
    (one,) = folder.begun()
    (one / "result.json").unlink()
    told = Told()
    with RunFolder.resume(one):
        sweep(resume=folder.path, device="cpu", watch=told)
    (failed,) = [note for note in told.notes if "failed" in note]
    assert failed == f"{one.name} failed: {one}: in use by a live run; wait for it to end, or give another folder"


def task(tiny, folder):
    return Task(tiny.read_text(), "tiny", 1, "cpu", "laplace", str(folder), "one")


def test_a_run_of_another_spec_is_not_taken_for_this_one(tiny, tmp_path):
    task(tiny, tmp_path / "run").run(Silent())
    noted = []
    tiny.write_text(TINY.replace("epochs = 2", "epochs = 3"))
    run_all([task(tiny, tmp_path / "run")], InProcess(), 1, lambda one, status, reason: noted.append((status, reason)))
    assert noted == [("failed", f"{tmp_path / 'run'}: holds a run of another spec; delete it or give another --out")]


def test_too_many_combinations_are_refused_before_they_are_made(tiny):
    values = tuple(map(str, range(100)))
    with pytest.raises(ValueError, match="1,000,000,000,000 runs are more than 1,000"):
        grid([tiny], {f"search.{number}": values for number in range(6)})


def test_slurm_runs_a_task_by_submitit_and_hands_on_what_it_reports(tiny, tmp_path):
    pytest.importorskip("submitit", reason="needs the extra `slurm`")
    with pytest.raises(ValueError, match="unknown resource `hour` of a run on slurm; did you mean `hours`"):
        check_resources("slurm", {"hour": "2"})
    wanted, told = grid([tiny], {}, [1]), Epochs()
    found = sweep(wanted, out=tmp_path / "all", on="slurm", resources={"cluster": "local"}, device="cpu", watch=told)
    assert [one.seed for one in found.finished()] == [1]
    assert told.epochs == [1, 2]


class Epochs(Observers):
    """Keeps the epochs that it is told of."""

    def __init__(self):
        super().__init__()
        self.epochs = []

    def of(self, title):
        silent = super().of(title)
        silent.on_epoch = lambda record: self.epochs.append(record["epoch"])
        return silent


@pytest.mark.parametrize(
    ("resources", "variable", "threads"),
    [
        ({"cpus": "4"}, "1", "4"),
        ({"cpus": "4"}, None, "4"),
        ({}, "3", "3"),
        ({}, None, "3"),
    ],
)
def test_threads_are_what_is_asked_for_then_what_the_environment_says(
    resources, variable, threads, tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(7), raising=False)
    if variable is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    environments = []

    def start(*_, env, **__):
        environments.append(env)
        raise OSError("not started")

    monkeypatch.setattr(engines.subprocess, "Popen", start)
    with pytest.raises(OSError, match="not started"):
        engines.ENGINES["local"](resources, "cpu", 2).run(task(tiny, tmp_path / "run"), Silent())
    assert [one["OMP_NUM_THREADS"] for one in environments] == [threads]


NOISY = """
import os
import attrs
from symdsl.kinds import CONV

NOISY = attrs.evolve(CONV, signature=attrs.evolve(CONV.signature, name="NOISY"), module="noisy:path")

def path(*arguments):
    from symdsl.kinds.convolution.module import conv

    print("a print of a path", flush=True)
    os.system("echo a word of another process")
    return conv(*arguments)
"""


def test_what_a_plug_in_prints_does_not_end_a_run(tiny, tmp_path, monkeypatch, capfd):
    offer = tmp_path / "plug-in" / "noisy-1.0.dist-info"
    offer.mkdir(parents=True)
    (offer / "METADATA").write_text("Metadata-Version: 2.1\nName: noisy\nVersion: 1.0\n")
    (offer / "entry_points.txt").write_text("[symdsl.kinds]\nNOISY = noisy:NOISY\n")
    (offer.parent / "noisy.py").write_text(NOISY)
    checkout = Path(engines.__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{checkout}{os.pathsep}{offer.parent}")
    tiny.write_text(TINY.replace("[F-FC, CONV(3)]", "[F-FC, NOISY(3)]"))
    told = Epochs()
    engines.ENGINES["local"]({}, "cpu", 1).run(task(tiny, tmp_path / "run"), told.of("one"))
    assert told.epochs == [1, 2]
    printed = capfd.readouterr()
    assert printed.out == ""
    assert {"a print of a path", "a word of another process"} <= set(printed.err.splitlines())


RAY = """
from pathlib import Path
from symdsl.diagnostics import RunError
from symdsl.runner import grid, sweep
from symdsl.runner.engines import OnRay
folder = sweep(grid([Path("tiny.sym")], {}), out="all", on="ray", device="cpu")
print(len(folder.finished()))
try:
    OnRay({"cpus": "4000"}, "cpu")
except RunError as error:
    print(error)
"""


def test_ray_runs_tasks_in_its_workers(tiny, tmp_path):
    pytest.importorskip("ray", reason="needs the extra `ray`")
    with started(["-c", RAY], tmp_path) as running:
        printed, complaint = running.communicate(timeout=240)
    finished, *refused = printed.strip().splitlines()
    assert (running.returncode, finished) == (0, "1"), complaint
    assert {row["status"] for row in table(tmp_path / "all")} == {"finished"}
    assert re.fullmatch(r"the resource `cpus` \(=4000\) must be at most \d+, which Ray has here", *refused)


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("os.kill(os.getpid(), 9)", "a signal has ended its process: Killed, as when memory runs out"),
        ("os.abort()", "a signal has ended its process: Aborted"),
        ("sys.exit(7)", "its process ended with status 7"),
    ],
)
def test_a_process_that_dies_is_told_by_its_end(tiny, tmp_path, monkeypatch, end, reason):
    def begun(engine):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen([sys.executable, "-c", f"import os, sys; sys.stdin.read(); {end}"], **pipes)

    monkeypatch.setattr(Children, "_started", begun)
    with pytest.raises(RunError, match=f"^{re.escape(reason)}$"):
        Children(1).run(task(tiny, tmp_path / "run"), Silent())


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 15)", "sys.exit(130)"])
def test_a_process_that_is_ended_from_outside_ends_no_other_run(tiny, tmp_path, monkeypatch, end):
    def begun(engine):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen([sys.executable, "-c", f"import os, sys; sys.stdin.read(); {end}"], **pipes)

    monkeypatch.setattr(Children, "_started", begun)
    engine, task = Children(1), Task(tiny.read_text(), "tiny", 1, "cpu", "laplace", str(tmp_path / "run"), "one")
    with pytest.raises(RunError, match="its process was ended from outside"):
        engine.run(task, Silent())
    engine.end()
    with pytest.raises(KeyboardInterrupt):
        engine.run(task, Silent())


def test_a_job_that_slurm_refuses_is_one_line(tiny, tmp_path, monkeypatch):
    submitit = pytest.importorskip("submitit", reason="needs the extra `slurm`")

    def refuse(executor, *given):
        raise submitit.core.utils.FailedJobError("sbatch: error\ninvalid partition specified")

    monkeypatch.setattr(submitit.AutoExecutor, "submit", refuse)
    monkeypatch.chdir(tmp_path)
    engine = OnSlurm({"cluster": "local"}, "cpu")
    errand = Errand.of(Task(tiny.read_text(), "tiny", 1, "cpu", "laplace", str(tmp_path / "run"), "one"), 1)
    with pytest.raises(RunError, match="Slurm refuses the job: invalid partition specified"):
        engine.submitted(errand)
