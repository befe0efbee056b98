"""A page as values, and as one HTML file that fetches nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources

import attrs

from symdsl.diagnostics import RunError
from symdsl.report.charts import Chart, Pair

Cell = tuple[str, bool]
"""The text of a cell, and whether it is bold."""


@attrs.frozen
class Table:
    """A table of a page.

    Attributes:
        heads: title and side of every column.
        rows: cells under them.
        swatches: for each row colours by the number of the column that they are shown in; or none at all.
    """

    heads: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Cell]]
    swatches: Sequence[Mapping[int, Pair]] = ()


@attrs.frozen
class Section:
    """A section of a page.

    Attributes:
        title: of the part.
        words: a sentence below it.
        charts: drawn side by side where there is room.
        tables: below the charts.
        pictures: each an address that holds it, a caption, and a second line of it.
        large: whether the pictures are drawings of networks.
        picture: a drawing beside the spec.
        spec: as HTML, with the classes of `highlight.classes_css`.
    """

    title: str
    words: str = ""
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[tuple[str, str, str]] = ()
    large: bool = False
    picture: str = ""
    spec: str = ""

    @property
    def filled(self) -> bool:
        """Whether the section has any content."""
        return bool(self.charts or self.tables or self.pictures or self.picture or self.spec)


@attrs.frozen
class Page:
    """A page with its title and sections.

    Attributes:
        title: what it is about.
        facts: in short, in a line below the title.
        tiles: a name and a figure each.
        sections: in order.
    """

    title: str
    facts: Sequence[str]
    tiles: Sequence[tuple[str, str]]
    sections: Sequence[Section]


def page(content: Page) -> str:
    """Return a page as one HTML file.

    Raises:
        RunError: the packages of the extra `report` are missing.
    """
    try:
        from jinja2 import Environment, StrictUndefined
        from plotly.offline import get_plotlyjs
    except ModuleNotFoundError as error:
        raise RunError(f"a report needs `{error.name}`: run `pip install 'symdsl[report]'`") from error
    from symdsl.highlight import classes_css

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    charts = [chart.content() for section in content.sections for chart in section.charts]
    safe_in_script = json.dumps(charts, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return environment.from_string(_shipped("page.html")).render(
        page=content,
        css=_shipped("page.css"),
        light=classes_css("friendly"),
        dark=classes_css("github-dark"),
        script=_shipped("page.js"),
        plotly=get_plotlyjs() if charts else "",
        charts=safe_in_script,
    )


def _shipped(name: str) -> str:
    return resources.files("symdsl.report").joinpath(name).read_text(encoding="utf-8")
