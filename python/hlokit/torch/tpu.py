# SPDX-License-Identifier: Apache-2.0
"""torch.tpu: what PyTorch and programs ask of a kind of device, with the names of torch.cuda. Also torch.xla, where the real
torch_xla is not loaded.

Streams and events do nothing: the tracer orders what it runs. Memory is that of the host.
"""

import os
from typing import Any, Dict, List, Optional, Tuple

import torch

from hlokit import _hlokit

from . import _random, _session, _threads
from ._device import NATIVE
from ._tensor import lazy_of

_initialized = True
default_generators: Tuple[Any, ...] = ()


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def init() -> None:
    _session.current()


def _is_in_bad_fork() -> bool:
    return _session.is_forked()


def device_count() -> int:
    """The number of devices of the session."""
    return int(_session.current().device_count)


def current_device() -> int:
    """The number of this thread's device."""
    return _session.ordinal_of(None)


def set_device(device: Any) -> None:
    """Makes a device this thread's."""
    _session.set_device(_session.target_of(device))


class device:
    """with torch.tpu.device(1): a device is this thread's for the block."""

    def __init__(self, device: Any):
        self.idx = None if device is None else _session.ordinal_of(device)
        self.prev_idx = -1

    def __enter__(self) -> "device":
        self.prev_idx = current_device()
        if self.idx is not None:
            set_device(self.idx)
        return self

    def __exit__(self, *_: Any) -> None:
        _session.set_device(self.prev_idx)


class device_of(device):
    """with torch.tpu.device_of(tensor): the device of a tensor."""

    def __init__(self, tensor: Any):
        super().__init__(tensor.device if lazy_of(tensor) is not None else None)


def get_device_name(device: Any = None) -> str:
    return f"hlokit {_session.ordinal_of(device)}"


def get_device_capability(device: Any = None) -> Dict[str, Any]:
    return {"supported_dtypes": set(get_amp_supported_dtype())}


def get_device_properties(device: Any = None) -> Any:
    class Properties:
        name = get_device_name(device)
        total_memory = memory_stats(device)["bytes_limit"]
        multi_processor_count = 1

    return Properties()


def synchronize(device: Any = None) -> None:
    """Runs what is recorded on a device, and waits for it."""
    session, ordinal = _session.current(), _session.ordinal_of(device)
    _threads.run_step(lambda: session.mark_step(ordinal, True, ""))
    session.wait(ordinal)


# ---- random numbers ----


def manual_seed(seed: int) -> None:
    """Seeds this thread's device."""
    _random.manual_seed(seed, _session.current(), _session.ordinal_of(None))


def manual_seed_all(seed: int) -> None:
    """Seeds all devices; torch.manual_seed() calls it."""
    if not _session.is_forked():
        _random.manual_seed(seed, _session.started())


def seed() -> None:
    manual_seed(torch.initial_seed())


def seed_all() -> None:
    manual_seed_all(torch.initial_seed())


def initial_seed() -> int:
    return int(_session.current().seed(_session.ordinal_of(None)))


def get_rng_state(device: Any = None) -> torch.Tensor:
    """The random state of a device, a value of its graph."""
    return _hlokit._torch_wrap(_hlokit._lazy_seed(_session.current(), _session.ordinal_of(device)))  # type: ignore[no-any-return]


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    """Sets what get_rng_state() returned, or a number on the host."""
    lazy = lazy_of(new_state)
    if lazy is None:
        _random.manual_seed(int(new_state.item()), _session.current(), _session.ordinal_of(device))
    else:
        _hlokit._lazy_set_seed(lazy)


def get_rng_state_all() -> List[torch.Tensor]:
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state_all(new_states: List[torch.Tensor]) -> None:
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


# ---- amp ----


def get_amp_supported_dtype() -> List[torch.dtype]:
    return [torch.bfloat16, torch.float16]


def is_bf16_supported(*_: Any) -> bool:
    return True


# ---- streams and events ----

Stream = torch.Stream
Event = torch.Event


def current_stream(device: Any = None) -> torch.Stream:
    return torch.Stream(torch.device("tpu", _session.ordinal_of(device)))


default_stream = current_stream


def set_stream(stream: Any) -> None:
    pass


class stream:
    """with torch.tpu.stream(s): nothing; there is one stream."""

    def __init__(self, stream: Optional[Any]):
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


# ---- memory ----


def memory_stats(device: Any = None) -> Dict[str, int]:
    """Bytes of the tensors of a device that exist, and did at most, whether computed or not, and the host's memory."""
    used, peak = NATIVE.memory_use(_session.ordinal_of(device))
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"bytes_used": used, "peak_bytes_used": peak, "bytes_limit": limit}


def mem_get_info(device: Any = None) -> Tuple[int, int]:
    """Bytes that are free, and all."""
    stats = memory_stats(device)
    return stats["bytes_limit"] - stats["bytes_used"], stats["bytes_limit"]


def memory_allocated(device: Any = None) -> int:
    return memory_stats(device)["bytes_used"]


def memory_reserved(device: Any = None) -> int:
    return memory_stats(device)["bytes_used"]


def max_memory_allocated(device: Any = None) -> int:
    return memory_stats(device)["peak_bytes_used"]


max_memory_reserved = max_memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    NATIVE.reset_peak(_session.ordinal_of(device))


def empty_cache() -> None:
    """Does nothing: values are freed as soon as nothing refers to them."""
