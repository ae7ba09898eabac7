# SPDX-License-Identifier: Apache-2.0
"""Elementwise chains, reductions, normalizations, and what moves, sorts and draws elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .program import Program, array, function, normal


def _chain(x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return jnp.log1p(jax.nn.sigmoid(jnp.exp(jnp.tanh(x))))


def _torch_chain(x: Any) -> Any:
    import torch

    return torch.log1p(torch.sigmoid(torch.exp(torch.tanh(x))))


def _softmax(x: Any) -> Any:
    import jax

    return jax.nn.softmax(x)


def _torch_softmax(x: Any) -> Any:
    return x.softmax(-1)


def _layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    import jax

    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + offset


def _torch_layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    from torch.nn import functional

    return functional.layer_norm(x, x.shape[-1:], scale, offset)


def _cumsum(x: Any) -> Any:
    return x.cumsum(1)


def _sort(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sort(x)


def _torch_sort(x: Any) -> Any:
    return x.sort().values


def _top_k(x: Any) -> Any:
    import jax

    return jax.lax.top_k(x, 40)


def _torch_top_k(x: Any) -> Any:
    return tuple(x.topk(40))


def _rows_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    return array(random, (50_000, 256)), random.integers(0, 50_000, (32, 512)).astype(np.int32)


def _rows(table: Any, ids: Any) -> Any:
    return table[ids]


def _torch_rows(table: Any, ids: Any) -> Any:
    from torch.nn import functional

    return functional.embedding(ids, table)


def _segments_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    return array(random, (100_000, 64)), random.integers(0, 1000, 100_000).astype(np.int32)


def _segments(x: Any, ids: Any) -> Any:
    import jax

    return jax.ops.segment_sum(x, ids, 1000)


def _torch_segments(x: Any, ids: Any) -> Any:
    import torch

    return torch.zeros(1000, 64).index_add_(0, ids, x)


def _histogram_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    return (random.random(4_000_000, np.float32),)


def _histogram(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.zeros(256, jnp.int32).at[(x * 256).astype(jnp.int32)].add(1)


def _torch_histogram(x: Any) -> Any:
    import torch

    return torch.bincount((x * 256).int(), minlength=256)


def _random(seed: Any) -> Any:
    import jax

    return jax.random.normal(jax.random.wrap_key_data(seed), (4_000_000,))


def _torch_random(seed: Any) -> Any:
    import torch

    return torch.randn(4_000_000)


def _augmentation_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    return (random.integers(0, 256, (32, 256, 256, 3), np.uint8), random.integers(0, 33, (32, 2)).astype(np.int32),
            random.integers(0, 2, 32).astype(bool), 0.8 + 0.4 * random.random(32, np.float32))


def _augmentation(images: Any, offsets: Any, flips: Any, contrast: Any) -> Any:
    """Crops, flips, changes the contrast and normalizes each image by its own numbers."""
    import jax
    import jax.numpy as jnp

    def one(image: Any, offset: Any, flip: Any, factor: Any) -> Any:
        x = jax.lax.dynamic_slice(image, (offset[0], offset[1], 0), (224, 224, 3)).astype(jnp.float32) / 255
        x = jnp.where(flip, x[:, ::-1], x)
        return ((x - x.mean()) * factor + x.mean() - 0.45) / 0.225

    return jax.vmap(one)(images, offsets, flips, contrast)


def _torch_augmentation(images: Any, offsets: Any, flips: Any, contrast: Any) -> Any:
    import torch

    crops = [image[y:y + 224, x:x + 224] for image, (y, x) in zip(images, offsets.tolist())]
    x = torch.stack([crop.flip(1) if flip else crop for crop, flip in zip(crops, flips.tolist())]).float() / 255
    mean = x.mean((1, 2, 3), keepdim=True)
    return ((x - mean) * contrast[:, None, None, None] + mean - 0.45) / 0.225


def _fft(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.fft.fft(x)


def _torch_fft(x: Any) -> Any:
    import torch

    return torch.fft.fft(x)


def _transpose(x: Any) -> Any:
    return x.transpose(0, 2, 1)


def _torch_transpose(x: Any) -> Any:
    return x.transpose(1, 2).contiguous()


PROGRAMS = [
    Program("chain 16M (tanh, exp, sigmoid, log1p)", normal((16_000_000,)), _chain, function(_torch_chain)),
    Program("softmax 64x12x128x128", normal((64, 12, 128, 128)), _softmax, function(_torch_softmax)),
    Program("layer norm 8192x1024", normal((8192, 1024), (1024,), (1024,)), _layer_norm, function(_torch_layer_norm)),
    Program("reduce rows 4096x4096", normal((4096, 4096)), lambda x: x.sum(1), function(lambda x: x.sum(1))),
    Program("reduce columns 4096x4096", normal((4096, 4096)), lambda x: x.sum(0), function(lambda x: x.sum(0))),
    Program("reduce 16M", normal((16_000_000,)), lambda x: x.sum(), function(lambda x: x.sum())),
    Program("transpose 16x1024x1024", normal((16, 1024, 1024)), _transpose, function(_torch_transpose)),
    Program("cumsum 1024x4096", normal((1024, 4096)), _cumsum, function(_cumsum)),
    Program("sort 1M", normal((1_000_000,)), _sort, function(_torch_sort)),
    Program("top-k 128x32000", normal((128, 32_000)), _top_k, function(_torch_top_k)),
    Program("embedding 16k of 50k x 256", _rows_inputs, _rows, function(_torch_rows)),
    Program("segment sum 100k x 64", _segments_inputs, _segments, function(_torch_segments)),
    Program("histogram 4M", _histogram_inputs, _histogram, function(_torch_histogram)),
    Program("random normal 4M", lambda random: (np.array([1, 2], np.uint32),), _random, function(_torch_random),
            incomparable="other generators"),
    Program("image augmentation 32x256x256", _augmentation_inputs, _augmentation, function(_torch_augmentation)),
    Program("FFT 16x65536", normal((16, 65_536), dtype="complex64"), _fft, function(_torch_fft)),
]
