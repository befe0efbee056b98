"""What the analysis knows of a kind: its tensors, what it preserves, what it costs, where it cannot stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from symdsl.analysis.facts import FactorSize, Shape, Value
from symdsl.catalog.signatures import Signature

TRANSLATIONS = "translations"

Arguments = Mapping[str, Value]


@attrs.frozen
class Site:
    """Where a candidate stands: the maps it reads and writes."""

    reads: Shape
    writes: Shape

    @property
    def single(self) -> bool:
        """Whether both maps have one position only."""
        return self.reads.positions == self.writes.positions == 1


@attrs.frozen
class Tensor:
    """A parameter tensor and the sizes of its curvature factors, as in `facts.ParameterTensor`.

    Attributes:
        name: the path's own name for it.
        shape: the tensor's shape.
        left: size of the output-gradient factor G.
        right: size of the input factor A.
        unit_prior: whether its prior is held at N(0, 1) unless a rule names the tensor, because the kind learns that of
            another instead.
    """

    name: str
    shape: tuple[int, ...]
    left: FactorSize
    right: FactorSize
    unit_prior: bool = False


@attrs.frozen
class Refusal:
    """Why a kind cannot stand at a site.

    Attributes:
        code: of the diagnostic.
        message: said after the kind's name; `{layer}` stands for the layer.
        label: under the kind.
        help: what to do; `{line}` stands for where the input is.
        lift: name of the group that the input should be lifted to, if that would help.
        cause: what an earlier item did to the map that the kind cannot live with: `size`, `lift` or `flatten`.
    """

    code: str
    message: str
    label: str
    help: str
    lift: str = ""
    cause: str = ""


@attrs.frozen
class Kind:
    """What the analysis knows of a kind.

    Attributes:
        signature: name and arguments, `init_scale` aside.
        tensors: its parameter tensors at a site.
        preserves: what it is equivariant to in its strict limit: translations, and movements in the words of `groups`.
        multiply_adds: multiply-adds of one example's forward pass.
        refusal: why it cannot stand at a site, if it cannot.
        page: where it is described: a file of the documentation, or an address.
        module: for a kind of another package, where its path is built: `"package.module:function"`, a function of
            layer, candidate, scale and generator like the rows of `symdsl.lowering.PATHS`.
        colour: for a kind of another package, its colour in pictures, `#rrggbb`.
    """

    signature: Signature
    tensors: Callable[[Site, Arguments], tuple[Tensor, ...]]
    preserves: Callable[[Site, Arguments], tuple[str, ...]]
    multiply_adds: Callable[[Site, Arguments], int]
    refusal: Callable[[Site, Arguments], Refusal | None]
    page: str
    module: str = ""
    colour: str = ""

    @property
    def name(self) -> str:
        """As written in a spec."""
        return self.signature.name
