"""Kinds of other packages, by the example in docs/examples."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import attrs
import pytest
import torch

import symdsl
from oracles.comparison import assert_same
from symdsl import lowering
from symdsl.catalog.shapes import FactorSize
from symdsl.catalog.signatures import Parameter, Quoted, Real, Signature, Switch, Whole
from symdsl.diagnostics import RunError
from symdsl.editor.reading import Reading
from symdsl.evidence import CURVATURES, Categorical, Exact, WeightUse, check_weight_uses, estimate
from symdsl.graph.build import layers
from symdsl.kinds import CONV, KINDS, Arguments, K, Kind, Refusal, Site, Tensor, table
from symdsl.kinds.convolution.module import Conv
from symdsl.kinds.convolution.weight_use import FILTERS
from symdsl.kinds.dense.module import FullyConnected
from symdsl.kinds.dense.weight_use import fully_connected
from symdsl.nn import Network, RelaxedLayer
from symdsl.nn import Path as NetworkPath
from symdsl.nn.maps import Flatten

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "symdsl-depthwise"

RESUMED = """
import json, sys
from symdsl import runner
from symdsl.progress import Callback
from symdsl.spec import load

class Interrupting(Callback):
    def on_epoch(self, metrics):
        if metrics["epoch"] == 2:
            raise KeyboardInterrupt

spec = load("demo.sym", {"search.epochs": 4})
whole = runner.search(spec, device="cpu", out="whole").content
try:
    runner.search(spec, device="cpu", out="parts", callbacks=[Interrupting()])
except KeyboardInterrupt:
    pass
