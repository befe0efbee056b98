"""How invariant a network really is: its outputs, its saliency maps and its hidden maps around the orbit of a group.

The measures are those of Moskalev et al. 2023, "On genuine invariance learning without weight-tying"; means are over
examples and all elements of the group but the identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import attrs
import torch
from torch import Tensor, nn
from torch.nn import functional

from symdsl.data import Examples
from symdsl.data.records import as_tensor
from symdsl.data.transforms import rotated
from symdsl.diagnostics import RunError
from symdsl.groups import ORBITS, is_orbit, misfit, rotations_of
from symdsl.nn import Average, Lift, Mean, Network, RelaxedLayer, derivatives_on, evaluation_mode, outputs_of

SALIENCY_EXAMPLES, SENSITIVITY_EXAMPLES, LAYER_EXAMPLES = 256, 64, 256
"""The largest number of examples whose saliency maps, Jacobians and hidden maps are measured."""

STEPS = 16
"""Points on the way from nothing to an image at which its gradient is taken."""

_KEPT = 0.9
_BATCH = 256


@attrs.frozen
class Element:
    """One element of a group: what it does to images and hidden maps `[n, C, h, w]`, and what undoes that."""

    name: str
    act: Callable[[Tensor], Tensor]
    undo: Callable[[Tensor], Tensor]


@attrs.frozen
class LayerAudit:
    """How far a layer is from equivariant.

    Attributes:
        name: of the layer or module.
        distance: the mean of `||h(g x) - g h(x)|| / ||h(x)||` over elements and examples, h from the input to the
            output of the layer; examples with h(x) = 0 are left out. On a vector g does nothing, a translation moves a
            map by quarters of its own sides, and a lifted map is averaged over its group.
    """

    name: str
    distance: float


@attrs.frozen
class Audit:
    """The result of an audit: how invariant a network is.

    Attributes:
        group: as asked for.
        elements: names of its elements, the identity first.
        examples: the number of examples measured.
        accuracies: by element, fractions of 1.
        accuracy: their mean.
        worst_accuracy: their least.
        nll: mean over examples and elements, in nats.
        worst_nll: of the worst element.
        distribution_invariance: DI, the mean of KL(p(x) || p(g x)) in nats (equation 1).
        logit_invariance: LI, the mean of `||f(x) - f(g x)||^2 / 2` (equation 2).
        saliency_similarity: SI, the mean cosine of the saliency map of x and that of g x turned back (equation 3).
        jacobian_norm: largest singular value of d logits / d input, the mean over examples.
        layers: how far every layer is from equivariant, first to last, but those whose maps the group does not map to
            themselves: under `translations`, maps whose sides are not multiples of four.
    """

    group: str
    elements: tuple[str, ...]
    examples: int
    accuracies: tuple[float, ...]
    accuracy: float
    worst_accuracy: float
    nll: float
    worst_nll: float
    distribution_invariance: float
    logit_invariance: float
    saliency_similarity: float
    jacobian_norm: float
    layers: tuple[LayerAudit, ...]


def elements_of(group: str, height: int, width: int) -> tuple[Element, ...]:
    """Return the elements of a group on images of that size, the identity first.

    `translations` are sixteen, those by quarters of a side, around the edges; on a line the four along it.

    Raises:
        ValueError: there is no such group, or it does not map images of that size to themselves.
    """
    if not isinstance(group, str) or not is_orbit(group):
        raise ValueError(f"`group` (={group!r}) must be {ORBITS}")
    if reason := misfit(group, height, width):
        raise ValueError(reason)
    if group == "translations":
        rows, columns = (range(4 if side > 1 else 1) for side in (height, width))
        return tuple(_shift(row, column, height, width) for row, column in product(rows, columns))
    turns = rotations_of(group)
    if turns and 4 % turns:
        return tuple(_rotation(360 * number / turns) for number in range(turns))
    count = turns or 4
    flips = (False, True) if group == "p4m" else (False,)
    return tuple(_turn(number * (4 // count), flip) for flip in flips for number in range(count))


def _shift(row: int, column: int, height: int, width: int) -> Element:
    """The translation by so many quarters of the sides, named by the pixels of an image of that size."""

    def by(sign: int) -> Callable[[Tensor], Tensor]:
        return lambda x: x.roll((sign * row * x.shape[-2] // 4, sign * column * x.shape[-1] // 4), (-2, -1))

    return Element(f"({row * height // 4}, {column * width // 4})", by(1), by(-1))


def _turn(number: int, flip: bool) -> Element:
    name = f"{90 * number}\N{DEGREE SIGN}" + (" flipped" if flip else "")

    def act(x: Tensor) -> Tensor:
        return torch.rot90(x.flip(-1) if flip else x, number, (-2, -1))

    def undo(x: Tensor) -> Tensor:
        back = torch.rot90(x, -number, (-2, -1))
        return back.flip(-1) if flip else back

    return Element(name, act, undo)


def _rotation(degrees: float) -> Element:
    def by(angle: float) -> Callable[[Tensor], Tensor]:
        return lambda x: rotated(x, x.new_full((len(x),), angle).deg2rad()) if angle else x.clone()

    return Element(f"{degrees:.5g}\N{DEGREE SIGN}", by(degrees), by(-degrees))


@derivatives_on()
def audit(module: nn.Module, data: Examples | tuple[Tensor, Tensor], group: str = "p4") -> Audit:
    """Measure how invariant a classifier is to a group.

    Args:
        module: any torch module, `[n, C, h, w] -> [n, class]` logits; put in evaluation mode for the measurement.
        data: examples, or their images and labels, as the module reads them.
        group: `p4` (quarter turns), `p4m` (with flips), `translations`, or `rotations(n)`, n from 2 to 360, bilinear
            unless n is 2 or 4.

    Raises:
        TypeError: if the module is none, such as a run, or the data are neither.
        ValueError: if there is no such group, it does not fit the images, these are not `[n, C, h, w]`, there is not a
            label for each of them, a label is not a class of the module's, outputs are not `[n, class]`, or images or
            outputs are not finite.
        RunError: if the targets are not classes.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"`module` (a {type(module).__name__}) must be a torch module, such as the `network` of a run")
    if not isinstance(data, Examples) and not (isinstance(data, tuple) and len(data) == 2):
        raise TypeError(f"`data` (a {type(data).__name__}) must be examples, such as `dataset.test`, or a pair (x, y)")
    x, y = (data.x, data.y) if isinstance(data, Examples) else map(as_tensor, data, ("x", "y"))
    if y.is_floating_point() or y.is_complex() or y.ndim != 1:
        raise RunError("an audit needs class labels: it compares class probabilities")
    if len(x) != len(y) or not len(x):
        raise ValueError(f"`data` has {len(x)} images and {len(y)} labels, expected one label for each of some images")
    if x.ndim != 4:
        raise ValueError(f"`data` has images of shape {list(x.shape)}, expected [n, C, h, w]")
    if not bool(x.isfinite().all()):
        raise ValueError("`data` has images with numbers that are not finite")
    elements = elements_of(group, x.shape[2], x.shape[3])
    with evaluation_mode(module):
        like = next(module.parameters(), x)
        x, y = x.to(like.device, like.dtype, copy=True), y.to(like.device, torch.long, copy=True)
        probe = x[:2].clone()
        outputs = module(probe)
        if not isinstance(outputs, Tensor) or outputs.ndim != 2 or len(outputs) != len(probe):
            given = list(outputs.shape) if isinstance(outputs, Tensor) else f"a {type(outputs).__name__}"
            raise ValueError(f"the module gives {given}, expected logits [{len(probe)}, class]")
        logits = torch.stack([outputs_of(module, one.act(x)).double() for one in elements])
        wrong = y[(y < 0) | (y >= logits.shape[2])]
        if len(wrong):
            raise ValueError(f"`data` holds the label {wrong[0]}, expected 0 to {logits.shape[2] - 1}")
        if not bool(logits.isfinite().all()):
            raise ValueError("the module's outputs are not finite")
        likelihoods = logits.log_softmax(2)
        right = (logits.argmax(2) == y).double().mean(1)
        nll = -likelihoods.gather(2, y.expand(len(elements), -1)[..., None]).mean((1, 2))
        divergence = (likelihoods[0].exp() * (likelihoods[0] - likelihoods[1:])).sum(2).mean()
        few, labels = x[:SALIENCY_EXAMPLES], y[:SALIENCY_EXAMPLES]
        maps = [one.undo(saliency(module, one.act(few), labels, group)) for one in elements]
        similarity = torch.stack([_cosine(maps[0], one) for one in maps[1:]]).mean()
        return Audit(
            group=group,
            elements=tuple(one.name for one in elements),
            examples=len(x),
            accuracies=tuple(right.tolist()),
            accuracy=float(right.mean()),
            worst_accuracy=float(right.min()),
            nll=float(nll.mean()),
            worst_nll=float(nll.max()),
            distribution_invariance=float(divergence),
            logit_invariance=float(0.5 * (logits[1:] - logits[0]).square().sum(2).mean()),
            saliency_similarity=float(similarity),
            jacobian_norm=_jacobian_norm(module, x[:SENSITIVITY_EXAMPLES]),
            layers=tuple(_layers(module, x[:LAYER_EXAMPLES], group, elements)),
        )


