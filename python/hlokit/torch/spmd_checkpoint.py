# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of divided tensors by torch.distributed.checkpoint, with the names of
torch_xla.experimental.distributed_checkpoint:

    dcp.save(state, checkpoint_id=path, planner=SPMDSavePlanner())
    dcp.load(state, checkpoint_id=path, planner=SPMDLoadPlanner())

Each part of a tensor is written once. A checkpoint can be loaded into tensors that are divided otherwise.
"""

import dataclasses
from typing import Any, Dict, List

import torch
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType

from . import spmd, xla_model
from ._tensor import fetch, is_lazy


def prime_optimizer(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Makes the optimizer's state, of which a checkpoint is to be loaded, by a step with gradients and rates of zero."""
    if optimizer.state:
        return optimizer
    groups = optimizer.param_groups
    before = [{k: v for k, v in group.items() if k in ("lr", "weight_decay")} for group in groups]
    gradients = [[p.grad for p in group["params"]] for group in groups]
    for group in groups:
        group.update({k: torch.zeros_like(v) if isinstance(v, torch.Tensor) else 0.0 for k, v in group.items() if k in ("lr", "weight_decay")})
        for parameter in group["params"]:
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for group, rates, grads in zip(groups, before, gradients):
        group.update(rates)
        for parameter, gradient in zip(group["params"], grads):
            parameter.grad = gradient
    xla_model.mark_step()
    return optimizer


def _parts(tensor: torch.Tensor) -> List[List[slice]]:
    """The different parts of a tensor that have elements, in order."""
    found: Dict[Any, List[slice]] = {}
    for slices, copy in spmd.shard_indices(tensor):
        if copy == 0 and all(s.start < s.stop for s in slices):
            found.setdefault(tuple((s.start, s.stop) for s in slices), slices)
    return list(found.values())


def _chunk(slices: List[slice]) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(
        offsets=torch.Size([s.start for s in slices]), sizes=torch.Size([s.stop - s.start for s in slices])
    )


class SPMDSavePlanner(DefaultSavePlanner):
    """Writes the parts of tensors of the virtual device, and all else as by default."""

    state_dict: Any

    def set_up_planner(self, state_dict: Any, storage_meta: Any = None, is_coordinator: bool = False) -> None:
        super().set_up_planner(state_dict, storage_meta, is_coordinator)
        lazies = {name: value for name, value in self.state_dict.items() if is_lazy(value)}
        xla_model.unlazy(list(lazies.values()))
        self._values = {name: fetch(value.detach()) for name, value in lazies.items()}
        self._divided = {name: _parts(value) for name, value in lazies.items() if spmd.get_sharding_spec(value)}
        self.state_dict = {
            name: self._values.get(name, value) for name, value in self.state_dict.items() if name not in self._divided
        }

    def create_local_plan(self) -> Any:
        plan = super().create_local_plan()
        items = [self._item(name, number, part) for name, parts in self._divided.items() for number, part in enumerate(parts)]
        self.plan = dataclasses.replace(plan, items=[*plan.items, *items])
        return self.plan

    def _item(self, name: str, number: int, slices: List[slice]) -> WriteItem:
        value, chunk = self._values[name], _chunk(slices)
        data = TensorWriteData(chunk=chunk, properties=TensorProperties.create_from_tensor(value), size=value.size())
        return WriteItem(index=MetadataIndex(name, chunk.offsets, number), type=WriteItemType.SHARD, tensor_data=data)

    def lookup_object(self, index: MetadataIndex) -> Any:
        if index.fqn not in self._divided:
            return super().lookup_object(index)
        for slices in self._divided[index.fqn]:
            if torch.Size([s.start for s in slices]) == index.offset:
                return self._values[index.fqn][tuple(slices)].contiguous()
        raise ValueError(f"{index.fqn} has no part at {index.offset}")


class SPMDLoadPlanner(DefaultLoadPlanner):
    """Reads into tensors of the virtual device, whose annotations stay."""

    state_dict: Any

    def set_up_planner(self, state_dict: Any, metadata: Any = None, is_coordinator: bool = False) -> None:
        super().set_up_planner(state_dict, metadata, is_coordinator)
        self._targets = {name: value for name, value in self.state_dict.items() if is_lazy(value)}
        self._values = {name: torch.empty(tuple(value.shape), dtype=value.dtype) for name, value in self._targets.items()}
        self.state_dict = {name: self._values.get(name, value) for name, value in self.state_dict.items()}

    def finish_plan(self, new_plan: Any) -> Any:
        plan = super().finish_plan(new_plan)
        self._missing: Dict[str, int] = {}
        for item in plan.items:
            self._missing[item.dest_index.fqn] = self._missing.get(item.dest_index.fqn, 0) + 1
        return plan

    def commit_tensor(self, read_item: Any, tensor: torch.Tensor) -> None:
        name = read_item.dest_index.fqn
        self._missing[name] -= 1
        if self._missing[name] == 0 and name in self._targets:
            spmd.set_values([self._targets[name]], [self._values[name]])
