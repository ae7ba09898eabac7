# SPDX-License-Identifier: Apache-2.0
"""The names of the package hlokit, with the extension module."""

import typing as _typing

from ._errors import (
    BusyError,
    DeadHandleError,
    Diagnostic,
    EditError,
    HloError,
    ParseError,
    PassError,
    QueryError,
    RunError,
    RunWarning,
    VerifyError,
)
from ._hlokit import (
    Array,
    Builder,
    Computation,
    Costs,
    Executable,
    Instruction,
    Module,
    RunStatistics,
    Shape,
    devices,
    diff,
    fingerprint_diff,
    load,
    module,
    parse,
    passes,
    register_custom_call,
    stub_custom_calls,
)
from ._passes import module_pass, rewrite
from ._progress import progress
from ._simulate import Report, simulate, sweep
from ._tables import Profile
from ._values import (
    Annotations,
    ConvolutionDimensions,
    Cost,
    Diff,
    FingerprintDiff,
    Layout,
    LiveBuffer,
    Location,
    Match,
    MemoryUse,
    Metadata,
    PaddingDimension,
    PassStatistics,
    Scope,
    Sharding,
    SliceDimension,
    WindowDimension,
)
from ._view import Graph, graph
from . import _methods  # adds methods that are written in Python

if not _typing.TYPE_CHECKING:  # which sees the names above
    __all__ = [name for name in dir() if not name.startswith("_")]

# Tracebacks and help() show names as they are imported.
for _name in [name for name in dir() if not name.startswith("_")]:
    if getattr(globals()[_name], "__module__", "").startswith("hlokit._"):
        globals()[_name].__module__ = "hlokit"
