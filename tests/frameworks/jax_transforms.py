#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hlokit.jax.transform and hlokit.jax.lower with the real JAX, on its CPU, and the examples that use them.

  jax_transforms.py BUILD_DIR

Ends with `N passed, N failed`.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.compilation_cache import compilation_cache

import hlokit
import hlokit.jax

TOP = pathlib.Path(__file__).resolve().parents[2]
X = np.linspace(0.1, 1.5, 12, dtype=np.float32).reshape(3, 4)
CASES = []


def case(f):
    CASES.append(f)
    return f


@hlokit.rewrite("sine(%a)")
def sine_to_cosine(match):
    """Replaces sines by cosines, so that a transformed program has other values."""
    return hlokit.Builder(match.root).add("cosine", match["a"], shape=match.root.shape)


def near(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def raised(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


@case
def in_effect_within_and_only_within():
    f = jax.jit(lambda x: jnp.sin(x) * 2)
    before = f(X)
    with hlokit.jax.transform("sine-to-cosine") as transform:
        near(f(X), np.cos(X) * 2)
    assert [(p.name, p.changed) for p in transform.programs] == [("jit__lambda", True)], transform.programs
    near(f(X), before)
    with hlokit.jax.transform("sine-to-cosine") as another:
        near(f(X), np.cos(X) * 2)
    assert len(another.programs) == 1


@case
def a_decorator_compiles_once():
    transform = hlokit.jax.transform("sine-to-cosine", modules="jit_g")

    @transform
    @jax.jit
    def g(x):
        return jnp.sin(x)

    near(g(X), np.cos(X))
    near(g(X), np.cos(X))
    assert [p.name for p in transform.programs] == ["jit_g"], transform.programs


@case
def functions_and_modules_as_rewrites():
    f = jax.jit(lambda x: jnp.sin(x) + x)

    def edit(module):
        return module.run("sine-to-cosine")

    def replace(module):
        other = module.clone()
        other.run("sine-to-cosine")
        return other

    for rewrite in (edit, replace):
        with hlokit.jax.transform(rewrite):
            near(f(X), np.cos(X) + X)


@case
def a_rewrite_that_changes_nothing():
    f = jax.jit(lambda x: jnp.sin(x) + 3 * x)
    with hlokit.jax.transform(lambda module: None) as transform:
        near(f(X), np.sin(X) + 3 * X)
    assert [p.changed for p in transform.programs] == [False], transform.programs


@case
def after_scheduling():
    f = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + i, x))

    def expected(x):
        for i in range(3):
            x = np.cos(x) + i
        return x

    with hlokit.jax.transform("sine-to-cosine", stage="after_scheduling"):
        near(f(X), expected(X))


@case
def programs_survive_the_round_trip():
    def f(x):
        y = lax.fori_loop(0, 5, lambda i, c: jnp.tanh(c @ x.T @ x) + i, x)
        a = x @ x.T + jnp.eye(3)
        return y, jnp.sort(x, axis=1), jax.random.normal(jax.random.key(0), (4,)), jnp.linalg.cholesky(a), jnp.fft.rfft(x)

    expected = jax.jit(f)(X)
    for stage in ("before_scheduling", "after_scheduling"):
        def touch(module):
            root = module.entry.root
            root.rename(root.name + ".touched")
            return True

        with hlokit.jax.transform(touch, stage=stage) as transform:
            got = jax.jit(f)(X)
        assert any(p.changed for p in transform.programs)
        for a, b in zip(got, expected):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@case
def nested_transforms_run_in_order():
    seen = []

    def note(name):
        def rewrite(module):
            seen.append(name)
            return False
        return rewrite

    f = jax.jit(lambda x: x * 5)
    with hlokit.jax.transform(note("outer")), hlokit.jax.transform(note("inner")):
        f(X)
    assert seen == ["outer", "inner"], seen


@case
def in_effect_in_all_threads():
    f = jax.jit(lambda x: jnp.sin(x) * 3)
    got = []

    def call():
        got.append(f(X))

    def in_thread():
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    in_thread()
    with hlokit.jax.transform("sine-to-cosine"):
        in_thread()
        near(f(X), np.cos(X) * 3)
    in_thread()
    near(got[0], np.sin(X) * 3)
    near(got[1], np.cos(X) * 3)
    near(got[2], np.sin(X) * 3)


