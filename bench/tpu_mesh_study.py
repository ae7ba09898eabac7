#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Published training runs on several chips, from one flag: the tracer's model over a mesh, partitioned and simulated.

  bench/tpu_mesh_study.py --data=DIR [--bin=build/release/bin] [--markdown]

For each run: its measured step time, that of the program of one device written by hand (bench/tpu/training.py), and that
of `ir-dump --mesh`, which hlo-run --device partitions, compiles and simulates. DIR as for bench/tpu_accuracy.py. Exit code
1 if the mean absolute error of the partitioned programs exceeds LIMIT.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tpu"))
import rows as table  # noqa: E402
from tool import Tools  # noqa: E402

LIMIT = 0.25

ADAM = ("--optimizer=adamw", "--autocast=bf16")
LLAMA_8B = ("--layers=32", "--hidden=4096", "--heads=32", "--kv-heads=8", "--ff=14336", "--vocab=128256", "--attention=splash", *ADAM)
QWEN_8B = ("--layers=36", "--hidden=4096", "--heads=32", "--kv-heads=8", "--ff=12288", "--vocab=151936", "--attention=splash", *ADAM)

# The row of bench/tpu/rows.py, the model, and its flags.
RUNS = [
    ("llama-3.1-8b v6e-8", "llama", (*LLAMA_8B, "--batch=24", "--seq=8192", "--mesh=fsdp:8")),
    ("qwen3-8b v6e-8 3x8192", "llama", (*QWEN_8B, "--batch=24", "--seq=8192", "--mesh=fsdp:8")),
    ("qwen3-8b v6e-8 12x2048", "llama", (*QWEN_8B, "--batch=96", "--seq=2048", "--mesh=fsdp:8")),
    ("v3 16 chips", "bert-large", ("--batch=448", "--seq=512", "--optimizer=lamb", "--autocast=bf16", "--mesh=data:32")),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    tools = Tools(arguments.bin)
    rows = {r.name: r for r in table.all_rows(arguments.data, "")}
    errors = []
    if arguments.markdown:
        print("| run | measured | by hand | error | `ir-dump --mesh` | error | HBM |\n|---|---|---|---|---|---|---|")
    for name, model, flags in RUNS:
        row = rows[name]
        by_hand = sum(tools.simulate(text, row.device)["device_time_us"] for text in row.make()) * row.scale
        report = tools.simulate(tools.dump(model, *flags), row.device)
        traced = report["device_time_us"] * row.scale
        errors.append(traced / row.measured - 1)
        cells = [f"{row.measured:.4g} {row.unit}", f"{by_hand:.4g}", f"{100 * (by_hand / row.measured - 1):+.1f} %", f"{traced:.4g}",
                 f"{100 * errors[-1]:+.1f} %", f"{report['memory']['peak_bytes'] / 2**30:.1f} GiB"]
        print(f"| {name} | {' | '.join(cells)} |" if arguments.markdown else "  ".join([f"{name:26}", *cells]))
    mean = sum(abs(e) for e in errors) / len(errors)
    print(f"mean absolute error {100 * mean:.1f} %, limit {100 * LIMIT:.0f} %", file=sys.stderr)
    return 1 if mean > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
