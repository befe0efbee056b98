"""A search whose candidates have basis functions: it runs, is drawn, learns lengthscales, and resumes identically."""

import html
import json
import math
import re

import pytest

from symdsl import runner
from symdsl.evidence import Laplace
from symdsl.progress import Callback
from symdsl.runner.structure import LEAST_PRECISION
from symdsl.spec import parse

SPEC = """
data digits |> subset(120) |> standardize

network sparse_net {
  input image(1, 8, 8)
  layer l1: S-FC + S-CONV(3) -> 2 |> relu
  layer l2: S-FC(learned, lengthscale) + S-CONV(3, learned, lengthscale) -> 2 stride 2 |> relu
  flatten
  layer h: FC -> classes
}

search {
  epochs = 3
  every  = 1
  batch  = 40
}
"""


class Interrupting(Callback):
    """Interrupts a run after its second epoch, as Ctrl-C would."""

    def on_epoch(self, record):
        if record["epoch"] == 2:
            raise KeyboardInterrupt("stop")


def timeless(folder):
    result = json.loads((folder / "result.json").read_text())
    return {key: value for key, value in result.items() if key != "wall_s"}


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A finished search, and the effective number of every tensor in the Laplace approximation that it reports."""
    folder, found = tmp_path_factory.mktemp("whole") / "run", []
    effective_parameters = Laplace.effective_parameters
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            Laplace, "effective_parameters", lambda self: found.append(effective_parameters(self)) or found[-1]
        )
        return runner.search(parse(SPEC, source="sparse.sym"), device="cpu", out=folder), found[-1]


@pytest.fixture(scope="module")
def whole(searched):
    return searched[0]


def test_a_search_over_sparse_kinds_is_drawn(whole):
    drawn = html.unescape((whole.folder / "architecture.svg").read_text())
    assert {"S-FC", "S-CONV"} <= set(re.findall(r"S-\w+", drawn))


def values_and_others(result):
    """The precisions of values whose lengthscales are learned, and all others of layers with several candidates."""
    dense, conv = result["layers"][1]["candidates"]
    others = dense["precision"][2:] + conv["precision"][1:]
    others += [value for one in result["layers"][0]["candidates"] for value in one["precision"]]
    return dense["precision"][:2] + conv["precision"][:1], others


def test_values_keep_their_prior_and_the_others_are_learned(whole, tmp_path):
    values, others = values_and_others(whole)
    assert values == [1.0, 1.0, 1.0]
    assert min(others) >= LEAST_PRECISION
    turned = "subset(120) |> rotate(degrees = 45, label = angle) |> standardize |> standardize(targets)"
    spec = parse(SPEC.replace("subset(120) |> standardize", turned))  # priors of a regression move from the first step
    values, others = values_and_others(runner.search(spec, device="cpu", out=tmp_path / "run"))
    assert values == [1.0, 1.0, 1.0]
    assert all(value != 1.0 for value in others)


TENSORS = {
    "S-FC": ("u1", "u2", "omega1", "omega2", "anchors1", "anchors2"),
    "S-CONV": ("u", "omega", "anchors"),
}


def sums(effective):
    """The effective number of each candidate of `l2`."""
    return {kind: math.fsum(effective[f"l2.{kind}.{name}"] for name in names) for kind, names in TENSORS.items()}


def test_all_tensors_count_towards_a_candidates_effective_parameters(searched):
    whole, effective = searched
    expected = sums(effective)
    found = {one["kind"]: one["effective"] for one in whole["layers"][1]["candidates"]}
    assert found == pytest.approx(expected, rel=1e-9)


def test_all_tensors_count_towards_a_candidates_share(whole):
    last = json.loads((whole.folder / "metrics.jsonl").read_text().splitlines()[-1])
    found = sums(last["effective"])
    shares = {kind: one / sum(found.values()) for kind, one in found.items()}
    assert last["shares"]["l2"] == pytest.approx(shares, rel=1e-9)


def test_an_interrupted_search_ends_like_an_uninterrupted_one(whole, tmp_path):
    spec = parse(SPEC, source="sparse.sym")
    with pytest.raises(KeyboardInterrupt, match="stop"):
        runner.search(spec, device="cpu", out=tmp_path / "run", callbacks=[Interrupting()])
    runner.search(spec, device="cpu", resume=tmp_path / "run")
    assert timeless(tmp_path / "run") == timeless(whole.folder)
    tensors = (tmp_path / "run" / "model.safetensors").read_bytes()
    assert tensors == (whole.folder / "model.safetensors").read_bytes()


def test_the_learned_spec_says_the_same_of_what_is_kept(whole):
    learned = parse((whole.folder / "learned.sym").read_text())
    kept = [layer["kept"] for layer in whole["layers"]]
    found = [[one.name for one in node.candidates] for node in learned.facts.network.nodes if hasattr(node, "stride")]
    assert found == kept
