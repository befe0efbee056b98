"""The same search with several seeds."""

import json
import os
import shutil
import signal
import statistics
import sys
from xml.etree import ElementTree

import pytest
import torch

from processes import await_state, started
from symdsl import runner
from symdsl.data import from_tensors
from symdsl.diagnostics import NumericalError, RunError
from symdsl.progress import Callbacks, Observers, Silent
from symdsl.runner import search_seeds, seeds
from symdsl.runner.tasks import hand_on
from symdsl.runs import RunFolder, SeedsFolder
from symdsl.runs.summary import summary
from symdsl.spec import parse


def read(folder, name):
    return json.loads((folder / name).read_text())


def numbers(folder):
    """A run's numbers, without its times."""
    result = read(folder, "result.json")
    return {key: value for key, value in result.items() if key != "wall_s"}, (folder / "model.safetensors").read_bytes()


class Watching(Observers):
    """Keeps what it is told, and may press Ctrl-C in the first epoch of a seed."""

    def __init__(self, stop_at=None):
        super().__init__()
        self.told, self.stop_at = [], stop_at

    def of(self, title):
        return Told(title, self)

    def on_note(self, text):
        self.told.append(text)


class Told(Silent):
    def __init__(self, title, watching):
        super().__init__()
        self.title, self.watching = title, watching

    def on_epoch(self, metrics):
        self.watching.told.append((self.title, metrics["epoch"]))
        if self.title == self.watching.stop_at:
            raise KeyboardInterrupt


class Ends:
    """Keeps how a seed's search ended."""

    def __init__(self, seed, heard):
        self.seed, self.heard = seed, heard

    def on_finish(self, result):
        self.heard.append((self.seed, "finished", result["seed"]))

    def on_fail(self, error):
        self.heard.append((self.seed, "failed", type(error)))


@pytest.fixture
def quick(small):
    return small(search__epochs=2)


def test_every_seed_is_a_run_like_any_other(quick, tmp_path):
    found = search_seeds(quick, [5, 3], device="cpu", out=tmp_path / "all")
    assert [one["folder"] for one in found["seeds"]] == ["seed-5", "seed-3"]
    runner.search(quick, device="cpu", out=tmp_path / "alone", seed=3)
    together, alone = numbers(tmp_path / "all" / "seed-3"), numbers(tmp_path / "alone")
    assert together[1] == alone[1]
    assert together[0] == alone[0]
    assert together[0]["spec"] == read(tmp_path / "all", "seeds.json")["spec"] == quick.name


def test_the_summary_is_that_of_the_results(quick, tmp_path):
    found = search_seeds(quick, 3, device="cpu", out=tmp_path)
    first = quick.facts.search.seed
    results = [read(tmp_path / f"seed-{seed}", "result.json") for seed in range(first, first + 3)]
    nll = [one["test"]["nll"] for one in results]
    assert found["metrics"]["test.nll"] == {
        "mean": pytest.approx(statistics.fmean(nll)),
        "spread": pytest.approx(statistics.stdev(nll)),
        "min": min(nll),
        "max": max(nll),
        "values": nll,
    }
    assert "test.rmse" not in found["metrics"]
    conv = found["layers"][1]["candidates"][1]
    shares = [one["layers"][1]["candidates"][1]["relative"] for one in results]
    assert (conv["kind"], conv["relative"]) == ("CONV", pytest.approx(statistics.fmean(shares)))
    assert conv["chosen"] == sum(one["layers"][1]["chosen"] == "CONV" for one in results)
    assert read(tmp_path, "seeds.json") == json.loads(json.dumps(found.content))
    assert "learned structure" in found._repr_svg_()
    page = found._repr_html_()
    assert "<svg" in page
    assert ElementTree.fromstring(page).tag == "div"
    assert f"{conv['chosen']} of 3</td>" in page
    assert "3 of 3 seeds finished" in page
    assert "3 of 3 seeds finished" in (tmp_path / "seeds.txt").read_text()
    unlearned = sum(not one["priors_learned"] for one in results)
    assert found.content.get("unlearned", 0) == unlearned > 0
    assert f"no prior was learned in {unlearned} of them" in (tmp_path / "seeds.txt").read_text()


def of_one_layer(chosen, kept, shares):
    """What the summary reads of a result whose only layer has three candidates."""
    candidates = [
        {"kind": kind, "parameters": 1, "relative": share}
        for kind, share in zip(("FC", "F-FC", "CONV"), shares, strict=True)
    ]
    return {"layers": [{"name": "l1", "chosen": chosen, "kept": kept, "candidates": candidates}]}


