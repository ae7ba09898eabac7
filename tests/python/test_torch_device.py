# SPDX-License-Identifier: Apache-2.0
"""What PyTorch and its users ask of a device, of both names: xla, PyTorch/XLA's, and tpu, a backend of PyTorch's own kind."""
import copy
import io
import pickle
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import hlokit.torch as ht  # noqa: E402


@pytest.fixture(params=["xla", "tpu"])
def dev(request):
    return request.param


def test_tensors_are_made_on_the_device(dev):
    made = [torch.zeros(2, device=dev), torch.tensor([1.0, 2.0], device=dev), torch.ones(2).to(dev), torch.arange(3, device=f"{dev}:0")]
    with torch.device(dev):
        made += [torch.ones(2), nn.Linear(2, 2).weight, torch.tensor(3)]
    torch.set_default_device(dev)
    try:
        made += [torch.rand(2), torch.tensor([made[0].sum(), 2.0])]
    finally:
        torch.set_default_device(None)
    made.append(nn.Linear(3, 3, device="meta").to_empty(device=dev).weight)
    assert {str(tensor.device) for tensor in made} == {f"{dev}:0"}
    assert all(ht.is_lazy(tensor) for tensor in made) and all(type(t) in (torch.Tensor, nn.Parameter) for t in made)


def test_tensors_of_the_two_names_are_values_of_one_device():
    x = torch.arange(4.0, device="xla")
    y = x.to("tpu")
    assert y.device.type == "tpu" and y.to("xla").device.type == "xla" and (y + 1).tolist() == [1, 2, 3, 4]
    assert y.to("xla", torch.float64).dtype == torch.float64


def test_copies_pickles_and_files_have_values_and_devices(dev):
    x = torch.randn(3, device=dev)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert str(y.device) == f"{dev}:0" and torch.equal(y.cpu(), x.cpu()) and y.data_ptr() != x.data_ptr()
    parameter = pickle.loads(pickle.dumps(nn.Parameter(x)))
    assert type(parameter) is nn.Parameter and parameter.device.type == dev

    class Tagged(torch.Tensor):
        pass

    assert type(copy.deepcopy(x.as_subclass(Tagged))) is Tagged
    model = nn.Linear(3, 3).to(dev)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 3, device=dev)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    other = nn.Linear(3, 3).to(dev)
    other.load_state_dict(state["model"])
    torch.optim.AdamW(other.parameters()).load_state_dict(state["optimizer"])
    assert torch.equal(other.weight.cpu(), model.weight.cpu()) and state["model"]["weight"].device.type == dev
    file.seek(0)
    assert torch.load(file, map_location="cpu")["model"]["weight"].device.type == "cpu"


def test_a_file_of_the_host_is_loaded_to_the_device(dev):
    file = io.BytesIO()
    saved = {"a": torch.arange(6.0).reshape(2, 3).t(), "b": torch.tensor([1, 2], dtype=torch.int32)}
    torch.save(saved, file)
    file.seek(0)
    loaded = torch.load(file, map_location=dev)
    assert loaded["a"].device.type == dev and torch.equal(loaded["a"].cpu(), saved["a"]) and loaded["b"].tolist() == [1, 2]


def test_values_leave_by_dlpack(dev):
    numpy = pytest.importorskip("numpy")
    x = torch.arange(6.0, device=dev).reshape(2, 3)
    assert torch.equal(torch.from_dlpack(x), x.cpu()) and (numpy.from_dlpack(x) == x.cpu().numpy()).all()


def test_seeds_reproduce(dev):
    def draw():
        torch.manual_seed(1)
        return [torch.randn(3, device=dev).cpu(), F.dropout(torch.ones(9, device=dev)).cpu()]

    assert all(torch.equal(a, b) for a, b in zip(draw(), draw()))
    torch.manual_seed(2)
    assert not torch.equal(torch.randn(3, device=dev).cpu(), draw()[0])


def test_generators_count():
    draws = []
    for _ in range(2):
        generator = torch.Generator("tpu").manual_seed(7)
        draws.append([torch.randn(3, device="tpu", generator=generator).cpu() for _ in range(2)])
        torch.randperm(5, device="tpu", generator=generator)
    assert torch.equal(draws[0][0], draws[1][0]) and not torch.equal(draws[0][0], draws[0][1])
    host = torch.Generator().manual_seed(7)
    assert torch.equal(torch.randn(3, device="xla", generator=host).cpu(), torch.randn(3, generator=torch.Generator().manual_seed(7)))


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_draw_the_same_numbers_again(dev, reentrant):
    x = torch.ones(500, device=dev, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda t: F.dropout(t * 2, 0.5), x, use_reentrant=reentrant)
    before = y.detach().clone()
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), before.cpu())


