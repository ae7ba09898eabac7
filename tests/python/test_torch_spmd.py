# SPDX-License-Identifier: Apache-2.0
"""hlokit.torch.spmd: programs that are divided among devices by annotations give the values of one device."""

import functools
import types

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")

from torch import nn  # noqa: E402
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy  # noqa: E402
from torch_parallel_programs import STEPS, Block, batch_of, loss_of, losses_on_host, model_of, optimizer_of  # noqa: E402

import hlokit.torch as ht  # noqa: E402
import hlokit.torch.spmd as spmd  # noqa: E402
import hlokit.torch.xla_model as xm  # noqa: E402
from hlokit.torch.spmd_fsdp import SpmdFullyShardedDataParallel  # noqa: E402

PLAIN = dict(pipeline="default", debug=True, fake=False, replicas=1, engine="exact", num_threads=0)


@pytest.fixture(autouse=True)
def session():
    ht.configure(devices=8, spmd=True, **PLAIN)
    yield
    spmd.set_global_mesh(None)
    ht.configure(devices=1, spmd=False, **PLAIN)


def mesh_of(*sizes, names=None):
    count = 1
    for size in sizes:
        count *= size
    return spmd.Mesh(range(count), sizes, names)


def on_device(*values):
    return [value.to("xla") for value in values]


# ---- meshes and annotations ----


def test_a_mesh():
    mesh = mesh_of(4, 2, names=("data", "model"))
    assert mesh.shape() == {"data": 4, "model": 2} and mesh.size() == 8
    assert mesh.get_logical_mesh().tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert str(spmd.Mesh.from_str(str(mesh))) == str(mesh) and spmd.Mesh.from_str("no mesh") is None
    assert mesh.get_axis_name_idx("model") == 1 and mesh.get_axis_name_idx("other") is None
    spmd.set_global_mesh(mesh)
    assert spmd.get_global_mesh() is mesh
    assert spmd.get_1d_mesh("x").shape() == {"x": 8}
    hybrid = spmd.HybridMesh(ici_mesh_shape=(2, 2), dcn_mesh_shape=(2, 1), axis_names=("a", "b"))
    assert hybrid.get_logical_mesh().tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    hybrid = spmd.HybridMesh(ici_mesh_shape=(2, 2), dcn_mesh_shape=(1, 2))
    assert hybrid.get_logical_mesh().tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]


@pytest.mark.parametrize("make, told", [
    (lambda: spmd.Mesh(range(4), (2, 2)), "must match the global number of devices .8."),
    (lambda: spmd.Mesh(range(8), (2, 2)), "must match mesh size .4."),
    (lambda: spmd.Mesh([0] * 8, (8,)), "must be unique"),
    (lambda: spmd.Mesh(range(8), (8,), ("a", "b")), "must match mesh dimensions .1."),
])
def test_meshes_that_there_are_not(make, told):
    with pytest.raises(AssertionError, match=told):
        make()


@pytest.mark.parametrize("spec, text, kind", [
    ((0, 1), "{devices=[4,2]0,1,2,3,4,5,6,7}", spmd.ShardingType.TILED),
    (("model", None), "{devices=[2,1,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}", spmd.ShardingType.PARTIAL),
    ((None, ("data", "model")), "{devices=[1,8]0,1,2,3,4,5,6,7}", spmd.ShardingType.TILED),
    ((("model", "data"), None), "{devices=[8,1]0,2,4,6,1,3,5,7}", spmd.ShardingType.TILED),
    ((None, None), "", spmd.ShardingType.REPLICATED),
])
def test_annotations(spec, text, kind):
    mesh = mesh_of(4, 2, names=("data", "model"))
    tensor, = on_device(torch.zeros(8, 8))
    assert spmd.get_sharding_type(tensor) is None and spmd.get_sharding_spec(tensor) == ""
    assert spmd.mark_sharding(tensor, mesh, spec) is tensor
    assert spmd.get_sharding_spec(tensor) == text and spmd.get_sharding_type(tensor) == kind
    spmd.mark_sharding(tensor, mesh, spec)
    with pytest.raises(RuntimeError, match="Existing annotation must be cleared first"):
        spmd.mark_sharding(tensor, mesh, (1, 0))
    spmd.clear_sharding(tensor)
    assert spmd.get_sharding_type(tensor) is None
    spmd.mark_sharding(tensor, mesh, (1, 0))


