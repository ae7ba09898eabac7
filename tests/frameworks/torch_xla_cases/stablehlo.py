# SPDX-License-Identifier: Apache-2.0
"""Training with programs that torch_xla hands over as StableHLO (XLA_STABLEHLO_COMPILE)."""

import torch
import torch_xla

from torch_xla_cases.common import batches, digits, plain  # noqa: F401: the driver uses plain
from torch_xla_cases.training import train


def digits_as_stablehlo():
    d = torch_xla.device()
    model = digits(3).to(d)
    steps = [(x.to(d), y.to(d)) for x, y in batches(4)]
    return [train(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), steps, torch_xla.sync), model.fc2.weight]


PROGRAMS = [digits_as_stablehlo]
