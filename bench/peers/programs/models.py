# SPDX-License-Identifier: Apache-2.0
"""Attention, layers and models, forward and in training. Parameters are lists, in the order in which they are used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .program import BFLOAT16, Program, array, function, jax_training, normal, training

HIDDEN, HEADS, VOCABULARY, TOKENS = 768, 12, 50257, 128


def _take(parameters: Any) -> Any:
    """Gives the next n parameters of a list with each call."""
    iterator = iter(parameters)
    return lambda n: [next(iterator) for _ in range(n)]


# --- transformers ---------------------------------------------------------------------------------------------------


def _block_parameters(random: np.random.Generator, dtype: str = "float32") -> list[Any]:
    h = HIDDEN
    shapes = [(h,), (h,), (h, 3 * h), (3 * h,), (h, h), (h,), (h,), (h,), (h, 4 * h), (4 * h,), (4 * h, h), (h,)]
    return [array(random, s, 0.02, dtype, mean=float(k in (0, 6))) for k, s in enumerate(shapes)]


def _norm(x: Any, scale: Any, offset: Any) -> Any:
    import jax
    import jax.numpy as jnp

    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    variance = ((wide - mean) ** 2).mean(-1, keepdims=True)
    return ((wide - mean) * jax.lax.rsqrt(variance + 1e-5)).astype(x.dtype) * scale + offset


def _block(x: Any, take: Any, causal: bool) -> Any:
    import jax
    import jax.numpy as jnp

    batch, tokens, hidden = x.shape
    g1, b1, w_qkv, b_qkv, w_o, b_o, g2, b2, w_1, b_1, w_2, b_2 = take(12)
    q, k, v = (p.reshape(batch, tokens, HEADS, -1) for p in jnp.split(_norm(x, g1, b1) @ w_qkv + b_qkv, 3, -1))
    a = jax.nn.dot_product_attention(q, k, v, is_causal=causal)
    x = x + a.reshape(batch, tokens, hidden) @ w_o + b_o
    return x + jax.nn.gelu(_norm(x, g2, b2) @ w_1 + b_1) @ w_2 + b_2


def _torch_block(x: Any, take: Any, causal: bool) -> Any:
    from torch.nn import functional as f

    batch, tokens, hidden = x.shape
    g1, b1, w_qkv, b_qkv, w_o, b_o, g2, b2, w_1, b_1, w_2, b_2 = take(12)
    parts = (f.layer_norm(x, (hidden,), g1, b1) @ w_qkv + b_qkv).split(hidden, -1)
    q, k, v = (p.view(batch, tokens, HEADS, -1).transpose(1, 2) for p in parts)
    a = f.scaled_dot_product_attention(q, k, v, is_causal=causal)
    x = x + a.transpose(1, 2).reshape(batch, tokens, hidden) @ w_o + b_o
    return x + f.gelu(f.layer_norm(x, (hidden,), g2, b2) @ w_1 + b_1, approximate="tanh") @ w_2 + b_2


def _encoder_inputs(dtype: str) -> Any:
    return lambda random: (_block_parameters(random, dtype), array(random, (8, TOKENS, HIDDEN), 1, dtype))


def _encoder(parameters: Any, x: Any) -> Any:
    return _block(x, _take(parameters), causal=False)


def _torch_encoder(parameters: Any, x: Any) -> Any:
    return _torch_block(x, _take(parameters), causal=False)


def _gpt_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    parameters = [array(random, (VOCABULARY, HIDDEN), 0.02), array(random, (TOKENS, HIDDEN), 0.02)]
    for _ in range(12):
        parameters += _block_parameters(random)
    parameters += [np.ones(HIDDEN, np.float32), np.zeros(HIDDEN, np.float32)]
    return parameters, random.integers(0, VOCABULARY, (2, TOKENS)).astype(np.int32)


def _gpt(parameters: Any, ids: Any) -> Any:
    take = _take(parameters)
    table, positions = take(2)
    x = table[ids] + positions
    for _ in range(12):
        x = _block(x, take, causal=True)
    return _norm(x, *take(2)) @ table.T


def _torch_gpt(parameters: Any, ids: Any) -> Any:
    from torch.nn import functional as f

    take = _take(parameters)
    table, positions = take(2)
    x = f.embedding(ids, table) + positions
    for _ in range(12):
        x = _torch_block(x, take, causal=True)
    return f.layer_norm(x, (HIDDEN,), *take(2)) @ table.T


def _gpt_loss(parameters: Any, ids: Any) -> Any:
    import jax
    import jax.numpy as jnp

    logs = jax.nn.log_softmax(_gpt(parameters, ids)[:, :-1])
    return -jnp.take_along_axis(logs, ids[:, 1:, None], -1).mean()


def _torch_gpt_loss(parameters: Any, ids: Any) -> Any:
    from torch.nn import functional as f

    logits = _torch_gpt(parameters, ids)[:, :-1]
    return f.cross_entropy(logits.reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1).long())


def _attention(q: Any, k: Any, v: Any) -> Any:
    import jax

    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def _torch_attention(q: Any, k: Any, v: Any) -> Any:
    from torch.nn import functional as f

    q, k, v = (p.transpose(1, 2) for p in (q, k, v))
    return f.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)


# Decoding: one token of 8 sequences against a cache of 1,024 positions, 700 of which are written.
def _decode_inputs(dtype: str) -> Any:
    def inputs(random: np.random.Generator) -> tuple[Any, ...]:
        parameters = [p for _ in range(4) for p in _block_parameters(random, dtype)]
        caches = [array(random, (8, 1024, HEADS, 64), 1, dtype) for _ in range(8)]
        return parameters, caches, array(random, (8, HIDDEN), 1, dtype), np.asarray(700, np.int32)

    return inputs


def _decode(parameters: Any, caches: Any, x: Any, position: Any) -> Any:
    import jax
    import jax.numpy as jnp

    take, cache_of = _take(parameters), _take(caches)
    seen = jnp.arange(1024) <= position
    written = []
    for _ in range(4):
        g1, b1, w_qkv, b_qkv, w_o, b_o, g2, b2, w_1, b_1, w_2, b_2 = take(12)
        q, k, v = (p.reshape(8, 1, HEADS, 64) for p in jnp.split(_norm(x, g1, b1) @ w_qkv + b_qkv, 3, -1))
        keys, values = (jax.lax.dynamic_update_slice(c, new, (0, position, 0, 0))
                        for c, new in zip(cache_of(2), (k, v)))
        written += [keys, values]
        scores = jnp.einsum("bqhd,bkhd->bhk", q, keys, preferred_element_type=jnp.float32) / 8
        weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)).astype(x.dtype)
        x = x + jnp.einsum("bhk,bkhd->bhd", weights, values).reshape(8, HIDDEN) @ w_o + b_o
        x = x + jax.nn.gelu(_norm(x, g2, b2) @ w_1 + b_1) @ w_2 + b_2
    return x, written


def _torch_decode(parameters: Any, caches: Any, x: Any, position: Any) -> Any:
    import torch
    from torch.nn import functional as f

    take, cache_of = _take(parameters), _take(caches)
    seen = torch.arange(1024) <= position
    index = position.reshape(1)
    for _ in range(4):
        g1, b1, w_qkv, b_qkv, w_o, b_o, g2, b2, w_1, b_1, w_2, b_2 = take(12)
        parts = (f.layer_norm(x, (HIDDEN,), g1, b1) @ w_qkv + b_qkv).split(HIDDEN, -1)
        q, k, v = (p.view(8, 1, HEADS, 64) for p in parts)
        keys, values = (c.index_copy_(1, index, new) for c, new in zip(cache_of(2), (k, v)))  # as a cache does: in place
        a = f.scaled_dot_product_attention(*(p.transpose(1, 2) for p in (q, keys, values)), attn_mask=seen)
        x = x + a.reshape(8, HIDDEN) @ w_o + b_o
        x = x + f.gelu(f.layer_norm(x, (HIDDEN,), g2, b2) @ w_1 + b_1, approximate="tanh") @ w_2 + b_2
    return x, caches


# --- perceptrons, mixtures ------------------------------------------------------------------------------------------


def _mlp_inputs(sizes: tuple[int, ...], batch: int) -> Any:
    def inputs(random: np.random.Generator) -> tuple[Any, ...]:
        parameters = []
        for m, n in zip(sizes, sizes[1:]):
            parameters += [array(random, (m, n), 1 / math.sqrt(m)), np.zeros(n, np.float32)]
        return parameters, array(random, (batch, sizes[0])), random.integers(0, sizes[-1], batch).astype(np.int32)

    return inputs


def _mlp_loss(parameters: Any, x: Any, labels: Any, narrow: bool = False) -> Any:
    import jax
    import jax.numpy as jnp

    for k in range(0, len(parameters), 2):
        w, b = parameters[k:k + 2]
        if narrow:
            x, w, b = (p.astype(jnp.bfloat16) for p in (x, w, b))
        x = x @ w + b
        x = jax.nn.relu(x) if k + 2 < len(parameters) else x.astype(jnp.float32)
    return -jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], -1).mean()


def _torch_mlp_loss(parameters: Any, x: Any, labels: Any, narrow: bool = False) -> Any:
    import torch
    from torch.nn import functional as f

    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        for k in range(0, len(parameters), 2):
            x = x @ parameters[k] + parameters[k + 1].to(torch.bfloat16 if narrow else torch.float32)
            x = x.relu() if k + 2 < len(parameters) else x.float()
    return f.cross_entropy(x, labels.long())


def _narrow_loss(*arguments: Any) -> Any:
    return _mlp_loss(*arguments, narrow=True)


def _torch_narrow_loss(*arguments: Any) -> Any:
    return _torch_mlp_loss(*arguments, narrow=True)


def _experts_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    """Tokens, the router, and the two weights of 8 experts; each expert takes the 256 tokens that it weighs most."""
    return (array(random, (1024, 256)), array(random, (256, 8), 0.1), array(random, (8, 256, 512), 0.05),
            array(random, (8, 512, 256), 0.05))


def _experts(x: Any, router: Any, up: Any, down: Any) -> Any:
    import jax
    import jax.numpy as jnp

    weights, chosen = jax.lax.top_k(jax.nn.softmax(x @ router).T, 256)
    inner = jax.nn.silu(jnp.einsum("etd,edh->eth", x[chosen], up))
    outer = jnp.einsum("eth,ehd->etd", inner, down) * weights[..., None]
    return jnp.zeros_like(x).at[chosen.reshape(-1)].add(outer.reshape(-1, 256))


def _torch_experts(x: Any, router: Any, up: Any, down: Any) -> Any:
    import torch
    from torch.nn import functional as f

    weights, chosen = (x @ router).softmax(-1).T.topk(256)
    outer = torch.bmm(f.silu(torch.bmm(x[chosen], up)), down) * weights[..., None]
    return torch.zeros_like(x).index_add_(0, chosen.reshape(-1), outer.reshape(-1, 256))


# --- ResNet-18 ------------------------------------------------------------------------------------------------------

# (features in, features out, stride) of the eight blocks.
RESIDUAL = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2),
            (512, 512, 1)]


def _resnet_inputs(batch: int) -> Any:
    def inputs(random: np.random.Generator) -> tuple[Any, ...]:
        parameters: list[Any] = []

        def convolution(o: int, i: int, size: int) -> None:
            parameters.extend([array(random, (o, i, size, size), math.sqrt(2 / (i * size * size))),
                               np.ones(o, np.float32), np.zeros(o, np.float32)])

        convolution(64, 3, 7)
        for i, o, stride in RESIDUAL:
            convolution(o, i, 3)
            convolution(o, o, 3)
            if stride > 1:
                convolution(o, i, 1)
        parameters += [array(random, (512, 1000), 0.04), np.zeros(1000, np.float32)]
        return parameters, array(random, (batch, 3, 224, 224)), random.integers(0, 1000, batch).astype(np.int32)

    return inputs


def _resnet(parameters: Any, x: Any, convolution: Any, relu: Any, pool: Any) -> Any:
    """The network in terms of a framework's functions; `convolution` normalizes by the batch too."""
    take = _take(parameters)
    x = pool(relu(convolution(x, *take(3), 2, 3)))
    for _, _, stride in RESIDUAL:
        y = relu(convolution(x, *take(3), stride, 1))
        y = convolution(y, *take(3), 1, 1)
        x = relu(y + (convolution(x, *take(3), stride, 0) if stride > 1 else x))
    w, b = take(2)
    return x.mean((2, 3)) @ w + b


