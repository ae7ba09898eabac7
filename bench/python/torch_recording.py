# SPDX-License-Identifier: Apache-2.0
"""Cost of recording an op of PyTorch, beside PyTorch's own execution of it on the CPU on a tensor of 8x8, where nearly all of
its time is that of the call.

    PYTHONPATH=build/release/python VENV/bin/python bench/python/torch_recording.py [--check=RATIO] [--lines]

Each row: microseconds a call on the CPU and on the devices xla and tpu, the best of several interleaved rounds, and the
ratio of the larger to the CPU's. --check fails if the geometric mean of the ratios is larger.
"""

import argparse
import math
import sys
import time

import torch

import hlokit.torch as ht

ROUND = 500  # calls before a step clears the graph

CALLS = {
    "relu(x)": lambda x, w: torch.relu(x),
    "x + x": lambda x, w: torch.add(x, x),
    "x * 0.5": lambda x, w: torch.mul(x, 0.5),
    "mm(x, w)": lambda x, w: torch.mm(x, w),
    "addmm(x, x, w)": lambda x, w: torch.addmm(x, x, w),
    "x.view(4, 16)": lambda x, w: x.view(4, 16),
    "x.t()": lambda x, w: x.t(),
    "sum(x, 1)": lambda x, w: torch.sum(x, 1),
    "x.add_(w, alpha=-0.1)": lambda x, w: x.add_(w, alpha=-0.1),
    "softmax(x, -1)": lambda x, w: torch.softmax(x, -1),
    "sqrt(x)": lambda x, w: torch.sqrt(x),
    "addcdiv_": lambda x, w: x.addcdiv_(x, w, value=-0.1),
    "layer_norm(x)": lambda x, w: torch.nn.functional.layer_norm(x, (8,)),
    "cat([x, w])": lambda x, w: torch.cat([x, w]),
}


def microseconds(call, x, w, after):
    start = time.perf_counter()
    for _ in range(ROUND):
        call(x, w)
    elapsed = time.perf_counter() - start
    after()
    return elapsed / ROUND * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", type=float, help="largest geometric mean of the ratios")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--lines", action="store_true", help="with scopes and lines of the program")
    options = parser.parse_args()
    ht.configure(debug=options.lines)
    value = torch.rand(8, 8) + 0.5
    devices = {"cpu": lambda: None, "xla": ht.mark_step, "tpu": ht.mark_step}
    tensors = {device: (value.to(device), value.to(device)) for device in devices}
    ratios = []
    with torch.no_grad():
        for name, call in CALLS.items():
            best = dict.fromkeys(devices, math.inf)
            for _ in range(options.rounds):
                for device, after in devices.items():
                    best[device] = min(best[device], microseconds(call, *tensors[device], after))
            ratios.append(max(best["xla"], best["tpu"]) / best["cpu"])
            print(f"{name:24} cpu {best['cpu']:6.2f} us   xla {best['xla']:6.2f} us   tpu {best['tpu']:6.2f} us   {ratios[-1]:.2f}")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.2f}, largest {max(ratios):.2f}")
    return 1 if options.check is not None and mean > options.check else 0


if __name__ == "__main__":
    sys.exit(main())
