#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares translations between StableHLO and HLO with those of XLA.

  stablehlo_pairs.py BIN DIR [--only=REGEX] [--fails=FILE] [--minimum=KIND:COUNT ...]

BIN contains hlo-translate, hlo-inspect and hlo-opt. DIR/index.tsv lists the pairs, DIR/to-hlo and DIR/to-stablehlo have them. By
state: of `full` and `closed` the fingerprints without annotations must be equal to those of the recorded module, of
`checks` FileCheck must find its lines, and `rejected` must be rejected. The other way, `full` must print as the recorded
text does when it is read and printed again (in part where that is incomplete). Prints a line for each direction and state; exits with 1 if one is below its
minimum (`--minimum=to-hlo/full:50`).
"""
import argparse
import collections
import csv
import pathlib
import re
import shutil
import subprocess
import sys

# Pairs whose HLO is not verified, as XLA's translator never does: `main` takes or returns a buffer (memref), which the
# verifier rejects in an entry computation.
NOT_VERIFIED = {
    "stablehlo__custom_call__10",
    "stablehlo__custom_call__11",
    "stablehlo__get_tuple_element__2",
    "stablehlo__tuple__2",
    "mhlo_to_hlo.export__custom_call__18",
    "mhlo_to_hlo.export__custom_call__19",
    "mhlo_to_hlo.export__tuple__2",
    "mhlo_to_hlo.export__while__2",
}

# Pairs that differ, and why. Those that do not pass and have no reason here are shown as such in --fails.
NUMBERS = "the lines hold numbers of XLA's printer, which skips some"
ASYNC_SHAPE = "the verifier rejects the shape of the start, which XLA took before it was fixed"
REASONS = {
    "stablehlo__reduce_scatter__4": "an unused constant of main is kept, as in XLA's other tests",
    "mhlo_to_hlo.export__rng": "the constant sizes are kept, as in stablehlo__rng, of which the whole module is known",
    "mhlo_to_hlo.export-with-layouts__module": "sparse tensors are rejected; XLA takes them as dense ones",
    "mhlo_to_hlo.opaque_elements_attr__module": "an elided constant is HLO's constant({...})",
    "stablehlo__create_token__2": NUMBERS,
    "mhlo_to_hlo.export__sort": NUMBERS,
    "mhlo_to_hlo.sharding__rng_bit_generator__2": NUMBERS,
    "mhlo_to_hlo.sharding__create_token": NUMBERS,
    "mhlo_to_hlo.sharding__add__3": NUMBERS,
    "mhlo_to_hlo.if__if": "constants of branches have metadata: the lines want a brace only after them",
    "mhlo_to_hlo.input_output_aliasing__add": "a comment of an older printer of XLA",
    "mhlo_to_hlo.layouts_and_names__infeed__2": "the layout of a tuple is that of its elements",
    "mhlo_to_hlo.module_attributes__type_extensions": "fields of the protocol buffer that modules do not have",
    "mhlo_to_hlo.module_attributes__custom_call": "fields of the protocol buffer that modules do not have",
    "import_async__all_gather_done": ASYNC_SHAPE,
    "import_async__collective_permute_done": ASYNC_SHAPE,
    "import_async__all_reduce_done__2": ASYNC_SHAPE,
    "import_async__all_gather_done__3": "replica groups by mesh axes are written as lists of devices",
}


def call(*command, text=None):
    done = subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True, check=False,
                          timeout=300)
    return done.returncode, done.stdout, done.stderr


class Runner:
    def __init__(self, options):
        self.translate = options.bin / "hlo-translate"
        self.inspect = options.bin / "hlo-inspect"
        self.opt = options.bin / "hlo-opt"
        self.filecheck = next((found for name in ("FileCheck", "FileCheck-19", "FileCheck-14")
                               if (found := shutil.which(name))), None)

    def hash(self, path, text=None):
        code, out, _ = call(self.inspect, "hash", path, text=text)
        return out.split()[0] if code == 0 and out else None

    def check(self, output, path):
        if self.filecheck is None:
            return "no FileCheck"
        code, _, errors = call(self.filecheck, path, "--dump-input=never", text=output)
        return "" if code == 0 else "checks: " + (errors.strip().splitlines() or ["?"])[0][-120:]

    def to_hlo(self, stem, row):
        flags = ["--as-xla"]
        if "-emit-return-tuple" in row["flags"]:
            flags.append("--return-tuple")
        if "-emit-use-tuple-args" in row["flags"]:
            flags.append("--tuple-args")
        # XLA's translator prints protocol buffers with these flags.
        proto = re.search(r"-emit-proto|-mlir-hlo-to-hlo( |$)", row["flags"]) is not None
        if row["name"] in NOT_VERIFIED:
            flags.append("--no-verify")
        code, out, errors = call(self.translate, f"--to={'textproto' if proto else 'hlo'}", *flags, f"{stem}.mlir")
        first = (errors.strip().splitlines() or ["?"])[0].split("error: ")[-1][:160]
        if row["state"] == "rejected":
            return "" if code == 1 else "accepted"
        if code != 0:
            return f"rejected: {first}"
        if row["state"] == "checks":
            if proto:
                return self.check(out, f"{stem}.check")
            layouts = "--print-layouts" if "-print-layouts" in row["flags"] else "--no-print-layouts"
            sugar = "--no-print-async-sugar" if "--print-sugar=false" in row["flags"] else "--print-async-sugar"
            _, out, _ = call(self.opt, "--print=default", layouts, sugar, "--no-verify", "-", text=out)
            return self.check(out, f"{stem}.check")
        return "" if self.hash("-", out) == self.hash(f"{stem}.hlo") else "another graph"

    def to_stablehlo(self, stem, row):
        code, out, errors = call(self.translate, "--to=stablehlo", "--as-xla", f"{stem}.hlo")
        first = (errors.strip().splitlines() or ["?"])[0].split("error: ")[-1][:160]
        if code != 0:
            return f"rejected: {first}"
        if row["state"] == "checks":
            return self.check(out, f"{stem}.check")
        readable, want, _ = call(self.translate, "--to=stablehlo", "--no-verify", f"{stem}.mlir")
        if readable != 0:  # some texts are incomplete: what is known of them is in the lines
            return self.check(out, f"{stem}.check")
        return "" if out == want else "another text"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--fails", type=pathlib.Path)
    parser.add_argument("--minimum", action="append", default=[])
    options = parser.parse_args()
    runner = Runner(options)
    passed, total, failures = collections.Counter(), collections.Counter(), []
    with (options.dir / "index.tsv").open(encoding="utf-8") as index:
        for row in csv.DictReader(index, delimiter="\t", quoting=csv.QUOTE_NONE):
            if not re.search(options.only, row["name"]):
                continue
            kind = f'{row["direction"]}/{row["state"]}'
            stem = options.dir / row["direction"] / row["name"]
            why = runner.to_hlo(stem, row) if row["direction"] == "to-hlo" else runner.to_stablehlo(stem, row)
            total[kind] += 1
            passed[kind] += not why
            if why:
                reason = REASONS.get(row["name"], "no reason known")
                failures.append(f'{kind}\t{row["name"]}\t{why}\t{reason}')
    for kind in sorted(total):
        print(f"{kind}: {passed[kind]} of {total[kind]}")
    if options.fails:
        options.fails.write_text("".join(line + "\n" for line in failures), encoding="utf-8")
    low = [m for m in options.minimum if passed[m.rpartition(":")[0]] < int(m.rpartition(":")[2])]
    for m in low:
        print(f"FAILED: below the minimum {m}")
    sys.exit(1 if low else 0)


main()
