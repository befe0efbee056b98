"""Syntax errors: each said in the words of the language, and mended, so that reading goes on after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

import attrs
from lark import Lark, Token
from lark.exceptions import UnexpectedInput
from lark.parsers.lalr_interactive_parser import InteractiveParser

from symdsl.diagnostics import Collector, Span, shortened
from symdsl.language.blots import blotted, complaint, is_note
from symdsl.language.expectations import expected_words
from symdsl.language.repairs import (
    FRESH_STARTS,
    ITEMS,
    KEYWORDS,
    STATEMENTS,
    Repair,
    Trouble,
    misspelt,
    open_bracket,
    repairs,
)
from symdsl.language.slips import without_slips
from symdsl.language.spans import token_span
from symdsl.language.words import BRACES

_MOST_ERRORS = 100
_LOOKAHEAD = 3


def mend(
    grammar: Lark, words: Iterable[Token], text: str, start: str, source: str, collector: Collector
) -> list[Token] | None:
    """Report every syntax error of a text, and return similar tokens that follow the grammar.

    A misspelt word is replaced, a forgotten or superfluous token put in or left out where the text then goes on as it
    should; else the whole statement, item, rule or setting becomes one `UNREAD`.

    Args:
        grammar: of the language.
        words: the tokens that could not be parsed.
        text: where they come from.
        start: the rule it should follow.
        source: its name in spans.
        collector: receives the errors.

    Returns:
        The tokens, or nothing if reading had to be given up.
    """
    tokens = without_slips(blotted(words), source, collector)
    return _Mender(grammar.parse_interactive(start=start), tokens, text, source, collector).run()


@attrs.frozen
class _Start:
    """A place where a statement, item, rule or setting begins: the token, those mended before it, and the state."""

    index: int
    mended: int
    parser: InteractiveParser


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
            if not self._mend():
                return None
        if self._read():
            return self.mended
        message = f"more than {_MOST_ERRORS - 1} syntax errors: the rest of the text was not read"
        self.collector.report("E104", self._place(), message)
        return None

    def _mend(self) -> bool:
        """Report what does not fit, and make it fit; false if nothing does."""
        trouble = Trouble(
            before=self.mended,
            previous=self.tokens[self.next - 1] if self.next else None,
            token=self.tokens[self.next] if self.next < len(self.tokens) else None,
            following=self.tokens[self.next + 1] if self.next + 1 < len(self.tokens) else None,
            accepted=self.parser.accepts(),
            begins=bool(self.starts) and self.starts[-1].index == self.next,
            source=self.source,
        )
        repair = self._repair(trouble)
        if self.next != self.blamed:
            self.blamed = self.next
            self._report(trouble, repair)
        if repair is None:
            return self._drop()
        self._take(repair)
        return True

    # reading

    def _read(self) -> bool:
        """Go on until a token does not fit, which is then the next; true at the end of the text."""
        base = _copy(self.parser), len(self.mended)
        while self.next < len(self.tokens):
            if self._may_start(self.next) and "UNREAD" in self.parser.choices():
                base = _copy(self.parser), len(self.mended)
                self.starts.append(_Start(self.next, base[1], base[0]))
            if not _fed(self.parser, [self.tokens[self.next]]):
                break
            self.mended.append(self.tokens[self.next])
            self.next += 1
        # A token that does not fit may have changed the state before it was refused.
        self.parser = _copy(base[0])
        _feed(self.parser, self.mended[base[1] :])
        return self.next == len(self.tokens) and _ends(self.parser)

    def _may_start(self, index: int) -> bool:
        first = index == 0 or self.tokens[index - 1].line != self.tokens[index].line
        return first or self.tokens[index].type in FRESH_STARTS

    # small repairs

    def _repair(self, trouble: Trouble) -> Repair | None:
        """The first repair after which the text goes on as it should, or else one after which this line does."""
        possible = list(repairs(trouble))
        for within_line in (False, True):
            for repair in possible:
                if self._fits(repair, within_line):
                    return repair
        return None

    def _fits(self, repair: Repair, within_line: bool) -> bool:
        parser, after = _copy(self.parser), self.next + repair.skip
        window = self.tokens[after : after + _LOOKAHEAD]
        if within_line:
            window = [token for token in window if token.line == window[0].line]
        more = bool(window) and (within_line or after + len(window) < len(self.tokens))
        following = [token for token in window if not is_note(token)]
        return _fed(parser, [*repair.tokens, *following]) and (more or _ends(parser))

    def _take(self, repair: Repair) -> None:
        _feed(self.parser, repair.tokens)
        self.mended += repair.tokens
        self.next += repair.skip

    # leaving out what cannot be read

    def _drop(self) -> bool:
        """Leave out the innermost statement, item, rule or setting after which reading can go on; false if none."""
        while self.starts:
            start = self.starts.pop()
            parser = _copy(start.parser)
            found = self._resumption(start.index, parser.accepts()) if _fed(parser, [Token("UNREAD", "")]) else None
            if found is not None:
                del self.mended[start.mended :]
                self.parser = _copy(start.parser)
                self._take(Repair((_unread(self.tokens[start.index : found]),)))
                self.next = found
                return True
        return False

    def _resumption(self, begun: int, accepted: Set[str]) -> int | None:
        """The first later token, outside the braces opened since `begun`, at which reading could go on."""
        depth = sum(BRACES.get(token.type, 0) for token in self.tokens[begun : self.next])
        for index in range(self.next, len(self.tokens)):
            token = self.tokens[index]
            outside = depth <= 0 or token.type in STATEMENTS
            fresh = index > self.next or token.type in FRESH_STARTS
            if index > begun and outside and fresh and self._may_start(index) and _goes_on(token, accepted):
                return index
            depth += BRACES.get(token.type, 0)
        return len(self.tokens) if begun < len(self.tokens) and accepted & {"$END", "RBRACE"} else None

    # words

    def _report(self, trouble: Trouble, repair: Repair | None) -> None:
        blot = complaint(trouble.token, trouble.accepted) if trouble.token is not None else None
        message, help = blot if blot is not None else (_unexpected(trouble), "")
        fix = repair.fix if repair else None
        if repair is not None and repair.help:
            help = repair.help
        elif fix is not None and not help:
            written = f"`{' '.join(fix.content.split())}`"
            guess = (
                f"did you mean {written}?" if repair is not None and repair.skip else f"perhaps {written} is missing"
            )
            help = "" if written in message else guess
        notes = self._opened() if repair is not None and repair.closes else []
        self.collector.report("E104", self._place(), message, help=help, notes=notes, fix=fix)

    def _opened(self) -> list[tuple[Span, str]]:
        """Where the bracket stands that should be closed, unless that is on the same line."""
        bracket = open_bracket(self.mended)
        if bracket is None or bracket.token.line == self._place().line:
            return []
        return [(token_span(bracket.token, self.source), "opened here")]

    def _place(self) -> Span:
        if self.next < len(self.tokens):
            return token_span(self.tokens[self.next], self.source)
        lines = self.text.rstrip().split("\n")
        column = len(lines[-1]) + 1
        return Span(self.source, len(lines), column, len(lines), column + 1)


def _copy(parser: InteractiveParser) -> InteractiveParser:
    copied: InteractiveParser = parser.copy(deepcopy_values=False)
    return copied


def _feed(parser: InteractiveParser, tokens: Iterable[Token]) -> None:
    for token in tokens:
        parser.feed_token(token)


def _fed(parser: InteractiveParser, tokens: Iterable[Token]) -> bool:
    """Whether tokens fit; if one does not, the state is spoilt."""
    try:
        _feed(parser, tokens)
    except UnexpectedInput:
        return False
    return True


def _ends(parser: InteractiveParser) -> bool:
    try:
        _copy(parser).feed_eof()
    except UnexpectedInput:
        return False
    return True


def _goes_on(token: Token, accepted: Set[str]) -> bool:
    """Whether reading can go on at a token: it fits, closes what is open, or is hardly more than misspelt."""
    closing = "RBRACE" in accepted and token.type in STATEMENTS
    return token.type in accepted or closing or misspelt(token, accepted) is not None


def _unread(dropped: Sequence[Token]) -> Token:
    """One token for many, whose text is the first word and, after a blank, the name it was to define, if any."""
    first, last = dropped[0], dropped[-1]
    word = str(first) if first.type in KEYWORDS else ""
    named = word and len(dropped) > 1 and dropped[1].type == "NAME"
    text = f"{word} {dropped[1]}" if named else word
    return Token("UNREAD", text, 0, first.line, first.column, last.end_line, last.end_column)


def _unexpected(trouble: Trouble) -> str:
    previous = trouble.previous.type if trouble.previous is not None else ""
    complete = trouble.on_one_line and previous not in BRACES and bool(trouble.accepted & (STATEMENTS | ITEMS))
    expected = "the end of the line" if complete else expected_words(previous, trouble.accepted)
    found = "the end of the text" if trouble.token is None else f"`{shortened(trouble.token)}`"
    return f"expected {expected}, found {found}"
