"""What is proposed at a place, in texts that are being written."""

from __future__ import annotations

from pathlib import Path

import pytest

from editor.marks import MARK, PYRAMID, SPEC, at, marked
from symdsl.catalog.data import SOURCES, TRANSFORMS
from symdsl.catalog.networks import ACTIVATIONS
from symdsl.catalog.searches import SEARCH
from symdsl.editor.completion import Completion, complete
from symdsl.kinds import KINDS
from symdsl.language.keywords import keywords
from symdsl.language.repairs import ITEMS, STATEMENTS


def completed(text: str, path: Path | None = None) -> Completion:
    return complete(*marked(text, path))


def labels(text: str, path: Path | None = None) -> list[str]:
    return [item.label for item in completed(text, path).items]


LETS = ["width", "wide", "both"]
BUILTINS = ["classes", "channels"]
NAMES = {*LETS, *BUILTINS, "cosine", "constant"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(at("flatten\n  layer l9: ", text=SPEC.replace("h1", "l9")), [*KINDS, *LETS], id="after a colon"),
        pytest.param(SPEC.replace("l1: both", f"l1: both {MARK}"), [], id="after a candidate"),
        pytest.param(SPEC.replace("l1: both", f"l1: both + {MARK}"), [*KINDS, *LETS], id="after a plus"),
        pytest.param(SPEC.replace("l1: both ->", f"l1: F-{MARK} ->"), [*KINDS, *LETS], id="in a hyphen"),
        pytest.param(at("layer: F-FC + CONV(3) -> "), ["s", "m", *LETS, *BUILTINS], id="channels in a repeat"),
        pytest.param(at("-> m*"), ["s", "m", *LETS, *BUILTINS], id="after an operator"),
        pytest.param(at("stride "), ["s", "m", *LETS, *BUILTINS], id="a stride"),
        pytest.param(SPEC.replace("-> width |> relu", f"-> width {MARK}"), ["stride"], id="after the channels"),
        pytest.param(at("-> width |> "), list(ACTIVATIONS), id="an activation"),
        pytest.param(at("data "), list(SOURCES), id="a source"),
        pytest.param(at("size = 16) |> "), list(TRANSFORMS), id="a transform"),
        pytest.param(at("standardize", " |> p").replace(MARK, f" {MARK}"), [], id="after a transform"),
        pytest.param(at("input "), ["image", "signal"], id="an input"),
        pytest.param(SPEC.replace("flatten", f"lift {MARK}"), ["C2", "mirror", "flips", "p4", "p4m"], id="a group"),
        pytest.param(SPEC.replace("flatten", f"pool {MARK}"), ["max", "mean"], id="a reduction"),
        pytest.param(SPEC.replace("l1: both", f"l1: FC ~ {MARK}"), ["normal", *LETS], id="a prior of a candidate"),
        pytest.param(at("l1.CONV ~ "), ["normal", *LETS], id="a prior of a rule"),
        pytest.param(at("l1."), ["F-FC", "CONV", "bias", "*"], id="kinds of the selected layer"),
        pytest.param(at("prior {\n  "), ["l1", "l2", "l3", "h1", "*"], id="layers of a selector"),
        pytest.param(SPEC.replace("l1.CONV ~", f"l1.F-FC.{MARK}w1 ~"), ["w1", "w2", "*"], id="tensors"),
        pytest.param(SPEC.replace("l1.CONV ~", f"l1.F-FC.{MARK} ~"), ["w1", "w2", "*"], id="in half a selector"),
        pytest.param(
            SPEC.replace("prior {", f"prior {{\n  l1.{MARK}"), ["F-FC", "CONV", "bias", "*"], id="half a rule"
        ),
        pytest.param(at("epochs = 20\n  optimizer = "), ["adam", *LETS, *BUILTINS], id="values of a key"),
        pytest.param(at("adam("), ["lr", "schedule", "clip", *LETS, *BUILTINS], id="arguments"),
        pytest.param(SPEC.replace("lr = 0.01", f"schedule = {MARK}"), ["cosine", "constant", *LETS, *BUILTINS]),
        pytest.param(
            SPEC.replace("lr = 0.01", f"lr = 0.01, s{MARK}"),
            ["schedule", "clip"],
            id="more",
        ),
        pytest.param(at("normal(precision = 10, "), ["variance", "std", "fixed"], id="switches"),
        pytest.param(f"// a {MARK}", [], id="a comment"),
        pytest.param(f'data arrays("{MARK}")', [], id="a text"),
        pytest.param(f"let {MARK}", [], id="a name of one's own"),
        pytest.param(f"network net(a, {MARK}", [], id="a parameter of one's own"),
    ],
)
def test_what_fits_is_proposed(text: str, expected: list[str]) -> None:
    """In this order; a list that is not empty may go on with names."""
    found = labels(text)
    assert found[: len(expected)] == expected
    assert set(found[len(expected) :]) <= (NAMES if expected else set())


