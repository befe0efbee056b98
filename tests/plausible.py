"""Hypothesis strategies for specs that could be meant: right words in right places, with values that may be wrong."""

from __future__ import annotations

from hypothesis import strategies as st

from strategies import atoms, expressions
from symdsl.analysis.parameters import PARAMETER_TYPES
from symdsl.catalog.data import SOURCES, TRANSFORMS
from symdsl.catalog.networks import ACTIVATIONS, AFFINE, NORMAL, REDUCTIONS
from symdsl.catalog.searches import SEARCH
from symdsl.catalog.signatures import Choice, Parameter, Quoted, Real, Signature, Switch, Type, Variant, Whole
from symdsl.groups import GROUPS
from symdsl.kinds import KINDS, call_signature
from symdsl.language import ast
from symdsl.language.printer import print_program

GLOBAL = ("a", "b", "c", "kinds", "width")
BLOCKS = ("stage", "head", "again3")
NETWORKS = ("n", "template")
LOCAL = (*GLOBAL, "classes", "channels")
RARE = st.integers(0, 49).map(lambda number: number == 17)


def _seldom(
    usual: st.SearchStrategy[ast.Expression], odd: st.SearchStrategy[ast.Expression]
) -> st.SearchStrategy[ast.Expression]:
    """Something usual, and now and then something odd."""
    return RARE.flatmap(lambda rare: odd if rare else usual)


def _word(names: tuple[str, ...]) -> st.SearchStrategy[ast.Word]:
    return st.sampled_from(names).map(ast.Word)


def _bare(names: tuple[str, ...]) -> st.SearchStrategy[ast.Expression]:
    return _word(names).map(ast.Call)


_counts = st.sampled_from([1, 2, 2, 3, 4]).map(ast.Number)
_numbers = st.sampled_from([0, 5, 7, 2**40]).map(ast.Number)
_sums = st.builds(ast.Binary, st.sampled_from(["+", "*", "-", "/", "%", "<"]), _counts, _counts | _bare(("a", "b")))
_wholes = _seldom(st.one_of(_counts, _bare(("a", "width")), _sums), _numbers | _bare(LOCAL) | _counts.map(ast.Negative))
_reals = st.sampled_from([0.5, 0.1, 1.0, 3.0, 1e9, 1e-9, 0.0]).map(ast.Number)
_odd = st.one_of(atoms, expressions, _bare((*LOCAL, *BLOCKS, *NETWORKS, "i", "m")))


def values(type: Type) -> st.SearchStrategy[ast.Expression]:
    """Values for an argument of a type, wrong ones now and then."""
    match type:
        case Whole():
            usual: st.SearchStrategy[ast.Expression] = _wholes
        case Real():
            usual = _reals | _wholes
        case Quoted():
            usual = st.sampled_from(["~/data", "missing.npz", ""]).map(ast.Text)
        case Switch():
            usual = st.booleans().map(ast.Flag)
        case Choice(options):
            usual = _bare(options)
        case Variant(options):
            usual = st.one_of([calls(option) for option in options])
    return _seldom(usual, _odd)


@st.composite
def calls(draw: st.DrawFn, signature: Signature) -> ast.Call:
    """A call of something, with some of its arguments, by place or by name, right or wrong."""
    chosen = [one for one in signature.parameters if draw(st.integers(0, 3)) or _required(one)]
    by_name = draw(st.booleans())
    arguments = [
        ast.Argument(ast.Word(one.name) if by_name or index else None, draw(values(one.type)))
        for index, one in enumerate(chosen)
    ]
    if draw(RARE):
        arguments.append(ast.Argument(None, draw(_odd)))
    return ast.Call(ast.Word(signature.name), tuple(arguments) or draw(st.sampled_from([None, ()])))


def _required(parameter: Parameter) -> bool:
    return not isinstance(parameter.default, int | float | str | None)


kinds = st.one_of([calls(call_signature(KINDS[name])) for name in sorted(KINDS)])
priors = st.one_of(calls(NORMAL), _word(GLOBAL).map(ast.Call))
candidates = st.builds(
    ast.Candidate, st.one_of(kinds, kinds, _word(("kinds", "a")).map(ast.Call)), st.none() | st.none() | priors
)
lists = st.one_of(
    st.lists(_wholes, max_size=4).map(tuple).map(ast.List),
    st.lists(kinds, min_size=1, max_size=3).map(tuple).map(ast.List),
    st.lists(st.tuples(_wholes, _wholes).map(ast.Tuple), min_size=1, max_size=3).map(tuple).map(ast.List),
    _bare(LOCAL),
)
layers = st.builds(
    ast.Layer,
    st.none() | _word(("l1", "h", "stage1/l1", "x")),
    st.lists(candidates, min_size=1, max_size=3).map(tuple),
    _wholes,
    st.none() | st.none() | _wholes,
    st.lists(_word(ACTIVATIONS).map(ast.Call), max_size=2).map(tuple),
)


@st.composite
def arguments(draw: st.DrawFn) -> tuple[ast.Argument, ...] | None:
    names = st.none() | st.none() | _word(LOCAL)
    given = st.builds(ast.Argument, names, st.one_of(_wholes, kinds, lists, priors, _odd))
    return draw(st.none() | st.lists(given, max_size=3).map(tuple))


