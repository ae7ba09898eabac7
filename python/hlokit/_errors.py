# SPDX-License-Identifier: Apache-2.0
"""Exceptions and warnings of the package."""

import json
import sys
import warnings
from typing import Any, Dict, List, NamedTuple, Type


class Diagnostic(NamedTuple):
    """An error or warning in a source text. Lines and columns count from 1."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    severity: str
    kind: str
    message: str
    hint: str

    def __str__(self) -> str:
        hint = f"\nhint: {self.hint}" if self.hint else ""
        return f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}{hint}"


class HloError(Exception):
    """An error of hlokit; `diagnostics` has the places in a source text, if there is one."""

    diagnostics: List[Diagnostic] = []


class ParseError(HloError, ValueError):
    """A text or file is not a module."""


class VerifyError(HloError, ValueError):
    """A module violates a rule of HLO."""


class EditError(HloError, ValueError):
    """An edit would break the module, which is unchanged."""


class PassError(HloError, ValueError):
    """A pipeline has errors in its text, or one of its passes failed; the module is unchanged."""


class QueryError(HloError, ValueError):
    """A pattern or condition has errors."""


class RunError(HloError, RuntimeError):
    """A program cannot be run, or its run failed."""


class DeadHandleError(HloError, ReferenceError):
    """What a handle refers to was erased."""


class BusyError(HloError, RuntimeError):
    """A module is in use by work in another thread."""


class RunWarning(UserWarning):
    """What hlo-run warns of: a program that runs, but possibly not as it was meant."""


def warn(diagnostics: str) -> None:
    """Issues the warnings among diagnostics at the line that called hlokit."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "hlokit":
        frame, level = frame.f_back, level + 1
    for entry in json.loads(diagnostics):
        if entry["severity"] == "warning":
            warnings.warn(str(_diagnostic(entry)), RunWarning, stacklevel=level)


def _diagnostic(entry: Dict[str, Any]) -> Diagnostic:
    return Diagnostic(*(entry.get(name, "") for name in Diagnostic._fields))


def with_diagnostics(error: Type[HloError], text: str, diagnostics: str) -> HloError:
    result = error(text.rstrip("\n"))
    result.diagnostics = [_diagnostic(entry) for entry in json.loads(diagnostics)]
    return result
