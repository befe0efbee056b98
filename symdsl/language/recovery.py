"""Syntax errors: each said in the words of the language, and mended, so that reading goes on behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs
from lark import Lark, Token
from lark.exceptions import UnexpectedInput
from lark.parsers.lalr_interactive_parser import InteractiveParser

from symdsl.catalog.networks import NORMAL
from symdsl.diagnostics import Collector, Fix, Span, shortened, suggest
from symdsl.language.blots import blotted, complaint, is_note, likely
from symdsl.language.expectations import expected_words
from symdsl.language.spans import token_span

_MOST_ERRORS = 100
_LOOKAHEAD = 3
_DEEPEST_CLOSED = 4

_STATEMENTS = frozenset({"LET", "IMPORT", "DATA", "NETWORK", "PRIOR", "SEARCH"})
_ITEMS = frozenset({"INPUT", "LIFT", "LAYER", "REPEAT", "PROJECT", "POOL", "FLATTEN"})
_FRESH_STARTS = _STATEMENTS | _ITEMS | {"RBRACE"}
_KEYWORDS = _STATEMENTS | _ITEMS | {"STRIDE", "AS", "TRUE", "FALSE"}
_BRACES = {"LBRACE": 1, "RBRACE": -1}
_OPENERS = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
_CLOSERS = frozenset(_OPENERS.values())

_INSERTIONS = {
    "RPAR": ")",
    "RSQB": "]",
    "COLON": ":",
    "COMMA": ",",
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

_CONFUSED = {
    "COLON": ("EQUAL",),
    "EQUAL": ("COLON", "TILDE"),
    "COMPARE": ("EQUAL", "ARROW"),
    "COMMA": ("PLUS",),
    "ARROW": ("THEN",),
    "THEN": ("ARROW",),
}
"""What a mark that does not fit may have been meant for."""


def mend(grammar: Lark, text: str, start: str, source: str, collector: Collector) -> list[Token] | None:
    """Report every syntax error of a text and find tokens near to its own that follow the grammar.

    A misspelt word is replaced, a forgotten or superfluous token put in or left out where the text then goes on as it
    should; else the whole statement, item, rule or setting becomes one `UNREAD`.

    Args:
        grammar: of the language.
        text: what could not be parsed.
        start: the rule it should follow.
        source: its name in spans.
        collector: receives the errors.

    Returns:
        The tokens, or nothing if reading had to be given up.
    """
    tokens = blotted(grammar.lex(text))
    return _Mender(grammar.parse_interactive(start=start), tokens, text, source, collector).run()


@attrs.frozen
class _Start:
    """A place where a statement, item, rule or setting begins: the token, those mended before it, and the state."""

    index: int
    mended: int
    parser: InteractiveParser


@attrs.frozen
class _Repair:
    """Tokens to read in place of the next `skip` ones, and what that says about the error."""

    tokens: tuple[Token, ...] = ()
    skip: int = 0
    help: str = ""
    fix: Fix | None = None


@attrs.frozen
class _Open:
    """A bracket that is not closed, and what closes it.

    Attributes:
        token: the bracket.
        closer: the terminal that closes it.
        doubtful: whether it may have been meant to close before others inside it, so that what it holds is unknown.
    """

    token: Token
    closer: str
    doubtful: bool


@attrs.define
class _Mender:
    """Feeds tokens to the parser one by one.

    Attributes:
        parser: state after `mended`; what it builds is thrown away.
        tokens: of the text.
        next: index of the token to be read next.
        mended: what was fed so far.
        starts: places to go back to, the innermost last.
        blamed: index of the token reported last.
    """

    parser: InteractiveParser
    tokens: Sequence[Token]
    text: str
    source: str
    collector: Collector
    next: int = 0
    mended: list[Token] = attrs.field(factory=list)
    starts: list[_Start] = attrs.field(factory=list)
    blamed: int = -1

    def run(self) -> list[Token] | None:
        for _ in range(_MOST_ERRORS - 1):
            if self._read():
                return self.mended
            repair = self._repair()
            self._report(repair)
            if repair is not None:
                self._take(repair)
            elif not self._drop():
                return None
        if self._read():
            return self.mended
        message = f"more than {_MOST_ERRORS - 1} syntax errors: the rest of the text was not read"
        self.collector.report("E104", self._place(), message)
        return None

    # reading

    def _read(self) -> bool:
        """Go on until a token does not fit, which is then the next; true at the end of the text."""
        base = _copy(self.parser), len(self.mended)
        while self.next < len(self.tokens):
            if self._begins(self.next):
                base = _copy(self.parser), len(self.mended)
                self.starts.append(_Start(self.next, base[1], base[0]))
            if not _feed(self.parser, [self.tokens[self.next]]):
                break
            self.mended.append(self.tokens[self.next])
            self.next += 1
        # A token that does not fit may have changed the state before it was refused.
        self.parser = _copy(base[0])
        assert _feed(self.parser, self.mended[base[1] :]), "what was read once can be read again"
        return self.next == len(self.tokens) and _ends(self.parser)

    def _begins(self, index: int) -> bool:
        return self._may_start(index) and "UNREAD" in self.parser.choices()

    def _may_start(self, index: int) -> bool:
        first = index == 0 or self.tokens[index - 1].line != self.tokens[index].line
        return first or self.tokens[index].type in _FRESH_STARTS

    # small repairs

    def _repair(self) -> _Repair | None:
        """The first repair behind which the text goes on as it should, or else one behind which this line does."""
        repairs = list(self._repairs())
        for within_line in (False, True):
            for repair in repairs:
                if self._fits(repair, within_line):
                    return repair
        return None

    def _repairs(self) -> Iterator[_Repair]:
        accepted = self.parser.accepts()
        token = self.tokens[self.next] if self.next < len(self.tokens) else None
        if token is not None:
            behind = bool(self.next) and self.tokens[self.next - 1].line == token.line
            yield from _replacements(token, accepted, behind, self.source)
        open = _open_bracket(self.mended)
        if open is not None and open.doubtful and "COMMA" in accepted:
            yield self._insertion(["COMMA", "MISSING", open.closer], _INSERTIONS[open.closer])
        for kind, written in _INSERTIONS.items():
            if kind in accepted and _may_precede(kind, token):
                yield self._insertion([kind], written)
        if "RBRACE" in accepted and (token is None or token.type in _STATEMENTS):
            for depth in range(1, _DEEPEST_CLOSED):
                yield self._insertion(["RBRACE"] * depth, "\n}" * depth)
        if token is not None and self._may_leave_out(token):
            yield _Repair(skip=1)

    def _insertion(self, kinds: Sequence[str], written: str) -> _Repair:
        """Tokens to put in, and how a user would write what they stand for."""
        end = self._end_of_previous()
        tokens = tuple(Token(kind, written.strip(), 0, end.line, end.column, end.line, end.column) for kind in kinds)
        fix = Fix(f"insert `{written.strip()}`", end, written) if written else None
        return _Repair(tokens, fix=fix)

    def _end_of_previous(self) -> Span:
        previous = token_span(self.tokens[self.next - 1], self.source) if self.next else Span(self.source, 1, 1, 1, 1)
        return attrs.evolve(previous, line=previous.end_line, column=previous.end_column)

    def _may_leave_out(self, token: Token) -> bool:
        """Whether a token alone may be too much; what begins something is not, and behind a `~` is no selector."""
        if token.type == "RBRACE" or is_note(token):
            return True
        begun = bool(self.starts) and self.starts[-1].index == self.next
        return not begun and token.type not in _FRESH_STARTS | {"TILDE"}

    def _fits(self, repair: _Repair, within_line: bool) -> bool:
        parser, after = _copy(self.parser), self.next + repair.skip
        window = self.tokens[after : after + _LOOKAHEAD]
        if within_line:
            window = [token for token in window if token.line == window[0].line]
        more = bool(window) and (within_line or after + len(window) < len(self.tokens))
        following = [token for token in window if not is_note(token)]
        return _feed(parser, [*repair.tokens, *following]) and (more or _ends(parser))

    def _take(self, repair: _Repair) -> None:
        assert _feed(self.parser, repair.tokens), "a repair was tried before"
        self.mended += repair.tokens
        self.next += repair.skip

    # leaving out what cannot be read

    def _drop(self) -> bool:
        """Leave out the innermost statement, item, rule or setting behind which reading can go on; false if none."""
        while self.starts:
            start = self.starts.pop()
            parser = _copy(start.parser)
            if not _feed(parser, [Token("UNREAD", "")]):
                continue
            found = self._resumption(start.index, parser.accepts())
            if found is not None:
                del self.mended[start.mended :]
                self.parser = _copy(start.parser)
                self._take(_Repair((_unread(self.tokens[start.index : found]),)))
                self.next = found
                return True
        return False

    def _resumption(self, begun: int, accepted: set[str]) -> int | None:
        """The first later token, outside the braces opened since `begun`, at which reading could go on."""
        depth = sum(_BRACES.get(token.type, 0) for token in self.tokens[begun : self.next])
        for index in range(self.next, len(self.tokens)):
            token = self.tokens[index]
            outside = depth <= 0 or token.type in _STATEMENTS
            fresh = index > self.next or token.type in _FRESH_STARTS
            if index > begun and outside and fresh and self._may_start(index) and _goes_on(token, accepted):
                return index
            depth += _BRACES.get(token.type, 0)
        return len(self.tokens) if begun < len(self.tokens) and accepted & {"$END", "RBRACE"} else None

    # words

    def _report(self, repair: _Repair | None) -> None:
        if self.next == self.blamed:
            return
        self.blamed = self.next
        token = self.tokens[self.next] if self.next < len(self.tokens) else None
        blot = complaint(token) if token is not None else None
        message, advice = blot if blot is not None else (self._unexpected(token), "")
        help, fix = (repair.help or advice, repair.fix) if repair else (advice, None)
        if fix is not None and not help and f"`{fix.content.strip()}`" not in message:
            help = f"perhaps `{fix.content.strip()}` is missing"
        self.collector.report("E104", self._place(), message, help=help, notes=self._opened(repair), fix=fix)

    def _unexpected(self, token: Token | None) -> str:
        previous = self.tokens[self.next - 1].type if self.next else ""
        expected = expected_words(previous, self.parser.accepts())
        return f"expected {expected}, found {_shown(token)}"

    def _opened(self, repair: _Repair | None) -> list[tuple[Span, str]]:
        """Where the bracket stands that should be closed, unless that is on the same line."""
        closes = repair is not None and any(token.type in _CLOSERS for token in repair.tokens)
        open = _open_bracket(self.mended) if closes else None
        if open is None or open.token.line == self._place().line:
            return []
        return [(token_span(open.token, self.source), "opened here")]

    def _place(self) -> Span:
        if self.next < len(self.tokens):
            return token_span(self.tokens[self.next], self.source)
        lines = self.text.rstrip().split("\n")
        column = len(lines[-1]) + 1
        return Span(self.source, len(lines), column, len(lines), column + 1)


def _copy(parser: InteractiveParser) -> InteractiveParser:
    copied: InteractiveParser = parser.copy(deepcopy_values=False)
    return copied


def _feed(parser: InteractiveParser, tokens: Iterable[Token]) -> bool:
    try:
        for token in tokens:
            parser.feed_token(token)
    except UnexpectedInput:
        return False
    return True


def _ends(parser: InteractiveParser) -> bool:
    try:
        _copy(parser).feed_eof()
    except UnexpectedInput:
        return False
    return True


def _replacements(token: Token, accepted: set[str], behind: bool, source: str) -> Iterator[_Repair]:
    """What a token may have been meant for; `behind` says whether another stands before it on its line."""
    span = token_span(token, source)
    near = _misspelt(token, accepted)
    if near is not None:
        word = Token.new_borrow_pos(near.upper(), near, token)
        yield _Repair((word,), 1, f"did you mean `{near}`?", Fix(f"replace by `{near}`", span, near))
    if behind and token.type in _KEYWORDS and "NAME" in accepted:
        help = f"`{token}` is a word of the language: choose another name"
        yield _Repair((Token.new_borrow_pos("NAME", str(token), token),), 1, help)
    others = (*likely(token), "MISSING") if token.type == "UNREADABLE" else _CONFUSED.get(token.type, ())
    for kind in others:
        if kind in accepted:
            written = _INSERTIONS.get(kind, "").strip() or str(token)
            yield _Repair((Token.new_borrow_pos(kind, written, token),), 1)


def _goes_on(token: Token, accepted: set[str]) -> bool:
    """Whether reading can go on at a token: it fits, closes what is open, or is hardly more than misspelt."""
    closing = "RBRACE" in accepted and token.type in _STATEMENTS
    return token.type in accepted or closing or _misspelt(token, accepted) is not None


def _misspelt(token: Token, accepted: set[str]) -> str | None:
    """The word of the language that a name is near to, if there is one that fits."""
    return suggest(token, [kind.lower() for kind in accepted & _KEYWORDS]) if token.type == "NAME" else None


def _may_precede(kind: str, token: Token | None) -> bool:
    """Whether putting this in before a token is a likely guess."""
    if kind == "TILDE":
        return token == NORMAL.name
    return kind not in ("PLUS", "THEN") or (token is not None and token.type in ("NAME", "KIND"))


def _unread(dropped: Sequence[Token]) -> Token:
    """One token for many, whose text is the first word and, behind a blank, the name it was to define, if any."""
    first, last = dropped[0], dropped[-1]
    word = str(first) if first.type in _KEYWORDS else ""
    named = word and len(dropped) > 1 and dropped[1].type == "NAME"
    return Token(
        "UNREAD",
        f"{word} {dropped[1]}" if named else word,
        0,
        first.line,
        first.column,
        last.end_line,
        last.end_column,
    )


def _open_bracket(tokens: Sequence[Token]) -> _Open | None:
    """The last bracket that is not closed."""
    closed, nested = 0, False
    for index in reversed(range(len(tokens))):
        token = tokens[index]
        if token.type in _OPENERS and not closed:
            called = index > 0 and tokens[index - 1].type in ("NAME", "KIND")
            return _Open(token, _OPENERS[token.type], nested and not called)
        closed += (token.type in _CLOSERS) - (token.type in _OPENERS)
        nested |= token.type in _CLOSERS
    return None


def _shown(token: Token | None) -> str:
    return "the end of the text" if token is None else f"`{shortened(token)}`"