parts = runner.search(spec, device="cpu", resume="parts").content
del whole["wall_s"], parts["wall_s"]
assert whole == parts
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package installed in it, built from its sources without a network."""
    folder = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", folder, EXAMPLE], check=True)
    return folder


def run(installed: Path, folder: Path, *arguments: str) -> str:
    """What Python prints with the example package beside symdsl."""
    paths = f"{Path(symdsl.__file__).parents[1]}:{installed}"
    environment = {"PYTHONPATH": paths, "PATH": "/usr/bin:/bin", "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_spec_can_name_the_kind_of_an_installed_package(installed: Path, tmp_path: Path) -> None:
    spec = tmp_path / "demo.sym"
    spec.write_text((EXAMPLE / "demo.sym").read_text(encoding="utf-8"), encoding="utf-8")
    run(installed, tmp_path, "-m", "symdsl", "check", "demo.sym")
    compiled = json.loads(run(installed, tmp_path, "-m", "symdsl", "compile", "demo.sym", "--emit", "json"))
    (depthwise,) = (one for one in compiled["layers"][2]["candidates"] if one["kind"] == "DEPTHWISE")
    assert depthwise["parameters"] == 4 * 3 * 3
    run(installed, tmp_path, "-c", RESUMED)
    assert "DEPTHWISE(3)" in (tmp_path / "whole" / "spec.sym").read_text(encoding="utf-8")
    assert "#b0d0c0" in (tmp_path / "whole" / "architecture.svg").read_text(encoding="utf-8")
    assert "DEPTHWISE" in run(installed, tmp_path, "-m", "symdsl", "show", "whole")


def test_without_the_package_the_kind_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(symdsl.SpecError, match="unknown kind `DEPTHWISE`"):
        symdsl.load(EXAMPLE / "demo.sym")


@pytest.fixture
def depthwise(monkeypatch: pytest.MonkeyPatch) -> Network:
    monkeypatch.syspath_prepend(EXAMPLE)
    from symdsl_depthwise.path import Depthwise, weight_use

    generator = torch.Generator().manual_seed(0)
    path = Depthwise(3, 3, 2, 1.0, generator)
    path.weight_use = weight_use
    head = FullyConnected((12, 1, 1), (3, 1, 1), 1.0, generator)
    head.weight_use = fully_connected
    stages = {"l1": RelaxedLayer({"D": path}, 3, stride=2), "flat": Flatten(), "h1": RelaxedLayer({"FC": head}, 3)}
    return Network(stages).double()


@pytest.mark.parametrize("sharing", ["expand", "reduce"])
def test_the_factors_of_the_example_equal_their_definition(depthwise: Network, sharing: str) -> None:
    x = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(1)).double()
    found = estimate(
        depthwise,
        x,
        torch.zeros(2, dtype=torch.int64),
        Categorical(),
        Exact(),
        torch.Generator(),
        CURVATURES[f"kfac-{sharing}"],
    ).ggn.blocks["l1.D.w"]  # type: ignore[attr-defined]
    right, left = torch.zeros(3, 9, 9).double(), torch.zeros(1, 1, 1).double()
    for image in x:
        uses: dict[str, object] = {}
        outputs = depthwise(image[None], uses)
        aligned, output = uses["l1.D.w"].inputs[0], uses["l1.D.w"].output  # type: ignore[attr-defined]
        columns = list(Categorical().loss_hessian_sqrt(outputs.detach()))
        pulled = [torch.autograd.grad(outputs, output, column, retain_graph=True)[0][0] for column in columns]
        for plane in range(3):
            rows = [
                torch.stack([aligned[plane, (i + a) % 4, (j + b) % 4] for a in (-1, 0, 1) for b in (-1, 0, 1)])
                for i in (0, 2)
                for j in (0, 2)
            ]
            gradients = [[g[plane, i, j] for i in range(2) for j in range(2)] for g in pulled]
            if sharing == "reduce":
                rows, gradients = [torch.stack(rows).sum(0) / 2], [[sum(uses) / 2] for uses in gradients]
            right[plane] += sum(torch.outer(row, row) for row in rows)
            shares = 12 if sharing == "expand" else 3
            left += sum(g**2 for uses in gradients for g in uses) / (shares * len(x))
    assert_same(found.input.blocks(), right)
    assert_same(found.output.blocks(), left.detach())


BROKEN = {
    "no_such_module:KIND": "cannot be used: ModuleNotFoundError",
    "json:dumps": "must be a `Kind`, found `function`",
    "symdsl.kinds:CONV": "its signature has another name, `CONV`",
}


@pytest.mark.parametrize("value", BROKEN)
def test_a_broken_package_is_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    offers = {"MINE": EntryPoint("MINE", value, table.ENTRY_POINT)}
    monkeypatch.setattr(table, "_offers", lambda: offers)
    table._loaded.cache_clear()
    with pytest.raises(RunError, match=BROKEN[value]):
        KINDS["MINE"]
    assert "MINE" in list(KINDS)
    table._loaded.cache_clear()


class Offer:
    """The entry point of a kind that is made here."""

    name, value, dist = "MINE", "mine:MINE", None

    def __init__(self, **changes: Any) -> None:
        self.kind = attrs.evolve(CONV, signature=attrs.evolve(CONV.signature, name="MINE"), **changes)

    def load(self) -> Kind:
        return self.kind


MINE = """
data digits

network n {
  input image(1, 8, 8)
  layer l1: MINE(3) + CONV(3) -> 2 |> relu
  flatten
  layer h: FC -> classes
}
"""


def failing(site: Site, arguments: Arguments) -> Any:
    raise ZeroDivisionError("boom")


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Offers the kind `MINE`: CONV with changes."""
    table._loaded.cache_clear()
    yield lambda **changes: monkeypatch.setattr(table, "_offers", lambda: {"MINE": Offer(**changes)})
    table._loaded.cache_clear()


