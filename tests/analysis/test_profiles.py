"""Profiles: what they set, what wins over them, what is said about them, and what they leave in the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.specs import NETWORK, codes
from symdsl.analysis.overrides import Override
from symdsl.analysis.profiles import Change
from symdsl.diagnostics import Diagnostic, SpecError
from symdsl.spec import Spec, check, load, parse

BODY = """
data digits(size = 8) |> quadrants(label = digit)

network template(width, depth = 1) {
  input image(channels, 16, 16)
  layer: FC -> width*depth
  flatten
  layer h: FC -> classes
}

network n = template(base)

search {
  epochs = 60
}
"""
LET = "let base = 4\n"
CPU = """
profile cpu {
  width            = 2
  data.copies      = 2
  search.epochs    = 5
  search.optimizer = adam(lr = 0.01)
}
"""
TEXT = LET + CPU + BODY


def said(tmp_path: Path, text: str, overrides: dict[str, object] | None = None) -> tuple[Diagnostic, ...]:
    """What `symdsl check` says about a text."""
    path = tmp_path / "spec.sym"
    path.write_text(text)
    return check(path, overrides)


def places(found: tuple[Diagnostic, ...]) -> list[str]:
    return [f"{one.code} {one.span.line}" for one in found]


def values(spec: Spec) -> tuple[int, object, int]:
    width = spec.facts.network.nodes[1].out_shape.channels
    return width, spec.facts.data.transforms[0].argument("copies"), spec.facts.search.epochs


# ---------------------------------------------------------------- what is set


def test_a_profile_sets_all_its_keys() -> None:
    assert values(parse(TEXT)) == (4, 4, 60)
    assert values(parse(TEXT, {"profile": "cpu"})) == (2, 2, 5)
    assert parse(TEXT, {"profile": "cpu"}).facts.search.optimizer.lr == 0.01


@pytest.mark.parametrize("first", [True, False])
def test_other_overrides_win_whatever_their_order(first: bool) -> None:
    others = {"width": 3, "search.epochs": "7"}
    overrides = {"profile": "cpu", **others} if first else {**others, "profile": "cpu"}
    spec = parse(TEXT, overrides)
    assert values(spec) == (3, 2, 7)
    assert spec.profile is not None
    assert [one.key for one in spec.profile.changes] == ["data.copies", "search.optimizer"]


def test_it_says_what_it_changed() -> None:
    profile = parse(TEXT, {"profile": "cpu"}).profile
    assert profile is not None
    assert profile.name == "cpu"
    assert profile.changes == (
        Change("width", "base", "2"),
        Change("data.copies", "4", "2"),
        Change("search.epochs", "60", "5"),
        Change("search.optimizer", "adam", "adam(lr = 0.01)"),
    )
    assert str(profile).startswith("profile cpu: width base -> 2, data.copies 4 -> 2, search.epochs 60 -> 5, ")


def test_what_stays_as_it_is_is_no_change() -> None:
    text = f"profile same {{ search.epochs = 60 depth = 1 data.copies = 2 }}\n{LET}{BODY}"
    assert str(parse(text, {"profile": "same"}).profile) == "profile same: data.copies 4 -> 2"
    assert str(parse(text, {"profile": "same", "data.copies": 3}).profile) == "profile same: changes nothing"
    assert parse(text).profile is None


def test_what_has_no_value_before_was_unset() -> None:
    text = BODY.replace("template(base)", "template()") + "profile narrow { width = 2 }"
    assert str(parse(text, {"profile": "narrow"}).profile) == "profile narrow: width unset -> 2"


def test_a_value_may_ask_for_what_the_spec_defines() -> None:
    spec = parse(f"{LET}profile wide {{ width = 2*base + classes }}\n{BODY}", {"profile": "wide"})
    assert values(spec)[0] == 18


def test_a_let_is_set_and_the_others_follow() -> None:
    spec = parse(f"{LET}profile wide {{ base = 8 }}\n{BODY}", {"profile": '"wide"'})
    assert values(spec)[0] == 8


# ---------------------------------------------------------------- what is left in the text


def test_the_text_of_a_spec_with_a_profile_says_the_same_on_its_own() -> None:
    spec = parse(TEXT, {"profile": "cpu"})
    assert "profile" not in spec.text()
    again = parse(spec.text())
    assert (values(again), again.profile) == ((2, 2, 5), None)
    assert again.facts.search == spec.facts.search


def test_profiles_that_are_not_set_stay_in_the_text() -> None:
    spec = parse(TEXT, {"search.epochs": 8})
    assert values(parse(spec.text(), {"profile": "cpu", "width": 9})) == (9, 2, 5)


def test_what_was_learned_has_no_profiles() -> None:
    assert "profile" not in parse(TEXT).pruned({})


# ---------------------------------------------------------------- imports


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Two specs that share the profiles of a third file."""
    (tmp_path / "machines.sym").write_text(CPU)
    for name in ("one", "two"):
        (tmp_path / f"{name}.sym").write_text(f'import "machines.sym"\n{LET}{BODY.replace("60", "50")}')
    return tmp_path