uses = st.builds(ast.Use, st.builds(ast.Call, _word(BLOCKS), arguments()), st.none() | _word(("x", "early")))
plain_items = st.one_of(
    layers,
    layers,
    layers,
    uses,
    uses,
    _word(tuple(GROUPS)).map(ast.Lift),
    _word(REDUCTIONS).map(ast.Project),
    _word(REDUCTIONS).map(ast.Pool),
    st.just(ast.Flatten()),
)


@st.composite
def repeats(draw: st.DrawFn, inner: st.SearchStrategy[ast.Item]) -> ast.Repeat:
    names = draw(st.sampled_from([("i",), ("m", "s"), ("kinds",)]))
    unpack = len(names) > 1
    return ast.Repeat(draw(lists), tuple(map(ast.Word, names)), unpack, tuple(draw(st.lists(inner, max_size=3))))


def residuals(inner: st.SearchStrategy[ast.Item]) -> st.SearchStrategy[ast.Residual]:
    return st.builds(ast.Residual, st.lists(inner, max_size=3).map(tuple))


def averages(inner: st.SearchStrategy[ast.Item]) -> st.SearchStrategy[ast.Average]:
    return st.builds(ast.Average, calls(AFFINE), st.lists(inner, max_size=3).map(tuple))


items = st.recursive(
    plain_items, lambda inner: inner | repeats(inner) | residuals(inner) | averages(inner), max_leaves=3
)
types = st.none() | _word((*PARAMETER_TYPES, "hole"))
parameters = st.builds(ast.Parameter, _word(GLOBAL), types, st.none() | _wholes | lists | kinds | _odd)
parameter_lists = st.none() | st.lists(parameters, max_size=3, unique_by=lambda one: one.name.text).map(tuple)
bodies = st.lists(items, max_size=4).map(tuple)
PRELUDE = (
    *(ast.Let(ast.Word(name), ast.Number(value)) for name, value in (("a", 2), ("b", 1), ("c", 3), ("width", 2))),
    ast.Let(ast.Word("kinds"), ast.List((ast.Call(ast.Word("FC")), ast.Call(ast.Word("F-FC"))))),
)
images = st.sampled_from([8, 8, 8, 16]).map(
    lambda side: ast.Call(ast.Word("image"), tuple(ast.Argument(None, ast.Number(one)) for one in (1, side, side)))
)
HEAD = (ast.Flatten(), ast.Layer(None, (ast.Candidate(ast.Call(ast.Word("FC"))),), ast.Call(ast.Word("classes"))))


@st.composite
def networks(draw: st.DrawFn, name: str) -> ast.Network:
    start = () if draw(RARE) else (ast.Input(draw(images)),)
    end = () if draw(RARE) else HEAD
    listed = draw(parameter_lists) if name == "template" else None
    return ast.Network(ast.Word(name), listed, (*start, *draw(bodies), *end))


selectors = st.tuples(
    st.sampled_from(["*", "l1", "l*", "stage1/*", "*/l1", "x/*", "h"]).map(ast.Pattern),
    st.one_of(
        st.sampled_from(["*", "FC", "F-*", "bias"]).map(ast.Pattern),
        kinds.map(lambda kind: ast.Pattern(kind.name.text, kind.arguments)),
    ),
)
rules = st.builds(ast.Rule, selectors | st.builds(lambda two: (*two, ast.Pattern("w")), selectors), priors)
lets = st.builds(ast.Let, _word(("d", "e")), st.one_of(_wholes, kinds, lists, priors, _odd))
blocks = st.builds(ast.Block, _word(BLOCKS), parameter_lists, bodies)
sources = st.one_of([calls(source.signature) for source in SOURCES.values()])
transforms = st.one_of([calls(transform.signature) for transform in TRANSFORMS.values()])
digits = st.just(ast.Call(ast.Word("digits")))
data = st.builds(
    lambda source, steps: ast.Data((source, *steps)),
    st.one_of(digits, digits, digits, sources),
    st.lists(transforms, max_size=1),
)
settings = st.one_of(
    [st.builds(ast.Setting, st.just(ast.Word(one.name)), values(one.type)) for one in SEARCH.parameters]
)
overrides = st.one_of(
    st.builds(ast.Setting, _word((*GLOBAL, "d")), st.one_of(_wholes, kinds, lists, _odd)),
    st.builds(ast.Setting, _word(("data.size", "data.copies", "data.test", "odd.size")), _wholes),
    settings.map(lambda one: ast.Setting(ast.Word(f"search.{one.name.text}"), one.value)),
)
profiles = st.builds(ast.Profile, _word(("quick", "n")), st.lists(overrides, max_size=3).map(tuple))
instances = st.builds(
    ast.Instance, st.just(ast.Word("n")), st.builds(ast.Call, st.just(ast.Word("template")), arguments())
)
built = st.one_of(
    networks("n").map(lambda one: (one,)),
    st.tuples(networks("template"), instances),
)


@st.composite
def specs(draw: st.DrawFn) -> str:
    """The text of a spec that could be meant."""
    statements = [
        *PRELUDE,
        *draw(st.lists(lets, max_size=1)),
        *draw(st.lists(blocks, max_size=2, unique_by=lambda one: one.name.text)),
        *([] if draw(RARE) else [draw(data)]),
        *draw(built),
        *draw(st.lists(st.builds(ast.Priors, st.lists(rules, min_size=1, max_size=3).map(tuple)), max_size=1)),
        *draw(st.lists(st.builds(ast.Search, st.lists(settings, max_size=3).map(tuple)), max_size=1)),
        *draw(st.lists(profiles, max_size=2)),
    ]
    return print_program(ast.Program(tuple(statements)))
