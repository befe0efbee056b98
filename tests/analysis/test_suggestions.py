"""Did you mean: for every kind of name that a spec can have."""

from __future__ import annotations

import pytest

from analysis.specs import found
from analysis.test_cascades import RIGHT

MISSPELT = [
    ("let width", "lte width", "let"),
    ("network part", "netwrk part", "network"),
    ("lift p4", "lfit p4", "lift"),
    ("stride 2", "strid 2", "stride"),
    ("[(1, 2), (2, 1)] as", "[(1, 2), (2, 1)] ass", "as"),
    ("*width stride 2", "*widht stride 2", "width"),
    ("-> scale*width", "-> sacle*width", "scale"),
    ("-> classes", "-> clases", "classes"),
    ("(channels, 32", "(chanels, 32", "channels"),
    ("8*width", "flor(8)*width", "floor"),
    ("CONV(3)]", "CNOV(3)]", "CONV"),
    ("[F-FC", "[F-fc", "F-FC"),
    ("layer: candidates", "layer: candidate", "candidates"),
    ("GCONV(3)", "GCONV(3, facotr = full)", "factor"),
    ("GCONV(3)", "GCONV(3, ful)", "full"),
    ("GCONV(3)", "GCONV(3, group = p_4)", "p4"),
    ("data digits", "data digist", "digits"),
    ("(size = 16)", "(szie = 16)", "size"),
    ("|> standardize", "|> standardise", "standardize"),
    ("label = digit", "lable = digit", "label"),
    ("label = digit", "label = digits", "digit"),
    ("input image", "input imgae", "image"),
    ("lift p4", "lift p4a", "p4"),
    ("|> relu", "|> rleu", "relu"),
    ("project max", "project maxx", "max"),
    ("= part(", "= pratt(", "part"),
    ("scale = 2)", "sclae = 2)", "scale"),
    ("first.CONV", "frist.CONV", "first"),
    ("first.CONV", "first.KONV", "CONV"),
    ("h1.bias", "h1.bais", "bias"),
    ("F-FC.w1", "F-FC.w11", "w1"),
    ("normal(precision = 2)", "noraml(precision = 2)", "normal"),
    ("precision = 2", "precison = 2", "precision"),
    ("std = 1, fixed", "std = 1, fixd", "fixed"),
    ("std = 1, fixed", "std = 1, fixed = ture", "true"),
    ("epochs ", "epocs ", "epochs"),
    ("= laplace(", "= laplas(", "laplace"),
    ("(kfac,", "(kfca,", "kfac"),
    ("fisher = exact", "fihser = exact", "fisher"),
    ("fisher = exact", "fisher = exat", "exact"),
    ("every     = 3", "every = 3\n  optimizer = adam(schedule = cosin)", "cosine"),
]


HIDDEN = [
    ("block stage(width) { layer: CONV(3) -> width }\n", "use stage(width)"),
    ("block stage(a = b, b = 3) { layer: CONV(3) -> a }\n", "use stage"),
    ("let k = [m, 2]\n", "repeat k as m { layer: CONV(3) -> m }"),
]


@pytest.mark.parametrize(("before", "item"), HIDDEN)
def test_a_name_that_is_only_known_elsewhere_is_not_suggested_for_itself(before: str, item: str) -> None:
    text = f"data digits\n{before}network n {{\n  input image(1, 8, 8)\n  {item}\n  flatten\n  layer: FC -> classes\n}}"
    (only,) = found(text)
    assert (only.code, only.fix) == ("E301", None)


@pytest.mark.parametrize(("right", "wrong", "near"), MISSPELT)
def test_the_nearest_name_is_suggested(right: str, wrong: str, near: str) -> None:
    assert right in RIGHT
    (only,) = found(RIGHT.replace(right, wrong, 1))
    assert only.help.startswith(f"did you mean `{near}`?")
    assert only.fix is not None
    assert only.fix.content == near


@pytest.mark.parametrize(("key", "near"), [("widht", "width"), ("sacle", "scale"), ("dta.size", "data")])
def test_of_keys_of_settings_too(key: str, near: str) -> None:
    (only,) = found(RIGHT, {key: 3})
    assert only.help.startswith(f"did you mean `{near}`?")


@pytest.mark.parametrize(("key", "near"), [("data.lable", "label"), ("search.epoch", "epochs")])
def test_within_their_section(key: str, near: str) -> None:
    (only,) = found(RIGHT, {key: 3})
    assert only.help.startswith(f"did you mean `{near}`?")


def test_a_block_without_its_use_is_known_by_its_name() -> None:
    block = "block stage(kinds) {\n  layer: kinds -> 2*width\n}\n\n"
    right = block + RIGHT.replace("  project max", "  use stage(candidates)\n  project max")
    assert not found(right)
    (only,) = found(right.replace("use stage", "stage"))
    assert only.help == "did you mean `use stage`?"
    assert only.fix is not None
    assert only.fix.content == "use stage"


def test_classes_that_a_let_hides_are_not_suggested_alone() -> None:
    (only,) = found(f"let classes = 3\n{RIGHT}")
    assert only.message == "`whole` ends with 3 channels, but the data have 10 classes"
    assert only.help == "`classes` is a `let` here: give it another name, and end with `-> classes`"
