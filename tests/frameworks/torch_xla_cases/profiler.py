# SPDX-License-Identifier: Apache-2.0
"""Profiles of torch_xla.debug.profiler."""

import pathlib
import tempfile

import torch_xla
import torch_xla.debug.profiler as xp

from torch_xla_cases.common import data, mlp, plain  # noqa: F401: the driver uses plain


def profiled():
    d = torch_xla.device()
    model = mlp().to(d)
    model(data(4, 8).to(d)).sum().item()
    sizes = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as directory:
            xp.start_trace(directory)
            for step in range(2):
                with xp.StepTrace("train", step_num=step):
                    with xp.Trace("forward"):
                        y = model(data(4, 8, seed=step).to(d)).sum()
                y.item()
            xp.stop_trace()
            files = list(pathlib.Path(directory).rglob("*.xplane.pb"))
            bytes_of = files[0].read_bytes() if files else b""
            sizes.append([len(files), b"/host:CPU" in bytes_of, b"ExecuteComputation" in bytes_of, b"forward" in bytes_of])
    return sizes


PROGRAMS = [profiled]
