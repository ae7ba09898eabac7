#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a wheel and tests it as its users would.

  wheels.py [--wheel=FILE] [--keep=DIR]

Makes the wheel of Debian's Python with tools/package unless one is given; reads what is in it; installs it into a virtual
environment in a root that has the minimal base of Debian 12 and Python only, neither a compiler nor the libraries that the
build had, without a network, and uses the package, the plugin and the tools there; and installs it with each extra beside
the real JAX and PyTorch of tests/frameworks. Needs root, or user namespaces. Prints a line per trial and `N passed, N
failed`. Exit code 77, with the reason as the last line: all passed except that mmdebstrap is not installed or no mirror or
PyPI is reached.
"""
import argparse
import email
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from packages import TOP, Trials, expect, make_debian, run

sys.path.insert(0, f"{TOP}/tests/frameworks")
import environment

TOOLS = ("hlo-diff", "hlo-inspect", "hlo-lsp-server", "hlo-opt", "hlo-profile", "hlo-reduce", "hlo-run", "hlo-translate", "hlo-view", "ir-dump")
LIBRARIES = ("messages", "pjrt", "onednn", "llvm", "stores")
# Bundled by auditwheel, by the beginning of the name.
BUNDLED = ("libabsl_", "libprotobuf", "libgrpc", "libre2", "libcurl", "libhiredis", "libdnnl", "libLLVM", "libpugixml", "libssl",
           "libcrypto")

PROGRAM = """
import ctypes, importlib.metadata, sys
import numpy as np
import hlokit, hlokit.jax
m = hlokit.load("example.hlo")
assert m.run("simplify") in (True, False) and "<" in m._repr_html_()
p = hlokit.parse("HloModule a\\nENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }")
assert p.run_on(np.arange(1, 5, dtype=np.float32)).tolist() == [-1, -2, -3, -4]
assert p.run_on(np.arange(1, 5, dtype=np.float32), engine="fast").tolist() == [-1, -2, -3, -4]
plugin = hlokit.jax.plugin_path()
assert plugin.startswith(sys.prefix), plugin
assert ctypes.CDLL(plugin).GetPjrtApi
hlokit.simulate(p, device="v5e")
points = importlib.metadata.distribution("hlokit").entry_points
assert {("jax_plugins", "hlokit"), ("torch_xla.plugins", "hlokit")} <= {(e.group, e.name) for e in points}, points
assert importlib.metadata.version("hlokit") == hlokit.__version__
"""
# By extra: the environment of tests/frameworks with its packages for Debian's Python, and a program of its user.
EXTRAS = {
    "jax": ("jax-0.10", """
import jax, jax.numpy as jnp
assert jax.devices()[0].platform == "hlokit", jax.devices()
assert float(jax.jit(lambda x: jnp.sum(jnp.linalg.eigh(x @ x.T)[0]))(jnp.eye(4) * 2)) == 16
"""),
    "torch": ("torch", """
