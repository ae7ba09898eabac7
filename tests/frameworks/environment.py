#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes virtual environments of environments.tsv and prints their Python interpreters.

  environment.py NAME...

The packages are those of locks/NAME.txt, with their hashes. An environment is made once and kept outside of the
checkout, in the directory HLOKIT_FRAMEWORKS or ~/.cache/hlokit/frameworks. Exit code 77 and a line that says why: one
cannot be made here, since no suitable Python is installed or PyPI is not reached.
"""
import argparse
import contextlib
import dataclasses
import fcntl
import glob
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
DEBIAN_PYTHON = "/usr/bin/python3"
# What pip prints when it gets no answer, before it says that it has found nothing.
UNREACHED = re.compile(r"Failed to establish a new connection|Temporary failure in name resolution|Name or service not known|"
                       r"ConnectTimeoutError|ReadTimeoutError|Max retries exceeded|Network is unreachable|ProxyError")


class Unavailable(Exception):
    """The environment cannot be made on this machine."""


@dataclasses.dataclass
class Environment:
    name: str
    pythons: list
    fallback: str
    requires: list
    also: list

    @property
    def lock(self):
        return FOLDER / "locks" / f"{self.name}.txt"

    def locked_version(self, package):
        return version_in(self.lock.read_text(), package)


def version_in(lock, package):
    """The version of a package in the text of a lock file, where names are normalized; None if it is not there."""
    name = re.sub(r"[-_.]+", "-", package).lower()
    found = re.search(rf"^{re.escape(name)}==(\S+)", lock, re.MULTILINE)
    return found[1] if found else None


def rows(table, columns):
    for line in table.read_text().splitlines():
        if line and not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != columns:
                raise SystemExit(f"{table.name}: {len(fields)} columns where there should be {columns}: {line}")
            yield fields


def read_environments():
    found = {}
    for name, pythons, fallback, requires in rows(FOLDER / "environments.tsv", 4):
        requires, _, also = requires.partition(" with ")
        found[name] = Environment(name, pythons.split(","), fallback, requires.split(), also.split())
    return found


def interpreters(version):
    """Candidates for an interpreter of this version, of which some may not run."""
    if version == "debian":
        return [DEBIAN_PYTHON]
    name = f"python3.{version}"
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    candidates = [os.path.join(folder, name) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    candidates += sorted(glob.glob(f"{pyenv}/versions/3.{version}.*/bin/{name}"))
    return [candidate for candidate in candidates if os.access(candidate, os.X_OK)]


def find_interpreter(versions):
    """Returns the first interpreter that runs and has what making an environment needs, or None."""
    for version in versions:
        for candidate in interpreters(version):
            # `python3.12` of pyenv may be a script that only says how to select a version.
            probe = subprocess.run([candidate, "-c", "import ensurepip, sys, venv; print(sys.version_info[1])"],
                                   capture_output=True, text=True, check=False)
            if probe.returncode == 0 and (version == "debian" or probe.stdout.strip() == version):
                return candidate
    return None


def cache_folder():
    named = os.environ.get("HLOKIT_FRAMEWORKS")
    if named:
        return pathlib.Path(named)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))) / "hlokit" / "frameworks"


@contextlib.contextmanager
def locked(path):
    """One process at a time makes an environment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install(python, arguments, log):
    """Runs pip; raises Unavailable where PyPI is not reached, and SystemExit with pip's words for any other failure."""
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", *arguments]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    log.write_text(result.stdout)
    if result.returncode == 0:
        return
    if UNREACHED.search(result.stdout):
        raise Unavailable("PyPI is not reached")
    raise SystemExit(f"pip failed ({log}):\n" + "\n".join(result.stdout.splitlines()[-20:]))


def make(folder, interpreter, arguments):
    """Makes an environment in a folder unless it is there; returns its Python."""
    python = folder / "bin/python"
    complete = folder / "complete"
    with locked(folder.with_name(folder.name + ".lock")):
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            print(f"making {folder}", file=sys.stderr, flush=True)
            subprocess.run([interpreter, "-m", "venv", folder], check=True, stdout=subprocess.DEVNULL)
            install(python, arguments, folder / "pip.log")
            complete.touch()
    return python


def ensure(name):
    """Returns the environment of this name, or its fallback, and the path of its Python."""
    environments = read_environments()
    if name not in environments:
        raise SystemExit(f"environment.py: no environment `{name}`; there are {', '.join(environments)}")
    environment = environments[name]
    interpreter = find_interpreter(environment.pythons)
    if interpreter is None and environment.fallback != "-":
        return ensure(environment.fallback)
    if interpreter is None:
        wanted = " or ".join("Debian's Python with python3-venv" if version == "debian" else f"Python 3.{version}"
                             for version in environment.pythons)
        raise Unavailable(f"no {wanted}")
    version = subprocess.run([interpreter, "-VV"], capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256((environment.lock.read_text() + interpreter + version).encode()).hexdigest()[:12]
    arguments = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "-r", environment.lock]
    return environment, make(cache_folder() / f"{name}-{digest}", interpreter, arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", metavar="NAME", nargs="+")
    code = 0
    for name in parser.parse_args().names:
        try:
            print(ensure(name)[1])
        except Unavailable as why:
            print(f"skipped: {name}: {why}")
            code = SKIPPED
    return code


if __name__ == "__main__":
    sys.exit(main())
