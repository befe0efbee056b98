"""What a text that does not follow the grammar may have been meant to be: likely repairs at one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import pairwise

import attrs
from lark import Token

from symdsl.catalog.data import TRANSFORMS
from symdsl.catalog.networks import ACTIVATIONS, NORMAL
from symdsl.catalog.searches import SEARCH
from symdsl.diagnostics import Fix, Span, suggest
from symdsl.language.blots import is_note, likely
from symdsl.language.spans import behind, token_span

STATEMENTS = frozenset({"LET", "IMPORT", "DATA", "BLOCK", "NETWORK", "PRIOR", "SEARCH", "PROFILE"})
ITEMS = frozenset({"INPUT", "LIFT", "LAYER", "USE", "REPEAT", "RESIDUAL", "AVERAGE", "PROJECT", "POOL", "FLATTEN"})
FRESH_STARTS = STATEMENTS | ITEMS | {"RBRACE"}
"""Terminals that stand where something begins or ends, wherever on a line that is."""
KEYWORDS = STATEMENTS | ITEMS | {"STRIDE", "AS", "TRUE", "FALSE"}

TYPES = frozenset({"whole", "number", "flag", "text", "word", "kind", "kinds", "prior", "list"})
"""The types of parameters."""

DEFINING = frozenset({"LET", "NETWORK", "BLOCK", "PROFILE"})
"""Statements that begin with the name they define."""

_MOST_CLOSED = 3
_OPENERS = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
_CLOSERS = frozenset(_OPENERS.values())

_INSERTIONS = {
    "RPAR": ")",
    "RSQB": "]",
    "COMMA": ",",
    "COLON": ":",
    "EQUAL": " =",
    "AS": " as",
    "TILDE": " ~",
    "LBRACE": " {",
    "THEN": " |>",
    "PLUS": " +",
    "ARROW": " ->",
    "MISSING": "",
}
"""What may have been left out, likeliest first, and how it is written."""

_BEFORE = {"TILDE": {NORMAL.name}, "THEN": {*TRANSFORMS, *ACTIVATIONS}}
"""What comes after some of them."""

_CONFUSED = {
    "COLON": ("EQUAL",),
    "EQUAL": ("COLON", "TILDE"),
    "COMPARE": ("EQUAL", "ARROW", "THEN"),
    "COMMA": ("PLUS",),
    "ARROW": ("THEN",),
    "THEN": ("ARROW",),
}
"""What a mark that does not fit may have been meant for."""


@attrs.frozen
class Trouble:
    """A place where the text does not follow the grammar.

    Attributes:
        before: the tokens read so far, mended.
        previous: the one before it in the text, if there is one.
        token: the one that does not fit; nothing at the end of the text.
        following: the one after it, if there is one.
        accepted: terminals that would have fitted.
        begins: whether a statement, item, rule or setting was to begin here.
        source: name of the text in spans.
    """

    before: Sequence[Token]
    previous: Token | None
    token: Token | None
    following: Token | None
    accepted: Set[str]
    begins: bool
    source: str

    @property
    def on_one_line(self) -> bool:
        """Whether the token at fault is on the same line as the previous one."""
        return self.previous is not None and self.token is not None and self.previous.line == self.token.line

    def is_block(self, name: Token) -> bool:
        """Return whether a block of this name was defined before."""
        return any(one.type == "BLOCK" and other == name for one, other in pairwise(self.before))

    @property
    def is_defining(self) -> bool:
        """Whether a name is to be defined here: of a statement, a layer or a use, a parameter, or in a loop."""
        bracket = open_bracket(self.before)
        if bracket is not None and bracket.closer == "RPAR":
            return any(one.type in ("AS", "BLOCK", "NETWORK") for one in self.before[: bracket.index][-2:])
        return any(one.type in DEFINING | {"LAYER", "AS"} for one in self.before[-1:])

    @property
    def behind(self) -> Span:
        """The place after the previous token, where something may be missing."""
        if self.previous is None:
            return Span(self.source, 1, 1, 1, 1)
        return behind(self.previous, self.source)


@attrs.frozen
class Repair:
    """Tokens that may replace the next `skip` ones, and the error message that follows from them."""

    tokens: tuple[Token, ...] = ()
    skip: int = 0
    help: str = ""
    fix: Fix | None = None

    @property
    def closes(self) -> bool:
        """Whether it closes a bracket."""
        return any(token.type in _CLOSERS for token in self.tokens)


def repairs(trouble: Trouble) -> Iterator[Repair]:
    """Yield likely repairs of a syntax error, likeliest first."""
    token = trouble.token
    if token is not None:
        yield from _replacements(trouble, token)
    bracket = open_bracket(trouble.before)
    if bracket is not None and bracket.closer == "RPAR" and "COMMA" in trouble.accepted and _is_argument(trouble):
        yield _insertion(trouble, ["COMMA"], _INSERTIONS["COMMA"])
    if bracket is not None and bracket.doubtful and "COMMA" in trouble.accepted:
        yield _insertion(trouble, ["COMMA", "MISSING", bracket.closer], _INSERTIONS[bracket.closer])
    for kind, written in _INSERTIONS.items():
        if kind in trouble.accepted and _may_precede(kind, trouble):
            yield _insertion(trouble, [kind], written)
    if "RBRACE" in trouble.accepted and (token is None or token.type in STATEMENTS):
        for depth in range(1, _MOST_CLOSED + 1):
            yield _insertion(trouble, ["RBRACE"] * depth, "\n}" * depth)
    if token is not None and _may_leave_out(trouble, token):
        yield Repair(skip=1)


def misspelt(token: Token, accepted: Set[str]) -> str | None:
    """Return the word of the language that a name probably misspells, if it fits here."""
    return suggest(token, [kind.lower() for kind in accepted & KEYWORDS]) if token.type == "NAME" else None


@attrs.frozen
class Bracket:
    """An open bracket, and the token that closes it.

    Attributes:
        token: the bracket.
        index: its place among the tokens.
        closer: the terminal that closes it.
        caller: the name or kind right before it, if there is one: the bracket then holds its arguments.
        doubtful: whether it may have been meant to close before others inside it, so that what it holds is unknown.
    """

    token: Token
    index: int
    closer: str
    caller: str
    doubtful: bool


def open_bracket(tokens: Sequence[Token]) -> Bracket | None:
    """Return the last bracket that is not closed."""
    closed, nested = 0, False
    for index in reversed(range(len(tokens))):
        token = tokens[index]
        if token.type in _OPENERS and not closed:
            called = index > 0 and tokens[index - 1].type in ("NAME", "KIND")
            caller = str(tokens[index - 1]) if called else ""
            return Bracket(token, index, _OPENERS[token.type], caller, nested and not called)
        closed += (token.type in _CLOSERS) - (token.type in _OPENERS)
        nested |= token.type in _CLOSERS
    return None


def _replacements(trouble: Trouble, token: Token) -> Iterator[Repair]:
    near = misspelt(token, trouble.accepted)
    if near is not None:
        fix = Fix(f"replace by `{near}`", token_span(token, trouble.source), near)
        yield Repair((_instead(token, near.upper(), near),), 1, f"did you mean `{near}`?", fix)
    if "USE" in trouble.accepted and trouble.is_block(token):
        fix = Fix("put `use` before it", token_span(token, trouble.source), f"use {token}")
        yield Repair((_instead(token, "USE", "use"), token), 1, f"did you mean `use {token}`?", fix)
    if token.type == "DOT" and "NUMBER" in trouble.accepted:
        yield from _fraction(token, trouble.following, trouble.source)
    if trouble.on_one_line and token.type in KEYWORDS and "NAME" in trouble.accepted:
        width = ": `-> 4 stride 2`" if token.type == "STRIDE" else ""
        advice = ": choose another name" if trouble.is_defining else width
        help = f"`{token}` is a word of the language{advice}"
        yield Repair((_instead(token, "NAME", str(token)),), 1, help)
    if token.type == "THEN" and "ARROW" in trouble.accepted and trouble.following in ACTIVATIONS:
        yield _insertion(trouble, ["ARROW", "MISSING"], "")
    if token.type == "NAME" and "LET" in trouble.accepted and trouble.following == "=" and token not in SEARCH.names:
        fix = Fix("put `let` before it", token_span(token, trouble.source), f"let {token}")
        yield Repair((_instead(token, "LET", "let"), token), 1, f"did you mean `let {token}`?", fix)
    if token.type == "UNREADABLE":
        yield from _readable(trouble, token)
    for kind in _CONFUSED.get(token.type, ()):
        if kind in trouble.accepted:
            written = _INSERTIONS.get(kind, "").strip() or str(token)
            fix = Fix(f"replace by `{written}`", token_span(token, trouble.source), written)
            yield Repair((_instead(token, kind, written),), 1, fix=fix)


def _readable(trouble: Trouble, token: Token) -> Iterator[Repair]:
    """What a mark of no meaning may have been meant for."""
    span = token_span(token, trouble.source)
    if not token.isprintable():
        yield Repair(skip=1, fix=Fix("replace by a blank", span, " "))
    for kind, written in likely(token):
        if kind in trouble.accepted:
            fix = None if written == token else Fix(f"replace by `{written}`", span, written)
            yield Repair((_instead(token, kind, written),), 1, fix=fix)
    if "MISSING" in trouble.accepted:
        yield Repair((_instead(token, "MISSING", str(token)),), 1)


def _fraction(dot: Token, digits: Token | None, source: str) -> Iterator[Repair]:
    """A number that was begun with its point."""
    if digits is not None and digits.type == "NUMBER" and digits.start_pos == dot.end_pos:
        number = f"0.{digits}"
        span = token_span(dot, source).until(token_span(digits, source))
        fix = Fix(f"replace by `{number}`", span, number)
        yield Repair((_instead(dot, "NUMBER", number),), 2, f"did you mean `{number}`?", fix)


def _instead(token: Token, kind: str, written: str) -> Token:
    return Token.new_borrow_pos(kind, written, token)


def _insertion(trouble: Trouble, kinds: Sequence[str], written: str) -> Repair:
    """Tokens to put in, and how a user would write what they stand for."""
    end, text = trouble.behind, " ".join(written.split())
    tokens = tuple(Token(kind, text, 0, end.line, end.column, end.line, end.column) for kind in kinds)
    return Repair(tokens, fix=Fix(f"insert `{text}`", end, written) if written else None)


def _is_argument(trouble: Trouble) -> bool:
    """Whether a named argument begins at the token at fault, on the line of what comes before."""
    named = trouble.token is not None and trouble.token.type == "NAME" and trouble.following == "="
    return named and trouble.on_one_line


def _may_precede(kind: str, trouble: Trouble) -> bool:
    """Whether putting this in before the token at fault is a likely guess."""
    token = trouble.token
    if kind == "PLUS":
        return token is not None and token.type in ("NAME", "KIND") and "ARROW" in trouble.accepted
    if kind == "COMMA" and "COLON" in trouble.accepted and trouble.following is not None:
        return token not in TYPES or trouble.following.type == "COLON"
    return kind not in _BEFORE or token in _BEFORE[kind]


def _may_leave_out(trouble: Trouble, token: Token) -> bool:
    """Whether a token alone may be too much; what begins something is not, and after a `~` is no selector."""
    if token.type == "RBRACE" or is_note(token):
        return True
    return not trouble.begins and token.type not in FRESH_STARTS | {"TILDE"}
