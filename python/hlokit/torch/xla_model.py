# SPDX-License-Identifier: Apache-2.0
"""The functions of torch_xla.core.xla_model.

Each device of the session has a thread of its own (xla_multiprocessing.spawn); outside of these the device is xla:0.
"""

import os
import pickle
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch
from torch.utils._pytree import tree_flatten, tree_map

from hlokit import _hlokit

from . import _modules, _session, _threads
from ._tensor import fetch, is_lazy, is_marked, lazy_of, upload, value_of, wrap

REDUCE_SUM = "sum"
REDUCE_MUL = "mul"
REDUCE_AND = "and"
REDUCE_OR = "or"
REDUCE_MIN = "min"
REDUCE_MAX = "max"

Groups = Optional[Sequence[Sequence[int]]]
_closures = threading.local()


def xla_device(n: Optional[int] = None, devkind: Optional[str] = None) -> torch.device:
    """The device of this thread, or xla:n."""
    return _session.device(n)


def xla_device_hw(device: Any) -> str:
    """"CPU": programs run on hlokit's interpreter."""
    return "CPU" if torch.device(device).type == "cpu" else os.environ.get("PJRT_DEVICE", "CPU")


def get_xla_supported_devices(devkind: Optional[str] = None, max_devices: Optional[int] = None) -> List[str]:
    """The names of the devices of the session."""
    return [f"xla:{i}" for i in range(_session.current().device_count)][:max_devices]


def xla_real_devices(devices: Sequence[Any]) -> List[str]:
    """Names of devices in dumps: "CPU:0"."""
    return [f"{xla_device_hw(d)}:{_session.ordinal_of(d)}" for d in devices]


def get_ordinal(defval: int = 0) -> int:
    """The number of this thread's device, or of this process among several."""
    own = _threads.of_process()
    return _session.ordinal_of(None) if own is None else own.index


get_local_ordinal = get_ordinal


def xrt_world_size(defval: int = 1) -> int:
    """The number of devices and replicas that run the program."""
    session = _session.current()
    world = int(session.world_size())
    # Outside of spawn() a process of several devices uses one of them.
    return world if _session.in_spawn() else world // session.device_count


get_world_size = world_size = xrt_world_size


def is_master_ordinal(local: bool = True) -> bool:
    """Whether this thread's device is the first."""
    return get_ordinal() == 0


def master_print(*args: Any, fd: Any = None, local: bool = False, flush: bool = False) -> None:
    """Prints on the first device only."""
    if is_master_ordinal(local):
        print(*args, file=fd or sys.stdout, flush=flush)


def mark_step(wait: bool = False, reset_scope: bool = True) -> None:
    """Ends a step: what this thread's device recorded runs as one program, and step closures are called."""
    step("", wait)
    run_closures()


def run_closures() -> None:
    """Calls step closures, with tensors on the CPU."""
    for closure, args in _take_closures():
        closure(*tree_map(lambda v: v.cpu() if isinstance(v, torch.Tensor) else v, args))


def step(reason: str, wait: bool = False) -> None:
    """Marks a step, for the program (""), a loader ("loader") or a profiled step ("trace")."""
    _hlokit._clear_scopes()
    session, ordinal = _session.current(), _session.ordinal_of(None)
    _threads.run_step(lambda: session.mark_step(ordinal, wait, reason))


def add_step_closure(closure: Callable[..., Any], args: Tuple[Any, ...] = (), run_async: bool = False) -> None:
    """Calls closure(*args) after the next step, with tensors on the CPU."""
    if not hasattr(_closures, "list"):
        _closures.list = []
    _closures.list.append((closure, args))


def _take_closures() -> List[Tuple[Callable[..., Any], Tuple[Any, ...]]]:
    taken = getattr(_closures, "list", [])
    _closures.list = []
    return list(taken)


def wait_device_ops(devices: Sequence[Any] = ()) -> None:
    """Waits until the devices, or all, have run what they were given."""
    session = _session.current()
    for ordinal in [_session.ordinal_of(d) for d in devices] or range(session.device_count):
        session.wait(ordinal)


def unlazy(tensors: Sequence[torch.Tensor]) -> None:
    """Computes the tensors, those of one device by one program, and waits for them."""
    _threads.before_read()
    lazies = [lazy for lazy in map(lazy_of, tensors) if lazy is not None]
    _hlokit._lazy_compute([lazy for lazy in lazies if not _hlokit._lazy_session(lazy).fake])


def optimization_barrier_(tensors: Sequence[torch.Tensor]) -> None:
    """Hides from the compiler what computes the tensors: what is computed of them again is not merged with what was
    before. All of them are known before any is."""
    for tensor, lazy in zip(tensors, _hlokit._lazy_barrier([_raw(t) for t in tensors])):
        _hlokit._lazy_write(lazy_of(tensor), lazy)


