# SPDX-License-Identifier: Apache-2.0
"""Functions of torch_xla.core.xla_model that are made of others: of lists of tensors, of chosen devices, of texts."""

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from . import _chip, _session, tpu, xla_model

Groups = xla_model.Groups


def is_xla_tensor(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "xla"


def xla_device_kind(device: Any = None) -> str:
    """The kind of the simulated chips: "TPU v5p" or what is simulated; "cpu" where PJRT_DEVICE says so."""
    hardware = xla_model.xla_device_hw(device if device is not None else _session.device())
    return f"{hardware} {_chip.device().partition(':')[0]}" if hardware == "TPU" else hardware.lower()


def xla_replication_devices(local_devices: Optional[Sequence[Any]] = None) -> List[str]:
    """The names of the devices that run the program together."""
    return [f"xla:{i}" for i in range(_session.current().device_count)] if not local_devices else [str(d) for d in local_devices]


def set_replication(device: Any, devices: Sequence[Any]) -> None:
    """Does nothing: the threads of spawn() are replicas already. More than those is an error."""
    if len(devices) > _session.current().device_count:
        raise RuntimeError(f"{len(devices)} devices, and this session has {_session.current().device_count}")


class ToXlaTensorArena:
    """Converts the tensors in nested values, all by one call."""

    def __init__(self, convert_fn: Callable[[List[Any]], List[Any]], select_fn: Callable[[Any], bool]):
        self._convert, self._select = convert_fn, select_fn

    def transform(self, inputs: Any) -> Any:
        leaves, structure = tree_flatten(inputs)
        chosen = [leaf for leaf in leaves if self._select(leaf)]
        converted = iter(self._convert(chosen) if chosen else [])
        return tree_unflatten([next(converted) if self._select(leaf) else leaf for leaf in leaves], structure)


def _maybe_convert_to_cpu(data: Any, convert: bool = True) -> Any:
    """The data with tensors on the CPU, which one program computes."""
    return xla_model._to_cpu(data) if convert else data


def check_view_sharing(obj: Any) -> None:
    """Raises RuntimeError where two tensors on the host share their storage."""
    seen: Dict[int, torch.Tensor] = {}
    for tensor in tree_flatten(obj)[0]:
        if isinstance(tensor, torch.Tensor) and not is_xla_tensor(tensor):
            first = seen.setdefault(tensor.untyped_storage().data_ptr(), tensor)
            if first is not tensor and tensor.numel() > 0:
                raise RuntimeError(f"a tensor {list(tensor.shape)} shares a view with one {list(first.shape)}")


def _fetch_gradients(optimizer: torch.optim.Optimizer) -> List[torch.Tensor]:
    return [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]


# ---- lists of tensors ----


def _each(inputs: Sequence[torch.Tensor], output: Optional[Sequence[Any]], call: Callable[[Any, Any], Any]) -> List[Any]:
    outputs = list(output) if output is not None else [None] * len(inputs)
    if len(outputs) != len(inputs):
        raise ValueError(f"{len(outputs)} outputs for {len(inputs)} inputs")
    return [call(value, into) for value, into in zip(inputs, outputs)]


def all_gather_bucketized(
    input_list: Sequence[torch.Tensor],
    dim: int = 0,
    groups: Groups = None,
    output: Optional[Sequence[Any]] = None,
    pin_layout: bool = False,
    bucket_cap_mb: int = 160,
) -> List[torch.Tensor]:
    """all_gather of each tensor; XLA's combiner merges them."""
    return _each(input_list, output, lambda value, into: xla_model.all_gather(value, dim, groups, into))


def reduce_scatter_bucketized(
    reduce_type: str,
    input_list: Sequence[torch.Tensor],
    scale: float,
    scatter_dim: int,
    shard_count: int,
    groups: Groups = None,
    output: Optional[Sequence[Any]] = None,
    pin_layout: bool = False,
    bucket_cap_mb: int = 160,
) -> List[torch.Tensor]:
    """reduce_scatter of each tensor; XLA's combiner merges them."""

    def call(value: torch.Tensor, into: Any) -> Any:
        return xla_model.reduce_scatter(reduce_type, value, scale, scatter_dim, shard_count, groups, into)

    return _each(input_list, output, call)


def all_reduce_bucketized_gradients(
    gradients: Sequence[torch.Tensor], scale: float, groups: Groups, pin_layout: bool, bucket_cap_mb: int = 0
) -> None:
    """Reduces gradients in place, in buckets of this size; 0: all at once."""
    bucket: List[torch.Tensor] = []
    size = 0
    for gradient in gradients:
        bucket.append(gradient)
        size += gradient.numel() * gradient.element_size()
        if bucket_cap_mb and size >= bucket_cap_mb << 20:
            xla_model.all_reduce(xla_model.REDUCE_SUM, bucket, scale, groups)
            bucket, size = [], 0
    if bucket:
        xla_model.all_reduce(xla_model.REDUCE_SUM, bucket, scale, groups)


def send(value: torch.Tensor, channel_id: int) -> torch.Tensor:
    raise NotImplementedError("xm.send: point-to-point communication; use collective_permute")


def recv(output: torch.Tensor, channel_id: int) -> torch.Tensor:
    raise NotImplementedError("xm.recv: point-to-point communication; use collective_permute")


# ---- devices and steps ----


def xla_rendezvous(payload: bytes = b"", ordinals: Optional[Sequence[int]] = None, tag: Optional[str] = None) -> List[bytes]:
    """Waits for all devices, and returns their payloads."""
    if ordinals and len(ordinals) != _session.current().device_count:
        raise ValueError("xla_rendezvous: of all devices only, not of some")
    return xla_model.rendezvous(tag or "xla_rendezvous", payload)


def do_on_ordinals(target: Callable[..., Any], data: Any = (), ordinals: Union[Sequence[int], int] = (0,)) -> Any:
    """target(*data) on these devices, with tensors on the CPU; the others wait."""
    wanted = (ordinals,) if isinstance(ordinals, int) else ordinals
    running = xla_model.get_ordinal() in wanted
    result = target(*xla_model._to_cpu(tuple(data) if isinstance(data, (tuple, list)) else (data,))) if running else None
    if _session.in_spawn():
        xla_model.rendezvous("torch_xla.core.xla_model.do_on_ordinals")
    return result


def run_step_closures() -> None:
    """Calls the closures that wait for the end of the step."""
    xla_model.run_closures()


@contextlib.contextmanager
def fork_rng(device: Any = None, enabled: bool = True) -> Iterator[None]:
    """The block's random numbers of the device do not change those after it."""
    if not enabled:
        yield
        return
    state = xla_model.get_rng_state(device)
    try:
        yield
    finally:
        xla_model.set_rng_state(state, device)


# ---- texts and memory ----


def get_stablehlo(tensors: Optional[Sequence[torch.Tensor]] = None) -> str:
    """The graph that computes the tensors, as StableHLO."""
    from . import _trace

    if not tensors:
        raise NotImplementedError("get_stablehlo() without tensors: give those that the program should compute")
    return str(_trace.pending(list(tensors)).module.to_format("stablehlo").decode())


def get_memory_info(device: Any = None) -> Dict[str, int]:
    """Bytes of the tensors of the device that exist, and did at most, and the memory of the simulated chip."""
    return {**tpu.memory_stats(device), "bytes_limit": _chip.memory_bytes()}
