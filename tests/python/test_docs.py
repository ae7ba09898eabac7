# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md give the output that it shows."""

import doctest
import pathlib

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_examples():
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.attempted > 40 and result.failed == 0
