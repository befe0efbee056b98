"""A checked spec, from a file or a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from symdsl.analysis.analyse import analyse, data_facts
from symdsl.analysis.facts import Data, Facts
from symdsl.analysis.library import check_library, is_library
from symdsl.analysis.names import exhausted
from symdsl.analysis.overrides import Override, apply_overrides
from symdsl.analysis.profiles import KEY, Applied, Profile, apply, check_keys, choose, profiles_of
from symdsl.diagnostics import Collector, Diagnostic
from symdsl.language import ast
from symdsl.language.imports import inline, read_file

if TYPE_CHECKING:
    import networkx as nx


@attrs.frozen
class Spec:
    """A checked spec: its facts, its program, and its warnings.

    Attributes:
        name: the stem of its file; for a text the name that it is given, or that of its network.
        facts: all that it states, with defaults filled in.
        warnings: what is probably a mistake.
        program: its tree, imports inlined and overrides applied.
        profile: the profile that was applied, and what it changed.
    """

    name: str
    facts: Facts = attrs.field(repr=False)
    warnings: tuple[Diagnostic, ...]
    program: ast.Program = attrs.field(repr=False)
    profile: Profile | None = attrs.field(default=None, repr=False)

    def text(self) -> str:
        """Return the text of the spec on its own, with imports inlined and overrides applied."""
        from symdsl.language.printer import print_program

        return print_program(self.program)

    def with_seed(self, seed: int) -> Spec:
        """Return the same spec with another seed of the search.

        Raises:
            SpecError: it is not a whole number of at least 0.
        """
        return attrs.evolve(parse(self.text(), {"search.seed": seed}, name=self.name), profile=self.profile)

    def graph(self) -> nx.DiGraph[str]:
        """Return the network as a graph of records, see `symdsl.graph.build`; a notebook shows it as a picture."""
        from symdsl.graph import build
        from symdsl.render.drawn import DrawnGraph

        return DrawnGraph(build(self.facts))

    def _repr_html_(self) -> str:
        from symdsl.highlight import html

        return html(self.text())

    def _repr_markdown_(self) -> str:
        return f"```sym\n{self.text()}```\n"

    def pruned(self, keep: Mapping[str, set[str]], ranges: Mapping[str, float] | None = None) -> str:
        """Return the text of the spec with some candidates only, and with the given ranges of averages.

        Args:
            keep: names of the candidates to keep by name of the layer; layers not named keep all. A residual block
                whose last layer keeps none is left out.
            ranges: by `average.generator`; those not named stay.

        Raises:
            ValueError: if a layer, candidate or range of that name does not exist, none would be left in a layer that
                stays, or a range is out of bounds.
        """
        from symdsl.analysis.pruning import pruned_program
        from symdsl.language.printer import print_program

        return print_program(pruned_program(self.program, self.facts, keep, ranges or {}))


def load(path: str | Path, overrides: Mapping[str, object] | None = None) -> Spec:
    """Read and check a spec file.

    Args:
        path: the file.
        overrides: values by key, as for `--set`: the name of a `let` or of a network parameter, `data.KEY`,
            `search.KEY` or `profile`. A value is a Python value, or a text in the language. Other keys win over a
            profile.

    Raises:
        SpecError: if the spec has errors; its `diagnostics` lists all of them.
    """
    collector = Collector()
    program = read_file(Path(path), str(path), collector)
    return _checked(program, Path(path).stem, overrides, collector)


def parse(
    text: str,
    overrides: Mapping[str, object] | None = None,
    source: str = "<text>",
    path: str | Path | None = None,
    name: str = "",
) -> Spec:
    """Check a spec given as text.

    Args:
        text: the spec.
        overrides: as for `load`.
        source: its name in diagnostics.
        path: a file name for the text, whose folder imports are relative to; without one it cannot import.
        name: of the spec; left out, that of its network.

    Raises:
        SpecError: if the spec has errors; its `diagnostics` lists all of them.
        TypeError: `text` is no text.
    """
    if not isinstance(text, str):
        raise TypeError(f"`text` (a {type(text).__name__}) must be a spec as a text: `symdsl.load(path)` reads a file")
    collector = Collector()
    return _checked(inline(text, source, None if path is None else Path(path), collector), name, overrides, collector)


def _checked(
    program: ast.Program | None, name: str, overrides: Mapping[str, object] | None, collector: Collector
) -> Spec:
    if program is None:
        collector.raise_errors()
    assert program is not None, "without a tree there is an error"
    given, profiles = _given(overrides), profiles_of(program, collector)
    check_keys(program, profiles.values(), collector)
    applied, facts = _analysed(program, choose(program, profiles, given, collector), name, given, collector)
    collector.raise_errors()
    assert facts is not None, "without facts there is an error"
    return Spec(facts.name, facts, collector.diagnostics, applied.result, applied.profile)


def _given(overrides: Mapping[str, object] | None) -> list[Override]:
    if not isinstance(overrides, Mapping | None):
        raise TypeError(f'`overrides` (={overrides!r}) must be values by key, such as {{"search.epochs": 5}}')
    return [Override.of(key, value, number) for number, (key, value) in enumerate((overrides or {}).items(), start=1)]


def _analysed(
    program: ast.Program,
    profile: ast.Profile | None,
    name: str,
    overrides: Sequence[Override],
    collector: Collector,
    spent: Counter[str] | None = None,
) -> tuple[Applied, Facts | None]:
    """A spec with a profile and overrides, and the facts; whatever is wrong with it names the profile too."""
    applied = apply(program, profile, overrides, collector)
    noting = collector if profile is None else collector.noting(profile.name.span, "with this profile")
    return applied, analyse(applied.program, name, noting, applied.used, spent)


def load_data(path: str | Path, overrides: Mapping[str, object] | None = None) -> Data:
    """Read a spec file, and return the facts about its data; its network is not checked.

    Args:
        path: the file.
        overrides: as in `load`.

    Raises:
        SpecError: carrying every diagnostic about the data.
    """
    collector = Collector()
    program = read_file(Path(path), str(path), collector)
    found = None
    if program is not None:
        given, profiles = _given(overrides), profiles_of(program, collector)
        applied = apply(program, choose(program, profiles, given, collector), given, collector)
        found = data_facts(applied.program, collector)
    collector.raise_errors()
    assert found is not None, "without facts there is an error"
    return found


def check(path: str | Path, overrides: Mapping[str, object] | None = None) -> tuple[Diagnostic, ...]:
    """Return all diagnostics of a spec file, or of a library: a file of networks for others to import.

    Args:
        path: the file.
        overrides: as in `load`.
    """
    collector = Collector()
    program = read_file(Path(path), str(path), collector)
    return _diagnosed(program, Path(path).stem, _given(overrides), collector)


def check_text(
    text: str,
    source: str,
    path: Path | None,
    unsaved: Mapping[Path, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> tuple[Diagnostic, ...]:
    """Return all diagnostics of a text; for the arguments see `symdsl.language.imports.inline` and `load`."""
    collector = Collector()
    program = inline(text, source, path, collector, unsaved)
    return _diagnosed(program, "" if path is None else path.stem, _given(overrides), collector)


def _diagnosed(
    program: ast.Program | None, name: str, overrides: Sequence[Override], collector: Collector
) -> tuple[Diagnostic, ...]:
    if program is not None and is_library(program):
        # What the keys of a library's profiles name is for the specs that import it to say.
        choose(program, profiles_of(program, collector), overrides, collector)
        program, _ = apply_overrides(program, [one for one in overrides if one.key != KEY], collector)
        check_library(program, collector)
    elif program is not None:
        _check_whole(program, name, overrides, collector)
    return collector.diagnostics


def _check_whole(program: ast.Program, name: str, overrides: Sequence[Override], collector: Collector) -> None:
    """Check a spec with the profile that is set, or else without any and with each, which share the limits."""
    profiles = profiles_of(program, collector)
    check_keys(program, profiles.values(), collector)
    chosen = choose(program, profiles, overrides, collector)
    _analysed(program, chosen, name, overrides, collector)
    spent: Counter[str] = Counter()
    for profile in () if any(one.key == KEY for one in overrides) else profiles.values():
        if not exhausted(spent):
            _analysed(program, profile, name, overrides, collector, spent)
