"""The record of a kind: its tensors, what it preserves and costs, where it can be used, and its torch modules."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from symdsl.catalog.shapes import FactorSize, Shape
from symdsl.catalog.signatures import Signature, Value
from symdsl.diagnostics import RunError

TRANSLATIONS = "translations"

Arguments = Mapping[str, Value]


@attrs.frozen
class Site:
    """The place of a candidate: the maps that it reads and writes."""

    reads: Shape
    writes: Shape

    @property
    def single(self) -> bool:
        """Whether both maps have a single position."""
        return self.reads.positions == self.writes.positions == 1


@attrs.frozen
class Tensor:
    """A parameter tensor and the sizes of its curvature factors, as in `facts.ParameterTensor`.

    Attributes:
        name: the path's own name for it.
        shape: the tensor's shape.
        left: size of the output-gradient factor G.
        right: size of the input factor A.
        unit_prior: whether its prior stays N(0, 1) unless a rule names the tensor.
    """

    name: str
    shape: tuple[int, ...]
    left: FactorSize
    right: FactorSize
    unit_prior: bool = False


@attrs.frozen
class Refusal:
    """A reason why a kind cannot be used at a site.

    Attributes:
        code: of the diagnostic, an error, such as `E202`.
        message: what follows the kind's name in the diagnostic; `{layer}` stands for the layer.
        label: the text below the kind.
        help: what to do; `{place}` stands for where a map can be lifted.
        lift: name of the group that the map should be lifted to, if that would help.
        cause: which property of the map, set by an earlier item, is wrong: `size`, `lift` or `flatten`.
    """

    code: str
    message: str
    label: str
    help: str
    lift: str = ""
    cause: str = ""


@attrs.frozen
class Kind:
    """Everything there is to know about a kind, built in or from another package.

    `module` and `weight_use` name functions, `"package.module:function"`, because checking a spec must not load torch.

    Attributes:
        signature: name and arguments, `init_scale` aside.
        tensors: its parameter tensors at a site.
        preserves: what it is equivariant to in its strict limit: translations, and movements in the words of `groups`.
        multiply_adds: multiply-adds of one example's forward pass, before a stride samples a phase.
        refusal: why it cannot be used at a site, or `None`.
        module: `(layer, candidate, scale, generator)` gives the path, a `symdsl.nn.Path`.
        weight_use: `(path)` gives how it uses every parameter tensor, a `symdsl.evidence.WeightUse` by name.
        page: where it is described: a file of the documentation, or an address.
        colour: in pictures, `#rrggbb`; grey if empty.
        fixed: of a kind whose weights are drawn once and stay, the second moment of what it writes at a site; nothing
            of a kind that learns. A fixed kind stands alone in its layer, which has no bias.
    """

    signature: Signature
    tensors: Callable[[Site, Arguments], tuple[Tensor, ...]]
    preserves: Callable[[Site, Arguments], tuple[str, ...]]
    multiply_adds: Callable[[Site, Arguments], int]
    refusal: Callable[[Site, Arguments], Refusal | None]
    module: str
    weight_use: str
    page: str
    colour: str = ""
    fixed: Callable[[Site], float] | None = None

    @property
    def name(self) -> str:
        """The name of the kind in a spec."""
        return self.signature.name

    def imported(self, reference: str) -> Any:
        """Import what `module` or `weight_use` names; this loads torch.

        Raises:
            RunError: it cannot be imported.
        """
        module, _, function = reference.partition(":")
        try:
            return getattr(importlib.import_module(module), function)
        except Exception as error:
            kept = isinstance(error, ImportError | AttributeError)
            reason = f"{error}" if kept else f"{type(error).__name__}: {error}"
            raise RunError(f"`{reference}` of the kind `{self.name}` cannot be imported: {reason}") from error