def _jax_resnet(parameters: Any, x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def convolution(x: Any, w: Any, scale: Any, offset: Any, stride: int, padding: int) -> Any:
        y = jax.lax.conv_general_dilated(x, w, (stride, stride), [(padding, padding)] * 2,
                                         dimension_numbers=("NCHW", "OIHW", "NCHW"))
        mean = y.mean((0, 2, 3), keepdims=True)
        variance = ((y - mean) ** 2).mean((0, 2, 3), keepdims=True)
        shape = (1, -1, 1, 1)
        return (y - mean) * jax.lax.rsqrt(variance + 1e-5) * scale.reshape(shape) + offset.reshape(shape)

    def pool(x: Any) -> Any:
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2),
                                     [(0, 0), (0, 0), (1, 1), (1, 1)])

    return _resnet(parameters, x, convolution, jax.nn.relu, pool)


def _torch_resnet(parameters: Any, x: Any) -> Any:
    from torch.nn import functional as f

    def convolution(x: Any, w: Any, scale: Any, offset: Any, stride: int, padding: int) -> Any:
        return f.batch_norm(f.conv2d(x, w, stride=stride, padding=padding), None, None, scale, offset, training=True)

    return _resnet(parameters, x, convolution, f.relu, lambda x: f.max_pool2d(x, 3, 2, 1))


