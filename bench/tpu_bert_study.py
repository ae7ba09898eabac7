#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BERT-large on a TPU v3-8: the device's share of a published run.

Published (Hugging Face, PyTorch/XLA on Cloud TPU): three epochs of WikiText-103 in sequences of 512 on a v3-8, 178.4
minutes at batch 64 in f32, 106.4 at batch 128 in bf16, at about 1.0 and 1.2 s per step; both step times imply 228
thousand sequences per epoch. This study compiles and simulates the training step of the tracer's BERT-large, with a
core's share of the batch on each of the 8 cores, and the sum of the gradients over them, which does not overlap with
anything.

The remaining time is the host's: the step is recorded, looked up and called again each time, the loss is fetched, and
the device is idle meanwhile. That time should not depend on batch or type, since the graph is the same. It is taken
from the first run and checked on the second.

  bench/tpu_bert_study.py [--bin=build/release/bin] [--pipeline=PASSES]

Exit code 1 if a device time is not below the published one, or the ratio of the two runs is more than 15 % off.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tpu"))
import tool  # noqa: E402

SEQUENCES = 228_000
EPOCHS = 3
CORES = 8
RUNS = [("f32", 64, 178.4), ("bf16", 128, 106.4)]
PARAMETERS = 335_174_458  # of BERT-large with its heads


def sum_of_gradients(dtype):
    return f"""HloModule gradients, replica_count={CORES}
sum {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT c = {dtype}[] add(a, b)
}}
ENTRY main {{
  g = {dtype}[{PARAMETERS}] parameter(0)
  ROOT s = {dtype}[{PARAMETERS}] all-reduce(g), replica_groups={{}}, to_apply=sum
}}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--pipeline", default="tpu", help="as for hlo-run")
    arguments = parser.parse_args()
    tools = tool.Tools(arguments.bin, arguments.pipeline)
    rows = []
    print(f"{'':6} {'batch':>6} {'steps':>7} {'step s':>8} {'gradients s':>12} {'device min':>11} {'published min':>14} {'device share':>13}")
    for dtype, batch, published in RUNS:
        flags = (f"--batch={batch // CORES}", "--seq=512", f"--dtype={dtype}", "--optimizer=adamw")
        step = tools.simulate(tools.dump("bert-large", *flags), "v3")
        gradients = tools.simulate(sum_of_gradients(dtype), "v3:2x2")["device_time_us"] * 1e-6
        seconds = step["device_time_us"] * 1e-6 + gradients
        steps = EPOCHS * SEQUENCES / batch
        minutes = steps * seconds / 60
        rows.append((steps, seconds, published))
        print(f"{dtype:6} {batch:6} {steps:7.0f} {seconds - gradients:8.3f} {gradients:12.4f} {minutes:11.1f} {published:14.1f} {100 * minutes / published:11.1f} %")
    print()
    (steps1, device1, wall1), (steps2, device2, wall2) = rows
    host = wall1 * 60 / steps1 - device1
    second = wall2 * 60 / steps2 - device2
    print(f"host share of a step: {host:.3f} s in f32, {second:.3f} s in bf16")
    nodes = tools.nodes("bert-large", "--batch=8", "--seq=512", "--dtype=f32", "--optimizer=adamw")
    print(f"the step has {nodes} nodes to record: {1e6 * host / nodes:.0f} us each, Python and lookup included")
    predicted = steps2 * (device2 + host) / 60
    print(f"bf16 run with the host share of the f32 run: {predicted:.1f} min, published {wall2}, {100 * (predicted / wall2 - 1):+.1f} %")
    ratio = wall1 / wall2
    device_ratio = steps1 * device1 / (steps2 * device2)
    both_ratio = wall1 / predicted
    print(f"f32 to bf16: published {ratio:.3f}; device alone {device_ratio:.3f} ({100 * (device_ratio / ratio - 1):+.1f} %), "
          f"with the host share {both_ratio:.3f} ({100 * (both_ratio / ratio - 1):+.1f} %)")
    below = all(steps * device / 60 < wall for steps, device, wall in rows)
    print(f"device times below the published ones: {'yes' if below else 'no'}")
    return 0 if below and abs(both_ratio / ratio - 1) <= 0.15 else 1


if __name__ == "__main__":
    sys.exit(main())
