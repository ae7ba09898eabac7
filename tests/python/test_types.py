# SPDX-License-Identifier: Apache-2.0
"""The stub of the extension module is complete, and mypy accepts the package and the scripts."""

import ast
import pathlib
import subprocess
import sys

import pytest

from hlokit import _hlokit

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUB = ROOT / "python" / "hlokit" / "_hlokit.pyi"


def public(names):
    return {n for n in names if not n.startswith("_")}


def test_stub_is_complete():
    body = ast.parse(STUB.read_text()).body
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    assert public(vars(_hlokit)) == public(classes) | public(functions)
    for name, node in classes.items():
        declared = public(item.name for item in node.body if isinstance(item, ast.FunctionDef))
        defined = public(vars(getattr(_hlokit, name)))
        if name == "Builder":  # opcodes are declared by __getattr__
            defined -= {o.replace("-", "_") for o in _hlokit._opcodes()} - declared
            defined -= {"and_", "or_", "not_", "while_"}
        assert declared == defined, name


def test_every_member_is_documented():
    undocumented = [
        name for name in public(vars(_hlokit)) if not getattr(_hlokit, name).__doc__
    ]
    assert undocumented == []


@pytest.mark.parametrize("options, folder", [([], "python/hlokit"), (["--scripts-are-modules"], "examples/python")])
def test_mypy(options, folder):
    pytest.importorskip("mypy")
    files = [ROOT / folder] if not options else sorted((ROOT / folder).glob("*.py"))
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--ignore-missing-imports", "--cache-dir=/dev/null"]
        + [f"--config-file={ROOT / 'pyproject.toml'}"]
        + [*options, *files],
        capture_output=True,
        text=True,
        env={"MYPYPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin"},
    )
    assert run.returncode == 0, run.stdout
