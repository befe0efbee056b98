"""Two ranks beside one process: seconds per epoch of a search, in turn.

    python benchmarks/ranks.py specs/paper/table1_position.sym --set data.n=2560 data.test=128 data.root=~/data

Runs the first epochs of the same search with one process of one thread, one process of two threads, and two ranks of
one thread each by gloo, and repeats all three in turn. The seconds of an epoch, evidence steps included, are the median
without the first epoch. On a machine with other work they say little.
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
from collections.abc import Mapping
from pathlib import Path

WAYS = {"one process, one thread": (1, 1), "one process, two threads": (1, 2), "two ranks, one thread each": (2, 1)}
"""Processes and threads of each."""


def searched(spec: Path, options: argparse.Namespace, ranks: int, threads: int) -> list[float]:
    """Seconds of the epochs of a search, without the first."""
    with tempfile.TemporaryDirectory() as folder:
        sets = [word for one in (*options.set, f"search.epochs={options.epochs}") for word in ("--set", one)]
        command = [sys.executable, "-m", "symdsl", "search", str(spec), "--device", "cpu", "--quiet", *sets]
        command += ["--out", f"{folder}/run"]
        running = [
            subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
            for environment in environments(ranks, threads)
        ]
        statuses = [one.wait() for one in running]
        if any(statuses):
            sys.exit("a search failed")
        lines = Path(folder, "run", "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["wall_s"] for line in lines[1:]]


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
    parser.add_argument("--set", nargs="+", default=[], metavar="K=V", help="as of `symdsl search`")
    parser.add_argument("--epochs", type=int, default=4, help="of each search, the first not counted")
    parser.add_argument("--rounds", type=int, default=2, help="how often every way has its turn")
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    for turn in range(options.rounds):
        for name, (ranks, threads) in WAYS.items():
            found = searched(options.spec, options, ranks, threads)
            seconds[name] += found
            print(f"round {turn + 1}, {name}: {statistics.median(found):.2f} s", file=sys.stderr, flush=True)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.rounds} rounds\n")
    print("| | s per epoch | times as fast |\n|---|---|---|")
    medians = {name: statistics.median(one) for name, one in seconds.items()}
    first = medians[next(iter(WAYS))]
    for name, median in medians.items():
        print(f"| {name} | {median:.2f} | {first / median:.2f} |")


if __name__ == "__main__":
    main()
