# SPDX-License-Identifier: Apache-2.0
"""Large values in files, with the names of torch_xla.utils.serialization: a file for each tensor."""

import os
import pathlib
from typing import Any

import torch
from torch.utils._pytree import tree_map

from . import _session, xla_model


class TensorReference:
    """Stands for a tensor, whose value is in the file of this number."""

    def __init__(self, tid: int):
        self.tid = tid


def _folder(path: Any) -> pathlib.Path:
    return pathlib.Path(str(path) + ".tensors")


def _file(path: Any, number: int) -> pathlib.Path:
    return _folder(path) / f"tensor_{number}.pt"


def save(data: Any, path: Any, master_only: bool = True, global_master: bool = False) -> None:
    """Saves the data, with tensors on the CPU, in path and in the folder path.tensors."""
    if not master_only or xla_model.is_master_ordinal():
        on_cpu = xla_model._to_cpu(data)
        _folder(path).mkdir(parents=True, exist_ok=True)
        count = 0

        def put(value: Any) -> Any:
            nonlocal count
            if not isinstance(value, torch.Tensor):
                return value
            xla_model.save(value, _file(path, count), master_only=False)
            count += 1
            return TensorReference(count - 1)

        xla_model.save(tree_map(put, on_cpu), path, master_only=False)
    if _session.in_spawn():
        xla_model.rendezvous(f"xser_save {os.fspath(path)}")


def load(path: Any) -> Any:
    """The data of save(), with tensors on the CPU."""
    data = torch.load(path, weights_only=False)
    return tree_map(lambda v: torch.load(_file(path, v.tid)) if isinstance(v, TensorReference) else v, data)
