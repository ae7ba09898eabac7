# SPDX-License-Identifier: Apache-2.0
"""A package that was built for another Python says so."""

import pathlib
import shutil
import subprocess
import sys

import hlokit


def test_says_what_it_was_built_for(tmp_path):
    package = tmp_path / "hlokit"
    package.mkdir()
    for path in pathlib.Path(hlokit.__file__).parent.glob("*.py"):
        shutil.copy(path, package)
    command = [sys.executable, "-c", "import hlokit; hlokit.parse"]
    (package / "_hlokit.cpython-36m-x86_64-linux-gnu.so").touch()
    run = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    this = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
    assert f"hlokit is built for cpython 3.6, this is {this}: configure with -DPython3_EXECUTABLE" in run.stderr
    # Without any build the error stays as it is.
    (package / "_hlokit.cpython-36m-x86_64-linux-gnu.so").unlink()
    run = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert "No module named 'hlokit._hlokit'" in run.stderr
