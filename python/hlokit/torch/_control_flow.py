# SPDX-License-Identifier: Apache-2.0
"""Higher-order ops of captured graphs: branches and loops are HLO computations, recorded as programs of their own, which the
program calls."""

import re
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

import torch

import hlokit


class Call(NamedTuple):
    """A conditional or while of a graph that is being recorded."""

    opcode: str
    operands: List[Any]  # tensors; of a conditional the first selects the branch
    results: List[Any]  # arguments that stand for its results in the graph
    computations: List[hlokit.Module]  # branches, the true one first; or condition and body
    name: str


def record(recorder: Any, node: Any, op: Any, args: Any, kwargs: Any) -> Any:
    raise NotImplementedError


def connect(module: hlokit.Module, calls: Sequence[Call], results: int) -> hlokit.Module:
    raise NotImplementedError
