"""Slips that the tokens of a text show by themselves, such as a path without quotes: mended, and each reported once."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, takewhile

from lark import Token

from symdsl.catalog.networks import IMAGE, NORMAL, SIGNAL
from symdsl.diagnostics import Collector, Fix, shortened
from symdsl.language.blots import QUOTES, TYPESET
from symdsl.language.keywords import keywords
from symdsl.language.repairs import DEFINING, FRESH_STARTS, ITEMS, STATEMENTS, open_bracket
from symdsl.language.spans import behind, merged, token_span
from symdsl.language.words import BRACES, BRACKETS, NESTING

_BEFORE_VALUE = {"EQUAL", "LPAR", "LSQB", "COMMA", "ARROW", "PLUS", "MINUS", "STAR", "SLASH"}
_BEFORE_NAME = {"LET", "LPAR", "COMMA", "AS"}
_ENDS = {"RPAR", "COMMA", "RSQB", "RBRACE", "THEN", "LPAR", "EQUAL"}
_PATH, _FILE = re.compile(r"(~|\.\.?)?/\S*|~"), re.compile(r"[A-Za-z][\w/-]*(\.\w+)+")
_MOST_JOINED = 64
_GROUPED = re.compile(r"\d+(_\d+)+")
_TIMES = re.compile(r"(\d+)x(\d+)")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]+")
_MARKS = {"*": "STAR", "~": "TILDE", "=": "EQUAL", "(": "LPAR"}
_PARENTHESES = "arguments stand in parentheses"
_SPLIT = re.compile(r"[FS]-[A-Z]{2,}")
_PRIOR = ["PRIOR", "LBRACE"]


def without_slips(tokens: Sequence[Token], source: str, collector: Collector) -> list[Token]:
    """Return the tokens of a text that cannot be parsed, without the slips that are found.

    These are marks of typeset text such as `→`, comments between `/*` and `*/`, texts between other marks than `"` or
    without any, numbers with digits in groups, with units or not decimal, products without `*`, sizes such as `3x3`,
    names with hyphens, arguments without parentheses or `=`, priors of a whole layer or without `~`, a `residual`
    without braces, braces that are not closed where their indentation ends, rules outside a `prior` or of several
    selectors, a `search` inside a `profile`, and statements inside a network.

    Args:
        tokens: of the text.
        source: its name in spans.
        collector: receives an error for each slip.
    """
    found = list(_without_patterns(tokens))
    for mended in _PASSES:
        found = list(mended(found, source, collector))
    return found


def _without_patterns(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens, with words beside a `*` as the reserved words that they are outside of `prior { ... }`."""
    terminals = {word: terminal for terminal, word in keywords().items()}
    prior = False
    for index, token in enumerate(tokens):
        prior = token.type != "RBRACE" and (prior or [one.type for one in tokens[index : index + 2]] == _PRIOR)
        yield Token.new_borrow_pos(terminals[token], token, token) if token.type == "WILD" and not prior else token


def _without_comments(tokens: Sequence[Token], source: str, collector: Collector) -> Iterator[Token]:
    """Yield the tokens outside of comments as other languages have them; one without an end is none."""
    ends = [index for index in range(len(tokens)) if _is_pair(tokens, index, "*/")]
    index = 0
    while index < len(tokens):
        apart = not index or tokens[index - 1].end_pos != tokens[index].start_pos
        later = bisect_left(ends, index + 2)
        if apart and later < len(ends) and _is_pair(tokens, index, "/*"):
            span = token_span(tokens[index], source).until(token_span(tokens[index + 1], source))
            collector.report("E104", span, "`/*` means nothing here", help="a comment begins with `//`")
            index = ends[later] + 2
        else:
            yield tokens[index]
            index += 1


def _is_pair(tokens: Sequence[Token], index: int, marks: str) -> bool:
    """Whether two tokens side by side read as two marks."""
    pair = tokens[index : index + 2]
    return "".join(pair) == marks and pair[0].end_pos == pair[-1].start_pos


def _with_parentheses(tokens: list[Token], source: str, collector: Collector) -> list[Token]:
    """Return the tokens with parentheses for the brackets right behind a name or kind."""
    found, opened = list(tokens), list[tuple[int, bool]]()
    for index, token in enumerate(tokens):
        if token.type == "LSQB":
            before = tokens[index - 1] if index else token
            called = before.type in ("NAME", "KIND") and before.end_pos == token.start_pos
            opened.append((index, called))
        elif token.type == "RSQB" and opened:
            begin, called = opened.pop()
            if called:
                found[begin] = Token.new_borrow_pos("LPAR", "(", tokens[begin])
                found[index] = Token.new_borrow_pos("RPAR", ")", token)
                span = token_span(tokens[begin], source).until(token_span(token, source))
                written = f"({_text(tokens[begin + 1 : index])})"
                help = f"write `{shortened(tokens[begin - 1])}{shortened(written)}`"
                collector.report("E104", span, _PARENTHESES, help=help, fix=Fix("write parentheses", span, written))
    return found


