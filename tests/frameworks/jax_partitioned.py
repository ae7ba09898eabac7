#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Partitions the programs of jax_programs/partitioned.py for 8 devices: values as JAX's, and what devices send against XLA.

usage: jax_partitioned.py BIN [--only=REGEX] [--forms=stablehlo,artifact,hlo,proto,dump] [--keep=DIR]

Each program is lowered by the installed JAX, as StableHLO text, as the artifact of jax.export, as HLO text and as an
HloModuleProto; `dump` is what XLA dumps before its passes. BIN/hlo-run partitions and runs each form with --partitions=8,
and its results are compared with those of JAX on 8 CPU devices. Bytes are those of the collectives of one device in one
execution, with loops counted as often as they run: the larger of operand and result, after the partitioner of hlokit
(spmd, of the dump, which says which results may be divided) and of XLA (spmd-partitioning). Prints one line each and `N passed, N failed`: one for each form of a program, and one for the programs of which hlokit's move no
more bytes than XLA's.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

FLAGS = dict(a[2:].split("=", 1) if "=" in a else (a[2:], "") for a in sys.argv[1:] if a.startswith("--"))
DUMP = tempfile.TemporaryDirectory()
os.environ["XLA_FLAGS"] = (f"--xla_force_host_platform_device_count=8 --xla_dump_to={DUMP.name} --xla_dump_hlo_as_text "
                           "--xla_dump_hlo_pass_re=spmd --xla_dump_large_constants --xla_dump_max_hlo_modules=-1 --xla_cpu_multi_thread_eigen=false")
os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np
import jax
from jax import export

from jax_programs import partitioned

FORMS = {"stablehlo": "mlir", "artifact": "mlirbc", "hlo": "hlo", "proto": "pb", "dump": "dump.hlo"}
MIN_AS_FEW = 23


def forms_of(function, args):
    lowered = function.lower(*args)
    module = lowered.compiler_ir("hlo")
    yield "stablehlo", lowered.as_text().encode()
    allowed = [export.DisabledSafetyCheck.custom_call("ragged_all_to_all")]
    exported = export.export(function, platforms=["cpu"], disabled_checks=allowed)(*args)
    yield "artifact", exported.mlir_module_serialized
    yield "hlo", module.as_hlo_text(print_large_constants=True).encode()
    yield "proto", module.as_serialized_hlo_module_proto()


def run(tools, path, args):
    """The results of the program, or what is wrong."""
    made = subprocess.run([f"{tools}/hlo-run", path, "--partitions=8", f"--args={args}", "-o", f"{path}.results.npz",
                           "--no-print-results"], capture_output=True, text=True)
    if made.returncode != 0:
        return f"exit code {made.returncode}: {(made.stdout + made.stderr)[:600]}"
    with np.load(f"{path}.results.npz") as results:
        return [results[k] for k in results.files]


def difference(expected, got):
    if isinstance(got, str):
        return got
    if len(expected) != len(got):
        return f"{len(got)} results, not {len(expected)}"
    for k, (e, g) in enumerate(zip(expected, got)):
        if e.dtype != g.dtype or e.shape != g.shape:
            return f"result {k} is {g.dtype}{g.shape}, not {e.dtype}{e.shape}"
        if not np.allclose(e, g, rtol=1e-3, atol=1e-5 + 1e-4 * np.abs(e).max(initial=0)):
            return f"result {k} differs by {np.abs(e - g).max():.3g}"
    return ""


def sent(tools, path):
    """The bytes that one device sends in one execution of a partitioned program."""
    made = subprocess.run([f"{tools}/hlo-inspect", "collectives", "--json", path], capture_output=True, text=True)
    if made.returncode != 0:
        return None, made.stderr[:600]
    rows = json.loads(made.stdout)[0]["collectives"]
    kinds = {}
    for row in rows:
        kinds[row["kind"]] = kinds.get(row["kind"], 0) + row["runs"]
    return sum(max(row["bytes"], row["result_bytes"]) * row["runs"] for row in rows), kinds


def dumped(before, stage):
    """The dump of the largest program at that stage that XLA has compiled since."""
    names = [n for n in os.listdir(DUMP.name) if n not in before and re.search(stage, n)]
    return max((os.path.join(DUMP.name, n) for n in names), key=os.path.getsize)


def check(tools, name, seed, folder, forms):
    """Prints the line of a program. Returns what failed, and whether it sends no more than XLA's."""
    function, args, *known = partitioned.PROGRAMS[name](np.random.default_rng(seed))
    before = set(os.listdir(DUMP.name))
    texts = {}
    for form, text in forms_of(function, args):
        texts[form] = os.path.join(folder, f"{name}.{FORMS[form]}")
        with open(texts[form], "wb") as out:
            out.write(text)
    try:
        expected = function(*args)
    except Exception:
        if not known:
            raise
        expected = known[0]
    expected = [np.asarray(x) for x in jax.tree.leaves(expected)]
    texts["dump"] = os.path.join(folder, f"{name}.{FORMS['dump']}")
    shutil.copy(dumped(before, r"before_optimizations\.txt"), texts["dump"])
    np.savez(os.path.join(folder, f"{name}.args.npz"), *jax.tree.leaves(args))
    failed = []
    for form in forms:
        why = difference(expected, run(tools, texts[form], os.path.join(folder, f"{name}.args.npz")))
        if why:
            failed.append(f"{name} ({form}): {why}")
    device = os.path.join(folder, f"{name}.device.hlo")
    made = subprocess.run([f"{tools}/hlo-opt", "--passes=spmd", texts["dump"], "-o", device], capture_output=True, text=True)
    ours, by_kind = sent(tools, device) if made.returncode == 0 else (None, made.stderr[:600])
    theirs, their_kinds = sent(tools, dumped(before, r"after_spmd-partitioning\."))
    as_few = ours is not None and theirs is not None and ours <= theirs
    print(f"{name}: values {'right' if not failed else 'WRONG'}, bytes {ours}/{theirs}", flush=True)
    if not as_few or "verbose" in FLAGS:
        print(f"    {by_kind} against {their_kinds}")
    for why in failed:
        print(f"FAILED {why}", flush=True)
    return failed, as_few


def main():
    tools = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(tools) != 1:
        sys.exit(__doc__)
    forms = FLAGS.get("forms", ",".join(FORMS)).split(",")
    folder = FLAGS.get("keep") or DUMP.name
    os.makedirs(folder, exist_ok=True)
    print(f"jax {jax.__version__}")
    names = [n for n in partitioned.PROGRAMS if re.search(FLAGS.get("only", ""), n)]
    failed, few = [], 0
    for seed, name in enumerate(names):
        try:
            wrong, as_few = check(tools[0], name, seed, folder, forms)
        except Exception as e:
            wrong, as_few = [f"{name}: {type(e).__name__}: {str(e)[:300]}"] * len(forms), False
            print(f"FAILED {wrong[0]}", flush=True)
        failed += wrong
        few += as_few
    enough = few >= min(MIN_AS_FEW, len(names))
    print(f"{few} of {len(names)} move no more bytes than XLA's{'' if enough else ': FAILED'}")
    print(f"{len(names) * len(forms) - len(failed) + enough} passed, {len(failed) + (not enough)} failed")
    sys.exit(1 if failed or not enough or not names else 0)


if __name__ == "__main__":
    main()