def saliency(module: nn.Module, x: Tensor, labels: Tensor, group: str) -> Tensor:
    """Return the saliency map of every image for its label, `[n, 1, h, w]`.

    The absolute integrated gradient from the image of zeros (Sundararajan et al. 2017), summed over channels; what is
    less than 0.9 of its maximum is left out, and the rest blurred by a Gaussian of one pixel, as in the paper. Under
    `translations`, which go around the edges, the blur does, too.
    """
    found = []
    for images, own in zip(x.split(_BATCH), labels.split(_BATCH), strict=True):
        total = torch.zeros_like(images)
        for step in range(STEPS):
            at = (images * (step + 0.5) / STEPS).detach().requires_grad_()
            total += _slope(module(at.clone()).gather(1, own[:, None]).sum(), at)
        found.append((total * images / STEPS).abs().sum(1, keepdim=True))
    maps = torch.cat(found)
    maps = maps.where(maps >= _KEPT * maps.amax((2, 3), keepdim=True), 0.0)
    line = torch.exp(-0.5 * torch.tensor([1.0, 0.0, 1.0], dtype=maps.dtype, device=maps.device))
    line = line / line.sum()
    framed = functional.pad(maps, (1, 1, 1, 1), "circular" if group == "translations" else "constant")
    return functional.conv2d(framed, torch.outer(line, line)[None, None])


