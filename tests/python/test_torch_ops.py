# SPDX-License-Identifier: Apache-2.0
"""Ops of hlokit.torch against the CPU: of complex numbers and matrices, integers, special functions and derivatives."""

import math

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")

import hlokit.torch as ht  # noqa: E402
from hlokit.torch import _fallback  # noqa: E402

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def session():
    ht.configure(devices=1, pipeline="default", debug=True, fake=False, replicas=1, engine="exact", num_threads=0)
    torch.manual_seed(3)


def leaves(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def agree(function, *inputs, rtol=1e-5, atol=1e-6, recorded=True):
    """Results and gradients of a function are those of the CPU, and none of its ops ran there."""
    before = ht.fallbacks()

    def run(place):
        placed = [place(x.detach()).requires_grad_(x.requires_grad) for x in inputs]
        results = leaves(function(*placed))
        wanted = [x for x in placed if x.requires_grad]
        roots = [r for r in results if r.requires_grad]
        grads = torch.autograd.grad(roots, wanted, [torch.ones_like(r) for r in roots]) if wanted and roots else []
        return [t.detach().cpu() for t in (*results, *grads)]

    for ours, theirs in zip(run(lambda x: x.to(ht.device())), run(lambda x: x.clone())):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol, equal_nan=True)
    if recorded:
        assert ht.fallbacks() == before


def positive(n, dtype):
    a = torch.randn(n, n, dtype=dtype)
    return a @ a.mH + n * torch.eye(n, dtype=dtype)


def test_an_op_on_the_cpu_sees_conjugates():
    # PyTorch's own kernel of pinv makes views that are marked as conjugates.
    a = torch.randn(3, 4, dtype=torch.complex64)
    found = _fallback.on_cpu(aten.linalg_pinv.atol_rtol_tensor, (a.to(ht.device()),), {}, "a test")
    torch.testing.assert_close(found.cpu(), torch.linalg.pinv(a))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_decompositions_of_real_and_complex_matrices(dtype):
    square, tall, wide = (torch.randn(*s, dtype=dtype) for s in ((2, 4, 4), (5, 3), (3, 5)))
    hermitian = positive(4, dtype)
    right = torch.randn(4, 2, dtype=dtype)
    for upper in (False, True):
        agree(lambda a: torch.linalg.cholesky(a, upper=upper), hermitian)
        agree(lambda a, b: torch.cholesky_solve(b, torch.linalg.cholesky(a, upper=upper), upper), hermitian, right)
    for matrix in (square, tall, wide):
        agree(lambda a: torch.linalg.qr(a), matrix)
        agree(lambda a: torch.linalg.lu(a), matrix)
        agree(lambda a: torch.linalg.svdvals(a), matrix)
        agree(lambda a: torch.linalg.pinv(a), matrix.clone().requires_grad_())
    agree(lambda a: torch.linalg.eigvalsh(a), hermitian.clone().requires_grad_())
    agree(lambda a: torch.linalg.slogdet(a)[1], square.clone().requires_grad_())
    agree(lambda a, b: torch.linalg.solve(a, b), square[0].clone().requires_grad_(), right.clone().requires_grad_())
    agree(lambda a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, adjoint=True), square[0], right)
    agree(lambda a: torch.linalg.matrix_exp(a), square)
    agree(lambda a: torch.geqrf(a), tall)
    agree(lambda a: torch.linalg.householder_product(*torch.geqrf(a)), tall)


def test_the_decomposition_of_a_hermitian_matrix_is_unitary():
    # Elements that vanish below the smallest normal number had phases of few digits.
    for n in (2, 5, 8):
        a = torch.randn(n, n, dtype=torch.complex64)
        a = a + a.mH
        values, vectors = (t.cpu() for t in torch.linalg.eigh(a.to(ht.device())))
        torch.testing.assert_close(vectors.mH @ vectors, torch.eye(n, dtype=torch.complex64), rtol=0, atol=1e-5)
        torch.testing.assert_close(vectors * values @ vectors.mH, a, rtol=0, atol=1e-4)


def test_norms_and_variances_of_complex_numbers_are_real():
    x = torch.randn(3, 4, dtype=torch.complex64)
    for order in (1, 2, 3, math.inf, -math.inf, 0):
        agree(lambda a: torch.linalg.vector_norm(a, order, dim=1), x)
    agree(lambda a: torch.linalg.norm(a), x.clone().requires_grad_())
    agree(lambda a: torch.var_mean(a, dim=0), x)
    if torch.__version__ >= "2":
        for function in (torch.var, torch.std, torch.var_mean):
            agree(lambda a: function(a, dim=1, correction=0.5), x.real.contiguous().requires_grad_())
    agree(lambda a: torch.std_mean(a), x)
    agree(lambda a: torch.nn.functional.normalize(a), x)


