"""The views of a network and of a run: one function for each, which returns the bytes to print or save."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from symdsl.diagnostics import RunError

if TYPE_CHECKING:
    from symdsl.render import Format
    from symdsl.runs import RunFolder, SeedsFolder, SweepFolder
    from symdsl.spec import Spec

_SAVED: ContextVar[bool] = ContextVar("_SAVED", default=False)

PICTURES: tuple[Format, ...] = ("dot", "svg", "png", "pdf")
BINARY = frozenset({"png", "pdf"})


def json_bytes(value: Any) -> bytes:
    """Return a value as indented JSON, with a newline at the end; numbers that are not finite become null."""
    from symdsl.runs.files import json_content

    return json_content(value)


def saved(view: Callable[[], bytes]) -> bytes:
    """Return a view as it is saved: a table is plain and wide, whatever the terminal."""
    token = _SAVED.set(True)
    try:
        return view()
    finally:
        _SAVED.reset(token)


def _table_bytes(table: Any) -> bytes:
    """A table as text: as wide as the terminal and styled if it is printed on one, plain and wide elsewhere."""
    from symdsl.render import table_text

    return table_text(table, terminal=sys.stdout.isatty() and not _SAVED.get()).encode(errors="replace")


def data_bytes(content: Mapping[str, Any]) -> bytes:
    """Return what `symdsl data` prints, from the content of an inspection."""
    from symdsl.render import data_tables

    return _table_bytes(data_tables(content))


def audit_bytes(content: Mapping[str, Any]) -> bytes:
    """Return what `symdsl audit` prints, from the audit as JSON has it."""
    from symdsl.render.audit import audit_table

    return _table_bytes(audit_table(content))


def runs_bytes(runs: Sequence[Mapping[str, Any]]) -> bytes:
    """Return what `symdsl runs` prints, from the contents of a list of runs."""
    from symdsl.render import runs_table

    return _table_bytes(runs_table(runs))


def _network_table(spec: Spec) -> bytes:
    from symdsl.render import compile_table

    return _table_bytes(compile_table(spec.graph()))


def _network_json(spec: Spec) -> bytes:
    from symdsl.graph import summary_json

    return json_bytes(summary_json(spec.graph(), spec.facts.search.batch))


def _network_graph(spec: Spec) -> bytes:
    from symdsl.graph import to_json

    return json_bytes(to_json(spec.graph()))


def _network_picture(format: Format, spec: Spec) -> bytes:
    from symdsl.render import architecture

    return architecture(spec.graph(), None, format)


def _run_table(run: RunFolder) -> bytes:
    from symdsl.render import result_table

    return _table_bytes(result_table(run.read_result()))


def _run_json(run: RunFolder) -> bytes:
    return json_bytes(run.read_result())


def _run_picture(format: Format, run: RunFolder) -> bytes:
    from symdsl.render import architecture

    return architecture(run.read_graph(), run.read_result(), format)


def _seeds_table(folder: SeedsFolder) -> bytes:
    from symdsl.render import seeds_table

    return _table_bytes(seeds_table(folder.content()))


def _seeds_json(folder: SeedsFolder) -> bytes:
    return json_bytes(folder.content())


def _seeds_picture(format: Format, folder: SeedsFolder) -> bytes:
    from symdsl.render import mean_architecture
    from symdsl.runs import RunFolder

    finished = folder.finished()
    if not finished:
        raise RunError(f"{folder.path}: no seed is finished, there is nothing to draw yet")
    return mean_architecture(RunFolder.view(folder.run(finished[0])).read_graph(), folder.content(), format)


def _sweep_table(folder: SweepFolder) -> bytes:
    from symdsl.render.sweeps import sweep_table

    return _table_bytes(sweep_table(folder.rows(), folder.axes))


def _sweep_json(folder: SweepFolder) -> bytes:
    return json_bytes(folder.rows())


def _predictions_table(content: Mapping[str, Any]) -> bytes:
    from symdsl.render.predictions import predictions_table

    return _table_bytes(predictions_table(content))


def _predictions_csv(content: Mapping[str, Any]) -> bytes:
    from symdsl.render.predictions import predictions_csv

    return predictions_csv(content)


PREDICTION_VIEWS: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
    "table": _predictions_table,
    "csv": _predictions_csv,
    "json": json_bytes,
}
"""Views of predictions, by the name `predict --format` has for them."""

NETWORK_VIEWS: dict[str, Callable[[Spec], bytes]] = {
    "summary": _network_table,
    "json": _network_json,
    "graph": _network_graph,
    **{format: partial(_network_picture, format) for format in PICTURES},
}
"""Views of a network, by the name `compile --emit` has for them."""

RUN_VIEWS: dict[str, Callable[[RunFolder], bytes]] = {
    "table": _run_table,
    "json": _run_json,
    **{format: partial(_run_picture, format) for format in PICTURES},
}
"""Views of a run, by the name `show --emit` has for them."""

SEEDS_VIEWS: dict[str, Callable[[SeedsFolder], bytes]] = {
    "table": _seeds_table,
    "json": _seeds_json,
    **{format: partial(_seeds_picture, format) for format in PICTURES},
}
"""Views of a search with several seeds, by the same names; the picture shows mean shares."""

SWEEP_VIEWS: dict[str, Callable[[SweepFolder], bytes]] = {"table": _sweep_table, "json": _sweep_json}
"""Views of a sweep, by the same names."""
