# SPDX-License-Identifier: Apache-2.0
"""Layouts, export, caches of compiled programs, platforms, custom calls, what compiled programs say of themselves."""

import glob
import os
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

from . import program


def order(x):
    return x.format.layout.major_to_minor


@program
def layouts_of_arrays():
    from jax.experimental.layout import Format, Layout

    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    source = np.arange(24.0, dtype="f4").reshape(2, 3, 4)
    x = jax.device_put(source, Format(Layout((2, 0, 1)), device))
    moved = jax.device_put(x, Format(Layout((0, 1, 2)), device))
    y = jax.jit(lambda v: v * 2, in_shardings=x.format, out_shardings=Format(Layout((1, 2, 0)), device))(x)
    return order(x), x, order(moved), moved, order(y), y, jnp.sum(y, 0), np.asarray(y), y[1, 2], order(jax.jit(jnp.sin)(x))


@program
def layouts_that_the_compiler_chooses():
    from jax.experimental.layout import Format, Layout

    def f(a, b):
        return a.T + 1, (b * 2).transpose(1, 2, 0), jnp.exp(a)

    compiled = jax.jit(f, in_shardings=Format(Layout.AUTO), out_shardings=Format(Layout.AUTO)).lower(
        jnp.ones((3, 4)), jnp.ones((2, 3, 4))).compile()
    formats = [x.layout.major_to_minor for x in compiled.input_formats[0] + tuple(compiled.output_formats)]
    results = compiled(jnp.arange(12.0).reshape(3, 4), jnp.ones((2, 3, 4)))
    return formats, results, [order(x) for x in results]


