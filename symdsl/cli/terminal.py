"""The messages of a command on the terminal, and its exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import rich_click as click

from symdsl.diagnostics import (
    FAILED,
    INTERRUPTED,
    SPEC_WRONG,
    Diagnostic,
    NumericalError,
    RunError,
    SpecError,
    render_text,
    suggest,
    wants_colour,
)
from symdsl.progress import discard_unwritable

_ELSEWHERE = {
    **dict.fromkeys(("train", "fit", "run", "learn"), "search"),
    **dict.fromkeys(("evaluate", "test"), "eval"),
    **dict.fromkeys(("plot", "draw"), "show"),
    **dict.fromkeys(("list", "ls"), "runs"),
    "init": "new",
    "lint": "check",
    "format": "fmt",
}
"""What other programs call a command."""

_TRAINING = ("search", "map", "sweep", "compile")
"""The commands to which settings of `search` make a difference."""


class Commands(click.RichGroup):
    """The group of all commands, and the one place where exceptions become a line and an exit status."""

    def __init__(self, modules: Mapping[str, str], **settings: Any) -> None:
        """Commands by name, each with the module of this package that has it."""
        super().__init__(**settings)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of their definition."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing only its own module."""
        if cmd_name not in self._modules:
            return None
        command: click.Command = getattr(import_module(f"symdsl.cli.{self._modules[cmd_name]}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name; a usage error proposes the nearest one if there is none."""
        near = None if args[0] in self._modules else _ELSEWHERE.get(args[0]) or suggest(args[0], self._modules)
        if near is not None:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near}'?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and exit with the status that fits its outcome."""
        try:
            super().invoke(ctx)
        except click.NoSuchOption as error:
            message = error.message + _setting_hint(error)
            raise click.NoSuchOption(error.option_name, message, error.possibilities, error.ctx) from None
        except click.UsageError as error:
            if is_first_rank():
                raise
            sys.exit(error.exit_code)
        except SpecError as error:
            tell(error.diagnostics)
            sys.exit(SPEC_WRONG)
        except (RunError, NumericalError) as error:
            fail(str(error))
        except BrokenPipeError:
            discard_unwritable(sys.stdout)  # whoever read the pipe has seen enough
        except OSError as error:
            discard_unwritable(sys.stdout)
            fail(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
        except (KeyboardInterrupt, Exception) as error:
            if not _is_interrupt(error):
                raise
            note("interrupted")
            sys.exit(INTERRUPTED)


def _is_interrupt(error: BaseException) -> bool:
    """Whether an exception is a `KeyboardInterrupt`, or was raised in its place, as by some imports."""
    chain = [error]
    for one in chain:
        chain += [before for before in (one.__cause__, one.__context__) if before is not None and before not in chain]
    return any(isinstance(one, KeyboardInterrupt) for one in chain)


def _setting_hint(error: click.NoSuchOption) -> str:
    """Return how to change a setting of `search` that is no option."""
    from symdsl.catalog.searches import SEARCH

    name = suggest(error.option_name.lstrip("-").replace("-", "_"), SEARCH.names)
    trains = error.ctx is not None and error.ctx.command.name in _TRAINING
    return f" Write `--set search.{name}=...`." if trains and name not in (None, "objective") else ""


def is_first_rank() -> bool:
    """Return whether this process is the first of those that `torchrun` started, or the only one."""
    return os.environ.get("RANK", "0") == "0" or os.environ.get("WORLD_SIZE", "1") == "1"


def refuse_ranks(reason: str) -> None:
    """Refuse to be one of several processes of `torchrun`, for a reason."""
    if os.environ.get("WORLD_SIZE", "1") != "1" and "RANK" in os.environ:
        raise click.UsageError(reason)


def tell(diagnostics: Sequence[Diagnostic]) -> None:
    """Print diagnostics to standard error."""
    if diagnostics and is_first_rank():
        colour = wants_colour(sys.stderr.isatty(), os.environ)
        say(render_text(diagnostics, colour), colour)


def note(news: object) -> None:
    """Print a line to standard error, unless it is None."""
    if news is not None and is_first_rank():
        say(str(news))


def say(line: str, colour: bool | None = None) -> None:
    """Print a line to standard error, if it can be written: a command outlives whoever reads there."""
    try:
        click.echo(line, err=True, color=colour)
    except OSError:
        discard_unwritable(sys.stderr)


def fail(reason: str) -> NoReturn:
    """End the program with a reason in one line."""
    if is_first_rank():
        say_why(reason)
    sys.exit(FAILED)


_READ = (".sym", ".npz")
"""Suffixes of files that commands read and never write."""


def refuse_overwriting(read: Iterable[Path], output: Path | None) -> None:
    """Refuse an output that is one of these files, which the command reads, or a spec or data."""
    if output is None:
        return
    if output.resolve() in {one.resolve() for one in read}:
        raise click.UsageError(f"`-o {output}` would overwrite what the command reads: name another file")
    if output.suffix.lower() in _READ and output.is_file():
        raise click.UsageError(f"`-o {output}` would overwrite a spec or data: name another file")


def say_why(reason: str) -> None:
    """Print why the program ends, in one line, whichever rank this is."""
    say(f"error: {' '.join(reason.split())}")


def deliver(view: Callable[[], bytes], emit: str, output: Path | None) -> None:
    """Print a view, or save it; a picture is kept off the terminal."""
    from symdsl.views import BINARY, saved

    if output is not None:
        output.write_bytes(saved(view))
    elif emit in BINARY and sys.stdout.isatty():
        raise click.UsageError(f"{emit} does not belong on a terminal: name a file with `-o FILE`")
    else:
        click.echo(view(), nl=False)
