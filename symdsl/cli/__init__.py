"""The command line: reads arguments, calls the package, prints. What a command needs is imported inside it."""

from __future__ import annotations

import os
import sys

import rich_click as click

from symdsl import __version__
from symdsl.cli.terminal import Commands

_MODULES = {
    **dict.fromkeys(("new", "check", "fmt", "explain"), "specs"),
    **dict.fromkeys(("data", "compile"), "networks"),
    **dict.fromkeys(("search", "map"), "learning"),
    "sweep": "sweeping",
    **dict.fromkeys(("runs", "show", "report", "eval"), "runs"),
    **dict.fromkeys(("audit", "predict", "export"), "learned"),
    "lsp": "specs",
}
"""The module of each command, imported when the command is asked for; help lists them in this order."""

_SPINS = "3000"
"""How often a thread of GNU OpenMP looks for work before it sleeps, for its own 300,000."""


@click.group(cls=Commands, modules=_MODULES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(version)s")
def main() -> None:
    """Learn from training data which structure each layer of a neural network should have.

    A SPEC is a `.sym` file; a RUN is the folder that a search leaves. Start with `symdsl new NAME`.
    """
    _replace_closed_streams()
    _share_cores()


def _replace_closed_streams() -> None:
    """Put the null device in the place of closed standard streams, here and in the processes that this one starts."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, number)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _share_cores() -> None:
    """Let threads that wait for one another sleep, unless the environment says how they wait.

    Where another program keeps a core busy, threads that look on for their turn hold back the one they wait for: a
    search may then be hundreds of times slower. OpenMP reads this as PyTorch is imported.
    """
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = _SPINS