@pytest.mark.parametrize(
    ("part", "function", "reason"),
    [
        ("refusal", failing, "`refusal` fails with ZeroDivisionError: boom"),
        ("refusal", lambda *_: "no", "`refusal` must return `None`, or a `Refusal` .*, found 'no'"),
        ("refusal", lambda *_: Refusal("X1", "is odd", "", ""), "whose code is that of an error, such as E202"),
        ("tensors", failing, "`tensors` fails with ZeroDivisionError: boom"),
        ("tensors", lambda *_: None, "`tensors` must return a tuple of `Tensor`s, found None"),
        ("preserves", lambda *_: "translations", "`preserves` must return a tuple of texts, found 'translations'"),
        ("multiply_adds", lambda *_: 1.5, "`multiply_adds` must return a whole number, found 1.5"),
    ],
)
def test_an_answer_that_is_wrong_names_the_kind(
    offered: Callable[..., None], part: str, function: Any, reason: str
) -> None:
    offered(**{part: function})
    with pytest.raises(RunError, match=f"^the kind `MINE` of the package `mine:MINE` cannot be used: .*{reason}"):
        symdsl.parse(MINE)
    (found,) = Reading(MINE).diagnostics
    assert found.message.startswith("the kind `MINE` of the package")
    assert (found.span.line, found.span.column) == (6, 13)
    assert Reading(MINE).layers == []


def test_tensors_may_come_as_a_list(offered: Callable[..., None]) -> None:
    offered(tensors=lambda site, arguments: list(CONV.tensors(site, arguments)))
    assert list(symdsl.compile(symdsl.parse(MINE)).layer("l1").paths) == ["MINE", "CONV"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tensors": lambda *_: (Tensor("w", (7, 7), FactorSize(1, 1), FactorSize(1, 1)),)}, r"declares .*\(7, 7\)"),
        ({"tensors": lambda *_: (Tensor("v", (2, 1, 3, 3), FactorSize(1, 1), FactorSize(1, 1)),)}, r"declares \[\('v'"),
        ({"tensors": lambda site, given: CONV.tensors(site, given) * 2}, "but its kind declares"),
        ({"tensors": lambda *_: ()}, r"declares \[\]"),
        ({"module": "math:fsum"}, "`math:fsum` cannot build `l1.MINE`: TypeError"),
        ({"module": "builtins:print"}, "must build `l1.MINE` as a `symdsl.nn.Path`, found `NoneType`"),
    ],
)
def test_a_module_that_is_not_what_the_record_says_is_refused(
    offered: Callable[..., None], change: dict[str, Any], reason: str
) -> None:
    offered(**change)
    spec = symdsl.parse(MINE)
    with pytest.raises(RunError, match=reason):
        symdsl.compile(spec)


def transposed(path: NetworkPath) -> dict[str, WeightUse]:
    return {"w": attrs.evolve(FILTERS, gradients=lambda path, x, y: y.flatten(2).unsqueeze(1))}


def without_blocks(path: NetworkPath) -> dict[str, WeightUse]:
    return {"w": attrs.evolve(FILTERS, inputs=lambda path, x: FILTERS.inputs(path, x)[:, 0])}


def of_another_position(path: NetworkPath) -> dict[str, WeightUse]:
    return {"w": attrs.evolve(FILTERS, inputs=lambda path, x: FILTERS.inputs(path, x.flip(3)))}


def of_half_the_moment(path: NetworkPath) -> dict[str, WeightUse]:
    moment = FILTERS.input_moment
    assert moment is not None
    return {"w": attrs.evolve(FILTERS, input_moment=lambda path, x: moment(path, x) / 2)}


def of_half_the_sum(path: NetworkPath) -> dict[str, WeightUse]:
    total = FILTERS.input_sum
    assert total is not None
    return {"w": attrs.evolve(FILTERS, input_sum=lambda path, x: total(path, x) / 2)}


def failing_use(path: NetworkPath) -> dict[str, WeightUse]:
    return {"w": attrs.evolve(FILTERS, inputs=failing)}


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        (
            transposed,
            r"ValueError: `w` has inputs \[2, 1, 64, 9\], gradients \[2, 1, 2, 64\], expected ",
        ),
        (without_blocks, r"ValueError: `w` has inputs \[2, 64, 9\], gradients \[2, 1, 64, 2\]"),
        (of_another_position, "ValueError: the gradients in `w` that follow from its use are not those of autograd"),
        (of_half_the_moment, "ValueError: the `input_moment` of `w` is not that of its inputs"),
        (of_half_the_sum, "ValueError: the `input_sum` of `w` is not that of its inputs"),
        (failing_use, "ZeroDivisionError: boom"),
    ],
)
def test_a_weight_use_from_which_another_curvature_follows_is_refused(
    offered: Callable[..., None], use: Callable[..., Any], reason: str
) -> None:
    place = f"{__name__}:{use.__name__}"
    offered(weight_use=place)
    with pytest.raises(RunError, match=f"`{place}` describes `l1.MINE` wrongly: {reason}"):
        symdsl.compile(symdsl.parse(MINE))