def test_a_candidate_stays_that_half_of_the_runs_kept_and_a_layer_that_half_of_them_removed():
    kept = of_one_layer("CONV", ["F-FC", "CONV"], (0.0, 0.4, 0.6))
    removed = of_one_layer(None, [], (0.0, 0.0, 0.0))
    (layer,) = summary([kept, removed])["layers"]
    assert (layer["chosen"], layer["kept"]) == ("CONV", ["F-FC", "CONV"])
    (layer,) = summary([kept, removed, removed])["layers"]
    assert (layer["chosen"], layer["kept"]) == (None, [])


def test_of_candidates_chosen_equally_often_the_one_of_the_larger_share_is_named():
    results = [of_one_layer("FC", ["FC"], (0.6, 0.0, 0.4)), of_one_layer("CONV", ["CONV"], (0.1, 0.0, 0.9))]
    assert summary(results)["layers"][0]["chosen"] == "CONV"


def test_the_ranges_of_averages_are_means_over_the_seeds(tmp_path):
    spec = parse(
        "data synthetic(size = 4, classes = 3, train = 24, test = 8) |> standardize\n"
        "network n {\n  input image(channels, 4, 4)\n  average affine(rotation = 5, samples = 2) {\n"
        "    layer l1: CONV(3) -> 2 |> relu\n  }\n  flatten\n  layer h1: FC -> classes\n}\n"
        "search { epochs = 4  every = 1  batch = 12  burnin = 0 }"
    )
    found = search_seeds(spec, [1, 2], device="cpu", out=tmp_path)
    learned = [read(tmp_path / f"seed-{seed}", "result.json")["averages"][0]["ranges"]["rotation"] for seed in (1, 2)]
    assert learned[0] != learned[1]
    (average,) = found["averages"]
    assert average["ranges"]["rotation"] == pytest.approx(statistics.fmean(learned))
    words = f"rotation ±{statistics.fmean(learned):.4g}"
    assert words[:12] in (tmp_path / "seeds.txt").read_text()
    assert average["start"] == {"rotation": 5}


def test_a_seed_that_fails_stops_no_other_and_is_tried_again(quick, tmp_path, monkeypatch):
    honest, failing = seeds.Task.run, {4: RunError("no room"), 5: NumericalError("not finite")}

    def run(task, observer, data):
        if task.seed in failing:
            raise failing[task.seed]
        honest(task, observer, data)

    monkeypatch.setattr(seeds.Task, "run", run)
    watching = Watching()
    found = search_seeds(quick, [4, 5, 6], device="cpu", out=tmp_path, watch=watching)
    assert [(one["status"], one["reason"]) for one in found["seeds"]] == [
        ("failed", "no room"),
        ("failed", "not finite"),
        ("finished", None),
    ]
    assert found["finished"] == 1
    assert runner.SeedsResult({"finished": 0}, tmp_path, quick)._repr_svg_() is None
    assert "seed 4 failed: no room" in watching.told
    assert "seed 5 failed: not finite" in (tmp_path / "seeds.txt").read_text()
    failing.clear()
    before = numbers(tmp_path / "seed-6")
    again = search_seeds(quick, device="cpu", resume=tmp_path)
    assert [one["status"] for one in again["seeds"]] == ["finished"] * 3
    assert numbers(tmp_path / "seed-6") == before


def test_an_interrupted_search_goes_on_where_it_was(quick, tmp_path):
    whole, heard = search_seeds(quick, [1, 2, 3], device="cpu", out=tmp_path / "whole"), []
    with pytest.raises(KeyboardInterrupt):
        search_seeds(
            quick,
            [1, 2, 3],
            device="cpu",
            out=tmp_path / "broken",
            watch=Watching("seed 2"),
            callbacks=lambda seed: [Ends(seed, heard)],
        )
    assert heard == [(1, "finished", 1), (2, "failed", KeyboardInterrupt)]
    states = [one["status"] for one in read(tmp_path / "broken", "seeds.json")["seeds"]]
    assert states == ["finished", "interrupted", "waiting"]
    watching = Watching()
    again = search_seeds(quick, device="cpu", resume=tmp_path / "broken", watch=watching)
    assert watching.told[-3:] == [("seed 2", 2), ("seed 3", 1), ("seed 3", 2)]
    assert "seed 1" not in dict(watching.told)
    assert again["layers"] == whole["layers"]


