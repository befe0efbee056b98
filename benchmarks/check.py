"""How long `symdsl check` takes, start-up included, on a generated spec of 1,000 layers and on every shipped spec.

    python benchmarks/check.py --rounds 5

Prints one row a spec: the fastest and the median round and the least processor time, in seconds, and the bar. Processor
time says what the work costs however busy the machine is. The last line sets a small spec beside the libraries that
every check needs: how many times the processor time of importing them it takes, and the bar. Modules are compiled
beforehand, as they are once a package is installed.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

SPECS = Path(__file__).parent.parent / "specs"
SMALL = SPECS / "digits.sym"
LAYERS = 1000
LIBRARIES = ("-c", "import lark, attrs, rich_click")
MOST_RATIO = 2.2


def thousand_layers() -> str:
    """A spec whose layers are all written out."""
    layers = "".join(f"  layer a{number}: F-FC + CONV(3) -> 4 |> relu\n" for number in range(LAYERS))
    head = "data digits(size = 16)\n\nnetwork deep {\n  input image(1, 16, 16)\n"
    return f"{head}{layers}  flatten\n  layer h: FC -> classes\n}}\n"


def seconds(*arguments: str) -> tuple[float, float]:
    """What one round took, on the clock and of the processor."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, used


def check(path: Path) -> tuple[str, ...]:
    """The command that checks a spec."""
    return "-m", "symdsl", "check", str(path)


def ratio(rounds: int) -> float:
    """Least processor time of a check of a small spec, over that of importing the libraries, taken in turns."""
    taken = [(seconds(*check(SMALL))[1], seconds(*LIBRARIES)[1]) for _ in range(rounds)]
    whole, libraries = (min(used) for used in zip(*taken, strict=True))
    return float(whole / libraries)


def show(name: str, path: Path, bar: float, rounds: int) -> None:
    clock, used = zip(*(seconds(*check(path)) for _ in range(rounds)), strict=True)
    print(f"{name:<28} {min(clock):>8.3f} {median(clock):>8.3f} {min(used):>10.3f} {bar:>6.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(f"{'spec':<28} {'fastest':>8} {'median':>8} {'processor':>10} {'bar':>6}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        seconds(*check(SMALL))
        path = Path(folder) / "deep.sym"
        path.write_text(thousand_layers(), encoding="utf-8")
        show(f"{LAYERS:,} layers", path, 0.5, rounds)
        for path in sorted(SPECS.rglob("*.sym")):
            show(str(path.relative_to(SPECS)), path, 0.3, rounds)
        print(f"{SMALL.name} / libraries: {ratio(rounds):.2f} (at most {MOST_RATIO})")


if __name__ == "__main__":
    main()
