"""Tree to canonical text: `parse(print(tree)) == tree`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from symdsl.diagnostics import Span
from symdsl.language import ast

WIDTH = 100
"""Columns of a line, beyond which what has parts is broken into them."""

INDENT = "  "

Line: TypeAlias = (
    ast.Let
    | ast.Import
    | ast.Data
    | ast.Instance
    | ast.Input
    | ast.Lift
    | ast.Layer
    | ast.Use
    | ast.Project
    | ast.Pool
    | ast.Flatten
    | ast.Rule
    | ast.Setting
    | ast.Unread
)
"""What has no braces."""

Braced: TypeAlias = (
    ast.Block | ast.Network | ast.Priors | ast.Search | ast.Profile | ast.Repeat | ast.Residual | ast.Average
)
"""What has braces."""

_COMPARISON, _SUM, _PRODUCT, _UNARY = range(1, 5)
_LEVELS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def print_program(program: ast.Program) -> str:
    """Return a tree as canonical text that ends with a newline; comments are left out.

    `let`s, and `import`s, that follow each other share a paragraph.
    """
    paragraphs: list[list[str]] = []
    previous: type | None = None
    for statement in program.statements:
        together = type(statement) is previous and isinstance(statement, ast.Let | ast.Import)
        if not together:
            paragraphs.append([])
        paragraphs[-1].extend(statement_lines(statement))
        previous = type(statement)
    return "\n\n".join("\n".join(lines) for lines in paragraphs) + "\n" if paragraphs else ""


def statement_lines(node: Line | Braced, room: int = WIDTH) -> list[str]:
    """Return the lines of a statement, an item, a rule or a setting, without outer indentation.

    Args:
        node: what to write.
        room: columns a line may have; what would take more is broken into its parts, where it has any.
    """
    if isinstance(node, Braced):
        inside = [line for one in inside_of(node) for line in statement_lines(one, room - len(INDENT))]
        return [*head_lines(node, room), *(INDENT + line for line in inside), "}"]
    return _broken(_line(node), node, room)


def head_lines(node: Braced, room: int = WIDTH) -> list[str]:
    """Return the first lines of a node with braces, up to and including the brace."""
    return _broken(_head(node), node, room)


def _broken(line: str, node: Line | Braced, room: int) -> list[str]:
    return [line] if len(line) <= room else [part.text for part in parts(node)] or [line]


def inside_of(node: Braced) -> tuple[Line | Braced, ...]:
    """Return the nodes between the braces of a node."""
    match node:
        case ast.Block() | ast.Network() | ast.Repeat() | ast.Residual() | ast.Average():
            return node.items
        case ast.Priors(rules=rules):
            return rules
        case ast.Search(settings=settings) | ast.Profile(settings=settings):
            return settings


# ---------------------------------------------------------------- on one line


def _line(node: Line) -> str:
    match node:
        case ast.Let() | ast.Setting():
            return _named(node) + expression(node.value)
        case ast.Data() | ast.Layer():
            return " ".join(part.text.strip() for part in parts(node))
        case ast.Import(path):
            return f"import {expression(path)}"
        case ast.Instance(name, template):
            return f"network {name.text} = {expression(template)}"
        case ast.Rule(selector, prior):
            return f"{'.'.join(part.text + _arguments(part.arguments) for part in selector)} ~ {expression(prior)}"
        case ast.Input(image):
            return f"input {expression(image)}"
        case ast.Lift(group):
            return f"lift {group.text}"
        case ast.Use(block, name):
            return f"use {expression(block)}" + (f" as {name.text}" if name else "")
        case ast.Project(reduction):
            return f"project {reduction.text}"
        case ast.Pool(reduction):
            return f"pool {reduction.text}"
        case ast.Flatten():
            return "flatten"
        case _:
            raise TypeError(f"`node` (={node!r}) must be a node of the tree")


def _named(node: ast.Let | ast.Setting) -> str:
    return f"{'let ' if isinstance(node, ast.Let) else ''}{node.name.text} = "


def _head(node: Braced) -> str:
    match node:
        case ast.Block(name, parameters):
            return f"block {name.text}{_parameters(parameters)} {{"
        case ast.Network(name, parameters):
            return f"network {name.text}{_parameters(parameters)} {{"
        case ast.Repeat(values, names, unpack):
            listed = ", ".join(name.text for name in names)
            single = "," if unpack and len(names) == 1 else ""
            return f"repeat {expression(values)} as {f'({listed}{single})' if unpack else listed} {{"
        case ast.Residual():
            return "residual {"
        case ast.Average(transformation):
            return f"average {expression(transformation)} {{"
        case ast.Priors():
            return "prior {"
        case ast.Search():
            return "search {"
        case ast.Profile(name):
            return f"profile {name.text} {{"


# ---------------------------------------------------------------- on several lines


@attrs.frozen
class Part:
    """A line of a broken statement, and the place of its words in the source."""

    text: str
    span: Span


def parts(node: Line | Braced) -> tuple[Part, ...]:
    """Return the lines that a long or commented node is broken into; none where it is not broken."""
    match node:
        case ast.Layer(word, (first, *others), channels, stride, activations):
            name, strided = f" {word.text}" if word else "", f" stride {expression(stride)}" if stride else ""
            return (
                Part(f"layer{name}: {_candidate(first)}", first.span),
                *(Part(f"{INDENT}+ {_candidate(one)}", one.span) for one in others),
                Part(f"{INDENT}-> {expression(channels)}{strided}", channels.span.until((stride or channels).span)),
                *(Part(f"{INDENT}|> {expression(one)}", one.span) for one in activations),
            )
        case ast.Data((source, *transforms)):
            return (
                Part(f"data {expression(source)}", source.span),
                *(Part(f"{INDENT}|> {expression(one)}", one.span) for one in transforms),
            )
        case ast.Let(value=ast.List(items)) | ast.Setting(value=ast.List(items)) if items:
            listed = [(expression(one), one.span) for one in items]
            return _listed(f"{_named(node)}[", listed, "]", node.span, node.span.end)
        case ast.Let(value=ast.Call(name, arguments)) | ast.Setting(value=ast.Call(name, arguments)) if arguments:
            listed = [(_argument(one), one.span) for one in arguments]
            return _listed(f"{_named(node)}{name.text}(", listed, ")", node.span, node.span.end)
        case ast.Block(name, parameters) | ast.Network(name, parameters) if parameters:
            what = "block" if isinstance(node, ast.Block) else "network"
            listed = [(_parameter(one), one.span) for one in parameters]
            return _listed(f"{what} {name.text}(", listed, ") {", node.span, node.brace)
    return ()


def _listed(opening: str, items: Iterable[tuple[str, Span]], closing: str, start: Span, end: Span) -> tuple[Part, ...]:
    """One item a line, each with a comma, between two lines of their own."""
    return (Part(opening, start.start), *(Part(f"{INDENT}{text},", span) for text, span in items), Part(closing, end))


# ---------------------------------------------------------------- values


def _parameters(parameters: tuple[ast.Parameter, ...] | None) -> str:
    return "" if parameters is None else f"({', '.join(_parameter(one) for one in parameters)})"


def _parameter(parameter: ast.Parameter) -> str:
    type = f": {parameter.type.text}" if parameter.type else ""
    default = f" = {expression(parameter.default)}" if parameter.default is not None else ""
    return parameter.name.text + type + default


def _candidate(candidate: ast.Candidate) -> str:
    prior = f" ~ {expression(candidate.prior)}" if candidate.prior else ""
    return expression(candidate.kind) + prior


def _arguments(arguments: tuple[ast.Argument, ...] | None) -> str:
    return "" if arguments is None else f"({', '.join(_argument(one) for one in arguments)})"


def _argument(argument: ast.Argument) -> str:
    name = f"{argument.name.text} = " if argument.name else ""
    return name + expression(argument.value)


def expression(node: ast.Expression, level: int = 0) -> str:
    """Return the text of a value, in parentheses where it binds weaker than `level`."""
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
        case ast.Binary(operator, left, right):
            own = _LEVELS.get(operator, _COMPARISON)
            space = "" if own == _PRODUCT else " "
            before, after = expression(left, own + (own == _COMPARISON)), expression(right, own + 1)
            return _bound(f"{before}{space}{operator}{space}{after}", own, level)
        case ast.Unread():
            raise TypeError(f"`node` (={node!r}) must have been read")


def _bound(text: str, own: int, level: int) -> str:
    return f"({text})" if own < level else text