def _text(tokens: Sequence[Token]) -> str:
    """Return what tokens read as, with the blanks between them."""
    gaps = [" " * ((two.start_pos or 0) - (one.end_pos or 0)) for one, two in pairwise(tokens)]
    return "".join(gap + token for gap, token in zip(["", *gaps], tokens, strict=True)) if tokens else ""


def _with_words(tokens: Sequence[Token], source: str, collector: Collector) -> Iterator[Token]:
    """Yield the tokens, those without a blank between them as the one word that they are meant to be."""
    hyphened: set[str] = set()
    inside = _brackets(tokens)
    values = {two for one, two in pairwise(tokens) if two.type == "NAME" and one.type in _BEFORE_NAME}
    index = 0
    while index < len(tokens):
        before = tokens[index - 1].type if index else ""
        word = _word(tokens, index)
        text = "".join(word)
        if inside[index] == "LPAR" and (quoted := _quoted(tokens, index)):
            word = quoted
            content = _text(word)[len(word[0]) : -len(word[-1])]
            yield _reported(word, "TEXT", f'"{content}"', 'a text stands between `"`', source, collector)
        elif tokens[index] in TYPESET:
            word = [tokens[index]]
            terminal, written = TYPESET[str(tokens[index])]
            yield _reported(word, terminal, written, f"`{tokens[index]}` means nothing here", source, collector)
        elif (before in ("EQUAL", "LPAR", "COMMA") and _PATH.fullmatch(text)) or (
            before in ("LPAR", "COMMA") and inside[index] == "LPAR" and _FILE.fullmatch(text)
        ):
            yield _reported(word, "TEXT", f'"{text}"', "a path is a text in quotes", source, collector)
        elif before in _BEFORE_VALUE and _GROUPED.fullmatch(text):
            yield _reported(word, "NUMBER", text.replace("_", ""), "digits are not grouped", source, collector)
        elif before in _BEFORE_VALUE and _HEXADECIMAL.fullmatch(text):
            yield _reported(word, "NUMBER", str(int(text, 16)), "numbers are decimal", source, collector)
        elif _is_split_kind(tokens, index):
            word = list(tokens[index : index + 3])
            yield _reported(word, "KIND", "".join(word), "the name of a kind has no blanks", source, collector)
        elif before in _BEFORE_VALUE and (sides := _TIMES.fullmatch(text)):
            bracket = open_bracket(tokens[:index])
            kept = ", ".join(sides.groups()) if bracket is not None and bracket.caller == IMAGE.name else sides[1]
            token = _reported(word, "NUMBER", kept, "sizes are not written with `x`", source, collector)
            first, *others = kept.split(", ")
            yield Token.new_borrow_pos("NUMBER", first, token)
            for other in others:
                yield from (Token.new_borrow_pos("COMMA", ",", token), Token.new_borrow_pos("NUMBER", other, token))
        elif before in _BEFORE_VALUE and [one.type for one in word] == ["NUMBER", "NAME"] and word[1] not in values:
            yield _reported(word, "NUMBER", str(word[0]), "a number has no unit", source, collector)
        elif before == "DATA" and _is_hyphened(word):
            yield merged(word, "NAME", text)  # no source is called so, and which one is meant will be said
        elif (before in DEFINING and _is_hyphened(word)) or text in hyphened:
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


def _with_marks(tokens: Sequence[Token], source: str, collector: Collector) -> Iterator[Token]:
    """Yield the tokens with what is missing between two of them: `*`, `~`, `=` or parentheses."""
    for index, token in enumerate(tokens):
        mark = _missing_mark(tokens, index)
        if mark:
            last = tokens[index - 1]
            end = behind(last, source)
            message = f"expected `{mark}` between `{shortened(last)}` and `{shortened(token)}`"
            written = f"{mark}{token}" if mark == "*" else f" {mark} {token}"
            fix = Fix(f"insert `{mark}`", end, written.removesuffix(token).rstrip())
            if mark == "(":
                message, written = _PARENTHESES, f"({token})"
                fix = Fix(f"replace by `{written}`", end.until(token_span(token, source)), written)
            help = f"write `{shortened(last)}{written}`"
            collector.report("E104", token_span(token, source), message, help=help, fix=fix)
            yield Token.new_borrow_pos(_MARKS[mark], mark, token)
        yield token
        if mark == "(":
            yield Token.new_borrow_pos("RPAR", ")", token)


