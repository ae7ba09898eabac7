#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares portable artifacts of StableHLO with the text of the same programs.

  portable_artifacts.py BIN DIR [--damaged=COUNT] [--seed=N]

BIN contains hlo-translate, hlo-inspect and hlo-run. DIR holds NAME.mlir.bc and NAME.mlir. An artifact must print as its text
does, without verification, as some of the texts name meshes that they do not define. With a function `main` it must also
give the same HLO and the same results. --damaged: so many copies with changed bytes or without their end are read too,
which must end with exit code 0 or 1. Ends with `N passed, N failed`.
"""
import argparse
import pathlib
import random
import subprocess
import sys


def call(*command, data=None):
    done = subprocess.run([str(word) for word in command], input=data, capture_output=True, check=False, timeout=300)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def compare(bin_dir, artifact):
    """Why an artifact is not what its text says; "" if it is."""
    text = artifact.with_suffix("")
    for command in (["hlo-translate", "--no-verify", "--to=stablehlo"],
                    ["hlo-translate", "--no-verify", "--to=stablehlo", "--generic"]):
        tool = [bin_dir / command[0], *command[1:]]
        code, found, errors = call(*tool, artifact)
        if code != 0:
            return "rejected: " + (errors.splitlines() or ["?"])[0]
        wanted = call(*tool, text)[1]
        if "--generic" in command:
            # Attributes with default values are in the generic form where the text has them: only the artifact's own
            # text must be stable.
            wanted = call(*tool, "-", data=found)[1]
        if found != wanted:
            differ = [(a, b) for a, b in zip(found.splitlines(), wanted.splitlines()) if a != b]
            return "prints otherwise: " + (str(differ[0]) if differ else "the number of lines")
    if "@main(" in text.read_text():
        # The fingerprint without metadata: an artifact may have locations that its text has not.
        hashes = [call(bin_dir / "hlo-inspect", "hash", path)[1].split() for path in (artifact, text)]
        if not hashes[0] or hashes[0][0] != hashes[1][0]:
            return "gives other HLO"
        results = [call(bin_dir / "hlo-run", "--seed=1", path) for path in (artifact, text)]
        if results[0][0] != 0 or results[0][1] != results[1][1]:
            return "gives other results"
    return ""


def damaged(data, generator):
    copy = bytearray(data)
    for _ in range(generator.choice((1, 1, 2, 5))):
        copy[generator.randrange(4, len(copy))] = generator.randrange(256)
    return bytes(copy[:generator.randrange(len(copy))] if generator.random() < 0.1 else copy)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--damaged", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    passed = failed = 0
    artifacts = sorted(options.dir.glob("*.mlir.bc"))
    for artifact in artifacts:
        why = compare(options.bin, artifact)
        passed += not why
        failed += bool(why)
        if why:
            print(f"{artifact.name}: {why}")
    generator = random.Random(options.seed)
    for i in range(options.damaged):
        artifact = generator.choice(artifacts)
        data = damaged(artifact.read_bytes(), generator)
        code = call(options.bin / "hlo-translate", "--to=stablehlo", "-", data=data)[0]
        passed += code in (0, 1)
        if code not in (0, 1):
            failed += 1
            print(f"{artifact.name}, damaged copy {i} of seed {options.seed}: exit code {code}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not artifacts else 0


if __name__ == "__main__":
    sys.exit(main())
