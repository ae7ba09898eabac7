# SPDX-License-Identifier: Apache-2.0
"""What a JAX program pays for the plugin: a cold process, a dispatch, a compilation, callbacks, beside JAX's CPU.

    python3 bench/python/jax_speed.py [build/release] [--only=callback] [--rounds=15] [--check]

Run by a Python that has JAX. A process of each backend (JAX's CPU, the exact engine, the fast one) runs each case in
turns with the others, and the minimum counts: microseconds of processor time of a call, threads of the backend included,
and its ratio to JAX's CPU. `cold process` is a new interpreter each time. Rows `(thread)` count the calling thread
alone: what the program waits for where results are computed by others. --check exits with 1 if a ratio is above its
goal, which is printed beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

TOP = pathlib.Path(__file__).resolve().parents[2]
BACKENDS = {"cpu": ("cpu", ""), "exact": ("hlokit", "exact"), "fast": ("hlokit", "fast")}
COLD = "import jax, jax.numpy as jnp; jax.jit(lambda x: jnp.sin(x) * 2)(jnp.arange(4.0)).block_until_ready()"
# Of the ratio to JAX's CPU, by case, for both engines.
GOALS = {
    "cold process": 1.3,
    "tiny op": 1.5,
    "tiny op (thread)": 1.5,
    "MLP step (thread)": 1.1,
    "MLP step, traced and compiled": 1.0,
    "pure_callback": 1.5,
    "io_callback": 1.5,
    "io_callback, ordered": 1.5,
}


def mlp() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A training step of a perceptron of four layers, and its arguments."""
    import jax
    import jax.numpy as jnp

    sizes = (64, 128, 128, 128, 10)
    keys = jax.random.split(jax.random.key(0), len(sizes))
    params = [{"w": jax.random.normal(k, (m, n)) * 0.1, "b": jnp.zeros(n)} for k, m, n in zip(keys, sizes, sizes[1:])]
    x, y = jax.random.normal(keys[-1], (32, sizes[0])), jnp.arange(32) % sizes[-1]

    def loss(params: Any, x: Any, y: Any) -> Any:
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        logits = x @ params[-1]["w"] + params[-1]["b"]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(32), y])

    def step(params: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return step, (params, x, y)


def cases() -> dict[str, tuple[int, Callable[[], Any]]]:
    """How often a case is called between two waits for results, and the call."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import io_callback

    x = jnp.arange(4.0)
    host = np.arange(4.0, dtype="f4")
    tiny = jax.jit(lambda v: v * 2 + 1)
    function, arguments = mlp()
    step = jax.jit(function)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    pure = jax.jit(lambda v: jax.pure_callback(np.sin, shape, v))
    io = jax.jit(lambda v: io_callback(np.sin, shape, v))
    ordered = jax.jit(lambda v: io_callback(np.sin, shape, v, ordered=True))
    return {
        "tiny op": (500, lambda: tiny(x)),
        "tiny op on a NumPy array": (500, lambda: tiny(host)),
        "tiny op and its value": (500, lambda: np.asarray(tiny(x))),
        "op without jit": (500, lambda: x + x),
        "MLP step": (50, lambda: step(*arguments)),
        "MLP step, traced and compiled": (1, lambda: jax.jit(lambda *a: function(*a)).lower(*arguments).compile()),
        "pure_callback": (200, lambda: pure(x)),
        "io_callback": (200, lambda: io(x)),
        "io_callback, ordered": (200, lambda: ordered(x)),
    }


def serve() -> None:
    """Writes the names of the cases, and answers each name with the times of a call, all as lines of JSON."""
    import jax

    known = cases()
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        count, call = known[line.strip()]
        jax.block_until_ready(call())
        jax.effects_barrier()
        process, thread, elapsed = time.process_time(), time.thread_time(), time.perf_counter()
        for _ in range(count):
            result = call()
        thread = time.thread_time() - thread
        if not isinstance(result, jax.stages.Compiled):
            jax.block_until_ready(result)
        jax.effects_barrier()
        process, elapsed = time.process_time() - process, time.perf_counter() - elapsed
        print(json.dumps([1e6 * t / count for t in (process, thread, elapsed)]), flush=True)


def environment(backend: str, build: pathlib.Path) -> dict[str, str]:
    platform, engine = BACKENDS[backend]
    env = {**os.environ, "JAX_PLATFORMS": platform, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(build / "python")}
    env.pop("JAX_COMPILATION_CACHE_DIR", None)
    if engine:
        env["HLOKIT_ENGINE"] = engine
    return env


def cold(env: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", COLD], env=env, check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e6 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


class Server:
    def __init__(self, env: dict[str, str]):
        self._process = subprocess.Popen([sys.executable, __file__, "--serve"], env=env, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.names: list[str] = self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())

    def measure(self, name: str) -> list[float]:
        assert self._process.stdin
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        self._process.communicate()


def row(name: str, times: dict[str, float]) -> bool:
    """Prints the times of a case; returns False if one is above its goal."""
    goal = GOALS.get(name)
    ratios = {b: t / times["cpu"] for b, t in times.items() if b != "cpu"}
    cells = "".join(f"{b} {times[b]:11.1f} us {r:6.2f}   " for b, r in ratios.items())
    print(f"{name:32} cpu {times['cpu']:11.1f} us   {cells}" + (f"goal {goal}" if goal else ""), flush=True)
    return goal is None or max(ratios.values()) <= goal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, nargs="?", default=TOP / "build/release")
    parser.add_argument("--only", default="", help="cases with this in their names")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--elapsed", action="store_true", help="elapsed times too")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    environments = {b: environment(b, options.build.resolve()) for b in BACKENDS}
    reached = True
    if options.only in "cold process":
        best = {b: cold(env) for b, env in environments.items()}  # the files are in memory then
        for _ in range(max(options.rounds // 3, 3)):
            best = {b: min(best[b], cold(env)) for b, env in environments.items()}
        reached &= row("cold process", best)
    servers = {b: Server(env) for b, env in environments.items()}
    for name in servers["cpu"].names:
        if options.only not in name:
            continue
        best_of: dict[str, list[float]] = {b: [float("inf")] * 3 for b in servers}
        for _ in range(options.rounds):
            for b, server in servers.items():
                best_of[b] = [min(pair) for pair in zip(best_of[b], server.measure(name))]
        for index, suffix in enumerate(["", " (thread)", " (elapsed)"][:3 if options.elapsed else 2]):
            reached &= row(name + suffix, {b: t[index] for b, t in best_of.items()})
    for server in servers.values():
        server.close()
    return 0 if reached or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
