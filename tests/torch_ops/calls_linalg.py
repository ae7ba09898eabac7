# SPDX-License-Identifier: Apache-2.0
"""Linear algebra: products, determinants, linear systems, decompositions, norms, distances."""


def spread(t, *shape):
    """Matrices with a large diagonal, so that they are well conditioned."""
    matrix = t.f32(*shape)
    for i in range(min(shape[-2:])):
        matrix[..., i, i] += 4
    return matrix


def spread64(t, *shape):
    return spread(t, *shape).double()


def positive(t, *shape):
    matrix = t.f32(*shape)
    product = matrix @ matrix.transpose(-2, -1)
    for i in range(shape[-1]):
        product[..., i, i] += 1
    return product


def calls(case, t):
    distances(case, t)
    products(case, t)
    systems(case, t)
    factors(case, t)
    eigenvalues(case, t)
    norms(case, t)


def distances(case, t):
    for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")):
        name = str(p).replace(".", "_")
        case(f"cdist_{name}", "cdist", t.f32(2, 3, 4), t.f32(2, 2, 4), p, grad=True)
        case(f"pdist_{name}", "pdist", t.f32(4, 3), p, grad=True)
        case(f"dist_{name}", "dist", t.f32(2, 3), t.f32(3), p, grad=p != 0)
    case("cdist_broadcast", "cdist", t.f32(3, 2), t.f32(2, 4, 2), grad=True)
    case("cdist_forward", "_cdist_forward", t.f32(3, 2), t.f32(4, 2), 2.0, None)
    case("cdist_forward_mode", "_cdist_forward", t.f32(3, 2), t.f32(4, 2), 1.0, 1, grad=[0])
    case("cdist_equal_points", "cdist", t.values([[1.0, 2.0]]), t.values([[1.0, 2.0], [0.0, 2.0]]), grad=True)
    case("cdist_no_columns", "cdist", t.f32(2, 0), t.f32(3, 0))
    case("cdist_no_rows", "cdist", t.f32(0, 2), t.f32(3, 2))
    case("cdist_f64", "cdist", t.f64(2, 2), t.f64(3, 2), 3.0, grad=True)
    case.error("cdist_rank", "cdist", t.f32(2), t.f32(2, 2))
    case.error("cdist_columns", "cdist", t.f32(2, 2), t.f32(2, 3))
    case.error("cdist_p", "cdist", t.f32(2, 2), t.f32(2, 2), -1.0)
    case.error("cdist_ints", "cdist", t.s64(2, 2), t.f32(2, 2), words="cdist only supports floating-point dtypes, X1 got: ")
    case("pdist_forward", "_pdist_forward", t.f32(3, 2), 2.0, grad=True)
    case("pdist_forward_1", "_pdist_forward", t.f32(4, 2), 1.0, grad=True)
    case("pdist_one_row", "pdist", t.f32(1, 3))
    case.error("pdist_rank", "pdist", t.f32(3), words="pdist only supports 2D tensors, got: 1D")
    case.error("pdist_p", "pdist", t.f32(2, 2), -1.0)
    case("dist_equal", "dist", t.values([1.0, 2.0]), t.values([1.0, 2.0]), grad=True)


