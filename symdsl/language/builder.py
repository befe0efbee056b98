"""Parse tree to `ast`, in one bounded recursion."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

from lark import Token, Tree

from symdsl.diagnostics import Collector, Span
from symdsl.language import ast
from symdsl.language.spans import token_span
from symdsl.language.words import DEEPEST, TOO_DEEP

_MOST_DIGITS = 40
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)

_EXPRESSIONS = (ast.Number, ast.Text, ast.Flag, ast.Call, ast.List, ast.Tuple, ast.Negative, ast.Binary, ast.Unread)
_ITEMS = (
    *(ast.Input, ast.Lift, ast.Layer, ast.Use, ast.Repeat, ast.Residual, ast.Average),
    *(ast.Project, ast.Pool, ast.Flatten, ast.Unread),
)


class _TooDeepError(Exception):
    """A statement, or a value alone, that nests too deep; at `span` it does."""

    def __init__(self, span: Span) -> None:
        self.span = span
        super().__init__(TOO_DEEP)


def build(tree: Tree[Token], source: str, collector: Collector) -> Any:
    """Return the tree of records for a parse tree.

    Args:
        tree: of a program or of an expression.
        source: name of the text in spans.
        collector: receives what nests too deep, and numbers and texts that cannot be read; an `Unread` is in their
            place.
    """
    return _Builder(source, collector).whole(tree)


class _Builder:
    """One method for each rule of the grammar; a method gets the built children, tokens included."""

    def __init__(self, source: str, collector: Collector) -> None:
        self._source = source
        self._collector = collector

    def whole(self, tree: Tree[Token]) -> Any:
        if tree.data == "program":
            return self.program([self._bounded(child) for child in tree.children])
        return self._bounded(tree)

    def _bounded(self, node: Tree[Token] | Token) -> Any:
        try:
            return self._build(node, 1)
        except _TooDeepError as error:
            self._collector.report("E105", error.span, str(error), help="name a part of it with `let`")
            assert isinstance(node, Tree), "a token does not nest"
            first, second = (*itertools.islice(_tokens(node), 2), None)[:2]
            assert first is not None, "what nests has tokens"
            name = self._word(second) if second is not None and second.type == "NAME" else None
            return self._gap(str(first), name, token_span(first, self._source))

    def _build(self, node: Tree[Token] | Token, depth: int) -> Any:
        if isinstance(node, Token):
            return node
        if depth > DEEPEST:
            raise _TooDeepError(token_span(next(_tokens(node)), self._source))
        children = [self._build(child, depth + 1) for child in node.children]
        return _RULES[str(node.data)](self, children)

    def _span(self, children: list[Any]) -> Span:
        if not children:
            return Span(self._source, 1, 1, 1, 1)
        return self._span_of(children[0]).until(self._span_of(children[-1]))

    def _span_of(self, child: Any) -> Span:
        return token_span(child, self._source) if isinstance(child, Token) else child.span

    def _word(self, token: Token) -> ast.Word:
        return ast.Word(str(token), token_span(token, self._source))

    def _braced(self, children: list[Any], *kinds: type) -> tuple[tuple[Any, ...], Span, Span]:
        """What stands between braces, the span of all, and that of the opening brace."""
        at = next(at for at, one in enumerate(children) if isinstance(one, Token) and one.type == "LBRACE")
        return _only(children[at:], *kinds), self._span(children), token_span(children[at], self._source)

    # what could not be read

    def unread(self, children: list[Any]) -> ast.Statement:
        (token,) = children
        word, _, name = str(token).partition(" ")
        span = token_span(token, self._source)
        return self._gap(word, ast.Word(name, span) if name else None, span)

    def _gap(self, word: str, name: ast.Word | None, span: Span) -> ast.Let | ast.Unread:
        gap = ast.Unread(word, name, span)
        return ast.Let(name, gap, span) if word == "let" and name is not None else gap

    def missing(self, children: list[Any]) -> ast.Unread:
        return ast.Unread(span=self._span(children))

    # statements

    def program(self, children: list[Any]) -> ast.Program:
        return ast.Program(tuple(children), (), self._span(children))

    def let(self, children: list[Any]) -> ast.Let:
        _, name, _, value = children
        return ast.Let(self._word(name), value, self._span(children))

    def import_(self, children: list[Any]) -> ast.Import | ast.Unread:
        path, span = self.text(children[1:]), self._span(children)
        return ast.Import(path, span) if isinstance(path, ast.Text) else ast.Unread("import", None, span)

    def data(self, children: list[Any]) -> ast.Data:
        return ast.Data(_only(children, ast.Call), self._span(children))

    def block(self, children: list[Any]) -> ast.Block:
        return ast.Block(self._word(children[1]), _parts(children, _Parameters), *self._braced(children, *_ITEMS))

    def network(self, children: list[Any]) -> ast.Network:
        return ast.Network(self._word(children[1]), _parts(children, _Parameters), *self._braced(children, *_ITEMS))

    def instance(self, children: list[Any]) -> ast.Instance:
        _, name, _, template = children
        return ast.Instance(self._word(name), template, self._span(children))

    def parameters(self, children: list[Any]) -> _Parameters:
        return _Parameters(_only(children, ast.Parameter), self._span(children))

    def parameter(self, children: list[Any]) -> ast.Parameter:
        type = next((child for child in children if isinstance(child, ast.Word)), None)
        default = next((child for child in children if isinstance(child, _EXPRESSIONS)), None)
        return ast.Parameter(self._word(children[0]), type, default, self._span(children))

    def type(self, children: list[Any]) -> ast.Word:
        return self._word(children[1])

    def priors(self, children: list[Any]) -> ast.Priors:
        return ast.Priors(*self._braced(children, ast.Rule))

    def rule(self, children: list[Any]) -> ast.Rule | ast.Unread:
        selector, _, prior = children
        span = selector[0].span.until(prior.span)
        sound = all(isinstance(part, ast.Pattern) for part in selector)
        return ast.Rule(selector, prior, span) if sound else ast.Unread(span=span)

    def selector(self, children: list[Any]) -> tuple[ast.Pattern | ast.Unread, ...]:
        return _only(children, ast.Pattern, ast.Unread)

    def pattern(self, children: list[Any]) -> ast.Pattern | ast.Unread:
        words = [child for child in children if isinstance(child, Token)]
        apart = next((pair for pair in itertools.pairwise(words) if pair[0].end_pos != pair[1].start_pos), None)
        if apart is not None:
            before, span = (token_span(word, self._source) for word in apart)
            if not self._collector.knows("E104", before.end.until(span.start)):  # a dot left out between them
                self._collector.report("E104", span, f"expected `.` or `~`, found `{apart[1]}`")
            return ast.Unread(span=span)
        return ast.Pattern("".join(words), _parts(children, _Arguments), self._span(children))

    def search(self, children: list[Any]) -> ast.Search:
        return ast.Search(*self._braced(children, ast.Setting))

    def profile(self, children: list[Any]) -> ast.Profile:
        return ast.Profile(self._word(children[1]), *self._braced(children, ast.Setting))

    def setting(self, children: list[Any]) -> ast.Setting:
        name = children[0] if isinstance(children[0], ast.Word) else self._word(children[0])
        return ast.Setting(name, children[2], self._span(children))

    def key(self, children: list[Any]) -> ast.Word:
        return ast.Word("".join(children), self._span(children))

    # items of a network

    def input(self, children: list[Any]) -> ast.Input:
        return ast.Input(children[1], self._span(children))

    def lift(self, children: list[Any]) -> ast.Lift:
        return ast.Lift(self._word(children[1]), self._span(children))

    def project(self, children: list[Any]) -> ast.Project:
        return ast.Project(self._word(children[1]), self._span(children))

    def pool(self, children: list[Any]) -> ast.Pool:
        return ast.Pool(self._word(children[1]), self._span(children))

    def flatten(self, children: list[Any]) -> ast.Flatten:
        return ast.Flatten(self._span(children))

    def candidate(self, children: list[Any]) -> ast.Candidate:
        prior = children[2] if len(children) == 3 else None
        return ast.Candidate(children[0], prior, self._span(children))

    def stride(self, children: list[Any]) -> _Stride:
        return _Stride(children[1], self._span(children))

    def layer(self, children: list[Any]) -> ast.Layer:
        arrow = next(at for at, child in enumerate(children) if isinstance(child, Token) and child.type == "ARROW")
        rest = children[arrow + 2 :]
        stride = next((child.value for child in rest if isinstance(child, _Stride)), None)
        return ast.Layer(
            name=children[1] if isinstance(children[1], ast.Word) else None,
            candidates=_only(children, ast.Candidate),
            channels=children[arrow + 1],
            stride=stride,
            activations=_only(rest, ast.Call),
            span=self._span(children),
        )

    path = key

    def use(self, children: list[Any]) -> ast.Use:
        name = self._word(children[3]) if len(children) == 4 else None
        return ast.Use(children[1], name, self._span(children))

    def repeat(self, children: list[Any]) -> ast.Repeat:
        names = next(child for child in children if isinstance(child, _Names))
        return ast.Repeat(children[1], names.words, names.unpack, *self._braced(children, *_ITEMS))

    def residual(self, children: list[Any]) -> ast.Residual:
        return ast.Residual(*self._braced(children, *_ITEMS))

    def average(self, children: list[Any]) -> ast.Average:
        return ast.Average(children[1], *self._braced(children, *_ITEMS))

    def names(self, children: list[Any]) -> _Names:
        words = tuple(self._word(child) for child in children if child.type == "NAME")
        return _Names(words, len(children) > 1, self._span(children))

    # expressions

    def number(self, children: list[Any]) -> ast.Number | ast.Unread:
        (token,) = children
        span = token_span(token, self._source)
        digits = sum(map(str.isdigit, token))
        if digits > _MOST_DIGITS:
            self._collector.report("E404", span, f"a number of {digits} digits is too long to read")
            return ast.Unread(span=span)
        value = int(token) if token.isdecimal() else float(token)
        if value > 2**63 - 1 and (isinstance(value, int) or value == float("inf")):
            self._collector.report("E404", span, f"`{token}` overflows")
            return ast.Unread(span=span)
        return ast.Number(value, span)

    def text(self, children: list[Any]) -> ast.Text | ast.Unread:
        (token,) = children
        span = token_span(token, self._source)
        unknown = [mark for mark in _ESCAPE.findall(token[1:-1]) if mark not in _ESCAPES]
        if unknown:
            help = f"write `\\\\{unknown[0]}` for a backslash"
            self._collector.report("E104", span, f"`\\{unknown[0]}` stands for nothing in a text", help=help)
            return ast.Unread(span=span)
        return ast.Text(_ESCAPE.sub(lambda match: _ESCAPES[match[1]], token[1:-1]), span)

    def flag(self, children: list[Any]) -> ast.Flag:
        return ast.Flag(str(children[0]) == "true", self._span(children))

    def structure(self, children: list[Any]) -> ast.Call:
        return ast.Call(self._word(children[0]), _parts(children, _Arguments), self._span(children))

    step = structure

    def arguments(self, children: list[Any]) -> _Arguments:
        return _Arguments(_only(children, ast.Argument), self._span(children))

    def argument(self, children: list[Any]) -> ast.Argument:
        name = self._word(children[0]) if len(children) == 3 else None
        return ast.Argument(name, children[-1], self._span(children))

    def list_(self, children: list[Any]) -> ast.List:
        return ast.List(_only(children, *_EXPRESSIONS), self._span(children))

    def tuple_(self, children: list[Any]) -> ast.Tuple:
        return ast.Tuple(_only(children, *_EXPRESSIONS), self._span(children))

    def group(self, children: list[Any]) -> ast.Expression:
        inside: ast.Expression = children[1]
        return inside

    def negative(self, children: list[Any]) -> ast.Negative:
        return ast.Negative(children[1], self._span(children))

    def binary(self, children: list[Any]) -> ast.Binary:
        left, operator, right = children
        return ast.Binary(str(operator), left, right, self._span(children))


class _Parts:
    """What several children make together, on the way up to the node that owns them."""

    def __init__(self, items: tuple[Any, ...], span: Span) -> None:
        self.items, self.span = items, span


class _Parameters(_Parts):
    pass


class _Arguments(_Parts):
    pass


class _Stride:
    def __init__(self, value: ast.Expression, span: Span) -> None:
        self.value, self.span = value, span


class _Names:
    def __init__(self, words: tuple[ast.Word, ...], unpack: bool, span: Span) -> None:
        self.words, self.unpack, self.span = words, unpack, span


def _tokens(tree: Tree[Token]) -> Iterator[Token]:
    """The tokens of a tree in order, however deep it is."""
    open: list[Tree[Token] | Token] = [tree]
    while open:
        node = open.pop()
        if isinstance(node, Token):
            yield node
        else:
            open += reversed(node.children)


def _only(children: list[Any], *kinds: type) -> tuple[Any, ...]:
    return tuple(child for child in children if isinstance(child, kinds))


def _parts(children: list[Any], kind: type[_Parts]) -> tuple[Any, ...] | None:
    return next((child.items for child in children if isinstance(child, kind)), None)


_RULES: dict[str, Callable[[_Builder, list[Any]], Any]] = {
    name.rstrip("_"): method for name, method in vars(_Builder).items() if callable(method) and not name.startswith("_")
}