def test_gradients_of_writes_through_views(dev):
    x = torch.ones(4, 4, device=dev, requires_grad=True)
    y = x * 2
    y.t()[1].mul_(3)
    y[0].narrow(0, 2, 2).add_(1)
    y.sum().backward()
    host = torch.ones(4, 4, requires_grad=True)
    z = host * 2
    z.t()[1].mul_(3)
    z[0].narrow(0, 2, 2).add_(1)
    z.sum().backward()
    assert torch.equal(y.detach().cpu(), z.detach()) and torch.equal(x.grad.cpu(), host.grad)


def test_views_share_a_storage(dev):
    x = torch.zeros(2, 3, device=dev)
    assert x.t().untyped_storage().data_ptr() == x.untyped_storage().data_ptr() != torch.zeros(2, device=dev).data_ptr()
    assert x.view(6)._base is x


def test_autocast_computes_in_bfloat16(dev):
    layer = nn.Linear(4, 4).to(dev)
    scaler = torch.amp.GradScaler(dev)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    with torch.autocast(dev, dtype=torch.bfloat16):
        y = layer(torch.randn(2, 4, device=dev))
        loss = F.cross_entropy(y, torch.tensor([0, 1], device=dev))
    assert y.dtype == torch.bfloat16 and loss.dtype == torch.float32
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert layer.weight.grad.dtype == torch.float32


def test_functions_of_functions(dev):
    from torch.func import grad, hessian, jacrev, jvp, vmap

    x = torch.randn(3, 4)
    cube = lambda t: (t**3).sum()
    y = x.to(dev)
    for ours, theirs in (
        (vmap(grad(cube))(y), vmap(grad(cube))(x)),
        (jvp(torch.sin, (y,), (y,))[1], jvp(torch.sin, (x,), (x,))[1]),
        (jacrev(torch.sin)(y), jacrev(torch.sin)(x)),
        (hessian(cube)(y[0]), hessian(cube)(x[0])),
    ):
        assert torch.allclose(ours.cpu(), theirs, atol=1e-5)


def test_graphs_are_captured_whole(dev):
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.randn(3, 3, device=dev)
    fake = FakeTensorMode().from_tensor(x)
    assert fake.device.type == dev and (fake.t() @ fake).shape == (3, 3)
    assert "aten.sin" in make_fx(lambda t: t.sin() + 1)(x).code
    function = lambda t: torch.cond(t.sum() > 100, lambda u: u + 1, lambda u: u.sin(), (t,))
    assert torch.allclose(torch.compile(function, backend="aot_eager", fullgraph=True)(x).cpu(), x.cpu().sin())


