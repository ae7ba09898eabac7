# SPDX-License-Identifier: Apache-2.0
"""The stub of the extension module is complete, and mypy accepts the package and the scripts."""

import ast
import inspect
import pathlib
import re
import subprocess
import sys

import pytest

import hlokit
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


def runtime_signatures(function):
    """Lists of (name, whether there is a default) of the parameters, one for each overload, by pybind11's docstring."""
    signatures = []
    for line in (function.__doc__ or "").splitlines():
        head = re.match(r"(?:\d+\. )?(\w+)\((.*)\)(?: -> .*)?$", line)
        if not head or head.group(1) != function.__name__:
            continue
        parts, depth, begin = [], 0, 0
        text = head.group(2)
        for k, c in enumerate(text + ","):
            depth += c in "([{<"
            depth -= c in ")]}>" and text[k - 1 : k] != "-"
            if c == "," and depth == 0:
                parts.append(text[begin:k].strip())
                begin = k + 1
        parameters = [(re.split("[:=]", p)[0].strip(), "=" in p) for p in parts if p and p != "*"]
        if parameters and parameters[0][0] == "self":
            parameters = parameters[1:]
        signatures.append(parameters)
    # Before its overloads a function has a line of its own.
    return signatures[1:] if len(signatures) > 1 else signatures


def stub_signature(node):
    arguments = node.args
    given = arguments.posonlyargs + arguments.args
    defaults = [False] * (len(given) - len(arguments.defaults)) + [True] * len(arguments.defaults)
    parameters = [(a.arg, d) for a, d in zip(given, defaults) if a.arg != "self"]
    if arguments.vararg:
        parameters.append(("*" + arguments.vararg.arg, False))
    parameters += [(a.arg, d is not None) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return parameters + ([("**" + arguments.kwarg.arg, False)] if arguments.kwarg else [])


def python_signature(function):
    parameters = []
    for p in inspect.signature(function).parameters.values():
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.name != "self":
            parameters.append((mark + p.name, p.default is not p.empty))
    return parameters


def test_signatures_are_those_of_the_stub():
    checked = 0
    body = ast.parse(STUB.read_text()).body
    scopes = [(_hlokit, body)]
    scopes += [(getattr(_hlokit, node.name), node.body) for node in body if isinstance(node, ast.ClassDef)]
    for scope, nodes in scopes:
        declared = {}
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and not any(
                isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list
            ):
                declared.setdefault(node.name, []).append(stub_signature(node))
        for name, signatures in declared.items():
            if name in ("__getattr__", "__len__", "__iter__", "__array__", "__getitem__"):
                continue
            function = getattr(scope, name)
            where = f"{getattr(scope, '__name__', '')}.{name}"
            if inspect.isfunction(function):
                assert signatures == [python_signature(function)], where
            elif name == "__call__":
                assert signatures == [[("*arguments", False)]], where
            else:
                found = runtime_signatures(function)
                # Functions that take positions only have no names for them.
                if all(re.fullmatch(r"arg\d+", name) for name, _ in (found or [[]])[0]):
                    assert [len(f) for f in found] == [len(s) for s in signatures], where
                    continue
                assert len(found) == len(signatures), where
                # Where a parameter may be left out, the stub says so, and not otherwise.
                assert found == signatures, where
            checked += 1
    assert checked > 60


def test_properties_are_those_of_the_stub():
    for node in ast.parse(STUB.read_text()).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and not item.name.startswith("__"):
                is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in item.decorator_list)
                assert is_property == isinstance(getattr(getattr(_hlokit, node.name), item.name), property), item.name


def documentation(member):
    """What is said of a member, without the signature that pybind11 puts before it."""
    text = member.__doc__ or ""
    return "\n".join(line for line in text.splitlines() if not re.match(r"(\d+\. )?\w*\(.*\)( -> .*)?$", line)).strip()


def test_every_public_name_is_documented():
    undocumented = []
    for name in public(dir(hlokit)):
        value = getattr(hlokit, name)
        if inspect.ismodule(value):
            continue
        if not documentation(value):
            undocumented.append(name)
        if not inspect.isclass(value) or issubclass(value, (Exception, tuple)):
            continue
        for member in public(vars(value)):
            if not documentation(getattr(value, member)):
                undocumented.append(f"{name}.{member}")
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