def _cosine(one: Tensor, other: Tensor) -> Tensor:
    """Return the mean cosine between maps `[n, 1, h, w]`; two maps of zeros, as of blank images, are alike."""
    one, other = one.flatten(1).double(), other.flatten(1).double()
    blank = ~(one.any(1) | other.any(1))
    return functional.cosine_similarity(one, other).where(~blank, 1.0).mean()


def _jacobian_norm(module: nn.Module, x: Tensor) -> float:
    at = x.detach().clone().requires_grad_()
    outputs = module(at.clone())
    rows = [_slope(one.sum(), at).flatten(1) for one in outputs.T]
    return float(torch.linalg.matrix_norm(torch.stack(rows, 1).double(), 2).mean())


def _slope(total: Tensor, x: Tensor) -> Tensor:
    """Return the gradient of a number in some images: zeros where it does not depend on them."""
    if not total.requires_grad:
        return torch.zeros_like(x)
    return torch.autograd.grad(total, x, retain_graph=True, allow_unused=True, materialize_grads=True)[0]


# ---------------------------------------------------------------- layers


@torch.no_grad()
def _layers(module: nn.Module, x: Tensor, group: str, elements: tuple[Element, ...]) -> Iterator[LayerAudit]:
    found = [_hidden(module, one.act(x)) for one in elements]
    for name, before in found[0].items():
        is_map = before.ndim == 4 and before.shape[2:].numel() > 1
        if is_map and misfit(group, *before.shape[2:]):
            continue
        size = before.flatten(1).norm(dim=1)
        some = size > 0
        apart = []
        for one, hidden in zip(elements[1:], found[1:], strict=True):
            moved = one.act(before) if is_map else before
            apart.append(((hidden[name] - moved).flatten(1).norm(dim=1) / size)[some])
        yield LayerAudit(name, float(torch.cat(apart).mean().nan_to_num(0.0)))


def _hidden(module: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """Return what every layer writes: layers of a network of symdsl, or submodules with parameters of their own."""
    found: dict[str, Tensor] = {}
    hooks = []

    def keep(name: str, order: int, copies: int) -> Callable[[nn.Module, object, Tensor], None]:
        def hook(_: nn.Module, __: object, output: Tensor) -> None:
            if isinstance(output, Tensor) and len(output) == copies * len(x):
                mean = output.unflatten(0, (-1, copies)).mean(1)
                found[name] = mean.unflatten(1, (-1, order)).mean(2) if order > 1 else mean

        return hook

    try:
        for name, layer, order, copies in _watched(module):
            hooks.append(layer.register_forward_hook(keep(name, order, copies)))
        module(x)
    finally:
        for one in hooks:
            one.remove()
    return {name: one.double() for name, one in found.items()}


def _watched(module: nn.Module) -> Iterator[tuple[str, nn.Module, int, int]]:
    """The layers by name, with the order of the group of their maps, and copies of an example."""
    if not isinstance(module, Network):
        own = ((name, one) for name, one in module.named_modules() if any(True for _ in one.parameters(recurse=False)))
        yield from ((name or type(one).__name__, one, 1, 1) for name, one in own)
        return
    copies = 1
    for name, stage in module.active():
        if isinstance(stage, Average):
            copies *= stage.samples
        elif isinstance(stage, Mean):
            copies //= module.average(stage.since).samples
        elif isinstance(stage, RelaxedLayer | Lift):
            yield name, stage, stage.order, copies


# ---------------------------------------------------------------- regulariser


def invariance_penalty(module: nn.Module, x: Tensor, outputs: Tensor, elements: tuple[Element, ...]) -> Tensor:
    """Return `||f(x) - f(g x)||^2 / 2`, summed over a batch, as a mean over the elements but the identity; a scalar."""
    moved = module(torch.cat([one.act(x) for one in elements[1:]])).unflatten(0, (len(elements) - 1, len(x)))
    total: Tensor = 0.5 * (moved - outputs).square().sum() / (len(elements) - 1)
    return total
