# SPDX-License-Identifier: Apache-2.0
"""Elementwise mathematics: trigonometry, special functions, arithmetic of two tensors, bits."""

EDGES = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.5, -2.5, 1e-30, 80.0]


def calls(case, t):
    for op, low, high in [("acos", -0.95, 0.95), ("asin", -0.95, 0.95), ("acosh", 1.05, 4), ("asinh", -3, 3),
                          ("atanh", -0.9, 0.9), ("tan", -1.2, 1.2)]:
        case(f"{op}_f32", op, t.f32(2, 3, low=low, high=high), grad=True)
        case(f"{op}_bf16", op, t.bf16(4, low=low, high=high), grad=True)
        case(f"{op}_f64", op, t.f64(3, low=low, high=high), grad=True)
        case(f"{op}_s64", op, t.s64(4, low=0, high=1))
        case(f"{op}_pred_rank0", op, t.values(True, "pred"))
        case(f"{op}_edges", op, t.values(EDGES))
        case(f"{op}_empty", op, t.f32(0, 3), grad=True)
