# SPDX-License-Identifier: Apache-2.0
"""Helpers of torch_xla.utils.utils that programs use, and of experimental.assume_pure."""

import os
import socket
import sys
import time
from concurrent import futures
from typing import Any, Callable, Iterable, Iterator, List, Optional

import torch
from torch.utils._pytree import tree_flatten, tree_map


class SampleGenerator:
    """The same data sample_count times, in place of a loader."""

    def __init__(self, data: Any, sample_count: int):
        self._data, self._sample_count = data, sample_count

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self._sample_count):
            yield self._data

    def __len__(self) -> int:
        return self._sample_count


class FnDataGenerator:
    """count batches of gen_tensor(batch_size, *dims), with func of each."""

    def __init__(self, func: Any, batch_size: int, gen_tensor: Any, dims: Any = None, count: int = 1):
        self._func, self._batch_size, self._gen_tensor = func, batch_size, gen_tensor
        self._dims, self._count = list(dims) if dims else [1], count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self._count):
            data = self._gen_tensor(self._batch_size, *self._dims)
            yield data, self._func(data)


def as_list(t: Any) -> Any:
    return t if isinstance(t, (tuple, list)) else [t]


def getenv_as(name: str, type: Callable[[Any], Any], defval: Any = None) -> Any:
    """A variable of the environment as this type."""
    text = os.environ.get(name)
    if text is None:
        return defval
    return text.upper() in ("1", "Y", "TRUE", "YES", "ON") if type is bool else type(text)


def check_env_flag(name: str, default: str = "") -> bool:
    return os.environ.get(name, default).upper() in ("ON", "1", "YES", "TRUE", "Y")


def for_each_instance(value: Any, select_fn: Callable[[Any], bool], fn: Callable[[Any], Any]) -> None:
    for leaf in tree_flatten(value)[0]:
        if select_fn(leaf):
            fn(leaf)


def for_each_instance_rewrite(value: Any, select_fn: Callable[[Any], bool], fn: Callable[[Any], Any]) -> Any:
    return tree_map(lambda leaf: fn(leaf) if select_fn(leaf) else leaf, value)


def null_print(*args: Any, **kwargs: Any) -> None:
    return


def eprint(*args: Any, **kwargs: Any) -> None:
    print(*args, file=sys.stderr, **kwargs)


def timed(fn: Callable[[], Any], msg: str = "", printfn: Optional[Callable[..., Any]] = eprint) -> Any:
    if printfn is None:
        return fn()
    start = time.time()
    result = fn()
    printfn(f"{msg}{(time.time() - start) * 1e3:.3f}ms")
    return result


def get_free_tcp_ports(n: int = 1) -> List[int]:
    ports = []
    for _ in range(n):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            s.bind(("", 0))
            ports.append(int(s.getsockname()[1]))
    return ports


def parallel_work(num_workers: int, fn: Callable[..., Any], *args: Iterable[Any]) -> List[Any]:
    with futures.ThreadPoolExecutor(max_workers=num_workers) as executor:
        return list(executor.map(fn, *args))


def assume_pure(fn: Any, **kwargs: Any) -> Any:
    """fn: it is recorded in each call, where torch_xla keeps what the first has recorded."""
    return fn


class PureModule(torch.nn.Module):
    """The module, in another."""

    def __init__(self, module: torch.nn.Module):
        super().__init__()
        self._module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._module(*args, **kwargs)
