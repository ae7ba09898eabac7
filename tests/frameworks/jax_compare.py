# SPDX-License-Identifier: Apache-2.0
"""Runs JAX programs on the plugin and on JAX's CPU backend, each in a process of its own, and compares what they return.

Used by jax_newcomer.py and jax_ecosystem.py, which name the programs. Run by a Python that has JAX.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import pathlib
import pickle
import resource
import subprocess
import sys
import tempfile
import traceback
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
TOLERANCE = 1e-3
MAX_PROCESSES = 10  # on a platform, where programs end theirs


def run_programs(modules: list[str], names: str, done: set[str], write: Any) -> None:
    """Writes what each program returns on the platform of this process: ("value", tree, leaves) or ("error", text).

    ("started", name) precedes it, and ("on", platforms, version) comes first.
    """
    sys.path.insert(0, str(HERE))
    from jax_programs import PROGRAMS

    import jax

    write(("on", {d.platform for d in jax.devices()}, jax.__version__))
    for module in modules:
        try:
            importlib.import_module(f"jax_programs.{module}")
        except ImportError as error:
            write((f"{module}.*", ("skipped", str(error))))
    for name, function in PROGRAMS.items():
        if name in done or (names and not any(part in name for part in names.split(","))):
            continue
        write(("started", name))
        write((name, result_of(function)))


def result_of(function: Any) -> Any:
    import jax
    import numpy as np

    try:
        leaves, tree = jax.tree.flatten(function(), is_leaf=lambda x: x is None)
        leaves = [np.asarray(x) if hasattr(x, "shape") or isinstance(x, (int, float, complex)) else x for x in leaves]
        return ("value", str(tree), leaves)
    except Exception as error:  # noqa: BLE001: whatever a program raises is its result
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "jax_programs" in f.filename]
        at = f"{pathlib.Path(frames[-1].filename).name}:{frames[-1].lineno}: " if frames else ""
        lines = [line for line in str(error).splitlines() if line.strip()] or [""]
        if os.environ.get("HLOKIT_TRACEBACK"):
            traceback.print_exc()
        return ("error", f"{at}{type(error).__name__}: {lines[0][:300]}")


def difference(ours: Any, theirs: Any) -> tuple[str, bool]:
    """Returns how two results differ, "" if they are equal within the tolerance, and whether their bits are equal."""
    import numpy as np

    if ours[0] != "value":
        return f"{ours[1]}", False
    if theirs[0] != "value":
        return f"fails on the CPU: {theirs[1]}", False
    if ours[1] != theirs[1]:
        return f"structure {ours[1]}, on the CPU {theirs[1]}", False
    bits_are_equal = True
    for index, (a, b) in enumerate(zip(ours[2], theirs[2])):
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
            if a != b:
                return f"value {index} is {a!r}, on the CPU {b!r}", False
            continue
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"value {index} is {a.dtype}{a.shape}, on the CPU {b.dtype}{b.shape}", False
        if a.tobytes() == b.tobytes():
            continue
        bits_are_equal = False
        wide = np.complex128 if np.iscomplexobj(a) else np.float64
        x, y = a.astype(wide), b.astype(wide)
        if not np.allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            with np.errstate(all="ignore"):
                return f"value {index} of {a.dtype}{a.shape} differs by {np.nanmax(np.abs(x - y)):.3g}", False
    return "", bits_are_equal


def environment(platform: str, build: pathlib.Path, devices: int) -> dict[str, str]:
    env = {**os.environ, "JAX_PLATFORMS": platform, "TF_CPP_MIN_LOG_LEVEL": "3"}
    package = str(build / "python")
    path = [p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p and p != package]
    # Programs run once: optimizing them takes longer.
    flags = [*env.get("XLA_FLAGS", "").split(), "--xla_backend_optimization_level=0",
             "--xla_llvm_disable_expensive_passes=true"]
    if platform == "hlokit":
        path.insert(0, package)
        if devices > 1:
            env["HLOKIT_NUM_DEVICES"] = str(devices)
    elif devices > 1:
        flags.append(f"--xla_force_host_platform_device_count={devices}")
    env["PYTHONPATH"] = os.pathsep.join(path)
    env["XLA_FLAGS"] = " ".join(flags)
    return env


def run_on(platform: str, arguments: argparse.Namespace, modules: list[str]) -> dict[str, Any]:
    """Runs the programs in a process; in another one those that follow a program that ends its process."""
    found: dict[str, Any] = {"results": {}, "platform": set(), "version": ""}
    results = found["results"]
    shown = None if arguments.verbose else subprocess.DEVNULL
    for _ in range(MAX_PROCESSES):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "results"
            command = [sys.executable, str(pathlib.Path(__file__).resolve()), "--child", str(out), "--modules",
                       ",".join(modules), "--only", arguments.only, "--done", ",".join(results)]
            ended = subprocess.run(command, env=environment(platform, arguments.build, arguments.devices), check=False,
                                   timeout=arguments.timeout, stdout=shown, stderr=shown).returncode
            started = None
            with open(out, "rb") if out.exists() else io.BytesIO() as file:
                for record in records(file):
                    if record[0] == "on":
                        found["platform"], found["version"] = record[1:]
                    elif record[0] == "started":
                        started = record[1]
                    else:
                        results[record[0]], started = record[1], None
        if ended == 0:
            return found
        if started is None:
            print(f"FAILED  the process on {platform} ended with {ended} before the first program")
            return found
        results[started] = ("error", f"ended the process with {ended}")
    print(f"FAILED  {MAX_PROCESSES} processes on {platform} ended")
    return found


def records(file: Any) -> Any:
    while True:
        try:
            yield pickle.load(file)
        except EOFError:
            return


def compare(description: str, modules: list[str], sharded: list[str]) -> int:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("build", type=pathlib.Path, nargs="?", default=HERE.parents[1] / "build" / "release",
                        help="build directory, build/release; its folder python is on PYTHONPATH")
    parser.add_argument("--devices", type=int, default=1, help="run the programs for several devices, on so many")
    parser.add_argument("--only", default="", help="run programs whose names have one of these parts, comma-separated")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for each process")
    parser.add_argument("--verbose", action="store_true", help="print passing programs too")
    arguments = parser.parse_args()
    modules = sharded if arguments.devices > 1 else modules
    ours, theirs = (run_on(platform, arguments, modules) for platform in ("hlokit", "cpu"))
    if ours["results"] and ours["platform"] != {"hlokit"}:
        print(f"FAILED  the programs ran on {ours['platform']}")
        return 1
    passed, failed, equal = 0, 0, 0
    for name, expected in theirs["results"].items():
        if expected[0] == "skipped":
            print(f"SKIPPED {name}: {expected[1]}")
            continue
        result = ours["results"].get(name, ("error", "did not run"))
        text, same = difference(result, expected)
        failed, passed, equal = failed + bool(text), passed + (not text), equal + same
        if text or arguments.verbose:
            print(f"FAILED  {name}: {text}" if text else f"PASSED  {name}{' (bits are equal)' if same else ''}")
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"JAX {theirs['version']}: {equal} of {passed} bit for bit, {usage.ru_utime + usage.ru_stime:.0f} s of processor time")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--child", type=pathlib.Path, required=True)
    parser.add_argument("--modules", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--done", default="")
    arguments = parser.parse_args()
    with open(arguments.child, "wb") as out:

        def write(record: Any) -> None:
            pickle.dump(record, out)
            out.flush()

        run_programs(arguments.modules.split(","), arguments.only, set(arguments.done.split(",")), write)


if __name__ == "__main__":
    main()
