# SPDX-License-Identifier: Apache-2.0
"""Programs of torch.export as StableHLO, with the names of torch_xla.stablehlo."""

import dataclasses
import os
from typing import Any, Optional, Tuple

import torch
from torch.utils._pytree import tree_map

from . import _session, _trace, xla_model


@dataclasses.dataclass
class StableHLOExportOptions:
    override_tracing_arguments: Optional[Tuple[Any, ...]] = None


class StableHLOGraphModule:
    """An exported program on the device: called, it runs there; its parameters are those of the StableHLO."""

    def __init__(self, program: Any, args: Tuple[Any, ...]):
        self._device = _session.device()
        self._module = program.module()
        self._module.to(self._device)
        with torch.no_grad():
            results = self._module(*self._sent(args))
        leaves = [leaf for leaf in torch.utils._pytree.tree_flatten(results)[0] if isinstance(leaf, torch.Tensor)]
        self._graph = _trace.pending(leaves)

    def _sent(self, args: Any) -> Any:
        return xla_model.send_cpu_data_to_device(args, self._device)

    def __call__(self, *args: Any) -> Any:
        with torch.no_grad():
            return tree_map(lambda v: v.cpu() if isinstance(v, torch.Tensor) else v, self._module(*self._sent(args)))

    def get_stablehlo_text(self, method_name: Optional[str] = None) -> str:
        return self._graph.module.to_format("stablehlo").decode()

    def get_stablehlo_bytecode(self, method_name: Optional[str] = None) -> bytes:
        raise NotImplementedError("get_stablehlo_bytecode: get_stablehlo_text() has the program as text")

    def save(self, directory_path: Any, options: Optional[StableHLOExportOptions] = None) -> None:
        raise NotImplementedError("StableHLOGraphModule.save: write get_stablehlo_text(); weights are its parameters")


def exported_program_to_stablehlo(exported_model: Any, options: Optional[StableHLOExportOptions] = None) -> StableHLOGraphModule:
    """A program of torch.export.export as StableHLO, of the shapes that it was exported with."""
    args = options.override_tracing_arguments if options is not None else None
    if args is None:
        if exported_model.example_inputs is None or exported_model.example_inputs[1]:
            raise NotImplementedError("exported_program_to_stablehlo: programs exported with positional arguments only")
        args = exported_model.example_inputs[0]
    return StableHLOGraphModule(exported_model, args)


def save_as_stablehlo(exported_model: Any, stablehlo_dir: "os.PathLike[str]", options: Any = None) -> None:
    exported_program_to_stablehlo(exported_model, options).save(stablehlo_dir)


def save_torch_model_as_stablehlo(torchmodel: torch.nn.Module, args: Any, path: "os.PathLike[str]", options: Any = None) -> None:
    save_as_stablehlo(torch.export.export(torchmodel, args), path, options)
