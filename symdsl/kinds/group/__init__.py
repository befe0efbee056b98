"""The record of GCONV."""

from __future__ import annotations

from symdsl.catalog.signatures import Signature
from symdsl.kinds.convolution.signature import K
from symdsl.kinds.group.signature import FACTOR, GROUP, group_cost, group_preserves, group_refusal, group_tensors
from symdsl.kinds.record import Kind

GCONV = Kind(
    signature=Signature("GCONV", (K, FACTOR, GROUP)),
    tensors=group_tensors,
    preserves=group_preserves,
    multiply_adds=group_cost,
    refusal=group_refusal,
    module="symdsl.kinds.group.module:group_conv",
    weight_use="symdsl.kinds.group.weight_use:group_conv",
    page="docs/kinds/gconv.md",
    colour="#3dc99a",
)
