"""The tree of a spec. Spans say where a node, or its opening brace, was written and take no part in equality."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from symdsl.diagnostics import NOWHERE, Span


@attrs.frozen
class Word:
    """A name as written, with its place."""

    text: str
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Number:
    """A number without a sign; `int` for whole numbers."""

    value: int | float
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Text:
    """A quoted text."""

    value: str
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Flag:
    """`true` or `false`."""

    value: bool
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Argument:
    """An argument of a call, by position or by name."""

    name: Word | None
    value: Expression
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Call:
    """A name, with arguments or (`None`) without parentheses: a variable, a kind, a transform, a choice."""

    name: Word
    arguments: tuple[Argument, ...] | None = None
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class List:
    """`[a, b]`."""

    items: tuple[Expression, ...]
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Tuple:
    """`(a, b)`; a single item is written `(a,)`."""

    items: tuple[Expression, ...]
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Negative:
    """`-a`."""

    operand: Expression
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Binary:
    """`a + b` and the like."""

    operator: str
    left: Expression
    right: Expression
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Unread:
    """A part of a text that could not be parsed and was reported.

    Attributes:
        what: the word of the language that it begins with, if it does.
        name: what it was to define, if that is known.
    """

    what: str = ""
    name: Word | None = None
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


Expression: TypeAlias = Number | Text | Flag | Call | List | Tuple | Negative | Binary | Unread


@attrs.frozen
class Let:
    """`let name = value`."""

    name: Word
    value: Expression
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Import:
    """`import "path"`."""

    path: Text
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Data:
    """`data source |> transform |> ...`: the source comes first."""

    steps: tuple[Call, ...]
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Parameter:
    """A parameter of a network or a block, perhaps with a type and a default."""

    name: Word
    type: Word | None = None
    default: Expression | None = None
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Input:
    """`input image(channels, height, width)`."""

    image: Call
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Lift:
    """`lift group`."""

    group: Word
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Candidate:
    """A kind, or the name of one or of a list of them, with its prior."""

    kind: Call
    prior: Call | None = None
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Layer:
    """`layer name: candidates -> channels stride s |> activations`; a name may be a path, `stage/l1`."""

    name: Word | None
    candidates: tuple[Candidate, ...]
    channels: Expression
    stride: Expression | None = None
    activations: tuple[Call, ...] = ()
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Use:
    """`use block(arguments) as name`: the items of a block, at this place of a network."""

    block: Call
    name: Word | None = None
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)

    @property
    def title(self) -> Span:
        """The place of its name, or of its block's name if it has none."""
        return (self.name or self.block.name).span


@attrs.frozen
class Repeat:
    """`repeat values as names { items }`."""

    values: Expression
    names: tuple[Word, ...]
    unpack: bool
    items: tuple[Item, ...]
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)
    brace: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Residual:
    """`residual { items }`: what the items make of the map, added to it."""

    items: tuple[Item, ...]
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)
    brace: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Average:
    """`average affine(...) { items }`: the mean of what the items make of transformed copies of the map."""

    transformation: Call
    items: tuple[Item, ...]
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)
    brace: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Project:
    """`project max|mean`."""

    reduction: Word
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Pool:
    """`pool max|mean`."""

    reduction: Word
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Flatten:
    """`flatten`."""

    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


Item: TypeAlias = Input | Lift | Layer | Use | Repeat | Residual | Average | Project | Pool | Flatten | Unread


@attrs.frozen
class Block:
    """`block name(parameters) { items }`: items that networks use; `parameters` is `None` without parentheses."""

    name: Word
    parameters: tuple[Parameter, ...] | None
    items: tuple[Item, ...]
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)
    brace: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Network:
    """`network name(parameters) { items }`; `parameters` is `None` without parentheses."""

    name: Word
    parameters: tuple[Parameter, ...] | None
    items: tuple[Item, ...]
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)
    brace: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Instance:
    """`network name = template(arguments)`."""

    name: Word
    template: Call
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Pattern:
    """One part of a selector: a name in which `*` matches any letters, perhaps with arguments of a kind."""

    text: str
    arguments: tuple[Argument, ...] | None = None
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Rule:
    """`layer.candidate ~ prior` or `layer.candidate.tensor ~ prior`."""

    selector: tuple[Pattern, ...]
    prior: Call
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)

    @property
    def place(self) -> Span:
        """The place of the selector."""
        return self.selector[0].span.until(self.selector[-1].span)


@attrs.frozen
class Priors:
    """`prior { rules }`."""

    rules: tuple[Rule, ...]
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)
    brace: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Setting:
    """`key = value`."""

    name: Word
    value: Expression
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Search:
    """`search { settings }`."""

    settings: tuple[Setting, ...]
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)
    brace: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Profile:
    """`profile name { settings }`: overrides that are set together; a key may have a part before a dot."""

    name: Word
    settings: tuple[Setting, ...]
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)
    brace: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


Statement: TypeAlias = Let | Import | Data | Block | Network | Instance | Priors | Search | Profile | Unread


@attrs.frozen
class Comment:
    """A comment with its slashes, and whether it has its line to itself."""

    text: str
    alone: bool
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)


@attrs.frozen
class Program:
    """A parsed file: its statements, and its comments in the order of the text."""

    statements: tuple[Statement, ...]
    comments: tuple[Comment, ...] = attrs.field(default=(), eq=False, repr=False)
    span: Span = attrs.field(default=NOWHERE, eq=False, repr=False)
