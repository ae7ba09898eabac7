# SPDX-License-Identifier: Apache-2.0
"""Order statistics, places in sorted sequences, distinct elements, reductions of slices."""

NAN, INF = float("nan"), float("inf")


def calls(case, t):
    order(case, t)
    quantiles(case, t)
    places(case, t)
    distinct(case, t)
    slices(case, t)


def order(case, t):
    holes = [[3.0, NAN, 1.0, 2.0], [NAN, NAN, 5.0, 4.0], [1.0, 0.0, 2.0, 3.0]]
    for op in ("median", "nanmedian"):
        case(f"{op}_all", op, t.distinct(3, 5), grad=True, exact=True)
        case(f"{op}_even", op, t.distinct(2, 3), grad=True, exact=True)
        case(f"{op}_ties", op, t.values([1.0, 2.0, 2.0, 2.0, 3.0]), grad=True)
        case(f"{op}_rank0", op, t.values(1.5), grad=True, exact=True)
        case(f"{op}_ints", op, t.values([5, -1, 3, 9], "s64"))
        case(f"{op}_none", op, t.f32(0))
        case(f"{op}_nan", op, t.values(holes), grad=True)
        case(f"{op}_dim", f"{op}.dim", t.distinct(2, 5), 1, grad=True, exact=True)
        case(f"{op}_dim0_keepdim", f"{op}.dim", t.distinct(4, 3), 0, True, grad=True, exact=True)
        case(f"{op}_dim_nan", f"{op}.dim", t.values(holes), -1, exact=True)
        case(f"{op}_dim_rank0", f"{op}.dim", t.values(2.0), 0, exact=True)
        case(f"{op}_dim_no_rows", f"{op}.dim", t.f32(0, 3), 1, exact=True)
        case.error(f"{op}_dim_range", f"{op}.dim", t.f32(2), 1)
        case.error(f"{op}_dim_none", f"{op}.dim", t.f32(0, 3), 0, words="Expected reduction dim 0 to have non-zero size.")
    case("median_bf16", "median.dim", t.distinct(3, 4, name="bf16"), 1, grad=True, exact=True)
    for k in (1, 3):
        case(f"kthvalue_{k}", "kthvalue", t.distinct(2, 4), k, grad=True, exact=True)
        case(f"kthvalue_{k}_dim0", "kthvalue", t.distinct(3, 2), k, 0, True, grad=True, exact=True)
    case("kthvalue_nan", "kthvalue", t.values([NAN, 2.0, 1.0]), 3, exact=True)
    case("kthvalue_ints", "kthvalue", t.values([5, 2, 9], "s32"), 2)
    case("kthvalue_rank0", "kthvalue", t.values(1.5), 1, exact=True)
    case.error("kthvalue_range", "kthvalue", t.f32(3), 4, words="selected number k out of range for dimension 0")
    case("mode_f32", "mode", t.values([[1.0, 2.0, 2.0, 3.0], [4.0, 4.0, 0.0, 0.0]]), grad=True, exact=True)
    case("mode_dim0", "mode", t.values([[1, 2], [3, 2], [1, 0]], "s64"), 0, True)
    case("mode_distinct", "mode", t.distinct(5), grad=True, exact=True)
    case("mode_long", "mode", t.s64(2, 21, low=0, high=6), skip=[1], note="torch's sort of more than 16 elements is not stable")
    case("mode_middle_dim", "mode", t.values([[[1.0, 2.0], [1.0, 0.0], [3.0, 0.0]]]), 1, grad=True, exact=True)
    case("mode_rank0", "mode", t.values(2.0), exact=True)


