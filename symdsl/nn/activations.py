"""The activation functions a layer may end with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": functional.gelu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "silu": functional.silu,
    "elu": functional.elu,
    "leaky_relu": functional.leaky_relu,
    "softplus": functional.softplus,
    "identity": torch.clone,
}
"""Every activation by the name it has in a spec."""
