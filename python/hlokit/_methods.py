# SPDX-License-Identifier: Apache-2.0
"""Methods of the classes of the extension module that are written in Python."""

import collections
import html
from typing import Any

from . import _hlokit
from ._hlokit import Builder, Executable, Instruction, Module
from ._passes import run


def _run_on(self: Module, *arguments: Any, **options: Any) -> Any:
    """Runs the module on arrays: Executable(self, **options)(*arguments)."""
    return Executable(self, **options)(*arguments)


def _add(self: Builder, opcode: str, *operands: Instruction, shape: Any = None, name: Any = None, **attributes: Any) -> Instruction:
    """Adds an instruction: operands, its shape where it cannot be inferred, attributes by their names."""
    return self._add(opcode, operands, shape, name, attributes)


def _method(opcode: str) -> Any:
    def add(self: Builder, *operands: Instruction, shape: Any = None, name: Any = None, **attributes: Any) -> Instruction:
        return self._add(opcode, operands, shape, name, attributes)

    add.__name__ = opcode.replace("-", "_")
    add.__doc__ = f"Adds {opcode}."
    return add


def _repr_html(self: Module) -> str:
    """A notebook's view: what the module has, and the beginning of its text."""
    opcodes = collections.Counter(i.opcode for i in self.instructions())
    rows = "".join(f"<tr><td>{html.escape(o)}</td><td>{n}</td></tr>" for o, n in opcodes.most_common(8))
    lines = self.text(metadata=False).splitlines()
    text = "\n".join(lines[:40]) + ("\n..." if len(lines) > 40 else "")
    return (
        f"<b>{html.escape(self.name)}</b>: {len(self.computations)} computations, {self.instruction_count} instructions"
        f"<table>{rows}</table><details><summary>text</summary><pre>{html.escape(text)}</pre></details>"
    )


Module._repr_html_ = _repr_html  # type: ignore[assignment]
Module.run = run  # type: ignore[assignment]
Module.run_on = _run_on  # type: ignore[assignment]
Builder.add = _add  # type: ignore[assignment]
for _opcode in _hlokit._opcodes():
    _name = _opcode.replace("-", "_")
    if _name in ("and", "or", "not", "while"):
        _name += "_"
    if not hasattr(Builder, _name):
        setattr(Builder, _name, _method(_opcode))
