"""Types: whether the arguments of a call are what its signature asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import TypeAlias

import attrs

from symdsl.analysis.expressions import unknown_name
from symdsl.analysis.names import Scope, replaced, unknown
from symdsl.analysis.values import Applied, Given, Located, Plain, describe, is_number
from symdsl.catalog.signatures import (
    REQUIRED,
    Choice,
    Parameter,
    Quoted,
    Real,
    Required,
    Signature,
    Switch,
    Value,
    Variant,
    Whole,
)
from symdsl.diagnostics import Fix, Span, listing, shortened, suggest


@attrs.frozen
class Bound:
    """One option of a `Variant` with its arguments."""

    name: str
    arguments: Mapping[str, BoundValue]


BoundValue: TypeAlias = Value | Bound
Arguments: TypeAlias = dict[str, BoundValue]


def bind(signature: Signature, arguments: Sequence[Given], span: Span, scope: Scope) -> Arguments | None:
    """Match the arguments of a call with its signature.

    Args:
        signature: what can be given.
        arguments: what is given.
        span: the call, for arguments that are missing.
        scope: what names stand for.

    Returns:
        Every argument with its value, defaults filled in, but for those without value or default; nothing if one is
        wrong, which is reported.
    """
    bound, sound = bind_partly(signature, arguments, span, scope)
    return bound if sound else None


def bind_partly(signature: Signature, arguments: Sequence[Given], span: Span, scope: Scope) -> tuple[Arguments, bool]:
    """Match arguments as `bind` does, keep the right ones, and return whether all are right."""
    placed, sound = _placed(signature, arguments, scope)
    missing = [one.name for one in signature.parameters if one.default is REQUIRED and one.name not in placed]
    if missing and sound:
        message = f"`{signature.name}` needs {listing(missing)}"
        by_place = attrs.evolve(signature, parameters=tuple(one for one in signature.parameters if not one.by_name))
        scope.collector.report("E403", span, message, help=f"write `{by_place.usage}`")
    bound = {one.name: _value(one, placed.get(one.name), scope) for one in signature.parameters}
    complete = sound and not missing and all(bound[name] is not None for name in placed)
    return {name: value for name, value in bound.items() if value is not None}, complete


def _placed(signature: Signature, arguments: Sequence[Given], scope: Scope) -> tuple[dict[str, Given], bool]:
    """Arguments by parameter, and whether there was a parameter for each."""
    placed: dict[str, Given] = {}
    names = [_parameter_name(signature, arguments, index, scope) for index in range(len(arguments))]
    sound = None not in names
    for name, one in zip(names, arguments, strict=True):
        if name is not None and placed.setdefault(name, one) is not one:
            notes = [(placed[name].span, "first time")]
            scope.collector.report("E308", one.span, f"`{name}` is given twice", label="second time", notes=notes)
            sound = False
    return placed, sound


def _parameter_name(signature: Signature, arguments: Sequence[Given], index: int, scope: Scope) -> str | None:
    """Which parameter an argument is for: by its name, by being the name of a switch, or by its place."""
    argument = arguments[index]
    if argument.name is not None:
        if signature.parameter(argument.name.text) is None:
            name = argument.name
            where = f" of `{signature.name}`"
            if not replaced(f"an argument{where}", name.text, name.span, signature.replaced, scope.collector):
                unknown("E303", "argument", name.text, name.span, signature.names, scope.collector, where)
            return None
        return argument.name.text
    switch = _switch(signature, argument.value)
    if switch is not None:
        return switch
    if _misspelt_switch(signature, index, argument, scope):
        return None
    by_place = [one.name for one in signature.parameters if not one.by_name]
    count = len(by_place)
    if index >= count:
        if any(one.name is None for one in arguments[count:index]):
            return None  # the first one too many is enough
        most = {0: "no arguments", 1: "one argument"}.get(count, f"at most {count} arguments")
        named = listing(one.name for one in signature.parameters if one.by_name)
        message = f"`{signature.name}` takes {most}{' without a name' if named else ''}, found one more"
        help = f"{named} is given by its name" if named else ""
        scope.collector.report("E403", argument.span, message, label="one too many", help=help)
        return None
    return None if _is_of_another(signature, by_place[index], argument, scope) else by_place[index]


def _switch(signature: Signature, value: Located | None) -> str | None:
    name = None if value is None else _bare(value)
    parameter = None if name is None else signature.parameter(name)
    return parameter.name if parameter is not None and isinstance(parameter.type, Switch) else None


def _bare(value: Located) -> str | None:
    """The name that a value is, if it is nothing else."""
    return value.value.name if isinstance(value.value, Applied) and not value.value.arguments else None


def _misspelt_switch(signature: Signature, index: int, argument: Given, scope: Scope) -> bool:
    """Whether an argument by place is a word where none fits, but near to the name of a switch; then it is reported."""
    name = None if argument.value is None else _bare(argument.value)
    placed = signature.parameters[index : index + 1]
    if name is None or any(isinstance(one.type, Choice | Variant) for one in placed):
        return False
    switches = [one.name for one in signature.parameters if isinstance(one.type, Switch)]
    if suggest(name, switches) is None:
        return False
    unknown("E303", "argument", name, argument.span, signature.names, scope.collector, f" of `{signature.name}`")
    return True


def _is_of_another(signature: Signature, placed: str, argument: Given, scope: Scope) -> bool:
    """Whether an argument by place is a word that another parameter alone may be; then it is reported."""
    name = None if argument.value is None else _bare(argument.value)
    takes = [one.name for one in signature.parameters if isinstance(one.type, Choice) and name in one.type.options]
    if not takes or placed in takes or name in scope.names:
        return False
    message = f"`{name}` stands in the place of `{placed}`, but is a value of `{takes[0]}`"
    written = f"{takes[0]} = {name}"
    fix = Fix(f"replace by `{written}`", argument.span, written)
    scope.collector.report("E401", argument.span, message, help=f"write `{written}`", fix=fix)
    return True


def _value(parameter: Parameter, argument: Given | None, scope: Scope) -> BoundValue | None:
    if argument is None:
        return _value_by_default(parameter)
    return None if argument.value is None else convert(parameter.type, argument.value, parameter.name, scope)


def _value_by_default(parameter: Parameter) -> BoundValue | None:
    if isinstance(parameter.type, Variant) and isinstance(parameter.default, str):
        option = parameter.type.option(parameter.default)
        values = {one.name: _value_by_default(one) for one in option.parameters}
        return Bound(option.name, {name: value for name, value in values.items() if value is not None})
    return None if isinstance(parameter.default, Required) else parameter.default


@singledispatch
def convert(type: object, found: Located, name: str, scope: Scope) -> BoundValue | None:
    """Return a value converted to a type of the catalogue, or nothing if it does not fit, which is reported.

    Args:
        type: what is wanted.
        found: the value.
        name: what the value is for, to be named in the report.
        scope: what names stand for.
    """
    raise TypeError(f"`type` (={type!r}) must be a type of the catalogue")


@convert.register
def _(type: Whole, found: Located, name: str, scope: Scope) -> BoundValue | None:
    value = found.value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        _wrong("a whole number", found, name, scope)
        return None
    if not type.minimum <= value <= type.maximum:
        short = value < type.minimum and type.maximum >= 10**9
        bounds = f"at least {type.minimum}" if short else f"from {type.minimum} to {type.maximum}"
        _outside(f"`{name}` (={shortened(str(value))}) must be {bounds}", found, scope)
        return None
    return value


@convert.register
def _(type: Real, found: Located, name: str, scope: Scope) -> BoundValue | None:
    value = found.value
    if not is_number(value):
        _wrong("a number", found, name, scope)
        return None
    assert isinstance(value, int | float), "a number is an int or a float"
    low = value > type.minimum if type.above else value >= type.minimum
    high = value < type.maximum if type.below else value <= type.maximum
    if not (low and high):
        bounds = f"{'above' if type.above else 'at least'} {type.minimum:g}"
        if type.maximum != float("inf"):
            bounds += f" and {'below' if type.below else 'at most'} {type.maximum:g}"
        _outside(f"`{name}` (={value}) must be {bounds}", found, scope)
        return None
    return float(value)


@convert.register
def _(type: Quoted, found: Located, name: str, scope: Scope) -> BoundValue | None:
    if isinstance(found.value, str):
        return found.value
    word = _bare(found)
    if word is None or suggest(word, scope.names) is not None:
        _wrong('a text in quotes, such as `"~/data"`', found, name, scope)
    elif not scope.excuses(word, ()):
        message = f"`{name}` must be a text in quotes, found `{word}`"
        scope.collector.report("E401", found.span, message, help=f'write `"{word}"`')
    return None


@convert.register
def _(type: Switch, found: Located, name: str, scope: Scope) -> BoundValue | None:
    if isinstance(found.value, Applied) and found.value.name == name:
        return True
    if isinstance(found.value, bool):
        return found.value
    word = _bare(found)
    if word is None:
        _wrong("`true` or `false`", found, name, scope)
    else:
        _unknown_option(name, word, found.span, ("true", "false"), scope)
    return None


@convert.register
def _(type: Choice, found: Located, name: str, scope: Scope) -> BoundValue | None:
    value = found.value
    if not isinstance(value, Applied):
        _wrong(one_of(type.options), found, name, scope, _unquoted(value, type.options))
        return None
    if value.name in type.options and not value.arguments:
        return value.name
    if value.name in type.options:
        scope.collector.report("E403", found.span, f"`{value.name}` takes no arguments")
    else:
        _unknown_option(name, value.name, value.name_span, type.options, scope)
    return None


@convert.register
def _(type: Variant, found: Located, name: str, scope: Scope) -> BoundValue | None:
    value = found.value
    if not isinstance(value, Applied):
        _wrong(one_of(type.names), found, name, scope, _unquoted(value, type.names))
        return None
    if value.name not in type.names:
        if replaced(f"a value of `{name}`", value.name, value.name_span, type.replaced, scope.collector):
            return None
        _unknown_option(name, value.name, value.name_span, type.names, scope)
        return None
    arguments = bind(type.option(value.name), value.arguments, found.span, scope)
    return None if arguments is None else Bound(value.name, arguments)


def one_of(options: Sequence[str]) -> str:
    """Return the options as what something must be: `x`, or one of `x`, `y`."""
    return listing(options) if len(options) == 1 else f"one of {listing(options)}"


def _unquoted(value: Plain, options: Sequence[str]) -> str:
    """Return what to do about a text where a word is wanted."""
    return f"write `{value}` without quotes" if isinstance(value, str) and value in options else ""


def _unknown_option(name: str, word: str, span: Span, options: Sequence[str], scope: Scope) -> None:
    if not scope.excuses(word, options):
        unknown("E406", f"value of `{name}`", word, span, options, scope.collector)


def _wrong(expected: str, found: Located, name: str, scope: Scope, help: str = "") -> None:
    if not unknown_name(found, scope):
        message = f"`{name}` must be {expected}, found {describe(found.value)}"
        scope.collector.report("E401", found.span, message, help=help, notes=found.notes)


def _outside(message: str, found: Located, scope: Scope) -> None:
    scope.collector.report("E402", found.span, message, notes=found.notes)