def products(case, t):
    case("inner_vectors", "inner", t.f32(3), t.f32(3), grad=True)
    case("inner_batch", "inner", t.f32(2, 3), t.f32(2, 2, 3), grad=True)
    case("inner_number", "inner", t.values(2.0), t.f32(3), grad=True)
    case("inner_ints", "inner", t.s64(3), t.s64(2, 3))
    case.error("inner_sizes", "inner", t.f32(3), t.f32(2), words="the last dimension must match on both input tensors but got shapes [3] and [2]")
    case("ger_f32", "ger", t.f32(2), t.f32(3), grad=True)
    case("ger_ints", "ger", t.s64(2), t.s64(2))
    case.error("ger_rank", "ger", t.f32(2, 2), t.f32(2), words="outer: Expected 1-D argument self, but got 2-D")
    case("kron_f32", "kron", t.f32(2, 2), t.f32(1, 3), grad=True)
    case("kron_ranks", "kron", t.f32(2), t.f32(2, 1, 2), grad=True)
    case("kron_ints", "kron", t.s64(2), t.s64(3))
    case("kron_rank0", "kron", t.values(2.0), t.f32(2))
    case("tensordot_one", "tensordot", t.f32(2, 3), t.f32(3, 4), (1,), (0,), grad=True)
    case("tensordot_two", "tensordot", t.f32(2, 3, 4), t.f32(4, 2, 2), (0, -1), (1, 0), grad=True)
    case("tensordot_none", "tensordot", t.f32(2), t.f32(3), (), (), grad=True)
    case("tensordot_broadcast", "tensordot", t.f32(2, 1), t.f32(3, 2), (1,), (0,), grad=True)
    case.error("tensordot_sizes", "tensordot", t.f32(2, 3), t.f32(2, 2), (1,), (0,),
               words="contracted dimensions need to match, but first has size 3 in dim 1 and second has size 2 in dim 0")
    case.error("tensordot_lengths", "tensordot", t.f32(2), t.f32(2), (0,), (), words="both dimension lists should have same length")
    case("cross_default", "cross", t.f32(2, 3), t.f32(2, 3), grad=True)
    case("cross_first_dim", "cross", t.f32(3, 3), t.f32(3, 3), grad=True)
    case("cross_dim", "cross", t.f32(3, 2), t.f32(3, 2), 0, grad=True)
    case("cross_ints", "cross", t.s64(3), t.s64(3))
    case("linalg_cross_broadcast", "linalg_cross", t.f32(2, 3), t.f32(1, 3), grad=True)
    case("linalg_cross_dim", "linalg_cross", t.f32(3, 2), t.f32(3, 2), dim=0, grad=True)
    case.error("cross_none", "cross", t.f32(2, 2), t.f32(2, 2), words="no dimension of size 3 in input")
    case.error("linalg_cross_size", "linalg_cross", t.f32(2), t.f32(2), words="inputs dimension -1 must have length 3. Got 2 and 2")
    case.error("linalg_cross_rank", "linalg_cross", t.f32(3), t.f32(2, 3), words="inputs must have the same number of dimensions")
    case("chain_matmul_three", "chain_matmul", [t.f32(2, 3), t.f32(3, 4), t.f32(4, 2)], grad=True)
    case("chain_matmul_one", "chain_matmul", [t.f32(2, 3)], grad=True)
    case.error("chain_matmul_vector", "chain_matmul", [t.f32(2), t.f32(2, 2)], words="Tensor dimension is 1, expected 2 instead.")
    case("multi_dot_vectors", "linalg_multi_dot", [t.f32(2), t.f32(2, 3), t.f32(3)], grad=True)
    case("multi_dot_matrices", "linalg_multi_dot", [t.f32(2, 2), t.f32(2, 3), t.f32(3, 1)], grad=True)
    case.error("multi_dot_one", "linalg_multi_dot", [t.f32(2, 2)], words="expected at least 2 tensors but got 1")
    for n in (0, 1, 2, 5, -1, -2):
        case(f"matrix_power_{n}".replace("-", "m"), "matrix_power", spread(t, 2, 3, 3), n, grad=True if n else ())
    case("linalg_matrix_power_0", "linalg_matrix_power", t.f32(2, 2), 0)
    case("linalg_matrix_power_3", "linalg_matrix_power", t.f64(2, 2), 3, grad=True)
    case.error("matrix_power_wide", "matrix_power", t.f32(2, 3), 2, words="must be batches of square matrices")


