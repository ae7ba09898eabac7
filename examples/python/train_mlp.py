#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a perceptron of two layers with Adam on the lazy tracer, and counts the graphs of its steps.

  train_mlp.py

Each of 30 steps is one graph, of which two are compiled: the first step makes Adam's state. Needs PyTorch.
"""

import torch

import hlokit.torch as ht


def main() -> None:
    torch.manual_seed(0)
    x, labels = torch.rand(16, 8).to(ht.device()), (torch.arange(16) % 4).to(ht.device())
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 4)
    ).to(ht.device())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)

    with ht.trace() as t:
        for step in range(30):
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            schedule.step()
            ht.mark_step()
            if step % 10 == 9:
                print(f"step {step + 1}: rate {schedule.get_last_lr()[0]:g}, loss {loss.item():.4f}")

        model.eval()
        with torch.no_grad():
            hits = (model(x).argmax(1) == labels).sum()
        print(f"{hits.item()} of 16 right")
    print("\n".join(t.graph_report().splitlines()[-2:]))


if __name__ == "__main__":
    main()
