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


def _explained(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error, with what to do if the extension module was built for another Python."""
    if error.name != f"{__name__}._hlokit":
        return error
    import pathlib
    import re
    import sys

    this = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
    built = set()
    for path in pathlib.Path(__file__).parent.glob("_hlokit.*"):
        if found := re.match(r"_hlokit\.(cpython|pypy)-?(\d)(\d+)", path.name):
            built.add(f"{found[1]} {found[2]}.{found[3]}")
    if not built:
        return error
    return ModuleNotFoundError(
        f"hlokit is built for {', '.join(sorted(built))}, this is {this}: "
        "configure with -DPython3_EXECUTABLE=PYTHON, or install a wheel (docs/install.md)",
        name=error.name,
    )


if _typing.TYPE_CHECKING:
    from ._api import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        """Loads the extension module on first use: hlokit.jax and hlokit.torch_xla work without it."""
        if name in _SUBMODULES or (name.startswith("_") and name != "__all__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            api = _importlib.import_module("._api", __name__)
        except ModuleNotFoundError as error:
            raise _explained(error) from None
        names = {**{n: getattr(api, n) for n in api.__all__}, "__all__": api.__all__}
        globals().update({n: value for n, value in names.items() if n not in globals()})
        if name in names:
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
