# SPDX-License-Identifier: Apache-2.0
"""Builds a wheel with CMake: a build backend (PEP 517) without dependencies.

The build directory is kept, build/wheel, so that a second build compiles what changed. With the config setting
`build-dir` one that exists is used: pip install --no-build-isolation --config-settings build-dir=build/release .
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[1]
BUILD = SOURCE / "build" / "wheel"
PAGES = ("report.html", "view.html")


def _project(field: str) -> str:
    text = (SOURCE / "pyproject.toml").read_text()
    return re.search(rf'^{field} = "([^"]*)"', text, re.M).group(1)


def _metadata() -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {_project('name')}", f"Version: {_project('version')}"]
    lines += [f"Summary: {_project('description')}", f"Requires-Python: {_project('requires-python')}", "Requires-Dist: numpy"]
    return "\n".join(lines) + "\n"


def _tag() -> str:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"{python}-{python}-{platform}"


def _configure() -> None:
    options = ["-G", "Ninja", f"-DPython3_EXECUTABLE={sys.executable}", "-DHLOKIT_PYTHON=ON"]
    options += ["-DHLOKIT_TESTS=OFF", "-DHLOKIT_BENCH=OFF"]
    subprocess.run(["cmake", "-S", SOURCE, "-B", BUILD, *options], check=True)


def _package_files(package: pathlib.Path) -> dict:
    """Returns the contents of the package's files by their path in the wheel."""
    files = {}
    for top in ("hlokit", "jax_plugins"):
        for folder, folders, names in os.walk(package / top, followlinks=True):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            for name in sorted(names):
                path = pathlib.Path(folder) / name
                # The build directory keeps the links of sources that are gone.
                if not path.is_file():
                    continue
                # The pages are empty in builds without them.
                if name in PAGES and path.stat().st_size == 0:
                    continue
                files[path.relative_to(package).as_posix()] = path.read_bytes()
    return files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = BUILD
    if config_settings and config_settings.get("build-dir"):
        build = SOURCE / config_settings["build-dir"]
        if not (build / "CMakeCache.txt").exists():
            raise SystemExit(f"build-dir: {build} is no build directory of CMake")
    else:
        _configure()
    command = ["cmake", "--build", build, "--target", "hlokit_python", "--parallel", str(os.cpu_count())]
    subprocess.run(command, check=True)
    files = _package_files(build / "python")
    name = f"{_project('name')}-{_project('version')}"
    info = f"{name}.dist-info"
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: hlokit\nRoot-Is-Purelib: false\nTag: {_tag()}\n".encode()
    files[f"{info}/entry_points.txt"] = (b"[jax_plugins]\nhlokit = jax_plugins.hlokit\n\n"
                                         b"[torch_xla.plugins]\nhlokit = hlokit.torch_xla:Plugin\n")
    files[f"{info}/LICENSE"] = (SOURCE / "LICENSE").read_bytes()
    record = []
    for path, contents in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(contents)}\n")
    files[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    wheel = f"{name}-{_tag()}.whl"
    temporary = pathlib.Path(wheel_directory) / (wheel + ".part")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, contents in files.items():
            archive.writestr(zipfile.ZipInfo(path), contents, compress_type=zipfile.ZIP_DEFLATED)
    temporary.replace(pathlib.Path(wheel_directory) / wheel)
    return wheel


def get_requires_for_build_wheel(config_settings=None):
    return []
