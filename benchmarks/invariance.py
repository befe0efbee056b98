"""What ranges averages learn, and how invariant networks really are.

    python benchmarks/invariance.py ranges --root DIR
    python benchmarks/invariance.py moved --root DIR
    python benchmarks/invariance.py bound --root DIR
    python benchmarks/invariance.py audit --root DIR
    python benchmarks/invariance.py inside --root DIR
    python benchmarks/invariance.py cost

`ranges` learns the rotation of digits turned by 180, by 90 and by no degrees, from starts of 5 and 90 degrees, beside
MAP at the start; `moved` the translation of digits moved by up to 7 pixels, and the scales of digits scaled by up to a
logarithm of 0.5, from none. `bound` is table 1 of van der Ouderaa & van der Wilk 2022: the variational bound of random
features at fixed and at learned rotations. `audit` compares weight tying, augmentation and a regulariser under four
quarter turns. `inside` compares relaxed layers, an average, and both. `cost` measures evidence
steps with a learned range against those with a fixed one. Runs are kept in `--out` and not repeated when they are there
already.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kept import result_of, setting

import symdsl
from symdsl import spec
from symdsl.runs.schema import Objective

SPECS = Path(__file__).parent.parent / "specs" / "invariance"
TURNS = {"fully": "180", "partially": "90", "plain": "0"}
"""Table 1's data sets: the largest angle that digits are turned by."""

ANGLES = ("5", "45", "90", "135", "175")
AUDITED = ("tied", "augmented", "regularised")
INSIDE = ("relaxed", "averaged", "both")


def learned(
    name: str, given: argparse.Namespace, start: str = "", objective: Objective | None = None
) -> dict[str, Any]:
    """The result of a spec, perhaps with another range to start from."""
    text = (SPECS / f"{name}.sym").read_text(encoding="utf-8")
    if start:
        text = text.replace("rotation = 5,", f"rotation = {start},")
    found = spec.parse(text, {**given.set, "data.root": f'"{given.root}"'}, source=f"{name}.sym")
    return result_of(found, folder(name, given, start, objective), objective, given.device)


def folder(name: str, given: argparse.Namespace, start: str = "", objective: Objective | None = None) -> Path:
    """Where a run is kept."""
    words = "-".join(f"{key}={value}" for key, value in given.set.items())
    return Path(given.out) / "-".join(one for one in (name, start, objective, words) if one)


def row(*cells: object) -> None:
    """Prints a row of a table in Markdown."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def scores(result: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Test accuracy, test NLL, evidence and time of a run."""
    test, evidence = result["test"], result["neg_log_evidence_per_example"]
    return f"{100 * test['accuracy']:.2f}", f"{test['nll']:.4f}", f"{evidence:.4f}", f"{result['wall_s']['total']:.0f}"


def ranges(given: argparse.Namespace) -> None:
    """The ranges learned of rotated and moved digits."""
    row("data", "start", "objective", "learned", "test accuracy, %", "test NLL", "-log evidence", "wall s")
    row(*["---"] * 8)
    for name in ("rotated", "partly_rotated", "plain"):
        for start in ("5", "90"):
            found = learned(name, given, start)
            row(name, start, found["objective"], f"{found['averages'][0]['ranges']['rotation']:.0f}°", *scores(found))
        row(name, "5", "map", "5°", *scores(learned(name, given, "5", "map")))


def moved(given: argparse.Namespace) -> None:
    """The ranges learned, from none, of digits that were moved and of digits that were scaled."""
    row("data", "objective", "put in", "learned", "test accuracy, %", "test NLL", "-log evidence", "wall s")
    row(*["---"] * 8)
    for name, put_in in (("translated", 0.25), ("scaled", 0.5)):
        for objective in (None, "map"):
            found = learned(name, given, objective=objective)
            shown = ", ".join(f"{value:.3f}" for value in found["averages"][0]["ranges"].values())
            row(name, found["objective"], put_in, shown, *scores(found))


