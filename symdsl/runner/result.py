"""What a search returns: the content of its result, with its folder and its spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from symdsl import render
from symdsl.render.page import picture_or_warning
from symdsl.spec import Spec


@attrs.frozen(eq=False)
class Recorded(Mapping[str, Any]):
    """A result as a mapping with the keys of its JSON file.

    Attributes:
        content: what that file holds.
        folder: the folder that it is in.
        spec: the spec as run.
    """

    content: dict[str, Any] = attrs.field(repr=False)
    folder: Path
    spec: Spec = attrs.field(repr=False)

    def __getitem__(self, key: str) -> Any:
        return self.content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.content)

    def __len__(self) -> int:
        return len(self.content)

    def __fspath__(self) -> str:
        return str(self.folder)


@attrs.frozen(eq=False)
class Result(Recorded):
    """The result of a search, recorded in the `result.json` of its run folder."""

    def _repr_svg_(self) -> str | None:
        return picture_or_warning(partial(render.architecture, self.spec.graph(), self.content, "svg"))

    def _repr_html_(self) -> str:
        return render.result_html(self.content, self._repr_svg_())

    def _repr_markdown_(self) -> str:
        return render.result_markdown(self.content)
