"""Audits: what a network with a symmetry, one without, and one that was trained for it are found to be."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import attrs
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import Tensor, nn

import symdsl
from oracles.comparison import assert_same
from oracles.records import Chain, candidate
from symdsl import lowering, runner
from symdsl.auditing import _hidden, elements_of, invariance_penalty, saliency
from symdsl.cli import main
from symdsl.data import Examples
from symdsl.diagnostics import RunError
from symdsl.render.audit import audit_svg
from symdsl.spec import parse

GROUPS = ["p4", "p4m", "translations", "rotations(2)", "rotations(4)"]
PLAIN = """data digits(size = 8) |> standardize |> subset(n = 100, test = 40)
network n {
  input image(1, 8, 8)
  flatten
  layer h: FC -> 12 |> relu
  layer out: FC -> classes
}
search { epochs = 6 every = 20 batch = 20 }"""


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def examples(count: int = 12, side: int = 8) -> Examples:
    return Examples(noise(count, 1, side, side), torch.arange(count) % 3)


@pytest.mark.parametrize("group", [*GROUPS, "rotations(6)"])
def test_what_an_element_does_can_be_undone(group: str) -> None:
    x = noise(2, 1, 8, 8)
    first, *others = elements_of(group, 8, 8)
    assert_same(first.act(x), x)
    for one in others:
        assert float((one.act(x) - x).abs().max()) > 0.1
        if group != "rotations(6)":
            assert_same(one.undo(one.act(x)), x)


@pytest.mark.parametrize(("group", "order"), [("p4", 4), ("p4m", 8), ("translations", 16), ("rotations(12)", 12)])
def test_a_group_has_its_elements(group: str, order: int) -> None:
    found = elements_of(group, 8, 8)
    assert len({one.name for one in found}) == len(found) == order


@pytest.mark.parametrize(
    ("group", "size", "words"),
    [
        ("p5", (8, 8), "must be p4"),
        ("rotations(1)", (8, 8), "must be p4"),
        ("p4", (8, 6), "not square"),
        ("translations", (8, 6), "quarters of a side"),
    ],
)
def test_a_group_that_does_not_fit_is_refused(group: str, size: tuple[int, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        elements_of(group, *size)


def test_weight_tying_is_invariant_in_every_measure() -> None:
    chain = Chain(1, 8, 8).lift("p4").layer(candidate("GCONV"), channels=3, activations=("tanh",)).project("max")
    net = lowering.build(tuple(chain.pool("max").flatten().layer(candidate("FC"), channels=3).nodes), 0).double()
    found = symdsl.audit(net, examples(), "p4")
    assert found.logit_invariance < 1e-20
    assert abs(found.distribution_invariance) < 1e-12
    assert found.saliency_similarity == pytest.approx(1)
    assert found.accuracy == found.worst_accuracy
    assert found.nll == pytest.approx(found.worst_nll)
    assert [one.name for one in found.layers] == ["lift", "l1", "l2"]
    assert max(one.distance for one in found.layers) < 1e-10
    assert symdsl.audit(net, examples(), "p4m").logit_invariance > 1e-6


def test_blank_images_have_equal_saliency_maps_however_they_are_turned() -> None:
    x, y = noise(4, 1, 8, 8), torch.arange(4) % 3
    chain = Chain(1, 8, 8).lift("p4").layer(candidate("GCONV"), channels=2, activations=("tanh",)).project("max")
    net = lowering.build(tuple(chain.pool("max").flatten().layer(candidate("FC"), channels=3).nodes), 0).double()
    x[:2] = 0
    assert symdsl.audit(net, (x, y), "p4").saliency_similarity == pytest.approx(1)


def test_a_convolution_is_invariant_to_translations_in_every_measure() -> None:
    chain = Chain(1, 8, 8).layer(candidate("CONV"), channels=3, activations=("tanh",)).pool("mean").flatten()
    net = lowering.build(tuple(chain.layer(candidate("FC"), channels=3).nodes), 0).double()
    found = symdsl.audit(net, examples(), "translations")
    assert found.logit_invariance < 1e-20
    assert found.saliency_similarity == pytest.approx(1)


def test_translations_move_a_hidden_map_by_quarters_of_its_own_sides() -> None:
    chain = Chain(1, 16, 16)
    for stride in (2, 2, 2):
        chain.layer(candidate("CONV"), channels=3, stride=stride, activations=("tanh",))
    net = lowering.build(tuple(chain.flatten().layer(candidate("FC"), channels=3).nodes), 0).double()
    distances = {one.name: one.distance for one in symdsl.audit(net, examples(side=16), "translations").layers}
    assert list(distances) == ["l1", "l2", "l4"]  # a map of 2x2 has no quarters
    assert max(distances["l1"], distances["l2"]) < 1e-10
    assert distances["l4"] > 0.01


def test_examples_that_a_layer_maps_to_zero_are_left_out() -> None:
    module = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, bias=False), nn.Flatten(), nn.Linear(128, 3, bias=False))
    some = examples()
    blank = Examples(torch.cat((some.x, torch.zeros(4, *some.x.shape[1:]))), torch.cat((some.y, some.y[:4])))
    found, padded = (symdsl.audit(module, one, "p4").layers for one in (some, blank))
    assert [one.distance for one in padded] == pytest.approx([one.distance for one in found])
    assert all(one.distance == 0 for one in symdsl.audit(module, Examples(blank.x[-4:], blank.y[-4:]), "p4").layers)


def test_a_map_that_a_group_cannot_turn_is_left_out() -> None:
    module = nn.Sequential(nn.Conv2d(1, 2, 3, stride=(2, 1)), nn.Flatten(), nn.Linear(36, 3)).double()
    assert [one.name for one in symdsl.audit(module, examples()).layers] == ["2"]


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`module` \(a str\) must be a torch module, such as the `network` of a run"):
        symdsl.audit("runs/x", examples())  # type: ignore[arg-type]


def test_any_module_is_audited_and_left_as_it_was() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(128, 3))
    module = module.double().train()
    data = examples()
    found = symdsl.audit(module, (data.x, data.y), "p4")
    assert module.training
    assert found == symdsl.audit(module, data, "p4")
    assert [one.name for one in found.layers] == ["0", "4"]
    assert min(one.distance for one in found.layers) > 0.01
    module.eval()
    with torch.no_grad():
        f = [module(torch.rot90(data.x, number, (2, 3))) for number in range(4)]
    expected = sum(float(0.5 * (one - f[0]).square().sum(1).mean()) for one in f[1:]) / 3
    assert found.logit_invariance == pytest.approx(expected)
    p = [one.softmax(1) for one in f]
    divergence = sum(float((p[0] * (p[0] / one).log()).sum(1).mean()) for one in p[1:]) / 3
    assert found.distribution_invariance == pytest.approx(divergence)
    accuracies = [float((one.argmax(1) == data.y).double().mean()) for one in f]
    assert found.accuracies == pytest.approx(accuracies)
    assert (found.accuracy, found.worst_accuracy) == pytest.approx((sum(accuracies) / 4, min(accuracies)))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        found.accuracy = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_derivatives_are_taken_where_the_caller_has_turned_them_off(off: type[torch.no_grad]) -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).double().requires_grad_(False)
    expected = symdsl.audit(module, examples())
    with off():
        assert symdsl.audit(module, examples()) == expected


class Failing(nn.Module):
    """Classifies, or fails in the layer that comes last."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.fails = nn.Linear(64, 3), False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.fails:
            raise RuntimeError("it failed")
        return self.linear(x.flatten(1))