def systems(case, t):
    for size in (1, 2, 4):
        case(f"det_{size}", "det", spread(t, size, size), grad=True)
        case(f"inverse_{size}", "inverse", spread(t, size, size), grad=True)
        case(f"slogdet_{size}", "slogdet", spread(t, size, size), grad=True)
    case("det_pivots", "det", t.values([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0], [4.0, 1.0, 0.0]]), grad=True)
    case("det_batch", "linalg_det", t.f32(2, 2, 3, 3))
    case("det_singular", "linalg_det", t.values([[1.0, 2.0], [2.0, 4.0]]))
    case("det_empty", "det", t.f32(0, 0))
    case("det_no_matrices", "det", t.f32(0, 2, 2))
    case("det_f64", "det", t.f64(3, 3), grad=True)
    case.error("det_wide", "det", t.f32(2, 3), words="A must be batches of square matrices, but they are 2 by 3 matrices")
    case.error("det_ints", "det", t.s64(2, 2), words="Expected a floating point or complex tensor as input. Got Long")
    case("slogdet_negative", "linalg_slogdet", t.values([[0.0, 2.0], [3.0, 1.0]]), grad=True)
    case("slogdet_singular", "linalg_slogdet", t.values([[1.0, 2.0], [2.0, 4.0]]))
    case("slogdet_batch", "linalg_slogdet", spread(t, 2, 3, 3), grad=True)
    case("logdet_positive", "logdet", positive(t, 3, 3), grad=True)
    case("logdet_negative", "logdet", t.values([[0.0, 2.0], [3.0, 1.0]]))
    case("inverse_batch", "linalg_inv", spread(t, 2, 3, 3), grad=True)
    case("inverse_f64", "linalg_inv", spread64(t, 3, 3), grad=True)
    case("inverse_pivots", "inverse", t.values([[0.0, 2.0], [4.0, 1.0]]), grad=True)
    case.error("inverse_wide", "linalg_inv", t.f32(2, 3), words="A must be batches of square matrices, but they are 2 by 3 matrices")
    case("solve_vector", "linalg_solve", spread(t, 3, 3), t.f32(3), grad=True)
    case("solve_matrix", "linalg_solve", spread(t, 3, 3), t.f32(3, 2), grad=True)
    case("solve_batch", "linalg_solve", spread(t, 2, 3, 3), t.f32(2, 3, 2), grad=True)
    case("solve_batch_of_vectors", "linalg_solve", spread(t, 2, 3, 3), t.f32(2, 3), grad=True)
    case("solve_broadcast", "linalg_solve", spread(t, 3, 3), t.f32(2, 3, 1), grad=True)
    case("solve_right", "linalg_solve", spread(t, 3, 3), t.f32(2, 3), left=False, grad=True)
    case("solve_f64", "linalg_solve", spread64(t, 4, 4), t.f64(4, 1), grad=True)
    case("solve_no_columns", "linalg_solve", spread(t, 2, 2), t.f32(2, 0))
    case.error("solve_sizes", "linalg_solve", t.f32(3, 3), t.f32(2, 2), words="linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 2x2)")
    case("cholesky_f32", "linalg_cholesky", positive(t, 3, 3), grad=True)
    case("cholesky_upper", "linalg_cholesky", positive(t, 2, 2, 2), upper=True)
    lower = t.values([[2.0, 0.0], [1.0, 3.0]])
    case("cholesky_solve_lower", "cholesky_solve", t.f32(2, 3), lower, grad=True)
    case("cholesky_solve_upper", "cholesky_solve", t.f32(2, 1), lower.t().contiguous(), True, grad=True)
    case("cholesky_inverse_upper", "cholesky_inverse", lower.t().contiguous(), True, grad=True)
    case("cholesky_inverse_lower", "cholesky_inverse", lower, grad=True)


def factors(case, t):
    for size in (1, 2, 4):
        case(f"lu_factor_{size}", "linalg_lu_factor", t.f32(size, size), grad=True)
    case("lu_factor_batch", "linalg_lu_factor_ex", t.f32(2, 3, 3), grad=True)
    case("lu_factor_singular", "linalg_lu_factor_ex", t.values([[1.0, 2.0], [2.0, 4.0]]))
    case("lu_factor_f64", "linalg_lu_factor", t.f64(4, 4), grad=True)
    case.error("lu_factor_no_pivot", "linalg_lu_factor", t.f32(2, 2), pivot=False, words="LU without pivoting is not implemented on the CPU")
    case("det_with_lu", "_linalg_det", spread(t, 3, 3), grad=True, skip=[1, 2])
    case("slogdet_with_lu", "_linalg_slogdet", spread(t, 2, 3, 3), grad=True, skip=[2, 3])
    case("solve_with_lu", "_linalg_solve_ex", spread(t, 3, 3), t.f32(3, 2), grad=True, skip=[1, 2])
    case("det_with_lu_pivots", "_linalg_det", t.values([[0.0, 2.0], [3.0, 1.0]]), skip=[1, 2], note="torch factors the transpose")
    case("slogdet_with_lu_pivots", "_linalg_slogdet", t.values([[0.0, 2.0], [3.0, 1.0]]), skip=[2, 3], note="torch factors the transpose")
    case("solve_with_lu_vector", "_linalg_solve_ex", spread(t, 2, 2), t.f32(2), grad=True, skip=[1, 2])
    case("inv_ex_f64", "linalg_inv_ex", t.values([[0.0, 2.0], [4.0, 1.0]], "f64"), grad=True)
    case("inv_ex_f32", "linalg_inv_ex", spread(t, 2, 2, 2), grad=True)
    case("cholesky_ex_f32", "linalg_cholesky_ex", positive(t, 3, 3), grad=True)
    case("cholesky_ex_batch", "linalg_cholesky_ex", positive(t, 2, 2, 2), upper=True)
    case("eigh_values_only", "_linalg_eigh", positive(t, 3, 3), "L", False)
    case("eigh_and_vectors", "_linalg_eigh", positive(t, 3, 3), grad=True, skip=[1])
    case("svd_values_only", "_linalg_svd", t.f32(3, 2), False, False)
    case("svd_and_vectors", "_linalg_svd", t.f32(2, 3), grad=True, skip=[0, 2])
    case("svdvals_batch", "linalg_svdvals", t.f32(2, 4, 3), grad=True)
    case("svdvals_wide", "linalg_svdvals", t.f32(3, 20))
    case("svdvals_empty", "linalg_svdvals", t.f32(0, 3))