def test_profiles_may_be_imported(shared: Path) -> None:
    for name in ("one", "two"):
        assert values(load(shared / f"{name}.sym", {"profile": "cpu"})) == (2, 2, 5)
        assert check(shared / f"{name}.sym") == ()


def test_a_file_of_profiles_is_a_library(shared: Path) -> None:
    path = shared / "machines.sym"
    assert check(path) == ()
    assert check(path, {"profile": "cpu"}) == ()
    assert places(check(path, {"profile": "cup"})) == ["E310 1"]
    path.write_text(CPU + CPU.replace("search.epochs ", "data.copies"))
    assert places(check(path)) == ["E308 9", "E308 12"]


def test_an_imported_key_that_names_nothing_is_said_in_the_file_it_stands_in(shared: Path) -> None:
    (shared / "machines.sym").write_text(CPU.replace("width ", "depht "))
    with pytest.raises(SpecError, match=r"unknown key `depht`.*\n  --> .*machines.sym:3:3\n") as error:
        load(shared / "one.sym")
    assert error.value.diagnostics[0].fix is not None


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("widht = 2", ["E310 2"]),
        ("data.copy = 2", ["E310 2"]),
        ("search.epoch = 2", ["E310 2"]),
        ("serch.epochs = 2", ["E310 2"]),
        ("width = 2\n  width = 3", ["E308 3"]),
        ("search.epochs = 2\n  search.epochs = 2", ["E308 3"]),
    ],
)
def test_wrong_keys_are_said_whether_a_profile_is_set_or_not(settings: str, expected: list[str]) -> None:
    text = f"profile p {{\n  {settings}\n}}\n{LET}{BODY}"
    for overrides in ({}, {"profile": "p"}):
        with pytest.raises(SpecError, match=r"<text>:[23]:") as error:
            parse(text, overrides)
        assert places(error.value.diagnostics) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("search.epochs = 0", ["E402 2"]),
        ("search.epochs = ten", ["E301 2"]),
        ("search.optimizer = adam(rl = 1)", ["E303 2"]),
        ("data.copies = 1001", ["E402 2"]),
        ("data.size = 9", ["E208 9"]),
        ("width = -1", ["E402 10"]),
        ("base = base", ["E309 4"]),
        ("search.burnin = 60", ["W104 18"]),
    ],
)
def test_a_check_finds_what_is_wrong_with_each_profile(tmp_path: Path, settings: str, expected: list[str]) -> None:
    text = f"profile p {{\n  {settings}\n}}\n{LET}{BODY}"
    found = said(tmp_path, text)
    assert places(found) == expected
    assert (found[0].notes[-1].label, found[0].notes[-1].span.line) == ("with this profile", 1)
    assert places(said(tmp_path, text, {"profile": "p"})) == expected
    assert said(tmp_path, text + "profile q { width = 3 }\n", {"profile": "q"}) == ()


def test_every_profile_is_checked(tmp_path: Path) -> None:
    text = f"profile a {{\n  width = 0\n}}\nprofile b {{\n  search.batch = 0\n}}\n{LET}{BODY}"
    assert places(said(tmp_path, text)) == ["E402 5", "E402 13"]


def test_what_the_spec_has_anyway_is_said_once(tmp_path: Path) -> None:
    text = TEXT.replace("classes\n", "clases\n").replace("epochs = 60", "epochs = -60") + "let idle = 3\n"
    found = said(tmp_path, text)
    assert [one.code for one in found] == ["E301", "E402"]
    assert not any(one.notes for one in found)


