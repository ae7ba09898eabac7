#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch/XLA programs on hlokit's plugin against the same programs on XLA's CPU.

Run by a Python that has torch and torch_xla:

    python torch_xla_programs.py [--package DIR] [--plugin FILE] [--only NAME[,NAME]] [--list]

DIR holds the package hlokit (build/release/python; not needed where it is installed), FILE is the plugin
(HLOKIT_PJRT_PLUGIN). The programs are in torch_xla_cases/, one file a group; a group is a process, with the environment
that its programs need, once for each device; where a group has EXPECTED, functions that compute the same without a
device, these take the place of XLA's CPU. Prints what differs and `N passed, N failed`, and ends with 1 if any failed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
# Groups: module of torch_xla_cases, number of devices, further variables, seconds.
GROUPS = {
    "one_device": (1, {}, 900),
    "training": (1, {}, 900),
    "compiled": (1, {}, 900),
    "dynamic": (1, {"XLA_EXPERIMENTAL": "nonzero:masked_select:nms"}, 300),
    "stablehlo": (1, {"XLA_STABLEHLO_COMPILE": "1"}, 300),
    "profiler": (1, {}, 300),
    "spmd": (8, {}, 900),
    "auto_sharding": (4, {}, 300),
    "launch": (4, {}, 600),
    "hugging_face": (1, {}, 900),
}


def run_group(name: str, out: str) -> None:
    """Runs the programs of a group on the device of PJRT_DEVICE, and stores what each returns."""
    sys.path.insert(0, str(HERE))
    if os.environ["PJRT_DEVICE"] == "HLOKIT":
        import hlokit.torch_xla

        hlokit.torch_xla.register()
    module = importlib.import_module(f"torch_xla_cases.{name}")
    only = os.environ.get("TORCH_XLA_PROGRAMS")
    results = {}
    for program in module.PROGRAMS:
        if only and program.__name__ not in only.split(","):
            continue
        begin = time.monotonic()
        try:
            on_host = getattr(module, "EXPECTED", None) if os.environ["PJRT_DEVICE"] == "CPU" else None
            value = module.plain(on_host[program.__name__]() if on_host else program())
            results[program.__name__] = ("ok", value, time.monotonic() - begin)
        except BaseException as error:  # whatever it is, the other programs run
            text = "".join(traceback.format_exception(error))
            results[program.__name__] = ("error", text, time.monotonic() - begin)
        with open(out, "wb") as file:
            pickle.dump(results, file)
    os._exit(0)  # threads of a runtime must not keep the process


def on_device(name: str, device: str, options: argparse.Namespace, directory: str) -> tuple[dict, int]:
    """Runs a group in a process of its own. A program that ends the process has no answer, nor those after it.

    Returns the answers, and 1 if the process does not end as it should.
    """
    devices, variables, seconds = GROUPS[name]
    environment = dict(os.environ, PJRT_DEVICE=device, CPU_NUM_DEVICES=str(devices), HLOKIT_NUM_DEVICES=str(devices),
                       TORCH_XLA_PROGRAMS=options.only or "", HOME=directory, HF_HUB_OFFLINE="1", **variables)
    environment["PYTHONPATH"] = os.pathsep.join(
        [p for p in (options.package, str(HERE), environment.get("PYTHONPATH")) if p])
    if options.plugin:
        environment["HLOKIT_PJRT_PLUGIN"] = options.plugin
    out = os.path.join(directory, f"{name}.{device}.pickle")
    log = os.path.join(directory, f"{name}.{device}.log")
    with open(log, "w", encoding="utf-8") as file:
        try:
            code = subprocess.run([sys.executable, __file__, "--run", name, "--out", out], env=environment,
                                  stdout=file, stderr=subprocess.STDOUT, timeout=seconds, cwd=directory).returncode
        except subprocess.TimeoutExpired:
            code = f"no end after {seconds} s"
    results = {}
    if os.path.exists(out):
        with open(out, "rb") as file:
            results = pickle.load(file)
    if code != 0:
        with open(log, encoding="utf-8", errors="replace") as file:
            print(f"FAILED {name}: the process on {device} ended with {code}:\n{file.read()[-3000:]}")
    return results, int(code != 0)


