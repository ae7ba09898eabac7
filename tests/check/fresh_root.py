#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries tools/quickstart or tools/check from nothing: in a root that holds the minimal base of Debian 12 only.

  fresh_root.py [--keep=DIR] [--ccache=PROGRAM] [--mirror=URL] quickstart
  fresh_root.py [--keep=DIR] [--ccache=PROGRAM] [--mirror=URL] check [STEP...]

Makes the root with mmdebstrap, clones the commit of this checkout into it (with ../shared beside it where that is
there), and runs the command there, then what the README promises of it. A package that this machine happens to have
cannot hide one that tools/install-deps lacks. How the network is reached (Debian's sources, proxies, certificates,
settings of pip and npm) is as on this machine. --ccache: with the compiler cache of this machine, whose program is
copied there without its package. Needs root, or user namespaces. The last line is
`N passed, N failed`. Exit code 77, with the reason as the last line: mmdebstrap is not installed, or the mirror is not reached.
"""
import argparse
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
SHARED = TOP.parent / "shared"
MIRROR = "http://deb.debian.org/debian"
CHECKOUT = "/root/hlokit"
CACHE = "/root/.cache/ccache"
SKIPPED = 77
# What apt prints when it gets no answer.
UNREACHED = re.compile(r"Temporary failure resolving|Could not resolve|Could not connect|Connection (failed|refused|timed out)|"
                       r"Unable to connect|Network is unreachable|No route to host")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
OWN_CERTIFICATES = "/opt/certificates.crt"
# Settings of the network, by name: values are this machine's own.
VARIABLES = re.compile(r"(?i)^((https?|ftp|all|no)_proxy|pip_.*|npm_config_.*|.*_ca_(bundle|certs|info)|.*_?ca_?certs?|.*cainfo|pip_cert"
                       r"|ssl_cert_(file|dir)|node_extra_ca_certs)$")
FILES = ("/etc/pip.conf", "/etc/npmrc", "~/.npmrc", "~/.config/pip/pip.conf", "~/.pip/pip.conf")

# What the README's table offers, after tools/quickstart.
OFFERS = {
    "tools": "for tool in build/release/bin/*; do $tool --version; done",
    "import hlokit": """PYTHONPATH=build/release/python python3 -c "
import hlokit, numpy as np
m = hlokit.parse('HloModule m\\nENTRY e { a = f32[3] parameter(0) ROOT t = f32[3] add(a, a) }')
assert m.run_on(np.arange(3, dtype='f4')).tolist() == [0, 2, 4]
" """,
    "plugin": """PYTHONPATH=build/release/python python3 -c "
import ctypes, hlokit, hlokit.jax
assert ctypes.CDLL(hlokit.jax.plugin_path()).GetPjrtApi
" """,
    "fast engine": "for name in transformer_block sharded_layer; do build/release/bin/hlo-run examples/$name.hlo --seed=1 --engine=fast"
                   " --explain-engine --no-print-results 2>&1; done | grep ^engine: | tee /tmp/engine;"
                   " grep -qE '[1-9][0-9]* instructions in loops' /tmp/engine && grep -qE '[1-9][0-9]* product' /tmp/engine",
    "pages": "build/release/bin/hlo-view examples/transformer_block.hlo -o /tmp/view.html && test -s /tmp/view.html",
}


class Unreached(Exception):
    """The mirror does not answer."""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def copy_settings(root):
    """Copies how the network is reached; returns the environment."""
    home = pathlib.Path.home()
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    environment.update((name, value) for name, value in os.environ.items() if VARIABLES.match(name))
    # Debian's package of certificates writes the file of that name again, without those of this machine.
    if os.path.exists(CERTIFICATES):
        shutil.copyfile(CERTIFICATES, f"{root}{OWN_CERTIFICATES}")
        environment.update((name, OWN_CERTIFICATES) for name, value in environment.items() if value == CERTIFICATES)
        environment.update(PIP_CERT=OWN_CERTIFICATES, NODE_EXTRA_CA_CERTS=OWN_CERTIFICATES, NPM_CONFIG_CAFILE=OWN_CERTIFICATES)
    files = [pathlib.Path(name).expanduser() for name in FILES]
    files += [pathlib.Path(value) for name, value in environment.items() if value.startswith("/") and VARIABLES.match(name)]
    files += [pathlib.Path("/etc/resolv.conf"), pathlib.Path("/etc/hosts")]
    files += [path for path in pathlib.Path("/etc/apt/apt.conf.d").glob("*") if "Acquire::" in path.read_text(errors="replace")]
    # Sources of other distributors have packages that Debian 12 has not.
    sources = pathlib.Path("/etc/apt/sources.list.d/debian.sources")
    if sources.is_file():
        files.append(sources)
        (root / "etc/apt/sources.list").write_text("")
    for file in files:
        if not file.is_file():
            continue
        target = file
        if home != pathlib.Path("/root") and home in file.parents:
            target = pathlib.Path("/root") / file.relative_to(home)
        target = root / str(target).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    return environment