def bound(given: argparse.Namespace) -> None:
    """Table 1 of van der Ouderaa & van der Wilk 2022: the bound at fixed ranges, and at the learned one."""
    row("rotation", *(f"{name}: accuracy, %, bound, range" for name in TURNS))
    row(*["---"] * (1 + len(TURNS)))
    for angle in (*ANGLES, ""):
        found = [bounded(data, angle, given) for data in TURNS]
        row(f"fixed {angle}°" if angle else "learned, from 5°", *map(bounded_scores, found))


def bounded(data: str, angle: str, given: argparse.Namespace) -> dict[str, Any]:
    """The result of one cell: digits turned as their name says, and a fixed angle, or none where it is learned."""
    text = (SPECS / "bound.sym").read_text(encoding="utf-8")
    text = text.replace("rotate(degrees = 180)", f"rotate(degrees = {TURNS[data]})")
    if angle:
        text = text.replace("rotation = 5, samples = 31", f"rotation = {angle}, samples = 31, fixed")
    found = spec.parse(text, {**given.set, "data.root": f'"{given.root}"'}, source="bound.sym")
    return result_of(found, folder(f"bound-{data}", given, angle, None), None, given.device)


def bounded_scores(result: Mapping[str, Any]) -> str:
    """Test accuracy, bound per example, and range."""
    angle = result["averages"][0]["ranges"]["rotation"]
    return f"{100 * result['test']['accuracy']:.2f}, {-result['neg_log_evidence_per_example']:.3f}, {angle:.0f}°"


def audit(given: argparse.Namespace) -> None:
    """Weight tying, augmentation and a regulariser under quarter turns."""
    row("network", "accuracy, %", "worst, %", "LI", "DI", "SI", "Jacobian")
    row(*["---"] * 7)
    for name in AUDITED:
        learned(name, given, objective="map")
        run = symdsl.load_run(folder(name, given, objective="map"))
        found = symdsl.audit(run.network, symdsl.data.load(run.spec).test, "p4")
        row(
            *(
                name,
                f"{100 * found.accuracy:.2f}",
                f"{100 * found.worst_accuracy:.2f}",
                f"{found.logit_invariance:.3g}",
            ),
            *(f"{found.distribution_invariance:.3g}", f"{found.saliency_similarity:.3f}", f"{found.jacobian_norm:.3g}"),
        )


def inside(given: argparse.Namespace) -> None:
    """Relaxed layers, an average around a dense layer, and an average around relaxed layers."""
    row("network", "range", "test accuracy, %", "test NLL", "-log evidence", "wall s")
    row(*["---"] * 6)
    for name in INSIDE:
        found = learned(name, given)
        angle = [f"{one['ranges']['rotation']:.0f}°" for one in found.get("averages", ())]
        row(name, *(angle or ["none"]), *scores(found))


def cost(given: argparse.Namespace) -> None:
    """Seconds of evidence steps with a learned and with a fixed range, in turns."""
    text = (SPECS / "digits_turned.sym").read_text(encoding="utf-8")
    seconds: dict[str, list[float]] = {"learned": [], "fixed": []}
    for number in range(given.rounds):
        for name, ending in (("learned", "samples = 31"), ("fixed", "samples = 31, fixed")):
            found = spec.parse(
                text.replace("samples = 31", ending), {**given.set, "search.seed": number}, source="cost.sym"
            )
            result = result_of(found, Path(given.out) / f"cost-{name}-{number}", "laplace", given.device)
            seconds[name].append(result["wall_s"]["evidence"])
    ratio = statistics.median(a / b for a, b in zip(seconds["learned"], seconds["fixed"], strict=True))
    print(f"evidence seconds: {seconds}; median ratio {ratio:.2f}")


COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "ranges": ranges,
    "moved": moved,
    "bound": bound,
    "audit": audit,
    "inside": inside,
    "cost": cost,
}


def main() -> None:
    """Reads the arguments and runs what they ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=list(COMMANDS))
    parser.add_argument("--root", default="~/data", help="folder of the data sets")
    parser.add_argument("--out", type=Path, default=Path("runs/invariance"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="K=V")
    given = parser.parse_args()
    given.set = dict(given.set)
    COMMANDS[given.command](given)


if __name__ == "__main__":
    main()
