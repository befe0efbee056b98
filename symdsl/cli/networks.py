"""The commands about a network before it learns: `data`, what it will see, and `compile`, what it costs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click

from symdsl.cli.options import (
    PATH,
    SEED,
    device_name,
    json_option,
    new_output,
    output_option,
    set_option,
    spec_argument,
    view_option,
)
from symdsl.cli.terminal import deliver, note, refuse_overwriting, say, tell
from symdsl.diagnostics import RunError
from symdsl.views import NETWORK_VIEWS, data_bytes, json_bytes

if TYPE_CHECKING:
    from symdsl.analysis.overrides import Override
    from symdsl.spec import Spec


@click.command()
@spec_argument
@view_option("--emit", NETWORK_VIEWS, "summary", "What to show.")
@output_option(help="Write to this file, not to standard output.")
@set_option
@click.option(
    "--device", callback=device_name, metavar="DEVICE", help="Also time one batch there: auto, cpu or cuda[:n]."
)
def compile(spec: Path, view: str, output: Path | None, settings: Mapping[str, Override], device: str | None) -> None:
    """Show shapes, parameters, costs and symmetry of every layer and candidate; nothing is trained."""
    loaded = load(spec, settings)
    _check_brought(loaded)
    refuse_overwriting([spec], output)
    measured: Mapping[str, Any] = {}
    if device:
        from symdsl.runner import probe

        measured = probe(loaded, device)
    deliver(lambda: NETWORK_VIEWS[view](loaded), view, output)
    for name, value in measured.items():
        (click.echo if view == "summary" else say)(f"{name}: {value}")


@click.command()
@spec_argument
@set_option
@click.option("--seed", type=SEED, metavar="N", help="Use this seed for random draws, not the spec's.")
@click.option("--examples", type=click.IntRange(1, 100), default=8, show_default=True, help="Pictures per row.")
@click.option(
    "--out", type=PATH, callback=new_output, help="File of the pictures, a PNG; by default runs/SPEC/data.png."
)
@click.option("--open", "opened", is_flag=True, help="Open the pictures when they are written.")
@json_option
def data(
    spec: Path,
    settings: dict[str, Override],
    seed: int | None,
    examples: int,
    out: Path | None,
    opened: bool,
    as_json: bool,
) -> None:
    """Show the data that a network will see: counts, means, labels, and a sheet of pictures.

    Counts and means are shown after each step of the data statement, pictures after the last.
    """
    from symdsl.runs.files import DATA_PICTURE

    if out is not None and out.suffix.lower() != ".png":
        better = out.with_suffix(".png") if out.name else out / DATA_PICTURE
        raise click.UsageError(f"`--out` (={out}) must be a PNG: name it `{better}`")
    loaded = load(spec, settings)
    from symdsl.data import inspect

    path = out or Path("runs", loaded.name, DATA_PICTURE)
    found = inspect(loaded, seed, examples)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(found.picture)
    click.echo(json_bytes(found.content) if as_json else data_bytes(found.content), nl=False)
    if found.content["mapped"]:
        say(f"note: {found.content['mapped']}")
    (say if as_json else click.echo)(f"pictures: {path}")
    if opened:
        click.launch(str(path))


def _check_brought(spec: Spec) -> None:
    """Report what the kinds of installed packages lack; the built-in ones lack nothing, and are not waited for."""
    from symdsl.kinds import KINDS

    layers = spec.facts.network.layers
    if any(one.kind not in KINDS.built_in for layer in layers for one in layer.candidates):
        from symdsl.lowering import check_brought

        check_brought(layers)


def load(path: Path, settings: Mapping[str, Override], quiet: bool = False) -> Spec:
    """Load a spec, and print its warnings and what a profile changes, unless it is to be quiet.

    The spec in a run's folder, and what was learned, have the name of the run's spec.
    """
    from symdsl import spec

    loaded = spec.load(path, settings)
    if path.name in ("spec.sym", "learned.sym") and (path.parent / "run.json").exists():
        from symdsl.runs import RunFolder

        with contextlib.suppress(RunError):
            name = RunFolder.view(path.parent).read_info()["spec"]
            loaded = attrs.evolve(loaded, name=name, facts=attrs.evolve(loaded.facts, name=name))
    if not quiet:
        tell(loaded.warnings)
        note(loaded.profile)
    return loaded
