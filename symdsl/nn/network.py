"""The network: named stages, each reading the one before, and shortcuts past residual blocks."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor, nn

from symdsl.nn.activations import ACTIVATIONS
from symdsl.nn.average import Average, Mean
from symdsl.nn.relaxed import RelaxedLayer, Use

_TAKEN = frozenset(dir(nn.ModuleDict()))
"""Names that no module in an `nn.ModuleDict` can have."""


class Activation(nn.Module):
    """A layer of pointwise functions, applied in order."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = tuple(names)

    def forward(self, x: Tensor) -> Tensor:
        """Apply every function, in order."""
        for name in self.names:
            x = ACTIVATIONS[name](x)
        return x

    def extra_repr(self) -> str:
        """Return the names of the functions, as in the spec, for printing."""
        return " |> ".join(self.names)


class Join(nn.Module):
    """The end of a residual block: x + body(x).

    Args:
        since: name of the stage whose output is x; the empty text for the network's input.
    """

    def __init__(self, since: str) -> None:
        super().__init__()
        self.since = since

    def forward(self, made: Tensor, x: Tensor) -> Tensor:
        """Return the sum of what the body made and what it read."""
        return x + made

    def extra_repr(self) -> str:
        """Return where the shortcut begins, for printing."""
        return f"since={self.since!r}"


@attrs.frozen
class Block:
    """A residual block.

    Attributes:
        join: name of the stage that ends it.
        since: name of the stage that it reads; the empty text for the network's input.
        stages: names of the stages of its body.
        layers: names of the relaxed layers among them; without the last, the block is the identity.
    """

    join: str
    since: str
    stages: tuple[str, ...]
    layers: tuple[str, ...]


