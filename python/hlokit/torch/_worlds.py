# SPDX-License-Identifier: Apache-2.0
"""torch.distributed in the threads of spawn(): its state is one of a process, and each thread stands for one."""

import functools
import os
import sys
import threading
from typing import Any, List, Optional, Tuple

import torch
import torch.distributed as dist

from . import _session, _threads
from ._device import TYPES, has_torch_xla

_lock = threading.Lock()
_isolated = 0  # runs of spawn() in progress
_hook: Any = None  # sys.excepthook before them

BACKEND = "hlokit"


class _Worlds:
    """In place of torch.distributed's record of groups: each thread of spawn() has one of its own."""

    def __init__(self, original: Any):
        object.__setattr__(self, "_original", original)

    def __getattr__(self, name: str) -> Any:
        member = _threads.of_thread()
        original = object.__getattribute__(self, "_original")
        if member is None:
            return getattr(original, name)
        if name not in member.world:
            derived = getattr(type(original), name, None)
            if name == "pg_config_info" and isinstance(derived, property):
                return derived.fget(self)  # type: ignore[misc]
            value = getattr(original, name)
            if callable(value):
                return value
            member.world[name] = type(value)() if isinstance(value, (dict, list, int)) else None
        return member.world[name]

    def __setattr__(self, name: str, value: Any) -> None:
        member = _threads.of_thread()
        if member is None:
            setattr(object.__getattribute__(self, "_original"), name, value)
        else:
            member.world[name] = value


def isolate(on: bool) -> None:
    """While threads of spawn() run, each finds its own groups by name."""
    global _isolated, _hook
    if not dist.is_available():
        return
    import torch.distributed.nn  # its functions have the group of the one that imports it first

    set_mode = getattr(torch._C._distributed_c10d, "_set_thread_isolation_mode", None)
    with _lock:
        _isolated += 1 if on else -1
        # Each thread that makes a group sets one that names its rank, as if it were the process.
        if on and _isolated == 1:
            _hook = sys.excepthook
        elif not on and _isolated == 0:
            sys.excepthook = _hook
        if set_mode is not None and (on and _isolated == 1 or not on and _isolated == 0):
            set_mode(on)


def _rendezvous() -> Tuple[Any, int, int]:
    """The store, rank and number of processes that this thread stands for."""
    member = _threads.of_thread()
    if member is None:
        return dist.HashStore(), 0, 1
    return member.run.get("store", dist.HashStore), member.index, member.run.count


def _is_ours(backend: Any) -> bool:
    names = {part.rpartition(":")[2] for part in str(backend).lower().split(",")}
    return bool(names & {BACKEND, "xla", "tpu"})


def _is_one_of_several(world_size: int) -> bool:
    """Whether this process is one of those of torchrun, or of torch.multiprocessing."""
    return world_size > 1 or (world_size == -1 and "RANK" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1")


def _init_process_group(original: Any) -> Any:
    @functools.wraps(original)
    def init_process_group(
        backend: Optional[str] = None, init_method: Optional[str] = None, timeout: Any = None, world_size: int = -1,
        rank: int = -1, store: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        in_thread = _threads.of_thread() is not None
        if backend is None and in_thread:
            backend = BACKEND
        if _is_ours(backend) and store is None and init_method in (None, "env://", "xla://", "hlokit://"):
            if not in_thread and _is_one_of_several(world_size):
                init_method = "env://"
            else:
                store, own, count = _rendezvous()
                if in_thread and (rank not in (-1, own) or world_size not in (-1, count)):
                    raise ValueError(f"this is rank {own} of {count} threads of spawn(), not {rank} of {world_size}")
                init_method, rank, world_size = None, own, count
        return original(backend, init_method, timeout, world_size, rank, store, *args, **kwargs)

    return init_process_group


def _recording(original: Any) -> Any:
    """All ranks make all groups in one order, members or not."""

    @functools.wraps(original)
    def helper(group_size: int, group_rank: Any, global_ranks_in_group: List[int], *args: Any, **kwargs: Any) -> Any:
        member = _threads.member()
        if member is not None and global_ranks_in_group:
            member.groups.append(tuple(global_ranks_in_group))
        return original(group_size, group_rank, global_ranks_in_group, *args, **kwargs)

    return helper


def partition_of(ranks: Tuple[int, ...], world: int) -> Optional[List[List[int]]]:
    """Groups of equal sizes that have all ranks, this one among them: a collective is recorded by all devices at once. []
    is all in one; None where there are none."""
    if ranks == tuple(range(world)):
        return []
    member = _threads.member()
    made: List[Tuple[int, ...]] = [] if member is None else member.groups
    run: List[Tuple[int, ...]] = []
    for group in made:
        if run and (len(group) != len(run[0]) or any(set(group) & set(other) for other in run)):
            run = []
        run.append(group)
        if sum(map(len, run)) == world:
            if ranks in run:
                return [list(other) for other in run]
            run = []
    return _regular_partition(ranks, world)


def _regular_partition(ranks: Tuple[int, ...], world: int) -> Optional[List[List[int]]]:
    """That of a row of a mesh: ranks with one distance."""
    size = len(ranks)
    stride = ranks[1] - ranks[0] if size > 1 else 1
    if stride < 1 or world % (size * stride) != 0:
        return None
    groups = [
        [block * size * stride + i * stride + offset for i in range(size)]
        for block in range(world // (size * stride))
        for offset in range(stride)
    ]
    return groups if list(ranks) in groups else None


def install() -> None:
    """Makes the backend, and gives each thread of spawn() a world of its own."""
    if not dist.is_available():
        return
    from ._process_group import create  # of a class of torch.distributed

    c10d: Any = dist.distributed_c10d
    if isinstance(c10d._world, _Worlds):
        return
    c10d._world = _Worlds(c10d._world)
    init = _init_process_group(c10d.init_process_group)
    c10d.init_process_group = dist.init_process_group = init
    c10d._new_process_group_helper = _recording(c10d._new_process_group_helper)
    names = (BACKEND, "tpu") if has_torch_xla() else (BACKEND, "tpu", "xla")
    for name in names:
        if name.upper() not in dist.Backend._plugins:
            dist.Backend.register_backend(name, create, extended_api=True, devices=["cpu", *TYPES] if name == BACKEND else [name])
