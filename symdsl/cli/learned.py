"""The commands that use what a run learned: `audit`, `predict` and `export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from symdsl.analysis.overrides import Override
from symdsl.cli.options import PATH, data_option, device_option, json_option, output_option, view_option
from symdsl.cli.terminal import deliver, note, refuse_overwriting
from symdsl.groups import ORBITS, is_orbit
from symdsl.views import PREDICTION_VIEWS, audit_bytes, json_bytes

if TYPE_CHECKING:
    from symdsl.runner import Run

TARGETS = ("pt2", "onnx", "torch")


def orbit_name(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Check the name of an orbit; whether it fits the images is checked when they are known."""
    if not is_orbit(value):
        raise click.BadParameter(f"`{value}` must be {ORBITS}", ctx, param)
    return value


@click.command()
@click.argument("run", type=PATH, metavar="RUN|SPEC")
@click.option(
    "--group",
    callback=orbit_name,
    default="p4",
    show_default=True,
    metavar="G",
    help="Movements of the input: p4 (quarter turns), p4m (with flips), translations, or rotations(n).",
)
@data_option
@output_option(help="File of the picture, an SVG; by default audit.svg, in the run's folder or, for a SPEC, here.")
@device_option
@json_option
def audit(
    run: Path, group: str, settings: dict[str, Override], output: Path | None, device: str, as_json: bool
) -> None:
    """Measure how invariant a classifier is: compare outputs, saliency maps and layers of moved test images.

    For a SPEC, which ends with `.sym`, the network is measured with its initial weights.
    """
    import attrs

    from symdsl.runner import audit_spec_or_run
    from symdsl.runs import write_atomic

    is_spec = run.suffix == ".sym"
    if is_spec:
        refuse_overwriting([run], output)
    if output is not None and output.suffix.lower() not in ("", ".svg"):
        raise click.UsageError(f"the picture is an SVG: name a file that ends with `.svg`, not `{output}`")
    done = audit_spec_or_run(run, group, device, note, settings)
    path = output or (Path("audit.svg") if is_spec else run / "audit.svg")
    content = attrs.asdict(done.found)
    click.echo(json_bytes(content) if as_json else audit_bytes(content), nl=False)
    write_atomic(path, done.picture)
    note(f"picture: {path}")


@click.command()
@click.argument("run", type=PATH)
@click.argument("inputs", type=PATH, nargs=-1, required=True, metavar="INPUT...")
@view_option("--format", PREDICTION_VIEWS, "table", "What to print.")
@output_option(help="Write to this file, not to standard output.")
@click.option(
    "--map", "plain", is_flag=True, help="Print the network's own outputs, without the uncertainty of its weights."
)
@device_option
def predict(run: Path, inputs: tuple[Path, ...], view: str, output: Path | None, plain: bool, device: str) -> None:
    """Predict classes and probabilities, or targets, of new images or arrays by a finished run.

    An INPUT is a PNG or JPEG file, a folder of them, or an .npz file with an array `x`; it goes through the transforms
    of the run's data, except those that draw at random. Where that helps, probabilities take in the uncertainty of
    the last layer's weights. For a regression, means and standard deviations are printed.
    """
    from symdsl.data.inputs import input_files, read_inputs
    from symdsl.runner import load_run

    refuse_overwriting(input_files(inputs), output)
    loaded = load_run(run, device)
    names, x = read_inputs(inputs, loaded.prepare)
    for remark in loaded.prepare.remarks(x):
        note(remark)
    content = predictions(loaded, names, x, not plain)
    deliver(lambda: PREDICTION_VIEWS[view](content), view, output)


def predictions(run: Run, names: list[str], x: Any, calibrated: bool) -> dict[str, Any]:
    """Return what a run predicts for these inputs, as plain values."""
    found = run.predict(x, calibrated)
    if found.probabilities is not None:
        by_class = found.probabilities.tolist()
        outcomes = [{"class": run.classes[one.index(max(one))], "probabilities": one} for one in by_class]
    else:
        assert found.mean is not None, "it is a regression"
        assert found.std is not None, "it is a regression"
        pairs = zip(found.mean.tolist(), found.std.tolist(), strict=True)
        outcomes = [{"mean": mean, "std": std} for mean, std in pairs]
    answers = [{"input": name, **one} for name, one in zip(names, outcomes, strict=True)]
    calibrated = calibrated and run.posterior().temperature > 0
    named = "targets" if found.probabilities is None else "classes"
    return {"calibrated": calibrated, named: list(run.classes), "predictions": answers}


@click.command()
@click.argument("run", type=PATH)
@click.option(
    "--to",
    type=click.Choice(TARGETS),
    required=True,
    help="pt2: a program of torch.export; onnx; torch: a folder with a readable model.py and its weights.",
)
@output_option(help="File, or folder, to write; by default SPEC.pt2, SPEC.onnx or SPEC-torch.")
def export(run: Path, to: str, output: Path | None) -> None:
    """Write the network of a finished run as a file or folder that works without symdsl.

    It takes any number of inputs at a time. What was written is read back and compared with the network.
    """
    from symdsl.export import FORMATS, export_run
    from symdsl.runner import load_run

    loaded = load_run(run, "cpu")
    path = output or Path(f"{loaded.result['spec']}{FORMATS[to].suffix}")
    export_run(loaded, to, path)
    click.echo(f"{to}: {path}")
