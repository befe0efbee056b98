"""The command line: reads arguments, calls the package, prints. What a command needs is imported inside it."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import attrs
import rich_click as click

from symdsl import __version__
from symdsl.diagnostics import (
    Collector,
    Diagnostic,
    NumericalError,
    RunError,
    SpecError,
    render_github,
    render_json,
    render_text,
    wants_colour,
)
from symdsl.progress import Observers, Silent, discard_unwritable, observer, observers
from symdsl.runs.schema import MOST_SEEDS
from symdsl.views import BINARY, NETWORK_VIEWS, RUN_VIEWS, SEEDS_VIEWS, data_bytes, json_bytes

if TYPE_CHECKING:
    from symdsl.analysis.overrides import Override
    from symdsl.runner.searching import Objective
    from symdsl.spec import Spec

SPEC_WRONG, FAILED, INTERRUPTED = 1, 3, 130


_ORDER = ("new", "check", "fmt", "explain", "data", "compile", "search", "map", "show", "eval", "lsp")


class _Commands(click.RichGroup):
    """The group of all commands, and the one place where an exception becomes a line and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the work, not of the alphabet."""
        return sorted(self.commands, key=_ORDER.index)

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
        colour = wants_colour(sys.stderr.isatty(), os.environ)
        click.echo(render_text(diagnostics, colour), err=True, color=colour)


def _fail(reason: str) -> NoReturn:
    click.echo(f"error: {' '.join(reason.split())}", err=True)
    sys.exit(FAILED)


def _device(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A device's name, checked; whether the device is there is found out when it is used."""
    if value is not None and not re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
        raise click.BadParameter(f"`{value}` must be auto, cpu, cuda or cuda:n", ctx, param)
    return value


def _settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Override]:
    """What is to be set, by key; of two for one key the later counts."""
    from symdsl.analysis.overrides import Override

    try:
        settings = [Override.parse(value, number) for number, value in enumerate(values, start=1)]
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error
    return {one.key: one for one in settings}


def _data_settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Override]:
    settings = _settings(ctx, param, values)
    for name in settings:
        if name.partition(".")[0] != "data":
            raise click.BadParameter(
                f"`{name}` must begin with `data`: nothing else of a finished run can change", ctx, param
            )
    return settings


def _seeds(ctx: click.Context, param: click.Parameter, value: str | None) -> int | tuple[int, ...] | None:
    """How many seeds, or which."""
    if value is None:
        return None
    if not re.fullmatch(r"\d{1,19}(,\d{1,19})*,?", value):
        raise click.BadParameter(f"`{value}` must be a number of seeds, or seeds separated by commas", ctx, param)
    numbers = tuple(int(one) for one in value.split(",") if one)
    if "," in value and len(set(numbers)) < len(numbers):
        raise click.BadParameter(f"`{value}` must be different seeds", ctx, param)
    count = len(numbers) if "," in value else numbers[0]
    if not 1 <= count <= MOST_SEEDS:
        raise click.BadParameter(f"`{value}` must be from 1 to {MOST_SEEDS} seeds", ctx, param)
    return numbers if "," in value else numbers[0]


_PATH = click.Path(path_type=Path, readable=False)
_STDIN = Path("-")
_spec_argument = click.argument("spec", type=_PATH)
_set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="K=V",
    callback=_settings,
    help="Say something else than the spec: width=8, data.root=DIR, search.epochs=20. Can be repeated.",
)
_device_option = click.option(
    "--device",
    callback=_device,
    metavar="DEVICE",
    default="auto",
    show_default=True,
    help="Where to compute: auto (a GPU where there is one), cpu or cuda[:n].",
)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, not as a table.")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(version)s")
def main() -> None:
    """Learn from training data which structure each layer of a network wants.

    A SPEC is a `.sym` file; a RUN is the folder that a search leaves. Start with `symdsl new NAME`.
    """


