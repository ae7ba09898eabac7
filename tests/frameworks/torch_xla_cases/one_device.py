# SPDX-License-Identifier: Apache-2.0
"""Operations on one device."""

import tempfile

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.runtime as xr

from torch_xla_cases.common import data, mlp, plain  # noqa: F401: the driver uses plain


def hello_world():
    d = torch_xla.device()
    return (torch.ones(2, device=d) + 1).cpu()


def names_of_devices():
    """The names of the device agree, whatever it is."""
    d = torch_xla.device()
    real = xm.xla_real_devices([d])[0]
    return [str(d), real.split(":")[0] == xr.device_type(), xm.xla_device_hw(d) == xr.device_type(),
            xr.global_device_count(), xr.addressable_device_count(), xr.process_count()]


def memory_info():
    x = data(256, 256).to(torch_xla.device())
    torch_xla.sync()
    info = xm.get_memory_info(torch_xla.device()) if xr.device_type() != "CPU" else None  # XLA's CPU has none
    return [info is None or (info["bytes_used"] >= x.numel() * 4 and info["bytes_limit"] > info["bytes_used"])]


def elementwise():
    d = torch_xla.device()
    x, y = data(5, 7, seed=1).to(d), data(5, 7, seed=2).to(d)
    return [torch.sin(x) + torch.cos(y), torch.exp(-x.abs()) * y, torch.where(x > 0, x, y), x.clamp(-0.5, 0.5), x // 0.3,
            torch.erf(x), torch.atan2(x, y), torch.sigmoid(x), x.pow(3), torch.lerp(x, y, 0.3), torch.sign(x), x.round(),
            torch.special.i0e(x), torch.lgamma(x.abs() + 1), torch.digamma(x.abs() + 1), torch.logaddexp(x, y)]


def reductions():
    d = torch_xla.device()
    x = data(4, 6, 5).to(d)
    return [x.sum(1), x.mean((0, 2)), x.amax(2), x.argmax(1), x.std(0), x.logsumexp(1), x.cumsum(2), x.cumprod(0),
            x.norm(dim=1), x.prod(1), (x > 0).any(1), (x > -9).all(0), x.var(2, unbiased=False), x.topk(2, dim=1)[0]]


def indexing():
    d = torch_xla.device()
    x = torch.arange(60.0).reshape(5, 12).to(d)
    i = torch.tensor([3, 0, 3], device=d)
    y = x.clone()
    y[1:3, ::2] = -1
    y[:, 5] += 100
    z = torch.zeros(5, 12, device=d).index_put_((i, i), torch.ones(3, device=d), accumulate=True)
    return [x[i], x[:, -3:], x.gather(1, i.repeat(5, 1)), y, z, x.index_select(1, i), torch.scatter_add(
        x, 0, torch.zeros(1, 12, dtype=torch.long, device=d), x), x.roll(2, 1), x.flip(0), x.tril(), x.unfold(1, 4, 4)]


def shapes_and_views():
    d = torch_xla.device()
    x = torch.arange(24, device=d).reshape(2, 3, 4)
    v = x.view(6, 4)
    v.add_(1)
    w = x.permute(2, 0, 1)[1]
    w.mul_(10)
    return [x, v, w, torch.cat([x, x], 1), torch.stack([x, x]), x.expand(2, 2, 3, 4), x.repeat(1, 2, 1), x.split(2, 2)[1],
            torch.nn.functional.pad(x, (1, 2)), torch.meshgrid(x[0, 0], x[0, 0], indexing="ij")[1]]


def sorting():
    d = torch_xla.device()
    x = torch.randint(0, 9, (40,), generator=torch.Generator().manual_seed(3)).to(d)
    return [x.sort(stable=True)[1], x.argsort(descending=True, stable=True), x.unique(), x.topk(5)[0], x.median(),
            torch.searchsorted(torch.arange(0, 9, 2, device=d), x), torch.bincount(x, minlength=9), x.float().kthvalue(4)[0]]


def types():
    d = torch_xla.device()
    answers = []
    for t in (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int16,
              torch.int8, torch.uint8, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2):
        x = torch.tensor([0, 1, 2, 3]).to(t).to(d)
        answers.append([str(x.dtype), x.to(torch.float32) * 2, x.to(torch.int32)])
    c = torch.complex(data(3, seed=1), data(3, seed=2)).to(d)
    return answers + [c * c.conj(), torch.view_as_real(torch.fft.fft(c)), torch.fft.irfft(torch.fft.rfft(data(8).to(d)))]


def random_numbers():
    """Generators of XLA give the same bits on every device."""
    d = torch_xla.device()
    xm.set_rng_state(42, d)
    first = [torch.rand(4, 3, device=d), torch.randn(5, device=d), torch.randint(0, 100, (6,), device=d)]
    dropped = torch.nn.functional.dropout(torch.ones(20, device=d), 0.5)
    torch_xla.sync()
    xm.set_rng_state(42, d)
    again = torch.rand(4, 3, device=d)
    torch_xla.manual_seed(7)
    return first + [dropped, again, torch.bernoulli(torch.full((9,), 0.4, device=d)), torch.normal(
        torch.zeros(3, device=d), torch.ones(3, device=d)), torch.empty(5, device=d).exponential_() > 0]


