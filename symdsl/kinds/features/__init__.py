"""RFF: features whose weights are drawn once and stay."""

from __future__ import annotations

from symdsl.catalog.signatures import Signature
from symdsl.kinds.dense.signature import accepts, fc_cost, trivially
from symdsl.kinds.features.signature import LENGTHSCALE, no_tensors, second_moment
from symdsl.kinds.record import Kind

RFF = Kind(
    signature=Signature("RFF", (LENGTHSCALE,)),
    tensors=no_tensors,
    preserves=trivially,
    multiply_adds=fc_cost,
    refusal=accepts,
    module="symdsl.kinds.features.module:random_features",
    weight_use="symdsl.kinds.features.weight_use:none",
    page="docs/kinds/rff.md",
    colour="#1d1b2e",
    fixed=second_moment,
)
