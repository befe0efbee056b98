"""The import order of the package, read from its sources; see docs/decisions/0001-import-order.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import symdsl
from processes import output_of

PACKAGE = Path(symdsl.__file__).parent
LEFT = (
    *("diagnostics", "groups", "resources", "catalog", "kinds", "language", "analysis", "graph", "render"),
    *("highlight", "spec", "runs", "report", "progress", "notebook", "editor"),
)
RIGHT = (
    "ranks",
    "nn",
    "kinds.module",
    "data",
    "evidence",
    "kinds.weight_use",
    "lowering",
    "auditing",
    "predictive",
    "runner",
    "export",
    "views",
    "cli",
    "__main__",
)
TORCH_HALF = {"module": "kinds.module", "basis": "kinds.module", "weight_use": "kinds.weight_use"}
"""Parts of a kind's folder that are right of the torch line, by their file."""

ORDER = LEFT + RIGHT
TORCH = {"torch", "torchvision"}


def imported(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of everything imported, at the top of the file or inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join((*base, *([node.module] if node.module else [])))
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def offence(part: str, name: str) -> str | None:
    """What is wrong with a module of `part` importing `name`, if anything is."""
    top, *rest = name.split(".")
    other = named(rest) if rest else ""
    if top in TORCH and part in LEFT:
        return f"`{part}` is left of the torch line, but imports {name}"
    if top != "symdsl" or other in {part, "__version__"}:
        return None
    if other not in ORDER:
        return f"`{part}` imports {name}, which is no part of the package"
    return f"`{part}` imports {name}, which is not to its left" if ORDER.index(other) > ORDER.index(part) else None


def offences(part: str, source: str, package: tuple[str, ...] = ("symdsl",)) -> list[str]:
    found = ((line, offence(part, name)) for line, name in imported(ast.parse(source), package))
    return [f"line {line}: {fault}" for line, fault in found if fault]


def sources() -> list[Path]:
    """Every module of the package but its front door, which hands out names from everywhere."""
    shipped = (path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
    return sorted(path for path in shipped if path.parts[0] not in {"_shipped", "__init__.py"})


def named(names: Sequence[str]) -> str:
    """Where a module stands in the order, by its names within the package; what follows them is ignored."""
    return TORCH_HALF.get(names[2], "kinds") if names[0] == "kinds" and len(names) > 2 else names[0]


def part_of(path: Path) -> str:
    return named(path.with_suffix("").parts)


@pytest.mark.parametrize("path", sources(), ids=str)
def test_modules_import_only_from_their_left(path: Path) -> None:
    package = ("symdsl", *path.parts[:-1])
    assert part_of(path) in ORDER, f"{path} has no place in the import order"
    assert offences(part_of(path), (PACKAGE / path).read_text(encoding="utf-8"), package) == []


@pytest.mark.parametrize(
    ("part", "source", "fault"),
    [
        ("graph", "import torch", "line 1: `graph` is left of the torch line, but imports torch"),
        ("render", "def f():\n    from torch.nn import Module", "line 2: `render` is left of the torch line"),
        ("language", "from symdsl.analysis.facts import Data", "line 1: `language` imports symdsl.analysis.facts.Data"),
        ("nn", "def f():\n    import symdsl.runner", "line 2: `nn` imports symdsl.runner, which is not to its left"),
        ("evidence", "from symdsl import lowering", "line 1: `evidence` imports symdsl.lowering"),
        ("kinds", "from symdsl.kinds.dense.module import Path", "line 1: `kinds` imports symdsl.kinds.dense.mod"),
        ("kinds.module", "import symdsl.kinds.group.weight_use", "line 1: `kinds.module` imports symdsl.kinds"),
        ("graph", "from ..render import architecture", "line 1: `graph` imports symdsl.render.architecture"),
        ("runner", "from symdsl import search", "line 1: `runner` imports symdsl.search, which is no part"),
        ("spec", "import symdsl", "line 1: `spec` imports symdsl, which is no part"),
    ],
)
def test_the_reader_names_the_line_that_breaks_the_order(part: str, source: str, fault: str) -> None:
    (found,) = offences(part, source, ("symdsl", part))
    assert found.startswith(fault)


def test_the_reader_lets_imports_from_the_left_pass() -> None:
    source = "import torch\nfrom symdsl import __version__, nn\nfrom symdsl.groups import GROUPS\nfrom . import factors"
    assert offences("evidence", source, ("symdsl", "evidence")) == []


def test_what_is_left_of_the_line_loads_no_torch(tmp_path: Path) -> None:
    modules = [".".join(("symdsl", *path.with_suffix("").parts)) for path in sources() if part_of(path) in LEFT]
    program = f"import importlib, sys\nfor name in {modules}: importlib.import_module(name)\n"
    program += "print(sorted({'torch', 'torchvision'} & set(sys.modules)))"
    assert output_of(program, tmp_path) == "[]\n"