# ---- random numbers ----


def set_rng_state(seed: int, device: Any = None) -> None:
    """Sets the seed from which random ops of further steps derive theirs."""
    _session.current().set_seed(_session.ordinal_of(device), int(seed))


def get_rng_state(device: Any = None) -> int:
    """The seed that the next step starts from."""
    return int(_session.current().seed(_session.ordinal_of(device)))


# ---- collectives ----


def _raw(tensor: torch.Tensor) -> Any:
    """The value of a tensor's memory, without marks of .conj() and the like."""
    lazy = lazy_of(tensor)
    if lazy is None:
        raise TypeError(f"a collective takes tensors of an XLA device, not of {tensor.device}")
    return lazy


def _lazy(tensor: torch.Tensor) -> Any:
    _raw(tensor)
    return value_of(tensor)


def _groups(groups: Groups) -> List[List[int]]:
    return [list(group) for group in groups or ()]


def all_reduce(
    reduce_type: str,
    inputs: Union[torch.Tensor, Sequence[torch.Tensor]],
    scale: float = 1.0,
    groups: Groups = None,
    cctx: Any = None,
    pin_layout: bool = True,
) -> Any:
    """The tensor combined over the devices of each group, or all, times scale. Tensors of a list are reduced in place."""
    session = _session.current()
    single = isinstance(inputs, torch.Tensor)
    tensors: Any = [inputs] if single else list(inputs)
    results = session.all_reduce(reduce_type, [_lazy(t) for t in tensors], float(scale), _groups(groups))
    if single:
        return wrap(results[0], tensors[0])
    for tensor, result in zip(tensors, results):
        if is_marked(tensor):
            tensor.detach().copy_(wrap(result, tensor))
        elif result is not lazy_of(tensor):
            _hlokit._lazy_write(lazy_of(tensor), result)
    return None


def all_gather(value: torch.Tensor, dim: int = 0, groups: Groups = None, output: Any = None, pin_layout: bool = True) -> Any:
    """The tensors of the group's devices, concatenated along dim."""
    dim = dim % max(value.dim(), 1)
    return _store(output, value, _session.current().all_gather(_lazy(value), dim, _groups(groups)))


def reduce_scatter(
    reduce_type: str,
    input: torch.Tensor,
    scale: float,
    scatter_dim: int,
    shard_count: int,
    groups: Groups = None,
    output: Any = None,
    pin_layout: bool = True,
) -> Any:
    """This device's part along scatter_dim of the combined tensors, times scale."""
    result = _session.current().reduce_scatter(reduce_type, _lazy(input), float(scale), scatter_dim, _groups(groups))
    return _store(output, input, result)


def all_to_all(
    value: torch.Tensor,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    groups: Groups = None,
    pin_layout: bool = True,
) -> Any:
    """Splits the tensor into a part for each device, and concatenates the parts for this one."""
    result = _session.current().all_to_all(_lazy(value), split_dimension, concat_dimension, split_count, _groups(groups))
    return wrap(result, value)


def collective_permute(value: torch.Tensor, pairs: Sequence[Sequence[int]]) -> Any:
    """The tensor of the device that sends to this one, (source, target); zeros where none does."""
    result = _session.current().collective_permute(_lazy(value), [(int(a), int(b)) for a, b in pairs])
    return wrap(result, value)


def collective_broadcast(
    tensors: Sequence[torch.Tensor], root_ordinal: int = 0, groups: Groups = None, pin_layout: bool = True
) -> None:
    """Replaces the tensors by those of the device root_ordinal. All devices record the same graph."""
    with torch.no_grad():
        for tensor in tensors:
            own = torch.tensor(get_ordinal() == root_ordinal)
            zero = torch.zeros((), dtype=tensor.dtype)
            tensor.copy_(torch.where(send_cpu_data_to_device(own, tensor.device), tensor, zero.to(tensor.device)))
        all_reduce(REDUCE_SUM, list(tensors), groups=groups)


def broadcast_master_param(model: torch.nn.Module) -> None:
    """Gives the parameters and buffers of the model on all devices the values of the first, and marks a step."""
    collective_broadcast([t.detach() for t in (*model.parameters(), *model.buffers())])
    mark_step()


def _store(output: Any, value: torch.Tensor, lazy: Any) -> Any:
    result = wrap(lazy, value)
    if output is None:
        return result
    output.copy_(result)
    return output


def rendezvous(tag: str, payload: bytes = b"", replicas: Sequence[int] = ()) -> List[bytes]:
    """Waits until the threads of all devices, or all processes, call it with this tag, and returns their payloads."""
    own = _threads.of_process()
    if own is not None:
        given = payload if isinstance(payload, bytes) else str(payload).encode()
        return list(own.run.exchange(own, "rendezvous", range(own.run.count), f"rendezvous {tag}", given))
    text = payload.hex() if isinstance(payload, bytes) else str(payload).encode().hex()
    return [bytes.fromhex(p.decode()) for p in _session.current().rendezvous(_session.ordinal_of(None), tag, text)]


