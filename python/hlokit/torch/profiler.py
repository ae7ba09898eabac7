# SPDX-License-Identifier: Apache-2.0
"""The functions of torch_xla.debug.profiler. Times of the device are those of a simulated one."""

from typing import Any, Optional

from hlokit import _hlokit, _simulate

from . import xla_model

DEVICE = "v4"

_logdir: Optional[str] = None
_device = DEVICE


def start_server(port: int, only_on_master: bool = True, device: str = DEVICE) -> Any:
    """A profiler on localhost:port, for hlo-profile capture and TensorBoard. Keep the result: its end is the server's."""
    _simulate.check_device(device)
    return _hlokit._profiler_serve(port, device)


def start_trace(log_dir: str, device: str = DEVICE) -> None:
    """Begins a profile that stop_trace writes below log_dir, in TensorBoard's layout."""
    global _logdir, _device
    _simulate.check_device(device)
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
        finally:
            _hlokit._pop_span()