def test_annotations_that_there_are_not():
    mesh = mesh_of(8, names=("x",))
    tensor, = on_device(torch.zeros(8, 8))
    with pytest.raises(AssertionError, match="length .1. should be equal to the input rank .2."):
        spmd.mark_sharding(tensor, mesh, ("x",))
    with pytest.raises(ValueError, match="Axis name y is not defined"):
        spmd.mark_sharding(tensor, mesh, ("y", None))
    with pytest.raises(AssertionError, match="at most once"):
        spmd.mark_sharding(tensor, mesh, ("x", "x"))
    with pytest.raises(TypeError, match="not of cpu"):
        spmd.mark_sharding(torch.zeros(8), mesh, ("x",))
    with pytest.raises(RuntimeError, match="one virtual device"):
        ht.spawn(lambda index: None, nprocs=2)


def test_annotations_reach_the_program_and_its_results():
    mesh = mesh_of(8)
    x, w = on_device(torch.randn(16, 4), torch.randn(4, 6))
    spmd.mark_sharding(x, mesh, (0, None))
    with ht.trace() as trace:
        y = torch.relu(x @ w)
        xm.mark_step()
    graph = trace.main_graph()
    assert graph.device == "SPMD:0" and "num_partitions=8" in graph.hlo
    assert "parameter(1), sharding={devices=[8,1]0,1,2,3,4,5,6,7}" in graph.hlo
    assert spmd.get_sharding_spec(y) == "{devices=[8,1]0,1,2,3,4,5,6,7}"
    with ht.trace() as trace:
        spmd.mark_sharding(y * 2, mesh, (None, None))
        z = (y * 3).sum(0)
        xm.mark_step()
    assert torch.allclose(z.cpu(), (torch.relu(x.cpu() @ w.cpu()) * 3).sum(0), atol=1e-5)
    assert "sharding={devices=[8,1]0,1,2,3,4,5,6,7}" in trace.main_graph().hlo
    kinds = {row["kind"] for row in trace.simulate("v5p:2x2x2")["collectives"]}
    assert "all-reduce" in kinds


def test_programs_run_on_parts():
    # Each of the devices adds its own elements first: the sum is another one in its last digits.
    torch.manual_seed(0)
    values = torch.rand(1 << 18) * 1000
    whole, divided = on_device(values, values)
    spmd.mark_sharding(divided, mesh_of(8), (0,))
    exact = values.double().sum().item()
    assert whole.sum().item() != divided.sum().item() == pytest.approx(exact, rel=1e-6)


def test_parts_of_unequal_sizes():
    tensor, = on_device(torch.arange(10.0))
    spmd.mark_sharding(tensor, mesh_of(8), (0,))
    assert (tensor * 2).tolist() == [2.0 * i for i in range(10)]
    shards = spmd.local_shards(tensor)
    assert [s.data.tolist() for s in shards] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [], [], []]
    for shard in shards:
        shard.data = shard.data + 1
    spmd.load_local_shards_(tensor, shards)
    with pytest.raises(ValueError, match=f"in {len(shards)} parts on its devices, and 1 are given"):
        spmd.load_local_shards_(tensor, shards[:1])
    assert tensor.tolist() == [i + 1.0 for i in range(10)]
    assert spmd.get_sharding_spec(tensor) == "{devices=[8]0,1,2,3,4,5,6,7}"


def test_gradients_of_annotated_copies():
    mesh = mesh_of(8)
    values = torch.randn(8, 3)
    leaf = values.to("xla").requires_grad_()
    divided = spmd.mark_sharding_with_gradients(leaf, mesh, (0, None))
    (divided * divided).sum().backward()
    assert torch.allclose(leaf.grad.cpu(), 2 * values)
    assert spmd.get_sharding_spec(divided) == spmd.get_sharding_spec(leaf.grad) == "{devices=[8,1]0,1,2,3,4,5,6,7}"


def test_loaders_annotate_batches():
    mesh = mesh_of(8)
    batches = [{"x": torch.randn(16, 4), "y": torch.arange(16)} for _ in range(2)]
    specs = {"x": spmd.ShardingSpec(mesh, (0, None)), "y": spmd.ShardingSpec(mesh, (0,))}
    loader = ht.MpDeviceLoader(batches, ht.device(), input_sharding=specs)
    for given, sent in zip(batches, loader):
        assert torch.equal(sent["x"].cpu(), given["x"])
        assert spmd.get_sharding_spec(sent["x"]) == "{devices=[8,1]0,1,2,3,4,5,6,7}"
        assert spmd.get_sharding_spec(sent["y"]) == "{devices=[8]0,1,2,3,4,5,6,7}"


