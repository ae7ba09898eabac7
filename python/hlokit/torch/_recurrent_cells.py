# SPDX-License-Identifier: Apache-2.0
"""Cells of LSTM and GRU, which PyTorch computes by one op on devices other than the host, and their derivatives, with the
workspace that it saves."""

from typing import Any, Optional

import torch

from ._decompositions import decomposes

Tensor = torch.Tensor


def _sum(first: Tensor, *others: Optional[Tensor]) -> Tensor:
    for other in others:
        if other is not None:
            first = first + other
    return first


@decomposes("_thnn_fused_lstm_cell")
def _lstm_cell(
    input_gates: Tensor, hidden_gates: Tensor, cx: Tensor, input_bias: Optional[Tensor] = None, hidden_bias: Optional[Tensor] = None
) -> Any:
    i, f, g, o = _sum(input_gates, hidden_gates, input_bias, hidden_bias).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


@decomposes("_thnn_fused_lstm_cell_backward_impl")
def _lstm_cell_backward(
    grad_hy: Optional[Tensor], grad_cy: Optional[Tensor], cx: Tensor, cy: Tensor, workspace: Tensor, has_bias: bool
) -> Any:
    if grad_hy is None and grad_cy is None:
        return None, None, None
    i, f, g, o = workspace.chunk(4, 1)
    tanh = cy.tanh()
    of_hy = torch.zeros_like(cy) if grad_hy is None else grad_hy
    of_cy = _sum(of_hy * o * (1 - tanh * tanh), grad_cy)
    gates = [of_cy * g * i * (1 - i), of_cy * cx * f * (1 - f), of_cy * i * (1 - g * g), of_hy * tanh * o * (1 - o)]
    of_gates = torch.cat(gates, 1)
    return of_gates, of_cy * f, of_gates.sum([0]) if has_bias else None


@decomposes("_thnn_fused_gru_cell")
def _gru_cell(
    input_gates: Tensor, hidden_gates: Tensor, hx: Tensor, input_bias: Optional[Tensor] = None, hidden_bias: Optional[Tensor] = None
) -> Any:
    ir, iz, new = _sum(input_gates, input_bias).chunk(3, 1)
    hr, hz, hn = _sum(hidden_gates, hidden_bias).chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (new + r * hn).tanh()
    return n + z * (hx - n), torch.cat([r, z, n, hx, hn], 1)


@decomposes("_thnn_fused_gru_cell_backward")
def _gru_cell_backward(grad_hy: Tensor, workspace: Tensor, has_bias: bool) -> Any:
    r, z, n, hx, hn = workspace.chunk(5, 1)
    of_z = grad_hy * (hx - n) * z * (1 - z)
    of_n = grad_hy * (1 - z) * (1 - n * n)
    of_r = of_n * hn * r * (1 - r)
    of_input = torch.cat([of_r, of_z, of_n], 1)
    of_hidden = torch.cat([of_r, of_z, of_n * r], 1)
    biases = (of_input.sum([0]), of_hidden.sum([0])) if has_bias else (None, None)
    return (of_input, of_hidden, grad_hy * z, *biases)
