"""Profiles in an editor."""

from __future__ import annotations

import pytest

from editor.marks import MARK, SPEC, at, marked
from editor.test_completion import completed, labels
from editor.test_contents import listed
from symdsl.catalog.searches import SEARCH
from symdsl.editor.completion import complete
from symdsl.editor.definition import define
from symdsl.editor.hover import hover
from symdsl.editor.reading import Reading

PROFILED = f"""\
{SPEC}
profile cpu {{
  width = 2
  search.optimizer = adam(lr = 0.1)
}}
"""
LETS, DATA = ["width", "wide", "both"], ["data.what", "data.size"]
OF_SEARCH = [f"search.{name}" for name in SEARCH.names]


@pytest.mark.parametrize("begun", ["", "w", "data.s", "search.epo", "da"])
def test_keys_are_proposed_but_not_those_of_the_profile_again(begun: str) -> None:
    text = PROFILED.replace("width = 2\n", f"width = 2\n  {begun}{MARK}\n")
    assert labels(text) == [*LETS[1:], *DATA, *(key for key in OF_SEARCH if key != "search.optimizer")]
    reading, offset = marked(text)
    assert reading.text[slice(*complete(reading, offset).reach)] == begun


@pytest.mark.parametrize("begun", ["data.", "search."])
def test_a_key_may_be_begun_up_to_its_dot(begun: str) -> None:
    reading, offset = marked(PROFILED.replace("width = 2\n", f"width = 2\n  {begun}{MARK}\n"))
    found = complete(reading, offset)
    assert {"data.size", "search.epochs", "wide"} <= {item.label for item in found.items}
    assert reading.text[slice(*found.reach)] == begun


def test_a_key_is_written_with_its_sign() -> None:
    found = {item.label: item for item in completed(at("profile cpu {\n  ", text=PROFILED)).items}
    assert found["wide"].insert == "wide = "
    assert found["search.epochs"].insert == "search.epochs = "
    assert "passes over the training data" in found["search.epochs"].about


def test_parameters_of_the_network_that_is_instantiated_are_keys() -> None:
    text = f"data digits\nnetwork p(depth) {{ }}\nnetwork n = p(2)\nprofile cpu {{\n  {MARK}\n}}\n"
    assert labels(text)[:2] == ["depth", "data.size"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (f"search.prior_optimizer = {MARK}", ["mackay"]),
        (f"search.optimizer = adam({MARK})", ["lr", "schedule", "clip"]),
        (f"search.optimizer = adam(schedule = {MARK})", ["cosine", "constant"]),
        (f"data.size = {MARK}", LETS),
        (f"data.size = 2*{MARK}", LETS),
        (f"wide = {MARK}", ["FC", "CONV"]),
        (f"data.size = 2 {MARK}", []),
    ],
)
def test_values_fit_their_keys(value: str, expected: list[str]) -> None:
    found = labels(f"{SPEC}profile cpu {{\n  {value}\n}}\n")
    assert found[: len(expected)] == expected
    assert bool(found) == bool(expected)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("profile cpu {\n  ", "```sym\nlet width = 4\n```"),
        ("width = 2\n  ", "`optimizer`: how the weights are trained; "),
        ("search.optimizer = adam(", "`lr`: learning rate at the start, as a share of the size of "),
        ("search.optimizer = ", "Adam on the weights"),
        ("\n\npro", "names values to be set together"),
    ],
)
def test_words_have_their_meaning(before: str, expected: str) -> None:
    found = hover(*marked(at(before, text=PROFILED)))
    assert found is not None
    assert expected in found.text


def test_the_key_of_a_let_leads_to_it() -> None:
    (span,) = define(*marked(at("profile cpu {\n  ", text=PROFILED)))
    assert (span.line, span.column) == (1, 5)


def test_profiles_are_in_the_table_of_contents() -> None:
    settings = [("setting", "width", "2"), ("setting", "search.optimizer", "adam(lr = 0.1)")]
    assert listed(PROFILED)[-1] == ("search", "cpu", "", settings)


def test_an_editor_shows_what_is_wrong_with_a_profile() -> None:
    wrong = PROFILED.replace("width = 2", "widht = 2").replace("adam(lr = 0.1)", "adam(lr = 0)")
    key, value = (one for one in Reading(wrong).diagnostics if one.severity == "error")
    assert (key.code, key.span.line, value.code, value.span.line) == ("E310", 27, "E402", 28)
    assert key.fix is not None
    assert key.fix.content == "width"
