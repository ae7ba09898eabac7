# SPDX-License-Identifier: Apache-2.0
"""Arrays whose size the program finds, with XLA_EXPERIMENTAL set."""

import torch
import torch_xla

from torch_xla_cases.common import data, plain  # noqa: F401: the driver uses plain


def places_of_nonzeros():
    d = torch_xla.device()
    x = torch.tensor([[0, 1, 0], [2, 0, 3.0]], device=d)
    return [torch.nonzero(x).cpu(), torch.nonzero(torch.zeros(2, 2, device=d)).cpu(), torch.nonzero(
        torch.ones(2, 2, device=d)).cpu()]


def masked_elements():
    d = torch_xla.device()
    x = data(4, 5).to(d)
    return [torch.masked_select(x, x > 0).cpu(), torch.masked_select(x, x > 9).cpu()]


def computed_with():
    """Sums and products leave out what is beyond the size."""
    d = torch_xla.device()
    x = torch.tensor([3.0, 0, -2, 0, 7], device=d)
    places = torch.nonzero(x)
    return [(places * 2 + 1).cpu(), places.sum().cpu(), int(places.shape[0])]


PROGRAMS = [places_of_nonzeros, masked_elements, computed_with]