def test_ops_of_libraries(dev):
    @torch.library.custom_op(f"hlokit_test::twice_{dev}", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    twice.register_autograd(lambda context, gradient: gradient * 2)
    x = torch.ones(3, device=dev, requires_grad=True)
    twice(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert torch.compile(lambda t: twice(t) + 1, backend="aot_eager", fullgraph=True)(x).tolist() == [3, 3, 3]


def test_lazy_modules_take_their_shapes_on_the_device(dev):
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyLinear(2)).to(dev)
    model(torch.randn(2, 3, device=dev)).sum().backward()
    assert model[0].weight.shape == (4, 3) and model[0].weight.device.type == dev


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN], ids=["LSTM", "GRU", "RNN"])
def test_packed_sequences(dev, kind):
    layer, x = kind(4, 6, batch_first=True), torch.randn(3, 5, 4)

    def run(layer, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3, 2]), batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)[0]

    ours, theirs = x.to(dev).requires_grad_(), x.clone().requires_grad_()
    moved = copy.deepcopy(layer).to(dev)
    a, b = run(moved, ours), run(layer, theirs)
    a.square().sum().backward()
    b.square().sum().backward()
    assert torch.allclose(a.cpu(), b, atol=1e-5) and torch.allclose(ours.grad.cpu(), theirs.grad, atol=1e-4)
    assert torch.allclose(moved.weight_hh_l0.grad.cpu(), layer.weight_hh_l0.grad, atol=1e-4)


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell], ids=["LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [True, False])
def test_cells(dev, kind, bias):
    cell, x = kind(4, 6, bias=bias), torch.randn(3, 4)
    moved = copy.deepcopy(cell).to(dev)
    first = lambda result: result[0] * result[1] if isinstance(result, tuple) else result
    first(moved(x.to(dev))).sum().backward()
    first(cell(x)).sum().backward()
    for ours, theirs in zip(moved.parameters(), cell.parameters()):
        assert torch.allclose(ours.grad.cpu(), theirs.grad, atol=1e-5)


def test_ctc_loss_takes_lengths_of_the_host(dev):
    scores = torch.randn(10, 2, 5).log_softmax(2)
    targets, lengths, target_lengths = torch.randint(1, 5, (2, 4)), torch.tensor([10, 8]), torch.tensor([4, 3])
    theirs = scores.clone().requires_grad_()
    F.ctc_loss(theirs, targets, lengths, target_lengths).backward()
    for moved in ((targets, lengths, target_lengths), tuple(t.to(dev) for t in (targets, lengths, target_lengths))):
        ours = scores.to(dev).requires_grad_()
        F.ctc_loss(ours, *moved).backward()
        assert torch.allclose(ours.grad.cpu(), theirs.grad, atol=1e-5)


def test_jagged_tensors(dev):
    parts = [torch.randn(2, 3), torch.randn(4, 3)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged, device=dev)
    assert torch.allclose((nested * 2).values().cpu(), torch.cat(parts) * 2)


def test_data_of_parameters_is_replaced_and_written(dev):
    parameter = nn.Parameter(torch.randn(3, device=dev))
    parameter.data = torch.ones(3, device=dev)
    parameter.data.mul_(2)
    assert parameter.tolist() == [2, 2, 2]
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        layer = nn.Linear(3, 3)
        weight = layer.weight
        layer.to(dev)
        assert layer.weight is weight and weight.device.type == dev
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


def test_pytorch_knows_the_device():
    assert str(torch.accelerator.current_accelerator()) == "tpu" and torch.accelerator.is_available()
    assert torch.accelerator.device_count() == torch.tpu.device_count() == len(ht.xla_model.get_xla_supported_devices())
    torch.accelerator.synchronize()
    stream, event = torch.Stream(device="tpu"), torch.Event(device="tpu")
    event.record(stream)
    event.synchronize()
    assert event.query()
    with torch.tpu.device(0), torch.tpu.stream(stream):
        assert torch.tpu.current_device() == 0
    with torch.random.fork_rng(devices=[0], device_type="tpu"):
        torch.randn(3, device="tpu")
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 3)), batch_size=4, pin_memory=True)
    assert [batch.to("tpu", non_blocking=True).shape for (batch,) in loader] == [(4, 3), (4, 3)]


def test_memory_is_that_of_tensors_that_exist():
    before = torch.tpu.memory_allocated()
    x = torch.zeros(1000, device="tpu")
    assert torch.tpu.memory_allocated() == before + 4000 and torch.tpu.max_memory_allocated() >= before + 4000
    del x
    assert torch.tpu.memory_allocated() == before
    free, total = torch.tpu.mem_get_info()
    assert 0 < free <= total
    y = torch.zeros(1000, device="xla")
    info = ht.xla_model.get_memory_info()
    assert info["bytes_used"] == before + 4 * y.numel() and info["peak_bytes_used"] >= before + 4000 and info["bytes_limit"] > 0


