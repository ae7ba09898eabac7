# SPDX-License-Identifier: Apache-2.0
"""Random ops of DTensors on devices xla and tpu: parts differ, copies of a part do not, and all ranks go on alike.

PyTorch's own way counts the numbers that a Philox generator has drawn, which the seed of a device does not.
"""

import contextlib
from typing import Any, Iterator, Tuple

import torch
from torch.distributed.tensor import _random

from hlokit import _hlokit

from . import tpu
from ._device import TPU, TYPES
from ._tensor import lazy_of

# Constants of SplitMix64 and of the seeds of the tracer, as int64.
_PART = 0x1E3779B97F4A7C15
_FACTOR, _ADDEND = 214013, 2531011


def _part_of(spec: Any) -> int:
    """The number of this rank's part among the different ones."""
    part, place = 0, spec.mesh.get_coordinate()
    for number, placement in enumerate(spec.placements):
        if placement.is_shard() and place is not None:
            part = part * spec.mesh.size(number) + place[number]
    return int(part)


@contextlib.contextmanager
def _seed_of_part(part: int) -> Iterator[None]:
    """Draws the numbers of a part in the block."""
    with torch.no_grad():
        seed = tpu.get_rng_state()
        _hlokit._lazy_set_seed(lazy_of(seed + (part + 1) * _PART % (1 << 63)))
        try:
            yield
        finally:
            _hlokit._lazy_set_seed(lazy_of(seed * _FACTOR + _ADDEND))


class _Tracker(_random.OffsetBasedRNGTracker):  # type: ignore[misc]
    def __init__(self) -> None:
        self._device = torch.device(TPU)
        self._device_handle = tpu
        self._use_distribute_region = True

    def _compute_rng_offsets(self, spec: Any) -> Tuple[int, int]:
        return _part_of(spec), 0

    @contextlib.contextmanager
    def _distribute_region(self, spec: Any, generator: Any = None) -> Iterator[None]:
        if spec.mesh.device_type not in TYPES or generator is not None:
            yield
            return
        with _seed_of_part(_part_of(spec)):
            yield


def install() -> None:
    """Before the first random op of a DTensor, of which PyTorch would let one rank alone communicate."""
    if getattr(_random, "_rng_tracker", None) is not None:
        return
    _random._rng_tracker = _Tracker()
    from torch._prims import rng_prims

    run = getattr(rng_prims, "run_dtensor_rng_op", None)  # of newer versions
    if run is None:
        return
    key = torch._C.DispatchKey.BackendSelect
    original = run.py_kernels[key]

    def select(part: int, end: int, op: Any, *args: Any, **kwargs: Any) -> Any:
        if not any(lazy_of(value) is not None for value in args):
            return original(part, end, op, *args, **kwargs)
        with _seed_of_part(part):
            return op(*args, **kwargs)

    run.py_kernels[key] = select
    run._dispatch_cache.clear()