@pytest.mark.parametrize(
    ("name", "help"),
    [("cup", "did you mean `cpu`? there are `cpu`, `gpu`"), ("nothing", "there are `cpu`, `gpu`")],
)
def test_an_unknown_profile(name: str, help: str) -> None:
    overrides = {"search.epochs": 3, "profile": Override.parse(f"profile = {name}", 2)}
    with pytest.raises(SpecError, match=r"unknown profile `\w+`\n  --> --set:2:11\n") as error:
        parse(f"{TEXT}profile gpu {{ }}\n", overrides)
    assert error.value.diagnostics[0].help == help


def test_a_spec_without_profiles_says_so() -> None:
    with pytest.raises(SpecError, match=r"E310.*: unknown profile `cpu`: this spec has none"):
        parse(f"data digits\n{NETWORK}", {"profile": "cpu"})


def test_a_profile_that_could_not_be_read_may_be_the_one_that_is_meant() -> None:
    broken = f"data digits\n{NETWORK}\nprofile 3 {{ search.epochs = 3 }}\n"
    assert codes(broken, {"profile": "cpu"}) == ["E104"]


def test_two_profiles_of_one_name() -> None:
    with pytest.raises(SpecError, match=r"(?s)E308.*: `cpu` is defined twice as a profile\n.*second time.*first time"):
        parse(TEXT + CPU)


def test_a_profile_may_have_the_name_of_something_else() -> None:
    assert values(parse(TEXT.replace("cpu", "base"), {"profile": "base"})) == (2, 2, 5)


# ---------------------------------------------------------------- `let`s that nothing uses


@pytest.mark.parametrize("overrides", [{}, {"profile": "a"}, {"profile": "b"}])
def test_what_the_spec_or_any_profile_asks_for_is_used(tmp_path: Path, overrides: dict[str, object]) -> None:
    text = f"let few = 3\nprofile a {{ search.epochs = few }}\nprofile b {{ width = 2 }}\n{LET}{BODY}"
    assert parse(text, overrides).warnings == ()
    assert said(tmp_path, text, overrides) == ()


def test_what_an_override_replaces_was_used(tmp_path: Path) -> None:
    text = f"let few = 2\n{LET.replace('= 4', '= 2*few')}{BODY}"
    for overrides in ({}, {"width": 3}):
        assert parse(text, overrides).warnings == ()


@pytest.mark.parametrize("overrides", [{}, {"profile": "a"}])
def test_what_a_profile_sets_is_not_used_by_that(tmp_path: Path, overrides: dict[str, object]) -> None:
    text = f"let idle = 3\nprofile a {{ idle = 4 }}\n{LET}{BODY}"
    assert places(parse(text, overrides).warnings) == ["W102 1"]
    assert places(said(tmp_path, text, overrides)) == ["W102 1"]


# ---------------------------------------------------------------- limits


def test_the_profiles_of_a_spec_share_its_limits_and_one_alone_has_them(tmp_path: Path) -> None:
    few, many = "let few = [1]\n", f"[{', '.join(['1'] * 1500)}]"
    rounds = BODY.replace("  layer: FC", "  repeat few as i {\n    layer: FC -> 2\n  }\n  layer: FC")
    profiles = "".join(f"profile p{index} {{ few = {many} }}\n" for index in range(4))
    text = profiles + few + LET + rounds
    (found,) = said(tmp_path, text)
    assert (found.code, found.notes[-1].span.line) == ("E405", 4)
    assert said(tmp_path, text, {"profile": "p3"}) == ()


@pytest.mark.parametrize(("count", "keys"), [(21, 0), (2, 101)])
def test_there_are_so_many_profiles_and_keys(count: int, keys: int) -> None:
    lets = "".join(f"let a{index} = 1\n" for index in range(keys))
    settings = " ".join(f"a{index} = 2" for index in range(keys))
    text = "".join(f"profile p{index} {{ {settings} }}\n" for index in range(count)) + lets + LET + BODY
    with pytest.raises(SpecError, match=rf"E405.*: more than \d+ (keys of )?profiles .*\n  --> <text>:{count}:9"):
        parse(text)


def test_a_wrong_setting_is_told_once_where_there_are_profiles(tmp_path: Path) -> None:
    (tmp_path / "spec.sym").write_text(TEXT)
    found = check(tmp_path / "spec.sym", {"search.optimizer": "adam(lr 0.1)"})
    assert [one.code for one in found] == ["E104"]