@main.command()
@click.argument("specs", type=_PATH, nargs=-1, required=True, metavar="SPEC...")
@click.option(
    "--format",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="How diagnostics are shown.",
)
@click.option("--strict", is_flag=True, help="Count warnings as errors.")
@_set_option
def check(specs: tuple[Path, ...], format: str, strict: bool, settings: Mapping[str, Override]) -> None:
    """Say what is wrong with specs, and where.

    A library, a file of networks and `let`s for others to import, is checked as far as it goes on its own.
    """
    from symdsl import spec

    found = [diagnostic for path in specs for diagnostic in spec.check(path, settings)]
    _REPORTS[format](found)
    if any(strict or diagnostic.severity == "error" for diagnostic in found):
        sys.exit(SPEC_WRONG)


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
@click.argument("specs", type=_PATH, nargs=-1, required=True, metavar="SPEC...")
@click.option("--check", "check_only", is_flag=True, help="Name the specs that would change; exit 1 if there are any.")
@click.option("--diff", "as_diff", is_flag=True, help="Print what would change, and write nothing.")
def fmt(specs: tuple[Path, ...], check_only: bool, as_diff: bool) -> None:
    """Rewrite specs in canonical layout.

    Comments and columns stay. `-` reads standard input and writes standard output.
    """
    deliver: Callable[[Path, str, str], None] = _print_diff if as_diff else _print_name if check_only else _rewrite
    failed = False
    for spec in specs:
        try:
            before, after = _layouts(spec)
        except SpecError as error:
            _tell(error.diagnostics)
            failed = True
        else:
            deliver(spec, before, after)
            failed |= check_only and before != after
    if failed:
        sys.exit(SPEC_WRONG)


def _layouts(path: Path) -> tuple[str, str]:
    """The text of a spec as it is, and in canonical layout."""
    from symdsl.language.formatter import format_text
    from symdsl.language.imports import LARGEST, decoded, read_text

    collector = Collector()
    piped, source = path == _STDIN, "<stdin>" if path == _STDIN else str(path)
    text = (
        decoded(sys.stdin.buffer.read(LARGEST + 1), source, collector) if piped else read_text(path, source, collector)
    )
    collector.raise_errors()
    assert text is not None, "without a text there is an error"
    return text, format_text(text, source)