def _without_priors_of_layers(tokens: Sequence[Token], source: str, collector: Collector) -> Iterator[Token]:
    """Yield the tokens without the priors that stand behind the width of a layer or its activation."""
    begun, line, index = "", None, 0
    while index < len(tokens):
        token = tokens[index]
        if token.type in FRESH_STARTS or (begun == "LAYER" and token.type == "ARROW"):
            begun, line = token.type, token.line
        has_tilde = token.type == "TILDE"
        prior = index + has_tilde
        called = [str(one) for one in tokens[prior : prior + 2]] == [NORMAL.name, "("]
        if begun != "ARROW" or token.line != line or not (has_tilde or called):
            yield token
            index += 1
            continue
        depth, index, last = 0, prior, prior + called
        while index < len(tokens) and tokens[index].type not in FRESH_STARTS and (depth or index <= last):
            depth += BRACKETS.get(tokens[index].type, 0)
            index += 1
        span = token_span(token, source).until(token_span(tokens[index - 1], source))
        message = "a prior stands behind the candidate it is of, before `->`"
        collector.report("E104", span, message, help="as in `F-FC ~ normal(1) + CONV(3) -> 4`")


def _missing_mark(tokens: Sequence[Token], index: int) -> str:
    """Return the mark of `_MARKS` that is missing before a token, or the empty text."""
    token, last = tokens[index], tokens[max(index - 1, 0)]
    leading = tokens[index - 2].type if index > 1 else ""
    after = tokens[index + 1].type if index + 1 < len(tokens) else ""
    kinds = last.type, token.type
    if not index or last.line != token.line:
        return ""
    if kinds == ("NUMBER", "NAME") and last.end_pos == token.start_pos and leading in _BEFORE_VALUE:
        return "*"
    if token == NORMAL.name and after == "LPAR" and last.type in ("NAME", "WILD", "KIND", "STAR", "RPAR"):
        return "=" if leading == "LET" else "~"
    if kinds not in (("NAME", "NUMBER"), ("KIND", "NUMBER")):
        return ""
    if leading in ("LPAR", "COMMA"):
        bracket = open_bracket(tokens[:index])
        named = bracket is not None and bracket.caller and bracket.caller not in (IMAGE.name, SIGNAL.name)
        return "=" if named else ""
    return "(" if leading in ("COLON", "PLUS") and after in ("ARROW", "PLUS") else ""


def _word(tokens: Sequence[Token], start: int) -> list[Token]:
    """Return the tokens from one on between which there is no blank, up to one that no path has."""
    word = [tokens[start]]
    for token in tokens[start + 1 : start + _MOST_JOINED]:
        if token.start_pos != word[-1].end_pos or token.type in _ENDS:
            break
        word.append(token)
    return word


def _quoted(tokens: Sequence[Token], start: int) -> list[Token]:
    """Return the tokens from a mark that begins a text elsewhere up to the next such mark on the line."""
    if tokens[start].type == "UNREADABLE" and tokens[start] in QUOTES:
        for end in range(start + 1, min(start + _MOST_JOINED, len(tokens))):
            if tokens[end].line != tokens[start].line:
                break
            if tokens[end].type == "UNREADABLE" and tokens[end] in QUOTES:
                return list(tokens[start : end + 1])
    return []


def _brackets(tokens: Sequence[Token]) -> list[str]:
    """Return the innermost bracket that is open before each token, or the empty text."""
    found, opened = list[str](), [""]
    for token in tokens:
        found.append(opened[-1])
        if NESTING.get(token.type, 0) > 0:
            opened.append(token.type)
        elif token.type in NESTING and len(opened) > 1:
            opened.pop()
    return found


def _is_split_kind(tokens: Sequence[Token], start: int) -> bool:
    """Whether the name of a kind begins here, with blanks around its hyphen."""
    parts = tokens[start : start + 3]
    spelt = len(parts) == 3 and _SPLIT.fullmatch("".join(parts)) is not None
    return spelt and parts[0].line == parts[-1].line and parts[0].end_pos != parts[1].start_pos


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


def _with_braces_of_residuals(tokens: Sequence[Token], source: str, collector: Collector) -> Iterator[Token]:
    """Yield the tokens with braces around one item that stands behind a `residual` on its line."""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        yield token
        index += 1
        if token.type != "RESIDUAL" or index == len(tokens):
            continue
        item = tokens[index]
        if item.type in ITEMS and item.line == token.line:
            end = _statement_end(tokens, index)
            body = tokens[index:end]
            written = f"{{ {_text(body)} }}"
            span = token_span(item, source).until(behind(body[-1], source))
            fix = Fix("put it in braces", span, written)
            help = f"write `residual {shortened(written)}`"
            collector.report("E104", token_span(item, source), "expected `{` after `residual`", help=help, fix=fix)
            yield from (Token.new_borrow_pos("LBRACE", "{", item), *body, Token.new_borrow_pos("RBRACE", "}", body[-1]))
            index = end