def test_a_module_that_fails_is_left_without_hooks_and_in_its_mode() -> None:
    module = nn.Sequential(nn.Conv2d(1, 1, 1), Failing()).double().train()
    module[0].eval()
    module[1].fails = True
    with pytest.raises(RuntimeError, match="it failed"):
        _hidden(module, examples().x)
    with pytest.raises(RuntimeError, match="it failed"):
        symdsl.audit(module, examples())
    assert [one.training for one in module] == [False, True]
    assert not any(one._forward_hooks for one in module.modules())


def test_the_norm_of_the_jacobian_of_a_linear_map_is_that_of_its_matrix() -> None:
    linear = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).double()
    expected = float(torch.linalg.matrix_norm(linear[1].weight.detach(), 2))
    assert symdsl.audit(linear, examples()).jacobian_norm == pytest.approx(expected)


class Squares(nn.Module):
    """Has the sum of the squared pixels for its only output."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.square().sum((1, 2, 3))[:, None]


def test_a_saliency_map_is_blurred_of_the_integrals_near_the_largest() -> None:
    squares = torch.zeros(1, 1, 9, 9, dtype=torch.float64)
    squares[0, 0, 1, 1], squares[0, 0, 1, 7], squares[0, 0, 7, 4] = 4.0, 0.91 * 4, 0.89 * 4
    found = saliency(Squares(), squares.sqrt(), torch.zeros(1, dtype=torch.long), "p4")
    squares[0, 0, 7, 4] = 0
    line = torch.exp(-0.5 * torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64))
    blur = torch.outer(line, line)[None, None] / line.sum() ** 2
    torch.testing.assert_close(found, nn.functional.conv2d(squares, blur, padding=1))


def test_integrated_gradients_of_a_linear_map_are_weights_times_image() -> None:
    linear = nn.Sequential(nn.Flatten(), nn.Linear(64, 1, bias=False)).double()
    with torch.no_grad():
        linear[1].weight.zero_()[0, 27] = 3.0
    x = noise(2, 1, 8, 8)
    found = saliency(linear, x, torch.zeros(2).long(), "p4")
    assert_same(
        found.amax((2, 3)) / found.sum((2, 3)), torch.full((2, 1), (1 / (1 + 2 * 0.6065306597)) ** 2).double(), 1e-6
    )
    assert found.flatten(1).argmax(1).tolist() == [27, 27]


def test_targets_must_be_classes() -> None:
    with pytest.raises(RunError, match="class labels"):
        symdsl.audit(nn.Flatten(), (noise(2, 1, 4, 4), noise(2)))


def test_data_are_examples_or_a_pair() -> None:
    with pytest.raises(TypeError, match=r"`data` \(a Tensor\) must be examples, such as `dataset.test`, or a pair"):
        symdsl.audit(nn.Flatten(), noise(2, 1, 4, 4))


@pytest.mark.parametrize(("images", "labels"), [(2, 1), (1, 2), (0, 0)])
def test_every_image_has_a_label(images: int, labels: int) -> None:
    with pytest.raises(ValueError, match=f"`data` has {images} images and {labels} labels, expected one label"):
        symdsl.audit(nn.Flatten(), (noise(images, 1, 4, 4), torch.zeros(labels).long()))


@pytest.mark.parametrize(("first", "wrong"), [(-1, -1), (3, 4)])
def test_a_label_is_a_class_of_the_module(first: int, wrong: int) -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 4)).double()
    with pytest.raises(ValueError, match=f"`data` holds the label {wrong}, expected 0 to 3"):
        symdsl.audit(module, (noise(2, 1, 4, 4), torch.tensor([first, first + 1])))
    bytes_alike = symdsl.audit(module, (noise(2, 1, 4, 4), torch.tensor([0, 3], dtype=torch.uint8)))
    assert bytes_alike == symdsl.audit(module, (noise(2, 1, 4, 4), torch.tensor([0, 3])))
    assert bytes_alike == symdsl.audit(module, (noise(2, 1, 4, 4).numpy(), np.array([0, 3])))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"images of shape \[2, 4, 4\], expected \[n, C, h, w\]"):
        symdsl.audit(module, (noise(2, 4, 4), torch.tensor([0, 3])))


def test_half_turns_map_any_image_to_itself() -> None:
    class Turned(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x + x.rot90(2, (-2, -1))).flatten(1)[:, :3]

    found = symdsl.audit(Turned(), (noise(5, 1, 8, 6), torch.arange(5) % 3), "rotations(2)")
    assert (found.elements, found.logit_invariance) == (("0°", "180°"), 0.0)


class Constant(nn.Module):
    """Says the same of every image."""

    def __init__(self, learned: bool) -> None:
        super().__init__()
        self.says = nn.Parameter(torch.tensor([0.0, 1.0, 2.0]).double(), requires_grad=learned)

    def forward(self, x: Tensor) -> Tensor:
        return self.says.expand(len(x), 3)


@pytest.mark.parametrize("learned", [True, False])
def test_outputs_that_do_not_depend_on_the_image_are_invariant(learned: bool) -> None:
    found = symdsl.audit(Constant(learned), (noise(6, 1, 8, 8), torch.arange(6) % 3), "p4m")
    assert (found.logit_invariance, found.saliency_similarity, found.jacobian_norm) == (0.0, 1.0, 0.0)


def test_a_module_may_squeeze_what_it_gives() -> None:
    class Squeezing(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).mean((2, 3)).squeeze()

    found = symdsl.audit(Squeezing(nn.Conv2d(1, 3, 3)).double(), (noise(6, 1, 8, 8), torch.arange(6) % 3))
    assert found.examples == 6


def test_a_module_may_change_what_it_reads_in_place() -> None:
    class Doubling(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            x *= 2
            return super().forward(x)

    plain, data = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).double(), (noise(6, 1, 8, 8), torch.arange(6) % 3)
    doubled = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).double()
    doubled.load_state_dict({"1.weight": 2 * plain[1].weight.detach(), "1.bias": plain[1].bias.detach()})
    for group in ("p4", "rotations(3)"):
        found, expected = symdsl.audit(Doubling(*plain), data, group), symdsl.audit(doubled, data, group)
        assert found.nll == pytest.approx(expected.nll)
        assert found.jacobian_norm == pytest.approx(expected.jacobian_norm)


@pytest.mark.parametrize(
    ("outputs", "given"),
    [
        *((lambda x: x.sum((1, 2, 3)), r"\[2\]"), (lambda x: x, r"\[2, 1, 4, 4\]"), (lambda x: (x, x), "a tuple")),
        (lambda x: x.new_zeros(3, 3), r"\[3, 3\]"),
    ],
)
def test_outputs_are_the_logits_of_classes(outputs: Callable[[Tensor], Any], given: str) -> None:
    module = nn.Identity()
    module.forward = outputs  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=rf"the module gives {given}, expected logits \[2, class\]"):
        symdsl.audit(module, (noise(2, 1, 4, 4), torch.zeros(2).long()))


@pytest.mark.parametrize("group", [4, None, "rotations(361)", "rotations(1)"])
def test_a_group_has_a_name(group: Any) -> None:
    with pytest.raises(ValueError, match=r"must be p4, p4m, translations or rotations\(n\), n from 2 to 360"):
        symdsl.audit(nn.Flatten(), (noise(2, 1, 4, 4), torch.zeros(2).long()), group)


# ---------------------------------------------------------------- regulariser


def test_the_penalty_is_the_logit_invariance_error_of_the_batch() -> None:
    linear, data = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).double(), examples()
    found = invariance_penalty(linear, data.x, linear(data.x), elements_of("p4", 8, 8))
    assert float(found.detach()) / len(data) == pytest.approx(symdsl.audit(linear, data, "p4").logit_invariance)


def test_a_regularised_network_is_less_sensitive_to_the_group(tmp_path) -> None:  # type: ignore[no-untyped-def]
    found = {}
    for name, setting in (("without", ""), ("with", "invariance = logit(group = p4, weight = 3) ")):
        spec = parse(PLAIN.replace("epochs", f"{setting}epochs"))
        runner.search(spec, device="cpu", out=tmp_path / name, objective="map")
        run = symdsl.load_run(tmp_path / name)
        found[name] = symdsl.audit(run.network, symdsl.data.load(spec).test, "p4").logit_invariance
    assert found["with"] < 0.1 * found["without"]


# ---------------------------------------------------------------- the command


def called(*arguments: object):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(main, ["audit", *map(str, arguments), "--device", "cpu"])


def test_the_command_audits_runs_and_specs(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "n.sym").write_text(PLAIN)
    runner.search(symdsl.load(tmp_path / "n.sym"), device="cpu", out=tmp_path / "run", objective="map")
    done = called(tmp_path / "run", "--group", "p4m", "--json")
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert (content["group"], content["examples"], len(content["elements"])) == ("p4m", 40, 8)
    assert {"accuracy", "worst_accuracy", "distribution_invariance", "logit_invariance", "saliency_similarity"} <= {
        *content
    }
    assert (tmp_path / "run" / "audit.svg").read_bytes().startswith(b"<svg")
    fresh = called(tmp_path / "n.sym", "-o", tmp_path / "fresh.svg")
    assert fresh.exit_code == 0, fresh.output
    assert "saliency maps turned back" in fresh.stdout
    assert "h   " in fresh.stdout


def test_the_picture_names_the_ten_largest_outputs() -> None:
    logits, pixels = np.arange(24.0).reshape(2, 12), np.ones((1, 2, 2))
    names = ["a", "b", "d < e", *"fghijklm", "a name of rather many letters"]
    picture = audit_svg("t", ["0°", "90°"], names, logits, pixels, np.ones((1, 2, 2, 2))).decode()
    words = [one.text for one in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert not {"a", "b"} & set(words)
    assert {"d < e", *"fghijklm", "a name of rather many…"} <= set(words)


def test_the_figures_are_printed_before_a_picture_that_cannot_be_written(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "n.sym").write_text(PLAIN)
    done = called(tmp_path / "n.sym", "-o", tmp_path / "nowhere" / "deep" / "fresh.svg")
    assert done.exit_code == 3
    assert "saliency maps turned back" in done.stdout


def test_the_command_says_in_a_line_what_cannot_be_audited(tmp_path) -> None:  # type: ignore[no-untyped-def]
    done = called(tmp_path / "nothing")
    assert done.exit_code == 3
    assert "nothing" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("group", ["p6", "rotations(1)", "rotations()"])
def test_a_group_that_there_is_not_is_a_wrong_command_line(tmp_path, group) -> None:  # type: ignore[no-untyped-def]
    done = called(tmp_path / "nothing", "--group", group)
    assert done.exit_code == 2
    assert f"`{group}` must be p4, p4m, translations or" in " ".join(done.stderr.split())


def test_a_line_is_moved_along_itself() -> None:
    assert [one.name for one in elements_of("translations", 1, 64)] == ["(0, 0)", "(0, 16)", "(0, 32)", "(0, 48)"]


def test_a_column_is_moved_along_itself() -> None:
    assert [one.name for one in elements_of("translations", 8, 1)] == ["(0, 0)", "(2, 0)", "(4, 0)", "(6, 0)"]
    with pytest.raises(ValueError, match="quarters of a side"):
        elements_of("translations", 1, 1)


def test_images_and_outputs_that_are_not_finite_are_refused() -> None:
    flat = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).double()
    x, y = examples().x, examples().y
    with pytest.raises(ValueError, match="`data` has images with numbers that are not finite"):
        symdsl.audit(flat, (torch.full_like(x, float("nan")), y))
    with torch.no_grad():
        flat[1].weight.fill_(float("inf"))
    with pytest.raises(ValueError, match="the module's outputs are not finite"):
        symdsl.audit(flat, (x, y))


def test_arrays_of_any_layout_are_audited() -> None:
    flat = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).double()
    x, y = examples().x.numpy(), examples().y.numpy()
    expected = symdsl.audit(flat, (examples().x, examples().y))
    assert symdsl.audit(flat, (x[::-1].copy()[::-1], y)) == expected
    assert symdsl.audit(flat, (x.astype(">f8"), y)) == expected


def test_half_degrees_are_named() -> None:
    assert [one.name for one in elements_of("rotations(16)", 4, 4)][:2] == ["0°", "22.5°"]
    assert elements_of("rotations(16)", 4, 4)[5].name == "112.5°"
