# SPDX-License-Identifier: Apache-2.0
"""Measured times of TPUs and the programs that they belong to, for tpu_accuracy.py.

`fit`: used to choose figures of a target. `part`: a part of the row was. `seen`: not used, but the program or the model
of the hardware was revised after the first error was known, so no blind test.
"""
import collections
import csv
import os
import re

import gpt3
import models
import training

# `make` returns the HLO programs of the row. The predicted time is the sum of their device times, or of those of one
# `category` of operations, times `scale` in the unit of `measured`, plus `added`.
Row = collections.namedtuple("Row", "family name label device flags make scale measured unit category added", defaults=(None, 0))

CHUNK = 8192       # tokens of a step of the inference server
TRACED = 8         # tokens of each sequence in the traces of decoding
DISPATCH_US = 113  # of a call that waits for its result, part of times that the host measured

FAMILIES = {  # family -> what it holds, target in percent
    "gemm": ("v6e matmuls", 7),
    "elementwise": ("v6e elementwise and reductions", 10),
    "streams": ("v6e streams of 33 MB to 3 GB", 10),
    "attention": ("v6e attention kernels alone", 10),
    "paged": ("v6e paged attention of a layer of Qwen3-8B", 10),
    "prefill": ("v6e Qwen3-8B prefill", 10),
    "decode": ("v6e Qwen3-8B decode", 8),
    "interconnect": ("v2 reduce-scatter, v5e all-gathers", 10),
    "training": ("training of language models, v6e and v5p", 10),
    "bert": ("BERT-large training, 16 v3 chips", 10),
    "v2": ("v2 matmul", 10),
}


