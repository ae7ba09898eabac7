# SPDX-License-Identifier: Apache-2.0
"""Random numbers on the host in the threads of spawn().

Devices of PyTorch/XLA are processes, each with PyTorch's default generator: torch.manual_seed(0) in each gives all of them
the same weights. Here they are threads, which share it. So each thread has a generator of its own, which begins with the
state of the default one, and in these threads the functions of torch that draw or seed use it. Numbers that C++ draws by
itself, in dropout of tensors on the host, remain those of the shared one.
"""

import contextlib
import threading
from typing import Any, Callable, Iterator, Optional

import torch

from . import _random, _session

_thread = threading.local()  # .generator: of a thread of spawn()
_lock = threading.Lock()
_installed = False

# Functions and methods of tensors that take a generator; `_like`: functions that in some versions take none.
_FUNCTIONS = ("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson")
_LIKE = {"rand_like": torch.rand, "randn_like": torch.randn}
_METHODS = ("normal_", "uniform_", "random_", "exponential_", "cauchy_", "geometric_", "log_normal_", "bernoulli_", "bernoulli",
            "multinomial")


def _own() -> Optional[torch.Generator]:
    return getattr(_thread, "generator", None)


def _on_host(values: Any, device: Any) -> bool:
    if device is not None:
        return torch.device(device).type == "cpu"
    return all(value.device.type == "cpu" for value in values if isinstance(value, torch.Tensor))


def _drawing(original: Callable[..., Any]) -> Callable[..., Any]:
    def draw(*args: Any, **kwargs: Any) -> Any:
        generator = _own()
        if generator is not None and kwargs.get("generator") is None and _on_host(args, kwargs.get("device")):
            kwargs["generator"] = generator
        return original(*args, **kwargs)

    draw.__wrapped__ = original  # type: ignore[attr-defined]
    draw.__name__, draw.__doc__ = original.__name__, original.__doc__
    return draw


def _drawing_like(original: Callable[..., Any], make: Callable[..., Any]) -> Callable[..., Any]:
    def draw(input: torch.Tensor, **kwargs: Any) -> Any:
        if _own() is None or not _on_host((input,), kwargs.get("device")):
            return original(input, **kwargs)
        kwargs.pop("memory_format", None)
        dtype = kwargs.pop("dtype", None) or input.dtype
        return make(tuple(input.shape), dtype=dtype, **kwargs)

    draw.__wrapped__ = original  # type: ignore[attr-defined]
    return draw


def _seeding(name: str, of_generator: Callable[..., Any]) -> None:
    original = getattr(torch.random, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        generator = _own()
        if generator is None:
            return original(*args, **kwargs)
        return of_generator(generator, *args, **kwargs)

    call.__wrapped__ = original  # type: ignore[attr-defined]
    call.__name__, call.__doc__ = name, original.__doc__
    for module in (torch.random, torch):
        setattr(module, name, call)


def _manual_seed(generator: torch.Generator, seed: int) -> torch.Generator:
    _random.manual_seed(seed, _session.current(), _session.ordinal_of(None))
    return generator.manual_seed(int(seed))


def install() -> None:
    """Wraps the functions, once, when threads of devices first start: other programs keep torch's."""
    global _installed
    with _lock:
        if _installed:
            return
        _installed = True
        for name in _FUNCTIONS:
            setattr(torch, name, _drawing(getattr(torch, name)))
        for name, make in _LIKE.items():
            setattr(torch, name, _drawing_like(getattr(torch, name), _drawing(make)))
        for name in _METHODS:
            setattr(torch.Tensor, name, _drawing(getattr(torch.Tensor, name)))
        _seeding("manual_seed", _manual_seed)
        _seeding("seed", lambda generator: generator.seed())
        _seeding("initial_seed", lambda generator: generator.initial_seed())
        _seeding("get_rng_state", lambda generator: generator.get_state())
        _seeding("set_rng_state", lambda generator, new_state: generator.set_state(new_state))


def generator() -> Optional[torch.Generator]:
    """That of this thread of spawn(), or None."""
    return _own()


@contextlib.contextmanager
def with_generator(of_thread: Optional[torch.Generator]) -> Iterator[None]:
    """Gives this thread the generator of another."""
    _thread.generator = of_thread
    try:
        yield
    finally:
        _thread.generator = None


@contextlib.contextmanager
def own_generator(state: torch.Tensor) -> Iterator[None]:
    """Gives this thread a generator of its own in this state."""
    _thread.generator = torch.Generator()
    _thread.generator.set_state(state)
    try:
        yield
    finally:
        _thread.generator = None
