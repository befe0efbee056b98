"""How long one batch takes on a device."""

from __future__ import annotations

import time

import torch

from symdsl import lowering
from symdsl.diagnostics import RunError
from symdsl.nn import Network
from symdsl.runner.device import describe, is_out_of_memory, resolve_device
from symdsl.spec import Spec

_REPEATS = 5


def probe(spec: Spec, device: str) -> dict[str, str]:
    """Build a spec's network on a device and run one batch of noise forward and backward.

    Args:
        spec: the spec.
        device: `auto`, `cpu`, `cuda` or `cuda:n`.

    Returns:
        Device, parameters, milliseconds for one batch (the best of five after one to warm up) and, on a GPU, peak
        memory; as text to print.

    Raises:
        RunError: there is no such device, or its memory does not suffice.
    """
    target = resolve_device(device)
    try:
        return _time_batch(lowering.compile(spec).to(target), spec, target)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise RunError(f"{target}: out of memory for one batch of {spec.facts.search.batch} examples") from error


def _time_batch(net: Network, spec: Spec, device: torch.device) -> dict[str, str]:
    data, batch = spec.facts.data, spec.facts.search.batch
    x = torch.randn(batch, data.channels, data.height, data.width, device=device)
    seconds = []
    for _ in range(_REPEATS + 1):
        started = time.perf_counter()
        net(x).square().sum().backward()
        if x.is_cuda:
            torch.cuda.synchronize(x.device)
        seconds.append(time.perf_counter() - started)
    found = {
        "device": describe(device),
        "parameters": f"{sum(parameter.numel() for parameter in net.parameters()):,}",
        f"forward and backward, {batch} examples": f"{1000 * min(seconds[1:]):.2f} ms",
    }
    if device.type == "cuda":
        found["peak memory"] = f"{torch.cuda.max_memory_allocated(device) / 2**20:.1f} MiB"
    return found
