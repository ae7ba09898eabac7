# SPDX-License-Identifier: Apache-2.0
"""What the programs share: answers as plain values, data, small models."""

import numpy as np
import torch


def plain(value: object) -> object:
    """Returns tensors as arrays, in any nesting."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        if value.dtype in (torch.bfloat16, torch.float16) or value.dtype.itemsize == 1 and value.is_floating_point():
            return value.to(torch.float32).numpy()
        return value.numpy()
    if isinstance(value, dict):
        return {key: plain(element) for key, element in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    if isinstance(value, (np.generic,)):
        return value.item()
    return value


def data(*shape: int, seed: int = 0) -> torch.Tensor:
    """Returns values of a normal distribution, made on the host: the same for each device."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Digits(torch.nn.Module):
    """A small network of convolutions for images of 1 x 16 x 16."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.conv2 = torch.nn.Conv2d(8, 16, 3, stride=2)
        self.fc1 = torch.nn.Linear(16 * 7 * 7, 32)
        self.fc2 = torch.nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.conv1(x)))
        x = torch.relu(self.conv2(x)).flatten(1)
        return torch.log_softmax(self.fc2(torch.relu(self.fc1(x))), dim=1)


def digits(seed: int = 0) -> Digits:
    """Returns the network with the parameters of a seed."""
    torch.manual_seed(seed)
    return Digits()


def batches(count: int, size: int = 8) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Returns images with labels."""
    labels = torch.Generator().manual_seed(1)
    return [(data(size, 1, 16, 16, seed=i), torch.randint(0, 10, (size,), generator=labels)) for i in range(count)]


def mlp(seed: int = 0, width: int = 16) -> torch.nn.Sequential:
    """Returns a network of three layers with the parameters of a seed."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.GELU(), torch.nn.Linear(width, width),
                               torch.nn.Tanh(), torch.nn.Linear(width, 4))