def test_models_without_values():
    with ht.trace(fake=True, devices=8, spmd=True) as trace, ht.on_device():
        mesh = mesh_of(8)
        layer = nn.Linear(16384, 16384)
        spmd.mark_sharding(layer.weight, mesh, (0, None))
        loss = layer(torch.zeros(64, 16384)).sum()
        loss.backward()
        xm.mark_step()
    assert "f32[16384,16384]" in trace.main_graph().hlo
    assert {row["kind"] for row in trace.simulate("v5p:2x2x2")["collectives"]} & {"all-reduce", "all-gather"}


# ---- training ----


def by_batch(model, mesh):
    return model


def by_both(model, mesh):
    for parameter in model.parameters():
        if parameter.dim() == 2:
            wide = parameter.shape[0] >= parameter.shape[1]
            spmd.mark_sharding(parameter, mesh, ("model", "fsdp") if wide else ("fsdp", "model"))
    return model


def fully_sharded(model, mesh):
    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
    return SpmdFullyShardedDataParallel(model, mesh=mesh, auto_wrap_policy=policy)


def patched(model, mesh):
    return by_both(spmd.apply_xla_patch_to_nn_linear(model), mesh)


@pytest.mark.parametrize("shape", ((1, 2), (4, 1), (4, 2)))
@pytest.mark.parametrize("kind", ("perceptron", "transformer"))
@pytest.mark.parametrize("optimizer", ("SGD", "AdamW"))
@pytest.mark.parametrize("divide", (by_batch, by_both, fully_sharded, patched))
@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_training(shape, kind, optimizer, divide):
    ht.configure(devices=shape[0] * shape[1])
    mesh = mesh_of(*shape, names=("fsdp", "model"))
    model = divide(model_of(kind).to("xla"), mesh)
    optimizer_ = optimizer_of(optimizer, model.parameters())
    losses = []
    with ht.trace() as trace:
        for step in range(STEPS):
            inputs, labels = on_device(*batch_of(kind, step))
            spmd.mark_sharding(inputs, mesh, ("fsdp", None))
            spmd.mark_sharding(labels, mesh, ("fsdp", None))
            optimizer_.zero_grad()
            loss = loss_of(kind, model(inputs), labels)
            loss.backward()
            optimizer_.step()
            xm.mark_step()
            losses.append(loss)
        losses = [loss.item() for loss in losses]
    assert losses == pytest.approx(losses_on_host(kind, optimizer), abs=1e-5)
    # The first step has no state of the optimizer.
    assert [graph.compiled for graph in trace.graphs] == [True, True, False]
    if divide is fully_sharded and shape[0] > 1:
        assert all(spmd.get_sharding_spec(p) for p in model.parameters())
        state = [v for values in optimizer_.state.values() for v in values.values() if v.device.type == "xla" and v.dim() > 0]
        assert state and all(spmd.get_sharding_spec(value) for value in state)


def test_full_sharding_needs_its_axis():
    with pytest.raises(ValueError, match="No mesh is provided"):
        SpmdFullyShardedDataParallel(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="an axis named 'fsdp'"):
        SpmdFullyShardedDataParallel(nn.Linear(2, 2), mesh=mesh_of(8, names=("x",)))


# ---- ops ----


def convolutions(mark):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Dropout(0.5), nn.Linear(512, 10)).to("xla")
    x, y = on_device(torch.randn(16, 3, 16, 16), torch.arange(16) % 10)
    loss = nn.functional.cross_entropy(model(mark(x)), mark(y))
    loss.backward()
    return [loss, model[0].weight.grad, model[1].running_var]


def recurrences(mark):
    torch.manual_seed(0)
    model = nn.LSTM(6, 8, batch_first=True).to("xla")
    y, _ = model(mark(torch.randn(8, 5, 6).to("xla")))
    y.sum().backward()
    return [y, model.weight_hh_l0.grad]


def attention(mark):
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.1).to("xla")
    y = model(mark(torch.randn(8, 8, 16).to("xla")))
    y.square().mean().backward()
    return [y, *(p.grad for p in model.parameters())]


def sorted_values(mark):
    torch.manual_seed(0)
    x, w = on_device(torch.randn(10, 6), torch.randn(6, 7))
    y = mark(x) @ mark(w, 1)
    values, places = y.topk(3, dim=0)
    return [y.softmax(-1), y.cumsum(0), values, places, y.sort(0)[0], x.var(0), torch.cat([x, 2 * x])[3:15], x.flip(0), x.roll(3, 0)]


