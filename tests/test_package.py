"""The front door: public names, found when asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

import symdsl
from processes import output_of
from symdsl import laplace, lowering, runner, spec


def test_every_public_name_is_there() -> None:
    assert all(getattr(symdsl, name) is not None for name in symdsl.__all__)
    assert set(dir(symdsl)) == set(symdsl.__all__)


def test_names_are_what_they_say() -> None:
    assert symdsl.load is spec.load
    assert symdsl.parse is spec.parse
    assert symdsl.compile is lowering.compile
    assert symdsl.search is runner.search
    assert symdsl.laplace is laplace
    assert symdsl.data.load.__module__ == "symdsl.data.loading"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module `symdsl` has no attribute `train`"):
        symdsl.train  # noqa: B018


def test_importing_the_package_loads_nothing_heavy(tmp_path: Path) -> None:
    heavy = "('torch', 'networkx', 'numpy', 'lark')"
    program = f"import sys, symdsl\nprint([name for name in {heavy} if name in sys.modules])"
    assert output_of(program, tmp_path) == "[]\n"
