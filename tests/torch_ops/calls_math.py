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
    for op, low, high in [("arccos", -0.95, 0.95), ("arcsin", -0.95, 0.95), ("arccosh", 1.05, 4), ("arcsinh", -3, 3),
                          ("arctanh", -0.9, 0.9), ("arctan", -2, 2)]:
        case(f"{op}_f32", op, t.f32(2, 3, low=low, high=high), grad=True)
        case(f"{op}_s64", op, t.s64(3, low=1, high=1))
    case("arctan2_f32", "arctan2", t.f32(2, 3), t.f32(3), grad=True)
    case("arctan2_ints", "arctan2", t.s64(3), t.s64(3, low=1))
    two_tensors(case, t)
    comparisons(case, t)
    bits(case, t)
    special(case, t)
    sums(case, t)


NAN, INF = float("nan"), float("inf")


def two_tensors(case, t):
    left = [0.0, -0.0, 3.0, -4.0, INF, -INF, NAN, 1.5, INF, 2.0]
    right = [0.0, 1.0, 4.0, -3.0, NAN, 2.0, 1.0, NAN, INF, -0.0]
    for op in ("hypot", "copysign.Tensor", "fmax", "fmin", "logaddexp", "logaddexp2", "xlogy.Tensor", "special_xlog1py"):
        name = op.partition(".")[0]
        low = 0.25 if "log" in name and "add" not in name else -2
        case(f"{name}_f32", op, t.f32(2, 3), t.f32(3, low=low), grad=True)
        case(f"{name}_column", op, t.f32(2, 1), t.f32(1, 3, low=low), grad=True)
        case(f"{name}_edges", op, t.values(left), t.values(right))
        case(f"{name}_f64", op, t.f64(3), t.f64(3, low=low), grad=True)
        case(f"{name}_empty", op, t.f32(0, 2), t.f32(2), grad=True)
        case.error(f"{name}_sizes", op, t.f32(2), t.f32(3, low=low),
                   words="The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0")
    case("hypot_large", "hypot", t.values([3e38, 1e-30]), t.values([1e38, 1e-30]))
    case("hypot_bf16", "hypot", t.bf16(4), t.bf16(4), grad=True)
    case.error("hypot_ints", "hypot", t.s64(2), t.s64(2))
    case("copysign_ints", "copysign.Tensor", t.s64(4), t.s64(4), exact=True)
    case("copysign_scalar", "copysign.Scalar", t.f32(4), -1.0, grad=True)
    case("copysign_scalar_int", "copysign.Scalar", t.s64(3), -2, exact=True)
    case("copysign_zero_grad", "copysign.Tensor", t.values([0.0, 1.0]), t.values([-1.0, -1.0]), grad=True)
    case("fmax_ints", "fmax", t.s64(2, 3), t.s64(3))
    case("fmin_promote", "fmin", t.s64(4), t.f32(4), exact=True)
    case("fmax_equal_grad", "fmax", t.values([1.0, 2.0, NAN]), t.values([1.0, NAN, NAN]), grad=True)
    case("logaddexp_bf16", "logaddexp", t.bf16(4), t.bf16(4), grad=True)
    case("logaddexp_far", "logaddexp", t.values([100.0, -100.0]), t.values([-100.0, 90.0]), grad=True)
    case.error("logaddexp_ints", "logaddexp", t.s64(2), t.s64(2), words="not implemented for 'Long'")
    case("xlogy_zero", "xlogy.Tensor", t.values([0.0, 0.0, 1.0]), t.values([0.0, NAN, 0.0]))
    case("xlogy_ints", "xlogy.Tensor", t.s64(3, low=0), t.s64(3, low=1))
    case("xlogy_scalar_other", "xlogy.Scalar_Other", t.f32(3), 2.5, grad=True)
    case("xlogy_scalar_self", "xlogy.Scalar_Self", 2, t.f32(3, low=0.25), grad=True)
    case("xlog1py_scalar", "special_xlog1py.other_scalar", t.f32(3), 2.5, grad=True)
    case("xlog1py_scalar_self", "special_xlog1py.self_scalar", 2, t.f32(3, low=-0.5), grad=True)
    case("heaviside_f32", "heaviside", t.values(EDGES), t.f32(1))
    case("heaviside_ints", "heaviside", t.s64(2, 3, low=-1, high=1), t.s64(3))
    case.error("heaviside_types", "heaviside", t.f32(2), t.s64(2))
    case("gcd_s64", "gcd", t.values([12, -18, 0, 0, 7, 1 << 40], "s64"), t.values([18, 12, 5, 0, 7, 1 << 20], "s64"))
    case("gcd_broadcast", "gcd", t.s32(2, 1, low=-90, high=90), t.s32(3, low=1, high=90))
    case("gcd_u8", "gcd", t.values([200, 255], "u8"), t.values([150, 34], "u8"))
    case("gcd_empty", "gcd", t.s64(0), t.s64(0))
    case.error("gcd_floats", "gcd", t.f32(2), t.f32(2))
    case("lcm_s64", "lcm", t.values([12, -18, 0, 0, 7], "s64"), t.values([18, 12, 5, 0, 7], "s64"))
    case("lcm_s32", "lcm", t.s32(2, 3, low=1, high=20), t.s32(3, low=1, high=20))
    case.error("lcm_pred", "lcm", t.pred(2), t.pred(2))
    case("ldexp_f32", "ldexp.Tensor", t.f32(4), t.values([1, -2, 0, 10], "s64"), grad=[0])
    case("ldexp_floats", "ldexp.Tensor", t.f32(2, 2), t.f32(2), grad=True)
    case("float_power_tensors", "float_power.Tensor_Tensor", t.f32(3, low=0.5), t.f32(3), grad=True)
    case("float_power_ints", "float_power.Tensor_Scalar", t.s64(4, low=1), -2)
    case("float_power_base", "float_power.Scalar", 2, t.f32(3), grad=True)
    case("deg2rad_f32", "deg2rad", t.f32(3, low=-180, high=180), grad=True)
    case("deg2rad_ints", "deg2rad", t.s64(3, low=-180, high=180))
    case("rad2deg_f32", "rad2deg", t.f32(3), grad=True)
    case("rad2deg_rank0", "rad2deg", t.values(1.5), grad=True)


