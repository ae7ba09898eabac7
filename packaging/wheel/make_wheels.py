#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes wheels that need no package of the system: tools/package wheel.

  make_wheels.py --output=FOLDER [--python=PROGRAM]...

For each CPython from 3.9 to 3.14 that is found with its headers (in PATH, and those of pyenv), or for the named ones: `pip
wheel .` with build isolation, in a fresh virtual environment; then auditwheel puts the libraries that the wheel needs into
it, and their licenses follow. With ccache the libraries are compiled once, the extension module for each.
"""
import argparse
import base64
import glob
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

TOP = pathlib.Path(__file__).resolve().parents[2]
VERSIONS = [(3, minor) for minor in range(9, 15)]
# Debian packages whose headers are compiled in.
HEADERS = ("libcli11-dev", "nlohmann-json3-dev", "libabsl-dev", "libxxhash-dev")
PROBE = """
import ensurepip, os, sys, sysconfig, venv
assert sys.implementation.name == "cpython" and not getattr(sys, "abiflags", "")
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
print(*sys.version_info[:2])
"""


def fail(text):
    sys.exit(f"package: wheel: {text}")


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", **options)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))[:300]}\n{(done.stdout + done.stderr)[-5000:]}")
    return done.stdout


def pythons():
    """The interpreters to build for, the first one found of each version."""
    names = ["/usr/bin/python3"] + [f"python3.{minor}" for _, minor in VERSIONS]
    found = {}
    for program in filter(None, [*map(shutil.which, names), *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))]):
        probe = subprocess.run([program, "-c", PROBE], capture_output=True, text=True, check=False)
        version = tuple(map(int, probe.stdout.split())) if probe.returncode == 0 else None
        if version in VERSIONS:
            found.setdefault(version, program)
    return [found[version] for version in VERSIONS if version in found]


def packaging_tools():
    """A virtual environment with auditwheel, kept for the next time."""
    requirements = TOP / "packaging/wheel/requirements.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "hlokit"
    folder = cache / f"wheel-tools-{digest}"
    if not (folder / "complete").exists():
        python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
        shutil.rmtree(folder, ignore_errors=True)
        run(python, "-m", "venv", folder)
        run(folder / "bin/python", "-m", "pip", "install", "--no-deps", "--require-hashes", "--only-binary", ":all:",
            "--requirement", requirements)
        (folder / "complete").touch()
    return folder


def owners(names):
    """Debian packages, by the name of a library in the wheel."""
    result = {}
    for name in names:
        # auditwheel inserts a hash into the name: libre2-0123abcd.so.9.0.0.
        original = re.sub(r"-[0-9a-f]{8}(\.so|\.)", r"\1", name, count=1)
        found = subprocess.run(["dpkg-query", "--search", f"*/{original}"], capture_output=True, text=True, check=False).stdout
        packages = sorted({line.split(":")[0] for line in found.splitlines() if not line.startswith("diversion")})
        if not packages:
            fail(f"no package has {original}, of which the wheel has a copy: its license is not known")
        result[name] = packages[0]
    return result


def license_files(wheel, tools):
    """Texts to add to the wheel, by their path in its licenses folder; and the list of them for its NOTICE."""
    with zipfile.ZipFile(wheel) as archive:
        bundled = sorted(os.path.basename(name) for name in archive.namelist() if name.startswith("hlokit.libs/") and ".so" in name)
    packages = owners(bundled)
    lines = ["", "", "Libraries in this wheel", "-----------------------", "",
             "The wheel has copies of libraries of Debian 12, in hlokit.libs, each under the license in", "licenses/third-party/PACKAGE:", ""]
    lines += [f"* {name}, of the package {packages[name]}" for name in bundled]
    lines += ["", "Its programs contain code of the headers of these, whose licenses are there too:", ""]
    lines += [f"* {name}" for name in (*HEADERS, "pybind11")]
    texts = {f"third-party/{name}": pathlib.Path(f"/usr/share/doc/{name}/copyright").read_text(errors="replace")
             for name in {*packages.values(), *HEADERS}}
    (pybind11,) = tools.glob("lib/python3*/site-packages/pybind11-*.dist-info/**/LICENSE")
    texts["third-party/pybind11"] = pybind11.read_text()
    return texts, "\n".join(lines) + "\n"


def add_licenses(wheel, tools):
    texts, notice = license_files(wheel, tools)
    temporary = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(name for name in old.namelist() if re.fullmatch(r"[^/]+\.dist-info/RECORD", name))
        folder = os.path.dirname(record) + "/licenses/"
        rows = []

        def write(entry, data):
            new.writestr(entry, data, compress_type=zipfile.ZIP_DEFLATED, compresslevel=6)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{getattr(entry, 'filename', entry)},sha256={digest},{len(data)}\n")

        for entry in old.infolist():
            if entry.filename == record or entry.is_dir():
                continue
            data = old.read(entry)
            if entry.filename == folder + "NOTICE":
                data += notice.encode()
            write(entry, data)
        stamp = old.getinfo(record).date_time
        for name in sorted(texts):
            entry = zipfile.ZipInfo(folder + name, stamp)
            entry.external_attr = 0o100644 << 16
            write(entry, texts[name].encode())
        new.writestr(old.getinfo(record), "".join([*rows, f"{record},,\n"]), compress_type=zipfile.ZIP_DEFLATED)
    temporary.replace(wheel)


def make(python, output, tools):
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hlokit-wheel-") as scratch:
        scratch = pathlib.Path(scratch)
        run(python, "-m", "venv", scratch / "venv")
        # One compiler for all: each Python would name its own, and the build would begin again.
        environment = {"CC": "cc", "CXX": "c++", **os.environ, "PATH": f"{tools}/bin:{os.environ['PATH']}"}
        run(scratch / "venv/bin/python", "-m", "pip", "wheel", "--no-deps", "--wheel-dir", scratch / "raw", TOP,
            env=environment)
        (raw,) = (scratch / "raw").glob("*.whl")
        run(tools / "bin/auditwheel", "repair", "-z", "1", "--wheel-dir", scratch / "repaired", raw, env=environment)
        (wheel,) = (scratch / "repaired").glob("*.whl")
        if "manylinux" not in wheel.name:
            fail(f"{wheel.name} is for no manylinux")
        add_licenses(wheel, tools)
        shutil.move(wheel, output / wheel.name)
    print(f"{wheel.name}  {time.monotonic() - begin:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--python", action="append", default=[])
    flags = parser.parse_args()
    flags.output.mkdir(parents=True, exist_ok=True)
    interpreters = flags.python or pythons()
    if not interpreters:
        fail("there is no CPython from 3.9 to 3.14 with headers and venv (tools/install-deps python)")
    tools = packaging_tools()
    for python in interpreters:
        make(python, flags.output.resolve(), tools)


if __name__ == "__main__":
    main()
