# SPDX-License-Identifier: Apache-2.0
"""HLO programs in Python: read, look, edit, transform and run them.

    import hlokit
    m = hlokit.load("module.hlo")
    for dot in m.find(opcode="dot"):
        print(dot.name, dot.shape, [o.opcode for o in dot.operands])
    m.run("simplify,fuse")
    result = m.run_on(x, y)
"""

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
    VerifyError,
)
from ._hlokit import (
    Builder,
    Computation,
    Executable,
    Instruction,
    Module,
    RunStatistics,
    Shape,
    diff,
    load,
    module,
    parse,
    passes,
)
from ._passes import module_pass, rewrite
from ._simulate import Report, simulate, sweep
from ._values import (
    ConvolutionDimensions,
    Cost,
    Diff,
    Layout,
    LiveBuffer,
    Location,
    Match,
    MemoryUse,
    Metadata,
    PaddingDimension,
    PassStatistics,
    Sharding,
    SliceDimension,
    WindowDimension,
)
from . import _methods  # adds methods that are written in Python

__version__ = "0.1.0"
__all__ = [name for name in dir() if not name.startswith("_")]
