"""The record of CONV."""

from __future__ import annotations

from symdsl.catalog.signatures import Signature
from symdsl.kinds.convolution.signature import K, conv_cost, conv_preserves, conv_refusal, conv_tensors
from symdsl.kinds.record import Kind

CONV = Kind(
    signature=Signature("CONV", (K,)),
    tensors=conv_tensors,
    preserves=conv_preserves,
    multiply_adds=conv_cost,
    refusal=conv_refusal,
    module="symdsl.kinds.convolution.module:conv",
    weight_use="symdsl.kinds.convolution.weight_use:conv",
    page="docs/kinds/conv.md",
    colour="#0a75bc",
)
