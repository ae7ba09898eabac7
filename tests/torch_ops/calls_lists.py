# SPDX-License-Identifier: Apache-2.0
"""Ops on lists of tensors."""


def calls(case, t):
    for op in ("add", "sub", "mul", "div"):
        low = 0.5 if op == "div" else -2
        case(f"foreach_{op}_scalar", f"_foreach_{op}.Scalar", [t.f32(2), t.f32(2, 2)], 1.5)
        case(f"foreach_{op}_list", f"_foreach_{op}.List", [t.f32(2), t.f32(1, 2)], [t.f32(2, low=low), t.f32(1, 2, low=low)])
        case(f"foreach_{op}_scalars", f"_foreach_{op}.ScalarList", [t.f32(2), t.f32(3)], [2.5, -3.0])
        case(f"foreach_{op}_inplace_scalar", f"_foreach_{op}_.Scalar", [t.f32(2), t.f32(2, 2)], 2)
        case(f"foreach_{op}_inplace_list", f"_foreach_{op}_.List", [t.f32(2), t.f32(2)], [t.f32(2, low=low), t.f32(2, low=low)])
        case(f"foreach_{op}_inplace_scalars", f"_foreach_{op}_.ScalarList", [t.f32(2), t.f32(0)], [0.5, 2.0])
    case("foreach_add_ints", "_foreach_add.Scalar", [t.s64(2), t.s32(2)], 3)
    case("foreach_mul_promote", "_foreach_mul.Scalar", [t.s64(2), t.f32(2)], 1.5)
    case("foreach_add_alpha", "_foreach_add.List", [t.f32(2)], [t.f32(2)], alpha=-2)
    case("foreach_mul_bf16", "_foreach_mul.Scalar", [t.bf16(3)], 0.5)
    for op in ("addcmul", "addcdiv"):
        tensors = [t.f32(2), t.f32(2, 2)], [t.f32(2), t.f32(2, 2)], [t.f32(2, low=0.5), t.f32(2, 2, low=0.5)]
        case(f"foreach_{op}_scalar", f"_foreach_{op}.Scalar", *tensors, 0.5)
        case(f"foreach_{op}_scalars", f"_foreach_{op}.ScalarList", *tensors, [0.5, -2.0])
        case(f"foreach_{op}_inplace", f"_foreach_{op}_.Scalar", *tensors, -0.1)
        case(f"foreach_{op}_inplace_scalars", f"_foreach_{op}_.ScalarList", *tensors, [1.5, 2.0])
    for op in ("sqrt", "neg", "exp", "abs", "reciprocal"):
        case(f"foreach_{op}", f"_foreach_{op}", [t.f32(2, low=0.25), t.f32(2, 2, low=0.25)])
        case(f"foreach_{op}_one", f"_foreach_{op}", [t.f64(3, low=0.25)])
        case(f"foreach_{op}_inplace", f"_foreach_{op}_", [t.f32(2, low=0.25), t.f32(0)])
        case(f"foreach_{op}_inplace_bf16", f"_foreach_{op}_", [t.bf16(2, low=0.25)])
    case.error("foreach_lengths", "_foreach_add.List", [t.f32(2)], [t.f32(2), t.f32(2)],
               words="Tensor lists must have the same number of tensors, got 1 and 2")
    case.error("foreach_scalars_length", "_foreach_mul.ScalarList", [t.f32(2)], [1.0, 2.0],
               words="Tensor list must have same number of elements as scalar list")
