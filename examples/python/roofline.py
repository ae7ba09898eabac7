#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where each scope of a program stands under the roofline of a simulated device: operations a byte of its memory (HBM),
the rate that it reaches, and its share of the time.

  roofline.py MODULE DEVICE [PLOT.png]

The plot needs matplotlib.
"""

import collections
import sys

import hlokit


def main(path: str, device: str, plot: str = "") -> None:
    report = hlokit.simulate(hlokit.load(path), device)
    flops: collections.Counter = collections.Counter()
    bytes_: collections.Counter = collections.Counter()
    seconds: collections.Counter = collections.Counter()
    for op in report["ops"]:
        scope = op["scope"] or op["name"]
        flops[scope] += op["flops"]
        bytes_[scope] += op["hbm_bytes"]
        seconds[scope] += op["time_us"] / 1e6
    flop_rate, byte_rate = report["peaks"]["bf16_flops_per_second"], report["peaks"]["hbm_bytes_per_second"]
    total = sum(seconds.values()) or 1
    print(f"the roof bends at {flop_rate / byte_rate:.1f} operations a byte")
    for s in sorted(seconds, key=lambda s: (-seconds[s], s))[:20]:
        intensity = flops[s] / bytes_[s] if bytes_[s] else float("inf")
        roof = min(flop_rate, byte_rate * intensity)
        reached = flops[s] / seconds[s] / roof if seconds[s] and roof else 0
        bound = "compute" if intensity > flop_rate / byte_rate else "memory"
        print(f"{seconds[s] / total:6.1%} {intensity:9.2f} flops/byte {reached:6.1%} of the roof  {bound:8} {s}")
    if plot:
        from matplotlib import pyplot

        points = [s for s in seconds if flops[s] and bytes_[s] and seconds[s]]
        x = [flops[s] / bytes_[s] for s in points]
        pyplot.loglog(x, [flops[s] / seconds[s] for s in points], "o")
        bend = flop_rate / byte_rate
        roof_x = [min([*x, bend]) / 2, bend, max([*x, bend]) * 2]
        pyplot.loglog(roof_x, [min(flop_rate, byte_rate * i) for i in roof_x], "-")
        for s, i in zip(points, x):
            pyplot.annotate(s, (i, flops[s] / seconds[s]), fontsize=7)
        pyplot.xlabel("operations a byte of HBM")
        pyplot.ylabel("operations a second")
        pyplot.title(f"{report['module']} on {report['device']}")
        pyplot.savefig(plot, dpi=150)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
