"""Overrides: `--set key=value` as a change of the tree, so that it is checked like the text itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from symdsl.analysis.names import gaps_of, hidden, unknown
from symdsl.catalog.data import SOURCES, TRANSFORMS
from symdsl.catalog.searches import SEARCH
from symdsl.catalog.signatures import Quoted, Signature
from symdsl.diagnostics import Collector, Span, suggest
from symdsl.language import ast
from symdsl.language.parser import parse_expression
from symdsl.language.printer import expression

SOURCE = "--set"


@attrs.frozen
class Override:
    """A key, the text of its value, and how the two were written.

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
        """An override from a Python value, which may be an override already.

        Raises:
            TypeError: if the language has no such value.
        """
        if isinstance(value, Override):
            return value
        text = value if isinstance(value, str) else expression(_literal(value))
        return cls(key, text, _in_one_line(f"{key}={text}"), number)

    @classmethod
    def parse(cls, written: str, number: int) -> Override:
        """An override as written on the command line.

        Raises:
            ValueError: if it has not the form K=V.
        """
        key, equals, value = (part.strip() for part in written.partition("="))
        if not (key and equals and value):
            raise ValueError(f"`{written}` must have the form K=V")
        return cls(key, value, _in_one_line(written), number)

    @property
    def key_at(self) -> int:
        """The column, from 1, at which the key begins in `written`."""
        return len(self.written) - len(self.written.lstrip()) + 1

    @property
    def value_at(self) -> int:
        """The column, from 1, at which the value begins in `written`."""
        rest = self.written.partition("=")[2]
        return len(self.written) - len(rest.lstrip()) + 1


def _in_one_line(written: str) -> str:
    return written.replace("\n", " ")


def _literal(value: object) -> ast.Expression:
    match value:
        case bool():
            return ast.Flag(value)
        case int() | float() if abs(value) < float("inf"):
            return ast.Number(value) if value >= 0 else ast.Negative(ast.Number(-value))
        case str():
            return ast.Text(value)
        case list() | tuple():
            return ast.List(tuple(_literal(one) for one in value))
    raise TypeError(f"`value` (={value!r}) must be a finite number, a text, a bool or a list of these")


def apply_overrides(program: ast.Program, overrides: Sequence[Override], collector: Collector) -> ast.Program:
    """Change a tree as overrides say; keys that name nothing are reported."""
    written = {one.number: one.written for one in overrides}
    collector.add_source(SOURCE, "\n".join(written.get(line, "") for line in range(1, max(written, default=0) + 1)))
    for override in overrides:
        program = _Applying(override, collector).to(program)
    return program