def difference(expected: object, found: object, where: str = "result") -> str:
    """Returns the first difference of two answers as text; "" if they are equal."""
    import numpy as np

    if type(expected) is not type(found):
        return f"{where}: {type(found).__name__} {found!r}, expected {type(expected).__name__} {expected!r}"
    if isinstance(expected, dict):
        if list(expected) != list(found):
            return f"{where}: has {list(found)}, expected {list(expected)}"
        parts = [(f"{where}[{key!r}]", expected[key], found[key]) for key in expected]
    elif isinstance(expected, (list, tuple)):
        if len(expected) != len(found):
            return f"{where}: has {len(found)} elements, expected {len(expected)}"
        parts = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(expected, found))]
    elif isinstance(expected, np.ndarray):
        if expected.dtype != found.dtype or expected.shape != found.shape:
            return f"{where}: {found.dtype}{found.shape}, expected {expected.dtype}{expected.shape}"
        if expected.dtype.kind in "fc":
            if np.allclose(found, expected, rtol=2e-4, atol=2e-5, equal_nan=True):
                return ""
            worst = np.nanmax(np.abs(found - expected))
            return f"{where}: differs by {worst:g}; found {found.ravel()[:8]}, expected {expected.ravel()[:8]}"
        return "" if np.array_equal(found, expected) else f"{where}: found {found}, expected {expected}"
    elif isinstance(expected, float):
        equal = np.allclose(found, expected, rtol=2e-4, atol=2e-5, equal_nan=True)
        return "" if equal else f"{where}: {found!r}, expected {expected!r}"
    else:
        return "" if expected == found else f"{where}: {found!r}, expected {expected!r}"
    for place, a, b in parts:
        if text := difference(a, b, place):
            return text
    return ""


def names_of(group: str) -> list[str]:
    """Returns the programs of a group without importing what they need."""
    import ast

    tree = ast.parse((HERE / "torch_xla_cases" / f"{group}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "PROGRAMS":
            return [element.id for element in node.value.elts]
    raise ValueError(f"{group}: no list PROGRAMS")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", help="directory of the package hlokit")
    parser.add_argument("--plugin", help="the plugin, if it is not in the package")
    parser.add_argument("--only", help="names of programs, separated by commas")
    parser.add_argument("--list", action="store_true", help="list the programs")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run_group(options.run, options.out)
    passed = failed = 0
    for group in GROUPS:
        names = [n for n in names_of(group) if not options.only or n in options.only.split(",")]
        if options.list:
            print(f"{group}: {' '.join(names)}")
        if options.list or not names:
            continue
        with tempfile.TemporaryDirectory() as directory:
            expected, cpu_failed = on_device(group, "CPU", options, directory)
            found, hlokit_failed = on_device(group, "HLOKIT", options, directory)
        failed += cpu_failed + hlokit_failed
        for name in names:
            want = expected.get(name, ("error", "no answer of XLA's CPU", 0.0))
            got = found.get(name, ("error", "no answer: the process ended", 0.0))
            text = next((f"{who}: {answer[1]}" for who, answer in (("XLA's CPU", want), ("hlokit", got))
                         if answer[0] == "error"), None)
            text = difference(want[1], got[1]) if text is None else text
            passed, failed = passed + (not text), failed + bool(text)
            if text:
                print(f"FAILED {group}.{name}: {text}")
            else:
                print(f"passed {group}.{name} ({got[2]:.1f} s; XLA's CPU {want[2]:.1f} s)", flush=True)
    if not options.list:
        print(f"{passed} passed, {failed} failed")
    return 1 if failed or (passed == 0 and not options.list) else 0


if __name__ == "__main__":
    sys.exit(main())
