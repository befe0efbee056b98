"""Strict limits, checked by moving maps: what the tests of layers, of random networks and of shipped specs share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, product

import attrs
import torch
from torch import Tensor

from oracles.comparison import assert_same
from oracles.equivariance import moved, moved_lifted, shifted
from oracles.groups import ELEMENTS, Element, times
from symdsl import lowering, nn
from symdsl.analysis.facts import Candidate, Flatten, Layer, Node, ParameterTensor, Prior, Shape, Value
from symdsl.analysis.joins import joins
from symdsl.diagnostics import Span
from symdsl.graph import Symmetry
from symdsl.kinds import KINDS, Site, completed, label

TRANSLATIONS = "translations"
GENERATORS: dict[str, Element] = {
    "half turns": (2, 0),
    "quarter turns": (1, 0),
    "left-right flips": (0, 1),
    "up-down flips": (2, 1),
}
"""What the words of a statement mean."""

EXACT = 1e-10
CLEAR = 1e-6
"""Relative differences: at most the first where a symmetry holds, at least the second where it does not."""

HERE = Span("test", 1, 1, 1, 1)


# ---------------------------------------------------------------- words


def elements_of(words: Iterable[str]) -> set[Element]:
    """All that the group movements among some words generate."""
    found = {(0, 0)}
    generators = [GENERATORS[word] for word in words if word != TRANSLATIONS]
    while more := {times(one, other) for one in generators for other in found} - found:
        found |= more
    return found


def follows(preserved: Iterable[str], demanded: Iterable[str]) -> bool:
    """Whether what is preserved includes everything demanded."""
    preserved, demanded = set(preserved), set(demanded)
    return elements_of(demanded) <= elements_of(preserved) and (
        TRANSLATIONS in preserved or TRANSLATIONS not in demanded
    )


def movable(shape: Shape) -> list[str]:
    """The movements that map a grid of that shape to itself and are carried by its group."""
    square = shape.height == shape.width
    return [
        TRANSLATIONS,
        *(
            word
            for word, element in GENERATORS.items()
            if element in ELEMENTS[shape.group] and (square or element[0] % 2 == 0)
        ),
    ]


# ---------------------------------------------------------------- building


def placed(kind: str, site: Site, arguments: dict[str, Value]) -> Candidate | None:
    """A candidate as the analysis makes it, at full scale; nothing where the kind cannot stand."""
    record = KINDS[kind]
    defaults = {one.name: one.default for one in record.signature.parameters if isinstance(one.default, str | int)}
    given = completed(record, {**defaults, **arguments}, site)
    if record.refusal(site, given) is not None:
        return None
    tensors = tuple(
        ParameterTensor(one.name, one.shape, one.left, one.right, Prior(1.0, True))
        for one in record.tensors(site, given)
    )
    name = label(record, given, site)
    return Candidate(name, kind, tuple(given.items()), 1.0, tensors, record.preserves(site, given), 0, HERE)


def relaxed(site: Site, candidates: Sequence[Candidate], seed: int = 0) -> nn.RelaxedLayer:
    """A layer of some candidates, in float64 with random parameters."""
    stride = site.reads.width // site.writes.width
    record = Layer("l1", site.reads, site.writes, stride, tuple(candidates), Prior(1.0, True), (), HERE)
    return built((record,), seed).stages["l1"]  # type: ignore[return-value]


def built(nodes: Sequence[Node], seed: int = 0) -> nn.Network:
    """A network in float64 whose biases are random too."""
    net = lowering.build(tuple(nodes), seed).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _, layer in net.layers():
            layer.bias.normal_(generator=generator)
    return net


def noise(count: int, shape: Shape, seed: int = 1) -> Tensor:
    """Random maps `[example, plane, row, column]`."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, shape.planes, shape.height, shape.width, generator=generator, dtype=torch.float64)


def clear(layer: nn.RelaxedLayer, names: Iterable[str]) -> None:
    """Sets the parameters of some paths to zero."""
    with torch.no_grad():
        for name in names:
            for parameter in layer.paths[name].parameters():
                parameter.zero_()


# ---------------------------------------------------------------- layers


def difference(found: Tensor, expected: Tensor) -> float:
    """The largest, relative to the largest expected number."""
    return float((found - expected).abs().max() / expected.abs().max())


@torch.no_grad()
def assert_layer_follows(layer: nn.RelaxedLayer, site: Site, words: Iterable[str]) -> None:
    """Demands that a layer's output moves as its input does, by every element that some words generate."""
    words = list(words)
    x = noise(2, site.reads)
    elements, shifts = sorted(elements_of(words)), _shifts(site.reads) if TRANSLATIONS in words else []
    moves = [moved_lifted(x, element, site.reads.group) for element in elements]
    y, *found = _outputs(layer, [x, *moves, *(shifted(x, *shift) for shift in shifts)])
    for one, element in zip(found, elements, strict=False):
        assert_same(one, moved_lifted(y, element, site.writes.group), EXACT)
    for one, shift in zip(found[len(elements) :], shifts, strict=True):
        assert_same(one, _sampled_shift(one, y, layer.stride, shift), EXACT)


