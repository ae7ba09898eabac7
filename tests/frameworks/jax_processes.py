#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs of JAX as several processes of the plugin (jax.distributed), and compares them with one process.

usage: jax_processes.py BUILD [--processes=2,4] [--only=REGEX] [--keep=DIR]

Each process has two devices. Every program runs once as N processes and once as one process with 2 N devices; each process
must have the same bits for what it has. Then a process is killed in the middle of a program of all of them: the others must
get an error that names it within seconds. Prints `N passed, N failed`; exit code 1 if one failed.
"""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

DEVICES = 2
LIMIT_S = 600


def flags() -> dict[str, str]:
    pairs = (a[2:].partition("=") for a in sys.argv[1:] if a.startswith("--"))
    return {name: value for name, _, value in pairs}


# ---- in a process: N > 1 processes with two devices each, or one with all ----


def programs():
    import functools

    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    from jax.experimental import multihost_utils
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    devices = np.array(jax.devices())
    count = len(devices)
    mesh = Mesh(devices, ("i",))
    # Neighbors are in different processes.
    mixed = Mesh(devices.reshape(-1, DEVICES).T.reshape(-1), ("i",))
    grid = Mesh(devices.reshape(-1, DEVICES), ("p", "d"))
    data = np.random.RandomState(0).randn(8 * count, 6).astype("f4")

    def put(value, on, *spec):
        sharding = NamedSharding(on, P(*spec))
        return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index], dtype=value.dtype)

    def parts(array):
        return {str(s.index): np.asarray(s.data) for s in array.addressable_shards}

    def listing():
        shown = [(d.id, d.process_index, d.platform) for d in jax.devices()]
        assert [d.process_index for d in jax.local_devices()] == [jax.process_index()] * jax.local_device_count()
        assert len(shown) == count and sorted(d.id for d in jax.devices()) == list(range(count))
        return {}

    def training():
        rng = np.random.RandomState(1)
        params = [rng.randn(*s).astype("f4") / 3 for s in ((6, 16), (16,), (16, 3))]
        params = [put(p, mesh) for p in params]
        x, y = put(data, mesh, "i"), put(np.sin(data[:, :3]), mesh, "i")

        def loss(params, x, y):
            w, b, v = params
            return jnp.mean((jnp.tanh(x @ w + b) @ v - y) ** 2)

        @functools.partial(jax.jit, donate_argnums=0)
        def step(params, x, y):
            value, gradients = jax.value_and_grad(loss)(params, x, y)
            return [p - 0.1 * g for p, g in zip(params, gradients)], value

        values = {}
        for n in range(4):
            params, value = step(params, x, y)
            values[f"loss {n}"] = np.asarray(value)
        for n, p in enumerate(params):
            values |= {f"parameter {n} {k}": v for k, v in parts(p).items()}
        return values

    def collectives():
        values = {}
        for name, on in (("in order", mesh), ("mixed", mixed)):
            @functools.partial(jax.shard_map, mesh=on, in_specs=P("i"), out_specs=P("i"), check_vma=False)
            def f(v):
                ring = [(n, (n + 1) % count) for n in range(count)]
                total = lax.psum(v, "i") + lax.pmax(v, "i") + lax.axis_index("i")
                moved = lax.ppermute(v, "i", ring)
                each = lax.all_to_all(jnp.tile(v, (1, count)), "i", 1, 0, tiled=True)
                mine = lax.psum_scatter(jnp.tile(v, (count, 1)), "i", tiled=True)
                whole = lax.all_gather(v, "i", tiled=True)
                return total + moved + mine + each[: v.shape[0], :6] + whole[: v.shape[0]]

            values |= {f"{name} {k}": v for k, v in parts(jax.jit(f)(put(data, on, "i"))).items()}
            numbers = put(np.arange(4 * count, dtype="i4"), on, "i")
            g = jax.shard_map(lambda v: lax.psum(v, "i") * 3 - lax.pmin(v, "i"), mesh=on, in_specs=P("i"), out_specs=P(None),
                              check_vma=False)
            values[f"{name} integers"] = parts(jax.jit(g)(numbers)).popitem()[1]
        return values

    def part_of_devices():
        # Programs of one process's devices, of one device of each, and of all, in turn.
        values = {}
        for n in range(3):
            own = Mesh(np.array(jax.local_devices()[:DEVICES]), ("i",))
            local = jax.jit(lambda v: jnp.sum(v * 2))(jax.device_put(data[:8], NamedSharding(own, P("i"))))
            values[f"own {n}"] = np.asarray(local)
            column = Mesh(devices.reshape(-1, DEVICES)[:, n % DEVICES], ("i",))
            values[f"column {n}"] = np.asarray(jax.jit(lambda v: jnp.sum(v) / 3)(put(data, column, "i")))
            both = jax.jit(lambda v: v.T @ v, out_shardings=NamedSharding(grid, P()))(put(data, grid, ("p", "d")))
            values[f"grid {n}"] = np.asarray(both.addressable_data(0))
        return values

    def utilities():
        multihost_utils.sync_global_devices("start")
        one = multihost_utils.broadcast_one_to_all(np.arange(3, dtype="i4") + 7)
        own = multihost_utils.process_allgather(np.array([jax.process_index()]))
        assert list(np.ravel(own)) == list(range(jax.process_count())), own
        multihost_utils.assert_equal(one, "the same in all")
        gathered = multihost_utils.process_allgather(put(data, mesh, "i"), tiled=True)
        return {"one": np.asarray(one), "gathered": np.asarray(gathered)}

    def ahead_of_time():
        from jax.experimental import serialize_executable, topologies

        topology = topologies.get_topology_desc(f"cpu:{count}", platform="hlokit")
        on = Mesh(np.array(topology.devices), ("i",))
        sharded = NamedSharding(on, P("i"))
        f = jax.jit(lambda v: jnp.tanh(v @ v.T).sum(0), in_shardings=sharded, out_shardings=NamedSharding(on, P()))
        compiled = f.lower(jax.ShapeDtypeStruct(data.shape, "f4", sharding=sharded)).compile()
        loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled),
                                                           execution_devices=jax.devices())
        chips = topologies.get_topology_desc("v5p:2x2x2", platform="hlokit", num_slices=2,
                                             chips_per_host_bounds=[2, 2, 1]).devices
        assert [d.process_index for d in chips] == [n // 4 for n in range(16)], chips
        assert [d.slice_index for d in chips] == [n // 8 for n in range(16)], chips
        return {"result": np.asarray(loaded(put(data, mesh, "i")).addressable_data(0))}

    def copies():
        # From the devices of the first process to those of the last, which have their copies then.
        first, last = (Mesh(devices[n:n + DEVICES], ("i",)) for n in (0, count - DEVICES))
        there = jax.device_put(put(data, first, "i"), NamedSharding(last, P("i")))
        return parts(jax.jit(lambda v: v * 2)(there)) if last.devices[0].process_index == jax.process_index() else {}

    def killed():
        total = jax.jit(lambda v: jnp.sum(v))
        np.asarray(total(put(data, mesh, "i")))
        if jax.process_index() == jax.process_count() - 1:
            os.kill(os.getpid(), 9)
        try:
            for _ in range(1000):
                np.asarray(total(put(data, mesh, "i")))
        except Exception as error:
            print("error:", str(error).replace("\n", " "), flush=True)
            os._exit(0)  # without the framework's farewell to the one that is dead
        return {}

    return {f.__name__: f for f in (listing, training, collectives, part_of_devices, utilities, ahead_of_time, copies, killed)}


def run(number: int, count: int, port: int, name: str, out: str) -> None:
    import jax
    import numpy as np

    if count > 1:
        jax.distributed.initialize(f"localhost:{port}", count, number, heartbeat_timeout_seconds=LIMIT_S)
    values = programs()[name]()
    np.savez(out, **values)
    if count > 1:
        jax.distributed.shutdown()


# ---- in the test ----


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def start(build: str, directory: pathlib.Path, name: str, count: int, devices: int) -> list[subprocess.Popen]:
    port = free_port()
    env = os.environ | {"JAX_PLATFORMS": "hlokit", "HLOKIT_DEVICE": f"cpu:{devices}", "HLOKIT_NUM_THREADS": "1",
                        "PYTHONPATH": os.pathsep.join([f"{build}/python", os.environ.get("PYTHONPATH", "")])}
    return [subprocess.Popen([sys.executable, __file__, "--worker", f"--number={n}", f"--count={count}", f"--port={port}",
                              f"--program={name}", f"--out={directory}/{name}.{count}.{n}.npz"],
                             env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for n in range(count)]


def finish(workers: list[subprocess.Popen]) -> list[tuple[int, str]]:
    """Returns the exit codes and outputs. Ends those that do not end themselves."""
    end, results = time.monotonic() + LIMIT_S, []
    for worker in workers:
        try:
            text, _ = worker.communicate(timeout=max(1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.kill()
            text = worker.communicate()[0] + "\nit has not ended"
        results.append((worker.returncode, text))
    return results


def check_values(build: str, directory: pathlib.Path, name: str, count: int) -> str:
    """Returns what is wrong, or ""."""
    import numpy as np

    ended = finish(start(build, directory, name, count, DEVICES)) + finish(
        start(build, directory, name, 1, DEVICES * count))
    for n, (code, text) in enumerate(ended):
        if code != 0:
            return f"process {n} ended with {code}: {text[-3000:]}"
    whole = np.load(directory / f"{name}.1.0.npz")
    seen = set()
    for n in range(count):
        values = np.load(directory / f"{name}.{count}.{n}.npz")
        for key in values.files:
            if key not in whole.files:
                return f"one process has no {key}"
            if values[key].tobytes() != whole[key].tobytes():
                return f"{key} of process {n} is {values[key]}, of one process {whole[key]}"
        seen.update(values.files)
    return "" if seen == set(whole.files) else f"no process has {sorted(set(whole.files) - seen)}"


def check_killed(build: str, directory: pathlib.Path, count: int) -> str:
    began = time.monotonic()
    ended = finish(start(build, directory, "killed", count, DEVICES))
    if ended[-1][0] != -9:
        return f"the process has not been killed: {ended[-1]}"
    for n, (code, text) in enumerate(ended[:-1]):
        if code != 0 or f"process {count - 1} has ended" not in text:
            return f"process {n} ended with {code}: {text[-3000:]}"
    seconds = time.monotonic() - began
    return "" if seconds < LIMIT_S / 2 else f"it took {seconds:.0f} s"


def main() -> int:
    given = flags()
    if "worker" in given:
        run(int(given["number"]), int(given["count"]), int(given["port"]), given["program"], given["out"])
        return 0
    build = os.path.abspath(next(a for a in sys.argv[1:] if not a.startswith("--")))
    passed = failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(given.get("keep", temporary))
        directory.mkdir(exist_ok=True)
        for count in map(int, given.get("processes", "2,4").split(",")):
            for name in ("listing", "training", "collectives", "part_of_devices", "utilities", "ahead_of_time", "copies", "killed"):
                if not re.search(given.get("only", ""), name):
                    continue
                wrong = (check_killed(build, directory, count) if name == "killed" else
                         check_values(build, directory, name, count))
                passed, failed = passed + (not wrong), failed + bool(wrong)
                if wrong:
                    print(f"{name}, {count} processes: {wrong}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
