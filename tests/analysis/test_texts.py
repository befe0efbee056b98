"""The text of a checked spec says the same as the spec, whole or pruned."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import cast

import attrs
import pytest

from symdsl.analysis.facts import Facts, Layer
from symdsl.diagnostics import NOWHERE, Span
from symdsl.graph.serial import content_hash
from symdsl.language.formatter import format_text
from symdsl.spec import Spec, load, parse

ROOT = Path(__file__).parent.parent.parent
SPECS = ROOT / "specs"
WHOLE = [path for path in sorted(SPECS.rglob("*.sym")) if path.parent.name != "blocks"]
GOOD = sorted((ROOT / "tests" / "fixtures" / "good").glob("*.sym"))


def spanless(record: object) -> object:
    """A record with every span replaced by the same one."""
    if isinstance(record, Span):
        return NOWHERE
    if isinstance(record, tuple):
        return tuple(spanless(one) for one in record)
    if not attrs.has(type(record)):
        return record
    fields = attrs.asdict(cast(attrs.AttrsInstance, record), recurse=False)
    return type(record)(**{name: spanless(value) for name, value in fields.items()})


def facts(spec: Spec) -> object:
    return spanless(attrs.evolve(spec.facts, name=""))


def test_spanless_tells_records_apart() -> None:
    one, other = (facts(load(SPECS / "digits.sym", {"width": width})) for width in (4, 5))
    assert isinstance(one, Facts)
    assert one != other


@pytest.mark.parametrize("path", WHOLE + GOOD, ids=lambda path: path.stem)
def test_the_text_says_the_same_as_the_spec(path: Path) -> None:
    spec = load(path)
    again = parse(spec.text())
    assert facts(again) == facts(spec)
    assert again.text() == spec.text()


@pytest.mark.parametrize("path", WHOLE + GOOD, ids=lambda path: path.stem)
def test_formatting_changes_nothing_that_is_computed(path: Path, tmp_path: Path) -> None:
    blocks = path.parent / "blocks"
    shutil.copytree(blocks if blocks.exists() else SPECS / "blocks", tmp_path / "blocks")
    squeezed = re.sub(r"[ \n]+(?=[|+>-])", "\n", re.sub(r"//.*", "", path.read_text(encoding="utf-8")))
    copy = tmp_path / path.name
    copy.write_text(squeezed, encoding="utf-8")
    before = content_hash(load(copy).graph())
    copy.write_text(format_text(squeezed), encoding="utf-8")
    assert content_hash(load(copy).graph()) == before == content_hash(load(path).graph())


def test_the_text_has_overrides_applied() -> None:
    overrides = {"candidates": "[CONV(3)]", "width": 2, "data.copies": 2, "search.epochs": 9}
    spec = load(SPECS / "quadrant_position.sym", overrides)
    assert facts(parse(spec.text())) == facts(spec)


@pytest.mark.parametrize("path", WHOLE + GOOD, ids=lambda path: path.stem)
def test_pruning_nothing_changes_nothing(path: Path) -> None:
    spec = load(path)
    assert facts(parse(spec.pruned({}))) == facts(spec)


def test_pruning_keeps_what_is_named() -> None:
    spec = load(ROOT / "tests" / "fixtures" / "good" / "everything.sym")
    keep = {"first": {"CONV", "GCONV(5, factor = pointwise)"}, "l2": {"F-FC"}}
    pruned = layers(parse(spec.pruned(keep)))
    before = layers(spec)
    assert [one.kind for one in pruned["first"].candidates] == ["CONV", "GCONV"]
    assert [one.name for one in pruned["l2"].candidates] == ["F-FC"]
    assert spanless(pruned["l3"]) == spanless(before["l3"])
    kept = [before["first"].candidates[index] for index in (1, 3)]
    for one, other in zip(pruned["first"].candidates, kept, strict=True):
        assert (one.tensors, one.init_scale, one.arguments) == (other.tensors, other.init_scale, other.arguments)


def test_pruning_drops_what_nothing_needs_any_more() -> None:
    spec = load(SPECS / "quadrant_position.sym")
    text = spec.pruned({"l1": {"CONV"}})
    assert parse(text).warnings == ()
    assert "let" not in text


TWINS = """
data digits
network n {
  input image(1, 8, 8)
  layer l1: CONV(3) + CONV(3) -> 2
  layer l2: CONV(3) ~ normal(2) + CONV(3, init_scale = 0.5) ~ normal(3, fixed) -> 2
  layer l3: CONV(3) ~ normal(4) + CONV(3) + CONV(5) -> 2
  layer l4: F-FC + F-FC ~ normal(5) -> 2
  flatten
  layer h: FC -> classes
}
prior {
  l1.CONV.w  ~ normal(6)
  l4.F-FC.w1 ~ normal(7)
}
"""


def test_pruning_keeps_the_priors_of_candidates_that_no_rule_tells_apart() -> None:
    spec = parse(TWINS)
    again = parse(spec.pruned({}))
    for name, layer in layers(spec).items():
        assert [one.tensors for one in layers(again)[name].candidates] == [one.tensors for one in layer.candidates]


CAPTURED = """
let full = 32
let values = 16
data synthetic(size = 4, train = full, test = values)
network n {
  input image(1, 4, 4)
  lift p4
  layer l1: GCONV(3) + GCONV(5) + S-GCONV(3) + CONV(3) -> 2
  project max
  layer l2: S-CONV(3) + S-CONV(3, sparsity = 4) -> 2
  flatten
  layer h: FC -> classes
}
prior {
  l1.GCONV(3)    ~ normal(2)
  l2.S-CONV(3).u ~ normal(3)
}
"""


def test_pruning_writes_no_word_that_a_name_could_stand_for() -> None:
    spec = parse(CAPTURED)
    text = spec.pruned({})
    assert "let full = 32" in text
    for name, layer in layers(spec).items():
        again = layers(parse(text))[name].candidates
        assert [one.arguments for one in again] == [one.arguments for one in layer.candidates]
        assert [one.tensors for one in again] == [one.tensors for one in layer.candidates]


def layers(spec: Spec) -> dict[str, Layer]:
    return {node.name: node for node in spec.facts.network.layers}


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ({"l9": {"CONV"}}, "`keep` names `l9`, but the network has no such layer"),
        ({"l1": {"FC"}}, r"`keep\['l1'\]` \(=\['FC'\]\) must be some of \['CONV', 'F-FC'\]"),
        ({"l1": set[str]()}, r"`keep\['l1'\]` \(=\[\]\) must be some of"),
    ],
)
def test_pruning_to_what_is_not_there(keep: dict[str, set[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(SPECS / "digits.sym").pruned(keep)


def test_the_graph_of_a_spec() -> None:
    assert list(load(SPECS / "starter.sym").graph())[:2] == ["input", "l1"]


def test_checking_loads_nothing_heavy() -> None:
    program = (
        "import sys; from symdsl.spec import load; load(sys.argv[1]);"
        "print(sorted({'torch', 'torchvision', 'numpy', 'networkx', 'graphviz', 'rich'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, str(SPECS / "rotated_mnist.sym")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
