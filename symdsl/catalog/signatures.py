"""Types of arguments, and signatures: what can be called and with what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

Value = int | float | bool | str | tuple["Value", ...]


@attrs.frozen
class Whole:
    """A whole number within bounds, both included."""

    minimum: int = 1
    maximum: int = 2**63 - 1


@attrs.frozen
class Real:
    """A number within bounds; `above` and `below` exclude the bounds themselves."""

    minimum: float = 0.0
    maximum: float = float("inf")
    above: bool = False
    below: bool = False


@attrs.frozen
class Quoted:
    """A text in quotes."""


@attrs.frozen
class Switch:
    """`true` or `false`; the bare name of the argument means `true`."""


@attrs.frozen
class Choice:
    """One of several words."""

    options: tuple[str, ...]


@attrs.frozen
class Variant:
    """One of several options that take arguments of their own.

    Attributes:
        options: what can be written, each with its arguments.
        replaced: names that were options once, each with what to write now.
    """

    options: tuple[Signature, ...]
    replaced: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the options."""
        return tuple(option.name for option in self.options)

    def option(self, name: str) -> Signature:
        """Return the signature of the option of that name."""
        return next(option for option in self.options if option.name == name)


Type: TypeAlias = Whole | Real | Quoted | Switch | Choice | Variant


@attrs.frozen
class Required:
    """The default of an argument that must be given."""


REQUIRED = Required()


@attrs.frozen
class Parameter:
    """An argument that can be given, with its type, default and description.

    Attributes:
        name: as written before `=`.
        type: what is accepted.
        default: what stands for it where it is not given: `REQUIRED`, `None` (left out), or a value; for a
            `Variant`, the name of an option.
        about: what it means, in a few words.
        by_name: whether it must be given by its name, so that no number too many is taken for it.
    """

    name: str
    type: Type
    default: Value | Required | None = REQUIRED
    about: str = ""
    by_name: bool = False

    @property
    def default_words(self) -> str:
        """The default as a spec would write it; empty if there is none."""
        return "" if self.default is None or self.default is REQUIRED else self.words(self.default)

    def words(self, value: object) -> str:
        """Return a value as a spec would write it."""
        if isinstance(value, bool):
            return str(value).lower()
        return json.dumps(value, ensure_ascii=False) if isinstance(self.type, Quoted) else str(value)

    @property
    def usage(self) -> str:
        """The argument with its default, if it has one, as a spec would write it."""
        return f"{self.name} = {self.default_words}" if self.default_words else self.name


@attrs.frozen
class Signature:
    """Something that can be called: its name, arguments and description.

    Attributes:
        name: as written.
        parameters: in the order in which they can be given without their names.
        about: what it means, in a few words.
        replaced: names of arguments that it had once, each with what to write now.
    """

    name: str
    parameters: tuple[Parameter, ...] = ()
    about: str = ""
    replaced: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its arguments, in order."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def usage(self) -> str:
        """A call with all arguments and their defaults: `mc(samples = 1)`."""
        return f"{self.name}({', '.join(one.usage for one in self.parameters)})" if self.parameters else self.name

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of that name, or nothing."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    def options(self) -> Iterator[Signature]:
        """Yield the options of its arguments, and those of their own arguments in turn."""
        for parameter in self.parameters:
            if isinstance(parameter.type, Variant):
                for option in parameter.type.options:
                    yield option
                    yield from option.options()

    def words(self) -> Iterable[str]:
        """Yield every predefined word that can stand in its arguments."""
        for parameter in self.parameters:
            match parameter.type:
                case Choice(options):
                    yield from options
                case Switch():
                    yield parameter.name
                case Variant(options):
                    for option in options:
                        yield option.name
                        yield from option.words()
