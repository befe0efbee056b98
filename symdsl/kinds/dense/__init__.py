"""The records of FC, F-FC and F-GFC."""

from __future__ import annotations

from functools import partial

from symdsl.catalog.signatures import Signature
from symdsl.kinds.dense.signature import (
    accepts,
    factored_cost,
    factored_tensors,
    fc_cost,
    fc_tensors,
    lifted,
    plain,
    trivially,
)
from symdsl.kinds.group.signature import lift_refusal
from symdsl.kinds.record import Kind

FC = Kind(
    signature=Signature("FC"),
    tensors=fc_tensors,
    preserves=trivially,
    multiply_adds=fc_cost,
    refusal=accepts,
    module="symdsl.kinds.dense.module:fully_connected",
    weight_use="symdsl.kinds.dense.weight_use:fully_connected",
    page="docs/kinds/fc.md",
    colour="#422568",
)
FACTORED = Kind(
    signature=Signature("F-FC"),
    tensors=partial(factored_tensors, plain),
    preserves=trivially,
    multiply_adds=partial(factored_cost, plain),
    refusal=accepts,
    module="symdsl.kinds.dense.module:factored",
    weight_use="symdsl.kinds.dense.weight_use:factored",
    page="docs/kinds/f-fc.md",
    colour="#ffbf68",
)
FACTORED_GROUP = Kind(
    signature=Signature("F-GFC"),
    tensors=partial(factored_tensors, lifted),
    preserves=trivially,
    multiply_adds=partial(factored_cost, lifted),
    refusal=lift_refusal,
    module="symdsl.kinds.dense.module:factored_group",
    weight_use="symdsl.kinds.dense.weight_use:factored",
    page="docs/kinds/f-gfc.md",
    colour="#8a1e2a",
)
