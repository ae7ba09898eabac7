# SPDX-License-Identifier: Apache-2.0
"""Profiles five steps of training with hlokit.torch's profiler, on a simulated TPU: torch_profile.py LOGDIR

Run by a Python with PyTorch and the package hlokit; xprof_tools.py --torch-profile opens the result.
"""
import sys

import torch

import hlokit.torch as ht
import hlokit.torch.profiler as xp


def main():
    device = ht.device()
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 16)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        with xp.Trace("forward"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    def batch():
        return torch.randn(64, 256).to(device), torch.randint(0, 16, (64,)).to(device)

    for _ in range(2):
        step(*batch())
        ht.mark_step()
    xp.start_trace(sys.argv[1], device="v5e")
    for number in range(5):
        with xp.StepTrace("train", step_num=number):
            step(*batch())
    xp.stop_trace()


main()