@program
def donation_of_layouts():
    from jax.experimental.layout import Format, Layout

    f = Format(Layout((1, 0)), jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    x = jax.device_put(np.arange(6.0, dtype="f4").reshape(2, 3), f)
    y = jax.jit(lambda v: v + 1, in_shardings=f, out_shardings=f, donate_argnums=0)(x)
    return x.is_deleted(), order(y), y


@program
def exports_for_the_cpu():
    from jax import export

    f = jax.jit(lambda x: jnp.linalg.qr(x)[1] + jnp.sin(x))
    alone = export.export(f, platforms=["cpu"])(jax.ShapeDtypeStruct((3, 3), "f4"))
    several = export.export(f, platforms=["tpu", "cpu"])(jax.ShapeDtypeStruct((3, 3), "f4"))
    x = jnp.arange(9.0).reshape(3, 3)
    for_tpu = export.export(jax.jit(jnp.sin), platforms=["tpu"])(jax.ShapeDtypeStruct((3,), "f4"))
    try:
        for_tpu.call(jnp.ones(3))
        refused = False
    except ValueError as error:
        refused = "was exported for platforms" in str(error)
    return jnp.abs(alone.call(x)), jnp.abs(jax.jit(several.call)(x)), refused


@program
def branches_by_platform():
    f = lambda x: jax.lax.platform_dependent(x, cpu=lambda v: v + 1, tpu=lambda v: v + 2)
    g = lambda x: jax.lax.platform_dependent(x, cpu=lambda v: v * 3, default=lambda v: v * 5)
    other = lambda x: jax.lax.platform_dependent(x, tpu=lambda v: v * 3, default=lambda v: v * 5)
    return f(jnp.ones(2)), jax.jit(f)(jnp.ones(2)), jax.jit(jax.grad(lambda x: f(x * x)))(3.0), jax.jit(g)(2.0), jax.vmap(g)(
        jnp.ones(3)), jax.jit(other)(2.0)


@program
def primitive_with_a_rule_for_the_cpu():
    from jax.extend.core import Primitive
    from jax.interpreters import mlir

    primitive = Primitive("tests_add_one")
    primitive.def_abstract_eval(lambda x: x)
    mlir.register_lowering(primitive, mlir.lower_fun(lambda x: x + 1, multiple_results=False), platform="cpu")
    return jax.jit(lambda x: primitive.bind(x))(jnp.arange(3.0))


@program
def compilation_cache():
    from jax._src import compilation_cache as cache
    from jax._src import monitoring

    hits = []
    monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("cache_hits") else None)
    names = {"jax_compilation_cache_dir": None, "jax_persistent_cache_min_compile_time_secs": 0.0,
             "jax_persistent_cache_min_entry_size_bytes": 0, "jax_enable_compilation_cache": True}
    before = {name: getattr(jax.config, name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for name, value in names.items():
            jax.config.update(name, folder if value is None else value)
        cache.reset_cache()
        try:
            first = jax.jit(lambda x: jnp.cos(x) * 3)(jnp.arange(3.0))
            files = bool(glob.glob(os.path.join(folder, "*")))
            hits.clear()
            jax.clear_caches()
            second = jax.jit(lambda x: jnp.cos(x) * 3)(jnp.arange(3.0))
            count = len(hits)
        finally:
            for name, value in before.items():
                jax.config.update(name, value)
            cache.reset_cache()
    return first, second, files, count > 0


@program
def serialized_executables():
    from jax.experimental import serialize_executable

    compiled = jax.jit(lambda x, y: {"sum": x + y}).lower(jnp.ones(3), jnp.ones(3)).compile()
    again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    return again(jnp.arange(3.0), jnp.ones(3))


@program
def dumps_of_programs():
    with tempfile.TemporaryDirectory() as folder:
        options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True, "xla_dump_hlo_as_proto": True}
        result = jax.jit(lambda x: x * x, compiler_options=options)(3.0)
        found = [len(glob.glob(os.path.join(folder, f"*after_optimizations.{kind}"))) for kind in ("txt", "hlo.pb")]
    return result, found


@program
def what_compiled_programs_say():
    lowered = jax.jit(lambda x: jnp.tanh(x @ x), donate_argnums=0).lower(jnp.ones((8, 8)))
    compiled = lowered.compile()
    cost = compiled.cost_analysis()
    cost = cost[0] if isinstance(cost, list) else cost
    memory = compiled.memory_analysis()
    sizes = [getattr(memory, f"{name}_size_in_bytes") for name in ("argument", "output", "alias")]
    texts = ["stablehlo.tanh" in lowered.as_text(), "stablehlo.tanh" in lowered.as_text("stablehlo"),
             "tanh" in lowered.as_text("hlo"), "ENTRY" in compiled.as_text()]
    keys = {"flops", "transcendentals", "bytes accessed", "bytes accessedout{}", "bytes accessed0{}"} <= set(cost)
    before = lowered.cost_analysis()
    return keys, cost["flops"] > 1000, cost["transcendentals"], sizes, memory.temp_size_in_bytes >= 0, texts, before


@program
def narrow_types_in_callbacks():
    results = []
    for name in ("int4", "uint4", "int2", "uint2"):
        x = jnp.arange(-8, 16).astype(name).reshape(2, 3, 4)
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        y = jax.jit(lambda v: jax.pure_callback(lambda a: np.asfortranarray(a[::-1]), shape, v))(x)
        z = jax.jit(lambda v: jax.pure_callback(lambda a: np.asarray(a[0, 0]), jax.ShapeDtypeStruct((4,), v.dtype), v))(x)
        results += [y.astype("int32"), z.astype("int32")]
    return results


@program
def callbacks_with_buffers():
    from jax.experimental import buffer_callback

    def add(context, out, x, y):
        np.asarray(out)[...] = np.asarray(x) + np.from_dlpack(y)

    def add_in_place(context, out, x):
        np.asarray(out)[0] += 10  # what the operand has elsewhere is in the result

    shape = jax.ShapeDtypeStruct((3,), "f4")
    f = buffer_callback.buffer_callback(add, shape, vmap_method="sequential")
    g = buffer_callback.buffer_callback(add_in_place, shape, input_output_aliases={0: 0})
    x = jnp.arange(3.0)
    return f(x, x), jax.jit(f)(x, x + 1), jax.vmap(f)(jnp.ones((2, 3)), jnp.ones((2, 3))), g(x), jax.jit(lambda v: g(v * 2) + v)(x)


@program
def errors_of_donated_arrays():
    x = jnp.arange(4.0)
    jax.jit(lambda v: v + 1, donate_argnums=0)(x)
    errors = []
    for use in (lambda: x + 1, lambda: np.asarray(x), lambda: jax.jit(lambda v: v, donate_argnums=0)(x), x.block_until_ready):
        try:
            use()
            errors.append("none")
        except (RuntimeError, ValueError) as error:
            errors.append("Array has been deleted with shape=float32[4]" in str(error) or "deleted" in str(error))
    y = jnp.arange(4.0)
    try:
        jax.jit(lambda a, b: a + b, donate_argnums=0)(y, y)
        errors.append("none")
    except Exception as error:  # noqa: BLE001: of which kind is not said
        errors.append("donate" in str(error))
    return errors


@program
def both_widths_of_types():
    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    with enable(True):
        wide = jnp.arange(3) / 7
        sums = jax.jit(lambda x: x.sum())(wide)
    return str(wide.dtype), wide, sums, jnp.arange(3).dtype == np.dtype("int32"), (wide.astype("float32") + 1)


@program
def profiler_server():
    import socket

    with socket.socket() as s:
        s.bind(("localhost", 0))
        port = s.getsockname()[1]
    jax.profiler.start_server(port)
    try:
        return jax.jit(lambda x: x + 1)(1.0)
    finally:
        jax.profiler.stop_server()


@program
def custom_call_without_a_handler():
    x = jnp.ones(3)
    try:
        jax.jit(lambda v: jax.ffi.ffi_call("tests_no_such_target", jax.ShapeDtypeStruct((3,), "f4"))(v, a=np.int32(1))).lower(x).compile()
    except Exception as error:  # noqa: BLE001: of which kind is not said
        return "No FFI handler registered for tests_no_such_target" in str(error)
    return "no error"


@program
def calls_that_stay():
    try:
        from jax.experimental.xla_metadata import xla_metadata_call
    except ImportError:  # older releases
        return None
    f = jax.jit(lambda x: jnp.sin(xla_metadata_call(inlineable="false")(lambda v: v * 2)(x)))
    return f(jnp.ones(3)), 'inlineable="false"' in f.lower(jnp.ones(3)).compile().as_text()
