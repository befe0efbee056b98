"""Processes that share one search, as `torchrun` starts them: how they divide the work and exchange results.

Every function does what one process alone would have it do where there is no group of processes. Where there is one,
all of them must call the same functions in the same order.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

from symdsl.diagnostics import NumericalError, RunError, SpecError

Found = TypeVar("Found")
Key = TypeVar("Key")

_PATIENCE = timedelta(days=7)
"""How long ranks wait for one another; those that have died are noticed at once, by their closed connections."""

_JOINING = timedelta(minutes=30)
"""How long they wait for one another to start, when there is no connection yet that could be closed."""


class RankLostError(RunError):
    """Another rank has ended before its time.

    Attributes:
        folder: of the run, once there is one.
        silent: whether the first rank lives and says so.
    """

    folder: Path | None = None
    silent: bool = False


def count() -> int:
    """Return how many ranks there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process among the ranks; the first, 0, is the one that writes."""
    return dist.get_rank() if count() > 1 else 0


def started() -> bool:
    """Return whether `torchrun`, or something that sets the same variables, has started this process as a rank."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and {"RANK", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


@contextlib.contextmanager
def joined(device: str) -> Iterator[str]:
    """Join the group of processes that `torchrun` has started, if it has, for the length of a `with` statement.

    Args:
        device: `auto`, `cpu`, `cuda` or `cuda:n`.

    Yields:
        The device that is this rank's own: of several GPUs one each.

    Raises:
        RunError: there are not as many GPUs as ranks on this machine, or the others are not reached.
    """
    if not started():
        yield device
        return
    own = _own(device)
    if own.type == "cuda":
        torch.cuda.set_device(own)
    with _noticing_lost_ranks():
        store, number, size = next(dist.rendezvous("env://", timeout=_JOINING))
        store.set(f"started/{number}", "")
        store.wait([f"started/{one}" for one in range(size)], _JOINING)
        store.set_timeout(_PATIENCE)
        backend = "nccl" if own.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=store, rank=number, world_size=size, timeout=_PATIENCE)
    try:
        yield str(own)
        with contextlib.suppress(RuntimeError):
            dist.barrier()  # a rank that leaves while another is still talking to it may abort
    finally:
        with contextlib.suppress(RuntimeError):
            dist.destroy_process_group()


def _own(device: str) -> torch.device:
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    own = torch.device(device)
    if own.type != "cuda":
        return own
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if own.index is not None:
        raise RunError(f"`--device {device}` is one GPU, but every rank needs its own; leave the number out")
    if local >= torch.cuda.device_count():
        raise RunError(f"rank {local} of this machine has no GPU: there are {torch.cuda.device_count()}")
    return torch.device("cuda", local)


@contextlib.contextmanager
def _noticing_lost_ranks() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # what gloo and nccl raise where a connection is closed
        ranks = os.environ.get("WORLD_SIZE", "several")
        raise RankLostError(f"another of the {ranks} ranks has ended or cannot be reached") from error


