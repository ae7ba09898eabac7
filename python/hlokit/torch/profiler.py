# SPDX-License-Identifier: Apache-2.0
"""The functions of torch_xla.debug.profiler. Times of the device are those of a simulated one."""

import functools
import subprocess
import threading
from typing import Any, Optional

from hlokit import _hlokit, _simulate

from . import _chip, _run_recording, xla_model
from ._trace import _tool

_logdir: Optional[str] = None
_device = ""


def start_server(port: int, only_on_master: bool = True, device: Optional[str] = None) -> Any:
    """A profiler on localhost:port, for hlo-profile capture and TensorBoard. Keep the result: its end is the server's."""
    device = device or _chip.device()
    _simulate.check_device(device)
    return _hlokit._profiler_serve(port, device)


def start_trace(log_dir: str, device: Optional[str] = None) -> None:
    """Begins a profile that stop_trace writes below log_dir, in TensorBoard's layout."""
    global _logdir, _device
    device = device or _chip.device()
    _simulate.check_device(device)
    _run_recording.suspend()
    _hlokit._profile_start()
    _logdir, _device = log_dir, device


def stop_trace() -> str:
    """Ends the profile, simulates it on the device, and returns the folder of its files."""
    global _logdir
    profile = _hlokit._profile_stop()
    logdir, _logdir = _logdir, None
    assert logdir is not None
    return str(profile.simulate(_device).write_profile(logdir))


class Trace:
    """A span of recording time and a scope of what is recorded: `with Trace("forward"):`."""

    def __init__(self, name: str, **kwargs: Any):
        self.name = name

    def __enter__(self) -> "Trace":
        _hlokit._push_span(self.name, -1, True)
        return self

    def __exit__(self, *error: Any) -> None:
        _hlokit._pop_span()


class StepTrace(Trace):
    """A step of a loop; marks a step at its end: `with StepTrace("train", step_num=i):`."""

    def __init__(self, name: str, step_num: int = 0, **kwargs: Any):
        super().__init__(name)
        self.step_num = step_num

    def __enter__(self) -> "StepTrace":
        _hlokit._push_span(self.name, self.step_num, True)
        return self

    def __exit__(self, *error: Any) -> None:
        _hlokit._end_scope_of_span()
        try:
            if error[0] is None:
                xla_model.step("trace")
                xla_model.run_closures()
        finally:
            _hlokit._pop_span()


def trace_me(scope: str) -> Any:
    """A decorator: calls of the function are spans."""

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with Trace(scope):
                return function(*args, **kwargs)

        return call

    return decorate


def trace(
    service_addr: str, logdir: str, tracing_time_ms: int = 0, duration_ms: int = 1000, timeout_s: int = 120, **kwargs: Any
) -> None:
    """Captures a profile of a program that called start_server, with hlo-profile."""
    tool = _tool("hlo-profile")
    if tool is None:
        raise RuntimeError("profiles are captured by hlo-profile, which is not installed")
    milliseconds = tracing_time_ms or duration_ms
    given = [f"--address={service_addr}", f"--logdir={logdir}", f"--duration-ms={max(milliseconds, 1)}"]
    subprocess.run([tool, "capture", *given], check=True, stdout=subprocess.DEVNULL)


def trace_detached(*args: Any, **kwargs: Any) -> None:
    """trace() in a thread of its own."""
    threading.Thread(target=trace, args=args, kwargs=kwargs, daemon=True).start()
