# SPDX-License-Identifier: Apache-2.0
"""Matches overloads of PyTorch's ops with those of the tracer, by schema.

A row of the tracer's table has torch's schema without the arguments that say how a result is stored. An overload that
writes in place, and has no row of its own, is the functional one with its result written.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

from hlokit import _hlokit

# Arguments that have no meaning for lazy tensors.
_STORAGE = frozenset(("layout", "device", "pin_memory", "memory_format", "non_blocking", "generator", "implicit", "copy"))
# A call that gives one is not the plan's: the CPU draws its numbers. None is not given: PyTorch leaves defaults out.
_GENERATOR = "generator"
_NEW, _WRITTEN, _OP = 0, 1, 2  # OpPlan::Results


class Row(NamedTuple):
    """A row of the tracer's table of ops."""

    number: int
    arguments: List[Tuple[str, str, bool, bool]]  # name, type, written, may be omitted
    results: int
    list: bool
    view: bool


ROWS: Dict[str, Row] = {name: Row(*row) for name, row in _hlokit._tracer_ops().items()}


class Plan(NamedTuple):
    """Arguments of _torch_plan."""

    op: int
    results: int
    positional: List[int]
    keywords: List[Tuple[str, int]]
    returns: List[int]
    list: bool
    view: bool
    same_type: List[int] = []
    no_complex: bool = False
    no_bool: bool = False
    needs_float: bool = False


# Arguments that PyTorch takes only in the type of the first tensor, where the tracer would promote.
_SAME_TYPE = {
    "aten::mm": ("mat2",),
    "aten::bmm": ("mat2",),
    "aten::addmm": ("mat1", "mat2"),
    "aten::addbmm": ("batch1", "batch2"),
    "aten::baddbmm": ("batch1", "batch2"),
    "aten::mv": ("vec",),
    "aten::addmv": ("mat", "vec"),
    "aten::dot": ("tensor",),
    "aten::vdot": ("other",),
    "aten::linalg_cross": ("other",),
    "aten::lerp": ("end", "weight"),
    "aten::index_copy": ("source",),
    "aten::index_add": ("source",),
    "aten::polar": ("angle",),
    "aten::nll_loss_forward": ("weight",),
    "aten::nll_loss2d_forward": ("weight",),
    "aten::binary_cross_entropy": ("target", "weight"),
    "aten::binary_cross_entropy_with_logits": ("target", "weight", "pos_weight"),
    "aten::huber_loss": ("target",),
    "aten::soft_margin_loss": ("target",),
    "aten::native_layer_norm": ("weight", "bias"),
    "aten::native_group_norm": ("weight", "bias"),
    "aten::_cdist_forward": ("x2",),
    "aten::linalg_solve_triangular": ("B",),
}
# Ops that PyTorch has for real numbers only, and for numbers only.
_NO_COMPLEX = frozenset(
    "mse_loss smooth_l1_loss huber_loss soft_margin_loss xlogy atan2 fmod remainder floor_divide hypot copysign logaddexp2 "
    "multi_margin_loss multilabel_margin_loss_forward native_layer_norm native_group_norm _log_softmax _softmax gelu silu".split()
)
_NO_BOOL = frozenset("sub rsub lerp igamma igammac linalg_cross mm bmm dot searchsorted _prelu_kernel".split())

_NEEDS_FLOAT = frozenset(
    "mse_loss smooth_l1_loss huber_loss binary_cross_entropy native_layer_norm native_group_norm nll_loss_forward "
    "nll_loss2d_forward igamma igammac lerp _prelu_kernel _log_softmax _softmax".split()
)
# Reasons of the recorder (UnacceptedTypes).
TYPES = ("tensors of several types", "PyTorch takes no complex numbers", "PyTorch takes no booleans", "PyTorch takes no integers")


def _types_of(func: Any, row: Row) -> Dict[str, Any]:
    """What PyTorch does not take of types that the tracer would promote."""
    name = func._schema.name
    functional = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    same = _SAME_TYPE.get(functional, ())
    places = [index for index, (argument, *_) in enumerate(row.arguments) if argument in same]
    short = functional.partition("::")[2]
    return {"same_type": places, "no_complex": short in _NO_COMPLEX, "no_bool": short in _NO_BOOL,
            "needs_float": short in _NEEDS_FLOAT}


def full_name(func: Any) -> str:
    """"aten::add.Tensor"."""
    schema = func._schema
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


def _is_tensor(type_text: str) -> bool:
    return "Tensor" in type_text


