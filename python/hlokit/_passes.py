# SPDX-License-Identifier: Apache-2.0
"""Passes written in Python, and pipelines that have them among others."""

import inspect
import re
import sys
from typing import Any, Callable, List, Optional, TextIO, Union

from . import _hlokit, _progress
from ._hlokit import Module
from ._values import Match, PassStatistics


def _register(name: str, function: Callable[..., Any], run: Callable[[Module], Any], tolerance: float) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError(f"pass name {name!r}: lower case, digits and dashes")
    if _hlokit._is_library_pass(name):
        raise ValueError(f"pass name {name!r}: there is a pass of this name")
    summary = (inspect.getdoc(function) or "a pass in Python").splitlines()[0].rstrip(".")
    _hlokit._register_pass(name, summary, tolerance, run)


def module_pass(function: Any = None, *, name: Optional[str] = None, tolerance: float = 0.0) -> Any:
    """Makes a pass of a function that edits a module and returns whether it changed.

    The pass is known in pipelines by the function's name with dashes, or by `name`; defining it again replaces it. It
    takes part in whatever watches pipelines: statistics, verify_each, print_changed, run_before_after. `tolerance` is
    how much it may change floats, relative to the largest value of an array. Raises ValueError for a name that a pass
    of the library has.
    """

    def register(f: Callable[[Module], Any]) -> Callable[[Module], Any]:
        if not callable(f):
            raise TypeError(f"a pass is a function, not {type(f).__name__}")
        _register(name or f.__name__.replace("_", "-"), f, f, tolerance)
        return f

    return register if function is None else register(function)


def rewrite(pattern: str, where: str = "", *, name: Optional[str] = None, tolerance: float = 0.0) -> Callable[..., Any]:
    """Makes a pass of a function of one match of a pattern (docs/queries.md).

    The function gets a Match, and returns the instruction that replaces its root, or None to leave it. A root that
    loses its last user so is erased; what only it used stays for the pass `dce`. `name` and `tolerance` are those of
    module_pass. Raises QueryError at once where the pattern or the condition has errors.
    """
    _hlokit._check_query(pattern, where)

    def register(f: Callable[[Match], Any]) -> Callable[[Match], Any]:
        def apply(module: Module) -> int:
            count = 0
            for match in module.match(pattern, where):
                if any(i.is_dead for i in (match.root, *match.variables.values())):
                    continue
                replacement = f(match)
                if replacement is None or replacement == match.root:
                    continue
                match.root.replace_all_uses_with(replacement)
                if not match.root.users and not match.root.is_root and match.root.opcode != "parameter":
                    match.root.erase()
                count += 1
            return count

        _register(name or f.__name__.replace("_", "-"), f, apply, tolerance)
        return f

    return register


def run(
    self: Module,
    pipeline: str,
    *,
    stats: bool = False,
    verify_each: bool = False,
    print_changed: Union[bool, str] = False,
    print_before: Optional[str] = None,
    print_after: Optional[str] = None,
    run_before_after: bool = False,
    run_tolerance: Optional[str] = None,
    file: Optional[TextIO] = None,
) -> Union[bool, List[PassStatistics]]:
    """Runs passes in the words of hlo-opt --passes; passes written in Python are items of it.

    Returns whether the module changed, with `stats` what each pass did. verify_each verifies after each pass that
    changed the module. print_changed prints it then (True, "full"), or its lines that changed ("diff"); print_before
    and print_after print it around passes whose whole names match a regular expression; all to `file`, by default
    sys.stderr. run_before_after runs the module on synthetic arguments before and after each pass, and compares the
    results within run_tolerance ("rel:1e-4", "ulp:2"), by default what the passes declare.

    Raises PassError where the pipeline has errors, or a pass or check fails, and what a pass in Python raises; then the
    module is as before. Handles stay those of their instructions, and dead ones say so. Ctrl-C ends it between passes.
    """
    changes = print_changed if isinstance(print_changed, str) else "full" if print_changed else ""
    stream = sys.stderr if file is None else file
    with _progress.bar("passes") as progress:
        result: Any = self._run(
            pipeline,
            stats,
            verify_each,
            changes,
            print_before,
            print_after,
            run_before_after,
            run_tolerance,
            stream.write,
            progress.update if progress.enabled else None,
        )
    return result
