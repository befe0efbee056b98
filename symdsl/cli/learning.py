"""The commands that train a network: `search`, and `map`, its baseline."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click

from symdsl.cli.endings import ending_gently, telling_the_way_on
from symdsl.cli.networks import load
from symdsl.cli.options import PATH, SEED, device_option, json_option, seed_numbers, set_option
from symdsl.cli.runs import show_result
from symdsl.cli.terminal import fail, is_first_rank, refuse_ranks, say
from symdsl.progress import Callback, observers

if TYPE_CHECKING:
    from symdsl.analysis.overrides import Override
    from symdsl.runs.schema import Objective
    from symdsl.spec import Spec


@attrs.frozen
class _Request:
    """The options of `search` and `map`, one attribute each, and which of the two it is."""

    command: str
    spec: Path | None
    device: str
    out: Path | None
    resume: Path | None
    weights_from: Path | None
    settings: dict[str, Override]
    seed: int | None
    seeds: int | tuple[int, ...] | None
    jobs: int | None
    logs: tuple[str, ...]
    quiet: bool
    as_json: bool

    @property
    def several(self) -> bool:
        """Whether there is more than one run to make."""
        from symdsl.runs import SeedsFolder

        return self.seeds is not None or (self.resume is not None and SeedsFolder.is_one(self.resume))

    def check(self) -> None:
        """Refuse options that exclude each other, or need each other."""
        if self.spec is None and self.resume is None:
            raise click.UsageError("Missing argument 'SPEC': only `--resume RUN` needs none")
        moved = not self.several and all(key.startswith("data.") for key in self.overrides)
        if self.spec is None and self.overrides and not moved:
            from symdsl.runs.folder import new_run_advice

            raise click.UsageError(
                "a run continues as it was started: leave `--set` and `--seed` out, or give its SPEC too; "
                + new_run_advice("RUN")
            )
        if self.weights_from and (self.resume or self.several):
            raise click.UsageError("`--from` starts one new run: leave `--resume` and `--seeds` out")
        if self.out and self.resume:
            raise click.UsageError("`--out` and `--resume` exclude each other: a resumed run stays in its folder")
        if "search.seed" in self.overrides and isinstance(self.seeds, tuple):
            raise click.UsageError("one seed and a list of `--seeds` exclude each other: the list has all of them")
        if self.seed is not None and "search.seed" in self.settings:
            raise click.UsageError("`--seed` and `--set search.seed` exclude each other")
        if self.jobs is not None and not self.several:
            raise click.UsageError("`--jobs` says how many seeds run at a time: give `--seeds` too")

    @property
    def overrides(self) -> dict[str, Override]:
        """What the command line says instead of the spec."""
        from symdsl.analysis.overrides import Override

        if self.seed is None:
            return self.settings
        last = max((one.number for one in self.settings.values()), default=0)
        return {**self.settings, "search.seed": Override.parse(f"search.seed={self.seed}", last + 1)}

    def loggers(self) -> list[Callback]:
        """A logger for each `--log`, of which each counts once."""
        if not self.logs:
            return []
        from symdsl.runner.loggers import LOGGERS

        return [LOGGERS[name]() for name in dict.fromkeys(self.logs)]

    def resumption(self, folder: Path) -> str:
        """The command that goes on with an interrupted run."""
        device = ["--device", self.device] if self.device != "auto" else []
        logs = [word for name in self.logs for word in ("--log", name)]
        jobs = ["--jobs", str(self.jobs)] if self.jobs else []
        return shlex.join(["symdsl", self.command, *device, *logs, *jobs, "--resume", str(folder)])

    def say_what_is_next(self, folder: Path) -> None:
        """Print commands that a user may want after a run, unless it is to be quiet."""
        if self.quiet or self.as_json:
            return
        baseline = self.spec if self.spec and not self.overrides else folder / "spec.sym"
        commands = [(["symdsl", "report", str(folder)], "one HTML page about it")]
        if self.command == "search" and not self.several:
            commands.insert(0, (["symdsl", "map", str(baseline)], "the baseline: the same network, priors not learned"))
        lines = [(shlex.join(words), about) for words, about in commands]
        width = max(len(line) for line, _ in lines)
        for start, (line, about) in zip(("next:", "     "), lines, strict=False):
            say(f"{start} {line:{width}}  # {about}")


def _search_options(command: Callable[..., None]) -> Callable[..., None]:
    options = (
        click.argument("spec", type=PATH, required=False),
        device_option,
        click.option("--out", type=PATH, help="Folder of the run, new or empty; by default a new one under runs/."),
        click.option(
            "--resume",
            type=PATH,
            help="Continue the unfinished run, or seeds, in this folder; needs no SPEC. `--set data.path=...` says "
            "where the data of a single run are now.",
        ),
        click.option(
            "--from",
            "weights_from",
            type=PATH,
            metavar="RUN",
            help="Start from the weights of this run, finished or not, which must have all candidates and biases of "
            "SPEC in the same shapes, as it has where SPEC is its learned.sym; averages start as in SPEC.",
        ),
        set_option,
        click.option("--seed", type=SEED, metavar="N", help="Use this seed, not the spec's."),
        click.option(
            "--seeds",
            callback=seed_numbers,
            metavar="N|A,B,...",
            help="Run with N seeds, counted up from the spec's, or with those listed, and compare what they learn.",
        ),
        click.option("--jobs", type=click.IntRange(1), metavar="N", help="Seeds to run at a time; by default one."),
        click.option(
            "--log",
            "logs",
            multiple=True,
            type=click.Choice(["csv", "tensorboard"]),
            help="Also write metrics.csv, or event files of TensorBoard, into the run folder. Can be repeated.",
        ),
        click.option("--quiet", is_flag=True, help="Print only the result and errors, no progress and no warnings."),
        json_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


_OBJECTIVES: dict[str, Objective | None] = {"search": None, "map": "map"}


@click.command()
@_search_options
def search(**options: Any) -> None:
    """Train a network, learn the structure of its layers, and draw the result.

    Ctrl-C ends a search; `symdsl search --resume RUN` continues it. `torchrun --nproc-per-node N -m -- symdsl
    search SPEC` divides the work among N processes or GPUs.
    """
    _search(_Request("search", **options))


@click.command()
@_search_options
def map(**options: Any) -> None:
    """Train the network of a spec with fixed priors: the baseline that a search is compared with."""
    _search(_Request("map", **options))


def _search(request: _Request) -> None:
    request.check()
    spec = None if request.spec is None else load(request.spec, request.overrides, request.quiet)
    if request.several:
        refuse_ranks("`--seeds` runs several searches: leave torchrun out, or run one search")
        _search_seeds(request, spec)
        return
    from symdsl import ranks, runner
    from symdsl.runs.folder import PICTURE

    loggers = request.loggers()
    with (
        ending_gently(),
        observers(request.quiet or not is_first_rank()) as display,
        telling_the_way_on(watcher := display.of(), request.resumption),
        ranks.joined(request.device) as device,
    ):
        result = runner.search(
            spec,
            device=device,
            out=request.out,
            resume=request.resume,
            objective=_OBJECTIVES[request.command],
            callbacks=[watcher, *loggers],
            weights_from=request.weights_from,
            overrides=request.overrides if request.spec is None else None,
        )
    if not is_first_rank():
        os._exit(0)  # threads of gloo that are still there can abort an orderly end
    show_result(result.folder, request.as_json)
    if not request.as_json and (result.folder / PICTURE).exists():
        click.echo(f"picture: {result.folder / PICTURE}")
    request.say_what_is_next(result.folder)


def _search_seeds(request: _Request, spec: Spec | None) -> None:
    from symdsl import runner
    from symdsl.runner.seeds import numbered
    from symdsl.runs.folder import PICTURE

    if request.seeds is not None:
        try:
            numbered(request.seeds, 0 if spec is None else spec.facts.search.seed)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    request.loggers()  # so that a missing package is reported at once
    with ending_gently(), observers(request.quiet) as watcher, telling_the_way_on(watcher, request.resumption):
        result = runner.search_seeds(
            spec,
            request.seeds,
            device=request.device,
            out=request.out,
            resume=request.resume,
            objective=_OBJECTIVES[request.command],
            jobs=request.jobs or 1,
            watch=watcher,
            callbacks=lambda seed: request.loggers(),
        )
    show_result(result.folder, request.as_json)
    if not request.as_json:
        click.echo(f"runs: {result.folder}, a folder for each seed")
    failed = [one["seed"] for one in result["seeds"] if one["status"] != "finished"]
    if result["finished"] and not request.as_json:
        if (result.folder / PICTURE).exists():
            click.echo(f"picture of mean shares: {result.folder / PICTURE}")
        request.say_what_is_next(result.folder)
    if failed:
        way_on = request.resumption(result.folder)
        fail(f"{len(failed)} of {len(result['seeds'])} seeds failed; once that is fixed, continue with: {way_on}")
