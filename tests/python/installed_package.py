#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the Python package as a user does, and uses it:

  installed_package.py BUILD [PYTHON...]

`pip install .` into a fresh virtual environment of each Python, with build isolation and NumPy of PyPI, and `cmake --install` of
a build that is there below a prefix.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROGRAM = """
import hlokit, numpy as np, sys
assert hlokit.__file__.startswith(sys.argv[1]), hlokit.__file__
m = hlokit.load(sys.argv[2])
assert m.run("simplify") in (True, False) and "<" in m._repr_html_()
p = hlokit.parse("HloModule a\\nENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }")
assert p.run_on(np.ones(4, np.float32)).tolist() == [-1] * 4
import ctypes, hlokit.jax, shutil, subprocess
if sys.argv[4] == "tools":
    program = shutil.which("hlo-opt", path=sys.prefix + "/bin")
    assert "(hlokit) " + hlokit.__version__ in subprocess.run([program, "--version"], capture_output=True, text=True).stdout
if sys.argv[3] == "plugin":
    assert hlokit.jax.plugin_path().startswith(sys.argv[1]), hlokit.jax.plugin_path()
    assert ctypes.CDLL(hlokit.jax.plugin_path()).GetPjrtApi
"""


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def main(build: str, *pythons: str) -> None:
    module = ROOT / "examples" / "gated_mlp.hlo"
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "HLOKIT_PJRT_PLUGIN")}
    plugin = "plugin" if (pathlib.Path(build) / "lib" / "hlokit" / "libhlokit_pjrt.so").exists() else "none"
    with tempfile.TemporaryDirectory() as folder:
        for given in pythons:
            begin = time.monotonic()
            environment = pathlib.Path(folder) / "environment"
            run(given, "-m", "venv", "--clear", environment)
            python = environment / "bin" / "python"
            run(python, "-m", "pip", "install", "--disable-pip-version-check", ROOT)
            installed = time.monotonic() - begin
            run(python, "-c", PROGRAM, environment, module, plugin, "tools", cwd=folder, env=clean)
            run(python, ROOT / "tests" / "frameworks" / "numpy_arrays.py", cwd=folder, env=clean)
            print(f"{given}: pip install . in {installed:.0f} s")
        prefix = pathlib.Path(folder) / "prefix"
        run("cmake", "--install", build, "--component", "python", "--prefix", prefix)
        (package,) = prefix.glob("lib/python3*/dist-packages")
        run(sys.executable, "-c", PROGRAM, prefix, module, plugin, "none", cwd=folder, env={**clean, "PYTHONPATH": str(package)})
    print(f"{len(pythons) + 1} passed, 0 failed")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
