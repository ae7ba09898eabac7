# SPDX-License-Identifier: Apache-2.0
"""The public names of torch_xla (xla_package/public_names.tsv) that hlokit's package does not have: programs can import
them, and an error says what they are where they are used."""

import importlib.abc
import importlib.machinery
import pathlib
import types
from typing import Any, Dict, FrozenSet, NoReturn, Optional, Sequence

_TABLE = pathlib.Path(__file__).resolve().parent / "xla_package" / "public_names.tsv"


def _read() -> Dict[str, FrozenSet[str]]:
    rows = (line.split("\t") for line in _TABLE.read_text().splitlines() if line and not line.startswith("#"))
    return {module: frozenset(names.split()) for module, names in rows}


NAMES = _read()


class Absent:
    """A name of torch_xla that is not provided."""

    def __init__(self, name: str):
        self.__name__ = self.__qualname__ = name

    def _fail(self) -> NoReturn:
        raise NotImplementedError(f"{self.__name__} of torch_xla is not in hlokit's package of this name (docs/pytorch.md)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._fail()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # those that Python asks for
            raise AttributeError(name)
        self._fail()

    def __mro_entries__(self, bases: Any) -> Any:
        self._fail()

    def __instancecheck__(self, value: Any) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<{self.__name__} of torch_xla, which is not provided>"


def _complete(module: types.ModuleType) -> None:
    """Lets a module give what stands for the names that it lacks."""
    known = NAMES.get(module.__name__, frozenset())

    def get(name: str) -> Any:
        if name in known:
            return Absent(f"{module.__name__}.{name}")
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r} in hlokit's package of this name (docs/pytorch.md)")

    module.__dict__["__getattr__"] = get


class _Loader(importlib.abc.Loader):
    """Loads a module of the package and completes it; without a loader of its own, a module that the package lacks."""

    def __init__(self, loader: Optional[Any]):
        self._loader = loader

    def create_module(self, spec: Any) -> Any:
        return None if self._loader is None else self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        _complete(module)
        if self._loader is not None:
            self._loader.exec_module(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def find_spec(fullname: str, path: Optional[Sequence[str]]) -> Optional[importlib.machinery.ModuleSpec]:
    """Finds a module of the package, or what stands for one that it lacks."""
    spec = importlib.machinery.PathFinder.find_spec(fullname, path)
    if spec is not None and spec.loader is not None:
        spec.loader = _Loader(spec.loader)
        return spec
    if spec is None and fullname in NAMES:
        return importlib.machinery.ModuleSpec(fullname, _Loader(None), is_package=any(n.startswith(fullname + ".") for n in NAMES))
    return spec
