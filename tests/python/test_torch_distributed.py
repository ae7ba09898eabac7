# SPDX-License-Identifier: Apache-2.0
"""torch.distributed on the threads of spawn(): collectives, DistributedDataParallel, FSDP2 and DTensor give the values of one
device."""

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")

import torch.distributed as dist  # noqa: E402
import torch.distributed._functional_collectives as functional  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard  # noqa: E402
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor  # noqa: E402
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # noqa: E402
from torch_parallel_programs import BATCH, STEPS, batch_of, layers_of, loss_of, losses_on_host, model_of, optimizer_of  # noqa: E402

import hlokit.torch as ht  # noqa: E402
import hlokit.torch.xla_model as xm  # noqa: E402

DEVICES = (2, 4, 8)
KINDS = ("perceptron", "transformer")
OPTIMIZERS = ("SGD", "AdamW")


@pytest.fixture(autouse=True)
def session():
    ht.configure(devices=1, pipeline="default", debug=True, fake=False, replicas=1, engine="exact", num_threads=0, spmd=False)


def answers_of(fn, count, backend="hlokit"):
    """What fn(rank) returns on each device, with a group of all."""
    answers = [None] * count

    def run(index):
        dist.init_process_group(backend)
        assert (dist.get_rank(), dist.get_world_size()) == (index, count)
        answers[index] = fn(index)
        dist.destroy_process_group()

    ht.spawn(run, nprocs=count)
    return answers


def filled(value, *sizes, device):
    return torch.full(sizes, float(value), device=device)


# ---- collectives ----


@pytest.mark.parametrize("device", ("xla", "tpu", "cpu"))
def test_collectives(device):
    count = 4

    def run(rank):
        found = {}
        for name, op in (("sum", dist.ReduceOp.SUM), ("mean", dist.ReduceOp.AVG), ("product", dist.ReduceOp.PRODUCT),
                         ("min", dist.ReduceOp.MIN), ("max", dist.ReduceOp.MAX)):
            value = filled(rank + 1, 2, device=device)
            dist.all_reduce(value, op=op)
            found[name] = value.tolist()
        rows = [torch.empty(2, device=device) for _ in range(count)]
        dist.all_gather(rows, filled(rank, 2, device=device))
        found["all_gather"] = [r.tolist() for r in rows]
        row = torch.empty(2 * count, device=device)
        dist.all_gather_into_tensor(row, filled(rank, 2, device=device))
        found["all_gather_into_tensor"] = row.tolist()
        part = torch.empty(2, device=device)
        dist.reduce_scatter_tensor(part, torch.arange(2.0 * count, device=device) + rank)
        found["reduce_scatter_tensor"] = part.tolist()
        dist.reduce_scatter(part, [filled(i + rank, 2, device=device) for i in range(count)])
        found["reduce_scatter"] = part.tolist()
        value = torch.empty(count, device=device)
        dist.all_to_all_single(value, torch.arange(float(count), device=device) + 10 * rank)
        found["all_to_all_single"] = value.tolist()
        into = [torch.empty(i + 1, device=device) for i in range(count)]
        dist.all_to_all(into, [filled(10 * rank + i, rank + 1, device=device) for i in range(count)])
        found["all_to_all"] = [t.tolist() for t in into]
        value = filled(rank, 2, device=device)
        dist.broadcast(value, 2)
        found["broadcast"] = value.tolist()
        value = filled(rank, 2, device=device)
        dist.reduce(value, 1)
        found["reduce"] = value.tolist()
        value = torch.empty(2, device=device)
        dist.scatter(value, [filled(i, 2, device=device) for i in range(count)] if rank == 3 else None, src=3)
        found["scatter"] = value.tolist()
        gathered = [torch.empty(1, device=device) for _ in range(count)] if rank == 0 else None
        dist.gather(filled(rank, 1, device=device), gathered, dst=0)
        found["gather"] = None if gathered is None else [g.item() for g in gathered]
        flag = torch.tensor([rank == 1], device=device)
        dist.broadcast(flag, 1)
        found["flag"] = flag.tolist()
        return found

    for rank, found in enumerate(answers_of(run, count)):
        others = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
        assert found == {
            "sum": [10, 10], "mean": [2.5, 2.5], "product": [24, 24], "min": [1, 1], "max": [4, 4],
            "all_gather": [[i, i] for i in range(4)], "all_gather_into_tensor": others,
            "reduce_scatter_tensor": [8 * rank + 6, 8 * rank + 10], "reduce_scatter": [4 * rank + 6] * 2,
            "all_to_all_single": [10 * i + rank for i in range(4)],
            "all_to_all": [[10 * i + rank] * (i + 1) for i in range(4)],
            "broadcast": [2, 2], "reduce": [6, 6] if rank == 1 else [rank, rank], "scatter": [rank, rank],
            "gather": [0, 1, 2, 3] if rank == 0 else None, "flag": [True],
        }


