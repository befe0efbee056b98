"""A GPU that is not there: tensors on it are computed on the CPU, and refuse what those of a GPU would refuse.

To torch they are on `meta`, the one other device that every build of torch can differentiate on. A tensor of the CPU
that meets one of them, or a generator of the wrong device, is an error, as it would be on a GPU.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

aten = torch.ops.aten

_INDEXING = frozenset({aten.index.Tensor, aten.index_put.default, aten.index_put_.default})
_MIXING = _INDEXING | {aten.copy_.default, aten._to_copy.default}
"""Operations that take tensors of the CPU beside those of a GPU."""

_CUDA: dict[str, Any] = {
    "is_available": lambda: True,
    "device_count": lambda: 1,
    "get_device_name": lambda device=None: "pretended",
    "synchronize": lambda device=None: None,
    "max_memory_allocated": lambda device=None: 0,
    "reset_peak_memory_stats": lambda device=None: None,
    "_lazy_init": lambda: None,
    "is_current_stream_capturing": lambda: False,
}
"""What `torch.cuda` says of it."""


class OnGPU(torch.Tensor):
    """A tensor on the pretended GPU; `raw` has its numbers."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls, raw: torch.Tensor) -> OnGPU:
        """Wrap a tensor of the CPU."""
        self: OnGPU = torch.Tensor._make_wrapper_subclass(
            cls, raw.size(), strides=raw.stride(), storage_offset=raw.storage_offset(), dtype=raw.dtype, device="meta"
        )
        self.raw = raw
        return self

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute on the CPU."""
        return _computed(func, args, kwargs or {})

    def tolist(self) -> Any:
        """Return the numbers as a list."""
        return self.cpu().tolist()

    def new_tensor(self, data: Any, *, dtype: torch.dtype | None = None, device: Any = "meta") -> torch.Tensor:
        """Make a tensor beside this one."""
        return torch.tensor(data, dtype=dtype or self.dtype, device=device)


class Generator(torch.Generator):
    """A generator of the CPU that says of itself where it was asked to be."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        """Make one on the CPU."""
        return super().__new__(cls, "cpu")

    def __init__(self, device: Any = "cpu") -> None:
        """Keep where it was asked to be."""
        self.is_here = _is_here(device)

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """Where it was asked to be."""
        return torch.device("cpu" if self.is_here else "meta")


class _Calls(TorchFunctionMode):
    """Refuses generators of the wrong device, and lets `torch.tensor` make tensors on a GPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = dict(kwargs or {})
        device, generator = options.get("device"), options.get("generator")
        there = any(isinstance(one, OnGPU) for one in args) if device is None else not _is_here(device)
        if isinstance(generator, Generator) and generator.is_here == there:
            raise RuntimeError(f"{func} expects a generator of the device of its tensors")
        if func is torch.tensor and there:
            del options["device"]
            return func(*args, **options).to(device)
        return func(*args, **options)


class _Factories(TorchDispatchMode):
    """Has what is made on a GPU, from nothing on it, made here."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


def _is_here(device: Any) -> bool:
    return torch.device(device).type == "cpu"


def _computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, torch.Tensor)]
    there = {id(one.raw): one for one in tensors if isinstance(one, OnGPU)}
    here = any(one.ndim for one in tensors if not isinstance(one, OnGPU))
    device = kwargs.get("device")
    result_is_here = not there if device is None else _is_here(device)
    if there and here and (func not in _MIXING or (func in _INDEXING and not isinstance(args[0], OnGPU))):
        raise RuntimeError(f"{func} expects all tensors to be on the same device")
    first = args[0] if args else None
    args, kwargs = tree_map(lambda one: one.raw if isinstance(one, OnGPU) else one, (args, kwargs))
    found = func(*args, **kwargs | ({} if device is None else {"device": torch.device("cpu")}))
    if func is aten.copy_.default:
        return first
    if result_is_here:
        return found

    def wrapped(one: Any) -> Any:
        if not isinstance(one, torch.Tensor):
            return one
        return there[id(one)] if id(one) in there else OnGPU(one)

    return tree_map(wrapped, found)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`cuda` is a pretended GPU."""
    for name, one in _CUDA.items():
        monkeypatch.setattr(torch.cuda, name, one)
    monkeypatch.setattr(torch, "Generator", Generator)
    adam = sys.modules[torch.optim.Adam.__module__]
    monkeypatch.setattr(adam, "_device_dtype_check_for_fused", lambda *given, **options: None)
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    torch._C._ensureCUDADeviceGuardSet()  # type: ignore[attr-defined]
    with _Calls(), _Factories():
        yield "cuda"
    torch.__future__.set_overwrite_module_params_on_conversion(before)
