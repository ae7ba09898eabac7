# SPDX-License-Identifier: Apache-2.0
"""Random ops: the sizes and types of their results, without elements, and what torch rejects. Their distributions are
tested in tests/unit/tracer/ops/random_test.cc."""


def calls(case, t):
    f64 = t.values(1.0, "f64").dtype
    for op, bad in (("cauchy", (0.0, 0.0)), ("geometric", (1.5,)), ("log_normal", (0.0, 0.0)), ("exponential", (0.0,))):
        good = (0.5,) if op == "geometric" else ()
        case(f"{op}_none", op, t.f32(0, 3), *good)
        case(f"{op}_f64", op, t.f64(2, 0), *good)
        case(f"{op}_inplace_none", op + "_", t.f32(0), *good)
        case(f"{op}_inplace_bf16", op + "_", t.bf16(0, 2), *good)
        # torch 1.13 does not check the others.
        if op in ("geometric", "log_normal"):
            case.error(f"{op}_range", op + "_", t.f32(2), *bad, words=f"{op}_ expects")
    case("geometric_ints", "geometric_", t.s64(0), 0.5)
    case("poisson_zero", "poisson", t.values([[0.0, 0.0]]), exact=True)
    case("poisson_none", "poisson", t.f64(0, 2))
    case("normal_mean", "normal.Tensor_float", t.f32(0, 2), 2.0)
    case("normal_exact_mean", "normal.Tensor_float", t.f32(3), 0.0)
    case("normal_std", "normal.float_Tensor", 1.0, t.f64(0))
    case("normal_no_std", "normal.float_Tensor", 1.5, t.values([0.0, 0.0]))
    case("normal_both", "normal.Tensor_Tensor", t.f32(2, 1), t.values([[0.0, 0.0]]))
    case("normal_both_none", "normal.Tensor_Tensor", t.f32(0), t.f32(1, low=1))
    case("normal_sizes", "normal.float_float", 1.0, 0.0, (2, 2))
    case("normal_sizes_f64", "normal.float_float", 1.0, 2.0, (0, 2), dtype=f64)
    case.error("normal_negative", "normal.Tensor_float", t.f32(2), -1.0, words="normal expects std >= 0.0, but found std -1")
    case("randint_like_one", "randint_like", t.f32(2, 2), 1, exact=True)
    case("randint_like_type", "randint_like", t.f32(0), 7, dtype=t.values(1, "s32").dtype)
    case("randint_like_low", "randint_like.low_dtype", t.s64(3), 4, 5)
    case("randint_like_low_none", "randint_like.low_dtype", t.f64(0, 2), -4, 5)
    case.error("randint_like_range", "randint_like.low_dtype", t.s64(2), 5, 5, words="random_ expects 'from' to be less than 'to'")
