"""Searches shared out among two processes, which must find what one finds alone."""

import json
import math
import os
import signal
import socket
from contextlib import ExitStack

import attrs
import pytest
import torch

from processes import await_state, started
from symdsl import data, lowering, ranks, runner
from symdsl.diagnostics import RunError
from symdsl.evidence.backward import _batches, _on_every_rank
from symdsl.runner import training
from symdsl.runner.start import begin
from symdsl.runner.structure import Structure
from symdsl.runner.training import Trainer
from symdsl.runs import RunFolder
from symdsl.spec import load

SPEC = """
data synthetic(size = 4, classes = 3, train = 33, test = 8) |> standardize |> augment(flip = true, shift = 1)

network tiny {
  input image(channels, 4, 4)
  layer l1: F-FC + CONV(3) -> 3 |> relu
  layer l2: F-FC + CONV(3) -> 4 stride 2 |> relu
  flatten
  layer h1: FC -> classes
}

search {
  epochs   = 4
  every    = 1
  batch    = 8
  examples = 30
}
"""
TURNED = SPEC.replace(
    "  layer l1: F-FC + CONV(3) -> 3 |> relu\n",
    """
  average affine(rotation = 20, samples = 3) {
    layer l1: CONV(3) -> 3 |> relu
  }
""",
).replace("layer l2: F-FC + CONV(3) -> 4 stride 2", "layer l2: CONV(3) -> 4 stride 2")
"""A spec whose ranges are learned."""

CURVATURES = {"joint": "joint", "kfac": "kfac-reduce", "kfac(expand)": "kfac-expand"}
"""Names of the spec, and of the evidence."""


def found(curvature, few=100):
    """Precisions after 20 evidence steps in float64, and figures of the last epoch; beyond `few` they are many."""
    spec = load("tiny.sym", {"search.objective": f"laplace(approximation = {curvature})"})
    dataset = data.load(spec)
    wide = {part: attrs.evolve(one, x=one.x.double()) for part in ("train", "test") for one in [getattr(dataset, part)]}
    net = lowering.compile(spec, 0).double()
    start = begin(net, spec.facts, 1, "relaxed")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(training, "FEW_EXAMPLES", few)
        trainer = Trainer(net, spec.facts, attrs.evolve(dataset, **wide), 0, start)
    structure = Structure(trainer, start, print)
    structure._fits, structure._nats_gained = lambda *_: True, lambda *_: math.inf
    assert structure.estimator.curvature == CURVATURES[curvature]
    metrics = [structure.train_epoch()[0] for _ in range(4)]
    assert trainer.step == 20
    return {"precisions": trainer.precisions, "last": attrs.asdict(metrics[-1])}


def many():
    """The same where examples are many, by the factors that amplify round-off least."""
    return found("kfac(expand)", few=1)


PROGRAM = """
import json
from runner.test_ranks import CURVATURES, found, many
from symdsl import ranks
with ranks.joined("cpu"):
    print(json.dumps({curvature: found(curvature) for curvature in CURVATURES} | {"many": many()}))
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.sym").write_text(SPEC)
    return tmp_path


def on_ranks(stack, arguments, cwd, number=2):
    """`python` with these arguments as so many ranks, as torchrun starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(number)}
    found = []
    for rank in range(number):
        with pytest.MonkeyPatch.context() as patched:
            for name, value in {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}.items():
                patched.setenv(name, value)
            found.append(stack.enter_context(started(arguments, cwd)))
    return found


def ends(processes):
    """Status, output and complaint of each."""
    said = [one.communicate(timeout=120) for one in processes]
    return [(one.returncode, *texts) for one, texts in zip(processes, said, strict=True)]