class Centred(Conv):
    """A convolution of maps without their means, whose inputs sum to zero over positions."""

    def forward(self, x: Any, record: Any = None) -> Any:
        return super().forward(x - x.mean((2, 3), keepdim=True), record)


class Silent(Conv):
    """A convolution that does not tell of its use."""

    def forward(self, x: Any, record: Any = None) -> Any:
        return super().forward(x)


class Talkative(Conv):
    """A convolution that tells twice of its use."""

    def forward(self, x: Any, record: Any = None) -> Any:
        super().forward(x, record)
        return super().forward(x, record)


class Changed(Conv):
    """A convolution that maps otherwise where it does not tell of its use."""

    def forward(self, x: Any, record: Any = None) -> Any:
        y = super().forward(x, record)
        return y if record is not None else 3 * y


class Dropping(Conv):
    """A convolution that drops numbers in training, and normalises by the batch."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.normal = torch.nn.BatchNorm2d(1, affine=False)

    def forward(self, x: Any, record: Any = None) -> Any:
        y = super().forward(self.normal(x), record)
        return torch.nn.functional.dropout(y, 0.5, self.training)


class Hidden(Conv):
    """A convolution times a factor that starts at zero, whose filters are recorded in the wrong place."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.a = torch.nn.Parameter(torch.zeros(1))

    def forward(self, x: Any, record: Any = None) -> Any:
        z = super().forward(x)
        y = z * self.a
        if record is not None:
            record("w", x, z)
            record("a", z, y)
        return y


def maker(kind: type[Conv]) -> Callable[..., Conv]:
    return lambda layer, candidate, scale, generator: kind(1, 2, 3, scale=scale, generator=generator)


silent, talkative, changed, dropping, hidden, centred = map(
    maker, (Silent, Talkative, Changed, Dropping, Hidden, Centred)
)


class Unaligned(Conv):
    """A convolution whose map at stride 1 is another than that of which it keeps positions."""

    def fine(self, x: Any) -> Any:
        return 2 * super().fine(x)


class Coarse(Conv):
    """A convolution without a map at stride 1."""

    def fine(self, x: Any) -> Any:
        return NetworkPath.fine(self, x)


class Misnamed(Conv):
    """A convolution that is said to be linear in a tensor that it does not have."""

    linear_in = ("v",)


def strided(kind: type[Conv]) -> Callable[..., Conv]:
    return lambda layer, candidate, scale, generator: kind(1, 2, 3, layer.strides, scale, generator)


def one_plane(layer: Any, candidate: Any, scale: float, generator: torch.Generator) -> Conv:
    return Conv(1, 1, 3, scale=scale, generator=generator)


def one_plane_declared(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    return (Tensor("w", (1, 1, 3, 3), FactorSize(1, 1), FactorSize(9, 1)),)


unaligned, coarse, misnamed = map(strided, (Unaligned, Coarse, Misnamed))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"module": f"{__name__}:one_plane", "tensors": one_plane_declared},
            r"one_plane` computes `l1.MINE` wrongly: ValueError: it writes \[2, 1, 8, 8\], expected \[2, 2, 4, 4\]",
        ),
        ({"module": f"{__name__}:unaligned"}, "ValueError: its `forward` does not keep every `stride`-th position of"),
        ({"module": f"{__name__}:coarse"}, "TypeError: Coarse does not sample, so it has no map at stride 1"),
        ({"module": f"{__name__}:misnamed"}, "`linear_in` of `l1.MINE` names `v`, which is none of its tensors"),
    ],
)
def test_a_path_that_does_not_fit_its_layer_is_refused(
    offered: Callable[..., None], change: dict[str, Any], reason: str
) -> None:
    offered(**change)
    with pytest.raises(RunError, match=reason):
        symdsl.compile(symdsl.parse(MINE.replace("-> 2", "-> 2 stride 2")))