def comparisons(case, t):
    for op in ("isposinf", "isneginf", "signbit"):
        case(f"{op}_edges", op, t.values(EDGES))
        case(f"{op}_s64", op, t.s64(4))
        case(f"{op}_bf16", op, t.values([INF, -INF, -0.0, 1.0], "bf16"))
        case(f"{op}_empty", op, t.f32(0, 2))
    case("signbit_pred", "signbit", t.pred(3))
    case("signbit_f64", "signbit", t.values([-0.0, -INF, 1.0], "f64"))
    close = [1.0, 1.00001, 1.1, INF, INF, NAN, -INF, 0.0]
    other = [1.0, 1.0, 1.0, INF, -INF, NAN, 1.0, 1e-9]
    case("isclose_f32", "isclose", t.values(close), t.values(other))
    case("isclose_nan", "isclose", t.values(close), t.values(other), 1e-5, 1e-8, True)
    case("isclose_wide", "isclose", t.values(close), t.values(other), 0.2, 0.0)
    case("isclose_exact", "isclose", t.values(close), t.values(other), 0.0, 0.0)
    case("isclose_ints", "isclose", t.s64(2, 3), t.s64(3), 0.5)
    case("isclose_pred", "isclose", t.pred(4), t.pred(4), 0.0, 0.0)
    case.error("isclose_types", "isclose", t.f32(2), t.s64(2))
    case.error("isclose_rtol", "isclose", t.f32(2), t.f32(2), -1.0, words="rtol must be greater than or equal to zero")
    case("allclose_yes", "allclose", t.values([1.0, 2.0]), t.values([1.00001, 2.0]))
    case("allclose_no", "allclose", t.values([1.0, NAN]), t.values([1.0, NAN]))
    case("allclose_empty", "allclose", t.f32(0), t.f32(0))
    case("equal_same", "equal", t.s64(2, 2, low=3, high=3), t.s64(2, 2, low=3, high=3))
    case("equal_nan", "equal", t.values([NAN]), t.values([NAN]))
    case("equal_sizes", "equal", t.f32(2), t.f32(1, 2))
    case("equal_empty", "equal", t.f32(0, 3), t.f32(0, 3))