def _print_diff(path: Path, before: str, after: str) -> None:
    from difflib import unified_diff
    from io import StringIO

    for line in unified_diff(list(StringIO(before)), list(StringIO(after)), f"{path}", f"{path} (formatted)"):
        click.echo(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n", nl=False)


def _print_name(path: Path, before: str, after: str) -> None:
    if before != after:
        click.echo(path)


def _rewrite(path: Path, before: str, after: str) -> None:
    from symdsl.runs import write_atomic

    if path == _STDIN:
        click.echo(after, nl=False)
    elif before != after:
        if not os.access(path, os.W_OK):
            raise RunError(f"{path}: cannot be written: it is read-only")
        write_atomic(path.resolve(), after.encode())


@main.command()
@click.argument("code")
def explain(code: str) -> None:
    """Say what the code of a diagnostic, such as E203, means, with an example."""
    from symdsl import highlight
    from symdsl.analysis.explanations import explanation

    text = explanation(code)
    colour = wants_colour(sys.stdout.isatty(), os.environ)
    click.echo(highlight.indented(text) if colour else text, color=colour)


@main.command()
@click.argument("name")
def new(name: str) -> None:
    """Write NAME.sym, a spec to start from, into the working folder."""
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
@click.option(
    "--emit", type=click.Choice(list(NETWORK_VIEWS)), default="summary", show_default=True, help="What to show."
)
@click.option("-o", "--output", type=_PATH, help="Write to this file, not to standard output.")
@_set_option
@click.option("--device", callback=_device, metavar="DEVICE", help="Also time one batch there: auto, cpu or cuda[:n].")
def compile(spec: Path, emit: str, output: Path | None, settings: Mapping[str, Override], device: str | None) -> None:
    """Show what a network costs and what it is equivariant to, per layer and candidate."""
    loaded = _load(spec, settings)
    _check_brought(loaded)
    measured = _probe(loaded, device) if device else {}
    _deliver(NETWORK_VIEWS[emit](loaded), emit, output)
    for name, value in measured.items():
        click.echo(f"{name}: {value}", err=emit != "summary")


@main.command()
@_spec_argument
@_set_option
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Draw at random with this seed, not the spec's.")
@click.option("--examples", type=click.IntRange(1, 100), default=8, show_default=True, help="Pictures in a row.")
@click.option("--out", type=_PATH, help="File of the pictures, a PNG; by default runs/SPEC/data.png.")
@click.option("--open", "opened", is_flag=True, help="Open the pictures when they are written.")
@_json_option
def data(
    spec: Path,
    settings: dict[str, Override],
    seed: int | None,
    examples: int,
    out: Path | None,
    opened: bool,
    as_json: bool,
) -> None:
    """Show what a network will see: counts, means, labels, and a sheet of pictures.

    Everything is looked at after each step of the data statement, and drawn after the last.
    """
    if out is not None and out.suffix.lower() != ".png":
        raise click.UsageError(f"`--out` (={out}) must be a PNG: name it `{out.with_suffix('.png')}`")
    loaded = _load(spec, settings)
    from symdsl.data import inspect

    path = out or Path("runs", loaded.name, "data.png")
    found = inspect(loaded, seed, examples)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(found.picture)
    click.echo(json_bytes(found.content) if as_json else data_bytes(found.content), nl=False)
    click.echo(f"pictures: {path}", err=as_json)
    if opened:
        click.launch(str(path))


def _check_brought(spec: Spec) -> None:
    """Names what the kinds of installed packages lack; the built-in ones lack nothing, and are not waited for."""
    from symdsl.analysis.facts import Layer
    from symdsl.analysis.kinds import KINDS

    layers = [node for node in spec.facts.network.nodes if isinstance(node, Layer)]
    if any(one.kind not in KINDS.built_in for layer in layers for one in layer.candidates):
        from symdsl.lowering import check_brought

        check_brought(layers)


def _probe(spec: Spec, device: str) -> Mapping[str, Any]:
    from symdsl.runner import probe

    return probe(spec, device)


def _load(path: Path, settings: Mapping[str, Override], quiet: bool = False) -> Spec:
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
    settings: dict[str, Override]
    seed: int | None
    seeds: int | tuple[int, ...] | None
    jobs: int | None
    quiet: bool
    as_json: bool

    @property
    def several(self) -> bool:
        """Whether there is more than one run to make."""
        from symdsl.runs import SeedsFolder

        return self.seeds is not None or (self.resume is not None and SeedsFolder.is_one(self.resume))

    def check(self) -> None:
        """Refuses options that exclude each other, or need each other."""
        if self.out and self.resume:
            raise click.UsageError("`--out` and `--resume` exclude each other: a resumed run stays in its folder")
        if self.seed is not None and isinstance(self.seeds, tuple):
            raise click.UsageError("`--seed` and a list of `--seeds` exclude each other: the list has all of them")
        if self.jobs is not None and not self.several:
            raise click.UsageError("`--jobs` is how many seeds run at a time: give `--seeds` too")

    @property
    def overrides(self) -> dict[str, Override]:
        """What the command line says instead of the spec."""
        from symdsl.analysis.overrides import Override

        if self.seed is None:
            return self.settings
        last = max((one.number for one in self.settings.values()), default=0)
        return {**self.settings, "search.seed": Override.parse(f"search.seed={self.seed}", last + 1)}

    def resumption(self, command: str, folder: Path) -> str:
        """The command that goes on with an interrupted run."""
        settings = [word for one in self.overrides.values() for word in ("--set", f"{one.key}={one.value}")]
        device = ["--device", self.device] if self.device != "auto" else []
        return shlex.join(["symdsl", command, str(self.spec), *settings, *device, "--resume", str(folder)])


def _search_options(command: Callable[..., None]) -> Callable[..., None]:
    options = (
        _spec_argument,
        _device_option,
        click.option("--out", type=_PATH, help="Folder of the run, new or empty; by default a new one under runs/."),
        click.option("--resume", type=_PATH, help="Go on with the unfinished run in this folder."),
        _set_option,
        click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Use this seed, not the spec's."),
        click.option(
            "--seeds",
            callback=_seeds,
            metavar="N|A,B,...",
            help="Run with N seeds, counted up from the spec's, or with those listed, and compare what they learn.",
        ),
        click.option("--jobs", type=click.IntRange(1), help="How many of the seeds to run at a time; by default one."),
        click.option("--quiet", is_flag=True, help="No progress and no warnings; only the result, and errors."),
        _json_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


_OBJECTIVES: dict[str, Objective] = {"search": "laplace", "map": "map"}


@main.command()
@_search_options
def search(**options: Any) -> None:
    """Train a network, learn its layer types and draw the result.

    Ctrl-C ends a search so that `--resume` can go on with it.
    """
    _search("search", _Request(**options))


@main.command()
@_search_options
def map(**options: Any) -> None:
    """Train the same network without learning the priors: the baseline."""
    _search("map", _Request(**options))


def _search(command: str, request: _Request) -> None:
    request.check()
    spec = _load(request.spec, request.overrides, request.quiet)
    if request.several:
        _search_seeds(command, request, spec)
        return
    from symdsl import runner

    with _ending_gently(), observer(request.quiet) as watcher, _telling_the_way_on(watcher, command, request):
        result = runner.search(
            spec,
            device=request.device,
            out=request.out,
            resume=request.resume,
            objective=_OBJECTIVES[command],
            observer=watcher,
        )
    _show_result(result.folder, request.as_json)


def _search_seeds(command: str, request: _Request, spec: Spec) -> None:
    from symdsl import runner
    from symdsl.runs.seeds import PICTURE

    with _ending_gently(), observers(request.quiet) as watcher, _telling_the_way_on(watcher, command, request):
        result = runner.search_seeds(
            spec,
            request.seeds,
            device=request.device,
            out=request.out,
            resume=request.resume,
            objective=_OBJECTIVES[command],
            jobs=request.jobs or 1,
            watch=watcher,
        )
    _deliver(_run_view(result.folder, "json" if request.as_json else "table"), "table", None)
    if not request.as_json:
        click.echo(f"runs: {result.folder}, a folder for each seed")
    failed = [one["seed"] for one in result["seeds"] if one["status"] != "finished"]
    if result["finished"] and not request.as_json:
        click.echo(f"picture of mean shares: {result.folder / PICTURE}")
    if failed:
        way_on = request.resumption(command, result.folder)
        _fail(f"{len(failed)} of {len(result['seeds'])} seeds failed; when mended, go on with: {way_on}")


@contextlib.contextmanager
def _telling_the_way_on(watcher: Silent | Observers, command: str, request: _Request) -> Iterator[None]:
    """Says how to go on with what was interrupted or failed, where it left a folder to go on with."""
    try:
        yield
    except KeyboardInterrupt:
        if watcher.folder is None:
            raise
        watcher.note(f"interrupted; go on with: {request.resumption(command, watcher.folder)}")
        sys.exit(INTERRUPTED)
    except RunError:
        if watcher.folder is not None:
            watcher.note(f"failed; when mended, go on with: {request.resumption(command, watcher.folder)}")
        raise


@contextlib.contextmanager
def _ending_gently() -> Iterator[None]:
    """Lets the signals that schedulers and closed terminals send do what Ctrl-C does, unless they are ignored."""
    requests = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) == signal.SIG_DFL]
    for request in requests:
        signal.signal(request, signal.default_int_handler)
    try:
        yield
    finally:
        for request in requests:
            signal.signal(request, signal.SIG_DFL)


