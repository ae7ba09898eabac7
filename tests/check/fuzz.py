#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A short fuzzing run: every libFuzzer target of a directory, sharing the time.

  fuzz.py DIR [--seconds=60]

New inputs of a target are saved in build/fuzz/corpus/NAME, where the next run continues; an input that crashes is in
build/check and can be run again with NAME_replay. Ends with `N passed, N failed`.
"""
import argparse
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    sources = sorted((TOP / "tests/fuzz").glob("*_fuzz.cc"))
    (TOP / "build/check").mkdir(parents=True, exist_ok=True)
    passed = failed = 0
    for source in sources:
        name = source.stem.removesuffix("_fuzz")
        found = TOP / "build/fuzz/corpus" / name
        found.mkdir(parents=True, exist_ok=True)
        command = [options.folder / source.stem, found, TOP / "tests/golden"]
        kept, words = TOP / "tests/fuzz/corpus" / name, TOP / f"tests/fuzz/{name}.dict"
        if kept.is_dir():
            command.append(kept)
        command += [f"-artifact_prefix={TOP / 'build/check' / name}-", f"-max_total_time={options.seconds // len(sources) + 1}",
                    "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]
        if words.exists():
            command.append(f"-dict={words}")
        if subprocess.run(command, check=False).returncode == 0:
            passed += 1
        else:
            failed += 1
            print(f"FAILED: {name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
