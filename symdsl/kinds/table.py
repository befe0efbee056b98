"""The table of kinds: the built-in ones, and those that installed packages bring."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

import attrs

from symdsl.diagnostics import RunError, shortened
from symdsl.kinds.record import Kind, Refusal, Tensor

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT = "symdsl.kinds"
"""The entry point group under which a package offers its kinds, each by its name."""

_ERROR = re.compile(r"E\d{3}")
_WRITABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[FS]-[A-Z]{2,}")


class KindTable(Mapping[str, Kind]):
    """Kinds by name. Installed packages are asked only for names that are not built in, since asking takes a moment.

    Args:
        built_in: kinds that no package can replace.
    """

    def __init__(self, built_in: tuple[Kind, ...]) -> None:
        self.built_in: Mapping[str, Kind] = {kind.name: kind for kind in built_in}

    def __getitem__(self, name: str) -> Kind:
        """The kind of that name.

        Raises:
            KeyError: there is none.
            RunError: an installed package offers it, but it cannot be loaded.
        """
        return self.built_in[name] if name in self.built_in else _loaded(name)

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from (name for name in _offers() if name not in self.built_in)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@cache
def _offers() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT)}


@cache
def _loaded(name: str) -> Kind:
    entry = _offers()[name]
    try:
        kind = entry.load()
    except Exception as error:
        raise _unusable(entry, f"{type(error).__name__}: {error}") from error
    if not isinstance(kind, Kind):
        raise _unusable(entry, f"it must be a `Kind`, found `{type(kind).__name__}`")
    if not _WRITABLE.fullmatch(name):
        raise _unusable(entry, "specs cannot write its name: letters, digits and `_`, or `F-` or `S-` before capitals")
    if kind.name != name:
        raise _unusable(entry, f"its signature has another name, `{kind.name}`")
    for part in ("module", "weight_use"):
        if ":" not in (reference := getattr(kind, part)):
            raise _unusable(entry, f'`{part}` (="{reference}") must be "package.module:function"')
    answers: dict[str, Any] = {
        part: _checked(entry, part, getattr(kind, part)) for part in _ANSWERS if getattr(kind, part) is not None
    }
    return attrs.evolve(kind, **answers)


def _all(of: type, found: Any) -> bool:
    return isinstance(found, tuple | list) and all(isinstance(one, of) for one in found)


_ANSWERS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "tensors": ("a tuple of `Tensor`s", lambda found: _all(Tensor, found)),
    "preserves": ("a tuple of texts", lambda found: _all(str, found)),
    "multiply_adds": ("a whole number", lambda found: isinstance(found, int) and not isinstance(found, bool)),
    "refusal": (
        "`None`, or a `Refusal` whose code is that of an error, such as E202",
        lambda found: found is None or (isinstance(found, Refusal) and _ERROR.fullmatch(found.code) is not None),
    ),
    "fixed": ("a number", lambda found: isinstance(found, int | float)),
}
"""What the functions of a record answer: in words, and a test."""


def _checked(entry: EntryPoint, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a record, whose errors and wrong answers name the kind and its package."""
    words, fits = _ANSWERS[part]

    @wraps(function)
    def checked(*arguments: Any) -> Any:
        try:
            found = function(*arguments)
        except Exception as error:
            raise _unusable(entry, f"`{part}` fails with {type(error).__name__}: {error}") from error
        if not fits(found):
            raise _unusable(entry, f"`{part}` must return {words}, found {shortened(repr(found))}")
        return tuple(found) if isinstance(found, list) else found

    return checked


def _unusable(entry: EntryPoint, reason: str) -> RunError:
    package = entry.dist.name if entry.dist is not None else entry.value
    return RunError(f"the kind `{entry.name}` of the package `{package}` cannot be used: {reason}")