def indices(mark):
    torch.manual_seed(0)
    x, i = on_device(torch.randn(16, 6), torch.tensor([3, 1, 15, 7, 0, 2, 9, 9]))
    mark(x), mark(i)
    written = x.clone()
    written[2:9] = 1
    added = x.index_add(0, i, torch.ones(8, 6).to("xla"))
    return [x[i], written, added, x[::3], nn.functional.one_hot(i, 16), x.gather(0, i.reshape(-1, 1).expand(8, 6)), x[x > 0]]


def random_numbers(mark):
    x = mark(torch.zeros(16, 4).to("xla"))
    return [torch.rand_like(x) + x, nn.functional.dropout(x + 1, 0.3), torch.randperm(16, device="xla")]


def matrices(mark):
    torch.manual_seed(0)
    a = mark((torch.randn(8, 5, 5) + 5 * torch.eye(5)).to("xla"))
    return [torch.linalg.inv(a), torch.linalg.det(a), torch.fft.fft(a).abs(), torch.einsum("bij,bjk->ik", a, a)]


@pytest.mark.parametrize("program", (convolutions, recurrences, attention, sorted_values, indices, random_numbers, matrices))
def test_ops_give_the_values_of_one_device(program):
    def run(count):
        ht.configure(devices=count, spmd=count > 1)
        xm.set_rng_state(7)

        def mark(tensor, dim=0):
            if count > 1:
                spmd.mark_sharding(tensor, spmd.get_1d_mesh(), tuple(0 if d == dim else None for d in range(tensor.dim())))
            return tensor

        results = program(mark)
        xm.mark_step()
        return [r.detach().cpu() for r in results]

    expected = run(1)
    for count in (2, 8):
        for found, value in zip(run(count), expected):
            assert torch.allclose(found, value, rtol=1e-5, atol=1e-5)


# ---- placements and checkpoints ----


def test_placements_of_distributed_tensors():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard

    mesh = types.SimpleNamespace(mesh=torch.arange(8).reshape(4, 2), mesh_dim_names=("a", "b"), ndim=2, size=lambda: 8)
    assert init_device_mesh is not None
    values = torch.randn(8, 6)
    tensor = spmd.xla_distribute_tensor(values, mesh, [Shard(0), Shard(1)])
    assert spmd.get_sharding_spec(tensor) == "{devices=[4,2]0,1,2,3,4,5,6,7}" and torch.equal(tensor.cpu(), values)
    tensor = spmd.xla_distribute_tensor(nn.Parameter(values), mesh, [Replicate(), Shard(0)])
    assert spmd.get_sharding_spec(tensor) == "{devices=[2,1,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}"
    assert isinstance(tensor, nn.Parameter) and tensor.requires_grad


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_checkpoints_of_parts(tmp_path):
    checkpoint = pytest.importorskip("torch.distributed.checkpoint")
    from hlokit.torch.spmd_checkpoint import SPMDLoadPlanner, SPMDSavePlanner, prime_optimizer

    mesh = mesh_of(4, 2, names=("a", "b"))

    def make(seed, spec):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 6)).to("xla")
        for parameter in model.parameters():
            spmd.mark_sharding(parameter, mesh, (None,) * (parameter.dim() - 1) + (spec,))
        return model, torch.optim.AdamW(model.parameters())

    model, optimizer = make(0, "a")
    model(torch.randn(4, 8).to("xla")).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 7}
    checkpoint.save(state, checkpoint_id=str(tmp_path), planner=SPMDSavePlanner())
    metadata = checkpoint.FileSystemReader(str(tmp_path)).read_metadata().state_dict_metadata
    assert [tuple(c.sizes) for c in metadata["model.0.weight"].chunks] == [(16, 2)] * 4
    assert [tuple(c.sizes) for c in metadata["model.1.bias"].chunks] == [(2,)] * 3

    other, other_optimizer = make(1, "b")
    before = [p.detach().cpu().clone() for p in other.parameters()]
    prime_optimizer(other_optimizer)
    assert all(torch.equal(a, b.detach().cpu()) for a, b in zip(before, other.parameters()))
    loaded = {"model": other.state_dict(), "optimizer": other_optimizer.state_dict(), "step": 0}
    checkpoint.load(loaded, checkpoint_id=str(tmp_path), planner=SPMDLoadPlanner())
    other_optimizer.load_state_dict(loaded["optimizer"])
    assert loaded["step"] == 7
    for one, two in zip(model.parameters(), other.parameters()):
        assert torch.equal(one.detach().cpu(), two.detach().cpu())
        assert spmd.get_sharding_spec(two) != spmd.get_sharding_spec(one)
        for name in ("exp_avg", "exp_avg_sq", "step"):
            assert torch.equal(optimizer.state[one][name].cpu(), other_optimizer.state[two][name].cpu())
