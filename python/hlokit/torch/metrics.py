# SPDX-License-Identifier: Apache-2.0
"""The functions of torch_xla.debug.metrics, of the current session."""

import json
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import _session


def _data() -> Dict[str, Any]:
    return json.loads(_session.current().metrics_json())  # type: ignore[no-any-return]


def metrics_report() -> str:
    """All metrics and counters, in PyTorch/XLA's form."""
    return str(_session.current().metrics_report())


def counter_names() -> List[str]:
    return list(_data()["counters"])


def counter_value(name: str) -> Optional[int]:
    """The value of a counter, such as "aten::nonzero"; None if there is none."""
    value = _data()["counters"].get(name)
    return None if value is None else int(value)


def metric_names() -> List[str]:
    return list(_data()["metrics"])


def metric_data(name: str) -> Optional[Tuple[int, float]]:
    """(number of samples, their sum) of a metric; times are in nanoseconds."""
    metric = _data()["metrics"].get(name)
    return None if metric is None else (int(metric["total_samples"]), float(metric["accumulator"]))


def executed_fallback_ops() -> List[str]:
    """The ops that ran on the CPU: "aten::nonzero"."""
    return [name for name in counter_names() if name.startswith("aten::") and name != "aten::_local_scalar_dense"]


def ops_on_host() -> Dict[str, int]:
    """The ops of executed_fallback_ops(), with the number of their calls."""
    counters = _data()["counters"]
    return {name: int(counters[name]) for name in executed_fallback_ops()}


_SHORT = ("CompileTime", "ExecuteTime", "TransferToDeviceTime", "TransferFromDeviceTime")


def short_metrics_report(counters: Optional[Sequence[str]] = None, metrics: Optional[Sequence[str]] = None) -> str:
    """The counters and metrics of these names; without names the most useful ones."""
    data = _data()
    lines = []
    for name in metrics if metrics is not None else _SHORT:
        if name in data["metrics"]:
            metric = data["metrics"][name]
            lines.append(f"Metric: {name}\n  TotalSamples: {metric['total_samples']}\n  Accumulator: {metric['accumulator']}")
    wanted = counters if counters is not None else ["CachedCompile", "MarkStep", "UncachedCompile", *executed_fallback_ops()]
    for name in wanted:
        if name in data["counters"]:
            lines.append(f"Counter: {name}\n  Value: {data['counters'][name]}")
    return "".join(line + "\n" for line in lines)


def clear_all() -> None:
    """Clears metrics and counters."""
    _session.current().clear_metrics()


clear_metrics = clear_counters = clear_all
