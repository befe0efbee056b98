"""Time and memory of `symdsl check` on specs that ask for too much, start-up included.

    python benchmarks/limits.py

Prints one row a spec: seconds on the clock and of the processor, peak memory in MiB, exit status, the first thing said.
The bar is 1 s, which is held against the processor's where others use the machine, and 200 MiB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from hostile import IMPORTS, TEXTS, bomb


def measure(path: Path) -> tuple[float, float, float, int, str]:
    """Seconds on the clock and of the processor, peak MiB and status of a check, and the first line of what it says."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([sys.executable, "-m", "symdsl", "check", str(path)], stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        said.seek(0)
        first = said.readline().decode().strip()
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, process.returncode, first


def show(name: str, path: Path) -> None:
    seconds, used, peak, status, first = measure(path)
    over = "  OVER" if used > 1 or peak > 200 or status != 1 else ""
    print(f"{name:<40} {seconds:6.2f} s {used:6.2f} s {peak:6.0f} MiB  exit {status}  {first[:60]}{over}", flush=True)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, _) in TEXTS.items():
            path = Path(folder) / "spec.sym"
            path.write_text(text(), encoding="utf-8")
            show(name, path)
    for name in IMPORTS:
        with tempfile.TemporaryDirectory() as folder:
            show(name, bomb(Path(folder), name))
    with tempfile.TemporaryDirectory() as folder:
        fifo = Path(folder) / "fifo"
        os.mkfifo(fifo)
        for name, path in (("a fifo", fifo), ("a folder", Path(folder)), ("/dev/zero", Path("/dev/zero"))):
            show(name, path)


if __name__ == "__main__":
    main()
