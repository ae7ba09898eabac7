# SPDX-License-Identifier: Apache-2.0
"""Which parts of a module are wrapped on their own, with the names of torch_xla.distributed.fsdp.wrap."""

from typing import Any, Callable, Iterable, Set, Tuple, Type

import torch.nn as nn


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    return True


def lambda_auto_wrap_policy(module: nn.Module, recurse: bool, unwrapped_params: int, lambda_fn: Callable[[nn.Module], bool]) -> bool:
    """Modules for which lambda_fn is true."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: nn.Module, recurse: bool, unwrapped_params: int, transformer_layer_cls: Set[Type[nn.Module]]
) -> bool:
    """Modules of these classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    unwrapped_params: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: Any = None,
    exclude_wrap_modules: Any = None,
) -> bool:
    """Modules that have this many parameters which no part of them has on its own."""
    leaves = tuple(force_leaf_modules or (nn.MultiheadAttention,))
    excluded = tuple(exclude_wrap_modules or (nn.ModuleList, nn.ModuleDict))
    return unwrapped_params >= min_num_params and not isinstance(module, leaves if recurse else excluded)


def recursive_wrap(
    module: nn.Module,
    auto_wrap_policy: Callable[..., bool],
    wrapper_cls: Callable[..., nn.Module],
    ignored_modules: Iterable[nn.Module] = (),
    ignored_params: Iterable[nn.Parameter] = (),
    only_wrap_children: bool = False,
    **kwargs: Any,
) -> Tuple[nn.Module, int]:
    """Wraps the parts of a module that the policy chooses; returns it and the number of wrapped parameters."""
    ignored = {id(p) for p in ignored_params}
    count = sum(p.numel() for p in module.parameters() if id(p) not in ignored)
    if not auto_wrap_policy(module=module, recurse=True, unwrapped_params=count):
        return module, 0
    wrapped = 0
    for name, child in module.named_children():
        if any(child is other for other in ignored_modules):
            continue
        new, below = recursive_wrap(child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs)
        setattr(module, name, new)
        wrapped += below
    if not only_wrap_children and auto_wrap_policy(module=module, recurse=False, unwrapped_params=count - wrapped):
        return wrapper_cls(module, **kwargs), count
    return module, wrapped