@torch.no_grad()
def assert_layer_breaks(layer: nn.RelaxedLayer, site: Site, word: str) -> None:
    """Demands that a layer's output does not move as its input does."""
    x = noise(2, site.reads)
    if word == TRANSLATIONS:
        shifts = _shifts(site.reads)
        y, *outputs = _outputs(layer, [x, *(shifted(x, *shift) for shift in shifts)])
        pairs = [(one, _sampled_shift(one, y, layer.stride, shift)) for one, shift in zip(outputs, shifts, strict=True)]
    else:
        y, found = _outputs(layer, [x, moved_lifted(x, GENERATORS[word], site.reads.group)])
        pairs = [(found, moved_lifted(y, GENERATORS[word], site.writes.group))]
    change = max(difference(one, expected) for one, expected in pairs)
    assert change > CLEAR, f"{list(layer.paths)} follows {word} at {site}, up to {change:g}"


def _outputs(layer: nn.RelaxedLayer, inputs: list[Tensor]) -> list[Tensor]:
    """The output of each batch, all of them computed at once: no example depends on another."""
    return list(layer(torch.cat(inputs)).split(len(inputs[0])))


def _shifts(shape: Shape) -> list[tuple[int, int]]:
    return [
        (rows, columns) for rows, columns in ((1, 0), (0, 1), (2, 3)) if rows < shape.height and columns < shape.width
    ]


def _sampled_shift(found: Tensor, y: Tensor, stride: tuple[int, int], shift: tuple[int, int]) -> Tensor:
    """`y` shifted by a fraction of its pixels: each example down or up to whole ones, whichever comes nearer.

    A map that is sampled from another phase starts at another pixel of the finer one.
    """
    rows, columns = (sorted({by // side, -(-by // side)}) for by, side in zip(shift, stride, strict=True))
    options = torch.stack([shifted(y, *whole) for whole in product(rows, columns)])
    nearest = (options - found).abs().amax((2, 3, 4)).argmin(0)
    return options[nearest, torch.arange(len(y))]


# ---------------------------------------------------------------- networks


def narrowed(nodes: Sequence[Node], channels: int = 2) -> tuple[Node, ...]:
    """The same network with few channels a layer, all candidates at full scale, and activations that never go dead."""
    slim: list[Node] = []
    ends: dict[str, int] = {}
    streams = {body[-1].name: join.since for join, body in joins(nodes)}
    for node in nodes:
        if node.name in streams:
            ends[node.name] = next(one for one in slim if one.name == streams[node.name]).out_shape.channels
        if not slim:
            slim.append(node)
            continue
        reads = slim[-1].out_shape
        writes = attrs.evolve(node.out_shape, channels=reads.channels)
        if isinstance(node, Flatten):
            writes = attrs.evolve(node.out_shape, channels=reads.size)
        if isinstance(node, Layer):
            writes = attrs.evolve(node.out_shape, channels=ends.get(node.name, channels))
            scaled = tuple(attrs.evolve(one, init_scale=1.0) for one in node.candidates)
            node = attrs.evolve(node, candidates=scaled, activations=("tanh",) if node.activations else ())
        slim.append(attrs.evolve(node, in_shape=reads, out_shape=writes))  # type: ignore[misc]
    return tuple(slim)


def breaking(nodes: Sequence[Node], symmetry: Symmetry) -> dict[str, list[str]]:
    """By layer, the candidates that do not follow what the network keeps, as long as there is something to follow."""
    kept = [*symmetry.invariant, *symmetry.equivariant]
    found: dict[str, list[str]] = {}
    for before, node in pairwise(nodes):
        if before.out_shape.positions == 1:
            kept = [word for word in kept if word != TRANSLATIONS]
        if before.out_shape.positions == before.out_shape.order == 1:
            kept = []
        if isinstance(node, Layer):
            found[node.name] = [one.name for one in node.candidates if not follows(one.preserves, kept)]
    return found


@torch.no_grad()
def assert_statement(nodes: Sequence[Node], symmetry: Symmetry) -> None:
    """Demands of a network that what it is said to keep holds in its strict limit, and nothing else.

    What is said to be kept does not hold with a path that breaks it; what is said to be lost is lost.
    """
    net, x = built(nodes), noise(2, nodes[0].out_shape)
    paths = breaking(nodes, symmetry)
    if any(paths.values()):
        broken = max(_change(net, x, word) for word in symmetry.invariant)
        assert broken > CLEAR, f"paths that break a symmetry leave it at {broken:g}"
    for name, layer in net.layers():
        assert len(paths[name]) < len(layer.paths), f"no candidate of `{name}` follows what is said to be kept"
        clear(layer, paths[name])
    shifts = [(0, 0), (1, 2), (3, 0)] if TRANSLATIONS in symmetry.invariant else [(0, 0)]
    moves = product(sorted(elements_of(symmetry.invariant)), shifts)
    y, *found = net(torch.cat([x, *(shifted(moved(x, element), *shift) for element, shift in moves)])).split(len(x))
    for one in found:
        assert_same(one, y, EXACT)
    for word, reason in symmetry.lost:
        if word not in movable(attrs.evolve(nodes[0].out_shape, group="p4m")):
            assert "not square" in reason, f"{word} cannot move the image, but are said to be lost as {reason}"
            continue
        lost = _change(net, x, word)
        assert lost > CLEAR, f"{word} are said to be lost ({reason}), but change the output by {lost:g} only"


def _change(net: nn.Network, x: Tensor, word: str) -> float:
    """How much a movement changes the output; of translations, the one of some that changes it most."""
    shifts = [(1, 0), (0, 1), (2, 3), (3, 2), (4, 0), (0, 4)]
    moves = [shifted(x, *shift) for shift in shifts] if word == TRANSLATIONS else [moved(x, GENERATORS[word])]
    y, *found = net(torch.cat([x, *moves])).split(len(x))
    return max(difference(one, y) for one in found)
