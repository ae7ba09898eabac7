# SPDX-License-Identifier: Apache-2.0
"""Runs the programs in one framework, for compare.py: requests and answers are lines of JSON.

    server.py jax | eager | compile      {"do": "prepare", "program": …, "results": file} or {"do": "run", "times": n}

`prepare` compiles and runs a program once, writes its results as an .npz file, and answers the processor seconds of the
compilation. `run` answers the processor and the elapsed seconds of n runs.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from programs import PROGRAMS
from programs.program import BFLOAT16, Program

Run = Callable[[], Any]


def inputs(program: Program) -> tuple[Any, ...]:
    """The same numbers in each peer and run."""
    return program.inputs(np.random.default_rng(zlib.crc32(program.name.encode())))


class Jax:
    """JAX's CPU, or the plugin, as JAX_PLATFORMS says."""

    def prepare(self, program: Program) -> tuple[Run, dict[str, Any]]:
        import jax

        jax.clear_caches()
        bits = jax.numpy.bfloat16
        arguments = jax.device_put(jax.tree.map(lambda a: a.view(bits) if a.dtype == BFLOAT16 else a, inputs(program)))
        lowered = jax.jit(program.jax).lower(*arguments)
        start = time.process_time()
        compiled = lowered.compile()
        seconds = time.process_time() - start
        return lambda: compiled(*arguments), {"compile": seconds}

    def wait(self, results: Any) -> None:
        import jax

        jax.block_until_ready(results)

    def arrays(self, results: Any) -> list[Any]:
        import jax

        leaves = map(np.asarray, jax.tree.leaves(results))
        return [a if a.dtype.kind in "iubc" else a.astype(np.float64) for a in leaves]


class Torch:
    """PyTorch, eager or by torch.compile."""

    def __init__(self, compiled: bool):
        import torch

        self._compiled = compiled
        torch.set_num_threads(len(os.sched_getaffinity(0)))

    def prepare(self, program: Program) -> tuple[Run, dict[str, Any]]:
        import torch

        if program.torch is None:
            raise NotImplementedError("no program of PyTorch's")
        torch._dynamo.reset()
        compiler = (lambda f: torch.compile(f, dynamic=False)) if self._compiled else (lambda f: f)
        run = program.torch(self._tensors(inputs(program)), compiler)
        start = time.process_time()
        run()
        return run, {"compile": time.process_time() - start if self._compiled else None}

    def _tensors(self, value: Any) -> Any:
        import torch

        if isinstance(value, (tuple, list)):
            return type(value)(self._tensors(v) for v in value)
        if value.dtype == BFLOAT16:
            return torch.from_numpy(value.view(np.int16)).view(torch.bfloat16)
        if value.dtype == np.uint32:
            value = value.astype(np.int64)
        return torch.from_numpy(np.ascontiguousarray(value)).reshape(value.shape)

    def wait(self, results: Any) -> None:
        del results  # computed when they are returned

    def arrays(self, results: Any) -> list[Any]:
        import torch

        leaves = torch.utils._pytree.tree_leaves(results)
        return [(r.double() if r.is_floating_point() else r).detach().numpy() for r in leaves]


class Server:
    def __init__(self, peer: Any):
        self._peer = peer
        self._run: Run | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "prepare":
            return self._prepare(next(p for p in PROGRAMS if p.name == request["program"]), request["results"])
        assert self._run
        process, elapsed = time.process_time(), time.perf_counter()
        for _ in range(request["times"]):
            results = self._run()
        self._peer.wait(results)
        return {"process": time.process_time() - process, "elapsed": time.perf_counter() - elapsed}

    def _prepare(self, program: Program, path: str) -> dict[str, Any]:
        self._run = None
        gc.collect()
        self._run, answer = self._peer.prepare(program)
        results = self._run()
        self._peer.wait(results)
        np.savez(path, *self._peer.arrays(results))
        return answer


def main() -> None:
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints is no answer
    server = Server(Jax() if sys.argv[1] == "jax" else Torch(sys.argv[1] == "compile"))
    print(json.dumps({}), file=channel, flush=True)
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:  # a row of the table, not the end of the comparison
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), file=channel, flush=True)


if __name__ == "__main__":
    main()