@case
def the_persistent_cache_is_not_mistaken():
    def f(x):
        return jnp.sin(x) * 11

    with tempfile.TemporaryDirectory() as folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        try:
            near(jax.jit(f)(X), np.sin(X) * 11)
            jax.clear_caches()
            with hlokit.jax.transform("sine-to-cosine"):
                near(jax.jit(f)(X), np.cos(X) * 11)
            jax.clear_caches()
            near(jax.jit(f)(X), np.sin(X) * 11)
        finally:
            jax.config.update("jax_compilation_cache_dir", None)
            compilation_cache.reset_cache()


@case
def errors_leave_the_block():
    def fails(module):
        raise KeyError("of the rewrite")

    def call(rewrite):
        with hlokit.jax.transform(rewrite):
            jax.jit(lambda x: jnp.sin(x).sum())(X)

    error = raised(KeyError, lambda: call(fails))
    assert "jit__lambda" in error.__notes__[0], error.__notes__
    assert "fails" in "".join(traceback.format_exception(error))
    assert "nope" in str(raised(hlokit.PassError, lambda: call("nope")))

    def other_result(module):
        module.entry.set_root(module.entry.parameters[0])
        return True

    assert "parameters or results" in str(raised(ValueError, lambda: call(other_result)))
    near(jax.jit(lambda x: jnp.sin(x).sum())(X), jnp.sin(X).sum())  # nothing stays registered


@case
def what_would_have_no_effect():
    @jax.jit
    @hlokit.jax.transform("dce")
    def f(x):
        return x + 1

    assert "traces" in str(raised(RuntimeError, lambda: f(X)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with hlokit.jax.transform("dce"):
            pass
    assert [w.category for w in caught] == [hlokit.jax.NotTransformedWarning], caught
    raised(ValueError, lambda: hlokit.jax.transform("dce", stage="never"))
    raised(TypeError, lambda: hlokit.jax.transform(3))


@case
def lowered_at_each_stage():
    def f(x):
        return jnp.sin(x) @ x.T

    for stage in ("stablehlo", "hlo", "optimized"):
        module = hlokit.jax.lower(f, X, stage=stage)
        assert module.name == "jit_f", module.name
        if stage == "optimized":
            continue
        sine = next(i for i in module.instructions() if i.opcode == "sine")
        assert sine.metadata.op_name == "jit(f)/sin", sine.metadata
        near(module.run_on(np.asarray(X)), f(X))
    shape = jax.ShapeDtypeStruct((2, 4), jnp.float32)
    assert hlokit.jax.lower(jax.jit(f), shape).entry.root.shape.dims == (2, 2)
    raised(ValueError, lambda: hlokit.jax.lower(f, X, stage="never"))


def run_example(name, **variables):
    """Returns what an example prints."""
    done = subprocess.run([sys.executable, TOP / "examples/jax" / name], env={**os.environ, **variables},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout


@case
def the_example_of_one_product():
    output = run_example("transform.py")
    assert float(re.search(r"largest difference (\S+)", output)[1]) < 1e-3, output
    assert "times as fast" in output, output


@case
def the_tutorial_finds_the_pass():
    with tempfile.TemporaryDirectory() as folder:
        run_example("wrong_tanh.py", XLA_FLAGS=f"--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.* "
                    "--xla_dump_hlo_module_re=jit_layer")
        inspect = pathlib.Path(sys.argv[1]) / "bin/hlo-inspect"
        done = subprocess.run([inspect, "dump-dir", "--values", folder], capture_output=True, text=True, check=False)
    differs = [line for line in done.stdout.splitlines() if ": differs: " in line]
    assert len(differs) == 1 and "/apply-xla-transforms: differs" in differs[0], done.stdout + done.stderr


def main():
    failed = 0
    for f in CASES:
        try:
            f()
        except Exception:  # of JAX, hlokit or a check
            failed += 1
            print(f"FAILED {f.__name__}: {traceback.format_exc(limit=-3)}")
    print(f"jax {jax.__version__}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
