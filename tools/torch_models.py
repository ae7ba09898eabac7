#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains models for five steps through `ir-dump --model ... --expect` and compares with recorded metrics.

  tools/torch_models.py FOLDER [--bin build/release/bin/ir-dump] [--only REGEX] [--dtype f64]

FOLDER holds NAME.model (sizes and optimizer of the model) and NAME.expect (its metrics). Parameters start with deterministic
pseudo-random values. Exit code 1 if a model differs.
"""
import argparse
import pathlib
import re
import subprocess
import sys


def flags(name, text, sizes):
    """Returns the flags of ir-dump for the model of a .model file, whose sizes may be in another file."""
    out = {"model": name, "steps": "5", "init": "hash" if "v the hash of" in text else "sine"}
    optimizer = re.search(r"^optimizer: (\w+) (.*)$", text, re.M)
    out["optimizer"] = optimizer.group(1).lower()
    for key in ("lr", "momentum", "weight_decay", "eps"):
        found = re.search(rf"\b{key}=([\d.e+-]+)", optimizer.group(2))
        if found:
            out[key.replace("_", "-")] = found.group(1)
    out["gain"] = re.search(r"^gain: c = ([\d.]+)", text, re.M).group(1)
    shape = re.search(r"^  %(?:x|ids): \w+\[([\d,]+)\] = input", text, re.M).group(1).split(",")
    out["batch"] = shape[0]
    if name == "mlp":
        out["image"] = str(int(int(shape[1]) ** 0.5))
    elif len(shape) == 4:
        out["image"] = shape[3]
    else:
        out["seq"] = shape[1]
    if "seq" not in out:
        out["classes"] = "10"
    summary = re.search(r"^summary: (.*)$", sizes, re.M).group(1)
    for key, pattern in (
        ("vocab", r"vocab (\d+)"), ("hidden", r"\bd (\d+)"), ("heads", r"(\d+) (?:query )?heads"), ("layers", r"(\d+) layers"),
        ("ff", r"\bff (\d+)"), ("patch", r"patch (\d+)"), ("kv-heads", r"(\d+) key/value heads"),
    ):
        found = re.search(pattern, summary)
        if found:
            out[key] = found.group(1)
    return [f"--{k}={v}" for k, v in out.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--bin", default="build/release/bin/ir-dump")
    parser.add_argument("--only", default="")
    parser.add_argument("--dtype", default="f32", help="f64 tells an error of a derivative from one of rounding")
    parser.add_argument("--engine", default="exact", help="rounds as the tolerances allow; of the fast one 15 of 16 models do")
    options = parser.parse_args()
    right = total = 0
    for path in sorted(options.folder.glob("*.model")):
        name = path.stem
        if not re.search(options.only, name):
            continue
        text = path.read_text()
        total += 1
        model = name.removesuffix("_sine")
        sizes = (options.folder / (model + ".model")).read_text()
        command = [options.bin] + flags(model, text, sizes) + [f"--dtype={options.dtype}", f"--engine={options.engine}", f"--expect={path.with_suffix('.expect')}"]
        result = subprocess.run(command, capture_output=True, text=True)
        right += result.returncode == 0
        print(result.stdout.strip() or name, result.stderr.strip(), flush=True)
    print(f"{right} of {total} models")
    return 0 if right == total else 1


if __name__ == "__main__":
    sys.exit(main())
