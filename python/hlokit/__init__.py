# SPDX-License-Identifier: Apache-2.0
"""HLO programs in Python: read, look, edit, transform and run them.

    import hlokit
    m = hlokit.load("module.hlo")
    for dot in m.find(opcode="dot"):
        print(dot.name, dot.shape, [o.opcode for o in dot.operands])
    m.run("simplify,fuse")
    result = m.run_on(x, y)
"""

import importlib as _importlib
import typing as _typing

__version__ = "0.1.0"
_SUBMODULES = ("jax", "torch", "torch_xla")

if _typing.TYPE_CHECKING:
    from ._api import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        """Loads the extension module on first use: hlokit.jax and hlokit.torch_xla work without it."""
        if name in _SUBMODULES or (name.startswith("_") and name != "__all__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        api = _importlib.import_module("._api", __name__)
        names = {**{n: getattr(api, n) for n in api.__all__}, "__all__": api.__all__}
        globals().update({n: value for n, value in names.items() if n not in globals()})
        if name in names:
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
