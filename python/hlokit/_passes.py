# SPDX-License-Identifier: Apache-2.0
"""Passes written in Python, and pipelines that have them among others."""

import re
import time
from typing import Any, Callable, Dict, List, Union

from . import _hlokit
from ._errors import PassError
from ._hlokit import Instruction, Module
from ._values import Match, PassStatistics

_registered: Dict[str, Callable[[Module], bool]] = {}


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError(f"pass name {name!r}: lower case, digits and dashes")
    if name in _hlokit.passes():
        raise ValueError(f"pass name {name!r}: there is a pass of this name")


def module_pass(function: Any = None, *, name: Any = None) -> Any:
    """Makes a pass of a function that edits a module and returns whether it changed.

    The pass is known in pipelines by the function's name with dashes, or by `name`.
    """

    def register(f: Callable[[Module], bool]) -> Callable[[Module], bool]:
        known = name or f.__name__.replace("_", "-")
        _check_name(known)
        _registered[known] = f
        return f

    return register if function is None else register(function)


def rewrite(pattern: str, where: str = "", *, name: Any = None) -> Callable[..., Any]:
    """Makes a pass of a function of one match of a pattern.

    The function gets a Match, and returns the instruction that replaces its root, or None to leave it.
    """

    def register(f: Callable[[Match], Any]) -> Callable[[Match], Any]:
        def apply(module: Module) -> bool:
            changed = False
            for match in module.match(pattern, where):
                if any(i.is_dead for i in (match.root, *match.variables.values())):
                    continue
                replacement = f(match)
                if replacement is None or replacement == match.root:
                    continue
                match.root.replace_all_uses_with(replacement)
                if not match.root.users and not match.root.is_root and match.root.opcode != "parameter":
                    match.root.erase()
                changed = True
            return changed

        known = name or f.__name__.replace("_", "-")
        _check_name(known)
        _registered[known] = apply
        return f

    return register


def _items(text: str) -> List[str]:
    """Splits a pipeline at the commas outside of brackets."""
    items, depth, begin = [], 0, 0
    for k, c in enumerate(text):
        depth += c in "({"
        depth -= c in ")}"
        if c == "," and depth == 0:
            items.append(text[begin:k])
            begin = k + 1
    return [*items, text[begin:]]


def run(self: Module, pipeline: str, *, stats: bool = False, verify_each: bool = False) -> Union[bool, List[PassStatistics]]:
    """Runs passes in the words of hlo-opt --passes; passes written in Python are items of it.

    Returns whether the module changed, with `stats` what each pass did. After an error the module is unchanged. Handles
    stay those of their instructions, and dead ones say so.
    """
    groups: List[Any] = []
    for item in _items(pipeline):
        known = item.strip()
        if known in _registered:
            groups.append(_registered[known])
        elif groups and isinstance(groups[-1], str):
            groups[-1] += "," + item
        else:
            groups.append(item)
    for group in groups:
        if isinstance(group, str) and group.strip():
            _hlokit._check_pipeline(group)
    before = self.clone()
    statistics: List[PassStatistics] = []
    changed = False
    try:
        for group in groups:
            if isinstance(group, str):
                statistics += self._run(group, True, verify_each)
                continue
            known = next(n for n, f in _registered.items() if f is group)
            start = time.perf_counter()
            edited = bool(group(self))
            statistics.append(PassStatistics(known, "", edited, time.perf_counter() - start, {}))
            if verify_each and edited:
                self.verify()
    except BaseException:  # an interrupt too
        self._restore(before)
        raise
    changed = any(s.changed for s in statistics)
    return statistics if stats else changed
