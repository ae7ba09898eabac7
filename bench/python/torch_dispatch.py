# SPDX-License-Identifier: Apache-2.0
"""Cost of recording an op of PyTorch, beside a __torch_dispatch__ handler that does nothing.

    PYTHONPATH=build/release/python /usr/bin/python3 bench/python/torch_dispatch.py [--check=MICROSECONDS]

Each row: microseconds a call with the empty handler, which returns its first argument, and with ours; the best of
several rounds. --check fails if the average difference is larger.
"""

import argparse
import sys
import time

import torch

import hlokit.torch as ht

ROUND = 500  # calls before a step clears the graph


class Empty(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return empty_like(args[0]) if func in VIEWS else args[0]


def empty_like(value):
    return torch.Tensor._make_wrapper_subclass(Empty, tuple(value.shape), dtype=value.dtype, device=torch.device("lazy", 0))


# Their results must be new tensors.
VIEWS = {torch.ops.aten.view.default, torch.ops.aten.t.default}

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
    "softmax(x, -1)": lambda x, w: torch._softmax(x, -1, False),
    "sqrt(x)": lambda x, w: torch.sqrt(x),
    "addcdiv_": lambda x, w: x.addcdiv_(x, w, value=-0.1),
}


def microseconds(call, x, w, rounds, after):
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(ROUND):
            call(x, w)
        best = min(best, (time.perf_counter() - start) / ROUND)
        after()
    return best * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", type=float, help="largest average difference")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-debug", action="store_true", help="without scopes and lines")
    options = parser.parse_args()
    ht.configure(debug=not options.no_debug)
    value = torch.rand(8, 8) + 0.5
    ours = value.to(ht.device()), value.to(ht.device())
    empty = empty_like(value), empty_like(value)
    differences = []
    with torch.no_grad():
        for name, call in CALLS.items():
            nothing = microseconds(call, *empty, options.rounds, lambda: None)
            recorded = microseconds(call, *ours, options.rounds, ht.mark_step)
            differences.append(recorded - nothing)
            print(f"{name:24} empty {nothing:6.2f} us   recorded {recorded:6.2f} us   difference {differences[-1]:6.2f} us")
    average = sum(differences) / len(differences)
    print(f"average difference {average:.2f} us, largest {max(differences):.2f} us")
    return 1 if options.check is not None and average > options.check else 0


if __name__ == "__main__":
    sys.exit(main())