def test_two_ranks_find_the_precisions_of_one_process(tiny):
    path = os.path.dirname(os.path.dirname(__file__))
    with ExitStack() as stack:
        running = on_ranks(stack, ["-c", f"import sys; sys.path.insert(0, {path!r})\n{PROGRAM}"], tiny)
        alone = {curvature: found(curvature) for curvature in CURVATURES} | {"many": many()}
        shared = [
            json.loads(said) for status, said, complaint in ends(running) if status == 0 or pytest.fail(complaint)
        ]
    for curvature, tolerance in {"joint": 1e-9, "kfac": 1e-9, "kfac(expand)": 1e-9, "many": 1e-8}.items():
        assert shared[0][curvature] == shared[1][curvature]
        assert shared[0][curvature]["precisions"] == pytest.approx(alone[curvature]["precisions"], rel=1e-5)
        assert shared[0][curvature]["last"] == pytest.approx(alone[curvature]["last"], rel=tolerance)
        assert len(set(alone[curvature]["precisions"].values())) > 5


def test_a_search_of_two_ranks_is_a_run_like_any_other_and_goes_on_alone(tiny):
    with ExitStack() as stack:
        command = ["-m", "symdsl", "search", "tiny.sym", "--device", "cpu", "--out", "two", "--set", "search.epochs=2"]
        first, second = ends(on_ranks(stack, command, tiny))
    assert (first[0], second) == (0, (0, "", "")), first
    assert "epoch 2/2" in first[2]
    run = RunFolder.view(tiny / "two")
    assert (run.status, len(run.read_metrics())) == ("finished", 2)
    runner.search(load("tiny.sym", {"search.epochs": 2}), device="cpu", out="one")
    alone = RunFolder.view(tiny / "one").read_result()
    assert run.read_result()["test"]["nll"] == pytest.approx(alone["test"]["nll"], rel=1e-3)
    assert run.read_result()["neg_log_evidence_per_example"] == pytest.approx(
        alone["neg_log_evidence_per_example"], rel=1e-3
    )


def test_a_killed_rank_ends_the_run_with_one_line_and_one_process_goes_on(tiny):
    with ExitStack() as stack:
        command = ["-m", "symdsl", "search", "tiny.sym", "--device", "cpu", "--out", "two", "--quiet"]
        running = on_ranks(stack, [*command, "--set", "search.epochs=100000"], tiny)
        await_state((tiny / "two" / "metrics.jsonl").exists, *running)
        os.kill(running[1].pid, signal.SIGKILL)
        (status, said, complaint), second = ends(running)
    assert (status, said, second[0]) == (3, "", -signal.SIGKILL)
    way_on = "symdsl search --device cpu --resume two"
    assert complaint == f"error: another of the 2 ranks has ended or cannot be reached; continue with: {way_on}\n"
    run = RunFolder.view(tiny / "two")
    assert run.resumable
    done = run.load_checkpoint()[0]["epoch"]

    class EnoughError(Exception):
        pass

    class Stopping:
        def on_epoch(self, record):
            assert record["epoch"] == done + 1
            raise EnoughError

    with pytest.raises(EnoughError):
        runner.search(resume="two", device="cpu", callbacks=[Stopping()])


@pytest.mark.parametrize("text", [SPEC, TURNED], ids=["candidates", "ranges"])
def test_a_run_of_one_process_goes_on_with_three_ranks(tiny, text):
    (tiny / "tiny.sym").write_text(text)
    runner.search(load("tiny.sym"), device="cpu", out="whole")

    class StopError(Exception):
        pass

    class Stopping:
        def on_epoch(self, record):
            if record["epoch"] == 2:
                raise StopError

    with pytest.raises(StopError):
        runner.search(load("tiny.sym"), device="cpu", out="part", callbacks=[Stopping()])
    with ExitStack() as stack:
        running = on_ranks(stack, ["-m", "symdsl", "search", "--resume", "part", "--device", "cpu"], tiny, number=3)
        ended = ends(running)
    assert [status for status, *_ in ended] == [0, 0, 0], ended
    whole, part = (RunFolder.view(tiny / name).read_result() for name in ("whole", "part"))
    assert part["test"]["nll"] == pytest.approx(whole["test"]["nll"], rel=1e-3)
    expected, metrics = (RunFolder.view(tiny / name).read_metrics() for name in ("whole", "part"))
    assert len(metrics) == 4
    assert metrics[-1].get("ranges", {}) == pytest.approx(expected[-1].get("ranges", {}), rel=1e-3)
    assert ("ranges" in metrics[-1]) is (text == TURNED)


