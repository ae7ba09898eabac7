# SPDX-License-Identifier: Apache-2.0
"""What hlokit.jax.estimate and the analyses of compiled programs say, against hlo-run, and the script of the tutorial.

    /path/to/venv/bin/python tests/frameworks/jax_estimates.py [build/release] [--only=sharded]

prints a line for each check that fails and `N passed, N failed`, and exits with 1 if one failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from typing import Any

TOP = pathlib.Path(__file__).resolve().parents[2]
CHECKS: list[Callable[[pathlib.Path], None]] = []
# Of the slice that the plugin stands for in this process.
DEVICE = "v5p:2x2x1"


def check(function: Callable[[pathlib.Path], None]) -> Callable[[pathlib.Path], None]:
    CHECKS.append(function)
    return function


def shape(*dims: int, dtype: str = "float32", sharding: Any = None) -> Any:
    import jax

    return jax.ShapeDtypeStruct(dims, dtype, sharding=sharding)


def mesh_of(dims: tuple[int, ...], names: tuple[str, ...]) -> Any:
    from jax.sharding import AbstractMesh, AxisType

    return AbstractMesh(dims, names, axis_types=(AxisType.Auto,) * len(dims))


def by_hlo_run(build: pathlib.Path, f: Any, args: tuple[Any, ...], device: str, platform: str = "tpu") -> dict[str, Any]:
    """The report of the tool on the program as text."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.mlir"
        path.write_text(f.trace(*args).lower(lowering_platforms=(platform,)).as_text(debug_info=True))
        command = [build / "bin/hlo-run", path, f"--device={device}", "--timing-only", "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def expect_as_hlo_run(build: pathlib.Path, f: Any, args: tuple[Any, ...], device: str) -> Any:
    import hlokit.jax

    found = hlokit.jax.estimate(f, *args, device=device)
    assert found.lowered_for == "tpu", found.lowered_for
    expected = by_hlo_run(build, f, args, device)
    assert found.json == expected, {k: (v, expected.get(k)) for k, v in found.json.items() if v != expected.get(k)}
    assert found.step_seconds == expected["step_time_us"] / 1e6
    assert found.bound == expected["bound_by"] and found.flops == expected["flops"]
    assert found.hbm_peak_bytes == expected["memory"]["peak_bytes"]
    assert len(str(found).splitlines()) == 5 and found.report.startswith(f"module {found.name} on {found.device}")
    return found


def expect_error(kind: type[BaseException], text: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


@check
def one_device_as_hlo_run(build: pathlib.Path) -> None:
    import jax
    import jax.numpy as jnp

    f = jax.jit(lambda x, w: jnp.tanh(x @ w).sum(0))
    found = expect_as_hlo_run(build, f, (shape(512, 1024, dtype="bfloat16"), shape(1024, 2048, dtype="bfloat16")), "v6e")
    assert found.device == "v6e:1x1" and found.num_devices == found.used_devices == 1
    assert found.fits and 0 < found.mfu < 1 and 0 < found.relative_error < 1 and found.collective_seconds == 0


@check
def sharded_as_hlo_run(build: pathlib.Path) -> None:
    import jax
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = mesh_of((4, 4), ("data", "model"))
    f = jax.jit(lambda x, w: x @ w, in_shardings=(NamedSharding(mesh, P("data", "model")), NamedSharding(mesh, P("model"))),
                out_shardings=NamedSharding(mesh, P("data")))
    found = expect_as_hlo_run(build, f, (shape(4096, 4096), shape(4096, 1024)), "v6e:4x4")
    assert found.num_devices == found.used_devices == 16 and found.collective_seconds > 0
    assert found.flops < 2 * 4096 * 4096 * 1024 / 15


@check
def sharded_arguments(build: pathlib.Path) -> None:
    import jax
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    sharding = NamedSharding(mesh_of((8,), ("x",)), P("x"))
    argument = shape(1024, 1024, sharding=sharding)
    f = lambda x: jax.numpy.sin(x) * 2
    found = expect_as_hlo_run(build, jax.jit(f, out_shardings=sharding), (argument,), "v5e:2x4")
    assert found.used_devices == 8
    # The result is as the argument, where the program does not say it.
    import hlokit.jax
    assert hlokit.jax.estimate(f, argument, device="v5e:2x4").step_seconds == found.step_seconds


@check
def manual_collectives(build: pathlib.Path) -> None:
    import hlokit.jax
    import jax
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = mesh_of((4,), ("x",))
    f = jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    given = jax.jit(f, in_shardings=NamedSharding(mesh, P("x")), out_shardings=NamedSharding(mesh, P()))
    found = expect_as_hlo_run(build, given, (shape(1024, 256),), "v5p:2x2x1")
    assert found.collective_seconds > 0
    # The mesh is in the function alone.
    alone = hlokit.jax.estimate(f, shape(1024, 256), device="v5p:2x2x1")
    assert alone.used_devices == 4 and alone.step_seconds == found.step_seconds


@check
def pallas_kernel(build: pathlib.Path) -> None:
    import jax
    from jax.experimental import pallas as pl

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 2

    block = pl.BlockSpec((256, 512), lambda i: (i, 0))
    f = jax.jit(pl.pallas_call(kernel, grid=(4,), in_specs=[block], out_specs=block, out_shape=shape(1024, 512)))
    expect_as_hlo_run(build, f, (shape(1024, 512),), "v5e")


@check
def functions_and_arguments_of_all_kinds(build: pathlib.Path) -> None:
    import hlokit.jax
    import jax
    import jax.numpy as jnp
    import numpy as np

    ran = []

    def f(tree: Any, power: int, *, scale: Any) -> Any:
        jax.debug.callback(ran.append, tree["a"])
        return {"y": (tree["a"] @ tree["b"]) ** power * scale}

    by_shape, by_array = (
        hlokit.jax.estimate(f, {"a": make((256, 128)), "b": make((128, 64))}, 2, device="v5e", static_argnums=1,
                            scale=np.float32(3))
        for make in (lambda dims: shape(*dims), lambda dims: jnp.ones(dims)))
    assert by_shape.json == by_array.json and by_shape.name == "jit_f"
    assert by_shape == by_array and repr(by_shape) == repr(by_array)
    assert not ran, "the function has run"
    assert hlokit.jax.estimate(jax.random.bits, jax.random.key(0), device="v5e", static_argnums=1).step_seconds > 0


@check
def donation_saves_memory(build: pathlib.Path) -> None:
    import hlokit.jax

    x = shape(4096, 4096)
    kept, donated = (hlokit.jax.estimate(lambda x: x + 1, x, device="v5e", **o) for o in ({}, {"donate_argnums": 0}))
    assert donated.hbm_peak_bytes < kept.hbm_peak_bytes


@check
def idle_devices_are_a_warning(build: pathlib.Path) -> None:
    import hlokit.jax

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = hlokit.jax.estimate(lambda x: x + 1, shape(128, 128), device="v6e:2x4")
    assert found.used_devices == 1 and found.num_devices == 8
    assert [str(w.message) for w in caught] == [
        "v6e:2x4 has 8 devices; nothing is sharded, so the program runs on one device, and each of the others could only do "
        "the same"]
    assert caught[0].filename == __file__


@check
def what_is_not_modeled_is_a_warning(build: pathlib.Path) -> None:
    import hlokit.jax
    import jax

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = hlokit.jax.estimate(jax.numpy.linalg.eigh, shape(64, 64), device="v5e")
    expected = "work of custom call Eigh: only its operands and results are counted"
    assert found.not_modeled == (expected,) and found.device_seconds <= found.step_seconds
    assert [str(w.message) for w in caught] == [f"not modeled: {expected}"]


@check
def errors_of_users(build: pathlib.Path) -> None:
    import hlokit.jax
    import jax
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    run = lambda device, **options: hlokit.jax.estimate(lambda x: x + 1, shape(64, 64), device=device, **options)
    expect_error(ValueError, "did you mean `v6e`?; expected one of v2 v3 v4", lambda: run("v6"))
    expect_error(ValueError, "unknown target `cpu`", lambda: run("cpu"))
    sharding = NamedSharding(mesh_of((16,), ("x",)), P("x"))
    expect_error(ValueError, "the module requires 16 devices, but v6e:2x2 has 4",
                 lambda: run("v6e:2x2", in_shardings=sharding))
    expect_error(TypeError, "The problematic value is of type <class 'str'>",
                 lambda: hlokit.jax.estimate(jax.numpy.sin, "text", device="v5e"))


@check
def page_of_the_report(build: pathlib.Path) -> None:
    import hlokit.jax

    if not (build / "python/hlokit/report.html").exists():
        return
    found = hlokit.jax.estimate(lambda x: x @ x, shape(256, 256), device="v5e")
    with tempfile.TemporaryDirectory() as folder:
        path = found.save_html(pathlib.Path(folder) / "report.html")
        text = path.read_text()
    assert "@DATA@" not in text and "jit__lambda" in text


@check
def callbacks_are_lowered_for_hlokit_or_a_tpu(build: pathlib.Path) -> None:
    import hlokit.jax
    import jax
    import numpy as np

    f = lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1
    found = hlokit.jax.estimate(f, shape(128, 128), device="v5e")
    assert found.lowered_for in ("tpu", "hlokit") and found.step_seconds > 0


@check
def cost_analysis_of_a_compiled_program(build: pathlib.Path) -> None:
    import jax
    import jax.numpy as jnp

    x, w = jnp.ones((256, 512)), jnp.ones((512, 128))
    f = jax.jit(lambda x, w: x @ w)
    costs = f.lower(x, w).compile().cost_analysis()
    report = by_hlo_run(build, f, (x, w), DEVICE, "hlokit")
    assert costs["flops"] == 2 * 256 * 512 * 128, costs
    sizes = [4 * 256 * 512, 4 * 512 * 128, 4 * 256 * 128]
    assert [costs["bytes accessed0{}"], costs["bytes accessed1{}"], costs["bytes accessedout{}"]] == sizes, costs
    assert costs["bytes accessed"] == sum(sizes) and costs["utilization0{}"] == costs["utilization1{}"] == 1, costs
    assert abs(costs["optimal_seconds"] * 1e6 - report["step_time_us"]) < 1e-6 * report["step_time_us"], costs
    looped = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + c, x)).lower(x).compile().cost_analysis()
    assert looped["transcendentals"] == 256 * 512 and looped["bytes accessed0{}"] > 0, looped


