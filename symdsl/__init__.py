"""symdsl: write what each layer of a network might be; learn from the training data which structure it wants."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from symdsl import data, render
    from symdsl.auditing import audit
    from symdsl.diagnostics import NumericalError, RunError, SpecError
    from symdsl.evidence import laplace
    from symdsl.lowering import compile
    from symdsl.progress import Callback
    from symdsl.runner import load_run, search, search_seeds
    from symdsl.spec import Spec, load, parse

__version__ = "0.2.0"

__all__ = [
    "Callback",
    "NumericalError",
    "RunError",
    "Spec",
    "SpecError",
    "__version__",
    "audit",
    "compile",
    "data",
    "laplace",
    "load",
    "load_run",
    "parse",
    "render",
    "search",
    "search_seeds",
]

_HOMES = {
    "Callback": "progress",
    "NumericalError": "diagnostics",
    "RunError": "diagnostics",
    "Spec": "spec",
    "SpecError": "diagnostics",
    "audit": "auditing",
    "compile": "lowering",
    "load": "spec",
    "load_run": "runner",
    "parse": "spec",
    "search": "runner",
    "search_seeds": "runner",
}
_MODULES = {"data": "data", "laplace": "evidence.laplace", "render": "render"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that checking a spec never waits for torch."""
    if name in _MODULES:
        return importlib.import_module(f"symdsl.{_MODULES[name]}")
    if name not in _HOMES:
        raise AttributeError(f"module `symdsl` has no attribute `{name}`")
    value = getattr(importlib.import_module(f"symdsl.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add the cell magic `%%sym` to a notebook; `%load_ext symdsl` calls this."""
    from symdsl.notebook import register

    register(shell)


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return __all__
