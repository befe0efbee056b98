import pytest

from runner_specs import SMALL
from symdsl.spec import parse


@pytest.fixture
def small():
    """A spec whose search takes a moment; keyword arguments are overrides, `__` for a dot."""

    def make(**overrides):
        return parse(SMALL, {key.replace("__", "."): value for key, value in overrides.items()}, source="small.sym")

    return make
