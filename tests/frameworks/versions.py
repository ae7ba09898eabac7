#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries the newest releases of the frameworks that hlokit is tested with.

  tools/versions [PROGRAM...]         runs the programs of tests/frameworks (all, or these) with the newest releases on
                                      PyPI and prints what the newest and the tested releases gave
  tools/versions --list               prints the tested and the newest releases
  tools/versions --lock [NAME...]     writes tests/frameworks/locks anew from environments.tsv: of all environments, or
                                      of these. What is pinned there stays pinned: edit it first
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import environment as environments
import run

PLATFORM = "x86_64-manylinux_2_36"  # Debian 12


def resolved(name, interpreter, requirements):
    """Returns the text of a lock file for these requirements."""
    version = subprocess.run([interpreter, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                             capture_output=True, text=True, check=True).stdout.strip()
    uv = environments.ensure("locking")[1].with_name("uv")
    with tempfile.NamedTemporaryFile("w", suffix=".in") as file:
        file.write("\n".join(requirements) + "\n")
        file.flush()
        command = [uv, "pip", "compile", "--quiet", "--generate-hashes", "--no-annotate", "--no-header",
                   "--only-binary=:all:", f"--python-version={version}", f"--python-platform={PLATFORM}", file.name]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise SystemExit(f"{name}: uv finds no releases for {' '.join(requirements)}:\n{result.stderr}")
    return result.stdout


def interpreter_of(environment):
    interpreter = environments.find_interpreter(environment.pythons)
    if interpreter is None:
        raise environments.Unavailable(f"no Python 3.{' or 3.'.join(environment.pythons)}")
    return interpreter


def packages(environment):
    """The names of the packages that an environment is for."""
    return [re.split(r"[=<>]", requirement)[0] for requirement in environment.requires]


def write_locks(names):
    known = environments.read_environments()
    for name in names or known:
        environment = known[name]
        environment.lock.write_text(resolved(name, interpreter_of(environment), environment.requires + environment.also))
        print(f"{name}: " + " ".join(f"{p} {environment.locked_version(p)}" for p in packages(environment)))


def newest_lock(environment):
    return resolved(environment.name, interpreter_of(environment), packages(environment) + environment.also)


def list_versions():
    for environment in environments.read_environments().values():
        try:
            lock = newest_lock(environment)
        except environments.Unavailable as why:
            print(f"{environment.name:16} skipped: {why}")
            continue
        for package in packages(environment):
            print(f"{environment.name:16} {package:14} tested {environment.locked_version(package):10} "
                  f"newest {environments.version_in(lock, package)}")


def try_newest(programs):
    """Runs programs in temporary environments of the newest releases; returns how many broke."""
    known = environments.read_environments()
    broken = 0
    with tempfile.TemporaryDirectory(prefix="hlokit-versions-") as folder:
        for program in programs:
            environment = known[program.environment]
            try:
                lock = newest_lock(environment)
                lock_file = pathlib.Path(folder) / f"{environment.name}.txt"
                lock_file.write_text(lock)
                arguments = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "-r", lock_file]
                python = environments.make(pathlib.Path(folder) / environment.name, interpreter_of(environment), arguments)
            except environments.Unavailable as why:
                print(f"{program.name:24} skipped: {why}")
                continue
            newest = " ".join(f"{package} {environments.version_in(lock, package)}" for package in packages(environment))
            outcome = run.execute(program, environment, python, keep=False)
            before = run.recorded(program)
            print(f"{program.name:24} {newest}: {outcome.summary()}; tested {run.versions_text(environment)}: "
                  f"{before.summary() if before else 'not run here'}")
            for line in outcome.failures():
                print(f"  | {line}")
            broken += outcome.code != 0
    return broken


def main():
    parser = argparse.ArgumentParser(prog="tools/versions", usage=__doc__.split("\n\n", 1)[1])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--lock", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    known = environments.read_environments() if options.lock else run.read_programs()
    if unknown := [name for name in options.names if name not in known]:
        print(f"tools/versions: there is no `{unknown[0]}`; there are {', '.join(known)}", file=sys.stderr)
        return 2
    if options.lock:
        write_locks(options.names)
        return 0
    if options.list:
        list_versions()
        return 0
    return 1 if try_newest([known[name] for name in options.names or known]) else 0


if __name__ == "__main__":
    sys.exit(main())