def test_derivatives_of_complex_functions_are_conjugated():
    x = torch.randn(5, dtype=torch.complex64)
    for function in (torch.tanh, torch.sigmoid, torch.nn.functional.tanhshrink):
        agree(function, x.clone().requires_grad_())


def test_numbers_of_python_may_be_complex():
    x, a, b = torch.randn(2, 2, dtype=torch.complex64), torch.randn(2, 3), torch.randn(3, 2)
    z = 0.5 - 2j
    for function in (lambda t: t * z, lambda t: t + z, lambda t: z - t, lambda t: t / z, lambda t: t**z, lambda t: t == z,
                     lambda t: torch.add(t, t, alpha=z), lambda t: torch.full_like(t, z), lambda t: t.clone().fill_(z),
                     lambda t: t.masked_fill(t.real > 0, z)):
        agree(function, x)
    agree(lambda t, p, q: torch.addmm(t, p, q, beta=z, alpha=1j), x, a.to(x.dtype), b.to(x.dtype))
    agree(lambda t: t * z, torch.randn(3))


def test_sums_of_products_keep_the_type_of_integers():
    m, v = torch.randint(-5, 5, (3, 4)), torch.randint(-5, 5, (4,))
    for dtype in (torch.int8, torch.int32, torch.int64):
        i, a, w = torch.randint(-5, 5, (3,)).to(dtype), m.to(dtype), v.to(dtype)
        agree(lambda t, p, q: torch.addmv(t, p, q, beta=2, alpha=3), i, a, w)
        agree(lambda t, p, q: torch.addr(t, p, q), a, i, w)
        agree(lambda t, p, q: torch.addbmm(t, p, q), torch.zeros(3, 3, dtype=dtype), a[None].repeat(2, 1, 1), a.t()[None].repeat(2, 1, 1))
    unused = torch.full((3, 3), math.nan)
    product = torch.randn(2, 3, 3)
    agree(lambda t, p: torch.addbmm(t, p, p, beta=0), unused, product)
    agree(lambda t, p: torch.addr(t, p[0, 0], p[0, 1], beta=0), unused, product)


def test_histc_counts_integers():
    # As on GPUs; on the CPU torch has it of floats only.
    x = torch.tensor([1, 2, 2, 5, 9, -3, 8])
    for bins, low, high in ((4, 0, 8), (3, 0, 0), (9, 0, 9)):
        for dtype in (torch.int32, torch.int64):
            found = torch.histc(x.to(dtype).to(ht.device()), bins=bins, min=low, max=high).cpu()
            assert found.dtype == dtype and found.tolist() == torch.histc(x.double(), bins=bins, min=low, max=high).long().tolist()


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_unsigned_integers_and_floats_of_8_bits(name):
    if not hasattr(torch, name):
        pytest.skip("this PyTorch does not have the type")
    dtype = getattr(torch, name)
    values = torch.tensor([0.0, 1.0, 1.75, 3.0, 40.0, 200.0])
    narrow = values.to(dtype)
    assert narrow.to(ht.device()).cpu().float().tolist() == narrow.float().tolist()
    assert values.to(ht.device()).to(dtype).cpu().float().tolist() == narrow.float().tolist()
    assert narrow.to(ht.device()).to(torch.float32).cpu().tolist() == narrow.float().tolist()


