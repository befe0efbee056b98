"""The records of S-FC, S-CONV, S-GFC and S-GCONV."""

from __future__ import annotations

from functools import partial

from symdsl.catalog.signatures import Signature
from symdsl.kinds.convolution.signature import K, conv_preserves, conv_refusal
from symdsl.kinds.dense.signature import accepts, lifted, plain, trivially
from symdsl.kinds.group.signature import group_preserves, group_refusal, lift_refusal
from symdsl.kinds.record import Kind
from symdsl.kinds.sparse.signature import (
    BASIS,
    conv_cost,
    conv_tensors,
    dense_cost,
    dense_tensors,
    group_elements,
    plain_elements,
)

SPARSE = Kind(
    signature=Signature("S-FC", BASIS),
    tensors=partial(dense_tensors, plain),
    preserves=trivially,
    multiply_adds=partial(dense_cost, plain),
    refusal=accepts,
    module="symdsl.kinds.sparse.module:sparse",
    weight_use="symdsl.kinds.sparse.weight_use:sparse",
    page="docs/kinds/s-fc.md",
    colour="#f8e28c",
)
SPARSE_GROUP = Kind(
    signature=Signature("S-GFC", BASIS),
    tensors=partial(dense_tensors, lifted),
    preserves=trivially,
    multiply_adds=partial(dense_cost, lifted),
    refusal=lift_refusal,
    module="symdsl.kinds.sparse.module:sparse_group",
    weight_use="symdsl.kinds.sparse.weight_use:sparse",
    page="docs/kinds/s-gfc.md",
    colour="#9d336b",
)
SPARSE_CONV = Kind(
    signature=Signature("S-CONV", (K, *BASIS)),
    tensors=partial(conv_tensors, plain_elements),
    preserves=conv_preserves,
    multiply_adds=partial(conv_cost, plain_elements),
    refusal=conv_refusal,
    module="symdsl.kinds.sparse.module:sparse_conv",
    weight_use="symdsl.kinds.sparse.weight_use:sparse_conv",
    page="docs/kinds/s-conv.md",
    colour="#0793a9",
)
SPARSE_GROUP_CONV = Kind(
    signature=Signature("S-GCONV", (K, *BASIS)),
    tensors=partial(conv_tensors, group_elements),
    preserves=group_preserves,
    multiply_adds=partial(conv_cost, group_elements),
    refusal=group_refusal,
    module="symdsl.kinds.sparse.module:sparse_group_conv",
    weight_use="symdsl.kinds.sparse.weight_use:sparse_conv",
    page="docs/kinds/s-gconv.md",
    colour="#89a74b",
)