@check
def memory_analysis_of_a_compiled_program(build: pathlib.Path) -> None:
    import jax
    import jax.numpy as jnp

    x = jnp.ones((1000, 100))
    kept, donated = (jax.jit(lambda x: x + 1, **options) for options in ({}, {"donate_argnums": 0}))
    tiles = 4 * 1000 * 128  # of 8 x 128
    for f, aliased in ((kept, 0), (donated, tiles)):
        memory = f.lower(x).compile().memory_analysis()
        assert memory.argument_size_in_bytes == memory.output_size_in_bytes == tiles, memory
        assert memory.alias_size_in_bytes == aliased, memory
        total = 2 * tiles - aliased + memory.temp_size_in_bytes
        peak = by_hlo_run(build, f, (x,), DEVICE, "hlokit")["memory"]["peak_bytes"]
        assert total == peak, (memory, peak)


@check
def script_of_the_tutorial(build: pathlib.Path) -> None:
    script = TOP / "examples/jax/train.py"

    def output_of(options: list[str], **variables: str) -> list[str]:
        env = {**os.environ, **variables}
        done = subprocess.run([sys.executable, script, *options], env=env, check=True, capture_output=True, text=True)
        return done.stdout.splitlines()

    device = {"HLOKIT_DEVICE": "cpu"}
    page = (TOP / "docs/tutorials/train-with-jax.md").read_text()
    ours = output_of(["--steps=20"], JAX_PLATFORMS="hlokit", **device)
    assert len(ours) == 3 and all(f"    {line}\n" in page for line in ours), ours
    for variables in ({"JAX_PLATFORMS": "cpu"},
                      {"JAX_PLATFORMS": "hlokit", "HLOKIT_DEVICE": "cpu:8", "HLOKIT_ENGINE": "fast"}):
        theirs = output_of(["--steps=20"], **variables)
        losses = [[float(line.split()[-1]) for line in lines] for lines in (ours, theirs)]
        assert len(theirs) == 3 and all(abs(a - b) < 1e-2 for a, b in zip(*losses)), losses
    for mesh in ("4x4", "16x1"):
        command = ["--estimate=v6e:4x4", f"--mesh={mesh}"]
        estimated = output_of(command, JAX_PLATFORMS="hlokit", **device)
        assert len(estimated) == 5 and all(f"    {line}\n" in page for line in estimated), estimated
        assert f"python3 examples/jax/train.py {' '.join(command)}\n" in page
    shown = page[page.index("```python\n") + len("```python\n"):].partition("```")[0]
    assert all(f"    {line}\n" in script.read_text() for line in shown.splitlines()), "the page shows another function"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, nargs="?", default=TOP / "build/release")
    parser.add_argument("--only", default="", help="run checks with this in their names")
    options = parser.parse_args()
    build = options.build.resolve()
    package = str(build / "python")
    os.environ["PYTHONPATH"] = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
    os.environ.update(JAX_PLATFORMS="hlokit", HLOKIT_DEVICE=DEVICE)
    sys.path.insert(0, package)
    passed = failed = 0
    for function in CHECKS:
        if options.only not in function.__name__:
            continue
        try:
            with contextlib.redirect_stdout(sys.stderr):
                function(build)
            passed += 1
        except subprocess.CalledProcessError as error:
            failed += 1
            print(f"FAILED  {function.__name__}: {error}: {error.stderr.strip()[-400:]}")
        except Exception as error:  # noqa: BLE001: whatever a check raises is a failure
            failed += 1
            line = traceback.extract_tb(error.__traceback__)[1].lineno
            print(f"FAILED  {function.__name__}: line {line}: {type(error).__name__}: {str(error)[:600]}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
