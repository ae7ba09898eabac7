#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests which tests tools/test finds by a name, and what it builds for them: test_names.py BUILD."""
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]


def commands(build, *names):
    done = subprocess.run([f"{TOP}/tools/test", f"--build={build}", "--dry-run", *names], capture_output=True, text=True)
    return done.returncode, done.stdout.replace(build, "BUILD"), done.stderr


def main(build):
    # By name: what is built, and a part of what is run.
    wanted = {
        "passes/cse": ("hlo-opt", r"^passes/cse\.hlo$"),
        "cse.hlo": ("hlo-opt", r"^passes/cse\.hlo$"),
        "TiledLayout": ("ir_test", "--gtest_filter=TiledLayout.*"),
        "MainTest.Exceptions*": ("tools_test", "--gtest_filter=MainTest.Exceptions*"),
        "determinism": ("hlo-opt", "-R '^determinism$'"),
        "dimension numbers": ("dimension_numbers", "--count=3000"),
    }
    for name, (target, part) in wanted.items():
        code, output, errors = commands(build, name)
        assert code == 0, (name, errors)
        first, *others = output.splitlines()
        assert first.startswith("$ ninja -C BUILD ") and target in first.split(), (name, output)
        assert any(part in line for line in others), (name, output)
        assert len(first.split()) <= 4 + (9 if name == "determinism" else 1), (name, output)
    code, output, errors = commands(build, "passes/csse")
    assert (code, output) == (2, "") and "no test is called `passes/csse`" in errors, (code, output, errors)
    print(f"{len(wanted) + 1} names")


if __name__ == "__main__":
    main(sys.argv[1])
