#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where each scope of a program stands under the roofline of a device: operations a byte, and the share of time.

  roofline.py MODULE PEAK_TFLOPS PEAK_GB_A_SECOND [PLOT.png]
"""

import collections
import sys

import hlokit


def main(path: str, tflops: str, bandwidth: str, plot: str = "") -> None:
    module = hlokit.load(path)
    flop_rate, byte_rate = float(tflops) * 1e12, float(bandwidth) * 1e9
    costs = module.costs()
    flops: collections.Counter = collections.Counter()
    bytes_: collections.Counter = collections.Counter()
    for i in module.entry:
        scope = i.metadata.scope or i.opcode
        flops[scope] += costs[i].flops
        bytes_[scope] += costs[i].bytes
    seconds = {s: max(flops[s] / flop_rate, bytes_[s] / byte_rate) for s in bytes_}
    total = sum(seconds.values()) or 1
    print(f"the roof bends at {flop_rate / byte_rate:.1f} operations a byte")
    for s in sorted(seconds, key=lambda s: (-seconds[s], s))[:20]:
        bound = "compute" if flops[s] / flop_rate > bytes_[s] / byte_rate else "memory"
        print(f"{seconds[s] / total:6.1%} {flops[s] / max(bytes_[s], 1):9.2f} flops/byte  {bound:8} {s}")
    if plot:
        from matplotlib import pyplot

        points = [s for s in seconds if flops[s] and bytes_[s]]
        x = [flops[s] / bytes_[s] for s in points]
        pyplot.loglog(x, [min(flop_rate, byte_rate * i) for i in x], "o")
        pyplot.xlabel("operations a byte")
        pyplot.ylabel("operations a second")
        pyplot.savefig(plot)


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
