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

# `make` returns the HLO of the row; the predicted time is the device time times `scale`, in the unit of `measured`.
Row = collections.namedtuple("Row", "family name label device flags make scale measured unit")

TRIPS = 1000
CHUNK = 8192  # tokens of a prefill step

FAMILIES = {  # family -> what it holds, target in percent
    "gemm": ("v6e matmuls", 7),
    "elementwise": ("v6e elementwise and reductions", 10),
    "streams": ("v6e streams of 33 MB and 1 GB", 10),
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


def groups_along(chips, stride):
    """Groups of devices `stride` apart, of so many chips."""
    return "{{" + "},{".join(models.commas(range(c, chips, stride)) for c in range(stride)) + "}}"


def all_rows(folder, only=""):
    """Every row whose family and name match the regular expression."""
    rows = []

    def add(family, name, label, device, measured, unit, make, scale=1e-6, flags=()):
        if re.search(only, f"{family} {name}"):
            rows.append(Row(family, name, label, device, tuple(flags), make, scale / {"us": 1e-6, "ms": 1e-3, "s": 1}[unit], measured, unit))

    for r in csv_rows(folder, "v6e_gemm_measured.csv"):
        m, k, n = int(r["M"]), int(r["K"]), int(r["N"])
        add("gemm", f"{m}x{k}x{n}", "fit", "v6e", float(r["us"]), "us", lambda m=m, k=k, n=n: models.gemm(m, k, n, TRIPS), 1e-6 / TRIPS)
    add("gemm", "8192^3, 64 MiB of tiles", "seen", "v6e", 1328.8, "us", lambda: models.gemm(8192, 8192, 8192, TRIPS), 1e-6 / TRIPS,
        ("--scale=vmem_scoped=4",))
    for r in csv_rows(folder, "v6e_elementwise_measured.csv"):
        op, elements = r["op"], int(r["elements"])
        add("elementwise", f"{op} {elements}", "fit", "v6e", float(r["us"]), "us",
            lambda op=op, elements=elements: models.elementwise(op, elements, TRIPS), 1e-6 / TRIPS)
    # 33.5 MB are read and written again; a gigabyte at 1327 GB/s; three arrays of a gigabyte at 1371 GB/s.
    for name, operands, megabytes, us in (("copy 33.5 MB", 1, 33.554, 49.36), ("copy 1 GB", 1, 1073.74, 1618.3), ("triad 1 GB", 2, 1073.74, 2349.6)):
        add("streams", name, "seen", "v6e", us, "us", lambda operands=operands, megabytes=megabytes: models.stream(operands, megabytes))
    for length, us in ((512, 23.5), (2048, 238.0), (8192, 4141.0)):
        add("attention", f"flash {length}", "fit", "v6e", us, "us", lambda length=length: models.flash(length))
    # Qwen3-8B in training on v6e, 3 sequences of 8192: profiles of 3 steps on 8 chips, a layer's share.
    for name, backward, us in (("splash forward 3x8192", False, 6027.0), ("splash backward 3x8192", True, 13474.0)):
        add("attention", name, "seen", "v6e", us, "us", lambda backward=backward: models.splash(8192, 3, backward))
    for r in csv_rows(folder, "v6e_llm_measured.csv"):
        sequence, batch = int(r["seq"]), int(r["batch"])
        at_once = batch if r["mode"] == "decode" else batch / prefill(sequence, batch)[1]
        tokens = 1 if r["mode"] == "decode" else sequence
        add("paged", f"{r['mode']} {sequence}x{batch}", "fit", "v6e", 1000 * float(r["attention"]) / models.QWEN3_8B["layers"], "us",
            lambda sequence=sequence, at_once=int(at_once), tokens=tokens: models.paged(sequence, at_once, tokens), 1e-6 * batch / at_once)
        if r["mode"] == "decode":
            add("decode", f"{sequence}x{batch}", "part", "v6e", float(r["dev_ms"]), "ms",
                lambda sequence=sequence, batch=batch: models.decode(models.QWEN3_8B, sequence, batch))
        else:
            add("prefill", f"{sequence}x{batch}", "part", "v6e", float(r["dev_ms"]), "ms",
                lambda sequence=sequence, batch=batch: prefill(sequence, batch)[0], 1e-6 * prefill(sequence, batch)[1])
    add("v2", "8 cores, gemm", "fit", "v2", 96.0, "ms", lambda: models.gemm(32 * 1024 // 8, 8192, 32768, 100), 1e-6 / 100)
    add("interconnect", "v2 reduce-scatter", "fit", "v2:2x1", 1130.0, "us", lambda: models.scatter(134e6, "{{0,1},{2,3}}"))
    add("interconnect", "v5e small all-gather", "fit", "v5e:8x4", 8.0, "us", lambda: models.gather_loop("bf16[64,256]", groups_along(32, 8), 0, 4))
    add("interconnect", "v5e all-gather", "fit", "v5e:8x4", 680.0, "us", lambda: models.gather_loop("bf16[512,8192]", groups_along(32, 8), 0, 4))
    add("bert", "v3 16 chips", "seen", "v3:4x4", 460.48, "ms", lambda: training.bert_large(14, 32))
    add("training", "gpt-3 175b int8 v5p-512", "seen", "v5p:8x8x8", 22.197, "s", gpt3.step)
    # tpu-recipes; the others with the same recipe, in public logs (vlasenkoalexey/tpu_performance_autoresearch_wiki).
    add("training", "llama-3.1-8b v6e-8", "seen", "v6e:2x4", 3.443, "s", lambda: training.llama_8b(3, 8))
    add("training", "qwen3-8b v6e-8 3x8192", "seen", "v6e:2x4", 3.535, "s", lambda: training.qwen3_8b(3, 8192, 8))
    add("training", "qwen3-8b v6e-8 12x2048", "seen", "v6e:2x4", 3.106, "s", lambda: training.qwen3_8b(12, 2048, 8))
    return rows