def linear_algebra():
    d = torch_xla.device()
    a = data(6, 6)
    spd, b = (a @ a.T + 6 * torch.eye(6)).to(d), data(6, 2, seed=5).to(d)
    q, r = torch.linalg.qr(a.to(d))
    return [torch.linalg.cholesky(spd), torch.linalg.solve_triangular(torch.linalg.cholesky(spd), b, upper=False),
            q @ r, r.abs(), torch.linalg.svd(a.to(d))[1], torch.linalg.inv(spd), torch.linalg.det(spd),
            torch.linalg.slogdet(spd)[1], torch.linalg.eigvalsh(spd), torch.linalg.matrix_power(spd, 2) / 100,
            torch.einsum("ij,kj->ik", spd, b.T), torch.baddbmm(b[None], spd[None], b[None]), spd.trace()]


def attention():
    d = torch_xla.device()
    q, k, v = (data(2, 4, 10, 8, seed=s).to(d).requires_grad_() for s in range(3))
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    y.sum().backward()
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0, batch_first=True)
    for i, p in enumerate(layer.parameters()):
        p.data = data(*p.shape, seed=i) * 0.1
    return [y, q.grad, k.grad, v.grad, layer.to(d)(data(3, 7, 16).to(d))]


def recurrent():
    d = torch_xla.device()
    torch.manual_seed(0)
    lstm, gru = torch.nn.LSTM(6, 5, num_layers=2, bidirectional=True).to(d), torch.nn.GRU(6, 5).to(d)
    x = data(7, 3, 6).to(d)
    y, (h, c) = lstm(x)
    (y.sum() + gru(x)[0].sum()).backward()
    return [y, h, c, gru(x)[0], lstm.weight_ih_l0.grad]


def convolutions():
    d = torch_xla.device()
    x = data(2, 4, 9, 9).to(d).requires_grad_()
    w = data(6, 2, 3, 3, seed=1).to(d).requires_grad_()
    y = torch.nn.functional.conv2d(x, w, stride=2, padding=1, groups=2)
    z = torch.nn.functional.conv_transpose2d(y, data(6, 3, 2, 2, seed=2).to(d), stride=2)
    (y.square().sum() + z.sum()).backward()
    pooled = torch.nn.functional.max_pool2d(x, 2)
    return [y, z, x.grad, w.grad, pooled, torch.nn.functional.avg_pool2d(x, 3), torch.nn.functional.adaptive_avg_pool2d(
        x, 3), torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"), torch.nn.functional.interpolate(x, 4)]


def losses():
    d = torch_xla.device()
    x, t = data(6, 5).to(d).requires_grad_(), torch.tensor([1, 0, 4, 2, 2, 3], device=d)
    f = torch.nn.functional
    terms = [f.cross_entropy(x, t), f.nll_loss(f.log_softmax(x, 1), t), f.mse_loss(x, x.detach() * 2), f.huber_loss(
        x, torch.zeros_like(x)), f.binary_cross_entropy_with_logits(x, torch.ones_like(x)), f.kl_div(f.log_softmax(
            x, 1), f.softmax(x.detach() * 2, 1), reduction="batchmean"), f.smooth_l1_loss(x, x.detach() - 3)]
    sum(terms).backward()
    return terms + [x.grad]


def saved_and_loaded():
    d = torch_xla.device()
    model = mlp().to(d)
    with tempfile.TemporaryDirectory() as directory:
        xm.save(model.state_dict(), f"{directory}/model.pt")
        torch.save({"x": data(3).to(d)}, f"{directory}/x.pt")
        other = mlp(seed=9)
        other.load_state_dict(torch.load(f"{directory}/model.pt"))
        x = torch.load(f"{directory}/x.pt", weights_only=False)["x"]
    return [other(data(2, 8)), str(x.device), x.cpu()]


def copies_and_sharing():
    d = torch_xla.device()
    host = data(300, 300)
    x = host.to(d)
    host.zero_()  # the copy on the device keeps the values
    y = x
    y += 1
    z = torch.empty(300, 300, device=d)
    z.copy_(x.t())
    return [x.sum(), z[0, :5], x.cpu()[3], x[0, 0].item(), x.tolist()[1][:3], torch.equal(x.cpu(), y.cpu())]


def metrics_of_a_short_run():
    """They are there when the run is awaited."""
    d = torch_xla.device()
    x = data(4, 5).to(d)
    torch_xla.sync(wait=True)
    met.clear_metrics()
    y = x * 3 + 1
    torch_xla._XLAC._xla_sync_multi([y], devices=[], wait=True)
    return [met.metric_data("ExecuteTime")[0], y.cpu()]


def groups_of_one_member():
    d = torch_xla.device()
    x = data(4).to(d)
    return [xm.all_reduce(xm.REDUCE_SUM, x, groups=groups).cpu() for groups in ([[0]], [[1]], [[0], [1]])]


PROGRAMS = [hello_world, names_of_devices, memory_info, elementwise, reductions, indexing, shapes_and_views, sorting,
            types, random_numbers, linear_algebra, attention, recurrent, convolutions, losses, saved_and_loaded,
            copies_and_sharing, metrics_of_a_short_run, groups_of_one_member]