def test_a_seed_that_is_lost_or_damaged_is_run_again_and_stops_no_other(quick, tmp_path):
    whole = search_seeds(quick, [1, 2, 3, 4], device="cpu", out=tmp_path)
    shutil.rmtree(tmp_path / "seed-1")
    (tmp_path / "seed-2" / "result.json").write_text("{")
    (tmp_path / "seed-3" / "model.safetensors").unlink()
    states = {one.seed: one.status for one, _ in SeedsFolder.view(tmp_path).results()}
    assert states == {1: "waiting", 2: "failed", 3: "finished", 4: "finished"}
    again = search_seeds(quick, [1, 2, 3, 4, 5], device="cpu", resume=tmp_path)
    assert [one["status"] for one in again["seeds"]] == ["finished"] * 5
    assert (tmp_path / "seed-3" / "model.safetensors").exists()
    search_seeds(quick, [1, 2, 3, 4], device="cpu", out=tmp_path / "anew")
    for seed in (1, 2, 3):
        assert numbers(tmp_path / f"seed-{seed}") == numbers(tmp_path / "anew" / f"seed-{seed}")
    assert whole["layers"] == SeedsFolder.view(tmp_path / "anew").content()["layers"]


def test_a_folder_that_was_left_while_it_was_made_can_be_used(quick, tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / ".spec.sym.tmp").touch()
    assert search_seeds(quick, [1], device="cpu", out=tmp_path)["finished"] == 1


def test_a_folder_can_be_given_more_seeds(quick, tmp_path):
    search_seeds(quick, [1], device="cpu", out=tmp_path)
    more = search_seeds(quick, [1, 2], device="cpu", resume=tmp_path)
    assert [one["seed"] for one in more["seeds"]] == [1, 2]


def test_side_by_side_gives_the_same_runs_and_tells_what_failed(quick, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))  # which numbers are rounded depends on it
    many, watching = tmp_path / "many", Watching()
    with SeedsFolder.create(many, quick.name, quick.text(), "laplace", [7, 8]):
        (many / "seed-7").write_text("in the way")
    heard = []
    found = search_seeds(
        quick, device="cpu", resume=many, jobs=2, watch=watching, callbacks=lambda seed: [Ends(seed, heard)]
    )
    assert heard == [(8, "finished", 8)]  # seed 7 failed before it began
    assert [one["status"] for one in found["seeds"]] == ["failed", "finished"]
    assert f"{many / 'seed-7'}: is a file; give a folder" in found["seeds"][0]["reason"]
    assert [one for one in watching.told if one[0] == "seed 8"] == [("seed 8", 1), ("seed 8", 2)]
    assert read(many / "seed-8", "run.json")["command"] == sys.argv
    search_seeds(quick, [8], device="cpu", out=tmp_path / "one")
    assert numbers(many / "seed-8") == numbers(tmp_path / "one" / "seed-8")


def test_a_seed_whose_process_is_ended_has_failed_with_the_reason(small, tmp_path):
    class Full:
        def on_epoch(self, record):
            raise RunError("the tracker is full")

    endless = small(search__epochs=100_000)
    found = search_seeds(endless, [1], "cpu", out=tmp_path / "all", jobs=2, callbacks=lambda seed: [Full()])
    assert [(one["status"], one["reason"]) for one in found["seeds"]] == [("failed", "the tracker is full")]
    assert read(tmp_path / "all", "seeds.json")["seeds"] == found["seeds"]
    with SeedsFolder.resume(tmp_path / "all", endless.text(), "laplace", [2]) as again:
        assert [one.status for one in again.runs] == ["waiting", "waiting"]
    listed = read(tmp_path / "all", "seeds.json")["seeds"]
    assert [(one["status"], one["reason"]) for one in listed] == [("interrupted", None), ("waiting", None)]


def test_what_a_callback_raises_is_on_the_list(quick, tmp_path):
    class Raising:
        def on_epoch(self, record):
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        search_seeds(quick, [1, 2], "cpu", out=tmp_path / "all", callbacks=lambda seed: [Raising()])
    assert [one["status"] for one in read(tmp_path / "all", "seeds.json")["seeds"]] == ["interrupted", "waiting"]