def test_a_path_that_samples_fits_its_layer(offered: Callable[..., None]) -> None:
    offered()
    net = symdsl.compile(symdsl.parse(MINE.replace("-> 2", "-> 2 stride 2")))
    assert net(torch.randn(2, 1, 8, 8)).shape == (2, 10)


def with_factor(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    return (*CONV.tensors(site, arguments), Tensor("a", (1,), FactorSize(1, 1), FactorSize(1, 1)))


def in_a_factor(path: NetworkPath) -> dict[str, WeightUse]:
    exact = WeightUse.exact(lambda path, z, y: (z * y).flatten(1).sum(1, keepdim=True))
    return {"w": FILTERS, "a": exact}


def in_a_turned_factor(path: NetworkPath) -> dict[str, WeightUse]:
    return in_a_factor(path) | of_another_position(path)


def without_shortcuts(path: NetworkPath) -> dict[str, WeightUse]:
    return {"w": WeightUse(FILTERS.inputs, FILTERS.gradients)}


def no_use(path: NetworkPath) -> None:
    return None


@pytest.mark.parametrize("use", ["symdsl.kinds.convolution.weight_use:conv", f"{__name__}:without_shortcuts"])
def test_inputs_may_sum_to_zero_over_positions(offered: Callable[..., None], use: str) -> None:
    offered(module=f"{__name__}:centred", weight_use=use)
    assert list(symdsl.compile(symdsl.parse(MINE)).layer("l1").paths) == ["MINE", "CONV"]


def test_a_module_that_maps_otherwise_where_it_records_is_refused(offered: Callable[..., None]) -> None:
    offered(module=f"{__name__}:changed")
    with pytest.raises(RunError, match=r"`l1.MINE` wrongly: .*: the forward pass gives other outputs where it records"):
        symdsl.compile(symdsl.parse(MINE))


def test_uses_are_checked_in_evaluation_mode_and_leave_no_trace(offered: Callable[..., None]) -> None:
    offered(module=f"{__name__}:dropping")
    torch.manual_seed(3)
    path = symdsl.compile(symdsl.parse(MINE)).layer("l1").paths["MINE"]
    drawn = torch.rand(1)
    assert path.training
    assert int(path.normal.num_batches_tracked) == 0
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.rand(1))


def test_a_factor_that_starts_at_zero_hides_no_wrong_use(offered: Callable[..., None]) -> None:
    factor = {"module": f"{__name__}:hidden", "tensors": with_factor}
    offered(**factor, weight_use=f"{__name__}:in_a_factor")
    assert not symdsl.compile(symdsl.parse(MINE)).layer("l1").paths["MINE"].a.any()
    offered(**factor, weight_use=f"{__name__}:in_a_turned_factor")
    table._loaded.cache_clear()
    with pytest.raises(RunError, match="the gradients in `w` that follow from its use are not those of autograd"):
        symdsl.compile(symdsl.parse(MINE))


def test_a_function_that_gives_no_uses_is_named(offered: Callable[..., None]) -> None:
    offered(weight_use=f"{__name__}:no_use")
    with pytest.raises(RunError, match=f"`{__name__}:no_use` fails for `l1.MINE`: TypeError"):
        symdsl.compile(symdsl.parse(MINE))