def test_a_definition_is_not_proposed_for_itself() -> None:
    found = labels(f"let width = 3\nlet more = {MARK}\nlet last = 2")
    assert {"width", "last", "classes"} <= set(found)
    assert "more" not in found
    assert labels(f"let pixels = 8\ndata digits(size = {MARK})") == ["pixels"]


def test_layers_of_blocks_are_proposed_by_their_paths() -> None:
    block = "block stage { layer down: CONV(3) -> 4 }\n"
    text = f"{block}data digits\nnetwork n {{ input image(1, 8, 8) use stage as e flatten layer h: FC -> 10 }}"
    assert labels(f"{text}\nprior {{ {MARK}")[:3] == ["e/down", "h", "*"]


def test_a_default_of_a_parameter_can_be_anything() -> None:
    assert {*KINDS, "normal", "width"} <= set(labels(f"let width = 3\nnetwork net(a = {MARK}"))


def words(terminals: frozenset[str]) -> list[str]:
    return [word for terminal, word in keywords().items() if terminal in terminals]


@pytest.mark.parametrize("text", [f"{MARK}", f"let a = 1\n{MARK}", f"let a = 1\nne{MARK}", at("}\n\n")])
def test_statements_begin_lines(text: str) -> None:
    assert set(words(STATEMENTS)) <= set(labels(text))


@pytest.mark.parametrize(
    "text", [at("  flatten\n  "), "network net {\n" + MARK, "network net { repeat 2 as i {" + MARK]
)
def test_items_begin_lines_in_braces(text: str) -> None:
    assert labels(text)[: len(words(ITEMS))] == words(ITEMS)


@pytest.mark.parametrize(
    "text", ["network net { residual {" + MARK, "block b { repeat 2 as i { residual { layer: FC -> 1\n" + MARK]
)
def test_a_body_holds_what_keeps_the_map(text: str) -> None:
    fitting = words(frozenset({"LAYER", "USE", "REPEAT", "RESIDUAL", "AVERAGE"}))
    assert [label for label in labels(text) if label in words(ITEMS)] == fitting


def test_keys_that_are_given_are_not_proposed_again() -> None:
    others = [key for key in SEARCH.names if key not in ("epochs", "optimizer")]
    assert labels(SPEC.replace("adam(lr = 0.01)\n", f"adam(lr = 0.01)\n  {MARK}\n")) == others
    assert labels(SPEC.replace("search {\n", f"search {{\n  s{MARK}\n")) == others


def test_a_key_decides_what_a_value_takes() -> None:
    assert labels("search { optimizer = adam(schedule = " + MARK)[:2] == ["cosine", "constant"]
    assert "damping" in labels("search { prior_optimizer = mackay(" + MARK)
    assert "samples" in labels("search { objective = laplace(kfac, fisher = mc(" + MARK)