def quantiles(case, t):
    for how in ("linear", "lower", "higher", "midpoint", "nearest"):
        case(f"quantile_{how}", "quantile", t.distinct(2, 6), t.values([0.0, 0.3, 0.5, 1.0]), 1, interpolation=how, grad=[0])
        case(f"nanquantile_{how}", "nanquantile", t.values([[3.0, NAN, 1.0, 2.0], [1.0, 0.0, 2.5, 3.0]]), t.values(0.3), 1,
             interpolation=how, grad=[0])
    case("quantile_number", "quantile.scalar", t.distinct(7), 0.25, grad=True)
    case("quantile_all", "quantile.scalar", t.distinct(2, 3), 0.6, None, True, grad=True)
    case("quantile_keepdim", "quantile", t.distinct(3, 4), t.values([0.1, 0.9]), 0, True, grad=[0])
    case("quantile_nan", "quantile", t.values([[1.0, NAN], [2.0, 3.0]]), t.values(0.5), 1)
    case("quantile_f64", "quantile.scalar", t.distinct(5, name="f64"), 0.37, grad=True)
    case("quantile_rank0", "quantile.scalar", t.values(2.0), 0.5)
    case("nanquantile_number", "nanquantile.scalar", t.values([NAN, 1.0, 4.0, 2.0]), 0.5, grad=True)
    case("nanquantile_all_nan", "nanquantile.scalar", t.values([NAN, NAN]), 0.5)
    case.error("quantile_range", "quantile.scalar", t.f32(3), 1.5, words="quantile() q must be in the range [0, 1] but got 1.5")
    case.error("quantile_type", "quantile", t.f32(3), t.f64(1, low=0, high=1), words="q tensor must be same dtype as the input tensor")
    case.error("quantile_ints", "quantile.scalar", t.s64(3), 0.5, words="input tensor must be either float or double dtype")
    case.error("quantile_none", "quantile.scalar", t.f32(0), 0.5, words="input tensor must be non-empty")
    case.error("quantile_how", "quantile.scalar", t.f32(3), 0.5, interpolation="mean", words="interpolation must be one of linear, lower, higher, midpoint or nearest, but got mean")


def places(case, t):
    line = t.values([1.0, 3.0, 3.0, 5.0, 7.0])
    values = t.values([[0.0, 1.0, 3.0], [4.0, 9.0, NAN]])
    case("searchsorted_left", "searchsorted.Tensor", line, values)
    case("searchsorted_right", "searchsorted.Tensor", line, values, right=True)
    case("searchsorted_side", "searchsorted.Tensor", line, values, side="right")
    case("searchsorted_int32", "searchsorted.Tensor", line, values, out_int32=True)
    case("searchsorted_number", "searchsorted.Scalar", line, 3)
    case("searchsorted_number_right", "searchsorted.Scalar", line, 3.5, right=True)
    case("searchsorted_rows", "searchsorted.Tensor", t.values([[1, 3, 5], [2, 4, 6]], "s64"), t.values([[3, 9], [1, 4]], "s64"))
    case("searchsorted_sorter", "searchsorted.Tensor", t.values([5.0, 1.0, 3.0]), t.values([2.0, 3.0]), sorter=t.values([1, 2, 0], "s64"))
    long = t.values(sorted(t.f32(37).tolist()))
    case("searchsorted_long", "searchsorted.Tensor", long, t.f32(3, 7))
    case("searchsorted_long_right", "searchsorted.Tensor", long, long, right=True)
    case("searchsorted_rows_long", "searchsorted.Tensor", t.s64(3, 9).sort(-1)[0], t.s64(3, 5))
    case("searchsorted_bf16", "searchsorted.Tensor", t.bf16(9).sort()[0], t.bf16(6))
    case("searchsorted_none", "searchsorted.Tensor", t.f32(0), t.f32(2))
    case("searchsorted_no_values", "searchsorted.Tensor", line, t.f32(0, 2))
    case("searchsorted_types", "searchsorted.Tensor", line, t.s64(4, low=0, high=8))
    case.error("searchsorted_shapes", "searchsorted.Tensor", t.f32(2, 3), t.f32(3, 3),
               words="but we got boundaries tensor [2, 3] and input value tensor [3, 3]")
    case.error("searchsorted_opposite", "searchsorted.Tensor", line, values, right=True, side="left",
               words="side and right can't be set to opposites")
    case("bucketize_f32", "bucketize.Tensor", values, line)
    case("bucketize_right", "bucketize.Tensor", t.s64(2, 3, low=0, high=9), t.values([1, 3, 5], "s64"), right=True)
    case("bucketize_int32", "bucketize.Tensor", t.values(4.0), line, out_int32=True)
    case("bucketize_number", "bucketize.Scalar", 3, line, right=True)
    case.error("bucketize_rank", "bucketize.Tensor", t.f32(2), t.f32(2, 2), words="boundaries tensor must be 1 dimension, but got dim(2)")
    case("isin_tensors", "isin.Tensor_Tensor", t.s64(2, 3), t.s64(3))
    case("isin_invert", "isin.Tensor_Tensor", t.values([1.0, NAN, 2.0]), t.values([NAN, 2.0]), invert=True)
    case("isin_number", "isin.Tensor_Scalar", t.s64(5), 3)
    case("isin_element", "isin.Scalar_Tensor", 2, t.s64(5))
    case("isin_many", "isin.Tensor_Tensor", t.s64(4, 5, low=-40, high=40), t.s64(30, low=-40, high=40))
    case("isin_many_floats", "isin.Tensor_Tensor", t.values([1.5, NAN, 0.25, 7.0]), t.values([0.25 * i for i in range(20)] + [NAN]))
    case("isin_none", "isin.Tensor_Tensor", t.s64(3), t.s64(0))