def mesh_reduce(tag: str, data: Any, reduce_fn: Callable[[List[Any]], Any]) -> Any:
    """reduce_fn of the data of all devices, in order."""
    data = tree_map(lambda v: v.cpu() if isinstance(v, torch.Tensor) else v, data)
    return reduce_fn([pickle.loads(p) for p in rendezvous(tag, pickle.dumps(data))])


# ---- training ----


def reduce_gradients(optimizer: torch.optim.Optimizer, groups: Groups = None, cctx: Any = None, pin_layout: bool = True) -> None:
    """Replaces gradients by their means over the devices."""
    count = xrt_world_size()
    if count <= 1:
        return
    gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    if gradients:
        all_reduce(REDUCE_SUM, gradients, 1.0 / count, groups)


def optimizer_step(
    optimizer: torch.optim.Optimizer,
    barrier: bool = False,
    optimizer_args: Optional[Dict[str, Any]] = None,
    groups: Groups = None,
    pin_layout: bool = True,
) -> Any:
    """optimizer.step() with the mean of the gradients of all devices. barrier: marks a step too."""
    reduce_gradients(optimizer, groups)
    _modules.check_optimizer(optimizer)
    loss = optimizer.step(**(optimizer_args or {}))
    if barrier:
        mark_step()
    return loss


def send_cpu_data_to_device(datas: Any, device: Any, input_sharding: Any = None) -> Any:
    """Copies of the tensors in nested lists and dicts on the device. input_sharding: a spmd.ShardingSpec for those that have
    as many dimensions, or for each in a dict, list or tuple like the data."""
    ordinal = _session.target_of(device)
    session = _session.current()

    def send(value: Any) -> Any:
        return upload(value, session, ordinal) if isinstance(value, torch.Tensor) and not is_lazy(value) else value

    sent = tree_map(send, datas)
    if input_sharding is not None:
        from . import spmd

        spmd.apply_shardings(sent, input_sharding)
    return sent


def _to_cpu(data: Any) -> Any:
    """The data with tensors on the CPU, all of which one program computes."""
    unlazy([t for t in tree_flatten(data)[0] if is_lazy(t)])
    return _copied_to_cpu(data)


def _copied_to_cpu(value: Any) -> Any:
    if is_lazy(value):
        return fetch(value)
    if isinstance(value, dict):
        return type(value)((k, _copied_to_cpu(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_copied_to_cpu(v) for v in value)
    return tree_map(lambda v: fetch(v) if is_lazy(v) else v, value)


def save(data: Any, file_or_path: Any, master_only: bool = True, global_master: bool = False) -> None:
    """torch.save with tensors on the CPU; on the first device only, unless master_only is False.

    Files are written whole or not at all.
    """
    write = not master_only or is_master_ordinal()
    data = _to_cpu(data) if write else None
    if not write:
        return
    if not isinstance(file_or_path, (str, os.PathLike)):
        torch.save(data, file_or_path)
        return
    part = f"{os.fspath(file_or_path)}.part.{os.getpid()}"
    try:
        torch.save(data, part)
        os.replace(part, file_or_path)
    finally:
        if os.path.exists(part):
            os.remove(part)


class RateTracker:
    """Rates of examples: add(n), then rate() and global_rate() per second."""

    def __init__(self, smooth_factor: Optional[float] = None):
        self._smooth = 0.4 if smooth_factor is None else smooth_factor
        self._start = self._partial_time = time.time()
        self._partial_count = self._count = 0.0
        self._rate: Optional[float] = None

    def add(self, count: float) -> None:
        self._count += count

    def rate(self) -> float:
        now = time.time()
        passed, done = now - self._partial_time, self._count - self._partial_count
        if passed > 0 and done > 0:
            new = done / passed
            self._rate = new if self._rate is None else self._rate * (1 - self._smooth) + new * self._smooth
            self._partial_time, self._partial_count = now, self._count
        return self._rate or 0.0

    def global_rate(self) -> float:
        return self._count / max(time.time() - self._start, 1e-9)


from ._xla_model_more import (  # noqa: E402, F401
    ToXlaTensorArena,
    _fetch_gradients,
    _maybe_convert_to_cpu,
    all_gather_bucketized,
    all_reduce_bucketized_gradients,
    check_view_sharing,
    do_on_ordinals,
    fork_rng,
    get_memory_info,
    get_stablehlo,
    is_xla_tensor,
    recv,
    reduce_scatter_bucketized,
    run_step_closures,
    send,
    set_replication,
    xla_device_kind,
    xla_rendezvous,
    xla_replication_devices,
)
