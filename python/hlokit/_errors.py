# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the package."""

import json
from typing import List, NamedTuple, Type


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


def with_diagnostics(error: Type[HloError], text: str, diagnostics: str) -> HloError:
    result = error(text.rstrip("\n"))
    result.diagnostics = [
        Diagnostic(*(entry.get(name, "") for name in Diagnostic._fields)) for entry in json.loads(diagnostics)
    ]
    return result