def test_a_stored_graph_is_not_checked_again(offered: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    offered()
    spec, checked = symdsl.parse(MINE), list[str]()
    monkeypatch.setattr(lowering, "_check_uses", lambda path, layer, candidate: checked.append(candidate.name))
    symdsl.compile(spec)
    assert checked == ["MINE"]
    symdsl.compile(spec.graph())
    assert checked == ["MINE"]


def test_a_network_can_be_built_where_nothing_is_differentiated(offered: Callable[..., None]) -> None:
    offered()
    with torch.inference_mode():
        symdsl.compile(symdsl.parse(MINE))


def test_a_module_that_records_a_tensor_twice_is_refused(offered: Callable[..., None]) -> None:
    offered(module=f"{__name__}:talkative")
    with pytest.raises(RunError, match=r"`l1.MINE` wrongly: .*: the forward pass records `w` twice"):
        symdsl.compile(symdsl.parse(MINE))


def test_a_module_that_does_not_record_a_tensor_is_refused(offered: Callable[..., None]) -> None:
    offered(module=f"{__name__}:silent")
    with pytest.raises(RunError, match=r"`l1.MINE` wrongly: .*: the forward pass does not record the use of `w`"):
        symdsl.compile(symdsl.parse(MINE))


KINDS_OF_A_LAYER = {
    "image": "FC + F-FC + CONV(3) + S-FC + S-CONV(3)",
    "lifted": "F-GFC + S-GFC + S-GCONV(3) + GCONV(3) + GCONV(3, factor = separable)",
    "factored": "GCONV(3, factor = depthwise) + GCONV(3, factor = pointwise) + GCONV(3, group = flips)",
}


@pytest.mark.parametrize("candidates", KINDS_OF_A_LAYER.values(), ids=KINDS_OF_A_LAYER)
def test_the_check_of_weight_uses_passes_those_of_built_in_kinds(candidates: str) -> None:
    text = MINE.replace("MINE(3) + CONV(3) -> 2", f"{candidates} -> 2 stride 2")
    if "G" in candidates:
        text = text.replace("layer l1", "lift p4m\n  layer l1").replace("flatten", "project mean\n  flatten")
    spec = symdsl.parse(text)
    layer = spec.facts.network.layers[0]
    for path in symdsl.compile(spec).layer(layer.name).paths.values():
        check_weight_uses(path, torch.randn(2, *layer.in_shape.grid))


def test_a_module_with_a_mistake_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mistaken.py").write_text("def build(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RunError, match=r"`mistaken:build` of the kind `CONV` cannot be imported: SyntaxError"):
        CONV.imported("mistaken:build")


def test_a_kind_whose_name_no_spec_can_write_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = {"X-CONV": EntryPoint("X-CONV", "symdsl.kinds:CONV", table.ENTRY_POINT)}
    monkeypatch.setattr(table, "_offers", lambda: offers)
    with pytest.raises(RunError, match=r"`X-CONV` .* cannot be used: specs cannot write its name"):
        KINDS["X-CONV"]


DILATED = """
data digits

network n {
  input image(channels, 8, 8)
  layer l1: DIL(2, 3, tag = "a b") + DIL(k = 5, soft) + DIL(3, 3, power = 0.5) + DIL(3, 3, power = 1.5) -> 2 |> relu
  flatten
  layer h1: FC -> classes
}
"""


def test_arguments_of_every_type_are_written_back_as_a_spec_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    named = (Parameter("tag", Quoted(), "x"), Parameter("soft", Switch(), False), Parameter("power", Real(0, 10), 1.0))
    signature = Signature("DIL", (Parameter("rate", Whole(1, 9), 1), K, *named))
    monkeypatch.setattr(KINDS, "built_in", {**KINDS.built_in, "DIL": attrs.evolve(CONV, signature=signature)})
    spec = symdsl.parse(DILATED)
    names = [one.name for one in layers(spec.graph())[0].candidates]
    assert names == ['DIL(rate = 2, k = 3, tag = "a b")', "DIL(k = 5, soft = true)", "DIL", "DIL #2"]
    again = symdsl.parse(spec.pruned({}))
    arguments = [[one.arguments for one in layers(one.graph())[0].candidates] for one in (spec, again)]
    assert arguments[0] == arguments[1]
    net = symdsl.compile(spec)
    assert list(net.layer("l1").paths) == names


def test_a_built_in_kind_cannot_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = {"CONV": EntryPoint("CONV", "json:dumps", table.ENTRY_POINT)}
    monkeypatch.setattr(table, "_offers", lambda: offers)
    assert KINDS["CONV"] is CONV
    assert len(KINDS) == len(set(KINDS)) == len(KINDS.built_in)
