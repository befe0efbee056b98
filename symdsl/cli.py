"""The command line: reads arguments, calls the package, prints. What a command needs is imported inside it."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import attrs
import rich_click as click

from symdsl import __version__
from symdsl.diagnostics import (
    Diagnostic,
    NumericalError,
    RunError,
    SpecError,
    render_github,
    render_json,
    render_text,
)
from symdsl.progress import discard_unwritable, observer
from symdsl.views import BINARY, NETWORK_VIEWS, RUN_VIEWS, json_bytes

if TYPE_CHECKING:
    from symdsl.runner.searching import Objective
    from symdsl.spec import Spec

SPEC_WRONG, FAILED, INTERRUPTED = 1, 3, 130


class _Commands(click.RichGroup):
    """The group of all commands, and the one place where an exception becomes a line and an exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; exits with the status that belongs to what went wrong, if anything does."""
        try:
            super().invoke(ctx)
        except SpecError as error:
            _tell(error.diagnostics)
            sys.exit(SPEC_WRONG)
        except (RunError, NumericalError) as error:
            _fail(str(error))
        except BrokenPipeError:
            discard_unwritable(sys.stdout)  # whoever read the pipe has seen enough
        except OSError as error:
            discard_unwritable(sys.stdout)
            _fail(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)


def _tell(diagnostics: Sequence[Diagnostic]) -> None:
    if diagnostics:
        colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
        click.echo(render_text(diagnostics, colour), err=True)


def _fail(reason: str) -> NoReturn:
    click.echo(f"error: {' '.join(reason.split())}", err=True)
    sys.exit(FAILED)


def _device(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A device's name, checked; whether the device is there is found out when it is used."""
    if value is not None and not re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
        raise click.BadParameter(f"`{value}` must be auto, cpu, cuda or cuda:n", ctx, param)
    return value


def _settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for value in values:
        name, equals, content = (part.strip() for part in value.partition("="))
        if not (name and equals and content):
            raise click.BadParameter(f"`{value}` must have the form K=V", ctx, param)
        settings[name] = content
    return settings


def _data_settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    settings = _settings(ctx, param, values)
    for name in settings:
        if name.partition(".")[0] != "data":
            raise click.BadParameter(
                f"`{name}` must begin with `data`: nothing else of a finished run can change", ctx, param
            )
    return settings


_PATH = click.Path(path_type=Path)
_spec_argument = click.argument("spec", type=_PATH)
_set_option = click.option(
    "--set", "settings", multiple=True, metavar="K=V", callback=_settings, help="Override a `let` or a key of the spec."
)
_device_option = click.option(
    "--device", callback=_device, metavar="DEVICE", default="auto", show_default=True, help="auto, cpu or cuda[:n]."
)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(version)s")
def main() -> None:
    """Learn from training data which structure each layer of a network wants."""


@main.command()
@click.argument("specs", type=_PATH, nargs=-1, required=True, metavar="SPEC...")
@click.option(
    "--format", type=click.Choice(["text", "json", "github"]), default="text", help="How diagnostics are shown."
)
@click.option("--strict", is_flag=True, help="Count warnings as errors.")
def check(specs: tuple[Path, ...], format: str, strict: bool) -> None:
    """Say what is wrong with specs, and where."""
    found = [diagnostic for spec in specs for diagnostic in _diagnostics(spec)]
    _REPORTS[format](found)
    if any(strict or diagnostic.severity == "error" for diagnostic in found):
        sys.exit(SPEC_WRONG)


def _diagnostics(path: Path) -> tuple[Diagnostic, ...]:
    from symdsl import spec

    try:
        return spec.load(path).warnings
    except SpecError as error:
        return error.diagnostics


def _report_json(found: Sequence[Diagnostic]) -> None:
    click.echo(render_json(found))


def _report_github(found: Sequence[Diagnostic]) -> None:
    if found:
        click.echo(render_github(found))


_REPORTS: dict[str, Callable[[Sequence[Diagnostic]], None]] = {
    "text": _tell,
    "json": _report_json,
    "github": _report_github,
}


@main.command()
@click.argument("code")
def explain(code: str) -> None:
    """Say what a diagnostic means, with an example."""
    from symdsl.analysis.codes import explanation

    click.echo(explanation(code))


@main.command()
@click.argument("name")
def new(name: str) -> None:
    """Write NAME.sym, a spec to start from."""
    from symdsl.resources import read_shipped

    stem = name.removesuffix(".sym")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", stem):
        raise click.BadParameter(
            f"`{name}` must be letters, digits, `_` and `-`, and not begin with a digit", param_hint="NAME"
        )
    path = Path(f"{stem}.sym")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(read_shipped("specs/starter.sym"))
    except FileExistsError as error:
        raise RunError(f"`{path}` exists already: choose another name") from error
    click.echo(f"{path} written; run `symdsl search {path}`")


