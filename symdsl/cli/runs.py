"""The commands about existing runs: `runs`, `show`, `report` and `eval`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from symdsl.cli.options import (
    PATH,
    data_option,
    device_option,
    json_option,
    new_output,
    output_option,
    view_option,
)
from symdsl.cli.terminal import deliver, note, refuse_overwriting, say
from symdsl.diagnostics import RunError
from symdsl.views import RUN_VIEWS, SEEDS_VIEWS, SWEEP_VIEWS, json_bytes, runs_bytes

if TYPE_CHECKING:
    from symdsl.analysis.overrides import Override


@click.command()
@click.argument("run", type=PATH)
@view_option("--emit", RUN_VIEWS, "table", "What to show.")
@output_option(callback=partial(new_output, drawn=False), help="Write to this file, not to standard output.")
def show(run: Path, view: str, output: Path | None) -> None:
    """Show the layer table of a run or of several seeds, or draw its picture; of a sweep, means over its seeds."""
    refuse_overwriting((), output)
    deliver(lambda: run_view(run, view), view, output)


@click.command()
@click.argument("folder", type=PATH, default="runs", metavar="[DIR]")
@json_option
def runs(folder: Path, as_json: bool) -> None:
    """List the runs below DIR, by default `runs`: status, spec, seed, metrics, time, and which can be resumed."""
    from symdsl.runs.listing import listed

    found = [one.content() for one in listed(folder)]
    if as_json:
        click.echo(json_bytes(found), nl=False)
    elif found:
        click.echo(runs_bytes(found), nl=False)
    else:
        say(f"no runs in {folder}")


@click.command()
@click.argument("runs", type=PATH, nargs=-1, required=True, metavar="RUN...")
@output_option(default="report.html", show_default=True, help="Write the page to this file.")
@click.option("--open", "opened", is_flag=True, help="Open the page when it is written.")
def report(runs: tuple[Path, ...], output: Path, opened: bool) -> None:
    """Write one HTML page about a run, or about several side by side; the page works offline.

    A RUN may be the folder of several seeds or of a sweep, which stands for all runs in it.
    """
    from symdsl.report import report_html, without_damaged
    from symdsl.runs import write_atomic

    refuse_overwriting((), output)
    write_atomic(output, report_html(without_damaged(runs, note)).encode())
    click.echo(f"report: {output}")
    if opened:
        click.launch(str(output))


@click.command()
@click.argument("run", type=PATH)
@click.argument("inputs", type=PATH, nargs=-1, metavar="[INPUT]...")
@data_option
@device_option
@json_option
def eval(run: Path, inputs: tuple[Path, ...], settings: dict[str, Override], device: str, as_json: bool) -> None:
    """Measure the network of a finished run on its test data, or on labelled inputs.

    An INPUT is a folder with a folder of PNG or JPEG files for each class, or an .npz file with arrays `x` and `y`; it
    goes through the transforms of the run's data, except those that draw at random.
    """
    from symdsl.render.cells import number_text
    from symdsl.runner import evaluate

    if inputs and settings:
        raise click.UsageError("`--set` changes the run's data, and INPUT stands in their place: give one of them")
    metrics = evaluate(run, settings, device, tell=note, inputs=inputs or None)
    if as_json:
        click.echo(json_bytes(metrics), nl=False)
        return
    for name, value in metrics.items():
        if value is not None:
            click.echo(f"{name}: {number_text(value) if 0 < abs(value) < 1e-3 else f'{value:.4f}'}")


def show_result(folder: Path, as_json: bool) -> None:
    """Print the table of a run that has ended, of several seeds or of a sweep, or the same as JSON."""
    deliver(lambda: run_view(folder, "json" if as_json else "table"), "table", None)


def run_view(folder: Path, emit: str) -> bytes:
    """Return a view of a run, or of a search with several seeds, as bytes to print."""
    from symdsl.runs import RunFolder, SeedsFolder, SweepFolder

    if SweepFolder.is_one(folder):
        if emit not in SWEEP_VIEWS:
            raise RunError(f"{folder}: a sweep has no picture; choose one of its runs")
        return SWEEP_VIEWS[emit](SweepFolder.view(folder))
    if SeedsFolder.is_one(folder):
        return SEEDS_VIEWS[emit](SeedsFolder.view(folder))
    run = RunFolder.view(folder)
    run.refuse_damaged()
    return RUN_VIEWS[emit](run)
