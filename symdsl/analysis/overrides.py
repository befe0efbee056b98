"""Overrides: `--set key=value` as a change of the tree, so that it is checked like the text itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from numbers import Integral, Real

import attrs

from symdsl.analysis.dependencies import names_in, reachable
from symdsl.analysis.names import gaps_of, hidden, replaced, unknown
from symdsl.catalog.data import SOURCES, TRANSFORMS
from symdsl.catalog.searches import SEARCH, setting_with
from symdsl.catalog.signatures import Parameter, Quoted, Signature, Switch
from symdsl.diagnostics import Collector, Fix, Span, listing, suggest
from symdsl.language import ast
from symdsl.language.parser import parse_expression

SOURCE = "--set"


@attrs.frozen
class Override:
    """A setting of the command line or of Python: its key, and its value as text.

    Attributes:
        key: what is to be set.
        value: an expression of the language; quotes round a text may be left out.
        written: the whole as on the command line, in one line.
        number: which of all overrides it is, from 1.
    """

    key: str
    value: str
    written: str
    number: int

    @classmethod
    def of(cls, key: str, value: object, number: int) -> Override:
        """Return an override for a Python value, which may be an override already.

        Raises:
            TypeError: if the key is no text, or the language has no such value.
        """
        if isinstance(value, Override):
            return value
        if not isinstance(key, str):
            raise TypeError(f"the key {key!r} of `overrides` must be a text, such as 'search.epochs'")
        from symdsl.language.printer import expression

        text = value if isinstance(value, str) else expression(_literal(value))
        return cls(key, text, _in_one_line(f"{key}={text}"), number)

    @classmethod
    def parse(cls, written: str, number: int) -> Override:
        """Parse an override as written on the command line, `key=value`.

        Raises:
            ValueError: if it has not the form K=V.
        """
        key, equals, value = (part.strip() for part in written.partition("="))
        if not (key and equals and value):
            raise ValueError(f"`{written}` must have the form K=V")
        return cls(key, value, _in_one_line(written), number)

    @property
    def value_at(self) -> int:
        """The column, from 1, at which the value begins in `written`."""
        rest = self.written.partition("=")[2]
        return len(self.written) - len(rest.lstrip()) + 1

    @property
    def word(self) -> ast.Word:
        """The key with its place."""
        at = len(self.written) - len(self.written.lstrip()) + 1
        return ast.Word(self.key, Span(SOURCE, self.number, at, self.number, at + len(self.key)))

    @property
    def value_span(self) -> Span:
        """The place of the value."""
        at = self.value_at
        return Span(SOURCE, self.number, at, self.number, at + max(1, len(self.value)))


def _in_one_line(written: str) -> str:
    return written.replace("\n", " ")


def _literal(value: object) -> ast.Expression:
    match value:
        case bool():
            return ast.Flag(value)
        case Real():
            number = int(value) if isinstance(value, Integral) else float(value)
            if abs(number) < float("inf"):
                return ast.Number(number) if number >= 0 else ast.Negative(ast.Number(-number))
        case str():
            return ast.Text(value)
        case list() | tuple():
            return ast.List(tuple(_literal(one) for one in value))
    raise TypeError(f"`value` (={value!r}) must be a finite number, a text, a bool or a list of these")


def apply_overrides(
    program: ast.Program, overrides: Sequence[Override], collector: Collector
) -> tuple[ast.Program, list[ast.Expression]]:
    """Return a tree changed by overrides, and the values that they replaced; unknown keys are reported."""
    make_known(overrides, collector)
    replaced: list[ast.Expression] = []
    for override in overrides:
        slot = find_slot(program, override.word, collector)
        if slot is not None:
            program = slot.put(_value(override, slot.quoted, collector))
            replaced += [] if slot.old is None else [slot.old]
    return program, replaced


def make_known(overrides: Sequence[Override], collector: Collector) -> None:
    """Register the texts of overrides, so that diagnostics can show places in them."""
    written = {one.number: one.written for one in overrides}
    collector.add_source(SOURCE, "\n".join(written.get(line, "") for line in range(1, max(written, default=0) + 1)))


def _value(override: Override, quoted: bool, collector: Collector) -> ast.Expression:
    """The value as an expression; where a text is wanted, quotes may be left out."""
    if quoted and not override.value.startswith('"'):
        return ast.Text(override.value, override.value_span)
    if not override.value.strip():
        collector.report("E104", override.value_span, "expected a value, found the end of the text")
        return ast.Unread(span=override.value_span)
    padding = "\n" * (override.number - 1) + " " * (override.value_at - 1)
    return parse_expression(padding + override.written[override.value_at - 1 :], SOURCE, collector)


# ---------------------------------------------------------------- where a value goes


@attrs.frozen
class Slot:
    """The place in a tree that a key refers to.

    Attributes:
        old: the value that stands there, if one does.
        default: what counts where none does, as a text; the empty text where nothing does.
        quoted: whether a text is wanted there.
        put: makes the tree that has another value there.
    """

    old: ast.Expression | None
    default: str
    quoted: bool
    put: Callable[[ast.Expression], ast.Program]


def find_slot(program: ast.Program, key: ast.Word, collector: Collector) -> Slot | None:
    """Return the place in the tree that a key refers to, or nothing for an unknown key, which is reported."""
    return _Finding(program, key, collector).slot()


@attrs.frozen
class _Finding:
    program: ast.Program
    key: ast.Word
    collector: Collector

    def slot(self) -> Slot | None:
        section, dot, key = self.key.text.partition(".")
        if not dot:
            return self._named(section)
        if section not in SECTIONS:
            whole = self.key.span
            place = attrs.evolve(whole, end_line=whole.line, end_column=whole.column + len(section))
            unknown("E310", "section", section, place, SECTIONS, self.collector)
            return None
        return SECTIONS[section](self, key)

    # `let`s and parameters

    def _named(self, name: str) -> Slot | None:
        let = next((one for one in self.program.statements if isinstance(one, ast.Let) and one.name.text == name), None)
        for instance in (one for one in self.program.statements if isinstance(one, ast.Instance)):
            parameters = _parameters(self.program, instance)
            names = [one.name.text for one in parameters]
            if name not in names:
                continue
            index = names.index(name)
            parameter = parameters[index]
            old = _given(instance.template, name, index) or parameter.default
            if let is not None and name in reachable(
                {one: names_in(value) for one, value in self._lets.items()}, names_in(old)
            ):
                break  # the parameter has what the `let` has
            if let is not None:
                notes = [(let.name.span, "a `let`"), (parameter.name.span, f"a parameter of `{instance.name.text}`")]
                message = f"both a `let` and a parameter of the network are called `{name}`"
                self.collector.report("E310", self.key.span, message, help="rename one of them", notes=notes)
                return None
            is_text = parameter.type is not None and parameter.type.text == "text"
            put = partial(self._with_parameter, instance, name, index)
            return Slot(old, "", is_text or self._is_text(old), put)
        if let is not None:
            return Slot(let.value, "", self._is_text(let.value), partial(self._with_let, let))
        known = _keys(self.program)
        dotted = [key for key in keys_of(self.program) if key.endswith(f".{name}")]
        if dotted:
            message, fix = f"unknown key `{name}`", Fix(f"replace by `{dotted[0]}`", self.key.span, dotted[0])
            self.collector.report("E310", self.key.span, message, help=f"did you mean {listing(dotted)}?", fix=fix)
        elif not hidden("let", gaps_of(self.program)) or suggest(name, known):
            self._unknown(self.key.span, name, known, ": nothing can be set by it")
        return None

    @property
    def _lets(self) -> dict[str, ast.Expression]:
        return {one.name.text: one.value for one in self.program.statements if isinstance(one, ast.Let)}

    def _is_text(self, value: ast.Expression | None) -> bool:
        """Whether a value is a text, or the name of a `let` that is."""
        lets = self._lets
        while isinstance(value, ast.Call) and value.arguments is None:
            value = lets.pop(value.name.text, None)
        return isinstance(value, ast.Text)

    def _with_let(self, let: ast.Let, value: ast.Expression) -> ast.Program:
        return _replaced(self.program, let, attrs.evolve(let, value=value))

    def _with_parameter(self, instance: ast.Instance, name: str, index: int, value: ast.Expression) -> ast.Program:
        template = _with_argument(instance.template, name, index, value)
        return _replaced(self.program, instance, attrs.evolve(instance, template=template))

    # data

    def data(self, key: str) -> Slot | None:
        data = next((one for one in self.program.statements if isinstance(one, ast.Data)), None)
        if data is None:
            return None
        signatures = [_signature(index, step) for index, step in enumerate(data.steps)]
        owners = [index for index, one in enumerate(signatures) if one is not None and one.parameter(key) is not None]
        if not owners:
            known = [name for one in signatures if one is not None for name in one.names]
            if None not in signatures or suggest(key, known):
                self._unknown(self._end(key), key, known, " of `data`")
            return None
        if owners[0] != 0 and len(owners) > 1:
            notes = [(data.steps[index].span, "has it") for index in owners]
            message = f"more than one transform has an argument `{key}`"
            self.collector.report("E310", self.key.span, message, help="change the spec, or use a `let`", notes=notes)
            return None
        at = owners[0]
        signature = signatures[at]
        assert signature is not None, "the owner of the key was looked up"
        parameter, index = signature.parameter(key), signature.names.index(key)
        assert parameter is not None, "the owner of the key has it"
        switches = frozenset(one.name for one in signature.parameters if isinstance(one.type, Switch))
        put = partial(self._with_step, data, at, key, index, switches)
        old = _given(data.steps[at], key, index, switches)
        return Slot(old, parameter.default_words, isinstance(parameter.type, Quoted), put)

    def _with_step(
        self, data: ast.Data, at: int, key: str, index: int, switches: frozenset[str], value: ast.Expression
    ) -> ast.Program:
        step = _with_argument(data.steps[at], key, index, value, switches)
        steps = (*data.steps[:at], step, *data.steps[at + 1 :])
        return _replaced(self.program, data, attrs.evolve(data, steps=steps))

    # search

    def search(self, key: str) -> Slot | None:
        parameter = SEARCH.parameter(key)
        if parameter is None:
            if found := setting_with(key.rpartition(".")[2]):
                message, help = f"unknown key `{key}` of `search`", f'write `--set "search.{"=".join(found)}"`'
                self.collector.report("E310", self._end(key), message, help=help)
            elif not replaced("a key of `search`", key, self._end(key), SEARCH.replaced, self.collector):
                self._unknown(self._end(key), key, SEARCH.names, " of `search`")
            return None
        block = next((one for one in self.program.statements if isinstance(one, ast.Search)), None)
        given = [one.value for one in block.settings if one.name.text == key] if block else []
        put = partial(self._with_setting, block, key)
        return Slot(given[0] if given else None, parameter.default_words, False, put)

    def _with_setting(self, block: ast.Search | None, key: str, value: ast.Expression) -> ast.Program:
        setting = ast.Setting(ast.Word(key, self.key.span), value, value.span)
        if block is None:
            statements = (*self.program.statements, ast.Search((setting,), value.span))
            return attrs.evolve(self.program, statements=statements)
        kept = [one for one in block.settings if one.name.text != key]
        return _replaced(self.program, block, attrs.evolve(block, settings=(*kept, setting)))

    # words

    def _end(self, key: str) -> Span:
        whole = self.key.span
        return attrs.evolve(whole, line=whole.end_line, column=whole.end_column - len(key))

    def _unknown(self, span: Span, key: str, known: Iterable[str], where: str) -> None:
        unknown("E310", "key", key, span, known, self.collector, where)


SECTIONS: dict[str, Callable[[_Finding, str], Slot | None]] = {"data": _Finding.data, "search": _Finding.search}
"""Functions that find what a key sets, by the word before its dot."""


def keys_of(program: ast.Program) -> dict[str, Parameter | None]:
    """Return every key that can be set with its description, empty for names that the spec defines."""
    steps = [step for one in program.statements if isinstance(one, ast.Data) for step in one.steps]
    signatures = [_signature(index, step) for index, step in enumerate(steps)]
    of_data = [each for one in signatures if one is not None for each in one.parameters]
    return {
        **dict.fromkeys(_keys(program)),
        **{f"data.{one.name}": one for one in reversed(of_data)},
        **{f"search.{one.name}": one for one in SEARCH.parameters},
    }


def _keys(program: ast.Program) -> list[str]:
    lets = [one.name.text for one in program.statements if isinstance(one, ast.Let)]
    instances = [one for one in program.statements if isinstance(one, ast.Instance)]
    return [*lets, *(each.name.text for one in instances for each in _parameters(program, one))]


def _parameters(program: ast.Program, instance: ast.Instance) -> list[ast.Parameter]:
    called = instance.template.name.text
    networks = (one for one in program.statements if isinstance(one, ast.Network) and one.name.text == called)
    return [one for network in networks for one in network.parameters or ()]


def _replaced(program: ast.Program, old: ast.Statement, new: ast.Statement) -> ast.Program:
    return attrs.evolve(program, statements=tuple(new if one is old else one for one in program.statements))


def _signature(index: int, step: ast.Call) -> Signature | None:
    found = (SOURCES if index == 0 else TRANSFORMS).get(step.name.text)
    return found.signature if found else None


def _argument_at(call: ast.Call, name: str, index: int, switches: frozenset[str]) -> int | None:
    """Which of the arguments of a call is the one of a name, given by name, as a bare switch, or by place."""
    arguments = call.arguments or ()
    names = [one.name.text if one.name else _bare_switch(one, switches) for one in arguments]
    if name in names:
        return names.index(name)
    return index if index < len(names) and names[index] is None else None


def _bare_switch(argument: ast.Argument, switches: frozenset[str]) -> str | None:
    """The switch that an argument turns on by being its name."""
    match argument:
        case ast.Argument(name=None, value=ast.Call(name=word, arguments=None)) if word.text in switches:
            return word.text
    return None


def _given(call: ast.Call, name: str, index: int, switches: frozenset[str] = frozenset()) -> ast.Expression | None:
    at = _argument_at(call, name, index, switches)
    return None if at is None else (call.arguments or ())[at].value


def _with_argument(
    call: ast.Call, name: str, index: int, value: ast.Expression, switches: frozenset[str] = frozenset()
) -> ast.Call:
    """The call with one argument given anew, in its place if it was given."""
    arguments, at = list(call.arguments or ()), _argument_at(call, name, index, switches)
    new = ast.Argument(ast.Word(name, value.span), value, value.span)
    if at is None:
        arguments.append(new)
    elif _bare_switch(arguments[at], switches):
        arguments[at] = new
    else:
        arguments[at] = attrs.evolve(new, name=arguments[at].name)
    return attrs.evolve(call, arguments=tuple(arguments))
