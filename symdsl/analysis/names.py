"""Names: what the statements of a spec define, each once, and what a name stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import attrs

from symdsl.analysis.values import Located
from symdsl.diagnostics import Collector, Fix, Span, listing, shortened, suggest
from symdsl.language import ast

_MOST_LISTED = 12
_MOST_SUGGESTIONS = 20
_FEW_NAMES = 100


@attrs.frozen
class Definitions:
    """The statements of a spec, sorted by what they define.

    Attributes:
        lets: by name, in order.
        templates: networks with their items, by name.
        blocks: by name.
        network: the one network that is to be built, if exactly one is.
        data: the data statement, if there is one.
        priors: rules of all prior blocks.
        search: settings of the search block, or none.
        gaps: what could not be read.
    """

    lets: Mapping[str, ast.Let]
    templates: Mapping[str, ast.Network]
    blocks: Mapping[str, ast.Block]
    network: ast.Network | ast.Instance | None
    data: ast.Data | None
    priors: tuple[ast.Rule, ...]
    search: tuple[ast.Setting, ...]
    gaps: tuple[ast.Unread, ...] = ()


def define(program: ast.Program, collector: Collector) -> Definitions:
    """Sort statements by what they define, and report duplicates and missing statements."""
    statements = program.statements
    names, gaps = named(program, collector), gaps_of(program)
    networks = [one for one in names if isinstance(one, ast.Network | ast.Instance)]
    complete = len(networks) == sum(isinstance(one, ast.Network | ast.Instance) for one in statements)
    searches = [one for one in statements if isinstance(one, ast.Search)]
    _only_one("search", searches, collector)
    return Definitions(
        lets={one.name.text: one for one in names if isinstance(one, ast.Let)},
        templates={one.name.text: one for one in networks if isinstance(one, ast.Network)},
        blocks={one.name.text: one for one in names if isinstance(one, ast.Block)},
        network=_network(networks, complete and not hidden("network", gaps), program.span, collector),
        data=_data([one for one in statements if isinstance(one, ast.Data)], gaps, program.span, collector),
        priors=tuple(rule for one in statements if isinstance(one, ast.Priors) for rule in one.rules),
        search=searches[0].settings if searches else (),
        gaps=gaps,
    )


def gaps_of(program: ast.Program) -> tuple[ast.Unread, ...]:
    """Return the statements that could not be parsed."""
    return tuple(one for one in program.statements if isinstance(one, ast.Unread))


def hidden(what: str, gaps: Iterable[ast.Unread]) -> bool:
    """Return whether an unparsed statement may begin with a word, such as `let`."""
    return any(gap.what in (what, "import", "") for gap in gaps)


Global = ast.Let | ast.Block | ast.Network | ast.Instance
"""A definition whose name the whole spec can use."""

_WHAT: dict[type[Global], str] = {
    ast.Let: "a `let`",
    ast.Block: "a block",
    ast.Network: "a network",
    ast.Instance: "a network",
}


def named(program: ast.Program, collector: Collector) -> list[Global]:
    """Return the `let`s, blocks and networks by name; further ones of the same name are reported."""
    found: dict[str, Global] = {}
    for node in program.statements:
        if isinstance(node, Global):
            first = found.setdefault(node.name.text, node)
            if first is not node:
                _report_clash(node, first, collector)
    return list(found.values())


def _report_clash(node: Global, first: Global, collector: Collector) -> None:
    what, before = _WHAT[type(node)], _WHAT[type(first)]
    if what == before:
        report_twice(what, node.name, first.name.span, collector)
        return
    message = f"`{node.name.text}` is defined as {what}, but is the name of {before} already"
    notes = [(first.name.span, f"{before} of that name")]
    collector.report(
        "E308", node.name.span, message, label="second time", help="give one of them another name", notes=notes
    )


Named = TypeVar("Named", bound=ast.Setting | ast.Parameter)


def unique(nodes: Iterable[Named], what: str, collector: Collector) -> dict[str, Named]:
    """Return nodes by name; further ones of the same name are reported and left out."""
    found: dict[str, Named] = {}
    for node in nodes:
        first = found.setdefault(node.name.text, node)
        if first is not node:
            report_twice(what, node.name, first.name.span, collector)
    return found


def report_twice(what: str, name: ast.Word, first: Span, collector: Collector, help: str = "") -> None:
    """Report that `name` is defined a second time."""
    collector.report(
        "E308",
        name.span,
        f"`{name.text}` is defined twice as {what}",
        label="second time",
        help=help,
        notes=[(first, "first time")],
    )


def _network(
    networks: Sequence[ast.Network | ast.Instance], complete: bool, whole: Span, collector: Collector
) -> ast.Network | ast.Instance | None:
    """The network to build; that there is none is reported if `networks` are all that the spec has."""
    instantiated = {one.template.name.text for one in networks if isinstance(one, ast.Instance)}
    built = [
        one
        for one in networks
        if isinstance(one, ast.Instance) or not (one.parameters or one.name.text in instantiated)
    ]
    if not built and not complete:
        return None
    if not built:
        first = networks[0].name if networks else None
        help = f"write `network name = {first.text}(...)`" if first else "write `network name { ... }`"
        place = first.span if first else attrs.evolve(whole.end, end_column=whole.end_column + 1)
        collector.report("E311", place, "there is no network to build", help=help)
        return None
    _only_one("network", built, collector)
    return built[0]


def _data(found: Sequence[ast.Data], gaps: Sequence[ast.Unread], whole: Span, collector: Collector) -> ast.Data | None:
    if not found and hidden("data", gaps):
        return None
    if not found:
        start = attrs.evolve(whole.start, end_column=whole.column + 1)
        collector.report("E311", start, "there is no `data` to learn from", help="write `data digits`")
        return None
    _only_one("data", found, collector)
    return found[0]


def _only_one(
    what: str, found: Sequence[ast.Network | ast.Instance | ast.Data | ast.Search], collector: Collector
) -> None:
    for extra in found[1:]:
        collector.report(
            "E308",
            attrs.evolve(extra.span, end_line=extra.span.line, end_column=extra.span.column + len(what)),
            f"there is more than one `{what}` in this spec",
            label="one too many",
            notes=[(found[0].span, "the first")],
        )


LIMITS = {
    "items, rounds and candidates": 10_000,
    "values": 100_000,
    "priors for layers": 200_000,
    "profiles": 20,
    "keys of profiles": 200,
}
"""How much of what one spec may ask for. `priors for layers` counts every pair of a layer and a prior with a `*`."""


def report_too_many(what: str, span: Span, collector: Collector) -> None:
    """Report that a spec exceeds one of the limits in `LIMITS`."""
    help = "the limits are there so that checking a spec ends soon"
    collector.report("E405", span, f"more than {LIMITS[what]:,} {what} in one spec are too many", help=help)


def exhausted(spent: Counter[str]) -> bool:
    """Return whether a spec has exceeded one of its limits."""
    return any(spent[what] > most for what, most in LIMITS.items())


Evaluate = Callable[[ast.Expression, "Scope"], "Located | None"]


@attrs.define
class Scope:
    """The values of names at one place of a spec.

    Attributes:
        collector: receives errors.
        lets: definitions by name; evaluated when first asked for.
        evaluate: how.
        builtins: names that the data define, found when first asked for.
        spent: how much was asked for of what is limited.
        local: names of the network's parameters and of `repeat`; `None` for what was reported already.
        used: names of the `let`s that were asked for.
        incomplete: whether there may be names that could not be read.
    """

    collector: Collector
    lets: Mapping[str, ast.Let]
    evaluate: Evaluate
    builtins: Mapping[str, Callable[[], Located | None]]
    spent: Counter[str] = attrs.field(factory=Counter)
    local: Mapping[str, Located | None] = attrs.field(factory=dict)
    used: set[str] = attrs.field(factory=set)
    incomplete: bool = False
    _known: dict[str, Located | None] = attrs.field(factory=dict)
    _open: list[str] = attrs.field(factory=list)

    def inside(self, local: Mapping[str, Located | None]) -> Scope:
        """Return the scope inside a block, which adds names of its own."""
        return attrs.evolve(self, local={**self.local, **local})

    def affords(self, what: str, span: Span, more: int = 1) -> bool:
        """Count towards a limit; return false, and report once, when it is exceeded.

        Args:
            what: a key of `LIMITS`.
            span: where it is asked for.
            more: how much.
        """
        limit, before = LIMITS[what], self.spent[what]
        self.spent[what] += more
        if before <= limit < self.spent[what]:
            report_too_many(what, span, self.collector)
        return self.spent[what] <= limit

    def outside(self) -> Scope:
        """Return the scope of the whole spec, without names that blocks added."""
        return attrs.evolve(self, local={})

    def knows(self, name: str) -> bool:
        """Return whether a name is defined."""
        return name in self.local or name in self.lets or name in self.builtins

    @property
    def names(self) -> tuple[str, ...]:
        """Every defined name."""
        return (*self.local, *self.lets, *self.builtins)

    def excuses(self, name: str, known: Iterable[str]) -> bool:
        """Return whether an undefined name may belong to a statement that could not be parsed."""
        return self.incomplete and suggest(name, (*known, *self.names)) is None

    def origin(self, name: str) -> list[tuple[Span, str]]:
        """Return notes that point to the definition of a name; empty for what no `let` defines."""
        found = None if name in self.local else self.lets.get(name)
        return [] if found is None else [(found.name.span, "defined here")]

    def look_up(self, name: ast.Word) -> Located | None:
        """Return the value of a defined name, located where it is used."""
        if name.text in self.local:
            found = self.local[name.text]
        elif name.text in self.lets:
            self.used.add(name.text)
            found = self.let(name)
        else:
            found = self.builtins[name.text]()
        return None if found is None else Located(found.value, name.span, found.origins or (found.span,))

    def refuse(self, name: str, others: Sequence[str] = ()) -> None:
        """Report a circular `let`, and make its value unknown; `others` are part of the circle."""
        notes = [(self.lets[other].name.span, "by way of this one") for other in others[:_MOST_LISTED]]
        here, value = self.lets[name].name.span, self.lets[name].value.span
        place = here if value.source == here.source else value  # of the setting that gave the value
        self.collector.report("E309", place, f"`{name}` is defined by itself", notes=notes)
        self._known[name] = None

    def let(self, name: ast.Word) -> Located | None:
        """Return the value of a `let`."""
        if name.text in self._open:
            self.refuse(name.text)
        if name.text not in self._known:
            self._open.append(name.text)
            self._known[name.text] = self.evaluate(self.lets[name.text].value, self.outside())
            self._open.pop()
        return self._known[name.text]


def unknown(
    code: str,
    what: str,
    name: str,
    span: Span,
    known: Iterable[str],
    collector: Collector,
    where: str = "",
    also: Iterable[str] = (),
) -> None:
    """Report an undefined name, and suggest the nearest defined ones.

    Args:
        code: of the diagnostic.
        what: the name was taken for.
        name: as written.
        span: where.
        known: names that would have been right.
        collector: receives it.
        where: added to the message.
        also: names that may have been meant, but are not listed.
    """
    if collector.knows(code, span) or collector.knows("E104", span):
        return
    words = list(dict.fromkeys(known))
    meant = [one for one in (*words, *also) if one != name]  # a name may be known elsewhere than where it stands
    # Looking through thousands of names takes milliseconds, which thousands of unknown names must not.
    near = suggest(name, meant) if len(meant) <= _FEW_NAMES or collector.count < _MOST_SUGGESTIONS else None
    question = f"did you mean `{near}`?" if near else ""
    fix = Fix(f"replace by `{near}`", span, near) if near else None
    help = " ".join(part for part in (question, _choice(words)) if part)
    collector.report(code, span, f"unknown {what} `{shortened(name)}`{where}", help=help, fix=fix)


def replaced(what: str, word: str, span: Span, words: Iterable[tuple[str, str]], collector: Collector) -> bool:
    """Report a word of an earlier version with its replacement; return false if it is not one.

    Args:
        what: the word was, such as "a key of `search`".
        word: as written.
        span: where.
        words: those that are gone, each with what to write now.
        collector: receives it.
    """
    advice = dict(words).get(word)
    if advice is not None:
        collector.report("E312", span, f"`{word}` is no longer {what}", help=advice)
    return advice is not None


def _choice(words: Sequence[str]) -> str:
    if not 0 < len(words) <= _MOST_LISTED:
        return ""
    return f"there is only `{words[0]}`" if len(words) == 1 else f"there are {listing(words)}"
