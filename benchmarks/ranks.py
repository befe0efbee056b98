"""Two ranks beside one process: seconds per epoch of a search, in turn.

    python benchmarks/ranks.py specs/paper/table1_position.sym --set profile=cpu --set data.root=~/data

Runs the first epochs of the same search with one process of one thread, one process of two threads, and two ranks of
one thread each by gloo, and repeats all three in turn. The seconds of an epoch, evidence steps included, are the median
without the first epoch. On a machine with other work they say little. So there are the CPU seconds of an epoch too, of
the process that takes most: what a search of several epochs takes beyond one of a single epoch. Ranks that wait take
none, so their ratio is what cores of their own would give at best.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

WAYS = {"one process, one thread": (1, 1), "one process, two threads": (1, 2), "two ranks, one thread each": (2, 1)}
"""Processes and threads of each."""


def searched(spec: Path, settings: Sequence[str], ranks: int, threads: int, number: int) -> tuple[list[float], float]:
    """Seconds of the epochs of a search, and the CPU seconds of the process that takes most."""
    with tempfile.TemporaryDirectory() as folder:
        sets = [word for one in (*settings, f"search.epochs={number}") for word in ("--set", one)]
        command = [sys.executable, "-m", "symdsl", "search", str(spec), "--device", "cpu", "--quiet", *sets]
        command += ["--out", f"{folder}/run"]
        running = [
            subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
            for environment in environments(ranks, threads)
        ]
        ended = [os.wait4(one.pid, 0) for one in running]
        if any(status for _, status, _ in ended):
            sys.exit("a search failed")
        lines = Path(folder, "run", "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["wall_s"] for line in lines], max(used.ru_utime + used.ru_stime for *_, used in ended)


def environments(ranks: int, threads: int) -> list[Mapping[str, str]]:
    """Of every rank; those of torchrun where there is more than one."""
    own = os.environ | {"OMP_NUM_THREADS": str(threads)}
    if ranks == 1:
        return [own]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    return [own | group | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="as of `symdsl search`")
    parser.add_argument("--epochs", type=int, default=3, help="of each search, the first not counted")
    parser.add_argument("--rounds", type=int, default=3, help="how often every way has its turn")
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    busy: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(options.rounds):
        for name, (ranks, threads) in WAYS.items():
            _, short = searched(options.spec, options.set, ranks, threads, 1)
            found, long = searched(options.spec, options.set, ranks, threads, options.epochs)
            seconds[name] += found[1:]
            busy[name].append((long - short) / (options.epochs - 1))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.rounds} rounds\n")
    print("| | s per epoch | times as fast | CPU s per epoch | share of one thread's |\n|---|---|---|---|---|")
    wall, cpu = ({name: statistics.median(one) for name, one in kept.items()} for kept in (seconds, busy))
    first = next(iter(WAYS))
    for name in WAYS:
        ratios = f"{wall[first] / wall[name]:.2f} | {cpu[name]:.2f} | {cpu[name] / cpu[first]:.2f}"
        print(f"| {name} | {wall[name]:.2f} | {ratios} |")


if __name__ == "__main__":
    main()
