# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's backend "xla", of the threads of spawn(): a world of process groups for each, and collectives of the
device."""

import threading
from typing import Any, Iterator, List

import torch
import torch.distributed as dist

from . import _session, xla_model

_registered = False
_store: Any = None
_store_lock = threading.Lock()


class _ThreadWorlds:
    """torch.distributed's state: one for each thread of spawn(), one for the others."""

    def __init__(self, shared: Any):
        object.__setattr__(self, "_shared", shared)
        object.__setattr__(self, "_own", threading.local())

    def _world(self) -> Any:
        if not _session.in_spawn():
            return self._shared
        if not hasattr(self._own, "world"):
            self._own.world = type(self._shared)()
        return self._own.world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._world(), name, value)


def _work(result: Any) -> Any:
    future: Any = torch.futures.Future()
    future.set_result(result)
    return torch._C._distributed_c10d._create_work_from_future(future)


_REDUCTIONS = {"SUM": "sum", "AVG": "sum", "PRODUCT": "mul", "BAND": "and", "BOR": "or", "MIN": "min", "MAX": "max"}


class ProcessGroupXla(dist.ProcessGroup):  # type: ignore[misc]
    """Collectives of torch.distributed, of all devices."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any):
        super().__init__(rank, size)
        if size not in (1, xla_model.xrt_world_size()):
            raise NotImplementedError(f"a process group of {size} devices of {xla_model.xrt_world_size()}: of all devices only")
        self._devices = size

    def getBackendName(self) -> str:
        return "xla"

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        return self._name

    def _reduction(self, op: Any) -> Any:
        for name, kind in _REDUCTIONS.items():
            if op == getattr(dist.ReduceOp, name):
                return kind, 1.0 / self._devices if name == "AVG" else 1.0
        raise NotImplementedError(f"the backend xla has no reduction {op}")

    def allreduce(self, tensors: Any, opts: Any = None) -> Any:
        kind, scale = self._reduction(dist.ReduceOp.SUM if opts is None else getattr(opts, "reduceOp", opts))
        with torch.no_grad():
            xla_model.all_reduce(kind, list(tensors), scale)
        return _work(tensors)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Any:
        return self.allreduce(tensors, opts)

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Any:
        with torch.no_grad():
            output.copy_(xla_model.all_gather(input.reshape(-1)).reshape(output.shape))
        return _work(output)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        with torch.no_grad():
            for into, value in zip(outputs, inputs):
                gathered = xla_model.all_gather(value.unsqueeze(0))
                for place, tensor in enumerate(into):
                    tensor.copy_(gathered[place])
        return _work([t for into in outputs for t in into])

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return self.allgather(outputs, inputs, opts)

    def broadcast(self, tensors: Any, opts: Any) -> Any:
        xla_model.collective_broadcast(list(tensors), int(opts.rootRank))
        return _work(tensors)

    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any) -> Any:
        kind, scale = self._reduction(opts.reduceOp)
        with torch.no_grad():
            part = xla_model.reduce_scatter(kind, input.reshape(-1), scale, 0, self._devices)
            output.copy_(part.reshape(output.shape))
        return _work(output)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any) -> Any:
        for output, parts in zip(outputs, inputs):
            self._reduce_scatter_base(output, torch.cat([p.reshape(-1) for p in parts]), opts)
        return _work(outputs)

    def reduce(self, tensors: Any, opts: Any) -> Any:
        kind, scale = self._reduction(opts.reduceOp)
        with torch.no_grad():
            for tensor in tensors:
                result = xla_model.all_reduce(kind, tensor, scale)
                if self.rank() == int(opts.rootRank):
                    tensor.copy_(result)
        return _work(tensors)

    def alltoall_base(self, output: torch.Tensor, input: torch.Tensor, output_splits: Any, input_splits: Any, opts: Any = None) -> Any:
        if output_splits or input_splits:
            raise NotImplementedError("all_to_all_single with sizes of parts: equal ones only")
        with torch.no_grad():
            output.copy_(xla_model.all_to_all(input, 0, 0, self._devices))
        return _work(output)

    def barrier(self, opts: Any = None) -> Any:
        if self._devices > 1:
            xla_model.rendezvous("torch.distributed.barrier")
        return _work([])

    def send(self, tensors: Any, rank: int, tag: int = 0) -> Any:
        raise NotImplementedError("the backend xla has no point-to-point communication")

    recv = send


def _create(store: Any, rank: int, size: int, timeout: Any) -> Any:
    return ProcessGroupXla(store, rank, size, timeout)


def _rendezvous(url: str, timeout: Any = None, **kwargs: Any) -> Iterator[Any]:
    global _store
    with _store_lock:
        if _store is None:
            _store = dist.HashStore()
    rank = xla_model.get_ordinal() if _session.in_spawn() else 0
    yield _store, rank, xla_model.xrt_world_size()


def register() -> None:
    """Makes the backend known, once."""
    global _registered
    if _registered or not dist.is_available():
        return
    _registered = True
    c10d = dist.distributed_c10d
    c10d._world = _ThreadWorlds(c10d._world)  # type: ignore[attr-defined]
    dist.Backend.register_backend("xla", _create, devices="xla")
    dist.register_rendezvous_handler("xla", _rendezvous)


__all__: List[str] = ["ProcessGroupXla", "register"]
