# SPDX-License-Identifier: Apache-2.0
"""Callbacks, compilation, donation, memory, exchange of arrays, kernels."""

import contextlib
import importlib.util
import io
import tempfile
import threading

import jax
import jax.numpy as jnp
import numpy as np

from . import program


@program
def pure_callback():
    f = lambda x: jax.pure_callback(lambda v: np.sin(v), jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")
    x = jnp.arange(4.0)
    return jax.jit(f)(x), jax.vmap(f)(x.reshape(2, 2)), jax.jit(lambda v: jax.lax.scan(lambda c, e: (f(c + e), c), 0.0, v))(x)


@program
def callback_with_values_of_its_thread():
    local = threading.local()

    def count(x):
        local.calls = getattr(local, "calls", 0) + 1
        return np.float32(local.calls)

    f = jax.jit(lambda x: jax.pure_callback(count, jax.ShapeDtypeStruct((), "f4"), x))
    return [f(float(i)) for i in range(3)]


@program
def callback_that_uses_jax():
    return jax.jit(lambda x: jax.pure_callback(lambda v: jnp.cos(v) + v.sum(), jax.ShapeDtypeStruct(x.shape, x.dtype), x))(
        jnp.arange(3.0))


@program
def callback_that_fails():
    def fail(x):
        raise ValueError("the callback's own error")

    try:
        jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((), "f4"), x))(1.0))
    except Exception as error:
        return "the callback's own error" in str(error)
    return "no error"


@program
def callback_that_fails_at_the_call():
    """The error of a small program is that of its call, and the next ordered effect does not see it."""
    from jax.experimental import io_callback as call

    def fail_if_negative(v):
        if v < 0:
            raise ValueError("a negative number")
        return v

    f = jax.jit(lambda x: call(fail_if_negative, jax.ShapeDtypeStruct((), "f4"), x, ordered=True))
    before = float(f(1.0))
    try:
        f(-1.0)
    except Exception as error:
        return before, "a negative number" in str(error), float(f(2.0))
    return "no error"


@program
def buffer_callback():
    """The function reads the memory of the arguments and writes that of the results."""
    from jax.experimental import buffer_callback as buffers

    seen = []

    def scale(context, out, x, factor):
        seen.append((str(context.stage), x.shape, str(x.dtype), x.writeable, out["y"].writeable, factor.ndim))
        np.asarray(out["y"])[...] = np.asarray(x) * np.asarray(factor)
        np.asarray(out["sum"])[...] = np.from_dlpack(x).sum()

    def f(x, factor):
        shapes = {"y": jax.ShapeDtypeStruct(x.shape, x.dtype), "sum": jax.ShapeDtypeStruct((), x.dtype)}
        return buffers.buffer_callback(scale, shapes, vmap_method="sequential")(x, factor)

    x = jnp.arange(6.0).reshape(2, 3)
    result = jax.jit(f)(x, 2.0), f(x.astype("i4"), jnp.int32(3)), jax.vmap(f, in_axes=(0, None))(x, 0.5)
    return jax.block_until_ready(result), seen


@program
def branches_by_platform():
    """A branch for the CPU is this platform's too, whatever there is for others."""
    f = lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos)
    g = lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)
    x = jnp.arange(3.0)
    return jax.jit(f)(x), jax.jit(g)(x), jax.grad(lambda v: f(v).sum())(x), jax.vmap(g)(x)


@program
def io_callback():
    from jax.experimental import io_callback as call

    seen = []

    @jax.jit
    def f(x):
        for i in range(3):
            call(lambda v: seen.append(float(v)), None, x + i, ordered=True)
        return x + call(lambda v: np.float32(v * 10), jax.ShapeDtypeStruct((), "f4"), x)

    result = f(1.0)
    jax.effects_barrier()
    result = (result, f(5.0))
    jax.effects_barrier()
    return result, seen


