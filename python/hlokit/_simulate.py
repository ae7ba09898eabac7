# SPDX-License-Identifier: Apache-2.0
"""The simulated TPU."""

import itertools
import json
import os
import pathlib
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _hlokit, _pages, _progress
from ._hlokit import Module
from ._tables import Tables


class Report(Tables):
    """The result of a simulation: report["step_time_us"] and the like, tables as lists of dicts or data frames.

    The contents are those of hlo-run --device --json (docs/tpu.md); times are in microseconds, sizes in bytes.
    """

    def __init__(self, contents: Dict[str, Any], rerun: Any = None):
        super().__init__(contents)
        self._rerun = rerun

    def report(self, directory: Union[str, "os.PathLike[str]"], *, host: str = "") -> pathlib.Path:
        """Writes the page of hlo-run --report and its data, index.html and report.json, and returns the page's path.

        host: the host's work in each step, as in "trace=12ms,execute=35us" (docs/report.md). Raises RuntimeError in
        builds without the page, after report.json is written, and OSError.
        """
        if self._rerun is None:
            raise RuntimeError("this report was not made by hlokit.simulate")
        folder = pathlib.Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        text = self._rerun(host)
        _pages.write_whole(folder / "report.json", text)
        path = folder / "index.html"
        _pages.write_whole(path, _pages.report_page(text))
        return path


def simulate(
    module: Module,
    device: str,
    *,
    pipeline: str = "tpu",
    trip_count: int = 1,
    memory: bool = False,
    scale: Optional[Mapping[str, float]] = None,
    dtype: Optional[str] = None,
) -> Report:
    """Compiles a copy of the module for simulated devices such as "v5p:4x4x4", and predicts its times and memory.

    trip_count is that of loops without a known one; memory adds changes that lower the peak of memory; scale multiplies
    parameters of the device, {"hbm": 2}; dtype converts all floats ("f32", "bf16"). Raises ValueError for devices and
    parameters that do not exist (hlokit.devices() lists them), PassError where the module does not compile.
    """
    copy = module.clone()
    scaled = list((scale or {}).items())
    run = lambda host: _hlokit._simulate(copy, device, pipeline, trip_count, memory, scaled, dtype, host)
    return Report(json.loads(run(None)), run)


def check_device(device: str) -> None:
    """Raises what simulate raises for a device, whatever is simulated on it."""
    simulate(_hlokit.parse("HloModule m ENTRY e { ROOT x = f32[] parameter(0) }"), device)


def sweep(
    module: Module,
    device: Union[str, Iterable[str]],
    *,
    chips: Optional[Sequence[Union[int, str]]] = None,
    dtype: Optional[Sequence[str]] = None,
    batch: Optional[Tuple[int, Sequence[int]]] = None,
    scale: Optional[Mapping[str, Sequence[float]]] = None,
    **options: Any,
) -> List[Dict[str, Any]]:
    """Simulates the module in all combinations of what is given: a row for each, with the numbers of the report.

    device: one or several, "v5e" or "v5p:4x4x4". chips: numbers or topologies. dtype: types that all floats get.
    batch=(8, [8, 16]): batch sizes, and the one the module has, as the pass `resize` changes it. scale={"hbm": [1, 2]}:
    factors of parameters. options are those of simulate. Raises what simulate raises.
    """
    devices = [device] if isinstance(device, str) else list(device)
    axes: Dict[str, Sequence[Any]] = {"device": devices}
    if chips is not None:
        axes["chips"] = chips
    if dtype is not None:
        axes["dtype"] = [dtype] if isinstance(dtype, str) else dtype
    if batch is not None:
        axes["batch"] = batch[1]
    axes.update(scale or {})
    combinations = list(itertools.product(*axes.values()))
    rows: List[Dict[str, Any]] = []
    with _progress.bar("sweep") as progress:
        for done, values in enumerate(combinations):
            point = dict(zip(axes, values))
            if progress.enabled:
                progress.update(done, len(combinations), ", ".join(f"{k}={v}" for k, v in point.items()))
            program = module
            if batch is not None and point["batch"] != batch[0]:
                program = module.clone()
                program.run(f"resize{{batch={batch[0]}:{point['batch']}}}")
            name = f"{point['device'].partition(':')[0]}:{point['chips']}" if chips is not None else point["device"]
            factors = {k: point[k] for k in scale or {}}
            report = simulate(program, name, dtype=point.get("dtype"), scale=factors, **options)
            numbers = {k: v for k, v in report.contents.items() if isinstance(v, (int, float, str, bool))}
            rows.append({**numbers, **point})
    return rows