def test_what_lost_its_spec_or_its_record_stops_no_other(quick, tmp_path):
    search_seeds(quick, [1, 2], device="cpu", out=tmp_path)
    (tmp_path / "seed-1" / "spec.sym").unlink()
    record = (tmp_path / "seed-2" / "run.json").read_bytes()
    (tmp_path / "seed-2" / "run.json").write_text("")
    found = search_seeds(quick, [1, 2, 3], device="cpu", resume=tmp_path)
    assert [one["status"] for one in found["seeds"]] == ["finished", "failed", "finished"]
    assert "run.json: damaged" in found["seeds"][1]["reason"]
    assert RunFolder.view(tmp_path / "seed-1").is_whole
    (tmp_path / "seed-2" / "run.json").write_bytes(record)
    assert [one["status"] for one in search_seeds(quick, device="cpu", resume=tmp_path)["seeds"]] == ["finished"] * 3


def test_a_line_that_a_killed_process_left_torn_says_nothing():
    assert hand_on('{"epoch": {"epo', Callbacks([])) == ""
    assert hand_on('{"failed": "why"}', Callbacks([])) == "why"


def test_what_a_callback_raises_ends_all_seeds_at_once(small, tmp_path):
    class Raising:
        def on_epoch(self, record):
            raise LookupError("enough")

    endless = small(search__epochs=100_000)
    with pytest.raises(LookupError, match="enough"):  # seed 1, which would not end, comes first
        search_seeds(
            endless,
            [1, 2, 3],
            device="cpu",
            out=tmp_path / "all",
            jobs=2,
            callbacks=lambda seed: [Raising()] if seed == 2 else [],
        )
    assert not (tmp_path / "all" / "seed-3").exists()