def test_special_functions():
    x = torch.linspace(-20, 20, 83, dtype=torch.float64)
    # torch's own Bessel functions are within 4e-7.
    names = ("airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
             "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "modified_bessel_i0", "modified_bessel_i1", "spherical_bessel_j0")
    for name in names:
        if hasattr(torch.special, name):
            agree(getattr(torch.special, name), x, rtol=1e-6, atol=1e-6)
    agree(torch.special.ndtri, torch.cat([torch.linspace(-0.1, 1.1, 49, dtype=torch.float64), torch.tensor([1e-12, 0.5]).double()]))
    a, b = torch.meshgrid(torch.linspace(0.1, 30, 9).double(), torch.linspace(0, 30, 9).double(), indexing="ij")
    agree(torch.special.gammainc, a, b)
    agree(torch.special.gammaincc, a, b)
    agree(lambda s, q: torch.special.zeta(s + 1, q), a, b)
    agree(torch.frexp, torch.tensor([0.0, -0.0, 1.0, 0.49999997, -3.5, 1e-40, 3e38, math.inf, -math.inf, math.nan]))


def test_logit_clamps_like_torch():
    x = torch.tensor([0.03, 0.3, 0.5, 0.7, 0.97, math.nan])
    for eps in (0.2, 0.6):
        agree(lambda t: torch.logit(t, eps), x)


def test_orthogonal_polynomials():
    x, n = torch.meshgrid(torch.linspace(-1.5, 1.5, 13).double(), torch.tensor([-1.0, -0.5, 0, 1, 2, 3.9, 7, 12]).double(), indexing="ij")
    kinds = ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
             "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
             "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
             "legendre_polynomial_p")
    for kind in kinds:
        if hasattr(torch.special, kind):
            agree(getattr(torch.special, kind), x, n)


def test_derivatives_that_are_ops_of_their_own():
    f = torch.nn.functional
    image, grid = torch.randn(1, 2, 4, 4, requires_grad=True), (torch.rand(1, 3, 3, 2) * 2 - 1).requires_grad_()
    agree(lambda i, g: f.grid_sample(i, g, align_corners=False), image, grid)
    points = torch.randn(4, 3, requires_grad=True)
    agree(lambda p, q: torch.cdist(p, q), points, torch.randn(5, 3, requires_grad=True))
    agree(lambda p: f.pdist(p), points)
    agree(lambda p: f.pad(p[None], (1, 2), mode="replicate"), points)
    target = torch.tensor([0, 2, 1, 1])
    agree(lambda p: f.multi_margin_loss(p, target.to(p.device)), points)
    agree(lambda p: f.interpolate(p, (2, 3), mode="bilinear", antialias=True), image)
    agree(lambda p: f.interpolate(p, (7, 3), mode="bicubic", antialias=True), image)
    indices, offsets = torch.tensor([0, 2, 2, 3, 1]), torch.tensor([0, 2, 2])
    for mode in ("sum", "mean", "max"):
        agree(lambda w: f.embedding_bag(indices.to(w.device), w, offsets.to(w.device), mode=mode), points)
    scores = torch.randn(6, 2, 4).log_softmax(2).requires_grad_()
    lengths = (torch.tensor([6, 5]), torch.tensor([3, 2]))
    agree(lambda s: f.ctc_loss(s, torch.tensor([[1, 2, 3], [2, 2, 0]]).to(s.device), *(n.to(s.device) for n in lengths)), scores)


def test_places_of_elements():
    mask = torch.tensor([[True, False, True], [False, True, True]])
    if hasattr(torch, "nonzero_static"):
        agree(lambda m: torch.nonzero_static(m, size=3), mask)
        agree(lambda m: torch.nonzero_static(m, size=6, fill_value=-7), mask)
    agree(lambda r: torch.repeat_interleave(r), torch.tensor([2, 0, 3]))
    x, source = torch.randn(2, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    agree(lambda t, s: t.masked_scatter(mask.to(t.device), s), x, source)
    assert torch.equal(x.to(ht.device()), x.to(ht.device())) and not torch.equal(x.to(ht.device()), source.to(ht.device()))
    assert torch.allclose(x.to(ht.device()), x.to(ht.device()) + 1e-9)


@pytest.mark.skipif(torch.__version__ < "2", reason="PyTorch 2.0 has it first")
def test_squeezing_several_dimensions_makes_a_view():
    x = torch.zeros(1, 3, 1, 2, device=ht.device())
    x.squeeze((0, 2)).fill_(1)
    assert x.sum().item() == 6


@pytest.mark.skipif(not hasattr(aten, "_scaled_dot_product_flash_attention_for_cpu"), reason="this PyTorch does not have the op")
def test_attention_of_short_floats_is_computed_in_f32():
    query, key, value = (torch.randn(1, 2, 4, 8, dtype=torch.bfloat16) * 4 for _ in range(3))
    before = ht.fallbacks()
    ours, sums = aten._scaled_dot_product_flash_attention_for_cpu(*(t.to(ht.device()) for t in (query, key, value)))
    exact, theirs = aten._scaled_dot_product_flash_attention_for_cpu(*(t.float() for t in (query, key, value)))
    torch.testing.assert_close(ours.cpu().float(), exact, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(sums.cpu(), theirs)
    assert ht.fallbacks() == before
