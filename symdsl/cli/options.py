"""The arguments and options that several commands share, and the checks of what is given to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

if TYPE_CHECKING:
    from click.decorators import FC

    from symdsl.analysis.overrides import Override


def device_name(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check the name of a device; whether the device exists is checked when it is used."""
    if value is None:
        return None
    from symdsl.runs.schema import is_device

    if not is_device(value):
        raise click.BadParameter(f"`{value}` must be auto, cpu, cuda or cuda:n", ctx, param)
    return value


def settings_by_key(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Override]:
    """Return the settings of `--set` by key; the last of several for one key counts."""
    if not values:
        return {}
    from symdsl.analysis.overrides import Override

    try:
        settings = [Override.parse(value, number) for number, value in enumerate(values, start=1)]
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error
    return {one.key: one for one in settings}


def settings_of_data(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Override]:
    """Return the settings of `--set` by key, all of which must be about data."""
    settings = settings_by_key(ctx, param, values)
    for name in settings:
        if name.partition(".")[0] != "data":
            raise click.BadParameter(
                f"`{name}` must begin with `data`: nothing else of a finished run can change", ctx, param
            )
    return settings


def seed_numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> int | tuple[int, ...] | None:
    """Return the number of seeds, or the seeds themselves, that `--seeds` names."""
    if value is None:
        return None
    from symdsl.runs.schema import MOST_SEEDS

    if not re.fullmatch(r"[0-9]{1,19}(,[0-9]{1,19})*,?", value):
        raise click.BadParameter(f"`{value}` must be a number of seeds, or seeds separated by commas", ctx, param)
    numbers = tuple(int(one) for one in value.split(",") if one)
    if "," in value and len(set(numbers)) < len(numbers):
        raise click.BadParameter(f"`{value}` must be different seeds", ctx, param)
    count = len(numbers) if "," in value else numbers[0]
    if not 1 <= count <= MOST_SEEDS:
        raise click.BadParameter(f"`{value}` must be from 1 to {MOST_SEEDS} seeds", ctx, param)
    return numbers if "," in value else numbers[0]


def new_output(ctx: click.Context, param: click.Parameter, value: Path | None, drawn: bool = True) -> Path | None:
    """Return the path of an output, which may not be a file that a run needs, or has drawn, nor `-`, which is none."""
    if value == Path("-"):
        raise click.BadParameter("`-` is no file: name one, or leave the option out", ctx, param)
    if value is not None:
        from symdsl.runs.folder import is_kept_file

        if is_kept_file(value, drawn):
            raise click.BadParameter(f"`{value}` is a file that a run needs: name another", ctx, param)
    return value


_OTHER_PICTURES = frozenset({"bmp", "eps", "gif", "jpeg", "jpg", "ps", "tif", "tiff", "webp"})
"""Suffixes of pictures that are not drawn, and so are not taken for the name of a table."""


def view_option(name: str, views: Iterable[str], default: str, help: str) -> Callable[[FC], FC]:
    """Return an option for what to print; left out it is what the suffix of `--output` names, or else `default`."""
    known = tuple(views)

    def callback(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
        output = ctx.params.get("output")
        suffix = "" if output is None else output.suffix.lower().removeprefix(".")
        if value is None and suffix in _OTHER_PICTURES:
            raise click.BadParameter(
                f"no `.{suffix}` file can be written: name one of {', '.join(known)}", ctx, param_hint="--output"
            )
        return value or (suffix if suffix in known else default)

    about = f"{help} By default what the suffix of the output names, or `{default}`."
    return click.option(name, "view", type=click.Choice(known), callback=callback, help=about)


PATH = click.Path(path_type=Path, readable=False)
SEED = click.IntRange(0)
spec_argument = click.argument("spec", type=PATH)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="K=V",
    callback=settings_by_key,
    help="Override a value of the spec: width=8, data.root=DIR, search.epochs=20. profile=NAME applies a profile of "
    "the spec first. Can be repeated.",
)
data_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="data.K=V",
    callback=settings_of_data,
    help="Change the data: data.root=DIR, data.copies=1. Can be repeated.",
)
device_option = click.option(
    "--device",
    callback=device_name,
    metavar="DEVICE",
    default="auto",
    show_default=True,
    help="Where to compute: auto (a GPU where there is one), cpu or cuda[:n].",
)
output_option = partial(click.option, "-o", "--output", type=PATH, callback=new_output, is_eager=True)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, not as a table.")
