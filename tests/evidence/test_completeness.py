"""No parameter is ever left out of the curvature, or counted twice, without a word."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path as File

import pytest
import torch
from click.testing import CliRunner
from torch import Tensor

import symdsl
from processes import output_of
from symdsl import nn
from symdsl.catalog.signatures import Signature
from symdsl.cli import main
from symdsl.diagnostics import RunError
from symdsl.evidence import CURVATURES, Categorical, Exact, estimate
from symdsl.kinds import CONV, Kind, table
from symdsl.kinds.convolution.module import Conv
from symdsl.kinds.dense.module import FullyConnected

SPEC = """
data synthetic(channels = 1, size = 4, classes = 3)

network n {
  input image(1, 4, 4)
  layer l1: CONV(3) + BARE -> 2
  flatten
  layer h: FC -> classes
}
"""

BARE = Kind(
    Signature("BARE"),
    tensors=lambda site, arguments: CONV.tensors(site, {"k": 3}),
    preserves=lambda site, arguments: (),
    multiply_adds=lambda site, arguments: 0,
    refusal=lambda site, arguments: None,
    module=f"{__name__}:bare",
    weight_use=f"{__name__}:nothing",
    page="",
)
"""A kind that says nothing of how its path uses its weights."""


class Bare(Conv):
    """A convolution."""


def bare(layer: object, candidate: object, scale: float, generator: torch.Generator) -> nn.Path:
    return Bare(1, 2, 3, scale=scale, generator=generator)


def nothing(path: nn.Path) -> dict[str, object]:
    return {}


@pytest.fixture
def spec(monkeypatch: pytest.MonkeyPatch, tmp_path: File) -> Iterator[File]:
    monkeypatch.setattr(table, "_offers", lambda: {"BARE": EntryPoint("BARE", f"{__name__}:BARE", table.ENTRY_POINT)})
    table._loaded.cache_clear()
    path = tmp_path / "bare.sym"
    path.write_text(SPEC, encoding="utf-8")
    yield path
    table._loaded.cache_clear()


MESSAGE = "`l1.BARE.w` cannot be searched over: no weight use for parameter `w` of Bare"


def test_a_parameter_without_a_weight_use_is_named_when_the_network_is_built(spec: File) -> None:
    with pytest.raises(RunError, match=MESSAGE):
        symdsl.compile(symdsl.load(spec))


def test_a_parameter_without_a_weight_use_is_named_by_the_command(spec: File) -> None:
    shown = CliRunner().invoke(main, ["compile", str(spec)])
    assert shown.exit_code == 3
    assert MESSAGE in shown.stderr
    assert not shown.stdout


def test_built_in_kinds_are_not_waited_for(tmp_path: File) -> None:
    """Nothing of the command's own work needs torch."""
    path = tmp_path / "plain.sym"
    path.write_text(SPEC.replace(" + BARE", ""), encoding="utf-8")
    program = (
        "import sys; from symdsl.cli import main; main(['compile', 'plain.sym'], standalone_mode=False);"
        "print('torch' in sys.modules)"
    )
    assert output_of(program, tmp_path).split()[-1] == "False"


class Twice(Conv):
    """Records its tensor twice."""

    def forward(self, x: Tensor, record: nn.Recorder | None = None) -> Tensor:
        return super().forward(x, record) + super().forward(x, record)


class Silent(Conv):
    """Records nothing."""

    def forward(self, x: Tensor, record: nn.Recorder | None = None) -> Tensor:
        return super().forward(x)


def network(path: nn.Path) -> nn.Network:
    layer = nn.RelaxedLayer({"P": path}, channels=2)
    head = nn.RelaxedLayer({"FC": FullyConnected((2, 4, 4), (3, 1, 1))}, channels=3)
    return nn.Network({"l1": layer, "h": head})


def factors(net: nn.Network, examples: int = 2) -> None:
    x, y = torch.randn(examples, 1, 4, 4), torch.zeros(examples).long()
    estimate(net, x, y, Categorical(), Exact(), torch.Generator(), CURVATURES["kfac-expand"])


def test_a_tensor_recorded_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`P.w` was recorded twice in one forward pass"):
        factors(network(Twice(1, 2, 3)))


def test_a_use_that_was_not_recorded_is_refused() -> None:
    with pytest.raises(TypeError, match=r"the use of `l1.P.w` was not recorded"):
        factors(network(Silent(1, 2, 3)))


@pytest.mark.parametrize("training", [True, False])
def test_a_network_whose_estimate_fails_is_left_in_its_mode(training: bool) -> None:
    net = network(Silent(1, 2, 3)).train(training)
    with pytest.raises(TypeError, match="was not recorded"):
        factors(net)
    assert {one.training for one in net.modules()} == {training}


def test_an_estimate_needs_examples() -> None:
    with pytest.raises(ValueError, match="no examples to estimate the curvature from"):
        factors(network(Conv(1, 2, 3)), examples=0)


def test_a_module_used_twice_is_refused() -> None:
    layer = nn.RelaxedLayer({"CONV": Conv(1, 1, 3)}, channels=1)
    with pytest.raises(ValueError, match=r"`l1.bias` and `l2.bias` are the same parameter"):
        nn.Network({"l1": layer, "l2": layer})
    path = Conv(1, 1, 3)
    with pytest.raises(ValueError, match=r"`l1.paths.A.w` and `l1.paths.B.w` are the same parameter"):
        nn.Network({"l1": nn.RelaxedLayer({"A": path, "B": path}, channels=1)})
