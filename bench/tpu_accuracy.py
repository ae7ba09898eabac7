#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Error of the simulated TPU relative to measured times.

Generates the program of each measured row (bench/tpu/rows.py), runs `hlo-run --timing-only` on it and prints measured
and predicted time with the signed error. The figures of a device are the same for all rows. With --leave-one-out each
row is also predicted with the fitted figures refitted to the other rows (bench/tpu/leave_one_out.py).

  bench/tpu_accuracy.py --data=DIR [--bin=build/release/bin] [--rows=REGEX] [--leave-one-out] [--markdown] [--fit]

DIR contains v6e_gemm_measured.csv, v6e_elementwise_measured.csv and v6e_llm_measured.csv. --markdown prints the table
of docs/tpu.md, --fit the figures that all rows together give. Exit code 1 if the error of a family exceeds its target.
"""
import argparse
import concurrent.futures
import functools
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tpu"))
import leave_one_out  # noqa: E402
import rows as table  # noqa: E402


class Bench:
    def __init__(self, arguments):
        self.binary = os.path.join(arguments.bin, "hlo-run")
        self.scale = [f"--scale={s}" for s in arguments.scale]
        self.texts = {}

    @functools.lru_cache(maxsize=None)
    def _run(self, text, flags):
        run = subprocess.run([self.binary, "-", "--timing-only", "--json", *self.scale, *flags], input=text, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(run.stderr)
        report = json.loads(run.stdout)
        return report["device_time_us"], {c["category"]: c["time_us"] for c in report["categories"]}

    def simulate(self, row, factors):
        if row not in self.texts:
            self.texts[row] = row.make()
        flags = (f"--device={row.device}", *row.flags, *(f"--scale={n}={f!r}" for n, f in sorted(factors.items())))
        total = 0
        for text in self.texts[row]:
            device, categories = self._run(text, flags)
            total += categories.get(row.category, 0) if row.category else device
        return total * row.scale + row.added

    def figures(self, device):
        name = device.split(":")[0]
        run = subprocess.run([self.binary, f"--print-device={name}"], capture_output=True, text=True, check=True)
        return leave_one_out.fitted_figures(run.stdout)


def mean(values):
    return sum(values) / len(values)


def percent(value, signed=False):
    return f"{100 * value:{'+' if signed else ''}.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--rows", default="")
    parser.add_argument("--scale", action="append", default=[])
    parser.add_argument("--leave-one-out", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--fit", action="store_true")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    rows = table.all_rows(arguments.data, arguments.rows)
    if not rows:
        parser.error(f"no row matches {arguments.rows}")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        predicted = dict(zip(rows, pool.map(lambda r: bench.simulate(r, {}), rows)))
    left_out = {}
    if arguments.leave_one_out or arguments.fit:
        for device in sorted({r.device.split(":")[0] for r in rows}):
            figures = bench.figures(device)
            of_device = [r for r in rows if r.device.split(":")[0] == device]
            fit = leave_one_out.Fit(of_device, figures, bench.simulate)
            if arguments.fit:
                deviations = fit.deviations()
                for name, factor in fit.factors().items():
                    print(f"{device} {name:32} {figures[name]:.4g} -> {figures[name] * factor:.4g} +-{100 * deviations[name]:.0f}%")
            for r in of_device if arguments.leave_one_out else []:
                # Rows that no figure was fitted to are predicted as they are.
                left_out[r] = fit.left_out(r) if r.label != "seen" and figures else predicted[r]
    if not arguments.markdown:
        print(f"{'family':14} {'row':26} {'':4} {'measured':>12} {'predicted':>12} {'error':>8}" + ("  left out" if left_out else ""))
        for r in rows:
            line = f"{r.family:14} {r.name:26} {r.label:4} {r.measured:12.3f} {predicted[r]:12.3f} {100 * (predicted[r] / r.measured - 1):+8.1f}"
            print(line + (f" {100 * (left_out[r] / r.measured - 1):+9.1f}" if left_out else "") + f" % of {r.measured:g} {r.unit}")
        print()
    worst = 0
    families = [f for f in table.FAMILIES if any(r.family == f for r in rows)]
    if arguments.markdown:
        print("| rows | | error | bias | left out | bias |\n|---|---|---|---|---|---|")
    total, total_left = [], []
    for family in families + ["all"]:
        members = [r for r in rows if family in (r.family, "all")]
        errors = [predicted[r] / r.measured - 1 for r in members]
        left = [left_out[r] / r.measured - 1 for r in members] if left_out else []
        title, target = table.FAMILIES.get(family, ("all rows", 8))
        label = "/".join(sorted({r.label for r in members}))
        cells = [percent(mean([abs(e) for e in errors])), percent(mean(errors), True)]
        cells += [percent(mean([abs(e) for e in left])), percent(mean(left), True)] if left else []
        if arguments.markdown:
            print(f"| {title} ({len(members)}) | {label if family != 'all' else ''} | {' | '.join(cells)} |")
        else:
            print(f"{title:46} {len(members):3} rows {label:14} error {cells[0]:>8} bias {cells[1]:>8}"
                  + (f"   left out {cells[2]:>8} bias {cells[3]:>8}" if left else "") + f"   target {target} %")
        worst |= mean([abs(e) for e in (left or errors)]) > target / 100
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
