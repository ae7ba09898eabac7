# SPDX-License-Identifier: Apache-2.0
"""The simulated TPU."""

import json
from typing import Any, Dict, Iterable, List, Optional

from . import _hlokit
from ._hlokit import Module


class Report:
    """The result of a simulation: report["step"] and the like, tables as lists of dicts.

    The contents are those of hlo-run --device --json (docs/tpu.md).
    """

    def __init__(self, contents: Dict[str, Any]):
        self.contents = contents

    def __getitem__(self, key: str) -> Any:
        return self.contents[key]

    def __contains__(self, key: str) -> bool:
        return key in self.contents

    def keys(self) -> Iterable[str]:
        return self.contents.keys()

    @property
    def tables(self) -> Dict[str, List[Dict[str, Any]]]:
        """The members that are tables, by name."""
        return {
            name: value
            for name, value in self.contents.items()
            if isinstance(value, list) and value and all(isinstance(row, dict) for row in value)
        }

    def frame(self, table: str) -> Any:
        """A table as a pandas.DataFrame. Raises ImportError where pandas is not installed."""
        rows = self.contents[table]
        import pandas  # type: ignore[import]

        return pandas.DataFrame(rows)

    def __repr__(self) -> str:
        return f"<Report: {', '.join(self.contents)}>"


def simulate(module: Module, device: str, *, pipeline: str = "tpu", trip_count: int = 1, memory: bool = False) -> Report:
    """Compiles a copy of the module for simulated devices such as "v5p:4x4x4", and predicts its times and memory.

    trip_count is that of loops without a known one; memory adds changes that lower the peak of memory.
    """
    return Report(json.loads(_hlokit._simulate(module, device, pipeline, trip_count, memory)))


def sweep(module: Module, devices: Iterable[str], **options: Any) -> List[Dict[str, Any]]:
    """Simulates the module on each device: a row for each, with the numbers of the report."""
    rows: List[Dict[str, Any]] = []
    for device in devices:
        report = simulate(module, device, **options)
        numbers: Dict[str, Any] = {k: v for k, v in report.contents.items() if isinstance(v, (int, float, str, bool))}
        rows.append({**numbers, "device": device})
    return rows