LONG = """
import sys
from pathlib import Path
from symdsl.runner import search_seeds
from symdsl.spec import parse
spec = parse(Path("spec.sym").read_text())
try:
    search_seeds(spec, [1, 2, 3], device="cpu", out="all", jobs=2)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_leaves_every_run_side_by_side_in_a_state_to_go_on_from(small, tmp_path):
    (tmp_path / "spec.sym").write_text(small(search__epochs=100_000).text())
    with started(["-c", LONG], tmp_path) as running:
        runs = [tmp_path / "all" / f"seed-{seed}" for seed in (1, 2)]
        await_state(lambda: all((run / "metrics.jsonl").exists() for run in runs), running)
        os.kill(running.pid, signal.SIGINT)
        _, complaint = running.communicate(timeout=60)
    assert (running.returncode, complaint) == (130, "")
    assert [RunFolder.view(run).status for run in runs] == ["interrupted"] * 2
    states = [one["status"] for one in read(tmp_path / "all", "seeds.json")["seeds"]]
    assert states == ["interrupted", "interrupted", "waiting"]
    for run in runs:
        RunFolder.resume(run).close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *((0, "must be from 1 to 1000"), ([], "must be from 1 to 1000"), (10**12, "must be from 1 to 1000")),
        *(([1, 1], "must be different"), ([-1], "must be different"), ([2**63], "to 2.63 - 1")),
    ],
)
def test_seeds_that_make_no_sense(quick, tmp_path, given, message):
    with pytest.raises(ValueError, match=message):
        search_seeds(quick, given, out=tmp_path)
    with pytest.raises(ValueError, match=r"`jobs` \(=0\) must be at least 1"):
        search_seeds(quick, 2, out=tmp_path, jobs=0)
    with pytest.raises(ValueError, match="`out` is for new searches"):
        search_seeds(quick, out=tmp_path / "all", resume=tmp_path)
    with pytest.raises(ValueError, match=r"`device` \(=\"moon\"\) must be auto, cpu, cuda or cuda:n"):
        search_seeds(quick, 2, out=tmp_path / "all", device="moon")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"spec": "digits.sym"}, r"`spec` \(='digits.sym'\) must be a Spec"),
        ({"seeds": 2.0}, r"`seeds` \(=2.0\) must be a whole number or a list"),
        ({"seeds": [1.5]}, r"`seeds` \(=\[1.5\]\) must be a whole number or a list"),
        ({"seeds": True}, r"`seeds` \(=True\) must be a whole number or a list"),
        ({"callbacks": [Silent()]}, "must be a function of the seed"),
        ({"data": torch.zeros(2)}, "must be made by `symdsl.data.from_tensors`"),
    ],
)
def test_arguments_of_another_type(quick, tmp_path, wrong, message):
    with pytest.raises(TypeError, match=message):
        search_seeds(**({"spec": quick, "out": tmp_path / "all"} | wrong))
    assert not list(tmp_path.iterdir())


def test_data_in_memory_are_handed_to_every_seed(quick, tmp_path):
    network = "network n {\n  input image(1, 4, 4)\n  flatten\n  layer h: FC -> classes\n}\n"
    spec = parse(f"data given(1, 4, 2) |> standardize\n{network}search {{\n  epochs = 2\n  batch = 4\n}}\n")
    x, y = torch.randn(8, 4, 4, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 2
    data = from_tensors(x, y, x, y)
    with pytest.raises(RunError, match="handed over in Python"):
        search_seeds(spec, 2, device="cpu", out=tmp_path / "all")
    with pytest.raises(ValueError, match=r"seeds run one at a time: leave `jobs` \(=2\) out"):
        search_seeds(spec, 2, device="cpu", out=tmp_path / "all", data=data, jobs=2)
    with pytest.raises(ValueError, match="the spec learns from"):
        search_seeds(quick, 2, device="cpu", out=tmp_path / "all", data=data)
    assert not (tmp_path / "all").exists()
    assert search_seeds(spec, 2, device="cpu", out=tmp_path / "all", data=data).content["finished"] == 2
    last = spec.facts.search.seed + 1
    alone = runner.search(spec, device="cpu", out=tmp_path / "one", data=data, seed=last)
    assert numbers(tmp_path / "all" / f"seed-{last}") == numbers(alone.folder)


def test_a_folder_is_used_for_one_search_only(small, quick, tmp_path):
    with SeedsFolder.create(tmp_path / "all", quick.name, quick.text(), "laplace", [1]):
        with pytest.raises(RunError, match=r"holds runs of several seeds; `--resume .*` continues them"):
            search_seeds(quick, [1], out=tmp_path / "all")
        with pytest.raises(RunError, match="in use by a live run"):
            search_seeds(quick, resume=tmp_path / "all")
    with pytest.raises(RunError, match="was started with `symdsl search`; resume it with that"):
        search_seeds(quick, resume=tmp_path / "all", objective="map")
    another = small(search__epochs=7)
    with pytest.raises(
        RunError, match=r"was started from another spec; `--resume .*all` without one continues with its own"
    ):
        search_seeds(another, resume=tmp_path / "all")
    with pytest.raises(ValueError, match="`spec` can be left out only to resume"):
        search_seeds(out=tmp_path / "new")
    (tmp_path / "all" / "spec.sym").write_text(another.text())
    for given in (None, another):
        with pytest.raises(RunError, match=r"all/spec.sym: damaged or edited, .* `symdsl search SPEC --resume .*all`"):
            search_seeds(given, resume=tmp_path / "all")
    (tmp_path / "all" / "spec.sym").unlink()
    with pytest.raises(RunError, match=r"all/spec.sym: missing; `symdsl search SPEC --resume .*all`, with the spec"):
        search_seeds(resume=tmp_path / "all")
    search_seeds(quick, device="cpu", resume=tmp_path / "all")
    assert (tmp_path / "all" / "spec.sym").read_text() == quick.text()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes").touch()
    with pytest.raises(RunError, match=r"is not empty \(it holds notes\)"):
        search_seeds(quick, [1], out=tmp_path / "other")


@pytest.mark.parametrize("content", ["", "{}", '{"schema": 1, "spec": "a", "objective": "map", "seeds": [{}]}'])
def test_a_damaged_list_of_seeds_is_one_clear_line(tmp_path, content):
    (tmp_path / "seeds.json").write_text(content)
    with pytest.raises(RunError, match=r"^[^\n]*seeds.json: (damaged|`schema`)[^\n]*$"):
        SeedsFolder.view(tmp_path)
    with pytest.raises(RunError, match="holds the runs of several seeds"):
        RunFolder.view(tmp_path)
    with pytest.raises(ValueError, match="not open for writing"):
        SeedsFolder(tmp_path, {}, [], None).write()


def test_other_data_are_refused_on_resume(tmp_path):
    network = "network n {\n  input image(1, 4, 4)\n  flatten\n  layer h1: FC -> classes\n}\n"
    spec = parse(f"data given(1, 4, 2)\n{network}search {{\n  epochs = 1\n  batch = 4\n}}\n")
    x, y = torch.randn(8, 1, 4, 4, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 2
    search_seeds(spec, [1], device="cpu", out=tmp_path / "all", data=from_tensors(x, y, x, y))
    with pytest.raises(RunError, match="was started with other data"):
        search_seeds(resume=tmp_path / "all", seeds=[1, 2], device="cpu", data=from_tensors(x + 1, y, x, y))
    found = search_seeds(resume=tmp_path / "all", seeds=[1, 2], device="cpu", data=from_tensors(x, y, x, y))
    assert found["finished"] == 2
