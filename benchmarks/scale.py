"""How time and memory of a search grow with images, width, classes, layers and the size of images.

    OMP_NUM_THREADS=1 python benchmarks/scale.py
    OMP_NUM_THREADS=1 python benchmarks/scale.py --axes images width --out scale.json

One number at a time is changed from a network of eight layers `F-FC + CONV(3)` of eight channels, on 10,000 images of
16x16 with ten classes. Every point is a process of its own, which takes training steps on 128 examples each and
evidence steps as a search does. It says the CPU seconds of one thread, and its peak memory beyond that of imports.
The exponent of an axis is the slope of a straight line through logarithms: 1 is proportional, 0 does not depend on it.
The last lines multiply the exponents out to the size of ImageNet.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

BASE = {"images": 10_000, "width": 1, "classes": 10, "layers": 8, "size": 16}
AXES = {
    "images": (1_000, 10_000, 60_000),
    "width": (1, 2, 4),
    "classes": (10, 100, 1_000),
    "layers": (8, 16, 32),
    "size": (16, 32, 64),
}
FIGURES = ("training", "evidence", "memory")
BATCH, CHANNELS, STRIDES = 128, 8, 3
IMAGENET = {"images": 1_300_000, "width": 8, "classes": 1_000, "layers": 8, "size": 64}
STEPS, EVIDENCE_STEPS = 6, 2
LOOKED_AT = 256


def text_of(point: Mapping[str, int]) -> str:
    """The spec of a point; three of the first layers halve the map."""
    channels = CHANNELS * point["width"]
    layers = "\n".join(
        f"  layer l{number}: F-FC + CONV(3) -> {channels}{' stride 2' if 2 <= number < 2 + STRIDES else ''} |> relu"
        for number in range(1, point["layers"] + 1)
    )
    data = f"size = {point['size']}, classes = {point['classes']}, train = {point['images']}, test = 10"
    return (
        f"data synthetic({data}) |> standardize\n"
        f"network scaled {{\n  input image(channels, {point['size']}, {point['size']})\n{layers}\n"
        f"  flatten\n  layer h: FC -> classes\n}}\n"
        f"search {{\n  batch = {BATCH}\n  examples = {LOOKED_AT}\n}}\n"
    )


# ---------------------------------------------------------------- one point


def measured(point: Mapping[str, int]) -> dict[str, float]:
    """CPU seconds per example of a training step and of an evidence step, and bytes beyond the imports."""
    from symdsl import data, lowering
    from symdsl.runner.start import begin
    from symdsl.runner.structure import Structure
    from symdsl.runner.training import Trainer
    from symdsl.spec import parse

    before = peak()
    spec = parse(text_of(point))
    dataset = data.load(spec)
    net = lowering.compile(spec, 0)
    start = begin(net, spec.facts, len(dataset.train))
    trainer = Trainer(net, spec.facts, dataset, 0, start)
    structure = Structure(trainer, start, lambda note: None)
    training = []
    for step in range(STEPS + 1):
        some = trainer.train.x[:BATCH], trainer.train.y[:BATCH]
        started = time.process_time()
        net.train()
        trainer._train_step(type(trainer.train)(*some), BATCH)
        training.append(time.process_time() - started)
        trainer.step = step + 1
    evidence = [seconds_of(structure.evidence_step) for _ in range(EVIDENCE_STEPS)]
    return {
        "training": statistics.median(training[1:]) / BATCH,
        "evidence": min(evidence) / LOOKED_AT,
        "memory": peak() - before,
    }


def seconds_of(work: Callable[[], object]) -> float:
    """CPU seconds of some work."""
    started = time.process_time()
    work()
    return time.process_time() - started


def peak() -> float:
    """Largest memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


# ---------------------------------------------------------------- all points


def of_axis(axis: str, known: dict[str, dict[str, float]]) -> list[dict[str, float]]:
    """The figures of all points of an axis; those that are not known are measured, and kept."""
    found = []
    for value in AXES[axis]:
        point = BASE | {axis: value}
        key = json.dumps(point)
        if key not in known:
            command = [sys.executable, __file__, "--point", key]
            known[key] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        found.append(known[key])
    return found


def exponent(values: Sequence[float], figures: Sequence[float]) -> float:
    """The slope of log figure in log value, by least squares."""
    x, y = [math.log(one) for one in values], [math.log(one) for one in figures]
    return statistics.linear_regression(x, y).slope


def table(axis: str, found: Sequence[Mapping[str, float]]) -> str:
    """The figures of an axis, and their exponents."""
    lines = [
        f"| {axis} | training, ms per example | evidence step, ms per example | peak memory, MB |",
        "|---|---|---|---|",
    ]
    for value, one in zip(AXES[axis], found, strict=True):
        times = " | ".join(f"{1000 * one[name]:.3f}" for name in ("training", "evidence"))
        lines.append(f"| {value:,} | {times} | {one['memory'] / 1e6:.0f} |")
    slopes = " | ".join(f"{exponent(AXES[axis], [one[name] for one in found]):.2f}" for name in FIGURES)
    return "\n".join([*lines, f"| exponent | {slopes} |"])


def at_imagenet(by_axis: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """The figures of the base, times what every axis adds by its exponent; the images are counted apart."""
    found = beside_images(BASE, by_axis["images"][AXES["images"].index(BASE["images"])])
    for axis, ones in by_axis.items():
        beside = [beside_images(BASE | {axis: value}, one) for value, one in zip(AXES[axis], ones, strict=True)]
        for name in FIGURES:
            slope = exponent(AXES[axis], [one[name] for one in beside])
            found[name] *= (IMAGENET[axis] / BASE[axis]) ** slope
    hours = found["training"] * IMAGENET["images"] / 3600
    return (
        f"{IMAGENET['images']:,} images of {IMAGENET['size']}x{IMAGENET['size']}, {IMAGENET['classes']:,} classes, "
        f"{CHANNELS * IMAGENET['width']} channels, on one thread: {1000 * found['training']:.1f} ms per example and "
        f"{hours:.0f} hours an epoch; an evidence step {LOOKED_AT * found['evidence']:.0f} s; "
        f"{found['memory'] / 1e9:.0f} GB of memory, beside {3 * image_bytes(IMAGENET) / 1e9:.0f} GB of colour images, "
        "which are mapped from the disk"
    )


def beside_images(point: Mapping[str, int], figures: Mapping[str, float]) -> dict[str, float]:
    """The figures with the memory that is not the images'."""
    return {**figures, "memory": figures["memory"] - image_bytes(point)}


def image_bytes(point: Mapping[str, int]) -> float:
    """Of images of one channel."""
    return 4.0 * point["images"] * point["size"] ** 2


def main() -> None:
    """Measures and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--axes", nargs="+", choices=AXES, default=list(AXES))
    parser.add_argument("--out", type=Path, help="keep every figure here, and read those that are there")
    parser.add_argument("--point", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measured(options.point)))
        return
    known = json.loads(options.out.read_text()) if options.out and options.out.exists() else {}
    by_axis = {}
    for axis in options.axes:
        by_axis[axis] = of_axis(axis, known)
        if options.out:
            options.out.write_text(json.dumps(known, indent=1))
        print(table(axis, by_axis[axis]), end="\n\n", flush=True)
    if set(by_axis) == set(AXES):
        print(at_imagenet(by_axis))


if __name__ == "__main__":
    main()