def distinct(case, t):
    case("unique_ints", "_unique", t.values([3, 1, 3, -2], "s64"), True, True)
    case("unique_floats", "_unique", t.values([2.5, 0.5, 2.5]), exact=True)
    case("unique2_all", "_unique2", t.values([[3, 1], [3, -2]], "s64"), True, True, True)
    case("unique2_floats", "_unique2", t.values([2.5, -1.0, 2.5, INF]), True, True, True, exact=True)
    case("unique2_values_only", "_unique2", t.values([2, 2, 1], "s32"))
    case("unique2_pred", "_unique2", t.values([True, False, True], "pred"), True, True, True)
    case("unique2_none", "_unique2", t.s64(0), True, True, True)
    case("unique2_large", "_unique2", t.values([(1 << 60) + 1, 1 << 60], "s64"), True, True, True)
    case("unique_dim0", "unique_dim", t.values([[1, 2], [0, 5], [1, 2]], "s64"), 0, True, True, True)
    case("unique_dim1", "unique_dim", t.values([[1.0, 0.0, 1.0], [2.0, 5.0, 2.0]]), -1, True, True, True, exact=True)
    case("unique_consecutive_all", "unique_consecutive", t.values([1, 1, 2, 2, 1], "s64"), True, True)
    case("unique_consecutive_matrix", "unique_consecutive", t.values([[1.0, 1.0], [2.0, 1.0]]), True, True, exact=True)
    case("unique_consecutive_dim", "unique_consecutive", t.values([[1, 2], [1, 2], [0, 2], [1, 2]], "s64"), True, True, 0)
    case.error("unique_dim_none", "unique_dim", t.s64(2, 0), 0, words="There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    case("unique_dim_no_slices", "unique_dim", t.s64(0, 2), 0, True, True, True)
    case.error("unique_dim_range", "unique_dim", t.s64(2, 2), 2)


def slices(case, t):
    index = t.values([2, 0, 2], "s64")
    for reduce in ("prod", "mean", "amax", "amin"):
        case(f"index_reduce_{reduce}", "index_reduce", t.distinct(3, 2, low=0.5), 0, index, t.distinct(3, 2, low=3), reduce, grad=[0, 2])
        case(f"index_reduce_{reduce}_alone", "index_reduce", t.distinct(2, 3, low=0.5), -1, index, t.distinct(2, 3, low=3), reduce,
             include_self=False, grad=[0, 2])
    case("index_reduce_ints", "index_reduce", t.s64(4), 0, t.values([1, 1], "s32"), t.s64(2), "amax")
    case.error("index_reduce_sum", "index_reduce", t.f32(3), 0, t.values([0], "s64"), t.f32(1), "sum")
    case.error("index_reduce_count", "index_reduce", t.f32(3), 0, t.values([0, 1], "s64"), t.f32(1), "prod",
               words="Number of indices")
    for reduce in ("sum", "mean", "max", "min"):
        case(f"segment_{reduce}", "segment_reduce", t.distinct(5, low=1), reduce, lengths=t.values([2, 0, 3], "s64"), grad=[0])
        case(f"segment_{reduce}_rows", "segment_reduce", t.distinct(4, 2, low=1), reduce, lengths=t.values([1, 3], "s64"),
             unsafe=True, grad=[0])
        case(f"segment_{reduce}_initial", "segment_reduce", t.distinct(3, low=1), reduce, lengths=t.values([0, 3], "s64"),
             initial=1.5, grad=[0])
    case.error("segment_none", "segment_reduce", t.f32(3), "sum", words="segment_reduce(): Either lengths or offsets must be defined.")
    for p in (1, 2, 0.5):
        case(f"renorm_{p}".replace(".", "_"), "renorm", t.f32(3, 2), p, 0, 1.0, grad=True)
    case("renorm_cube", "renorm", t.f32(2, 2, 2), 2, -1, 1.5, grad=True)
    case.error("renorm_rank", "renorm", t.f32(3), 2, 0, 1.0, words="input needs at least 2 dimensions, got 1 dimensions")
    case.error("renorm_maxnorm", "renorm", t.f32(2, 2), 2, 0, -1.0, words="expected maxnorm to be >= 0 but got -1")
    case.error("renorm_p", "renorm", t.f32(2, 2), 0, 0, 1.0, words="non-positive-norm not supported")
