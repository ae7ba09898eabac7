# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the devices `xla` and `tpu`: an extension module (device/*.cc) with their tensors, guards, kernels and
generators. PyTorch has no binary interface that lasts, so it is compiled for the PyTorch that is installed, once, and kept in
the user's cache.
"""

import atexit
import fcntl
import hashlib
import importlib
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from copy import deepcopy as copy_of
from typing import Any, List

import torch

_SOURCES = pathlib.Path(__file__).resolve().parent / "device"
_NAME = "_hlokit_torch_device"
_OLDEST = (2, 9)

# The device type of PyTorch/XLA, and the name given to the one that PyTorch keeps for other backends.
XLA, TPU = "xla", "tpu"
TYPES = (XLA, TPU)


def _version() -> "tuple[int, ...]":
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def _flags() -> List[str]:
    root = pathlib.Path(torch.__file__).resolve().parent
    return [
        "-std=c++20",
        "-O2",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
        f"-I{root / 'include'}",
        f"-I{sysconfig.get_paths()['include']}",
    ]


def _libraries() -> List[str]:
    folder = pathlib.Path(torch.__file__).resolve().parent / "lib"
    return [f"-L{folder}", "-lc10", "-ltorch_cpu", "-ltorch_python"]


def _key(compiler: str) -> str:
    parts = [torch.__version__, str(torch.version.git_version), sys.version, compiler, *_flags(), *_libraries()]
    parts += [path.name + path.read_text() for path in sorted(_SOURCES.iterdir()) if path.suffix in (".h", ".cc")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _cache() -> pathlib.Path:
    home = os.environ.get("XDG_CACHE_HOME") or str(pathlib.Path.home() / ".cache")
    return pathlib.Path(home) / "hlokit" / "torch"


def _compile(compiler: str, target: pathlib.Path) -> None:
    print(
        f"hlokit.torch: compiling its device for PyTorch {torch.__version__}, once: half a minute", file=sys.stderr, flush=True
    )
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = pathlib.Path(folder) / target.name
        command = [compiler, *_flags(), str(_SOURCES / "all.cc"), "-o", str(made), *_libraries()]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            errors = [line for line in done.stdout.splitlines() if "error" in line][:5] or done.stdout.splitlines()[-5:]
            hint = "\nhint: Python.h is of the package python3-dev" if "Python.h" in done.stdout else ""
            raise ImportError(
                f"hlokit.torch: the device could not be compiled for PyTorch {torch.__version__}:\n" + "\n".join(errors) + hint
            )
        made.replace(target)


def _library() -> pathlib.Path:
    """The extension module, compiled if it was not yet."""
    compiler = next((found for name in (os.environ.get("CXX"), "c++", "g++", "clang++") if name and (found := shutil.which(name))), "")
    target = _cache() / _key(compiler) / f"{_NAME}.so"
    if target.exists():
        return target
    if not compiler:
        raise ImportError(
            "hlokit.torch compiles its device for the PyTorch that is installed, and finds no C++ compiler\n"
            "hint: install g++ (and python3-dev), or name a compiler by the variable CXX"
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written: for this process only
        folder = tempfile.mkdtemp(prefix="hlokit-torch-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        target = pathlib.Path(folder) / target.name
    with open(target.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _compile(compiler, target)
    return target


def _load() -> Any:
    if _version() < _OLDEST:
        raise ImportError(f"hlokit.torch needs PyTorch {'.'.join(map(str, _OLDEST))} or newer; this is {torch.__version__}")
    path = str(_library())
    spec = importlib.util.spec_from_loader(_NAME, importlib.machinery.ExtensionFileLoader(_NAME, path), origin=path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


NATIVE = _load()


def has_torch_xla() -> bool:
    """Whether the real torch_xla, whose device xla is, is loaded in this process."""
    return "_XLAC" in sys.modules


def install(handler: Any, module: Any) -> None:
    """Registers the devices; `handler` records ops, `module` is to be torch.tpu."""
    xla = not has_torch_xla()
    torch.utils.rename_privateuse1_backend(TPU)
    torch._register_device_module(TPU, module)
    NATIVE.register(xla, handler)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True, for_packed_sequence=True)
    if xla and not hasattr(torch, XLA):
        torch.xla = module  # type: ignore[attr-defined]
    # Which functions make tensors is asked once, while they are PyTorch's: _thread_random.py wraps some.
    importlib.import_module("torch.utils._device")._device_constructors()
    _copy_without_storage()
    _export_by_dlpack()
    torch.serialization.register_package(5, _location_of, _restore)


def _location_of(storage: Any) -> Any:
    return str(storage.device) if storage.device.type in TYPES else None


def _restore(storage: Any, location: str) -> Any:
    """torch.load(map_location="tpu"): tensors of the device are made of the storage."""
    return NATIVE.storage_on(location, storage) if location.partition(":")[0] in TYPES else None


def _export_by_dlpack() -> None:
    """DLPack knows neither xla nor tpu: a tensor is exported as its value on the host."""
    export, device_of = torch.Tensor.__dlpack__, torch.Tensor.__dlpack_device__

    def export_value(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return export(self.cpu() if NATIVE.is_lazy(self) else self, *args, **kwargs)

    def device_of_value(self: torch.Tensor) -> Any:
        return (1, 0) if NATIVE.is_lazy(self) else device_of(self)  # kDLCPU

    torch.Tensor.__dlpack__ = export_value  # type: ignore[method-assign]
    torch.Tensor.__dlpack_device__ = device_of_value  # type: ignore[method-assign, assignment]


def _copy_without_storage() -> None:
    """PyTorch copies and saves tensors by the bytes of their storages, which ours do not have: by their values."""
    deepcopy, reduce_ex = torch.Tensor.__deepcopy__, torch.Tensor._reduce_ex_internal

    def copy(self: torch.Tensor, memo: Any) -> Any:
        if not NATIVE.is_lazy(self) or id(self) in memo or not self.is_leaf:
            return deepcopy(self, memo)
        with torch.no_grad():
            result = self.clone()
        if type(self) is not torch.Tensor:
            result = result.as_subclass(type(self))
        result.requires_grad_(self.requires_grad)
        result.grad = None if self.grad is None else copy(self.grad, memo)
        memo[id(self)] = result
        result.__dict__ = copy_of(self.__dict__, memo)
        return result

    def reduce(self: torch.Tensor, protocol: Any) -> Any:
        if not NATIVE.is_lazy(self):
            return reduce_ex(self, protocol)
        values = (self.detach().cpu(), self.dtype, str(self.device), self.requires_grad)
        return (torch._utils._rebuild_device_tensor_from_cpu_tensor, values)

    torch.Tensor.__deepcopy__ = copy  # type: ignore[method-assign]
    torch.Tensor._reduce_ex_internal = reduce

