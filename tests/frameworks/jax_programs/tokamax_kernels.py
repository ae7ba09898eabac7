# SPDX-License-Identifier: Apache-2.0
"""Operations of tokamax: as XLA's operations, and their kernels for TPUs in interpret mode."""

import jax
import jax.numpy as jnp
import numpy as np
import tokamax

from . import program

RANDOM = np.random.RandomState(0)


def normal(*shape, dtype="f4"):
    return jnp.asarray(RANDOM.randn(*shape).astype("f4"), dtype)


def with_gradients(function, *arguments):
    """The value of a function, and gradients of a sum of its results with weights, by all arguments."""
    value = jax.jit(function)(*arguments)
    weights = jnp.cos(jnp.arange(value.size, dtype=value.dtype)).reshape(value.shape)
    return value, jax.jit(jax.grad(lambda *a: jnp.sum(function(*a) * weights), range(len(arguments))))(*arguments)


def of_a_tpu():
    """Kernels read the properties of this TPU, on which they are not run."""
    from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh

    return use_abstract_mesh(AbstractMesh((), (), abstract_device=AbstractDevice("TPU v5p", 1, "tpu")))


Q, K, V = normal(2, 8, 4, 16), normal(2, 8, 2, 16), normal(2, 8, 2, 16)


@program
def attention():
    results = []
    options = {"precision": jax.lax.DotAlgorithmPreset.F32_F32_F32}  # the default is one of those of known platforms only
    for implementation in ("xla", "xla_chunked", None):
        results.append(with_gradients(lambda q, k, v: tokamax.dot_product_attention(
            q, k, v, is_causal=True, implementation=implementation, **options), Q, K, V))
    lengths = jnp.array([3, 8])
    results.append(jax.jit(lambda q, k, v: tokamax.dot_product_attention(
        q, k, v, key_value_seq_lengths=lengths, logits_soft_cap=5.0, local_window_size=(2, 1), scale=0.3, **options))(Q, K, V))
    return results


@program
def layers():
    x, gates = normal(3, 8, 16), normal(16, 2, 24)
    return (with_gradients(lambda x, w: tokamax.gated_linear_unit(x, w, activation=jax.nn.swish), x, gates),
            with_gradients(tokamax.layer_norm, x, normal(16), normal(16)),
            with_gradients(lambda x, s: tokamax.layer_norm(x, s, None, subtract_mean=False, scale_offset=1.0), x, normal(16)))


@program
def losses():
    labels = jnp.asarray(RANDOM.randint(0, 24, 12))
    return with_gradients(lambda x, w: tokamax.linear_softmax_cross_entropy_loss(x, labels, w, reduction="mean"), normal(12, 16), normal(
        16, 24))


@program
def ragged_products():
    sizes = jnp.array([3, 0, 6, 3], "int32")
    return with_gradients(lambda x, w: tokamax.ragged_dot(x, w, sizes), normal(12, 8), normal(4, 8, 16))


@program
def triangle_multiplication():
    mask = jnp.asarray(RANDOM.rand(6, 6) < 0.8)
    weights = normal(8, 2, 12), normal(8, 2, 12), normal(12, 4), normal(8, 4), normal(8), normal(8), normal(12), normal(12)
    x = normal(6, 6, 8)
    return [jax.jit(lambda x: tokamax.triangle_multiplication(x, mask, *weights, kind))(x) for kind in ("incoming", "outgoing")]


@program
def interpreted_ragged_products():
    from tokamax._src.ops.ragged_dot import pallas_mosaic_tpu_kernel as kernel

    sizes = jnp.array([40, 0, 150, 66], "int32")
    options = {"precision": jax.lax.DotAlgorithmPreset.F32_F32_F32, "out_dtype": jnp.dtype("f4"), "interpret": True}
    x, w, y = normal(256, 128), normal(4, 128, 128), normal(256, 128)
    with of_a_tpu():
        return (jax.jit(lambda x, w: kernel.gmm(x, w, sizes, **options))(x, w),
                jax.jit(lambda y, w: kernel.gmm(y, w, sizes, transpose_rhs=True, **options))(y, w),
                jax.jit(lambda x, y: kernel.tgmm(x.T, y, sizes, **options))(x, y))


@program
def interpreted_splash_attention():
    from tokamax._src.ops.experimental.tpu.splash_attention import splash_attention_kernel as splash
    from tokamax._src.ops.experimental.tpu.splash_attention import splash_attention_mask as masks

    config = splash.SplashConfig(block_q=128, block_kv=128, block_kv_compute=128, block_q_dkv=128, block_kv_dkv=128,
                                 block_kv_dkv_compute=128, interpret=True)
    kernel = splash.make_splash_mha(masks.CausalMask((256, 256)), config=config, q_seq_shards=1)
    return with_gradients(kernel, normal(2, 256, 128), normal(2, 256, 128), normal(2, 256, 128))


@program
def interpreted_router():
    from tokamax._src.ops.router_topk import pallas_mosaic_tpu_kernel as router

    return jax.jit(lambda x: router.select(x, 3, interpret=True))(normal(20, 16))


@program
def kernels_in_interpret_mode_of_tpus():
    from jax.experimental.pallas import tpu as pltpu

    with pltpu.force_tpu_interpret_mode():
        from tokamax._src.ops.router_topk import pallas_mosaic_tpu_kernel as router

        return jax.jit(lambda x: router.select(x, 2))(normal(8, 16))