def _resnet_loss(parameters: Any, x: Any, labels: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return -jnp.take_along_axis(jax.nn.log_softmax(_jax_resnet(parameters, x)), labels[:, None], -1).mean()


def _torch_resnet_loss(parameters: Any, x: Any, labels: Any) -> Any:
    from torch.nn import functional as f

    return f.cross_entropy(_torch_resnet(parameters, x), labels.long())


PROGRAMS = [
    Program("causal attention 4x512x12x64", normal((4, 512, 12, 64), (4, 512, 12, 64), (4, 512, 12, 64)), _attention,
            function(_torch_attention)),
    Program("BERT layer 8x128", _encoder_inputs("float32"), _encoder, function(_torch_encoder)),
    Program("BERT layer 8x128 bf16", _encoder_inputs(BFLOAT16), _encoder, function(_torch_encoder), 5e-2),
    Program("decode 4 layers, 8 sequences", _decode_inputs("float32"), _decode, function(_torch_decode)),
    Program("decode 4 layers, 8 sequences, bf16", _decode_inputs(BFLOAT16), _decode, function(_torch_decode), 5e-2),
    Program("GPT 12 layers 2x128", _gpt_inputs, _gpt, function(_torch_gpt), 1e-3),
    Program("GPT 12 layers 2x128, training", _gpt_inputs, jax_training(_gpt_loss, 0.1),
            training(_torch_gpt_loss, 0.1), 1e-3),
    Program("MLP 784-512-512-10, training", _mlp_inputs((784, 512, 512, 10), 128), jax_training(_mlp_loss, 0.1),
            training(_torch_mlp_loss, 0.1)),
    Program("MLP 1024-4096-1024, training in bf16", _mlp_inputs((1024, 4096, 1024), 128),
            jax_training(_narrow_loss, 0.1), training(_torch_narrow_loss, 0.1), 2e-2),
    Program("mixture of 8 experts, 1024 tokens", _experts_inputs, _experts, function(_torch_experts), 1e-3),
    Program("ResNet-18 2x224x224", lambda random: _resnet_inputs(2)(random)[:2], _jax_resnet,
            function(_torch_resnet), 1e-3),
    Program("ResNet-18 8x224x224, training", _resnet_inputs(8), jax_training(_resnet_loss, 0.01),
            training(_torch_resnet_loss, 0.01), 1e-2),
]
