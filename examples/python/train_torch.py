#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a model of torchvision on the lazy tracer: losses, compilations with their causes, times on a simulated TPU.

  train_torch.py MODEL STEPS DEVICE [REPORT]

MODEL is a function of torchvision.models, such as squeezenet1_1. The last batch is smaller, as at the end of an epoch
that the batch size does not divide: it compiles another program. Needs PyTorch and torchvision.
"""

import sys


def main(name: str, steps: str, device: str, report: str = "") -> None:
    import torch
    import torchvision

    import hlokit.torch as ht

    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(num_classes=10).to(ht.device())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    sizes = [4] * (int(steps) - 1) + [2]
    batches = [(torch.randn(n, 3, 64, 64), torch.randint(0, 10, (n,))) for n in sizes]
    losses = []
    with ht.trace() as t:
        for images, labels in ht.MpDeviceLoader(batches, ht.device()):
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    for number, loss in enumerate(losses):
        print(f"step {number + 1}: loss {float(loss):.4f}")
    for text in ht.explain_recompiles():
        print(text)
    for (op, reason), calls in ht.fallbacks().items():
        print(f"on the CPU, {calls} times: {op}: {reason}")
    simulation = t.simulate(device)
    print(f"a step takes {simulation['step_time_us']:.0f} us on {device}, bound by {simulation['bound_by']}")
    if report:
        print("\n".join(simulation.report(report)))


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