def bits(case, t):
    starts = [0.0, -0.0, 1.0, -1.0, 1.0, INF, -INF, NAN, 1.5, 3.4028234663852886e38]
    ends = [1.0, -1.0, 2.0, -2.0, 0.0, 0.0, 0.0, 1.0, 1.5, INF]
    case("nextafter_f32", "nextafter", t.values(starts), t.values(ends), exact=True)
    case("nextafter_f64", "nextafter", t.values(starts, "f64"), t.values(ends, "f64"), exact=True)
    case("nextafter_broadcast", "nextafter", t.f32(2, 3), t.f32(3), exact=True)
    case.error("nextafter_ints", "nextafter", t.s64(2), t.s64(2), words="not implemented for 'Long'")
    for side in ("left", "right"):
        case(f"{side}_shift_s64", f"bitwise_{side}_shift.Tensor", t.s64(2, 3, low=-90, high=90), t.s64(3, low=0, high=7))
        case(f"{side}_shift_u8", f"bitwise_{side}_shift.Tensor", t.u8(4, high=200), t.values([0, 1, 3, 7], "u8"))
        case(f"{side}_shift_promote", f"bitwise_{side}_shift.Tensor", t.s32(3), t.s64(3, low=0, high=3))
        case(f"{side}_shift_scalar", f"bitwise_{side}_shift.Tensor_Scalar", t.s32(4, low=-90, high=90), 2)
        case(f"{side}_shift_scalar_self", f"bitwise_{side}_shift.Scalar_Tensor", 100, t.s64(3, low=0, high=4))
        name = "__lshift__" if side == "left" else "__rshift__"
        case(f"{side}_operator", f"{name}.Tensor", t.s64(3), t.s64(3, low=0))
        case(f"{side}_operator_scalar", f"{name}.Scalar", t.s64(3), 1)
        case.error(f"{side}_shift_pred", f"bitwise_{side}_shift.Tensor", t.pred(2), t.pred(2), words="not implemented for 'Bool'")


def special(case, t):
    for op, low, high in [("lgamma", 0.05, 6), ("digamma", 0.05, 6), ("i0", -6, 6), ("special_i0e", -12, 12),
                          ("special_i1", -6, 6), ("special_i1e", -12, 12), ("special_erfcx", -2, 8), ("sinc", -3, 3),
                          ("special_entr", 0.05, 3), ("special_ndtr", -3, 3)]:
        name = op.replace("special_", "")
        case(f"{name}_f32", op, t.f32(2, 6, low=low, high=high), grad=True)
        # torch's own trigamma is accurate to 1e-9 only; its Bessel functions of infinity are NaN.
        case(f"{name}_f64", op, t.f64(6, low=low, high=high), grad=name != "digamma")
        case(f"{name}_edges", op, t.values([e for e in EDGES if not (name in ("i0", "i1") and abs(e) == INF)
                                            and not (name in ("lgamma", "digamma") and e == -2.5)]))
        case(f"{name}_s64", op, t.s64(4, low=1))
        case(f"{name}_pred_rank0", op, t.values(True, "pred"))
        case(f"{name}_empty", op, t.f32(0, 3), grad=True)
    for op in ("lgamma", "digamma", "sinc"):
        case(f"{op}_bf16", op, t.bf16(5, low=0.5, high=4), grad=True)
    case("lgamma_negative", "lgamma", t.values([-0.5, -1.5, -2.25, -7.75, -1.0, -30.3]))
    case("lgamma_negative_grad", "lgamma", t.values([-0.5, -1.25, -2.25], "f64"), grad=True)
    case("lgamma_large", "lgamma", t.values([20.5, 1000.0, 1e20, 3e38]))
    case("digamma_negative", "digamma", t.values([-0.5, -1.25, -2.25, -7.75, -30.3], "f64"), grad=True)
    case("digamma_poles", "digamma", t.values([-1.0, -2.0, 0.0, -0.0]))
    case("digamma_large", "digamma", t.values([20.5, 1000.0, 1e20]))
    case("sinc_zero", "sinc", t.values([0.0, 1e-3, 1.0]), grad=True)
    case("i0_far", "i0", t.values([20.0, -50.0, 80.0]), grad=True)
    case("i1_zero", "special_i1", t.values([0.0, -0.0, 1e-3]), grad=True)
    case("erfcx_far", "special_erfcx", t.values([30.0, 1e3, 1e10, -5.0]))
    case("entr_negative", "special_entr", t.values([-1.0, 0.0, 1.0]))
    for n in (0, 1, 2, 3, 5):
        case(f"polygamma_{n}", "polygamma", n, t.f32(5, low=0.5, high=6), grad=True)
        case(f"polygamma_{n}_f64", "polygamma", n, t.f64(4, low=0.25, high=20), grad=True)
    case("polygamma_1_negative", "polygamma", 1, t.values([-0.5, -1.25, -3.75], "f64"), grad=True)
    case("polygamma_2_negative", "polygamma", 2, t.values([-0.5, -1.25, -3.75], "f64"))
    case("polygamma_s64", "polygamma", 2, t.s64(3, low=1))
    case("polygamma_empty", "polygamma", 1, t.f32(0), grad=True)
    case.error("polygamma_order", "polygamma", -1, t.f32(2), words="does not support negative n.")


