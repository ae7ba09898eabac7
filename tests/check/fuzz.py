#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A short fuzzing run: every libFuzzer target of a directory, sharing the time.

  fuzz.py DIR [--seconds=60]

New inputs of a target are saved in build/fuzz/corpus/NAME, where the next run continues, beside those of
tests/fuzz/corpus/NAME; an input that crashes is in build/check and can be run again with NAME_replay. To keep the fewest
inputs that cover as much (-set_cover_merge) and write them for tests/fuzz/corpus: tests/fuzz/corpus.py pack. Ends with `N passed, N failed`.
"""
import argparse
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(TOP / "tests/fuzz"))
import corpus  # noqa: E402  pylint: disable=wrong-import-position


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    targets = sorted(options.folder.glob("*_fuzz"))
    (TOP / "build/check").mkdir(parents=True, exist_ok=True)
    passed = failed = 0
    for target in targets:
        name = target.name.removesuffix("_fuzz")
        found = TOP / "build/fuzz/corpus" / name
        found.mkdir(parents=True, exist_ok=True)
        command = [target, found, TOP / "tests/golden"]
        for saved in (TOP / "tests/fuzz/corpus" / name).glob("*.inputs"):
            corpus.unpack(saved, found)
        words = TOP / f"tests/fuzz/{name}.dict"
        command += [f"-artifact_prefix={TOP / 'build/check' / name}-", f"-max_total_time={options.seconds // max(len(targets), 1) + 1}",
                    "-timeout=40", "-rss_limit_mb=2048", "-print_final_stats=1"]
        if words.exists():
            command.append(f"-dict={words}")
        if subprocess.run(command, check=False).returncode == 0:
            passed += 1
        else:
            failed += 1
            print(f"FAILED: {name}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