def _show_result(folder: Path, as_json: bool) -> None:
    _deliver(_run_view(folder, "json" if as_json else "table"), "table", None)
    if not as_json:
        click.echo(f"picture: {folder / 'architecture.svg'}")


@main.command()
@click.argument("run", type=_PATH)
@click.option("--emit", type=click.Choice(list(RUN_VIEWS)), default="table", show_default=True, help="What to show.")
@click.option("-o", "--output", type=_PATH, help="Write to this file, not to standard output.")
def show(run: Path, emit: str, output: Path | None) -> None:
    """Show the layer table of a run or of several seeds, or draw its picture."""
    _deliver(_run_view(run, emit), emit, output)


def _run_view(folder: Path, emit: str) -> bytes:
    """A view of a run, or of a search with several seeds."""
    from symdsl.runs import RunFolder, SeedsFolder

    if SeedsFolder.is_one(folder):
        return SEEDS_VIEWS[emit](SeedsFolder.view(folder))
    return RUN_VIEWS[emit](RunFolder.view(folder))


@main.command()
@click.argument("run", type=_PATH)
@click.option(
    "--set", "settings", multiple=True, metavar="data.K=V", callback=_data_settings, help="Evaluate on other data."
)
@_device_option
@_json_option
def eval(run: Path, settings: dict[str, Override], device: str, as_json: bool) -> None:
    """Measure the network of a finished run on its test data, or on others."""
    from symdsl.runner import evaluate

    metrics = evaluate(run, settings, device)
    if as_json:
        click.echo(json_bytes(metrics), nl=False)
        return
    for name, value in metrics.items():
        if value is not None:
            click.echo(f"{name}: {value:.4f}")


@main.command()
def lsp() -> None:
    """Serve an editor, over standard input and output; see editors/vscode."""
    try:
        from symdsl.editor.server import serve
    except ModuleNotFoundError as error:
        raise RunError(f"the language server needs `{error.name}`: run `pip install 'symdsl[lsp]'`") from error
    serve()