def test_one_process_alone_keeps_everything_to_itself():
    assert (ranks.count(), ranks.rank(), ranks.share(7), ranks.shares(7)) == (1, 0, slice(0, 7), [7])
    rows = torch.ones(3)
    ranks.add_up([rows])
    assert rows.tolist() == [1, 1, 1]
    assert ranks.gathered_examples(rows, [3]) is rows
    assert (ranks.gathered(4), ranks.from_first(lambda: 5)) == ([4], 5)
    assert ranks.divided({"a": 1.0}, lambda key: rows) == {"a": rows}


def test_examples_are_shared_out_evenly_and_none_twice(monkeypatch):
    monkeypatch.setattr(ranks, "count", lambda: 3)
    parts = [ranks.share(10, of) for of in range(3)]
    assert [number for part in parts for number in range(10)[part]] == list(range(10))
    assert ranks.shares(10) == [3, 3, 4]
    assert _batches(10, 4) == [4, 4 + 2]
    assert _batches(11, 4) == [4, 4, 3]
    assert _batches(3, 4) == [3]
    with pytest.raises(RunError, match="2 examples cannot be shared out among 3 ranks: start fewer"):
        _batches(2, 4)
    assert [_on_every_rank(exact, 10) for exact in (0, 1, 4, 7, 8, 11)] == [0, 3, 4, 7, 10, 10]


DISAGREEING = """
from symdsl import ranks
from symdsl.diagnostics import NumericalError, RunError
import torch
def work(key):
    if key == "bad":
        raise NumericalError("not finite")
    return torch.ones(2)
def refuse():
    raise RunError("no room")
def second():
    if ranks.rank() == 1:
        raise RunError("no data")
    return ranks.rank()
def stop():
    raise ZeroDivisionError("by zero")
with ranks.joined("cpu"):
    for wrong in (lambda: ranks.divided({"bad": 1.0, "good": 2.0}, work), lambda: ranks.from_first(refuse)):
        try:
            wrong()
        except (NumericalError, RunError) as error:
            print(error)
    try:
        ranks.together(second)
    except RunError as error:
        print(error)
    try:
        ranks.from_first(stop)
    except ZeroDivisionError:
        assert ranks.rank() == 0
    except RunError as error:
        assert str(error) == "the first rank has stopped: ZeroDivisionError: by zero"
    assert ranks.together(ranks.rank) == ranks.rank()
    print(ranks.divided({"b": 1.0, "a": 2.0, "c": 1.0}, lambda key: torch.full((ord(key) - 96,), float(ranks.rank()))))
"""


ABSENT = """
import os, sys
from datetime import timedelta
from symdsl import ranks
ranks._JOINING = timedelta(seconds=1)
if os.environ["RANK"] == "0":
    try:
        with ranks.joined("cpu"):
            print("joined")
    except ranks.RankLostError as error:
        print(error)
"""


def test_a_rank_that_never_starts_is_not_waited_for_without_end(tmp_path):
    with ExitStack() as stack:
        first, second = ends(on_ranks(stack, ["-c", ABSENT], tmp_path))
    assert first[:2] == (0, "another of the 2 ranks has ended or cannot be reached\n")
    assert second[0] == 0


def test_what_fails_on_one_rank_fails_on_all(tmp_path):
    with ExitStack() as stack:
        done = ends(on_ranks(stack, ["-c", DISAGREEING], tmp_path))
    whole = (
        "not finite\nno room\nrank 1: no data\n{'b': tensor([1., 1.]), 'a': tensor([0.]), 'c': tensor([1., 1., 1.])}\n"
    )
    assert done == [(0, whole, "")] * 2
