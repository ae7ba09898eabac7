#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs passes and tools on modules with many calls, loops, levels, users and operands: time and memory must grow nearly
in proportion to the module.

  growth.py BIN_DIR [--full] [--instances=N]

A command that takes more than FLOOR seconds of processor time runs on a module of a quarter of the instances too, and
may take MAX_RATIO times as long on the whole: linear work takes 4 times as long, quadratic work 16 times. One that takes
longer runs on four times the instances as well, and fails if that ratio is over the limit too: a pipeline that repeats
until nothing changes runs more often on a larger module, up to its limit of iterations, so its time may grow faster
than the module for a while. Memory is limited in proportion to the instances. Without --full: the pipelines and the commands of the tools; with --full every
pass, and larger modules. Ends with `N passed, N failed`.
"""
import argparse
import concurrent.futures
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading

STATE = "(s32[], f32[4,32])"
FLOOR = 0.4
MAX_RATIO = 9


def loop_condition(name, trips):
    return (f"{name} {{ p = {STATE} parameter(0)\n i = s32[] get-tuple-element(p), index=0\n"
            f" n = s32[] constant({trips})\n ROOT l = pred[] compare(i, n), direction=LT }}")


def loop_body(name, work):
    return (f"{name} {{ p = {STATE} parameter(0)\n i = s32[] get-tuple-element(p), index=0\n"
            f" x = f32[4,32] get-tuple-element(p), index=1\n one = s32[] constant(1)\n j = s32[] add(i, one)\n"
            f" {work}\n ROOT t = {STATE} tuple(j, y) }}")


def entry(rows, instances, shape="f32[4,32]"):
    return (f"ENTRY e {{ x0 = {shape} parameter(0)\n w = f32[32,32] parameter(1)\n q = pred[] parameter(2)\n"
            f" z = s32[] constant(0)\n" + "\n".join(rows(k) for k in range(instances)) +
            f"\n ROOT r = {shape} negate(x{instances}) }}")


def run_loop(k, body, condition):
    return (f" t{k} = {STATE} tuple(z, x{k})\n w{k} = {STATE} while(t{k}), condition={condition}, body={body}\n"
            f" x{k + 1} = f32[4,32] get-tuple-element(w{k}), index=1")


def loops(n):
    rows = [loop_body(f"b{k}", "y = f32[4,32] add(x, x)") + "\n" + loop_condition(f"c{k}", k % 7 + 2) for k in range(n)]
    return "\n".join(rows) + "\n" + entry(lambda k: run_loop(k, f"b{k}", f"c{k}"), n)


def loops_of_one_body(n):
    return "\n".join([loop_body("b", "y = f32[4,32] add(x, x)"), loop_condition("c", 5),
                      entry(lambda k: run_loop(k, "b", "c"), n)])


def loops_with_collectives(n):
    rows = ["s { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }"]
    for k in range(n):
        rows.append(loop_body(f"b{k}", f"a = f32[4,32] all-reduce(x), channel_id={k + 1}, replica_groups={{}}, "
                                       "to_apply=s\n y = f32[4,32] tanh(a)"))
        rows.append(loop_condition(f"c{k}", 4))
    return "\n".join(rows) + "\n" + entry(lambda k: run_loop(k, f"b{k}", f"c{k}"), n)


def nested_loops(n, trips=1):
    rows = [loop_condition("c", trips), loop_body("b0", "y = f32[4,32] add(x, x)")]
    for k in range(1, n):
        rows.append(loop_body(f"b{k}", f"z = s32[] constant(0)\n t0 = {STATE} tuple(z, x)\n"
                                       f" w = {STATE} while(t0), condition=c, body=b{k - 1}\n"
                                       " y = f32[4,32] get-tuple-element(w), index=1"))
    return "\n".join(rows) + "\n" + entry(lambda k: run_loop(k, f"b{n - 1}", "c"), 1)


def nested_calls(n):
    rows = ["f0 { x = f32[4,32] parameter(0)\n ROOT y = f32[4,32] sine(x) }"]
    rows += [f"f{k} {{ x = f32[4,32] parameter(0)\n a = f32[4,32] call(x), to_apply=f{k - 1}\n"
             " ROOT y = f32[4,32] negate(a) }" for k in range(1, n)]
    return "\n".join(rows) + "\n" + entry(lambda k: f" x{k + 1} = f32[4,32] call(x{k}), to_apply=f{n - 1}", 1)


def calls(n):
    body = ("f { x = f32[4,32] parameter(0)\n a = f32[4,32] sine(x)\n b = f32[4,32] cosine(x)\n"
            " ROOT y = f32[4,32] add(a, b) }\n")
    return body + entry(lambda k: f" x{k + 1} = f32[4,32] call(x{k}), to_apply=f", n)


def conditionals(n):
    branches = "".join(f"{name} {{ x = f32[4,32] parameter(0)\n ROOT y = f32[4,32] {op}(x) }}\n"
                       for name, op in (("t", "sine"), ("f", "cosine")))
    return branches + entry(lambda k: f" x{k + 1} = f32[4,32] conditional(q, x{k}, x{k}), true_computation=t, "
                                      "false_computation=f", n)


def shared(n, call, shape="f32[4,32]"):
    """Functions that call the two before them: their calls are as many as the Fibonacci numbers."""
    rows = [f"f{k} {{ x = {shape} parameter(0)\n ROOT y = {shape} {op}(x) }}" for k, op in enumerate(("sine", "cosine"))]
    rows += [f"f{k} {{ x = {shape} parameter(0)\n{call(k - 1, k - 2)} }}" for k in range(2, n)]
    return "\n".join(rows) + "\n"


def two(call, shape="f32[4,32]"):
    return lambda a, b: f" a = {shape} {call(a)}\n b = {shape} {call(b)}\n ROOT y = {shape} add(a, b)"


def shared_calls(n):
    body = shared(n, two(lambda k: f"call(x), to_apply=f{k}"))
    return body + entry(lambda k: f" x{k + 1} = f32[4,32] call(x{k}), to_apply=f{n - 1}", 1)


def shared_functions(n):
    body = shared(n, two(lambda k: f"map(x), dimensions={{}}, to_apply=f{k}", "f32[]"), "f32[]")
    return body + entry(lambda k: f" x{k + 1} = f32[4,32] map(x{k}), dimensions={{0,1}}, to_apply=f{n - 1}", 1)


def shared_branches(n):
    body = shared(n, lambda a, b: " c = f32[1,1] slice(x), slice={[0:1], [0:1]}\n r = f32[] reshape(c)\n"
                                  " z = f32[] constant(0)\n q = pred[] compare(r, z), direction=GT\n"
                                  " ROOT y = f32[4,32] conditional(q, x, x), "
                                  f"true_computation=f{a}, false_computation=f{b}")
    return body + entry(lambda k: f" x{k + 1} = f32[4,32] call(x{k}), to_apply=f{n - 1}", 1)


def shared_loops(n):
    rows = [loop_condition("c", 3)] + [loop_body(f"b{k}", f"y = f32[4,32] {op}(x)")
                                       for k, op in enumerate(("sine", "cosine"))]
    for k in range(2, n):
        work = f"z = s32[] constant(0)\n t0 = {STATE} tuple(z, x)\n"
        for j in (1, 2):
            work += (f" w{j} = {STATE} while(t0), condition=c, body=b{k - j}\n"
                     f" y{j} = f32[4,32] get-tuple-element(w{j}), index=1\n")
        rows.append(loop_body(f"b{k}", work + " y = f32[4,32] add(y1, y2)"))
    return "\n".join(rows) + "\n" + entry(lambda k: run_loop(k, f"b{n - 1}", "c"), 1)


def calls_of_one_large(n):
    """Ten times as many calls as there are instances, of a function of as many instructions: too many to inline."""
    steps = "\n".join(f" x{k + 1} = f32[4,32] negate(x{k})" for k in range(10 * n))
    return (f"f {{ x0 = f32[4,32] parameter(0)\n{steps}\n ROOT y = f32[4,32] sine(x{10 * n}) }}\n" +
            entry(lambda k: f" x{k + 1} = f32[4,32] call(x{k}), to_apply=f", 10 * n))


def chain(n):
    ops = ("negate", "sine", "exponential", "tanh")
    return entry(lambda k: f" x{k + 1} = f32[4,32] {ops[k % 4]}(x{k})", n)


def dots(n):
    return entry(lambda k: f" d{k} = f32[4,32] dot(x{k}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
                           f" x{k + 1} = f32[4,32] tanh(d{k})", n)


def all_reduces(n):
    return ("s { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n" +
            entry(lambda k: f" a{k} = f32[4,32] all-reduce(x{k}), to_apply=s, replica_groups={{}}\n"
                            f" x{k + 1} = f32[4,32] tanh(a{k})", n))


def users(n):
    rows = "\n".join(f" y{k} = f32[4,32] sine(x)\n c{k} = f32[] constant({k})\n"
                     f" d{k} = f32[4,32] broadcast(c{k}), dimensions={{}}\n z{k} = f32[4,32] multiply(y{k}, d{k})"
                     for k in range(n))
    return (f"ENTRY e {{ x = f32[4,32] parameter(0)\n{rows}\n ROOT r = ({', '.join(['f32[4,32]'] * n)}) "
            f"tuple({', '.join(f'z{k}' for k in range(n))}) }}")


def operands(n):
    rows = "\n".join(f" p{k} = f32[4,128] parameter({k})" for k in range(n))
    return (f"ENTRY e {{\n{rows}\n c = f32[{4 * n},128] concatenate({', '.join(f'p{k}' for k in range(n))}), "
            f"dimensions={{0}}\n ROOT r = f32[{4 * n},128] negate(c) }}")


def loop_of_many_arrays(n):
    elements = ", ".join(["s32[]"] + ["f32[64]"] * n)
    rows = [f"b {{ p = ({elements}) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n one = s32[] constant(1)\n"
            " j = s32[] add(i, one)"]
    rows += [f" x{k} = f32[64] get-tuple-element(p), index={k + 1}" for k in range(n)]
    rows += [f" y{k} = f32[64] add(x{k}, x{(k + 1) % n})" for k in range(n)]
    rows += [f" ROOT t = ({elements}) tuple(j, {', '.join(f'y{k}' for k in range(n))}) }}",
             f"c {{ p = ({elements}) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n n = s32[] constant(5)\n"
             " ROOT l = pred[] compare(i, n), direction=LT }", "ENTRY e {"]
    rows += [f" x{k} = f32[64] parameter({k})" for k in range(n)]
    rows += [f" z = s32[] constant(0)\n t = ({elements}) tuple(z, {', '.join(f'x{k}' for k in range(n))})\n"
             f" ROOT w = ({elements}) while(t), condition=c, body=b }}"]
    return "\n".join(rows)


KINDS = [loops, loops_of_one_body, loops_with_collectives, nested_loops, nested_calls, calls, conditionals, chain, dots,
         all_reduces, users, operands, loop_of_many_arrays]
# Programs that would run as long as they are deep, 2 to the power of the instances, or as long as the square of their size.
SHARED = [calls_of_one_large, shared_calls, shared_functions, shared_branches, shared_loops]
SHARED_INSTANCES = 1000


def commands(folder, full):
    opt, inspect, run = (str(folder / name) for name in ("hlo-opt", "hlo-inspect", "hlo-run"))
    result = {
        "print": [opt, "--print=json"],
        "default": [opt, "--passes=default"],
        "tpu": [opt, "--passes=tpu"],
        "diff": [opt, "--passes=simplify", "--print-changed=diff"],
        "hash": [inspect, "hash", "--computations"],
        "stats": [inspect, "stats"],
        "cost": [inspect, "cost", "--by=instruction"],
        "memory": [inspect, "memory"],
        "annotations": [inspect, "annotations", "--passes=default"],
        "simulation": [run, "--device=v5e", "--timing-only", "--memory", "--json"],
    }
    if not full:
        return {name: result[name] for name in ("default", "tpu", "memory", "simulation")}
    result["view"] = [str(folder / "hlo-view"), "--format=json"]
    result["run"] = [run, "--seed=1", "--no-print-results", "--num-threads=1"]
    result["reference"] = [run, "--seed=1", "--no-print-results", "--engine=reference"]
    listed = subprocess.run([opt, "--list-passes"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        if "\t" in line:
            name = line.split("\t")[0]
            result[f"pass {name}"] = [opt, f"--passes={name}"]
    return result


def commands_for_shared(folder, full):
    """Those that do not run the program."""
    result = commands(folder, full)
    result = {name: command for name, command in result.items() if name not in ("run", "reference")}
    result["flatten"] = [str(folder / "hlo-opt"), "--passes=flatten-call-graph"]
    result["translate"] = [str(folder / "hlo-translate"), "--to=stablehlo"]
    return result


def processor_time(command, path, instances):
    """Returns the seconds of user time. Raises ValueError if the command fails."""
    def limit():
        seconds = max(10, instances // 400)
        memory = (1 << 28) + instances * (1 << 17)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen([*command, str(path)], stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=limit)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            errors.seek(0)
            raise ValueError(f"exit code {child.returncode}: {errors.read().decode(errors='replace')[-300:].strip()}")
    return usage.ru_utime


def try_one(command, kind, folder, instances):
    def time_of(count):
        path = folder / f"{kind.__name__}_{count}_{threading.get_ident()}.hlo"
        path.write_text(f"HloModule {kind.__name__}\n{kind(count)}\n")
        return processor_time(command, path, count)
    try:
        time = time_of(instances)
        if time <= FLOOR:
            return ""
        ratio = time / time_of(instances // 4)
        if ratio <= MAX_RATIO:
            return ""
        next_ratio = time_of(4 * instances) / time
    except ValueError as error:
        return str(error)
    if next_ratio <= MAX_RATIO:
        return ""
    return f"{time:.2f} s, {ratio:.1f} times as long as for a quarter; 4 times the instances: {next_ratio:.1f} times that"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--instances", type=int)
    options = parser.parse_args()
    instances = options.instances or (16000 if options.full else 4000)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = []
        for kind in KINDS + SHARED:
            n = SHARED_INSTANCES if kind in SHARED else instances
            tried = commands_for_shared if kind in SHARED else commands
            for name, command in tried(options.bin, options.full).items():
                jobs.append((kind.__name__, name, pool.submit(try_one, command, kind, pathlib.Path(folder), n)))
        for kind, name, job in jobs:
            problem = job.result()
            passed += not problem
            failed += bool(problem)
            if problem:
                print(f"FAILED: {name} on {kind}: {problem}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