def test_an_argument_is_written_with_its_sign() -> None:
    found = {item.label: item for item in completed(at("adam(")).items}
    assert found["clip"].insert == "clip = "
    assert "norm of the gradient" in found["clip"].about
    assert {item.label: item.insert for item in completed(at("precision = 10, ")).items}["fixed"] == "fixed"


def test_what_is_written_replaces_the_word() -> None:
    reading, offset = marked(SPEC.replace("l1: both ->", f"l1: F-F{MARK} ->"))
    start, end = complete(reading, offset).reach
    assert reading.text[start:end] == "F-F"
    reading, offset = marked(SPEC.replace("F-FC + CONV(3)", f"F-{MARK}FC + CONV(3)"))
    start, end = complete(reading, offset).reach
    assert reading.text[start:end] == "F-FC"


@pytest.mark.parametrize("error", ["layer lx: KONV(3 -> 4", "layer : ::", 'import "', "let = = 3", "$%&", "prior {"])
def test_errors_elsewhere_do_not_matter(error: str) -> None:
    broken = SPEC.replace("  input image", f"  {error}\n  input image")
    assert labels(at("-> width |> ", text=broken)) == list(ACTIVATIONS)
    assert labels(at("optimizer = ", text=broken))[0] == "adam"
    assert "both" in labels(broken.replace("l1: both", f"l1: {MARK}"))


# ---------------------------------------------------------------- imports


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "pyramid.sym").write_text(PYRAMID)
    (tmp_path / "notes.txt").write_text("")
    return tmp_path


def test_names_and_parameters_of_imports_are_proposed(folder: Path) -> None:
    path = folder / "main.sym"
    start = 'import "blocks/pyramid.sym"\nlet small = 2\n'
    assert labels(f"{start}network net = {MARK}", path) == ["pyramid"]
    found = completed(f"{start}network net = pyramid({MARK}", path).items
    assert [item.insert for item in found[:2]] == ["candidates = ", "width = "]
    assert {"small", "CONV"} <= {item.label for item in found}
    assert labels(f"{start}network net = pyramid(candidates = [FC], {MARK}", path)[0] == "width"


def test_files_are_proposed_a_folder_at_a_time(folder: Path) -> None:
    path = folder / "main.sym"
    path.write_text("")
    assert labels(f'import "{MARK}"', path) == ["blocks/"]
    assert labels(f'import "{MARK}', path) == ["blocks/"]
    assert labels(f'import "blocks/py{MARK}"', path) == ["pyramid.sym"]
    assert labels(f'import "../{MARK}"', path) == []
    assert labels(f'import "nowhere/{MARK}"', path) == []
    reading, offset = marked(f'import "blocks/py{MARK}"', path)
    assert reading.text[slice(*complete(reading, offset).reach)] == "py"


def test_a_text_without_a_file_proposes_no_files() -> None:
    assert labels(f'import "{MARK}"') == []


@pytest.mark.parametrize(
    ("text", "label", "expected"),
    [
        (SPEC.replace("epochs = 20", f"ep{MARK} = 20"), "epochs", "epochs"),
        (SPEC.replace("adam(lr", f"adam(l{MARK}"), "lr", "lr"),
        (SPEC.replace("epochs = 20", f"ep{MARK}"), "epochs", "epochs = "),
    ],
)
def test_what_has_a_value_gets_no_second_equals_sign(text: str, label: str, expected: str) -> None:
    assert next(item.insert for item in completed(text).items if item.label == label) == expected


def test_a_path_is_replaced_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("lib.sym", "libb.sym"):
        (tmp_path / name).touch()
    text = f'import "li{MARK}bb.sym"\n'
    found = completed(text, tmp_path / "main.sym")
    assert text.replace(MARK, "")[slice(*found.reach)] == "libb.sym"
    found = completed(f'import "su{MARK}b/x.sym"\n', tmp_path / "main.sym")
    assert [item.label for item in found.items] == ["sub/"]
    assert 'import "sub/x.sym"'[slice(*found.reach)] == "sub/"
