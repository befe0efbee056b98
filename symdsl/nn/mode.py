"""Modes for the length of a `with` statement: evaluation, and derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Put a module in evaluation mode for the length of a `with` statement; every part is left in the mode it had."""
    modes = [(one, one.training) for one in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for one, training in modes:
            one.training = training


@contextmanager
def derivatives_on() -> Iterator[None]:
    """Let derivatives be taken for the length of a `with` statement, in the precision of the network.

    Also within `no_grad`, `inference_mode` and `autocast`.
    """
    cpu, gpu = (torch.autocast(kind, enabled=False) for kind in ("cpu", "cuda"))
    with torch.inference_mode(False), torch.enable_grad(), cpu, gpu:
        yield