def test_collectives_of_parts_of_the_devices():
    def run(rank):
        rows = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        columns = [dist.new_group([0, 2]), dist.new_group([1, 3])]
        value = filled(rank, 1, device="tpu")
        dist.all_reduce(value, group=rows[rank // 2])
        other = filled(rank, 1, device="tpu")
        dist.all_reduce(other, group=columns[rank % 2])
        return value.item(), other.item()

    assert answers_of(run, 4) == [(1, 2), (1, 4), (5, 2), (5, 4)]


def test_a_collective_of_some_devices_without_groups_of_the_others_is_an_error():
    def run(rank):
        group = dist.new_group([0, 3])
        if rank in (0, 3):
            dist.all_reduce(filled(rank, 1, device="tpu"), group=group)

    with pytest.raises(NotImplementedError, match="ranks .0, 3. among 4: all devices record it"):
        answers_of(run, 4)


def test_objects_and_values_between_two_ranks():
    def run(rank):
        objects = [None] * 3
        dist.all_gather_object(objects, {"rank": rank})
        value = filled(rank, 2, device="tpu")
        if rank == 0:
            dist.send(value + 5, 2)
        if rank == 2:
            dist.recv(value, 0)
        dist.barrier()
        return objects, value.tolist()

    found = answers_of(run, 3)
    assert [value for _, value in found] == [[0, 0], [1, 1], [5, 5]]
    assert all(objects == [{"rank": i} for i in range(3)] for objects, _ in found)


def test_functional_collectives_and_their_gradients():
    def run(rank):
        value = torch.arange(2.0, device="tpu").requires_grad_()
        gathered = functional.all_gather_tensor_autograd(value * (rank + 1), 0, dist.group.WORLD)
        (gathered * gathered).sum().backward()
        total = functional.all_reduce(filled(rank, 1, device="tpu"), "sum", dist.group.WORLD)
        return value.grad.tolist(), (total + 1).tolist()

    # Each device sums the squares of all: the gradient of each value comes from all.
    assert answers_of(run, 2) == [([0, 4], [2]), ([0, 16], [2])]


def test_launch_runs_all_devices_of_the_session():
    ht.configure(devices=3)
    seen = []
    ht.launch(lambda index, offset: seen.append((index + offset, xm.xla_device().index)), (10,))
    assert sorted(seen) == [(10, 0), (11, 1), (12, 2)]
    seen.clear()
    ht.launch(lambda index: seen.append(index), debug_single_process=True)
    assert seen == [0]


def test_a_group_of_one_device_outside_of_spawn():
    dist.init_process_group("hlokit")
    try:
        value = torch.ones(2, device="tpu")
        dist.all_reduce(value)
        assert (dist.get_rank(), dist.get_world_size(), value.tolist()) == (0, 1, [1, 1])
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("backend", ("xla", "tpu"))
def test_other_names_of_the_backend(backend):
    def run(rank):
        value = filled(rank, 1, device=backend)
        dist.all_reduce(value)
        return value.item()

    assert answers_of(run, 2, backend) == [1, 1]


def test_ranks_are_threads_of_one_process():
    with pytest.raises(ValueError, match="ranks of the backend hlokit are threads of one process"):
        dist.init_process_group("hlokit", world_size=2, rank=0)
    with pytest.raises(ValueError, match="this is rank 0 of 1 threads of spawn.., not 1 of 2"):
        ht.spawn(lambda index: dist.init_process_group("hlokit", world_size=2, rank=1), nprocs=1)
    with pytest.raises(NotImplementedError, match="has no reduction"):
        answers_of(lambda rank: dist.all_reduce(torch.ones(1, dtype=torch.int32, device="tpu"), op=dist.ReduceOp.BXOR), 2)


def test_collectives_are_instructions_of_the_graph():
    ht.configure(devices=2)
    found = {}

    def run(rank):
        dist.init_process_group("hlokit")
        value = torch.ones(4, 4, device="tpu") * rank
        dist.all_reduce(value)
        part = torch.empty(2, 4, device="tpu")
        dist.reduce_scatter_tensor(part, value)
        xm.mark_step()
        found[rank] = part.tolist()

    with ht.trace() as trace:
        ht.spawn(run, nprocs=2)
    assert found == {0: [[2.0] * 4] * 2, 1: [[2.0] * 4] * 2}
    module = trace.main_graph().module
    assert len(module.find(opcode="all-reduce")) == 1 and len(module.find(opcode="reduce-scatter")) == 1
    kinds = {row["kind"] for row in trace.simulate("v5p:2x1x1")["collectives"]}
    assert kinds == {"all-reduce", "reduce-scatter"}


# ---- who reads, and who waits ----


def test_one_rank_reads_values_that_all_compute():
    read = []

    def run(rank):
        value = filled(rank + 1, 2, device="tpu")
        for _ in range(3):
            dist.all_reduce(value)
            if rank == 0:
                read.append(value[0].item())
        dist.barrier()
        if rank == 1:
            read.append(value.sum().item())
        dist.all_reduce(value)
        if rank == 2:
            read.append(value[0].item())

    answers_of(run, 3)
    assert read == [6, 18, 54, 108, 162]


def test_ranks_that_wait_for_different_things_end_with_an_error():
    def run(rank):
        if rank == 0:
            dist.barrier()
        else:
            dist.all_reduce(torch.ones(1, device="tpu"))

    with pytest.raises(RuntimeError, match="all devices wait: xla:0 for a collective of values on the host, xla:1 for a coll"):
        answers_of(run, 2)


def test_ranks_that_wait_for_one_that_fails_end_with_its_error():
    def run(rank):
        dist.all_reduce(torch.ones(1, device="tpu"))
        if rank == 1:
            raise ValueError("this one fails")
        dist.all_reduce(torch.ones(1, device="tpu"))

    with pytest.raises(ValueError, match="this one fails"):
        answers_of(run, 3)


# ---- training ----


def train(kind, optimizer, model, rank, count, device="tpu", **options):
    """The losses of this rank's part of each batch, their mean over the ranks."""
    optimizer = optimizer_of(optimizer, model.parameters(), **options)
    losses = []
    for step in range(STEPS):
        inputs, labels = (part.chunk(count)[rank].to(device) for part in batch_of(kind, step))
        optimizer.zero_grad()
        loss = loss_of(kind, model(inputs), labels)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        xm.mark_step()
        losses.append(mean)
    return [loss.item() for loss in losses]


def check_losses(found, kind, optimizer):
    expected = losses_on_host(kind, optimizer)
    for losses in found:
        assert losses == pytest.approx(expected, abs=1e-5)


every_program = [pytest.mark.parametrize("count", DEVICES), pytest.mark.parametrize("kind", KINDS),
                 pytest.mark.parametrize("optimizer", OPTIMIZERS)]


def with_every_program(test):
    for mark in every_program:
        test = mark(test)
    return test


@with_every_program
def test_distributed_data_parallel(count, kind, optimizer):
    device = "xla" if optimizer == "SGD" else "tpu"

    def run(rank):
        model = nn.parallel.DistributedDataParallel(model_of(kind).to(device))
        return train(kind, optimizer, model, rank, count, device)

    check_losses(answers_of(run, count), kind, optimizer)


@with_every_program
def test_fully_shard(count, kind, optimizer):
    def run(rank):
        mesh = dist.init_device_mesh("tpu", (count,))
        model = model_of(kind).to("tpu")
        for layer in layers_of(kind, model):
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        assert all(isinstance(p, DTensor) for p in model.parameters())
        return train(kind, optimizer, model, rank, count)

    check_losses(answers_of(run, count), kind, optimizer)


@with_every_program
def test_parallelize_module(count, kind, optimizer):
    def run(rank):
        mesh = dist.init_device_mesh("tpu", (count,))
        model = model_of(kind).to("tpu")
        if kind == "transformer":
            for block in model.blocks:
                parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
        else:
            parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        # PyTorch's own loops over all parameters take no DTensors beside others.
        return train(kind, optimizer, model, 0, 1, foreach=False)

    check_losses(answers_of(run, count), kind, optimizer)


def test_a_mesh_of_two_axes():
    def run(rank):
        mesh = dist.init_device_mesh("tpu", (2, 2), mesh_dim_names=("data", "tensor"))
        model = model_of("transformer").to("tpu")
        for block in model.blocks:
            parallelize_module(block, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
            fully_shard(block, mesh=mesh["data"])
        fully_shard(model, mesh=mesh["data"])
        return train("transformer", "AdamW", model, mesh["data"].get_local_rank(), 2, foreach=False)

    check_losses(answers_of(run, 4), "transformer", "AdamW")


def test_shards_with_copies():
    def run(rank):
        mesh = dist.init_device_mesh("tpu", (2, 2), mesh_dim_names=("copies", "shards"))
        model = model_of("perceptron").to("tpu")
        fully_shard(model, mesh=mesh)
        return train("perceptron", "SGD", model, rank, 4)

    check_losses(answers_of(run, 4), "perceptron", "SGD")


def test_shards_in_mixed_precision_with_clipped_gradients():
    def run(rank):
        mesh = dist.init_device_mesh("tpu", (2,))
        model = model_of("perceptron").to("tpu")
        fully_shard(model, mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
        inputs, labels = (part.chunk(2)[rank].to("tpu") for part in batch_of("perceptron", 0))
        loss = loss_of("perceptron", model(inputs).float(), labels)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        dist.all_reduce(loss, op=dist.ReduceOp.AVG)
        return loss.item(), norm.full_tensor().item()

    model = model_of("perceptron")
    inputs, labels = batch_of("perceptron", 0)
    loss = loss_of("perceptron", model(inputs), labels)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
    for found in answers_of(run, 2):
        assert found == pytest.approx((loss.item(), norm.item()), rel=0.03)


def test_a_script_without_steps_whose_first_rank_prints():
    printed = []

    def run(rank):
        model = nn.parallel.DistributedDataParallel(model_of("perceptron").to("tpu"))
        optimizer = optimizer_of("SGD", model.parameters())
        for step in range(STEPS):
            inputs, labels = (part.chunk(2)[rank].to("tpu") for part in batch_of("perceptron", step))
            optimizer.zero_grad()
            loss = loss_of("perceptron", model(inputs), labels)
            loss.backward()
            optimizer.step()
            if rank == 0:
                printed.append(loss.item())

    answers_of(run, 2)
    reference = model_of("perceptron")
    optimizer = optimizer_of("SGD", reference.parameters())
    for step, found in enumerate(printed):
        inputs, labels = batch_of("perceptron", step)
        first = loss_of("perceptron", reference(inputs[: BATCH // 2]), labels[: BATCH // 2])
        assert found == pytest.approx(first.item(), abs=1e-5)
        optimizer.zero_grad()
        loss_of("perceptron", reference(inputs), labels).backward()
        optimizer.step()
    assert len(printed) == STEPS


@pytest.mark.parametrize("options", ({"find_unused_parameters": True}, {"static_graph": True, "gradient_as_bucket_view": True}))
def test_options_of_data_parallelism(options):
    def run(rank):
        model = nn.parallel.DistributedDataParallel(model_of("perceptron").to("tpu"), **options)
        return train("perceptron", "SGD", model, rank, 2)

    check_losses(answers_of(run, 2), "perceptron", "SGD")


def test_gradients_of_several_batches():
    inputs, labels = batch_of("perceptron", 0)
    expected = model_of("perceptron")
    loss_of("perceptron", expected(inputs), labels).backward()

    def run(rank):
        model = nn.parallel.DistributedDataParallel(model_of("perceptron").to("tpu"))
        parts = [(x.to("tpu"), y.to("tpu")) for x, y in zip(inputs.chunk(4)[2 * rank :], labels.chunk(4)[2 * rank :])]
        with model.no_sync():
            (loss_of("perceptron", model(parts[0][0]), parts[0][1]) / 2).backward()
        (loss_of("perceptron", model(parts[1][0]), parts[1][1]) / 2).backward()
        return [p.grad.cpu() for p in model.module.parameters()]

    for gradients in answers_of(run, 2):
        for found, parameter in zip(gradients, expected.parameters()):
            assert torch.allclose(found, parameter.grad, atol=1e-6)


def test_batch_norm_over_all_devices():
    def model():
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv1d(3, 4, 2), nn.BatchNorm1d(4), nn.Linear(4, 2))

    torch.manual_seed(1)
    inputs = torch.randn(8, 3, 5)
    expected = model()
    expected(inputs).square().sum().backward()

    def run(rank):
        own = nn.SyncBatchNorm.convert_sync_batchnorm(model()).to("tpu")
        own(inputs.chunk(2)[rank].to("tpu")).square().sum().backward()
        gradients = [p.grad for p in own.parameters()]
        for gradient in gradients:
            dist.all_reduce(gradient)
        return [g.cpu() for g in gradients], [b.cpu() for b in own.buffers()]

    for gradients, buffers in answers_of(run, 2):
        for found, parameter in zip(gradients, expected.parameters()):
            assert torch.allclose(found, parameter.grad, atol=1e-4)
        for found, buffer in zip(buffers, expected.buffers()):
            assert torch.allclose(found, buffer, atol=1e-5)


def test_optimizer_state_in_parts():
    optim = pytest.importorskip("torch.distributed.optim")

    def run(rank):
        model = nn.parallel.DistributedDataParallel(model_of("perceptron").to("tpu"))
        optimizer = optim.ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.SGD, lr=0.1, momentum=0.9)
        losses = []
        for step in range(STEPS):
            inputs, labels = (part.chunk(2)[rank].to("tpu") for part in batch_of("perceptron", step))
            optimizer.zero_grad()
            loss = loss_of("perceptron", model(inputs), labels)
            loss.backward()
            optimizer.step()
            dist.all_reduce(loss, op=dist.ReduceOp.AVG)
            losses.append(loss.item())
        return losses

    check_losses(answers_of(run, 2), "perceptron", "SGD")


def test_shards_whose_activations_are_computed_again():
    from torch.utils.checkpoint import checkpoint

    class Again(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.block = block

        def forward(self, x):
            return checkpoint(self.block, x, use_reentrant=False)

    def run(rank):
        mesh = dist.init_device_mesh("tpu", (2,))
        model = model_of("transformer").to("tpu")
        model.blocks = nn.ModuleList(Again(block) for block in model.blocks)
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return train("transformer", "SGD", model, rank, 2)

    check_losses(answers_of(run, 2), "transformer", "SGD")


def test_a_pipeline():
    pipelining = pytest.importorskip("torch.distributed.pipelining")
    inputs, labels = batch_of("perceptron", 0)
    expected = model_of("perceptron")
    loss_of("perceptron", expected(inputs), labels).backward()

    def run(rank):
        model = model_of("perceptron")
        part = model[:2] if rank == 0 else model[2:]
        stage = pipelining.PipelineStage(part.to("tpu"), rank, 2, torch.device("tpu", rank))
        schedule = pipelining.ScheduleGPipe(stage, 4, loss_fn=nn.functional.mse_loss)
        if rank == 0:
            schedule.step(inputs.to("tpu"))
        else:
            schedule.step(target=labels.to("tpu"))
        return part[0].weight.grad.cpu()

    first, second = answers_of(run, 2)
    assert torch.allclose(first, expected[0].weight.grad, atol=1e-6)
    assert torch.allclose(second, expected[2].weight.grad, atol=1e-6)


# ---- DTensor ----


def test_distributed_tensors():
    torch.manual_seed(0)
    full, weight = torch.randn(10, 7), torch.randn(7, 5)
    expected = weight.clone().requires_grad_()
    (full @ expected).relu().sum().backward()

    def run(rank):
        mesh = dist.init_device_mesh("tpu", (4,))
        rows = distribute_tensor(full, mesh, [Shard(0)])
        found = [rows.full_tensor(), rows.redistribute(mesh, [Shard(1)]).full_tensor(), rows.redistribute(mesh, [Replicate()]).to_local()]
        assert all(torch.equal(f.cpu(), full) for f in found)
        part = DTensor.from_local(filled(rank + 1, 3, device="tpu"), mesh, [Partial()])
        assert part.full_tensor().tolist() == [10, 10, 10]
        own = distribute_tensor(weight, mesh, [Replicate()]).requires_grad_()
        (rows @ own).relu().sum().backward()
        return own.grad.full_tensor().cpu()

    for gradient in answers_of(run, 4):
        assert torch.allclose(gradient, expected.grad, atol=1e-5)


def test_random_numbers_of_distributed_tensors():
    def run(rank):
        torch.manual_seed(3)
        mesh = dist.init_device_mesh("tpu", (4,))
        ones = torch.ones(8, 16)
        parts = nn.functional.dropout(distribute_tensor(ones, mesh, [Shard(0)]), 0.5).full_tensor().cpu()
        copies = nn.functional.dropout(distribute_tensor(ones, mesh, [Replicate()]), 0.5).to_local().cpu()
        with torch.device("meta"):
            layer = nn.Linear(16, 16)
        fully_shard(layer, mesh=mesh)
        layer.to_empty(device="tpu")
        layer.reset_parameters()
        return parts, copies, layer.weight.full_tensor().detach().cpu()

    first, second = answers_of(run, 4), answers_of(run, 4)
    for parts, copies, weight in first + second:
        for found, expected in zip((parts, copies, weight), first[0]):
            assert torch.equal(found, expected)
        assert len({tuple(rows.flatten().tolist()) for rows in parts.chunk(4)}) == 4
        assert weight.unique().numel() == weight.numel() and weight.abs().max() <= 0.25


def test_copies_between_the_types_of_device():
    value = torch.arange(3.0, device="xla")
    other = value.to("tpu")
    assert other.device == torch.device("tpu", 0) and other.tolist() == [0, 1, 2]
    assert other.to("xla", torch.int32).device == torch.device("xla", 0)
    assert (other.to("xla", torch.int32) + 1).tolist() == [1, 2, 3]


def test_checkpoints_of_shards(tmp_path):
    checkpoint = pytest.importorskip("torch.distributed.checkpoint")
    state_dict = pytest.importorskip("torch.distributed.checkpoint.state_dict")
    expected = model_of("perceptron").state_dict()

    def run(rank):
        mesh = dist.init_device_mesh("tpu", (2,))
        model = model_of("perceptron").to("tpu")
        fully_shard(model, mesh=mesh)
        options = state_dict.StateDictOptions(full_state_dict=True, cpu_offload=True)
        whole = state_dict.get_model_state_dict(model, options=options)
        checkpoint.save({"model": model.state_dict()}, checkpoint_id=str(tmp_path))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        loaded = {"model": model.state_dict()}
        checkpoint.load(loaded, checkpoint_id=str(tmp_path))
        model.load_state_dict(loaded["model"])
        return whole, {name: parameter.full_tensor().detach().cpu() for name, parameter in model.named_parameters()}

    for rank, (whole, loaded) in enumerate(answers_of(run, 2)):
        assert all(torch.equal(loaded[name], value) for name, value in expected.items())
        if rank == 0:
            assert all(torch.equal(whole[name], value) for name, value in expected.items())


@pytest.mark.parametrize("device", ["cpu", "tpu"])
def test_means_of_integers_are_integers(device):
    def run(rank):
        dist.init_process_group("hlokit")
        value = torch.tensor([4, 6], device=device) * (rank + 1)
        dist.all_reduce(value, dist.ReduceOp.AVG)
        assert value.tolist() == [6, 9]

    ht.spawn(run, nprocs=2)
