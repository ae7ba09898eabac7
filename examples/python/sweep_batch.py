#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Device time on a simulated TPU for several batch sizes: a dimension of a parameter, followed through the graph.

  sweep_batch.py MODULE OLD NEW,NEW,... DEVICE [PLOT.png]

OLD is the batch size of the module. The plot needs matplotlib.
"""

import sys

import hlokit


def main(path: str, old: str, sizes: str, device: str, plot: str = "") -> None:
    module = hlokit.load(path)
    rows = []
    for size in map(int, sizes.split(",")):
        resized = module.clone()
        if size != int(old):
            resized.run(f"resize{{batch={old}:{size}}}")
        report = hlokit.simulate(resized, device)
        seconds = report["device_time_us"] / 1e6
        rows.append((size, seconds))
        print(f"{size:6} {seconds * 1e6:12.2f} us on the device {seconds / size * 1e6:10.3f} us an example")
    if plot:
        from matplotlib import pyplot

        pyplot.plot([r[0] for r in rows], [r[1] / r[0] * 1e6 for r in rows], marker="o")
        pyplot.xlabel("batch size")
        pyplot.ylabel("us an example")
        pyplot.savefig(plot)


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    main(*sys.argv[1:])
