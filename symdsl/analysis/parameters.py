"""Parameters of networks and blocks: their types, and what a call gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from symdsl.analysis.expressions import evaluate, is_kind, unknown_name
from symdsl.analysis.names import Scope, unique, unknown
from symdsl.analysis.values import Applied, Located, Plain, describe, is_number
from symdsl.catalog.networks import NORMAL
from symdsl.diagnostics import Span, suggest
from symdsl.kinds import KINDS
from symdsl.language import ast


@attrs.frozen
class ParameterType:
    """A type that a parameter of a network or block may be declared with.

    Attributes:
        name: as written after the colon.
        words: what it accepts, after "must be".
        fits: whether a value is of it.
        each: whether a list of values that fit will do as well.
        known: words that may have been meant where one stands for nothing.
    """

    name: str
    words: str
    fits: Callable[[Plain], bool]
    each: bool = False
    known: Iterable[str] = ()

    def misfit(self, value: Located) -> Located | None:
        """Return the value, or the item of a list, that is not of this type, or nothing."""
        values = value.value if self.each and isinstance(value.value, tuple) else (value,)
        return next((one for one in values if not self.fits(one.value)), None)


def _is_whole(value: Plain) -> bool:
    return is_number(value) and float(value).is_integer()


def _is_prior(value: Plain) -> bool:
    return isinstance(value, Applied) and value.name == NORMAL.name


def _is_word(value: Plain) -> bool:
    return isinstance(value, Applied) and not value.arguments


PARAMETER_TYPES: dict[str, ParameterType] = {
    type.name: type
    for type in (
        ParameterType("whole", "a whole number", _is_whole),
        ParameterType("number", "a number", is_number),
        ParameterType("flag", "`true` or `false`", lambda value: isinstance(value, bool)),
        ParameterType("text", "a text in quotes", lambda value: isinstance(value, str)),
        ParameterType("word", "a word of the language, such as `pointwise`", _is_word),
        ParameterType("kind", "a kind, such as `CONV(3)`", is_kind, known=KINDS),
        ParameterType("kinds", "a kind or a list of kinds, such as `[F-FC, CONV(3)]`", is_kind, each=True, known=KINDS),
        ParameterType("prior", "a prior, such as `normal(precision = 1)`", _is_prior, known=(NORMAL.name,)),
        ParameterType("list", "a list", lambda value: isinstance(value, tuple)),
    )
}
"""Every type of parameters by name."""

Template = ast.Network | ast.Block


def bind_parameters(template: Template, call: ast.Call, scope: Scope) -> dict[str, Located | None]:
    """Return the values of the parameters of a network or a block in a call.

    Args:
        template: whose parameters.
        call: with the arguments, which are evaluated in `scope`. Defaults are evaluated where no names but those of
            the whole spec, and the parameters before, are known.
        scope: where the call stands.

    Returns:
        A value by name; `None` for what is wrong, which is reported.
    """
    parameters = unique(template.parameters or (), "a parameter", scope.collector)
    placed = _placed(tuple(parameters), template.name, call, scope)
    strays = {one.name.text for one in call.arguments or () if one.name is not None} - parameters.keys()
    meant = {suggest(stray, parameters) for stray in strays}
    values: dict[str, Located | None] = {}
    for name, parameter in parameters.items():
        if name in placed:
            _written(parameter, dict.fromkeys(values), scope)  # a wrong default is wrong also where it is not needed
            values[name] = _of_type(placed[name], parameter, scope)
            continue
        if parameter.default is None and not {name, None} & meant:
            message = f"`{call.name.text}` needs `{name}`"
            notes = [(parameter.name.span, "asked for here")]
            scope.collector.report("E403", call.span, message, notes=notes)
        values[name] = _written(parameter, values, scope)
    return values


def default_parameters(template: Template, scope: Scope) -> dict[str, Located | None]:
    """Return the default values of parameters; `None` for those without one."""
    values: dict[str, Located | None] = {}
    for name, parameter in unique(template.parameters or (), "a parameter", scope.collector).items():
        values[name] = _written(parameter, values, scope)
    return values


def _placed(names: Sequence[str], template: ast.Word, call: ast.Call, scope: Scope) -> dict[str, Located | None]:
    placed: dict[str, Located | None] = {}
    first: dict[str, Span] = {}
    for index, argument in enumerate(call.arguments or ()):
        name = _name(index, argument, names, template, scope)
        value = evaluate(argument.value, scope)
        if name in placed:
            notes = [(first[name], "first time")]
            scope.collector.report("E308", argument.span, f"`{name}` is given twice", label="second time", notes=notes)
        elif name is not None:
            placed[name], first[name] = value, argument.span
    return placed


def _name(index: int, argument: ast.Argument, names: Sequence[str], template: ast.Word, scope: Scope) -> str | None:
    if argument.name is not None:
        if argument.name.text in names:
            return argument.name.text
        name = argument.name
        where = f" of `{template.text}`"
        unknown("E303", "parameter", name.text, name.span, names, scope.collector, where)
        return None
    if index < len(names):
        return names[index]
    count = {0: "no parameters", 1: "one parameter"}.get(len(names), f"{len(names)} parameters")
    message = f"`{template.text}` has {count}, found one more"
    notes = [(template.span, "defined here")]
    scope.collector.report("E403", argument.span, message, label="one too many", notes=notes)
    return None


def _written(parameter: ast.Parameter, before: Mapping[str, Located | None], scope: Scope) -> Located | None:
    """The default, if there is one; the type is checked even if there is none."""
    value = None if parameter.default is None else evaluate(parameter.default, scope.outside().inside(before))
    return _of_type(value, parameter, scope)


def _of_type(value: Located | None, parameter: ast.Parameter, scope: Scope) -> Located | None:
    word = parameter.type
    if word is not None and word.text not in PARAMETER_TYPES:
        unknown("E406", "type", word.text, word.span, PARAMETER_TYPES, scope.collector)
    type = None if word is None else PARAMETER_TYPES.get(word.text)
    wrong = None if value is None or type is None else type.misfit(value)
    if type is None or wrong is None:
        return value
    if not unknown_name(wrong, scope, type.known):
        message = f"`{parameter.name.text}` must be {type.words}, found {describe(wrong.value)}"
        notes = [(parameter.span, "declared here"), *wrong.notes]
        scope.collector.report("E401", wrong.span, message, notes=notes)
    return None