@main.command()
@_spec_argument
@click.option("--emit", type=click.Choice(list(NETWORK_VIEWS)), default="summary")
@click.option("-o", "--output", type=_PATH, help="Write to a file.")
@_set_option
@click.option("--device", callback=_device, metavar="DEVICE", help="Also run one batch there: auto, cpu or cuda[:n].")
def compile(spec: Path, emit: str, output: Path | None, settings: Mapping[str, str], device: str | None) -> None:
    """Show what a network costs and what it is equivariant to, per layer and candidate."""
    loaded = _load(spec, settings)
    measured = _probe(loaded, device) if device else {}
    _deliver(NETWORK_VIEWS[emit](loaded), emit, output)
    for name, value in measured.items():
        click.echo(f"{name}: {value}", err=emit != "summary")


def _probe(spec: Spec, device: str) -> Mapping[str, Any]:
    from symdsl.runner import probe

    return probe(spec, device)


def _load(path: Path, settings: Mapping[str, str], quiet: bool = False) -> Spec:
    from symdsl import spec

    loaded = spec.load(path, settings)
    _tell(() if quiet else loaded.warnings)
    return loaded


def _deliver(content: bytes, emit: str, output: Path | None) -> None:
    if output is not None:
        output.write_bytes(content)
    elif emit in BINARY and sys.stdout.isatty():
        raise click.UsageError(f"{emit} does not belong on a terminal: name a file with `-o FILE`")
    else:
        click.echo(content, nl=False)


@attrs.frozen
class _Request:
    """What `search` and `map` are asked to do, one attribute per option."""

    spec: Path
    device: str
    out: Path | None
    resume: Path | None
    settings: dict[str, str]
    seed: int | None
    quiet: bool
    as_json: bool

    @property
    def overrides(self) -> dict[str, str]:
        """What the command line says instead of the spec."""
        return self.settings if self.seed is None else {**self.settings, "search.seed": str(self.seed)}

    def resumption(self, command: str, folder: Path) -> str:
        """The command that goes on with an interrupted run."""
        settings = [word for item in self.overrides.items() for word in ("--set", "=".join(item))]
        device = ["--device", self.device] if self.device != "auto" else []
        return shlex.join(["symdsl", command, str(self.spec), *settings, *device, "--resume", str(folder)])


def _search_options(command: Callable[..., None]) -> Callable[..., None]:
    options = (
        _spec_argument,
        _device_option,
        click.option("--out", type=_PATH, help="Run folder; by default one under runs/."),
        click.option("--resume", type=_PATH, help="Go on with the interrupted run in this folder."),
        _set_option,
        click.option("--seed", type=click.IntRange(min=0), help="Override the spec's seed."),
        click.option("--quiet", is_flag=True, help="Say nothing while running."),
        _json_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


_OBJECTIVES: dict[str, Objective] = {"search": "laplace", "map": "map"}


@main.command()
@_search_options
def search(**options: Any) -> None:
    """Train a network, learn its layer types and draw the result."""
    _search("search", _Request(**options))


@main.command()
@_search_options
def map(**options: Any) -> None:
    """Train the same network without learning the priors: the baseline."""
    _search("map", _Request(**options))


def _search(command: str, request: _Request) -> None:
    if request.out and request.resume:
        raise click.UsageError("`--out` and `--resume` exclude each other: a resumed run stays in its folder")
    spec = _load(request.spec, request.overrides, request.quiet)
    from symdsl import runner

    with observer(request.quiet) as watcher:
        try:
            result = runner.search(
                spec,
                device=request.device,
                out=request.out,
                resume=request.resume,
                objective=_OBJECTIVES[command],
                observer=watcher,
            )
        except KeyboardInterrupt:
            if watcher.folder is None:
                raise
            watcher.note(f"interrupted; go on with: {request.resumption(command, watcher.folder)}")
            sys.exit(INTERRUPTED)
    _show_result(result.folder, request.as_json)


def _show_result(folder: Path, as_json: bool) -> None:
    from symdsl.runs import RunFolder

    click.echo(RUN_VIEWS["json" if as_json else "table"](RunFolder.view(folder)), nl=False)
    if not as_json:
        click.echo(f"picture: {folder / 'architecture.svg'}")


@main.command()
@click.argument("run", type=_PATH)
@click.option("--emit", type=click.Choice(list(RUN_VIEWS)), default="table", show_default=True, help="What to show.")
@click.option("-o", "--output", type=_PATH, help="Write to a file.")
def show(run: Path, emit: str, output: Path | None) -> None:
    """Show the layer table of a run, or draw its picture."""
    from symdsl.runs import RunFolder

    _deliver(RUN_VIEWS[emit](RunFolder.view(run)), emit, output)


@main.command()
@click.argument("run", type=_PATH)
@click.option(
    "--set", "settings", multiple=True, metavar="data.K=V", callback=_data_settings, help="Evaluate on other data."
)
@_device_option
@_json_option
def eval(run: Path, settings: dict[str, str], device: str, as_json: bool) -> None:
    """Measure a learned network on its test data."""
    from symdsl.runner import evaluate

    metrics = evaluate(run, settings, device)
    if as_json:
        click.echo(json_bytes(metrics), nl=False)
        return
    for name, value in metrics.items():
        if value is not None:
            click.echo(f"{name}: {value:.4f}")
