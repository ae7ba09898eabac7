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
# Of floats of so many bytes, by the largest finite value of an array; of smaller ones two of their last bits. Integers and bools are equal.
TOLERANCES = {8: 1e-9, 4: 1e-4}
MAX_PROCESSES = 10  # on a platform, where programs end theirs


def run_programs(modules: list[str], names: str, done: set[str], write: Any) -> None:
    """Writes what each program returns on the platform of this process: ("value", tree, leaves) or ("error", text).

    ("started", name) precedes it; ("on", platforms, version) and ("programs", names) come first.
    """
    sys.path.insert(0, str(HERE))
    from jax_programs import PROGRAMS

    import jax

    write(("on", {d.platform for d in jax.devices()}, jax.__version__))
    for module in modules:
        try:
            importlib.import_module(f"jax_programs.{module}")
        except Exception as error:  # noqa: BLE001: the programs of the other modules run
            write((f"{module}.*", ("error", f"{type(error).__name__}: {error}")))
    chosen = [name for name in PROGRAMS if not names or any(part in name for part in names.split(","))]
    write(("programs", chosen))
    for name in chosen:
        if name not in done:
            write(("started", name))
            write((name, result_of(PROGRAMS[name])))


def result_of(function: Any) -> Any:
    import jax
    import numpy as np

    try:
        leaves, tree = jax.tree.flatten(function(), is_leaf=lambda x: x is None)
        leaves = [array_of(x) for x in leaves]
        return ("value", str(tree), leaves)
    except Exception as error:  # noqa: BLE001: whatever a program raises is its result
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "jax_programs" in f.filename]
        at = f"{pathlib.Path(frames[-1].filename).name}:{frames[-1].lineno}: " if frames else ""
        lines = [line for line in str(error).splitlines() if line.strip()] or [""]
        if os.environ.get("HLOKIT_TRACEBACK"):
            traceback.print_exc()
        return ("error", f"{at}{type(error).__name__}: {lines[0][:300]}")


def array_of(leaf: Any) -> Any:
    """An array of a leaf that is a number; others are compared as they are."""
    import numpy as np

    types = {float: "f4", complex: "c8"}  # as they were before they were Python's
    if hasattr(leaf, "shape") or isinstance(leaf, (int, float, complex)):
        return np.asarray(leaf, types.get(type(leaf)))
    return leaf


def tolerance(dtype: Any) -> float:
    """How far a value may be from another one, relative to the largest one; 0 if they must be equal."""
    import ml_dtypes

    try:
        info = ml_dtypes.finfo(dtype)
    except ValueError:
        return 0.0
    return TOLERANCES.get(info.bits // 8, 2 * float(info.eps))


def array_difference(a: Any, b: Any) -> str:
    """Returns how two arrays of one type and shape differ, "" if they are equal within the type's tolerance."""
    import numpy as np

    limit = tolerance(a.dtype)
    if limit == 0:
        differ = int(np.count_nonzero(a != b))
        return f"differs in {differ} of {a.size} places" if differ else ""
    wide = np.complex128 if np.iscomplexobj(a) else np.float64
    x, y = a.astype(wide), b.astype(wide)
    finite = np.isfinite(y)
    scale = np.abs(y[finite]).max(initial=0.0)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True) or not np.isfinite(x[finite]).all():
        return "differs in where it is infinite or NaN"
    worst = np.abs(x[finite] - y[finite]).max(initial=0.0)
    return f"differs by {worst:.3g}, its largest value is {scale:.3g}, tolerance {limit:.3g} of it" if worst > limit * scale else ""


def difference(ours: Any, theirs: Any) -> tuple[str, bool]:
    """Returns how two results differ, "" if they are equal within the tolerances, and whether their bits are equal."""
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
        if text := array_difference(a, b):
            return f"value {index} of {a.dtype}{a.shape} {text}", False
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
        if devices > 1 and "HLOKIT_DEVICE" not in env:
            env["HLOKIT_NUM_DEVICES"] = str(devices)
    elif devices > 1:
        flags.append(f"--xla_force_host_platform_device_count={devices}")
    env["PYTHONPATH"] = os.pathsep.join(path)
    env["XLA_FLAGS"] = " ".join(flags)
    return env