def csv_rows(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        yield from csv.DictReader(line for line in file if not line.startswith("#"))


def prefill(sequence, batch):
    at_once = max(min(batch, CHUNK // sequence), 1)
    return models.prefill(models.QWEN3_8B, sequence, at_once), batch / at_once


def chain(us, start=16):
    """Iterations of the longer of the two chains whose difference was measured: 16 doubled, at most to 4096, until a call
    takes a millisecond, with what the host needs to start it; then twice as many."""
    n = start
    while n < 4096 and n * us + DISPATCH_US < 1000:
        n *= 2
    return 2 * n


def decoding_batches(sequence, batch):
    """Sequences in each decoding step of a trace. Each has TRACED tokens; the first comes from its prompt, which the server
    reads in chunks of CHUNK tokens, after a token for each sequence that decodes. So sequences begin and end at different
    steps. The trace counts the steps whose tokens, rounded up to a power of two of at least 16, are those of all sequences,
    be they rest of a prompt or decoding."""
    waiting, decoding, counted = [sequence] * batch, [], []
    width = padded(batch)
    while waiting or decoding:
        left = CHUNK - len(decoding)
        tokens, done, sequences = len(decoding), 0, len(decoding)
        while waiting and left > 0:
            part = min(waiting[0], left)
            left -= part
            tokens += part
            sequences += 1
            waiting[0] -= part
            if waiting[0] > 0:
                break
            waiting.pop(0)
            done += 1
        if padded(tokens) == width:
            counted.append(sequences)
        decoding = [n - 1 for n in decoding if n > 1] + [TRACED - 1] * done
    return counted


def padded(tokens):
    return max(16, 1 << (tokens - 1).bit_length())


def groups_along(chips, stride):
    """Groups of devices `stride` apart, of so many chips."""
    return "{{" + "},{".join(models.commas(range(c, chips, stride)) for c in range(stride)) + "}}"


def all_rows(folder, only=""):
    """Every row whose family and name match the regular expression."""
    rows = []

    def add(family, name, label, device, measured, unit, make, scale=1e-6, flags=(), category=None, added=0):
        if re.search(only, f"{family} {name}"):
            rows.append(Row(family, name, label, device, tuple(flags), make, scale / {"us": 1e-6, "ms": 1e-3, "s": 1}[unit], measured, unit,
                            category, added))

    for r in csv_rows(folder, "v6e_gemm_measured.csv"):
        m, k, n, us = int(r["M"]), int(r["K"]), int(r["N"]), float(r["us"])
        # 268 MB of weights were measured in a chain of 16.
        trips = 16 if (k, n) == (4096, 32768) else chain(us)
        add("gemm", f"{m}x{k}x{n}", "fit", "v6e", us, "us", lambda m=m, k=k, n=n, trips=trips: [models.gemm(m, k, n, trips)], 1e-6 / trips)
    add("gemm", "8192^3, 64 MiB of tiles", "seen", "v6e", 1328.8, "us", lambda: [models.gemm(8192, 8192, 8192, 1)], 1e-6,
        ("--scale=vmem_scoped=4",))
    for r in csv_rows(folder, "v6e_elementwise_measured.csv"):
        op, elements, us = r["op"], int(r["elements"]), float(r["us"])
        trips = chain(us)
        add("elementwise", f"{op} {elements}", "fit", "v6e", us, "us",
            lambda op=op, elements=elements, trips=trips: [models.elementwise(op, elements, trips)], 1e-6 / trips)
    add("streams", "copy 33.5 MB", "fit", "v6e", 49.36, "us", lambda: [models.stream(1, 32)])
    # Calls that the host waited for: x * 1.5, and x * 1.5 + y, of arrays of so many MiB.
    for mib, scaled, triad in ((64, 209.98, 253.675), (256, 488.49, 666.6), (1024, 1618.79, 2349.955)):
        for name, operands, us in (("scale", 1, scaled), ("triad", 2, triad)):
            add("streams", f"{name} {mib} MiB", "fit", "v6e", us, "us", lambda operands=operands, mib=mib: [models.stream(operands, mib)],
                added=DISPATCH_US)
    for length, batch, label, us in ((512, 1, "fit", 23.5), (512, 8, "seen", 208.81), (512, 32, "seen", 964.94), (2048, 1, "fit", 238.0),
                                     (2048, 8, "seen", 2821.89), (8192, 1, "fit", 4141.0)):
        add("attention", f"flash {batch}x{length}", label, "v6e", us, "us", lambda length=length, batch=batch: [models.flash(length, batch, 8)],
            1e-6 / 8, category="custom-call")
    # Qwen3-8B in training on v6e, 3 sequences of 8192: profiles of 3 steps on 8 chips, a layer's share.
    for name, backward, us in (("splash forward 3x8192", False, 6027.0), ("splash backward 3x8192", True, 13474.0)):
        add("attention", name, "seen", "v6e", us, "us", lambda backward=backward: [models.splash(8192, 3, backward)])
    for r in csv_rows(folder, "v6e_llm_measured.csv"):
        sequence, batch = int(r["seq"]), int(r["batch"])
        if r["mode"] == "decode":
            steps = decoding_batches(sequence, batch)
            make = lambda sequence=sequence, batch=batch, steps=tuple(steps): [  # noqa: E731
                models.decode(models.QWEN3_8B, sequence, n, padded(batch)) for n in steps]
            times = 1 / len(steps)
        else:
            make = lambda sequence=sequence, batch=batch: [prefill(sequence, batch)[0]]  # noqa: E731
            times = prefill(sequence, batch)[1]
        add(r["mode"], f"{sequence}x{batch}", "part", "v6e", float(r["dev_ms"]), "ms", make, 1e-6 * times)
        add("paged", f"{r['mode']} {sequence}x{batch}", "fit", "v6e", 1000 * float(r["attention"]) / models.QWEN3_8B["layers"], "us",
            make, 1e-6 * times / models.QWEN3_8B["layers"], category="custom-call")
    add("v2", "8 cores, gemm", "fit", "v2", 96.0, "ms", lambda: [models.gemm(32 * 1024 // 8, 8192, 32768, 100)], 1e-6 / 100)
    add("interconnect", "v2 reduce-scatter", "fit", "v2:2x1", 1130.0, "us", lambda: [models.scatter(134e6, "{{0,1},{2,3}}")])
    add("interconnect", "v5e small all-gather", "fit", "v5e:8x4", 8.0, "us", lambda: [models.gather_loop("bf16[64,256]", groups_along(32, 8), 0, 4)])
    add("interconnect", "v5e all-gather", "fit", "v5e:8x4", 680.0, "us", lambda: [models.gather_loop("bf16[512,8192]", groups_along(32, 8), 0, 4)])
    add("bert", "v3 16 chips", "seen", "v3:4x4", 460.48, "ms", lambda: [training.bert_large(14, 32)])
    add("training", "gpt-3 175b int8 v5p-512", "seen", "v5p:8x8x8", 22.197, "s", lambda: [gpt3.step()])
    # tpu-recipes; the others with the same recipe, in public logs (vlasenkoalexey/tpu_performance_autoresearch_wiki).
    add("training", "llama-3.1-8b v6e-8", "seen", "v6e:2x4", 3.443, "s", lambda: [training.llama_8b(3, 8)])
    add("training", "qwen3-8b v6e-8 3x8192", "seen", "v6e:2x4", 3.535, "s", lambda: [training.qwen3_8b(3, 8192, 8)])
    add("training", "qwen3-8b v6e-8 12x2048", "seen", "v6e:2x4", 3.106, "s", lambda: [training.qwen3_8b(12, 2048, 8)])
    return rows
