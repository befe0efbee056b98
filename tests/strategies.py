"""Hypothesis strategies for trees of the language: whatever they draw can be printed and parsed."""

from __future__ import annotations

from hypothesis import strategies as st

from symdsl.language import ast

RESERVED = frozenset(
    [
        *(
            "let",
            "import",
            "data",
            "block",
            "network",
            "prior",
            "search",
            "input",
            "lift",
            "layer",
            "use",
            "repeat",
            "residual",
            "average",
            "project",
        ),
        *("pool", "flatten", "stride", "as", "true", "false"),
    ]
)

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True).filter(lambda name: name not in RESERVED)
words = names.map(ast.Word)
kinds = st.sampled_from(["FC", "CONV", "F-FC", "GCONV", "S-CONV"]).map(ast.Word)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(ast.Text)
numbers = st.one_of(st.integers(0, 2**63 - 1), st.floats(0, 1e30, allow_nan=False, allow_infinity=False).map(abs)).map(
    ast.Number
)


def calls(
    arguments: st.SearchStrategy[ast.Expression], called: st.SearchStrategy[ast.Word]
) -> st.SearchStrategy[ast.Call]:
    given = st.builds(ast.Argument, st.none() | words, arguments)
    return st.builds(ast.Call, called, st.none() | st.lists(given, max_size=3).map(tuple))


def _larger(inner: st.SearchStrategy[ast.Expression]) -> st.SearchStrategy[ast.Expression]:
    items = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        calls(inner, words | kinds),
        st.builds(ast.List, items),
        st.builds(ast.Tuple, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(ast.Negative, inner),
        st.builds(
            ast.Binary, st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<=", ">=", "<", ">"]), inner, inner
        ),
    )


atoms = st.one_of(numbers, texts, st.booleans().map(ast.Flag), (words | kinds).map(ast.Call))
expressions: st.SearchStrategy[ast.Expression] = st.recursive(atoms, _larger, max_leaves=6)
small = st.recursive(atoms, _larger, max_leaves=2)

steps = calls(small, words)
candidates = st.builds(ast.Candidate, calls(small, words | kinds), st.none() | steps)
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
layers = st.builds(
    ast.Layer,
    st.none() | paths.map(ast.Word),
    st.lists(candidates, min_size=1, max_size=3).map(tuple),
    small,
    st.none() | small,
    st.lists(steps, max_size=2).map(tuple),
)
simple_items = st.one_of(
    st.builds(ast.Input, steps),
    st.builds(ast.Lift, words),
    layers,
    st.builds(ast.Use, steps, st.none() | words),
    st.builds(ast.Project, words),
    st.builds(ast.Pool, words),
    st.just(ast.Flatten()),
)


@st.composite
def repeats(draw: st.DrawFn, inner: st.SearchStrategy[ast.Item]) -> ast.Repeat:
    listed = draw(st.lists(words, min_size=1, max_size=3).map(tuple))
    unpack = len(listed) > 1 or draw(st.booleans())
    return ast.Repeat(draw(small), listed, unpack, draw(st.lists(inner, max_size=2).map(tuple)))


def residuals(inner: st.SearchStrategy[ast.Item]) -> st.SearchStrategy[ast.Residual]:
    return st.builds(ast.Residual, st.lists(inner, max_size=2).map(tuple))


def averages(inner: st.SearchStrategy[ast.Item]) -> st.SearchStrategy[ast.Average]:
    return st.builds(ast.Average, steps, st.lists(inner, max_size=2).map(tuple))


items = st.recursive(simple_items, lambda inner: repeats(inner) | residuals(inner) | averages(inner), max_leaves=3)
item_lists = st.lists(items, max_size=3).map(tuple)
patterns = st.builds(
    ast.Pattern,
    st.one_of(
        names, st.just("*"), names.map(lambda name: name + "*"), paths, st.just("*/a"), st.just("F-FC"), st.just("S-*")
    ),
    st.none() | st.lists(st.builds(ast.Argument, st.none() | words, small), max_size=2).map(tuple),
)
rules = st.builds(ast.Rule, st.lists(patterns, min_size=2, max_size=3).map(tuple), steps)
parameters = st.builds(ast.Parameter, words, st.none() | words | st.just(ast.Word("prior")), st.none() | small)
parameter_lists = st.none() | st.lists(parameters, max_size=3).map(tuple)
dotted = st.tuples(st.just("data") | st.just("search") | names, names)
keys = words | dotted.map(lambda parts: ast.Word(".".join(parts)))
statements = st.one_of(
    st.builds(ast.Let, words, expressions),
    st.builds(ast.Import, texts),
    st.builds(ast.Data, st.lists(steps, min_size=1, max_size=3).map(tuple)),
    st.builds(ast.Block, words, parameter_lists, item_lists),
    st.builds(ast.Network, words, parameter_lists, item_lists),
    st.builds(ast.Instance, words, steps),
    st.builds(ast.Priors, st.lists(rules, max_size=2).map(tuple)),
    st.builds(ast.Search, st.lists(st.builds(ast.Setting, words, expressions), max_size=2).map(tuple)),
    st.builds(ast.Profile, words, st.lists(st.builds(ast.Setting, keys, expressions), max_size=2).map(tuple)),
)
programs = st.lists(statements, max_size=4).map(lambda found: ast.Program(tuple(found)))