import torch, hlokit.torch as ht
x = torch.arange(3.0).to(ht.device()).requires_grad_()
(x * x).sum().backward()
assert x.grad.cpu().tolist() == [0, 2, 4]
"""),
}
# Lines of a shell in the environment, each with a text that its output must contain.
COMMANDS = [
    *((f"{tool} --version", "(hlokit)") for tool in TOOLS),
    ("hlo-opt --passes=dce,cse example.hlo", "HloModule"),
    ("hlo-inspect hash example.hlo", "example.hlo"),
    ("hlo-run product.hlo --seed=1 --engine=fast --explain-engine --no-print-results 2>&1", "1 product"),
    ("hlo-run example.hlo --seed=1 --engine=fast --explain-engine --no-print-results 2>&1", "loop of"),
    ("hlo-run example.hlo --device=v5e --timing-only --report=report && cat report/index.html | head -c 100", "<!"),
    ("hlo-view example.hlo -o view.html && head -c 100 view.html", "<!"),
    ("ir-dump --model=mlp --emit=lazy", "IR {"),
    # libcurl is there and asked: nothing listens at that address.
    ("HLOKIT_STORE_TIMEOUT=1 AWS_ACCESS_KEY_ID=k AWS_SECRET_ACCESS_KEY=s AWS_ENDPOINT_URL=http://127.0.0.1:9 "
     "hlo-opt s3://team/a.hlo 2>&1 || true", "onnect"),
    ("ir-dump --model=mlp --steps=1 --cache=redis://127.0.0.1:9 --emit=metrics 2>&1 || true", "Connection refused"),
]


def read_wheel(trials, wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        read = lambda name: archive.read(name).decode()
        (info,) = {name.split("/")[0] for name in names if re.match(r"[^/]+\.dist-info/", name)}
        with trials.trial("name"):
            expect(re.search(r"-cp3\d+-cp3\d+-manylinux_2_\d+_x86_64\.whl$", wheel), f"{wheel} names no manylinux")
        with trials.trial("files"):
            for library in LIBRARIES:
                expect(f"hlokit/libhlokit_{library}.so" in names, f"there is no libhlokit_{library}.so")
            for library in BUNDLED:
                expect(any(name.startswith(f"hlokit.libs/{library}") for name in names), f"{library}* is not bundled")
            for file in ("__init__.py", "_hlokit.pyi", "py.typed", "jax/__init__.py", "jax/_platform.py", "torch/__init__.py",
                         "report.html", "view.html"):
                expect(f"hlokit/{file}" in names, f"there is no hlokit/{file}")
            for page in ("report.html", "view.html"):
                expect(archive.getinfo(f"hlokit/{page}").file_size > 10000, f"{page} is no page")
            expect("jax_plugins/hlokit/__init__.py" in names and "jax_plugins/__init__.py" not in names, "no namespace of plugins")
            expect(not [name for name in names if "__pycache__" in name or "/tests/" in name], "files of no use")
        with trials.trial("programs"):
            for tool in TOOLS:
                entry = archive.getinfo(f"hlokit/bin/{tool}")
                expect(entry.external_attr >> 16 & 0o111, f"{tool} is not executable")
                expect(any(name.endswith(f".data/scripts/{tool}") for name in names), f"no script starts {tool}")
        with trials.trial("metadata"):
            metadata = email.message_from_string(read(f"{info}/METADATA"))
            expect(set(metadata.get_all("Provides-Extra")) == {"jax", "torch"}, "extras")
            expect(metadata["Requires-Python"] == ">=3.9", metadata["Requires-Python"])
            expect("numpy" in metadata.get_all("Requires-Dist"), "numpy is not required")
        with trials.trial("licenses"):
            notice = read(f"{info}/licenses/NOTICE")
            expect(f"{info}/licenses/LICENSE" in names, "no LICENSE")
            for library in {os.path.basename(name) for name in names if name.startswith("hlokit.libs/") and ".so" in name}:
                found = re.search(rf"^\* {re.escape(library)}, of the package (\S+)$", notice, re.M)
                expect(found, f"NOTICE does not name {library}")
                expect(f"{info}/licenses/third-party/{found[1]}" in names, f"there is no license of {found[1]}")


def try_in_root(trials, wheel, scratch):
    root = os.path.join(scratch, "debian")
    # minbase and Python: what a machine has on which nothing is built.
    if not make_debian(trials, "clean Debian 12", root, "--include=python3,python3-venv"):
        return
    folder = f"{root}/tmp/wheels"
    os.makedirs(folder)
    shutil.copy(wheel, folder)
    run("/usr/bin/python3", "-m", "venv", f"{scratch}/download")
    run(f"{scratch}/download/bin/python", "-m", "pip", "download", "--only-binary", ":all:", "--dest", folder, "numpy")
    shutil.copy(f"{TOP}/examples/transformer_block.hlo", f"{root}/tmp/example.hlo")
    shutil.copy(f"{TOP}/examples/sharded_layer.hlo", f"{root}/tmp/product.hlo")

    # A program finds what is beside it by /proc.
    setup = f"mount -t proc proc {root}/proc; exec chroot {root} env -i PATH=/tmp/e/bin:/usr/bin:/bin HOME=/root bash -ec \"$1\""

    def inside(script):
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", setup, "sh", f"cd /tmp; {script}")

    with trials.trial("there is nothing there"):
        expect(run("chroot", root, "sh", "-c", "command -v gcc g++ cc cmake; ls /usr/lib/*/lib{absl,proto,grpc,curl,re2}* 2>/dev/null",
                   check=False).stdout == "", "the root has a compiler or libraries")
    with trials.trial("installation"):
        inside("python3 -m venv /tmp/e && /tmp/e/bin/pip install --no-index --find-links=/tmp/wheels hlokit")
    with trials.trial("package and plugin"):
        with open(f"{root}/tmp/program.py", "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        inside("python /tmp/program.py")
    shutil.copy(f"{TOP}/tests/frameworks/numpy_arrays.py", f"{root}/tmp/numpy_arrays.py")
    with trials.trial("arrays"):
        inside("python /tmp/numpy_arrays.py")
    for command, wanted in COMMANDS:
        with trials.trial(command[:60]):
            output = inside(command).stdout
            expect(wanted in output, f"{wanted!r} is not in:\n{output[:2000]}")
    with trials.trial("removal"):
        inside("/tmp/e/bin/pip uninstall -q -y hlokit")
        left = glob.glob(f"{root}/tmp/e/lib/python3*/site-packages/hlokit*") + glob.glob(f"{root}/tmp/e/bin/hlo-*")
        expect(not left, f"left: {left}")


def try_extras(trials, wheel, scratch):
    for extra, (name, program) in EXTRAS.items():
        try:
            framework = environment.ensure(name)[1]
        except environment.Unavailable as why:
            trials.skip(f"hlokit[{extra}]", str(why))
            continue
        with trials.trial(f"hlokit[{extra}]"):
            folder = f"{scratch}/{extra}"
            run("/usr/bin/python3", "-m", "venv", folder)
            # What the extra asks for is there already, as in the venv of somebody who has the framework.
            (packages,) = framework.parents[1].glob("lib/python3*/site-packages")
            (own,) = glob.glob(f"{folder}/lib/python3*/site-packages")
            with open(f"{own}/framework.pth", "w", encoding="utf-8") as file:
                file.write(f"{packages}\n")
            run(f"{folder}/bin/pip", "install", f"hlokit[{extra}] @ file://{os.path.abspath(wheel)}")
            clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "JAX", "HLOKIT"))}
            run(f"{folder}/bin/python", "-c", program, env={**clean, "JAX_PLATFORMS": "hlokit"}, cwd=scratch)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", help="test this one")
    parser.add_argument("--keep", help="leave the wheel in this folder")
    flags = parser.parse_args()
    if os.geteuid() != 0:
        os.execvp("unshare", ["unshare", "--map-auto", "--map-root-user", "--mount", sys.executable, *sys.argv])
    trials = Trials()
    with tempfile.TemporaryDirectory(prefix="hlokit-wheel-") as scratch:
        os.chmod(scratch, 0o755)
        wheel = flags.wheel
        if wheel is None:
            with trials.trial("tools/package wheel"):
                output = os.path.abspath(flags.keep or os.path.join(scratch, "dist"))
                print(run(sys.executable, f"{TOP}/packaging/wheel/make_wheels.py", f"--output={output}", "--python=/usr/bin/python3").stdout, end="")
                (wheel,) = glob.glob(f"{output}/hlokit-*.whl")
        if wheel is not None:
            read_wheel(trials, wheel)
            try_in_root(trials, wheel, scratch)
            try_extras(trials, wheel, scratch)
    return trials.end()


if __name__ == "__main__":
    sys.exit(main())
