# SPDX-License-Identifier: Apache-2.0
"""Methods of the classes of the extension module that are written in Python."""

from typing import Any, Union

from . import _hlokit, _view
from ._hlokit import Builder, Computation, Executable, Instruction, Module
from ._passes import run
from ._tables import Profile


def _run_on(self: Module, *arguments: Any, **options: Any) -> Any:
    """Runs the module on arrays: Executable(self, **options)(*arguments), which says what the options are and raises."""
    return Executable(self, **options)(*arguments)


def _add(
    self: Builder, opcode: Union[str, Instruction], *operands: Instruction, shape: Any = None, name: Any = None, **attributes: Any
) -> Instruction:
    """Adds an instruction and returns it: operands, its shape where it cannot be inferred, attributes by their names.

    `add(x, y)` adds an `add`, as `multiply(x, y)` adds a `multiply`. Raises EditError, in the words of the verifier, for
    what does not fit.
    """
    if isinstance(opcode, Instruction):
        operands = (opcode, *operands)
        opcode = "add"
    for k, operand in enumerate(operands):
        if not isinstance(operand, Instruction):
            hint = "; constant() makes one of numbers" if isinstance(operand, (int, float)) else ""
            raise TypeError(f"{opcode}: operand {k} is no Instruction but {type(operand).__name__}{hint}")
    return self._add(opcode, operands, shape, name, attributes)


def _method(opcode: str) -> Any:
    def add(self: Builder, *operands: Instruction, shape: Any = None, name: Any = None, **attributes: Any) -> Instruction:
        return _add(self, opcode, *operands, shape=shape, name=name, **attributes)

    add.__name__ = opcode.replace("-", "_")
    add.__doc__ = f"Adds {opcode}."
    return add


def _unpickle(text: str) -> Module:
    return _hlokit.parse(text, verify=False)


def _reduce(self: Module) -> Any:
    """Pickles a module as its text: another process gets the same module, with new handles."""
    return _unpickle, (self.text("lossless"),)


def _profile(self: Executable) -> Profile:
    """Times of its last run, by opcode and instruction. Raises ValueError unless it was made with profile=True."""
    return Profile(self._profile())


Module._repr_html_ = _view.module_html  # type: ignore[assignment]
Computation._repr_html_ = _view.computation_html  # type: ignore[assignment]
Executable.profile = property(_profile)  # type: ignore[assignment, misc]
Module.__reduce__ = _reduce  # type: ignore[assignment, method-assign]
Module.run = run  # type: ignore[assignment]
Module.run_on = _run_on  # type: ignore[assignment]
Builder.add = _add  # type: ignore[assignment]
for _opcode in _hlokit._opcodes():
    _name = _opcode.replace("-", "_")
    if _name in ("and", "or", "not", "while"):
        _name += "_"
    if not hasattr(Builder, _name):
        setattr(Builder, _name, _method(_opcode))
