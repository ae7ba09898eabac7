# SPDX-License-Identifier: Apache-2.0
"""Functions of torch_xla._XLAC that programs call."""

from typing import Any, List, Optional, Sequence

import torch

from . import _program, _session, _trace, metrics, runtime, spmd, xla_model


def _xla_get_tensor_id(tensor: torch.Tensor) -> int:
    """A number of the tensor's value: that of its storage, which views share with their base."""
    if tensor.device.type != "xla":
        raise RuntimeError(f"Input tensor is not an XLA tensor: {tensor.device}")
    base = tensor._base if tensor._base is not None else tensor
    return id(base)


def _get_xla_tensors_text(tensors: Sequence[torch.Tensor]) -> str:
    return _trace.pending(list(tensors)).lazy_ir


def _get_xla_tensors_hlo(tensors: Sequence[torch.Tensor], emit_mode: str = "text") -> str:
    return _trace.pending(list(tensors)).hlo


def _get_xla_tensors_dot(tensors: Sequence[torch.Tensor]) -> str:
    raise NotImplementedError("_get_xla_tensors_dot: ir-dump --input=FILE --as=dot prints the text of _get_xla_tensors_text as DOT")


def _get_graph_hash(tensors: Sequence[torch.Tensor]) -> bytes:
    return bytes.fromhex(_trace.pending(list(tensors)).hash)


def _get_stablehlo(tensors: Sequence[torch.Tensor], device: Any, devices: Any, bytecode: bool) -> bytes:
    if bytecode:
        raise NotImplementedError("_get_stablehlo: as text only")
    return xla_model.get_stablehlo(list(tensors)).encode()


def _xla_sync_multi(tensors: Sequence[torch.Tensor], devices: Sequence[Any] = (), wait: bool = True, sync_xla_data: bool = True) -> None:
    xla_model.unlazy(list(tensors))


def _xla_sync_live_tensors(device: Any, devices: Sequence[Any], wait: bool = True) -> None:
    _program.sync(wait)


def _xla_step_marker(device: Any = None, devices: Sequence[Any] = (), wait: bool = False, reset_scope: bool = True) -> None:
    _program.sync(wait, reset_scope)


def _xla_wait_device_ops(devices: Sequence[Any] = ()) -> None:
    xla_model.wait_device_ops(devices)


def _xla_get_default_device() -> str:
    return str(_session.device())


def _xla_get_devices() -> List[str]:
    return xla_model.get_xla_supported_devices()


_xla_get_all_devices = _xla_get_devices


def _xla_num_devices() -> int:
    return runtime.addressable_device_count()


def _xla_real_devices(devices: Sequence[Any] = ()) -> List[str]:
    return xla_model.xla_real_devices(list(devices)) if devices else _program.real_devices()


def _xla_metrics_report() -> str:
    return metrics.metrics_report()


def _xla_counter_value(name: str) -> Optional[int]:
    return metrics.counter_value(name)


def _xla_counter_names() -> List[str]:
    return metrics.counter_names()


def _xla_metric_names() -> List[str]:
    return metrics.metric_names()


def _xla_get_rng_seed(device: Any = None) -> int:
    return xla_model.get_rng_state(device)


def _xla_set_rng_seed(seed: int, device: Any = None) -> None:
    xla_model.set_rng_state(seed, device)


def _get_xla_sharding_spec(tensor: torch.Tensor) -> str:
    return spmd.get_sharding_spec(tensor)


def _get_xla_sharding_specs(tensors: Sequence[torch.Tensor]) -> List[str]:
    return [spmd.get_sharding_spec(t) for t in tensors]


def _set_xla_enable_device_data_cache(enable: bool) -> None:
    """Does nothing: numbers that were uploaded are kept."""


def _xla_set_use_full_mat_mul_precision(use_full_mat_mul_precision: bool = True) -> None:
    """Does nothing: products are computed in the precision of their types."""


def _xla_runtime_is_initialized() -> bool:
    return _session.has_begun()


def __getattr__(name: str) -> Any:
    raise AttributeError(f"torch_xla._XLAC.{name} is not in hlokit's package torch_xla")


