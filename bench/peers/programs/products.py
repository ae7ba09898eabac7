# SPDX-License-Identifier: Apache-2.0
"""Products and convolutions, of floats, of few bits, of sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .program import BFLOAT16, Program, array, function, normal


def _matmul(x: Any, y: Any) -> Any:
    return x @ y


def _convolution(x: Any, w: Any, rank: int, padding: int, groups: int = 1) -> Any:
    import jax

    spatial = "DHW"[3 - rank:]
    return jax.lax.conv_general_dilated(
        x, w, (1,) * rank, [(padding, padding)] * rank, feature_group_count=groups,
        dimension_numbers=("NC" + spatial, "OI" + spatial, "NC" + spatial))


def _torch_convolution(rank: int, padding: int, groups: int = 1) -> Any:
    def run(x: Any, w: Any) -> Any:
        from torch.nn import functional

        return getattr(functional, f"conv{rank}d")(x, w, padding=padding, groups=groups)

    return function(run)


def _int8_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    return (random.integers(-127, 128, (256, 1024), np.int8), random.integers(-127, 128, (1024, 1024), np.int8),
            random.random(1024, np.float32))


def _int8(x: Any, w: Any, scales: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return jax.lax.dot(x, w, preferred_element_type=jnp.int32).astype(jnp.float32) * scales


def _torch_int8(x: Any, w: Any, scales: Any) -> Any:
    import torch

    return torch._int_mm(x, w).float() * scales


def _int4_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    """Activations, two weights in each byte, a scale for each 128 weights of a column."""
    return (array(random, (8, 2048)), random.integers(0, 256, (1024, 2048), np.uint8),
            random.random((16, 2048), np.float32) * np.float32(0.01))


def _unpacked(packed: Any, scales: Any, stack: Any, cast: Any) -> Any:
    low, high = cast(packed & 15) - 8, cast(packed >> 4) - 8
    weights = stack(low, high).reshape(16, 128, 2048)
    return (weights * scales[:, None, :]).reshape(2048, 2048)


def _int4(x: Any, packed: Any, scales: Any) -> Any:
    import jax.numpy as jnp

    return x @ _unpacked(packed, scales, lambda a, b: jnp.stack([a, b], 1), lambda a: a.astype(jnp.float32))


def _torch_int4(x: Any, packed: Any, scales: Any) -> Any:
    import torch

    return x @ _unpacked(packed, scales, lambda a, b: torch.stack([a, b], 1), lambda a: a.float())


SPARSE_ROWS, SPARSE_NONZEROS = 20_000, 400_000


def _sparse_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    rows = np.sort(random.integers(0, SPARSE_ROWS, SPARSE_NONZEROS)).astype(np.int32)
    columns = random.integers(0, SPARSE_ROWS, SPARSE_NONZEROS).astype(np.int32)
    return rows, columns, array(random, (SPARSE_NONZEROS,)), array(random, (SPARSE_ROWS, 32))


def _sparse(rows: Any, columns: Any, values: Any, dense: Any) -> Any:
    import jax

    return jax.ops.segment_sum(values[:, None] * dense[columns], rows, SPARSE_ROWS, indices_are_sorted=True)


def _torch_sparse(rows: Any, columns: Any, values: Any, dense: Any) -> Any:
    import torch

    starts = torch.searchsorted(rows, torch.arange(SPARSE_ROWS + 1, dtype=rows.dtype))
    return torch.sparse_csr_tensor(starts, columns, values, (SPARSE_ROWS, SPARSE_ROWS)) @ dense


PROGRAMS = [
    Program("dot f32 1024", normal((1024, 1024), (1024, 1024)), _matmul, function(_matmul)),
    Program("dot bf16 1024", normal((1024, 1024), (1024, 1024), dtype=BFLOAT16), _matmul, function(_matmul), 2e-2),
    Program("batched dot 96x128x64", normal((96, 128, 64), (96, 64, 128)), _matmul, function(_matmul)),
    Program("matrix by vector 4096", normal((1, 4096), (4096, 4096)), _matmul, function(_matmul)),
    Program("dot int8 256x1024x1024", _int8_inputs, _int8, function(_torch_int8)),
    Program("dot int4 weights 8x2048x2048", _int4_inputs, _int4, function(_torch_int4)),
    Program("sparse matrix 400k x 32", _sparse_inputs, _sparse, function(_torch_sparse)),
    Program("convolution 3x3 8x64x56x56", normal((8, 64, 56, 56), (64, 64, 3, 3)),
            lambda x, w: _convolution(x, w, 2, 1), _torch_convolution(2, 1)),
    Program("convolution depthwise 8x128x56x56", normal((8, 128, 56, 56), (128, 1, 3, 3)),
            lambda x, w: _convolution(x, w, 2, 1, 128), _torch_convolution(2, 1, 128)),
    Program("convolution 1-D 8x64x4096", normal((8, 64, 4096), (64, 64, 5)),
            lambda x, w: _convolution(x, w, 1, 2), _torch_convolution(1, 2)),
    Program("convolution 3-D 1x16x32x64x64", normal((1, 16, 32, 64, 64), (16, 16, 3, 3, 3)),
            lambda x, w: _convolution(x, w, 3, 1), _torch_convolution(3, 1)),
]
