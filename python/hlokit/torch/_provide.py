# SPDX-License-Identifier: Apache-2.0
"""Provides the package torch_xla to programs that know nothing of hlokit."""

import importlib.machinery
import importlib.metadata
import importlib.util
import pathlib
import sys
from typing import Any, Iterable, Optional, Sequence

from . import _public_names

_FOLDER = str(pathlib.Path(__file__).resolve().parent / "xla_package")
_NAME = "torch_xla"


class _Finder:
    """Finds torch_xla, its modules and its version, in a folder that is not on sys.path."""

    @staticmethod
    def find_spec(fullname: str, path: Optional[Sequence[str]] = None, target: Any = None) -> Any:
        if fullname != _NAME and not fullname.startswith(_NAME + "."):
            return None
        return _public_names.find_spec(fullname, [_FOLDER] if fullname == _NAME else path)

    @staticmethod
    def find_distributions(context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        name = getattr(context, "name", None)
        if name is not None and name.replace("-", "_").lower() != _NAME:
            return iter(())
        finder = importlib.metadata.MetadataPathFinder
        return finder.find_distributions(importlib.metadata.DistributionFinder.Context(name=name, path=[_FOLDER]))


def is_provided() -> bool:
    """Whether programs get torch_xla from here."""
    return any(finder is _Finder for finder in sys.meta_path)


def provide_torch_xla() -> None:
    """Lets `import torch_xla` find hlokit's package of this name, with the modules of torch_xla 2.9. Call it before
    libraries are imported that look for torch_xla. Raises RuntimeError where torch_xla itself is installed: programs run
    with it on the plugin (docs/jax.md)."""
    if is_provided():
        return
    if _NAME in sys.modules or importlib.util.find_spec(_NAME) is not None:
        raise RuntimeError(
            "torch_xla is installed here: it runs programs on hlokit's plugin, with PJRT_DEVICE=HLOKIT. hlokit.torch takes its "
            "place only where it is not installed"
        )
    sys.meta_path.insert(0, _Finder)
    importlib.invalidate_caches()
