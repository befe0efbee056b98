"""The command line: reads arguments, calls the package, prints. What a command needs is imported inside it."""

from __future__ import annotations

import rich_click as click

from symdsl import __version__
from symdsl.cli import learning, networks, runs, specs
from symdsl.cli.terminal import Commands

_IN_THE_ORDER_OF_THE_WORK = (
    *(specs.new, specs.check, specs.fmt, specs.explain, networks.data, networks.compile),
    *(learning.search, learning.map, runs.show, runs.eval, specs.lsp),
)


@click.group(cls=Commands, commands=_IN_THE_ORDER_OF_THE_WORK, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(version)s")
def main() -> None:
    """Learn from training data which structure each layer of a network wants.

    A SPEC is a `.sym` file; a RUN is the folder that a search leaves. Start with `symdsl new NAME`.
    """
