import pytest

from symdsl.spec import parse

SMALL = """
data synthetic(size = 4, classes = 3, train = 48, test = 24) |> standardize

network small {
  input image(channels, 4, 4)
  layer l1: F-FC + CONV(3) -> 2 |> relu
  layer l2: F-FC + CONV(3) -> 3 stride 2 |> relu
  flatten
  layer h1: FC -> classes
}

search {
  epochs = 4
  every  = 2
  batch  = 16
}
"""


@pytest.fixture
def small():
    """A spec whose search takes a moment; keyword arguments are overrides, `__` for a dot."""

    def make(**overrides):
        return parse(SMALL, {key.replace("__", "."): value for key, value in overrides.items()}, source="small.sym")

    return make