def copy_ccache(root, environment, program):
    """The compiler cache with its libraries, as files: no package is installed for it."""
    folder = root / "opt/ccache"
    folder.mkdir(parents=True)
    loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    libraries = re.findall(r"(/\S+) \(0x", loaded)
    for path in libraries:
        shutil.copy(os.path.realpath(path), folder / os.path.basename(path))
    shutil.copy(program, folder / "ccache")
    loader = next(os.path.basename(path) for path in libraries if "/ld-" in path)
    (folder / "bin").mkdir()
    (folder / "bin/ccache").write_text(f'#!/bin/sh\nexec /opt/ccache/{loader} --library-path /opt/ccache /opt/ccache/ccache "$@"\n')
    (folder / "bin/ccache").chmod(0o755)
    environment["PATH"] += ":/opt/ccache/bin"
    environment.update(CCACHE_DIR=CACHE, CCACHE_BASEDIR=CHECKOUT, CCACHE_NOHASHDIR="1")
    (root / CACHE.lstrip("/")).mkdir(parents=True)
    folder = subprocess.run([program, "--get-config=cache_dir"], capture_output=True, text=True, check=True).stdout.strip()
    return [(folder, CACHE)]


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def in_root(root, mounts, environment, script, log):
    """Runs a script in the root, with its own processes and mounts; returns whether it succeeds."""
    setup = [f"mount --rbind /dev {root}/dev", f"mount -t proc proc {root}/proc"]
    setup += [f"mount --bind {source} {root}{target}" for source, target in mounts]
    inner = f"cd {CHECKOUT} && {script}"
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec",
             "; ".join(setup) + f'; exec chroot {root} bash -c "$1"', "sh", inner]
    done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    log.append(done.stdout)
    return done.returncode == 0


def trials(flags, root):
    made = subprocess.run(["mmdebstrap", "--variant=minbase", "bookworm", str(root), flags.mirror],
                          capture_output=True, text=True)
    if made.returncode != 0 and UNREACHED.search(made.stderr):
        raise Unreached(flags.mirror)
    if made.returncode != 0:
        print(f"mmdebstrap FAILED with exit code {made.returncode}:\n{made.stderr.strip()[-3000:]}")
        return 0, 1
    environment = copy_settings(root)
    mounts = copy_ccache(root, environment, flags.ccache) if flags.ccache else []
    run("git", "clone", "--quiet", "--depth=1", f"file://{TOP}", f"{root}{CHECKOUT}")
    if SHARED.is_dir():
        beside = f"{os.path.dirname(CHECKOUT)}/{SHARED.name}"
        os.makedirs(f"{root}{beside}")
        mounts.append((SHARED, beside))
    commands = {"tools/quickstart": "tools/quickstart", **OFFERS}
    if flags.command == "check":
        words = " ".join("'" + step.replace("'", "'\\''") + "'" for step in flags.steps)
        commands = {f"tools/check {words}": f"tools/check {words}"}
    passed = failed = 0
    for name, script in commands.items():
        log = []
        begin, before = time.monotonic(), processor_time()
        ok = in_root(root, mounts, environment, script, log)
        passed, failed = passed + ok, failed + (not ok)
        print(f"{name:24} {'ok' if ok else 'FAILED'} ({time.monotonic() - begin:.0f} s, "
              f"{processor_time() - before:.0f} s of processor time)", flush=True)
        lines = "".join(log).splitlines()
        for line in lines[-5:] if ok else lines[-100:]:
            print(f"  | {line}")
        if not ok and name.startswith("tools/"):
            break
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", metavar="DIR", help="make the root there, and leave it")
    parser.add_argument("--ccache", metavar="PROGRAM", help="use the compiler cache of this machine, by this program")
    parser.add_argument("--mirror", default=MIRROR, help=f"of Debian; {MIRROR} unless given")
    parser.add_argument("command", choices=("quickstart", "check"))
    parser.add_argument("steps", nargs="*", metavar="STEP")
    flags = parser.parse_args()
    if shutil.which("mmdebstrap") is None:
        print("skipped: mmdebstrap is not installed (tools/install-deps package)")
        return SKIPPED
    if os.geteuid() != 0:
        os.execvp("unshare", ["unshare", "--map-auto", "--map-root-user", "--mount", sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory(prefix="hlokit-root-") as scratch:
        os.chmod(scratch, 0o755)
        root = pathlib.Path(flags.keep).resolve() if flags.keep else pathlib.Path(scratch) / "root"
        try:
            passed, failed = trials(flags, root)
        except Unreached as mirror:
            print(f"skipped: {mirror} is not reached")
            return SKIPPED
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
