#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the ops that hlokit.torch records of programs with those that torch's own lazy tracer recorded of them.

  tools/torch_traces.py FOLDER [--python build/release/python] [--programs tests/torch_traces] [--ops]

FOLDER holds NAME.lazy.txt, the nodes of a step by torch's tracer, one op a line, or where that tracer failed NAME.txt, the
calls of the same step in eager mode; the programs are functions of programs.py. Counts nodes by op, without leaves and
constants; ops with another name here are renamed. Each difference must be listed in differences.tsv next to the programs,
with the reason, and each listed one must occur: anything else is a failure, with exit code 1. Without PyTorch nothing is
compared.
"""
import argparse
import collections
import csv
import importlib
import importlib.util
import pathlib
import re
import sys

# Names of nodes: torch's to PyTorch/XLA's, which are used here.
NAMES = {
    "aten::_log_softmax": "aten::log_softmax",
    "aten::_reshape_alias": "aten::view",
    "aten::_softmax": "aten::softmax",
    "aten::_unsafe_view": "aten::view",
    "aten::convolution": "aten::convolution_overrideable",
    "aten::convolution_backward": "aten::convolution_backward_overrideable",
    "aten::expand_copy": "aten::expand",
    "aten::max_pool2d_with_indices": "aten::max_pool",
    "aten::permute_copy": "aten::permute",
    "aten::select_copy": "xla::select",
    "aten::slice_copy": "xla::generic_slice",
    "aten::t": "aten::permute",
    "aten::t_copy": "aten::permute",
    "aten::transpose": "aten::permute",
    "aten::transpose_copy": "aten::permute",
    "aten::unsqueeze_copy": "aten::view",
    "aten::view_copy": "aten::view",
}
LEAVES = {"lazy_tensors::device_data", "xla::device_data", "prim::Constant"}


def theirs(folder, name):
    path = folder / f"{name}.lazy.txt"
    if not path.exists():
        path = folder / f"{name}.txt"
    ops = (line.strip() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#"))
    names = (op.split(".")[0] for op in ops if op not in LEAVES)  # without overloads
    return collections.Counter(NAMES.get(op, op) for op in names)


def ours(program, ht):
    ht.configure(devices=1, debug=False)
    text = ht.pending(program()).lazy_ir
    ops = re.findall(r"^  %\d+ = (?:\(.*?\)|\S+) (\w+::\w+)\(", text, re.M)
    return collections.Counter(op for op in ops if op not in LEAVES)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--python", type=pathlib.Path, default=pathlib.Path("build/release/python"), help="the package's folder")
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("tests/torch_traces"))
    parser.add_argument("--ops", action="store_true", help="print what differs, reasons or not, as rows of differences.tsv")
    options = parser.parse_args()
    sys.path[:0] = [str(options.python.resolve()), str(options.programs.resolve())]
    if importlib.util.find_spec("torch") is None:
        print("the traces are left out: PyTorch is not installed")
        return 0
    try:
        ht = importlib.import_module("hlokit.torch")
    except ImportError as error:
        print(f"the traces are left out: {error}")
        return 0
    programs = importlib.import_module("programs").PROGRAMS

    explained = collections.defaultdict(dict)
    with open(options.programs / "differences.tsv", newline="") as table:
        for row in csv.DictReader(table, delimiter="\t"):
            explained[row["program"]][row["op"]] = (int(row["theirs"]), int(row["ours"]))
    right = total = same = all_ops = 0
    for name, program in sorted(programs.items()):
        a, b = theirs(options.folder, name), ours(program, ht)
        differ = {op: (a[op], b[op]) for op in sorted(set(a) | set(b)) if a[op] != b[op]}
        wrong = {op: n for op, n in differ.items() if explained[name].get(op) != n}
        stale = [op for op in explained[name] if op not in differ]
        total += 1
        right += not wrong and not stale
        both = sum((a & b).values())
        same += both
        all_ops += sum(a.values())
        print(f"{name}: {both} of {sum(a.values())} nodes the same, {len(differ)} ops differ")
        for op, (x, y) in differ.items():
            if options.ops:
                print(f"{name}\t{op}\t{x}\t{y}")
        for op, (x, y) in wrong.items():
            print(f"  FAILED: {op} is there {y} times, {x} times by torch, and nothing explains it")
        for op in stale:
            print(f"  FAILED: {op} no longer differs")
    print(f"{same} of {all_ops} nodes the same")
    print(f"{right} of {total} traces")
    return 0 if right == total else 1


if __name__ == "__main__":
    sys.exit(main())
