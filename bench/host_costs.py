#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the modeled times of the host with measured CPU times: host_costs.py --bin=FOLDER [--runs=N]

For each model the time of each phase in a step under ir-dump --host-times=modeled, and the median of N runs with measured. Run it
on a quiet machine; the unit costs of simulator/export/host_costs.h are fitted to it.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

MODELS = [
    ["--model=mlp", "--batch=16", "--hidden=32"],
    ["--model=bert-base", "--batch=2", "--seq=16"],
    ["--model=resnet50", "--image=32", "--batch=2"],
    ["--model=llama", "--layers=8", "--hidden=256", "--heads=4", "--seq=16"],
    ["--model=gpt2", "--seq=16"],
    ["--model=vit", "--optimizer=adam"],
]


def phases(tool, model, times, folder):
    subprocess.run([tool, *model, "--steps=10", "--device=v5e", "--host-times=" + times, "--report=" + folder], check=True)
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
        report = json.load(file)
    return {phase["phase"]: phase["time_per_step_us"] for phase in report["host"]["phases"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--runs", type=int, default=9)
    flags = parser.parse_args()
    tool = os.path.join(flags.bin, "ir-dump")
    print(f"{'model':20} {'phase':20} {'modeled us':>12} {'measured us':>12} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            modeled = phases(tool, model, "modeled", folder)
            measured = {}
            for _ in range(flags.runs):
                for phase, time in phases(tool, model, "measured", folder).items():
                    measured.setdefault(phase, []).append(time)
            for phase, time in modeled.items():
                median = statistics.median(measured.get(phase, [0]))
                ratio = f"{time / median:7.2f}" if median > 0 else "      -"
                print(f"{model[0][8:]:20} {phase:20} {time:12.1f} {median:12.1f} {ratio}")


if __name__ == "__main__":
    main()
