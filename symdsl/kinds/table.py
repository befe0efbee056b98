"""The table of kinds: the built-in ones, and those that installed packages bring."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from symdsl.diagnostics import RunError
from symdsl.kinds.record import Kind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT = "symdsl.kinds"
"""The entry point group under which a package offers its kinds, each by its name."""

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
    return kind


def _unusable(entry: EntryPoint, reason: str) -> RunError:
    package = entry.dist.name if entry.dist is not None else entry.value
    return RunError(f"the kind `{entry.name}` of the package `{package}` cannot be used: {reason}")