@attrs.frozen
class _Applying:
    override: Override
    collector: Collector

    def to(self, program: ast.Program) -> ast.Program:
        section, dot, key = self.override.key.partition(".")
        if not dot:
            return self._named(program, section)
        if section not in _SECTIONS:
            unknown("E310", "section", section, self._words(section), _SECTIONS, self.collector)
            return program
        return _SECTIONS[section](self, program, key)

    # `let`s and parameters

    def _named(self, program: ast.Program, name: str) -> ast.Program:
        lets = {one.name.text: one for one in program.statements if isinstance(one, ast.Let)}
        if name in lets:
            value = self._value(isinstance(lets[name].value, ast.Text))
            return _replaced(program, lets[name], attrs.evolve(lets[name], value=value))
        for instance in (one for one in program.statements if isinstance(one, ast.Instance)):
            if name in _parameter_names(program, instance):
                return self._parameter(program, instance, name)
        if not hidden("let", gaps_of(program)) or suggest(name, _keys(program)):
            self._unknown_key(_keys(program))
        return program

    def _parameter(self, program: ast.Program, instance: ast.Instance, name: str) -> ast.Program:
        value = self._value(False)
        index = _parameter_names(program, instance).index(name)
        template = _with_argument(instance.template, name, index, value)
        return _replaced(program, instance, attrs.evolve(instance, template=template))

    # data

    def data(self, program: ast.Program, key: str) -> ast.Program:
        data = next((one for one in program.statements if isinstance(one, ast.Data)), None)
        if data is None:
            return program
        signatures = [_signature(index, step) for index, step in enumerate(data.steps)]
        owners = [index for index, one in enumerate(signatures) if one is not None and one.parameter(key) is not None]
        if not owners:
            known = [name for one in signatures if one is not None for name in one.names]
            if None not in signatures or suggest(key, known):
                self._unknown_in("data", key, known)
            return program
        if owners[0] != 0 and len(owners) > 1:
            self._ambiguous(key, [data.steps[index] for index in owners])
            return program
        return self._step(program, data, owners[0], key)

    def _step(self, program: ast.Program, data: ast.Data, at: int, key: str) -> ast.Program:
        signature = _signature(at, data.steps[at])
        assert signature is not None, "the owner of the key was looked up"
        parameter = signature.parameter(key)
        assert parameter is not None, "the owner of the key has it"
        value = self._value(isinstance(parameter.type, Quoted))
        step = _with_argument(data.steps[at], key, signature.names.index(key), value)
        steps = (*data.steps[:at], step, *data.steps[at + 1 :])
        return _replaced(program, data, attrs.evolve(data, steps=steps))

    def _ambiguous(self, key: str, steps: Sequence[ast.Call]) -> None:
        notes = [(step.span, "has it") for step in steps]
        message = f"more than one transform has an argument `{key}`"
        self.collector.report("E310", self._key(), message, help="change the spec, or use a `let`", notes=notes)

    # search

    def search(self, program: ast.Program, key: str) -> ast.Program:
        if SEARCH.parameter(key) is None:
            self._unknown_in("search", key, SEARCH.names)
            return program
        value = self._value(False)
        setting = ast.Setting(ast.Word(key, self._key()), value, value.span)
        block = next((one for one in program.statements if isinstance(one, ast.Search)), None)
        if block is None:
            return attrs.evolve(program, statements=(*program.statements, ast.Search((setting,), value.span)))
        kept = [one for one in block.settings if one.name.text != key]
        return _replaced(program, block, attrs.evolve(block, settings=(*kept, setting)))

    # values

    def _value(self, quoted: bool) -> ast.Expression:
        """The value as an expression; where a text is wanted, quotes may be left out."""
        override = self.override
        if quoted and not override.value.startswith('"'):
            return ast.Text(override.value, self._value_span())
        if not override.value.strip():
            self.collector.report("E104", self._value_span(), "expected a value, found the end of the text")
            return ast.Unread(span=self._value_span())
        padding = "\n" * (override.number - 1) + " " * (override.value_at - 1)
        return parse_expression(padding + override.written[override.value_at - 1 :], SOURCE, self.collector)

    def _key(self) -> Span:
        return self._words(self.override.key)

    def _words(self, beginning: str) -> Span:
        """The place of the key, or of the beginning of it."""
        number, column = self.override.number, self.override.key_at
        return Span(SOURCE, number, column, number, column + len(beginning))

    def _value_span(self) -> Span:
        number, column = self.override.number, self.override.value_at
        return Span(SOURCE, number, column, number, column + max(1, len(self.override.value)))

    def _unknown_in(self, section: str, key: str, known: Iterable[str]) -> None:
        whole = self._key()
        span = attrs.evolve(whole, column=whole.end_column - len(key))
        unknown("E310", "key", key, span, known, self.collector, f" of `{section}`")

    def _unknown_key(self, known: Iterable[str]) -> None:
        unknown("E310", "key", self.override.key, self._key(), known, self.collector, ": nothing can be set by it")


_SECTIONS: dict[str, Callable[[_Applying, ast.Program, str], ast.Program]] = {
    "data": _Applying.data,
    "search": _Applying.search,
}


def _keys(program: ast.Program) -> list[str]:
    lets = [one.name.text for one in program.statements if isinstance(one, ast.Let)]
    instances = [one for one in program.statements if isinstance(one, ast.Instance)]
    return [*lets, *(name for one in instances for name in _parameter_names(program, one))]


def _parameter_names(program: ast.Program, instance: ast.Instance) -> list[str]:
    called = instance.template.name.text
    networks = (one for one in program.statements if isinstance(one, ast.Network) and one.name.text == called)
    return [one.name.text for network in networks for one in network.parameters or ()]


def _replaced(program: ast.Program, old: ast.Statement, new: ast.Statement) -> ast.Program:
    return attrs.evolve(program, statements=tuple(new if one is old else one for one in program.statements))


def _signature(index: int, step: ast.Call) -> Signature | None:
    found = (SOURCES if index == 0 else TRANSFORMS).get(step.name.text)
    return found.signature if found else None


def _with_argument(call: ast.Call, name: str, index: int, value: ast.Expression) -> ast.Call:
    """The call with one argument given anew, in its place if it was given by name or by place."""
    arguments = list(call.arguments or ())
    at = next((at for at, one in enumerate(arguments) if one.name is not None and one.name.text == name), None)
    if at is None and index < len(arguments) and arguments[index].name is None:
        at = index
    new = ast.Argument(ast.Word(name, value.span), value, value.span)
    if at is None:
        arguments.append(new)
    else:
        arguments[at] = attrs.evolve(new, name=arguments[at].name)
    return attrs.evolve(call, arguments=tuple(arguments))