@program
def debug_print():
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        jax.jit(lambda x: jax.debug.print("x = {x} and {}", x.sum(), x=x))(jnp.arange(3))
        jax.effects_barrier()

        def body(i, x):
            jax.debug.print("step {}", i, ordered=True)
            return x + i

        jax.block_until_ready(jax.jit(lambda x: jax.lax.fori_loop(0, 3, body, x))(0))
        jax.effects_barrier()
    return text.getvalue()


@program
def debug_callback():
    seen = []
    jax.block_until_ready(jax.jit(lambda x: (jax.debug.callback(lambda v: seen.append(np.asarray(v)), x), x + 1)[1])(jnp.ones(2)))
    jax.effects_barrier()
    jax.grad(lambda x: (jax.debug.callback(lambda v: seen.append(np.asarray(v)), x), x**2)[1])(3.0)
    jax.effects_barrier()
    return seen


@program
def checked_functions():
    from jax.experimental import checkify

    def f(x):
        checkify.check(jnp.all(x > 0), "must be positive: {x}", x=x[0])
        return jnp.log(x)

    errors = [checkify.checkify(jax.jit(f))(v)[0].get() for v in (jnp.ones(2), -jnp.ones(2))]
    index = checkify.checkify(lambda x, i: x[i], errors=checkify.index_checks)(jnp.arange(3), 5)[0].get()
    return [e.split("(")[0] if e else e for e in errors], index is not None


@program
def debug_nans():
    jax.config.update("jax_debug_nans", True)
    try:
        jax.jit(lambda x: jnp.log(x))(-1.0)
    except FloatingPointError:
        return "found"
    finally:
        jax.config.update("jax_debug_nans", False)
    return "not found"


@program
def export_and_call():
    from jax import export

    platforms = [jax.devices()[0].platform]
    exported = export.export(jax.jit(lambda x: jnp.sin(x) @ x.T), platforms=platforms)(jax.ShapeDtypeStruct((3, 3), "f4"))
    through_bytes = importlib.util.find_spec("flatbuffers") is not None
    again = export.deserialize(exported.serialize()) if through_bytes else exported
    batch, = export.symbolic_shape("b")
    symbolic = export.export(jax.jit(lambda x: x.sum(1) * 2), platforms=platforms)(jax.ShapeDtypeStruct((batch, 4), "f4"))
    again_symbolic = export.deserialize(symbolic.serialize()) if through_bytes else symbolic
    return again.call(jnp.ones((3, 3))), again_symbolic.call(jnp.ones((5, 4))), again_symbolic.call(jnp.ones((2, 4)))


@program
def donation():
    f = jax.jit(lambda x, y: (x + y, x * y), donate_argnums=0)
    x, y = jnp.arange(4.0), jnp.ones(4)
    result = f(x, y)
    try:
        x + 1
        after = "usable"
    except RuntimeError:
        after = "deleted"
    return result, x.is_deleted(), y.is_deleted(), after


@program
def compile_ahead_of_time():
    lowered = jax.jit(lambda x: x @ x).lower(jnp.ones((8, 8)))
    compiled = lowered.compile()
    cost, memory = compiled.cost_analysis(), compiled.memory_analysis()
    cost = cost[0] if isinstance(cost, list) else cost
    return compiled(jnp.ones((8, 8))), cost["flops"], memory.argument_size_in_bytes, memory.output_size_in_bytes


@program
def text_of_programs():
    lowered = jax.jit(lambda x: x + 1).lower(1.0)
    return "stablehlo.add" in lowered.as_text(), "add" in lowered.compile().as_text()


@program
def profile():
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            result = jax.block_until_ready(jax.jit(lambda x: x * 2)(jnp.ones(3)))
    return result


@program
def memory_kinds():
    device = jax.devices()[0]
    kinds = {m.kind for m in device.addressable_memories()}
    sharding = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    x = jax.device_put(jnp.arange(3.0), sharding)
    back = jax.device_put(x, jax.sharding.SingleDeviceSharding(device, memory_kind=device.default_memory().kind))
    return "pinned_host" in kinds, x, x.sharding.memory_kind, back + 1


