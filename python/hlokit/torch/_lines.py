# SPDX-License-Identifier: Apache-2.0
"""Lines of the user's program."""

import os
import sys
import sysconfig
import warnings
from typing import List, Optional, Tuple

import torch

_FOLDER = os.path.dirname(os.path.realpath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.realpath(torch.__file__)) + os.sep
_INSTALLED = tuple(
    os.path.realpath(path) + os.sep
    for path in {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"], sysconfig.get_paths()["stdlib"]}
)
traps: List[Tuple[str, str, int]] = []  # what programs were warned of: text, file and line


def _frames() -> List[Tuple[str, int]]:
    found = []
    frame = sys._getframe(2)
    while frame is not None:
        found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return found


def _is_users(path: str) -> bool:
    if path.startswith("<"):
        return False
    path = os.path.realpath(path)
    return not path.startswith(_INSTALLED) and not path.startswith(_FOLDER) and f"{os.sep}site-packages{os.sep}" not in path


def user_frame() -> Optional[Tuple[str, int]]:
    """The innermost line of a file that is not installed; else of one that is neither PyTorch's nor hlokit's."""
    frames = _frames()
    for path, line in frames:
        if _is_users(path):
            return path, line
    for path, line in frames:
        if not path.startswith("<") and not os.path.realpath(path).startswith((_FOLDER, _TORCH)):
            return path, line
    return None


def user_line() -> str:
    """The same as text, "train.py:12"; empty if there is none."""
    frame = user_frame()
    return "" if frame is None else f"{os.path.basename(frame[0])}:{frame[1]}"


def warn_at(text: str, path: str, line: int) -> None:
    """Warns at a line, once for each line and text."""
    if (text, path, line) not in traps:
        traps.append((text, path, line))
        warnings.warn_explicit(text, UserWarning, path, line)


def warn_once(text: str) -> None:
    """Warns at the user's line, once for each line and text."""
    warn_at(text, *(user_frame() or ("<program>", 0)))