def share(examples: int, of: int | None = None) -> slice:
    """Return which examples belong to this rank, or to another: runs of nearly equal length, in order of the ranks."""
    one = rank() if of is None else of
    return slice(examples * one // count(), examples * (one + 1) // count())


def shares(examples: int) -> list[int]:
    """Return how many of so many examples every rank has."""
    return [one.stop - one.start for one in (share(examples, of) for of in range(count()))]


@torch.no_grad()
def add_up(tensors: Sequence[Tensor]) -> None:
    """Replace tensors by their sums over the ranks, all of one type in one flat bucket."""
    if count() == 1:
        return
    for dtype in dict.fromkeys(one.dtype for one in tensors):
        alike = [one for one in tensors if one.dtype == dtype]
        bucket = torch.cat([one.flatten() for one in alike])
        with _noticing_lost_ranks():
            dist.all_reduce(bucket)
        for one, total in zip(alike, bucket.split([one.numel() for one in alike]), strict=True):
            one.copy_(total.view_as(one))


@torch.no_grad()
def gathered_examples(own: Tensor, numbers: Sequence[int]) -> Tensor:
    """Return the examples `[n, ...]` of all ranks, in order of the ranks; `numbers` says how many each has."""
    if count() == 1:
        return own
    padded = own.new_zeros(max(numbers), *own.shape[1:])
    padded[: len(own)] = own
    found = [torch.empty_like(padded) for _ in numbers]
    with _noticing_lost_ranks():
        dist.all_gather(found, padded)
    return torch.cat([one[:number] for one, number in zip(found, numbers, strict=True)])


def gathered(value: Found) -> list[Found]:
    """Return the values of all ranks, in order of the ranks."""
    if count() == 1:
        return [value]
    found: list[Any] = [None] * count()
    with _noticing_lost_ranks():
        dist.all_gather_object(found, value)
    return found


def from_first(work: Callable[[], Found]) -> Found:
    """Return the result of work that the first rank alone does.

    Raises:
        RunError, NumericalError, SpecError: on every rank, where the first has raised it; what else it raises is a
            `RunError` on the others.
    """
    if count() == 1:
        return work()
    found: list[Any] = [None, None]
    stopped: Exception | None = None
    if rank() == 0:
        try:
            found[0] = work()
        except (RunError, NumericalError, SpecError) as error:
            found[1] = error
        except Exception as error:  # the others must not wait for what does not come
            found[1], stopped = RunError(f"the first rank has stopped: {type(error).__name__}: {error}"), error
    with _noticing_lost_ranks():
        dist.broadcast_object_list(found, src=0)
    if stopped is not None:
        raise stopped
    if found[1] is not None:
        raise found[1]
    result: Found = found[0]
    return result


def together(work: Callable[[], Found]) -> Found:
    """Return the result of work that every rank does for itself, once all of them have done it.

    Raises:
        RunError, NumericalError, SpecError: on every rank, where one has raised it; of another rank than the first a
            `RunError` that says which.
    """
    failure: Exception | None = None
    try:
        result = work()
    except (RunError, NumericalError, SpecError) as error:
        failure = error
    for number, found in enumerate(gathered(failure)):
        if found is not None:
            raise RunError(f"rank {number}: {found}") if number else found
    return result


@torch.no_grad()
def divided(costs: Mapping[Key, float], work: Callable[[Key], Tensor]) -> dict[Key, Tensor]:
    """Return tensors by key, each computed on one rank and handed to the others, with equal work for all ranks.

    Args:
        costs: what each takes, on one scale.
        work: makes the tensor of a key.

    Raises:
        NumericalError: on every rank, where one has raised it.
    """
    if count() == 1:
        return {key: work(key) for key in costs}
    loads, owners = [0.0] * count(), {}
    for key, cost in sorted(costs.items(), key=lambda one: -one[1]):
        owners[key] = loads.index(min(loads))
        loads[owners[key]] += cost
    own: dict[Key, Tensor] = {}
    failure: str | None = None
    for key, owner in owners.items():
        if owner == rank() and failure is None:
            try:
                own[key] = work(key)
            except NumericalError as error:
                failure = str(error)
    found = gathered((failure, {key: (tuple(one.shape), one.dtype, one.device.type) for key, one in own.items()}))
    for reason, _ in found:
        if reason is not None:
            raise NumericalError(reason)
    return {key: _handed_on(own.get(key), owners[key], found[owners[key]][1][key]) for key in costs}


def _handed_on(own: Tensor | None, owner: int, form: tuple[tuple[int, ...], torch.dtype, str]) -> Tensor:
    shape, dtype, device = form
    found = torch.empty(shape, dtype=dtype, device=device) if own is None else own.contiguous()
    with _noticing_lost_ranks():
        dist.broadcast(found, src=owner)
    return found
