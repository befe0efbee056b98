"""The device that a run computes on."""

from __future__ import annotations

import os

import torch

from symdsl.data.records import seeded
from symdsl.diagnostics import RunError
from symdsl.runs.schema import is_device


def check_device(text: str) -> None:
    """Raise an error unless `text` is `auto`, `cpu`, `cuda` or `cuda:n`.

    Raises:
        ValueError: it is none of these.
    """
    if not is_device(text):
        raise ValueError(f'`device` (="{text}") must be auto, cpu, cuda or cuda:n')


def resolve_device(text: str | torch.device) -> torch.device:
    """Return the device that `auto`, `cpu`, `cuda` or `cuda:n` stands for; `auto` takes a GPU where there is one.

    Raises:
        ValueError: `text` is none of these.
        RunError: the machine has no such GPU. There is never a silent fall back to the CPU.
    """
    text = str(text)
    check_device(text)
    if text == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(text)
    if device.type != "cuda":
        return device
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if found == 0:
        raise RunError(f"no CUDA device for `--device {device}`: none is available here; use `--device cpu`")
    if device.index is not None and device.index >= found:
        raise RunError(
            f"no CUDA device {device.index} for `--device {device}`: this machine has {found}, counted from 0"
        )
    return device


def cores() -> int:
    """Return how many CPU cores this process may use, which a scheduler can have restricted."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def stream(device: torch.device | str, *words: object) -> torch.Generator:
    """Return a random generator on a device whose seed follows from the words."""
    return torch.Generator(device).manual_seed(seeded(*words).initial_seed())


def describe(device: torch.device) -> str:
    """Return the device's name, with the card's for a GPU."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory did not suffice, of which torch tells by a plain RuntimeError on the CPU."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)