@program
def exchange_by_dlpack():
    source = np.arange(4, dtype="f4")
    x = jnp.from_dlpack(source)
    exported = np.from_dlpack(jnp.arange(6).reshape(2, 3) + 1)
    half = np.asarray(jnp.from_dlpack(jnp.ones(3, "bfloat16") + 1).astype("f4"))
    return x * 2, exported, half, np.asarray(jax.device_put(x) + jnp.ones(4))


@program
def exchange_by_numpy():
    x = jnp.arange(12.0).reshape(3, 4)
    a = np.asarray(x)
    return a, a.flags.writeable, np.array(x.T), memoryview(np.asarray(x[0])).tolist(), x.tolist(), float(x[0, 1]), jnp.asarray(
        np.asfortranarray(a)[::-1])


@program
def custom_calls():
    from jax._src.lib import lapack

    name = lapack.prepare_lapack_call("potrf_ffi", np.float32)
    a = jnp.array([[4.0, 2.0], [2.0, 3.0]])
    call = jax.ffi.ffi_call(name, (jax.ShapeDtypeStruct(a.shape, a.dtype), jax.ShapeDtypeStruct((), np.int32)),
                            input_layouts=[(0, 1)], output_layouts=[(0, 1), ()])
    return jnp.tril(call(a, uplo=np.uint8(ord("L")))[0]), call(-a, uplo=np.uint8(ord("L")))[1]


@program
def pallas_kernel():
    from jax.experimental import pallas as pl

    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + 2 * y_ref[...]

    x = jnp.arange(8.0)
    add = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)
    grid = pl.pallas_call(lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...] * pl.program_id(0)), grid=(2,), in_specs=[
        pl.BlockSpec((4,), lambda i: (i,))], out_specs=pl.BlockSpec((4,), lambda i: (i,)), out_shape=jax.ShapeDtypeStruct(
            (8,), "f4"), interpret=True)
    return add(x, x), jax.jit(grid)(x)


@program
def pallas_kernel_for_tpu():
    """A kernel with memories, semaphores and cores of a TPU, interpreted; the second run reads out of bounds."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel(index_ref, x_ref, o_ref, scratch):
        scratch[...] = x_ref[...] * 2
        o_ref[0] = scratch[index_ref[0]] + pl.program_id(0)

    def f(index, x, parallel):
        return pl.pallas_call(
            kernel, grid=(2,), out_shape=jax.ShapeDtypeStruct((2,), jnp.int32),
            in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.SMEM)],
            out_specs=pl.BlockSpec((1,), lambda i: (i,), memory_space=pltpu.SMEM),
            scratch_shapes=[pltpu.SMEM((4,), jnp.int32)],
            compiler_params=pltpu.CompilerParams(dimension_semantics=(parallel,)),
            interpret=pltpu.InterpretParams(num_cores_or_threads=2 if parallel == "parallel" else 1))(index, x)

    x = jnp.arange(4, dtype=jnp.int32)
    values = [np.asarray(jax.jit(f, static_argnums=2)(jnp.array([3], jnp.int32), x, how)) for how in ("arbitrary", "parallel")]
    try:
        jax.block_until_ready(jax.jit(f, static_argnums=2)(jnp.array([7], jnp.int32), x, "arbitrary"))
    except Exception as error:
        pltpu.reset_tpu_interpret_mode_state()
        return values, "Out-of-bounds" in str(error)
    return values, "no error"


@program
def mutable_references():
    ref = jax.new_ref(jnp.zeros(3))

    @jax.jit
    def f(r):
        r[0] = 5.0
        r[...] += 1.0

    f(ref)
    f(ref)
    return jax.freeze(ref) if hasattr(jax, "freeze") else ref[...]


@program
def devices_and_placement():
    device = jax.devices()[0]
    x = jax.device_put(np.arange(3.0, dtype="f4"), device)
    copied = jnp.copy(x)
    return x.devices() == {device}, copied, jax.device_get([x, copied]), x.block_until_ready(), jax.device_count()


@program
def many_threads():
    import concurrent.futures

    f = jax.jit(lambda x: jnp.sum(jnp.sin(x) ** 2))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return [float(v) for v in pool.map(lambda i: f(jnp.full(100, float(i))), range(32))]