def eigenvalues(case, t):
    for size in (1, 2, 3, 6):
        case(f"eigh_{size}", "linalg_eigh", positive(t, size, size), grad=True, skip=[1])
    case("eigh_upper", "linalg_eigh", t.f32(3, 3), "U", grad=True, skip=[1])
    case("eigh_lower", "linalg_eigh", t.f32(3, 3), "L", grad=True, skip=[1])
    case("eigh_batch", "linalg_eigh", positive(t, 2, 3, 3), grad=True, skip=[1])
    case("eigh_f64", "linalg_eigh", positive(t, 5, 5).double(), grad=True, skip=[1])
    case("eigh_diagonal", "linalg_eigh", t.values([[3.0, 0.0], [0.0, 1.0]]), grad=True, skip=[1])
    case("eigvalsh_f32", "linalg_eigvalsh", t.f32(4, 4), grad=True)
    case("eigvalsh_many", "linalg_eigvalsh", t.f32(12, 12))
    case.error("eigh_wide", "linalg_eigh", t.f32(2, 3), words="A must be batches of square matrices, but they are 2 by 3 matrices")
    case.error("eigh_uplo", "linalg_eigh", t.f32(2, 2), "X", words="Expected UPLO argument to be 'L' or 'U', but got X")
    case("pinverse_tall", "pinverse", spread(t, 4, 2), grad=True)
    case("pinverse_wide", "pinverse", spread(t, 2, 3), grad=True)
    case("pinverse_square", "pinverse", spread(t, 3, 3), grad=True)
    case("pinverse_rank1", "pinverse", t.values([[1.0, 2.0], [2.0, 4.0]]), 1e-3)
    case("pinv_f64", "linalg_pinv", spread64(t, 3, 2), 1e-12, grad=True)
    case("pinv_f32", "linalg_pinv", spread(t, 2, 4), 1e-6, grad=True)
    case("pinverse_empty", "pinverse", t.f32(0, 3))
    case("svd_values", "linalg_svd", t.f32(3, 2), False, skip=[0, 2], grad=True)
    case("svd_values_wide", "svd", t.f32(2, 3), skip=[0, 2], grad=True)


def norms(case, t):
    for order in (None, 2, 1, 0, float("inf"), float("-inf"), -1, 0.5, 3):
        name = str(order).replace(".", "_").replace("-", "m")
        case(f"norm_vector_{name}", "linalg_norm", t.f32(5, low=0.25), order, grad=True)
    for order in (1, -1, 2, -2, float("inf"), float("-inf")):
        name = str(order).replace("-", "m")
        case(f"norm_matrix_{name}", "linalg_norm", t.f32(3, 2), order, grad=True)
        case(f"matrix_norm_{name}", "linalg_matrix_norm", t.f32(2, 3, 2), order, (0, -1), True, grad=True)
    for order in ("fro", "nuc"):
        case(f"norm_{order}", "linalg_norm.ord_str", t.f32(3, 2), order, grad=True)
        case(f"matrix_norm_{order}", "linalg_matrix_norm.str_ord", t.f32(3, 2), order, grad=True)
    case("norm_all", "linalg_norm", t.f32(2, 2, 2), grad=True)
    case("norm_dim", "linalg_norm", t.f32(2, 3), 1, (1,), True, grad=True)
    case("norm_dims", "linalg_norm", t.f32(2, 3, 2), 1, (-1, 0), grad=True)
    case("norm_dtype", "linalg_norm", t.f32(3), dtype=t.values(1.0, "f64").dtype, grad=True)
    case("norm_matrix_batch_fro", "linalg_matrix_norm.str_ord", t.f32(2, 2, 3), "fro", (-2, -1), grad=True)
    case("frobenius_norm_all", "frobenius_norm", t.f32(2, 3), grad=True)
    case("frobenius_norm_dims", "frobenius_norm.dim", t.f32(2, 3, 2), (0, 2), True, grad=True)
    case.error("norm_dims_three", "linalg_norm", t.f32(2, 2, 2), 1, (0, 1, 2), words="it must be of length 1 or 2")
    case.error("norm_order_rank", "linalg_norm", t.f32(2, 2, 2), 1, words="If dim is not specified but ord is, the input must be 1D or 2D. Got 3D.")
    case.error("matrix_norm_order", "linalg_matrix_norm", t.f32(2, 2), 3, words="Order 3 not supported.")
    case.error("matrix_norm_name", "linalg_matrix_norm.str_ord", t.f32(2, 2), "max", words="Order max not supported.")
    case.error("matrix_norm_same", "linalg_matrix_norm", t.f32(2, 2), 1, (0, 0), words="dims must be different. Got (0, 0)")
