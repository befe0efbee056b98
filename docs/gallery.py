"""Runs every shipped spec and writes the gallery: `python docs/gallery.py`.

The page shows each spec's picture, numbers and time; it becomes `docs/gallery.md`, the pictures `docs/images/gallery`.
The runs stay in `runs/gallery`: what is finished there is not run again, and what was interrupted goes on, so that
deleting that folder is how to begin anew. Specs with a profile `cpu` are run with it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs

from symdsl import load, search
from symdsl.analysis.library import is_library
from symdsl.diagnostics import Collector, NumericalError, RunError, SpecError
from symdsl.language.imports import read_file
from symdsl.progress import observers
from symdsl.render.cells import number_text, percent_text
from symdsl.render.runs import time_text
from symdsl.runs import RunFolder
from symdsl.spec import Spec

ROOT = Path(__file__).parents[1]
PAGE, PICTURES = "gallery.md", Path("images", "gallery")
PROFILE = "cpu"

_HEAD = """# Gallery

Shipped specs, and what `symdsl search SPEC` learned from their data with the seed of each. `python docs/gallery.py`
runs them all, or those that it is given, and writes this page.

| spec | test accuracy | test NLL, nats | parameters | epochs | time |
|---|--:|--:|--:|--:|--:|
"""


@attrs.frozen(eq=False)
class Entry:
    """A spec and what became of it.

    Attributes:
        path: of the spec.
        command: that runs it.
        run: its finished run; None where it failed.
        reason: why it failed.
    """

    path: Path
    command: str
    run: RunFolder | None = None
    reason: str = ""

    @property
    def title(self) -> str:
        """The path of the spec, from the project's folder where it is in it."""
        return _relative(self.path)

    @property
    def name(self) -> str:
        """A name for files."""
        return self.title.removeprefix("specs/").removesuffix(".sym").replace("/", "_")


def _relative(path: Path) -> str:
    full = path.resolve()
    return full.relative_to(ROOT).as_posix() if full.is_relative_to(ROOT) else path.as_posix()


def shipped() -> list[Path]:
    """Every spec that ships with the package, without the libraries that they import."""
    paths = sorted((ROOT / "specs").rglob("*.sym"))
    programs = ((path, read_file(path, str(path), Collector())) for path in paths)
    return [path for path, program in programs if program is not None and not is_library(program)]


def run(path: Path, folder: Path, device: str, settings: dict[str, str]) -> Entry:
    """Runs a spec, or goes on with its run, or takes its finished one."""
    try:
        spec = _loaded(path, settings)
    except SpecError as error:
        return Entry(path, _command(path, settings), reason=str(error.diagnostics[0]))
    if spec.profile is not None:
        settings = {"profile": spec.profile.name, **settings}
    entry = Entry(path, _command(path, settings))
    try:
        _search(spec, folder / entry.name, device)
    except (RunError, NumericalError) as error:
        return attrs.evolve(entry, reason=str(error))
    return attrs.evolve(entry, run=RunFolder.view(folder / entry.name))


def _loaded(path: Path, settings: dict[str, str]) -> Spec:
    """The spec with its profile for small machines, where it has one."""
    try:
        return load(path, {"profile": PROFILE, **settings})
    except SpecError:
        return load(path, settings)


def _command(path: Path, settings: dict[str, str]) -> str:
    return " ".join(["symdsl search", _relative(path), *(f"--set {key}={value}" for key, value in settings.items())])


def _search(spec: Spec, folder: Path, device: str) -> None:
    begun = (folder / "run.json").is_file()
    if begun and RunFolder.view(folder).read_text("spec.sym") != spec.text():
        raise RunError(f"{folder}: holds a run of another spec; delete it to run this one")
    if begun and RunFolder.view(folder).status == "finished":
        return
    with observers(quiet=False) as display:
        watcher = display.of()
        search(spec, device, out=None if begun else folder, resume=folder if begun else None, callbacks=[watcher])


def page(entries: Sequence[Entry]) -> str:
    """The page about some entries; their pictures are in `PICTURES`, beside it."""
    results = [(entry, entry.run.read_result()) for entry in entries if entry.run]
    rows = "".join(f"| {' | '.join(_row(entry, result))} |\n" for entry, result in results)
    parts = "".join(_part(entry, result) for entry, result in results)
    failed = "".join(f"- `{entry.command}`: {entry.reason}\n" for entry in entries if not entry.run)
    return _HEAD + rows + parts + (f"\n## Not run\n\n{failed}" if failed else "")


def _row(entry: Entry, result: dict[str, Any]) -> Iterator[str]:
    test = result["test"]
    yield f"[{entry.title}](#{_anchor(entry.title)})"
    yield percent_text(test.get("accuracy"))
    yield number_text(test["nll"])
    yield f"{result['parameters']:,}"
    yield str(result["epochs"])
    yield time_text(result["wall_s"]["total"])


def _anchor(title: str) -> str:
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter in "-_")


def _part(entry: Entry, result: dict[str, Any]) -> str:
    learned = ", ".join(_alike(result["layers"]))
    return (
        f"\n## {entry.title}\n\n{_description(entry.path)}\n\n"
        + (f"`{entry.command}`\n\n" if " --set " in entry.command else "")
        + f"![{learned}]({(PICTURES / entry.name).as_posix()}.svg)\n"
    )


def _alike(layers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What layers became, once for those that follow one another and became the same."""
    for chosen, alike in groupby(layers, key=lambda layer: layer["chosen"] or "removed"):
        names = [layer["name"] for layer in alike]
        yield f"{names[0]} {chosen}" if len(names) == 1 else f"{names[0]} to {names[-1]} {chosen}"


def _description(path: Path) -> str:
    """The comment that a spec begins with."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").strip())
    text = " ".join(lines).removeprefix(f"{_relative(path)}: ")
    return text[:1].upper() + text[1:]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what is asked and writes the page; 3 if something could not be run."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*", type=Path, help="by default every shipped one")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "gallery", help="folder of the runs")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of the page")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda[:n]")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="K=V", help="as in a search")
    asked = parser.parse_args(arguments)
    settings = dict(one.split("=", 1) for one in asked.settings)
    entries = [run(path, asked.runs, asked.device, settings) for path in asked.specs or shipped()]
    (asked.out / PICTURES).mkdir(parents=True, exist_ok=True)
    for entry in entries:
        if entry.run:
            picture = entry.run.read_text("architecture.svg")
            (asked.out / PICTURES / f"{entry.name}.svg").write_text(picture, encoding="utf-8")
        else:
            print(f"{entry.title}: {entry.reason}", file=sys.stderr)
    (asked.out / PAGE).write_text(page(entries), encoding="utf-8")
    return 0 if all(entry.run for entry in entries) else 3


if __name__ == "__main__":
    sys.exit(main())
