# SPDX-License-Identifier: Apache-2.0
"""The functions of torch_xla.runtime. Devices of one process; those of other replicas are not its own."""

import os
import warnings
from typing import Any, Dict, List, Optional

import torch

from . import _session, _threads, spmd, xla_model



def set_device_type(pjrt_device: str) -> None:
    """Sets the kind of device that programs see: "TPU" or "CPU"."""
    os.environ["PJRT_DEVICE"] = pjrt_device


def device_type() -> Optional[str]:
    """PJRT_DEVICE: "TPU", or "CPU", the default."""
    return os.environ.get("PJRT_DEVICE", "CPU").split("_")[0]


def is_bf16_supported() -> bool:
    return True


def _count() -> int:
    return int(_session.current().device_count)


def local_process_count() -> int:
    """Threads of spawn() stand for processes."""
    return 1 if is_spmd() else _count()


def global_device_count() -> int:
    """The number of devices of all replicas: one with SPMD, where a virtual device stands for all."""
    return 1 if is_spmd() else max(_count(), xla_model.xrt_world_size())


def world_size() -> int:
    """The number of devices that run the program: of this session in spawn(), of several processes, else 1."""
    if is_spmd() or not _session.in_spawn() and _threads.of_process() is None:
        return 1
    return xla_model.xrt_world_size()


def local_device_count() -> int:
    return 1 if is_spmd() else _count()


def addressable_device_count() -> int:
    return 1


def global_ordinal() -> int:
    return xla_model.get_ordinal()


def local_ordinal() -> int:
    return xla_model.get_local_ordinal()


def process_index() -> int:
    return 0 if is_spmd() else xla_model.get_ordinal()


def process_count() -> int:
    return 1 if is_spmd() else world_size()


def host_index() -> int:
    return 0


def runtime_device_attributes(device: str) -> Dict[str, object]:
    """Where a device is: its core, and its coordinates in a row."""
    index = int(str(device).rpartition(":")[2] or 0)
    return {"name": str(device), "core_on_chip": 0, "num_cores": 1, "coords": [index, 0, 0]}


def global_runtime_device_attributes() -> List[Dict[str, object]]:
    kind = device_type()
    return [runtime_device_attributes(f"{kind}:{i}") for i in range(global_runtime_device_count())]


def global_runtime_device_count() -> int:
    """The devices behind the virtual one of SPMD: those of the session (configure(devices=N))."""
    return spmd.global_runtime_device_count()


def addressable_runtime_device_count() -> int:
    return _count()


def use_spmd(auto: bool = False) -> None:
    """Programs are of one virtual device, and tensors have shardings (distributed.spmd)."""
    if _session.in_spawn():
        raise RuntimeError("use_spmd() in a thread of spawn(): SPMD programs run once, not on each device")
    spmd.use_spmd(auto)


def is_spmd() -> bool:
    return spmd.is_spmd()



def get_master_ip() -> str:
    return "127.0.0.1"


def initialize_cache(path: str, readonly: bool = False) -> None:
    """A persistent compilation cache in a directory, for sessions that begin after this call."""
    os.environ["XLA_PERSISTENT_CACHE_PATH"] = path
    os.environ["XLA_PERSISTENT_CACHE_READ_ONLY"] = "1" if readonly else "0"
    if _session.has_begun():
        warnings.warn("initialize_cache(): the session has begun, and has no persistent cache", stacklevel=2)


def get_num_cached_compilation_graph() -> int:
    """The number of programs compiled in this session."""
    from . import metrics

    return int(metrics.counter_value("UncachedCompile") or 0)


def device(n: Optional[int] = None) -> Any:
    return _session.device(n)


def local_devices() -> List[torch.device]:
    return [_session.device(i) for i in range(_count())]
