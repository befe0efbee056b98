"""What the parser would have accepted, in the words of the language."""

from __future__ import annotations

from collections.abc import Set

_AFTER = {
    "LET": "a name",
    "BLOCK": "the name of the block",
    "NETWORK": "the name of the network",
    "USE": "the name of a block",
    "IMPORT": 'the path of a file, such as `"blocks/pyramid.sym"`',
    "DATA": "a data source, such as `digits`",
    "THEN": "a transform or an activation, such as `standardize` or `relu`",
    "TILDE": "a prior, such as `normal(precision = 1)`",
    "LIFT": "the name of a group, such as `p4`",
    "PROJECT": "`max` or `mean`",
    "POOL": "`max` or `mean`",
    "INPUT": "`image(channels, height, width)` or `signal(channels, length)`",
    "LAYER": "`:` and the kinds the layer may take",
    "RESIDUAL": "`{`",
    "AVERAGE": "`affine(...)`, with a range to begin with for each transformation",
    "AS": "a name, or several in parentheses",
    "PRIOR": "`{`",
    "SEARCH": "`{`",
    "PROFILE": "the name of the profile",
}
"""Expected after one token, whatever the parser's state."""

_WHERE_ACCEPTED = (
    (frozenset({"ARROW"}), "`->` and the number of channels"),
    (frozenset({"TILDE", "STAR"}), "`~` and a prior"),
    (frozenset({"DOT", "STAR"}), "`.` and a kind, as in `l1.CONV`"),
    (frozenset({"AS", "LAYER"}), "`as` and a name, or the next item of the network"),
    (frozenset({"TILDE", "DOT"}), "`~` and a prior"),
    (frozenset({"EQUAL", "DOT"}), "`=` and a value"),
    (frozenset({"AS"}), "`as` and a name for the value"),
    (frozenset({"COLON", "COMMA"}), "`,` or `)`"),
    (frozenset({"COLON"}), "`:` and the kinds the layer may take"),
    (frozenset({"NUMBER", "TRUE"}), "a value"),
    (frozenset({"NAME", "KIND", "STAR"}), "a selector, such as `l1.CONV`"),
    (frozenset({"NAME", "KIND"}), "a kind, such as `CONV(3)`"),
    (frozenset({"TEXT"}), "a text in quotes"),
    (frozenset({"DOT"}), "`.` and a kind"),
    (frozenset({"LET"}), "a statement: `let`, `import`, `data`, `block`, `network`, `prior`, `search` or `profile`"),
    (frozenset({"LAYER"}), "an item of a network, such as `layer`, or `}`"),
    (frozenset({"EQUAL", "LBRACE"}), "`=` or `{`"),
    (frozenset({"COMMA", "RPAR"}), "`,` or `)`"),
    (frozenset({"COMMA", "RSQB"}), "`,` or `]`"),
    (frozenset({"RPAR"}), "`)`"),
    (frozenset({"RSQB"}), "`]`"),
    (frozenset({"NAME", "RBRACE"}), "`key = value` or `}`"),
    (frozenset({"RBRACE"}), "`}`"),
    (frozenset({"LBRACE"}), "`{`"),
    (frozenset({"EQUAL"}), "`=` and a value"),
    (frozenset({"NAME"}), "a name"),
)
"""The first row whose terminals are all acceptable says it."""


def expected_words(previous: str, accepted: Set[str]) -> str:
    """Describe what the parser would have accepted at a place.

    Args:
        previous: terminal of the token before, or the empty text at the start.
        accepted: terminals that would have fitted.
    """
    if previous in _AFTER:
        return _AFTER[previous]
    return next((words for terminals, words in _WHERE_ACCEPTED if terminals <= accepted), "the end of the text")