def sums(case, t):
    holes = [[1.0, NAN, 2.5], [NAN, NAN, -1.0]]
    case("nansum_all", "nansum", t.values(holes), grad=True)
    case("nansum_dim", "nansum", t.values(holes), (0,), grad=True)
    case("nansum_keepdim", "nansum", t.values(holes), (-1,), True, grad=True)
    case("nansum_ints", "nansum", t.s64(2, 3), (1,))
    case("nansum_dtype", "nansum", t.f32(3), dtype=t.values(1.0, "f64").dtype)
    case("nansum_empty", "nansum", t.f32(0, 2), (0,))
    case("nanmean_all", "nanmean", t.values(holes), grad=True)
    case("nanmean_dim", "nanmean", t.values(holes), (1,), True, grad=True)
    case("nanmean_none_left", "nanmean", t.values([[NAN], [1.0]]), (1,))
    case.error("nanmean_ints", "nanmean", t.s64(2), words="expected input to have floating point dtype but got Long")
    case("logcumsumexp_f32", "logcumsumexp", t.f32(2, 4), 1, grad=True)
    case("logcumsumexp_dim0", "logcumsumexp", t.f32(3, 2), -2, grad=True)
    case("logcumsumexp_long", "logcumsumexp", t.f32(2, 11, low=-8, high=8), -1, grad=True)
    case("logcumsumexp_middle", "logcumsumexp", t.f64(2, 5, 2), 1, grad=True)
    case("logcumsumexp_one", "logcumsumexp", t.f32(1, 1), 0, grad=True)
    case("logcumsumexp_far", "logcumsumexp", t.values([-1000.0, 0.0, 1000.0, 5.0]), 0, grad=True)
    case("logcumsumexp_infinite", "logcumsumexp", t.values([-INF, 1.0, INF, 2.0]), 0)
    case("logcumsumexp_rank0", "logcumsumexp", t.values(1.5), 0, grad=True)
    case("logcumsumexp_empty", "logcumsumexp", t.f32(0, 2), 0)
    case.error("logcumsumexp_range", "logcumsumexp", t.f32(2), 1)
    case("cummin_f32", "cummin", t.f32(2, 5), 1, grad=[0], exact=True)
    case("cummin_nan", "cummin", t.values([3.0, 1.0, NAN, 0.0]), 0)
    case("cummin_ties", "cummin", t.values([2, 1, 1, 3, 1], "s64"), -1)
    case("cummin_rank0", "cummin", t.values(1.5), 0, grad=True, exact=True)
    case("cummin_empty", "cummin", t.f32(0, 2), 0)
    case("bincount_s64", "bincount", t.values([1, 3, 1, 0], "s64"))
    case("bincount_weights", "bincount", t.values([1, 3, 1, 0], "s64"), t.f32(4))
    case("bincount_weights_ints", "bincount", t.values([1, 2, 1], "s32"), t.s64(3))
    case("bincount_minlength", "bincount", t.values([1], "u8"), None, 4)
    case("bincount_empty", "bincount", t.s64(0), None, 3)
    case.error("bincount_negative", "bincount", t.values([-1], "s64"))
    case.error("bincount_floats", "bincount", t.f32(2), words="\"bincount_cpu\" not implemented for 'Float'")
    case.error("bincount_rank", "bincount", t.s64(2, 2, low=0))
    case.error("bincount_weights_length", "bincount", t.values([1], "s64"), t.f32(2))
    case("histc_range", "histc", t.f32(3, 4), 4, -2, 2)
    case("histc_outside", "histc", t.values([-5.0, 0.0, 0.5, 1.0, 9.0]), 2, 0, 1)
    case("histc_own_range", "histc", t.f32(9), 5)
    case("histc_equal", "histc", t.values([2.0, 2.0]), 3)
    case("histc_empty", "histc", t.f32(0), 3, 0, 1)
    case("histc_f64", "histc", t.f64(9), 4)
    case.error("histc_bins", "histc", t.f32(2), 0)
    case.error("histc_order", "histc", t.f32(2), 3, 2, 1)
