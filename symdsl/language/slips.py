"""Slips that the tokens of a text show by themselves, such as a path without quotes: mended, and each reported once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lark import Token

from symdsl.diagnostics import Collector, Fix, shortened
from symdsl.language.repairs import BRACES, STATEMENTS, open_bracket
from symdsl.language.spans import behind, merged, token_span

_BEFORE_VALUE = {"EQUAL", "LPAR", "LSQB", "COMMA", "ARROW", "PLUS", "MINUS", "STAR", "SLASH"}
_ENDS = {"RPAR", "COMMA", "RSQB", "RBRACE", "THEN", "LPAR", "EQUAL"}
_PATH, _FILE = re.compile(r"(~|\.\.?)?/\S*|~"), re.compile(r"[A-Za-z][\w/-]*(\.\w+)+")
_MOST_JOINED = 64
_GROUPED = re.compile(r"\d+(_\d+)+")
_DEFINING = {"LET", "NETWORK", "BLOCK", "PROFILE"}
_TIMES = re.compile(r"(\d+)x(\d+)")
_DEPTH = {"LPAR": 1, "LSQB": 1, "RPAR": -1, "RSQB": -1} | BRACES


def without_slips(tokens: Sequence[Token], source: str, collector: Collector) -> list[Token]:
    """Return the tokens of a text that cannot be parsed, without the slips that are found.

    These are paths without quotes, numbers with digits in groups, products without `*`, sizes such as `3x3`, names with
    hyphens, braces that are not closed where their indentation ends, and statements inside a network.

    Args:
        tokens: of the text.
        source: its name in spans.
        collector: receives an error for each slip.
    """
    closed = _with_braces(list(_with_words(tokens, source, collector)), source, collector)
    return _with_statements_outside(closed, source, collector)


def _with_words(tokens: Sequence[Token], source: str, collector: Collector) -> Iterator[Token]:
    """Yield the tokens, those without a blank between them as the one word that they are meant to be."""
    hyphened: set[str] = set()
    index = 0
    while index < len(tokens):
        before = tokens[index - 1].type if index else ""
        word = _word(tokens, index)
        text = "".join(word)
        if (before in ("EQUAL", "LPAR", "COMMA") and _PATH.fullmatch(text)) or (
            before in ("LPAR", "COMMA") and _FILE.fullmatch(text)
        ):
            yield _reported(word, "TEXT", f'"{text}"', "a path is a text in quotes", source, collector)
        elif before in _BEFORE_VALUE and _GROUPED.fullmatch(text):
            yield _reported(word, "NUMBER", text.replace("_", ""), "digits are not grouped", source, collector)
        elif before in _BEFORE_VALUE and (sides := _TIMES.fullmatch(text)):
            bracket = open_bracket(tokens[:index])
            kept = ", ".join(sides.groups()) if bracket is not None and bracket.caller == "image" else sides[1]
            token = _reported(word, "NUMBER", kept, "sizes are not written with `x`", source, collector)
            first, *others = kept.split(", ")
            yield Token.new_borrow_pos("NUMBER", first, token)
            for other in others:
                yield from (Token.new_borrow_pos("COMMA", ",", token), Token.new_borrow_pos("NUMBER", other, token))
        elif before in _BEFORE_VALUE and [one.type for one in word[:2]] == ["NUMBER", "NAME"]:
            message = f"expected `*` between `{word[0]}` and `{shortened(word[1])}`"
            fix = Fix("insert `*`", behind(word[0], source), "*")
            collector.report("E104", token_span(word[1], source), message, help=f"write `{word[0]}*{word[1]}`", fix=fix)
            yield from (word[0], Token.new_borrow_pos("STAR", "*", word[0]))
            index += 1
            continue
        elif before == "DATA" and _is_hyphened(word):
            yield merged(word, "NAME", text)  # no source is called so, and which one is meant will be said
        elif (before in _DEFINING and _is_hyphened(word)) or text in hyphened:
            name = text.replace("-", "_")
            if text not in hyphened:
                hyphened.add(text)
                yield _reported(word, "NAME", name, "names have no `-`", source, collector)
            else:
                yield merged(word, "NAME", name)
        else:
            yield tokens[index]
            index += 1
            continue
        index += len(word)


def _word(tokens: Sequence[Token], start: int) -> list[Token]:
    """Return the tokens from one on between which there is no blank, up to one that no path has."""
    word = [tokens[start]]
    for token in tokens[start + 1 : start + _MOST_JOINED]:
        if token.start_pos != word[-1].end_pos or token.type in _ENDS:
            break
        word.append(token)
    return word


def _is_hyphened(word: Sequence[Token]) -> bool:
    types = [one.type for one in word]
    return (
        len(word) > 2 and types[0] == "NAME" and set(types[1::2]) == {"MINUS"} and set(types[::2]) <= {"NAME", "NUMBER"}
    )


def _reported(
    word: Sequence[Token], terminal: str, text: str, message: str, source: str, collector: Collector
) -> Token:
    """Return one token for a word, after a report that says what to write."""
    token = merged(word, terminal, text)
    fix = Fix(f"replace by `{text}`", token_span(token, source), text)
    collector.report("E104", token_span(token, source), message, help=f"write `{shortened(text)}`", fix=fix)
    return token


def _with_braces(tokens: list[Token], source: str, collector: Collector) -> list[Token]:
    """Close the braces that the indentation shows to end earlier; leave the tokens if it does not explain all."""
    first = {token.line: token for token in reversed(tokens)}
    closed: list[Token] = []
    open_braces: list[Token] = []
    missing: list[tuple[Token, Token, Token]] = []
    for token in tokens:
        closes = token.type == "RBRACE"
        while open_braces and token is first[token.line]:
            brace = open_braces[-1]
            if token.line == brace.line or (token.column or 0) + closes > (first[brace.line].column or 0):
                break
            missing.append((open_braces.pop(), closed[-1], token))
            closed.append(Token.new_borrow_pos("RBRACE", "}", closed[-1]))
        if closes:
            if not open_braces:
                return tokens
            open_braces.pop()
        elif token.type == "LBRACE":
            open_braces.append(token)
        closed.append(token)
    if open_braces:
        return tokens
    for brace, last, token in missing:
        indented = f"\n{' ' * ((first[brace.line].column or 1) - 1)}}}"
        fix = Fix("insert `}`", behind(last, source), indented)
        notes = [(token_span(brace, source), "opened here")]
        message = f"expected `}}` before this line, found `{shortened(token)}`"
        collector.report("E104", token_span(token, source), message, notes=notes, fix=fix)
    return closed


def _with_statements_outside(tokens: Sequence[Token], source: str, collector: Collector) -> list[Token]:
    """Return the tokens with the statements that stand inside a network, or block, before it."""
    found: list[Token] = []
    depth, begun, index = 0, 0, 0
    while index < len(tokens):
        token = tokens[index]
        fresh = index > 0 and tokens[index - 1].line != token.line
        if depth <= 0 and token.type in STATEMENTS:
            begun = len(found)
        opener = found[begun] if begun < len(found) else token
        indented = fresh and (token.column or 0) > (opener.column or 0)
        if depth > 0 and indented and token.type in STATEMENTS and opener.type in ("NETWORK", "BLOCK"):
            end = _statement_end(tokens, index)
            help = f"move it before `{opener} {found[begun + 1]}`"
            message = f"`{token}` stands outside of networks and blocks"
            collector.report("E104", token_span(token, source), message, help=help)
            found[begun:begun] = tokens[index:end]
            begun += end - index
            index = end
            continue
        depth += BRACES.get(token.type, 0)
        found.append(token)
        index += 1
    return found


def _statement_end(tokens: Sequence[Token], start: int) -> int:
    """Return the index behind a statement: of a token on a new line, outside the brackets opened since, but `|>`."""
    depth = 0
    for index in range(start, len(tokens)):
        token = tokens[index]
        goes_on = index == start or token.type == "THEN" or tokens[index - 1].line == token.line
        if not depth and (token.type == "RBRACE" or not goes_on):
            return index
        depth += _DEPTH.get(token.type, 0)
    return len(tokens)