class Network(nn.Module):
    """A network of stages in order, `[example, channel, row, column] -> [example, output]`.

    The keys of its `state_dict` are those of `tensors`, and `average.ranges` of every average.

    Args:
        stages: modules by name; relaxed layers carry the names that precisions are keyed by. A `Join` adds the output
            of an earlier stage; the stages between the two are the body of a residual block. Those between an
            `Average` and the `Mean` that names it see its copies of every example, one after the other.
        reads: channels, rows and columns of an example, which inputs are then checked against.

    Raises:
        ValueError: two parameters are the same one; its prior and its curvature would be counted twice.
    """

    def __init__(self, stages: Mapping[str, nn.Module], reads: tuple[int, int, int] | None = None) -> None:
        super().__init__()
        self.reads = reads
        self.stages = nn.ModuleDict({_key(name): stage for name, stage in stages.items()})
        self._names = tuple(stages)
        names: dict[int, str] = {}
        for name, parameter in self.stages.named_parameters(remove_duplicate=False):
            first = names.setdefault(id(parameter), name)
            if first != name:
                raise ValueError(
                    f"`{first}` and `{name}` are the same parameter; a module can be used once in a network"
                )
        self.register_state_dict_post_hook(_keyed_like_precisions)
        self.register_load_state_dict_pre_hook(_keyed_like_modules)
        self.blocks = tuple(
            self._block(name, stage) for name, stage in self.named_stages().items() if isinstance(stage, Join)
        )
        previous = dict(zip(self._names, ("", *self._names), strict=False))
        self._before = previous | {block.join: block.since for block in self.blocks}
        self._left_out: frozenset[str] = frozenset()

    def named_stages(self) -> dict[str, nn.Module]:
        """Return every stage by its name, in order."""
        return dict(zip(self._names, self.stages.values(), strict=True))

    def _block(self, name: str, join: Join) -> Block:
        names = self._names
        stages = tuple(names[names.index(join.since) + 1 if join.since else 0 : names.index(name)])
        layers = tuple(one for one in stages if isinstance(self.named_stages()[one], RelaxedLayer))
        return Block(name, join.since, stages, layers)

    def forward(self, x: Tensor, uses: dict[str, Use] | None = None) -> Tensor:
        """Return the outputs (logits, or means for regression).

        Args:
            x: `[example, channel, row, column]`.
            uses: if given, filled with every use of a parameter tensor, keyed `layer.path.tensor` or `layer.bias`.

        Raises:
            TypeError: `x` is no tensor.
            ValueError: `x` is no batch of examples of the shape that the network reads.
        """
        if not isinstance(x, Tensor):
            raise TypeError(f"the network expects a tensor, got a {type(x).__name__}")
        if self.reads is not None and x.shape[1:] != self.reads:
            raise ValueError(_misfit(self.reads, tuple(x.shape)))
        shortcuts = self.shortcuts()
        forks, kept = frozenset(shortcuts.values()), {"": x}
        copies = 1
        for name, stage in self.active():
            if isinstance(stage, RelaxedLayer) and uses is not None:
                own: dict[str, Use] = {}
                x = stage(x, own)
                uses.update({f"{name}.{key}": use._replace(copies=copies) for key, use in own.items()})
            elif isinstance(stage, Join):
                x = stage(x, kept[shortcuts[name]])
            elif isinstance(stage, Average):
                x, copies = stage(x), copies * stage.samples
            elif isinstance(stage, Mean):
                samples = self.average(stage.since).samples
                x, copies = stage(x, samples), copies // samples
            else:
                x = stage(x)
            if name in forks:
                kept[name] = x
        return x.flatten(1)

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the parameters."""
        return next(self.parameters()).dtype

    @property
    def pruned(self) -> list[str]:
        """The paths that are pruned, each as `layer.path`."""
        return [f"{name}.{path}" for name, layer in self.layers() for path in sorted(layer.pruned)]

    def active(self) -> Iterator[tuple[str, nn.Module]]:
        """Return the stages by name, in order, without residual blocks that are the identity."""
        return ((name, stage) for name, stage in self.named_stages().items() if name not in self._left_out)

    def shortcuts(self) -> dict[str, str]:
        """Return, for the end of every active residual block, the name of the active stage that the block reads."""
        found = {}
        for block in self.active_blocks():
            since = block.since
            while since in self._left_out:
                since = self._before[since]
            found[block.join] = since
        return found

    def active_blocks(self) -> list[Block]:
        """Return the residual blocks that are not the identity, in the order of their ends."""
        return [block for block in self.blocks if block.join not in self._left_out]

    @contextlib.contextmanager
    def without(self, block: Block) -> Iterator[None]:
        """Compute as if a residual block were the identity, for the length of a `with` statement."""
        before = self._left_out
        self._left_out = self._idle({*before, *block.stages, block.join})
        try:
            yield
        finally:
            self._left_out = before

    def _idle(self, left_out: Collection[str]) -> frozenset[str]:
        """Return these stages and every average around whose layers all are among them."""
        found, stages = set(left_out), self.named_stages()
        for name, stage in stages.items():
            if isinstance(stage, Mean):
                body = self._names[self._names.index(stage.since) : self._names.index(name)]
                if all(one in found for one in body if isinstance(stages[one], RelaxedLayer)):
                    found |= {stage.since, name}
        return frozenset(found)

    def layers(self) -> Iterator[tuple[str, RelaxedLayer]]:
        """Return the relaxed layers by name, in order."""
        return ((name, stage) for name, stage in self.named_stages().items() if isinstance(stage, RelaxedLayer))

    def layer(self, name: str) -> RelaxedLayer:
        """Return a layer by its name.

        Raises:
            KeyError: there is none of that name.
        """
        return dict(self.layers())[name]

    def average(self, name: str) -> Average:
        """Return an average by its name.

        Raises:
            KeyError: there is none of that name.
        """
        return dict(self.averages())[name]

    def averages(self) -> Iterator[tuple[str, Average]]:
        """Return the averages by name, in order."""
        return ((name, stage) for name, stage in self.named_stages().items() if isinstance(stage, Average))

    def ranges(self) -> dict[str, float]:
        """Return every range by `average.generator`, in the units of the language."""
        return {f"{name}.{key}": value for name, one in self.averages() for key, value in one.stated().items()}

    def set_ranges(self, ranges: Mapping[str, float]) -> None:
        """Set ranges by the keys of `ranges`, in the units of the language; others stay.

        Raises:
            KeyError: there is none of a name.
            ValueError: a range is not a number.
        """
        for key, value in ranges.items():
            name, _, generator = key.rpartition(".")
            self.average(name).set_range(generator, value)

    def draw_from(self, generator: torch.Generator, spread: float = 0.0) -> None:
        """Draw the transformations of the next passes in training mode; see `Average.draw`.

        Ranges that are fixed are taken as they are.
        """
        for _, one in self.averages():
            one.draw(generator, 0.0 if one.fixed else spread)

    def prune(self, layer: str, path: str) -> list[str]:
        """Leave a path out from now on; with the last path of a residual block's last layer, the whole block.

        Returns:
            The keys of the parameter tensors that are left out.

        Raises:
            KeyError: there is no such layer or path.
        """
        own = self.layer(layer)
        own.prune(path)
        ended = [block for block in self.blocks if block.layers[-1] == layer and not own.active()]
        gone = {name for block in ended for name in block.layers}
        for name in gone:
            self.layer(name).leave()
        if ended:
            names = {name for block in ended for name in (*block.stages, block.join)}
            self._left_out = self._idle(self._left_out | names)
        starts = (f"{layer}.{path}.", *(f"{name}." for name in gone))
        return [key for key in self.tensors() if key.startswith(starts)]

    def remove(self, layer: str, path: str) -> None:
        """Remove a path for good; with the last path of a residual block's last layer, the block becomes the identity.

        Raises:
            KeyError: there is no such layer or path.
        """
        self.prune(layer, path)
        self.layer(layer).remove(path)

    def tensors(self) -> dict[str, nn.Parameter]:
        """Return every parameter tensor by the key its precision has: `layer.path.tensor` or `layer.bias`."""
        found: dict[str, nn.Parameter] = {}
        for name, layer in self.layers():
            for path_name, path in layer.paths.items():
                for tensor, parameter in path.named_parameters():
                    found[f"{name}.{path_name}.{tensor}"] = parameter
            found[f"{name}.bias"] = layer.bias
        return found

    def squared_norms(self, keys: Iterable[str]) -> dict[str, float]:
        """Return ||theta_k||^2 of these parameter tensors, summed up in double precision."""
        parameters, wanted = self.tensors(), tuple(keys)
        norms = [parameters[key].detach().double().square().sum() for key in wanted]
        return dict(zip(wanted, torch.stack(norms).tolist() if norms else (), strict=True))


def _misfit(reads: tuple[int, ...], found: tuple[int, ...]) -> str:
    if len(found) != 1 + len(reads):
        return f"the network expects a batch {['n', *reads]}, got {list(found)}".replace("'", "")
    expected, got = ("x".join(map(str, shape)) for shape in (reads, found[1:]))
    return f"the network expects {expected}, got {got}"


def _key(name: str) -> str:
    """Return the name of a stage among modules."""
    return f"stage {name}" if name in _TAKEN else name


def _prefixes(net: Network) -> Iterator[tuple[str, str]]:
    """Yield the prefixes of keys in the tree of modules and in a `state_dict`, longest first."""
    for name, layer in net.layers():
        yield from ((f"stages.{_key(name)}.paths.{path}.", f"{name}.{path}.") for path in layer.paths)
    yield from ((f"stages.{_key(name)}.", f"{name}.") for name in net.named_stages())


def _keyed_like_precisions(net: nn.Module, state: dict[str, Any], prefix: str, metadata: object) -> None:
    assert isinstance(net, Network), "it is registered by networks only"
    _rename(state, [(prefix + long, prefix + short) for long, short in _prefixes(net)])


def _keyed_like_modules(net: nn.Module, state: dict[str, Any], prefix: str, *others: object) -> None:
    assert isinstance(net, Network), "it is registered by networks only"
    _rename(state, [(prefix + short, prefix + long) for long, short in _prefixes(net)])


def _rename(state: dict[str, Any], prefixes: Sequence[tuple[str, str]]) -> None:
    for key in list(state):
        found = next(((old, new) for old, new in prefixes if key.startswith(old)), None)
        state[key if found is None else found[1] + key.removeprefix(found[0])] = state.pop(key)