def run_on(platform: str, arguments: argparse.Namespace, modules: list[str]) -> dict[str, Any]:
    """Runs the programs in a process; in another one those that follow a program that ends its process.

    "names" are all programs, and "problems" says how processes ended that did not end as they should.
    """
    found: dict[str, Any] = {"results": {}, "platform": set(), "version": "", "names": [], "problems": []}
    results = found["results"]
    shown = None if arguments.verbose else subprocess.DEVNULL
    for _ in range(MAX_PROCESSES):
        before = len(results)
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "results"
            command = [sys.executable, str(pathlib.Path(__file__).resolve()), "--child", str(out), "--modules",
                       ",".join(modules), "--only", arguments.only, "--done", ",".join(results)]
            try:
                ended = subprocess.run(command, env=environment(platform, arguments.build, arguments.devices), check=False,
                                       timeout=arguments.timeout, stdout=shown, stderr=shown).returncode
            except subprocess.TimeoutExpired:
                ended = f"no end after {arguments.timeout:.0f} s"
            started = read_records(out, found)
        if started is not None:
            results[started] = ("error", f"ended the process with {ended}")
        elif ended != 0:
            last = list(results)[-1] if len(results) > before else "nothing"
            found["problems"].append(f"a process on {platform} ended with {ended} after {last}")
        if set(found["names"]) <= set(results) or len(results) == before or isinstance(ended, str):
            return found
    found["problems"].append(f"{MAX_PROCESSES} processes on {platform} ended")
    return found


def read_records(path: pathlib.Path, found: dict[str, Any]) -> str | None:
    """Adds what a process wrote; returns the program that it had begun when it ended."""
    started = None
    with open(path, "rb") if path.exists() else io.BytesIO() as file:
        for record in records(file):
            if record[0] == "on":
                found["platform"], found["version"] = record[1:]
            elif record[0] == "programs":
                found["names"] = record[1]
            elif record[0] == "started":
                started = record[1]
            else:
                found["results"][record[0]], started = record[1], None
    return started


def records(file: Any) -> Any:
    while True:
        try:
            yield pickle.load(file)
        except (EOFError, pickle.UnpicklingError):  # the process ended while it wrote
            return


def compare(description: str, modules: list[str], sharded: list[str]) -> int:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("build", type=pathlib.Path, nargs="?", default=HERE.parents[1] / "build" / "release",
                        help="build directory, build/release; its folder python is on PYTHONPATH")
    parser.add_argument("--devices", type=int, default=1, help="run the programs for several devices, on so many")
    parser.add_argument("--modules", default="", help="modules of jax_programs instead of those above, comma-separated")
    parser.add_argument("--only", default="", help="run programs whose names have one of these parts, comma-separated")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for each process")
    parser.add_argument("--verbose", action="store_true", help="print passing programs too")
    arguments = parser.parse_args()
    modules = arguments.modules.split(",") if arguments.modules else sharded if arguments.devices > 1 else modules
    ours, theirs = (run_on(platform, arguments, modules) for platform in ("hlokit", "cpu"))
    for platform, found in (("hlokit", ours), ("cpu", theirs)):
        if found["platform"] != {platform}:
            found["problems"].append(f"programs for {platform} ran on {', '.join(sorted(found['platform'])) or 'nothing'}")
    problems = ours["problems"] + theirs["problems"]
    for problem in problems:
        print(f"FAILED  {problem}")
    passed, failed, equal = 0, len(problems), 0
    missing = ("error", "did not run")
    for name in dict.fromkeys([*ours["names"], *theirs["names"], *ours["results"], *theirs["results"]]):
        text, same = difference(ours["results"].get(name, missing), theirs["results"].get(name, missing))
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
