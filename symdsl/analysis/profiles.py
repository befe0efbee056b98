"""Profiles: overrides that a spec itself names, checked whether they are set or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from symdsl.analysis.dependencies import names_in
from symdsl.analysis.names import exhausted, gaps_of, hidden, report_too_many, report_twice, unique, unknown
from symdsl.analysis.overrides import Override, Slot, apply_overrides, find_slot, make_known
from symdsl.diagnostics import Collector, suggest
from symdsl.language import ast

KEY = "profile"
"""The key of the override that sets a profile."""


@attrs.frozen
class Change:
    """A value that a profile changed.

    Attributes:
        key: as `--set` takes it.
        before: the text of the value of the spec, or of the default where it has none; empty where there is neither.
        after: the text of the value of the profile.
    """

    key: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.key} {self.before or 'unset'} -> {self.after}"


@attrs.frozen
class Profile:
    """A profile that was chosen, with its changes.

    Attributes:
        name: of the profile.
        changes: what it changed, without what another override sets anyway.
    """

    name: str
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        return f"profile {self.name}: {', '.join(map(str, self.changes)) or 'changes nothing'}"


@attrs.frozen
class Applied:
    """A tree with a profile and overrides applied, and what they changed.

    Attributes:
        program: with overrides applied; profiles still stand in it.
        used: names that are asked for by what is not, or no longer, part of it.
        chosen: the profile that was applied.
        filled: the settings of that profile that count, and where their values went.
    """

    program: ast.Program
    used: frozenset[str]
    chosen: ast.Profile | None
    filled: tuple[tuple[ast.Setting, Slot], ...]

    @property
    def result(self) -> ast.Program:
        """The program as it is run: without profiles if one was applied, otherwise as written."""
        if self.chosen is None:
            return self.program
        kept = tuple(one for one in self.program.statements if not isinstance(one, ast.Profile))
        return attrs.evolve(self.program, statements=kept)

    @property
    def profile(self) -> Profile | None:
        """The chosen profile with its changes; only defined for specs without errors."""
        if self.chosen is None:
            return None
        from symdsl.language.printer import expression

        changes = []
        for setting, slot in self.filled:
            before = slot.default if slot.old is None else expression(slot.old)
            changes.append(Change(setting.name.text, before, expression(setting.value)))
        return Profile(self.chosen.name.text, tuple(one for one in changes if one.before != one.after))


def profiles_of(program: ast.Program, collector: Collector) -> dict[str, ast.Profile]:
    """Return the profiles by name; duplicate keys and names are reported and left out."""
    found: dict[str, ast.Profile] = {}
    for one in _affordable([one for one in program.statements if isinstance(one, ast.Profile)], collector):
        settings = tuple(unique(one.settings, f"a key of `{one.name.text}`", collector).values())
        first = found.setdefault(one.name.text, attrs.evolve(one, settings=settings))
        if first.name is not one.name:
            report_twice("a profile", one.name, first.name.span, collector)
    return found


def _affordable(written: Iterable[ast.Profile], collector: Collector) -> Iterator[ast.Profile]:
    """Yield the profiles before the first that is too many, or has too many keys, which is reported."""
    spent: Counter[str] = Counter()
    for one in written:
        for what, more in (("profiles", 1), ("keys of profiles", len(one.settings))):
            spent[what] += more
            if exhausted(spent):
                report_too_many(what, one.name.span, collector)
                return
        yield one


def check_keys(program: ast.Program, profiles: Iterable[ast.Profile], collector: Collector) -> None:
    """Report unknown keys in profiles."""
    for profile in profiles:
        for setting in profile.settings:
            find_slot(program, setting.name, collector)


def choose(
    program: ast.Program, profiles: Mapping[str, ast.Profile], overrides: Sequence[Override], collector: Collector
) -> ast.Profile | None:
    """Return the profile that the overrides ask for; an unknown one is reported."""
    make_known(overrides, collector)
    wanted = next((one for one in reversed(overrides) if one.key == KEY), None)
    if wanted is None:
        return None
    name = wanted.value.strip('"')
    if name not in profiles and (not hidden(KEY, gaps_of(program)) or suggest(name, profiles)):
        where = "" if profiles else ": this spec has none"
        unknown("E310", "profile", name, wanted.value_span, profiles, collector, where)
    return profiles.get(name)


def apply(
    program: ast.Program, profile: ast.Profile | None, overrides: Sequence[Override], collector: Collector
) -> Applied:
    """Return a tree changed by a profile, if there is one, and then by the overrides."""
    others = [one for one in overrides if one.key != KEY]
    written = [one.value for each in program.statements if isinstance(each, ast.Profile) for one in each.settings]
    keys, filled = {one.key for one in others}, []
    for setting in profile.settings if profile else ():
        slot = find_slot(program, setting.name, collector)
        if slot is not None:
            program = slot.put(setting.value)
            written += [] if slot.old is None else [slot.old]
            filled += [] if setting.name.text in keys else [(setting, slot)]
    program, replaced = apply_overrides(program, others, collector)
    return Applied(program, frozenset(names_in((*written, *replaced))), profile, tuple(filled))