def _match(func: Any, row: Row) -> Optional[Tuple[List[int], List[Tuple[str, int]]]]:
    """Where each argument of the overload goes, or None if one has no place."""
    places = {name: i for i, (name, *_) in enumerate(row.arguments)}
    positional: List[int] = []
    keywords: List[Tuple[str, int]] = []
    taken = set()
    without_generator = True
    for number, argument in enumerate(func._schema.arguments):
        if argument.name == "device" and func._schema.name == "aten::_to_copy":
            continue  # a call that gives one may be to another type of device
        if argument.name == _GENERATOR:
            without_generator = without_generator and argument.kwarg_only
            continue
        index = places.get(argument.name, -1)
        if index < 0 and argument.name not in _STORAGE and not argument.kwarg_only:
            # Names of arguments differ between versions of PyTorch.
            if number < len(row.arguments) and row.arguments[number][0] not in {a.name for a in func._schema.arguments}:
                index = number
        if index < 0 and argument.name not in _STORAGE:
            return None
        if index >= 0:
            if _is_tensor(str(argument.type)) != _is_tensor(row.arguments[index][1]):
                return None
            taken.add(index)
        if argument.kwarg_only:
            keywords.append((argument.name, index))
        else:
            if without_generator:  # those behind one have names only
                positional.append(index)
            keywords.append((argument.name, index))
    for index, (_, _, _, omissible) in enumerate(row.arguments):
        if index not in taken and not omissible:
            return None
    return positional, keywords


def _aliases(func: Any) -> List[int]:
    """For each result the number of the argument that it is, where the op writes to it, or -1."""
    result = []
    for value in func._schema.returns:
        place = -1
        if value.alias_info is not None and value.alias_info.is_write:
            for number, argument in enumerate(func._schema.arguments):
                info = argument.alias_info
                if info is not None and info.is_write and info.before_set == value.alias_info.before_set:
                    place = number
        result.append(place)
    return result


def plan_for(func: Any) -> Optional[Plan]:
    """How the tracer records the overload; None if it has no op for it."""
    schema = func._schema
    if any(argument.is_out for argument in schema.arguments):
        row = ROWS.get(full_name(func))
        if row is None or not any(written for _, _, written, _ in row.arguments):
            return None
    if any("Tensor" not in str(r.type) for r in schema.returns):
        return None  # a Python number, for which the program waits
    returns_list = len(schema.returns) == 1 and str(schema.returns[0].type).startswith("List")
    view = any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
    writes = [a.alias_info is not None and a.alias_info.is_write for a in schema.arguments]
    row = ROWS.get(full_name(func))
    if row is not None:
        found = _match(func, row)
        row_writes = any(written for _, _, written, _ in row.arguments)
        count = 1 if row.list else row.results
        ok = any(writes) == row_writes and (row.list == returns_list) and count == max(len(schema.returns), count if row_writes else 0)
        if found is not None and ok and (not view or row.view):
            if row_writes:
                aliases = _aliases(func)
                if any(place >= len(found[0]) for place in aliases):
                    return None  # written arguments with names only
                return Plan(row.number, _OP, *found, aliases, returns_list, False, **_types_of(func, row))
            return Plan(row.number, _NEW, *found, [], returns_list, view, **_types_of(func, row))
        return None
    if writes.count(True) != 1 or not writes[0]:
        return None
    functional = without_write(func)
    if functional is None:
        return None
    row = ROWS.get(full_name(functional))
    if row is None or row.list or row.results != 1 or row.view:
        return None
    found = _match(func, row)
    if found is None or found[0][0] < 0:
        return None
    return Plan(row.number, _WRITTEN, *found, [0], False, False, **_types_of(func, row))


def add(func: Any) -> bool:
    """Gives the recorder a plan for the overload, if there is one."""
    plan = plan_for(func)
    if plan is None:
        return False
    _hlokit._torch_plan(func, *plan)
    return True


def _signature(func: Any, without: Sequence[str] = ()) -> List[Tuple[str, str]]:
    return [(a.name, str(a.type)) for a in func._schema.arguments if a.name not in without and not a.is_out]


def _overload_like(packet: Any, func: Any) -> Optional[Any]:
    """The overload of a packet with the same arguments that writes to none of them."""
    for ignored in ((), tuple(_STORAGE | {"dtype"})):
        wanted = _signature(func, ignored)
        for name in packet.overloads():
            candidate = getattr(packet, name)
            if any(a.alias_info is not None and a.alias_info.is_write for a in candidate._schema.arguments):
                continue
            if _signature(candidate, ignored) == wanted:
                return candidate
    return None


def without_out(func: Any) -> Optional[Any]:
    """The overload with the same arguments that returns its results."""
    return _overload_like(func.overloadpacket if hasattr(func, "overloadpacket") else func._overloadpacket, func)


def without_write(func: Any) -> Optional[Any]:
    """The overload that returns what this one writes to its first argument: relu of relu_."""
    space, _, name = func._schema.name.partition("::")
    if not name.endswith("_") or name.endswith("__"):
        return None
    packet = getattr(getattr(torch.ops, space), name[:-1], None)
    return None if packet is None else _overload_like(packet, func)