def test_mistakes_have_pytorchs_errors(dev):
    x = torch.ones(2, device=dev)
    with pytest.raises(TypeError, match=r"can't convert .*:0 device type tensor to numpy. Use Tensor.cpu\(\)"):
        x.numpy()
    with pytest.raises(RuntimeError, match=f"{dev}:7|xla:7"):
        torch.ones(2, device=f"{dev}:7")
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(2)
    with pytest.raises(NotImplementedError, match="use sparse=False"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nn.Embedding(5, 3, sparse=True).to(dev)(torch.tensor([1], device=dev)).sum().backward()


def test_inference_mode(dev):
    with torch.inference_mode():
        x = torch.ones(3, 3, device=dev)
        x.t()[0].mul_(2)
        assert (x @ x).sum().item() == (lambda y: (y @ y).sum())(x.cpu()).item()


def test_fused_optimizers_step():
    layer = nn.Linear(3, 3).to("tpu")
    theirs = nn.Linear(3, 3)
    theirs.load_state_dict({name: value.cpu() for name, value in layer.state_dict().items()})
    for model, x in ((layer, torch.ones(2, 3, device="tpu")), (theirs, torch.ones(2, 3))):
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        for _ in range(2):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
    assert torch.allclose(layer.weight.cpu(), theirs.weight, atol=1e-6)


def test_calls_may_name_another_device():
    with ht._session.temporary(devices=2):
        x = torch.ones(2, device="xla:0")
        places = [torch.zeros_like(x, device="xla:1"), x.to("xla:1"), x.double().to("xla:1", torch.float32), x.to("tpu:1")]
        assert [str(t.device) for t in places] == ["xla:1", "xla:1", "xla:1", "tpu:1"]
        assert str(torch.zeros_like(x, device="cpu").device) == "cpu" and str(torch.zeros_like(x, device="xla").device) == "xla:0"
        assert [t.tolist() for t in places] == [[0, 0], [1, 1], [1, 1], [1, 1]]


def step_with(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.arange(8.0).reshape(2, 4).to(device)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("mode", ["fused", "strict", "debug", "lazy"])
def test_modes_of_execution_have_the_same_values(mode):
    theirs = step_with("cpu")
    before = ht.eager_mode(mode)
    try:
        with ht.trace() as trace:
            ours = step_with("tpu")
    finally:
        assert ht.eager_mode(before) == mode
    assert ours == pytest.approx(theirs, rel=1e-5)
    if mode == "fused":  # without a mark_step in the program
        assert [graph.compiled for graph in trace.graphs] == [True, True, False, False, False]
    if mode in ("strict", "debug"):
        assert max(graph.nodes for graph in trace.graphs) < 25 and len(trace.graphs) > 50
    with pytest.raises(ValueError, match="there is no mode 'eager': fused, strict"):
        ht.eager_mode("eager")


@pytest.mark.parametrize("sizes", [((10, 8), (3, 8, 16)), ((3, 4, 8), (8, 8)), ((4, 8), (8, 16))], ids=["rows", "columns", "sum"])
def test_products_of_groups_are_recorded(dev, sizes):
    ends = torch.tensor([3, 3, 8], dtype=torch.int32)
    theirs, ours = [], []
    for device, values in (("cpu", theirs), (dev, ours)):
        torch.manual_seed(0)
        a, b = (torch.randn(size).to(device).requires_grad_() for size in sizes)
        rows = slice(8 if len(sizes[0]) == 2 and len(sizes[1]) == 3 else None)  # rows of no group have any value on the CPU
        result = torch._grouped_mm(a, b, ends.to(device))[rows]
        result.sin().sum().backward()
        values += [result, a.grad[rows], b.grad]
    assert "aten::_grouped_mm" not in {name for name, _ in ht.fallbacks()}
    assert all(torch.allclose(x.cpu(), y, atol=1e-5) for x, y in zip(ours, theirs))


STRIDED = {
    "a transposed one with its own strides": lambda a: (lambda y: torch.as_strided(y, y.size(), y.stride(), y.storage_offset()))(a.t()),
    "every second column": lambda a: a[:, ::2].as_strided((2, 2), (2, 1)),
    "rows from the second": lambda a: (lambda y: y.as_strided(y.size(), y.stride(), y.storage_offset()))(a[1:]),
    "one row": lambda a: (lambda y: y.as_strided(y.size(), y.stride(), y.storage_offset()))(a[1]),
    "the storage of a transposed one": lambda a: a.t().as_strided((3, 2), (1, 3), 2),
}


@pytest.mark.parametrize("name", STRIDED)
def test_as_strided_counts_in_the_storage(name):
    function = STRIDED[name]
    host = torch.arange(12.0).view(3, 4)
    assert torch.equal(function(host.to("tpu")).cpu(), function(host))
    ours, theirs = host.to("tpu").requires_grad_(), host.clone().requires_grad_()
    for x in (ours, theirs):
        y = x * 1
        y.t().as_strided((3,), (5,)).mul_(3)
        (y * y).sum().backward()
    assert torch.equal(ours.grad.cpu(), theirs.grad)


def test_results_that_do_not_fit_in_out_are_errors(dev):
    with pytest.raises(RuntimeError, match="result type (Float|float32) can't be cast to the desired output type (Long|int64)"):
        torch.add(torch.ones(2, device=dev), 1.5, out=torch.ones(2, dtype=torch.int64, device=dev))


def test_an_infinite_weight_of_one_expert_is_not_seen_by_others(dev):
    weights = torch.ones(2, 4, 4)
    weights[1, 0, 0] = float("inf")
    result = torch._grouped_mm(torch.ones(4, 4, device=dev), weights.to(dev), torch.tensor([2, 4], dtype=torch.int32, device=dev))
    assert result[:2].cpu().isfinite().all() and result[2:, 0].cpu().isinf().all()


def test_each_device_of_an_optimizer_is_stepped():
    with ht._session.temporary(devices=2) as session:
        parameters = [torch.ones(3, device=f"tpu:{i}").requires_grad_() for i in range(2)]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        for _ in range(3):
            sum((p * p).sum().to("tpu:0") for p in parameters).backward()
            optimizer.step()
            optimizer.zero_grad()
        assert all(ht.pending([p]).lazy_ir.count("\n") < 12 for p in parameters)
        assert session is ht._session.current() and parameters[1].tolist() == pytest.approx([0.512] * 3)


def test_a_forked_process_cannot_use_the_device():
    torch.ones(1, device="tpu").item()

    class Drawn(torch.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return torch.randn(3, device="tpu").cpu()

    loader = torch.utils.data.DataLoader(Drawn(), num_workers=1, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match="cannot be used in a forked process"):
        next(iter(loader))


def test_what_one_thread_captures_is_not_the_session_of_others():
    import threading

    errors = []
    done = threading.Event()

    def train():
        try:
            x = torch.ones(3, device="tpu")
            while not done.is_set():
                assert (x * 2).tolist() == [2, 2, 2] and torch.ones(2, device="xla").tolist() == [1, 1]
        except BaseException as error:  # noqa: BLE001: checked below
            errors.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    program = torch.export.export(nn.Linear(2, 2), (torch.ones(1, 2),))
    for _ in range(3):
        ht.exported(program)
    done.set()
    thread.join()
    assert not errors


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss])
def test_losses_of_two_types_have_the_type_of_both(dev, loss):
    for a, b in ((torch.tensor([1, 2, 3]), torch.tensor([1.5, 2.5, 3.9])), (torch.tensor([300.0]).half(), torch.tensor([1.0]))):
        ours, theirs = loss(a.to(dev), b.to(dev)), loss(a, b)
        assert ours.dtype == theirs.dtype and torch.allclose(ours.cpu(), theirs)


def test_ties_stay_when_a_module_comes_back(dev):
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    b.weight = a.weight
    model = nn.ModuleList([a, b]).to(dev).to("cpu")
    assert model[0].weight is model[1].weight


def test_indices_that_do_not_fit_are_errors(dev):
    x = torch.arange(12.0).view(3, 4).to(dev)
    for mask in (torch.ones(4, dtype=torch.bool), torch.ones(2, 4, dtype=torch.bool)):
        with pytest.raises(IndexError, match="mask"):
            x[mask.to(dev)]
    with pytest.raises(IndexError, match="mask"):
        x[:, torch.ones(3, dtype=torch.bool).to(dev)]
    with pytest.raises(IndexError, match="must be long, int, byte or bool"):
        x[torch.tensor([1.5]).to(dev)]
    assert x[torch.tensor([True, False, True]).to(dev)].shape == (2, 4)


@pytest.mark.parametrize("device", ["xla", "tpu"])
def test_views_of_parameters_in_inference_mode(device):
    layer = torch.nn.Linear(4, 3)
    x = torch.randn(2, 4)
    expected = layer(x).detach()
    layer.to(device)
    x = x.to(device)
    with torch.inference_mode():
        y = layer(x)
        assert y.is_inference() and not layer.weight.t().is_inference()
        parts = layer.weight.split(1)
        assert not parts[0].is_inference() and x[0].is_inference() == x.is_inference()
        assert torch.ones(2, device=device).view(1, 2).is_inference()
    torch.testing.assert_close(y.cpu(), expected)
    layer(x).sum().backward()
    assert layer.weight.grad is not None
