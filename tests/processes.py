"""Runs the commands of the package under test, and of no other copy of it, here or in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import symdsl
from symdsl.cli import main


def call(*arguments: object) -> Result:
    """The result of `symdsl` with these arguments, run within the tests."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="symdsl")


def started(arguments: Sequence[object], cwd: Path, **streams: Any) -> subprocess.Popen[Any]:
    """`python` with these arguments, at work in `cwd`; streams that are not named become pipes, of text unless told."""
    # Python looks for modules in the working folder first, so that must never be the checkout by accident.
    environment = os.environ | {"PYTHONPATH": str(Path(symdsl.__file__).parents[1])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | streams
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, cwd=cwd, env=environment, preexec_fn=_heed_signals, **pipes)


def _heed_signals() -> None:
    """What a script starts in its background, or under nohup, ignores these, and so does all that it starts in turn."""
    for request_to_end in (signal.SIGINT, signal.SIGHUP):
        signal.signal(request_to_end, signal.SIG_DFL)


def output_of(program: str, cwd: Path) -> str:
    """What a Python program prints; it must end well."""
    with started(["-c", program], cwd) as running:
        printed, complaint = running.communicate()
    assert running.returncode == 0, complaint
    return printed


def await_state(reached: Callable[[], bool], *running: subprocess.Popen[Any], seconds: float = 300) -> None:
    """Wait until something has come true of running processes; fail if one ends before, or it takes too long."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert all(one.poll() is None for one in running), "a process ended early"
        assert time.monotonic() < deadline, f"not reached after {seconds} seconds"
        time.sleep(0.02)