def _with_settings_of_profiles(tokens: Sequence[Token], source: str, collector: Collector) -> Iterator[Token]:
    """Yield the tokens with `search.KEY` for every `KEY` of a `search { ... }` inside a profile."""
    braces, brackets, profile, inner = 0, 0, False, False
    for index, token in enumerate(tokens):
        after = tokens[index + 1].type if index + 1 < len(tokens) else ""
        if not braces and token.type in STATEMENTS:
            profile = token.type == "PROFILE"
        brackets += BRACKETS.get(token.type, 0)
        braces += BRACES.get(token.type, 0)
        if profile and braces == 1 and token.type == "SEARCH" and after == "LBRACE":
            inner = True
            help = "write `search.KEY = VALUE` without `search { ... }`"
            collector.report("E104", token_span(token, source), "a profile has one setting after another", help=help)
        elif inner and braces == 1 and token.type == "RBRACE":
            inner = False
        elif inner and braces == 2 and not brackets and token.type == "NAME" and after == "EQUAL":
            yield Token.new_borrow_pos("DOTTED", f"search.{token}", token)
        elif not (inner and braces == 2 and token.type == "LBRACE"):
            yield token


def _with_rules_in_priors(tokens: Sequence[Token], source: str, collector: Collector) -> Iterator[Token]:
    """Yield the tokens with a `prior` around rules outside of all braces, and a rule for each of several selectors."""
    braces, index, prior, added = 0, 0, False, False
    while index < len(tokens):
        token = tokens[index]
        fresh = not index or _is_fresh(tokens, index) or tokens[index - 1].type in BRACES
        begins = token.type in ("NAME", "WILD", "KIND", "STAR") and fresh and braces == prior
        rule = tokens[index : _statement_end(tokens, index)] if begins else []
        types = list(takewhile(lambda type: type != "LBRACE", (one.type for one in rule)))
        outside = "TILDE" in types and not prior
        if outside and not added:
            message = "a rule about a prior stands inside `prior { ... }`"
            collector.report("E104", token_span(token, source), message)
            yield from (Token.new_borrow_pos("PRIOR", "prior", token), Token.new_borrow_pos("LBRACE", "{", token))
        if added and not outside:
            yield Token.new_borrow_pos("RBRACE", "}", tokens[index - 1])
        added = outside
        if "TILDE" in types:
            yield from _with_one_selector(rule, types.index("TILDE"), source, collector)
            index += len(rule)
            continue
        opens = [one.type for one in tokens[index : index + 2]] == _PRIOR
        if opens and token.column == 1:
            braces = 0  # whatever is not closed, or closed twice, before it
        braces += BRACES.get(token.type, 0)
        if not braces and (token.type in STATEMENTS or token.type == "RBRACE"):
            prior = token.type == "PRIOR"
        yield token
        index += 1
    if added:
        yield Token.new_borrow_pos("RBRACE", "}", tokens[-1])


def _with_one_selector(rule: Sequence[Token], tilde: int, source: str, collector: Collector) -> Iterator[Token]:
    """Yield a rule; one of several selectors before its `~`, with commas between them, as a rule for each of them."""
    brackets = reported = 0
    for token in rule[:tilde]:
        brackets += BRACKETS.get(token.type, 0)
        if token.type != "COMMA" or brackets:
            yield token
            continue
        if not reported:
            reported, help = 1, "write a rule for each of them"
            collector.report("E104", token_span(token, source), "a rule has one selector", help=help)
        yield from rule[tilde:]
    yield from rule[tilde:]


def _is_fresh(tokens: Sequence[Token], index: int) -> bool:
    return tokens[index - 1].line != tokens[index].line


def _with_statements_outside(tokens: Sequence[Token], source: str, collector: Collector) -> list[Token]:
    """Return the tokens with the statements that stand inside a network, or block, before it."""
    found: list[Token] = []
    depth, begun, index = 0, 0, 0
    while index < len(tokens):
        token = tokens[index]
        fresh = index > 0 and _is_fresh(tokens, index)
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
        depth += NESTING.get(token.type, 0)
    return len(tokens)


_PASSES: tuple[Callable[[list[Token], str, Collector], Iterable[Token]], ...] = (
    _without_comments,
    _with_parentheses,
    _with_braces_of_residuals,
    _with_words,
    _without_priors_of_layers,
    _with_marks,
    _with_braces,
    _with_settings_of_profiles,
    _with_rules_in_priors,
    _with_statements_outside,
)
"""Functions that each mend one sort of slip, in order: the later ones rely on what the earlier ones have mended."""
