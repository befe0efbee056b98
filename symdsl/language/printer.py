"""Tree to canonical text: `parse(print(tree)) == tree`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

from symdsl.language import ast

_INDENT = "  "
_COMPARISON, _SUM, _PRODUCT, _UNARY = range(1, 5)
_LEVELS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def print_program(program: ast.Program) -> str:
    """The canonical text of a tree, with a newline at its end; comments are not part of it."""
    return "\n\n".join(_paragraphs(program.statements)) + "\n" if program.statements else ""


def _paragraphs(statements: Iterable[ast.Statement]) -> list[str]:
    """One text a paragraph; `let`s, and `import`s, that follow each other share one."""
    paragraphs: list[list[str]] = []
    previous: type | None = None
    for statement in statements:
        together = type(statement) is previous and isinstance(statement, ast.Let | ast.Import)
        if not together:
            paragraphs.append([])
        paragraphs[-1].extend(statement_lines(statement))
        previous = type(statement)
    return ["\n".join(lines) for lines in paragraphs]


@singledispatch
def statement_lines(node: object) -> list[str]:
    """The lines of a statement, an item, a rule or a setting, without indentation of the whole."""
    raise TypeError(f"`node` (={node!r}) must be a node of the tree")


@statement_lines.register
def _(node: ast.Let) -> list[str]:
    return [f"let {node.name.text} = {expression(node.value)}"]


@statement_lines.register
def _(node: ast.Import) -> list[str]:
    return [f"import {expression(node.path)}"]


@statement_lines.register
def _(node: ast.Data) -> list[str]:
    return [f"data {_pipeline(node.steps)}"]


@statement_lines.register
def _(node: ast.Network) -> list[str]:
    return block(head(node), node.items)


@statement_lines.register
def _(node: ast.Instance) -> list[str]:
    return [f"network {node.name.text} = {expression(node.template)}"]


@statement_lines.register
def _(node: ast.Priors) -> list[str]:
    return block(head(node), node.rules)


@statement_lines.register
def _(node: ast.Search) -> list[str]:
    return block(head(node), node.settings)


@statement_lines.register
def _(node: ast.Rule) -> list[str]:
    return [f"{'.'.join(_pattern(part) for part in node.selector)} ~ {expression(node.prior)}"]


@statement_lines.register
def _(node: ast.Setting) -> list[str]:
    return [f"{node.name.text} = {expression(node.value)}"]


@statement_lines.register
def _(node: ast.Input) -> list[str]:
    return [f"input {expression(node.image)}"]


@statement_lines.register
def _(node: ast.Lift) -> list[str]:
    return [f"lift {node.group.text}"]


@statement_lines.register
def _(node: ast.Layer) -> list[str]:
    name = f" {node.name.text}" if node.name else ""
    candidates = " + ".join(_candidate(candidate) for candidate in node.candidates)
    stride = f" stride {expression(node.stride)}" if node.stride is not None else ""
    activations = "".join(f" |> {expression(activation)}" for activation in node.activations)
    return [f"layer{name}: {candidates} -> {expression(node.channels)}{stride}{activations}"]


@statement_lines.register
def _(node: ast.Repeat) -> list[str]:
    return block(head(node), node.items)


@statement_lines.register
def _(node: ast.Project) -> list[str]:
    return [f"project {node.reduction.text}"]


@statement_lines.register
def _(node: ast.Pool) -> list[str]:
    return [f"pool {node.reduction.text}"]


@statement_lines.register
def _(node: ast.Flatten) -> list[str]:
    return ["flatten"]


def head(node: ast.Network | ast.Priors | ast.Search | ast.Repeat) -> str:
    """The first line of a block, up to and including its brace."""
    match node:
        case ast.Network(name, parameters):
            listed = "" if parameters is None else f"({', '.join(_parameter(one) for one in parameters)})"
            return f"network {name.text}{listed} {{"
        case ast.Repeat(values, names, unpack):
            listed = ", ".join(name.text for name in names)
            single = "," if unpack and len(names) == 1 else ""
            return f"repeat {expression(values)} as {f'({listed}{single})' if unpack else listed} {{"
        case ast.Priors():
            return "prior {"
        case ast.Search():
            return "search {"


def block(first: str, nodes: Iterable[object]) -> list[str]:
    """The lines of a block with one node a line."""
    lines = [line for node in nodes for line in statement_lines(node)]
    return [first, *(_INDENT + line for line in lines), "}"]


def _parameter(parameter: ast.Parameter) -> str:
    default = f" = {expression(parameter.default)}" if parameter.default is not None else ""
    return parameter.name.text + default


def _candidate(candidate: ast.Candidate) -> str:
    prior = f" ~ {expression(candidate.prior)}" if candidate.prior else ""
    return expression(candidate.kind) + prior


def _pattern(pattern: ast.Pattern) -> str:
    return pattern.text + _arguments(pattern.arguments)


def _pipeline(steps: Iterable[ast.Call]) -> str:
    return " |> ".join(expression(step) for step in steps)


def _arguments(arguments: tuple[ast.Argument, ...] | None) -> str:
    return "" if arguments is None else f"({', '.join(_argument(one) for one in arguments)})"


def _argument(argument: ast.Argument) -> str:
    name = f"{argument.name.text} = " if argument.name else ""
    return name + expression(argument.value)


def expression(node: ast.Expression, level: int = 0) -> str:
    """The text of a value, in parentheses where it binds weaker than `level`."""
    match node:
        case ast.Number(value):
            return repr(value)
        case ast.Text(value):
            return f'"{value.translate(_ESCAPES)}"'
        case ast.Flag(value):
            return "true" if value else "false"
        case ast.Call(name, arguments):
            return name.text + _arguments(arguments)
        case ast.List(items):
            return f"[{', '.join(expression(item) for item in items)}]"
        case ast.Tuple(items):
            return f"({', '.join(expression(item) for item in items)}{',' if len(items) == 1 else ''})"
        case ast.Negative(operand):
            return _bound(f"-{expression(operand, _UNARY)}", _UNARY, level)
        case ast.Binary():
            return _binary(node, level)
        case ast.Unread():
            raise TypeError(f"`node` (={node!r}) must have been read")


def _binary(node: ast.Binary, level: int) -> str:
    own = _LEVELS.get(node.operator, _COMPARISON)
    space = "" if own == _PRODUCT else " "
    left = expression(node.left, own + (own == _COMPARISON))
    return _bound(f"{left}{space}{node.operator}{space}{expression(node.right, own + 1)}", own, level)


def _bound(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text
