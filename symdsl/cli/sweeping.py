"""The command that runs a grid of searches: `sweep`."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click

from symdsl.cli.endings import ending_gently, telling_the_way_on
from symdsl.cli.options import PATH, device_option, json_option, seed_numbers
from symdsl.cli.runs import show_result
from symdsl.cli.terminal import fail, refuse_ranks, say, tell
from symdsl.progress import observers

if TYPE_CHECKING:
    from symdsl.runner.engines import Place
    from symdsl.runner.sweeping import Grid
    from symdsl.runs.schema import Objective

_OBJECTIVES: dict[str, tuple[Objective | None, ...]] = {"search": (None,), "map": ("map",), "both": (None, "map")}


def parts_of(text: str) -> Iterator[str]:
    """Yield what stands between the commas of a text that are in no brackets and no quotes."""
    depth, quoted, begin = 0, False, 0
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif not quoted and letter in "([{":
            depth += 1
        elif not quoted and letter in ")]}":
            depth -= 1
        elif not quoted and letter == "," and depth <= 0:
            yield text[begin:at].strip()
            begin = at + 1
    yield text[begin:].strip()


def values_by_key(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the values that each key is to take."""
    found: dict[str, tuple[str, ...]] = {}
    for written in given:
        key, equals, values = (part.strip() for part in written.partition("="))
        parts = tuple(parts_of(values))
        if not (key and equals and all(parts)):
            raise click.BadParameter(f"`{written}` must have the form K=V or K=V,V,...", ctx, param)
        if key in found:
            raise click.BadParameter(f"`{key}` is given twice: write `{key}=V,V`", ctx, param)
        if len({_as_number(one) for one in parts}) < len(parts):
            raise click.BadParameter(f"`{written}` must list different values", ctx, param)
        found[key] = parts
    return found


def _as_number(written: str) -> float | str:
    """Return the number that a text writes, or the text; whole numbers to the last digit."""
    for read in (int, float):
        with contextlib.suppress(ValueError):
            return read(written)
    return written


def resources_by_name(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Return what a run gets, by name."""
    found: dict[str, str] = {}
    for written in given:
        name, equals, value = written.partition("=")
        if not (name and equals and value):
            raise click.BadParameter(f"`{written}` must have the form K=V", ctx, param)
        if name in found:
            raise click.BadParameter(f"`{name}` is given twice", ctx, param)
        found[name] = value
    return found


@attrs.frozen
class _Request:
    """The options of `sweep`, one attribute each."""

    specs: tuple[Path, ...]
    settings: dict[str, tuple[str, ...]]
    seeds: int | tuple[int, ...] | None
    objective: str | None
    on: Place
    jobs: int | None
    resources: dict[str, str]
    device: str
    out: Path | None
    resume: Path | None
    quiet: bool
    as_json: bool

    def check(self) -> None:
        """Refuse options that exclude each other, or need each other."""
        refuse_ranks("a sweep starts processes of its own: leave torchrun out")
        if not self.specs and self.resume is None:
            raise click.UsageError("Missing argument 'SPEC...': only `--resume DIR` needs none")
        said = (self.specs, self.settings, self.seeds, self.objective, self.out)
        if self.resume is not None and any(one not in ((), {}, None) for one in said):
            raise click.UsageError(
                "a sweep continues as it was started: leave SPEC, `--set`, `--seeds`, `--objective` and `--out` out"
            )

    def resumption(self, folder: Path) -> str:
        """The command that goes on with an interrupted sweep."""
        words = ["--on", self.on] if self.on != "local" else []
        words += ["--jobs", str(self.jobs)] if self.jobs else []
        words += [word for name, value in self.resources.items() for word in ("--resource", f"{name}={value}")]
        words += ["--device", self.device] if self.device != "auto" else []
        return shlex.join(["symdsl", "sweep", *words, "--resume", str(folder)])


@click.command()
@click.argument("specs", type=PATH, nargs=-1, metavar="[SPEC...]")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="K=V,V,...",
    callback=values_by_key,
    help='Run with each of these values: width=4,8 or "candidates=[CONV(3)],[F-FC,CONV(3)]". Several `--set` give all '
    "combinations.",
)
@click.option(
    "--seeds",
    callback=seed_numbers,
    metavar="N|A,B,...",
    help="Run each combination with N seeds, counted up from the spec's, or with those listed.",
)
@click.option(
    "--objective",
    type=click.Choice(list(_OBJECTIVES)),
    help="Learn the priors, as `search` does (search), keep them fixed (map), or run both; by default search.",
)
@click.option(
    "--on",
    type=click.Choice(["local", "ray", "slurm"]),
    default="local",
    show_default=True,
    help="Where to run: processes here, tasks of Ray, or jobs of Slurm.",
)
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Runs at a time; by default 1 here, and 64 on Ray or Slurm."
)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="K=V",
    callback=resources_by_name,
    help="Resources of each run: cpus=4, gpus=1; on Ray also address=HOST:PORT of the cluster; on Slurm hours=24, "
    "memory_gb=32, slurm_partition=NAME. Can be repeated.",
)
@device_option
@click.option("--out", type=PATH, help="Folder of the sweep, new or empty; by default a new one under runs/sweeps/.")
@click.option("--resume", type=PATH, metavar="DIR", help="Continue the unfinished runs of this sweep; needs no SPEC.")
@click.option("--quiet", is_flag=True, help="Print only the table and errors, no progress and no warnings.")
@json_option
def sweep(**options: Any) -> None:
    """Run a grid of searches: every SPEC with every combination of settings and every seed, each in its own folder.

    A run that fails is tried once more. The results of all runs are in sweep.csv and on one page, sweep.html.
    """
    request = _Request(**options)
    request.check()
    from symdsl import runner
    from symdsl.runner.engines import check_resources

    with _wrong_usage():
        check_resources(request.on, request.resources)
    wanted = None if request.resume else _grid(request)
    with ending_gently(), observers(request.quiet) as watcher, telling_the_way_on(watcher, request.resumption):
        folder = runner.sweep(
            wanted,
            out=request.out,
            resume=request.resume,
            on=request.on,
            jobs=request.jobs,
            resources=request.resources,
            device=request.device,
            watch=watcher,
        )
    show_result(folder.path, request.as_json)
    _tell_files(folder.path, request)
    left = len(folder.runs) - len(folder.finished())
    if left:
        way_on = request.resumption(folder.path)
        fail(f"{left} of {len(folder.runs)} runs failed; once that is fixed, continue with: {way_on}")


def _grid(request: _Request) -> Grid:
    from symdsl import runner

    with _wrong_usage():
        found = runner.grid(request.specs, request.settings, request.seeds, _OBJECTIVES[request.objective or "search"])
    if not request.quiet:
        tell(found.warnings)
        say(f"{len(found.runs)} run{'s' * (len(found.runs) > 1)}")
    return found


@contextlib.contextmanager
def _wrong_usage() -> Iterator[None]:
    """Turn an argument that the package refuses into a wrong command line."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _tell_files(folder: Path, request: _Request) -> None:
    from symdsl.runs.sweeps import PAGE, TABLE

    if request.as_json:
        return
    click.echo(f"table: {folder / TABLE}")
    if (folder / PAGE).exists():
        click.echo(f"report: {folder / PAGE}")
