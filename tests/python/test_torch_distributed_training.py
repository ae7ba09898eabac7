# SPDX-License-Identifier: Apache-2.0
"""Training on the threads of spawn(): DistributedDataParallel, FSDP2, tensor parallelism and others give the losses of one
device."""

import itertools

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks  # noqa: E402
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard  # noqa: E402
from torch.distributed.tensor import DTensor  # noqa: E402
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from torch_parallel_programs import (  # noqa: E402
    BATCH, STEPS, answers_of, batch_of, check_losses, layers_of, loss_of, model_of, new_session, optimizer_of, train)

from hlokit.torch.fsdp import XlaFullyShardedDataParallel, checkpoint_module  # noqa: E402

DEVICES = (2, 4, 8)
KINDS = ("perceptron", "transformer")
OPTIMIZERS = ("SGD", "AdamW")


@pytest.fixture(autouse=True)
def session():
    new_session()


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


OPTIONS = [dict(zip(("gradient_as_bucket_view", "static_graph", "find_unused_parameters"), values))
           for values in itertools.product((False, True), repeat=3)]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(name for name, on in options.items() if on) or "none")
@pytest.mark.parametrize("megabytes", (25, 0.0005))
def test_options_of_data_parallelism(options, megabytes):
    hooks = [None, default_hooks.allreduce_hook, default_hooks.bf16_compress_hook, default_hooks.fp16_compress_hook]
    expected = model_of("perceptron")
    inputs, labels = batch_of("perceptron", 0)
    loss_of("perceptron", expected(inputs), labels).backward()

    def run(rank):
        found = []
        for hook in hooks:
            model = nn.parallel.DistributedDataParallel(model_of("perceptron").to("tpu"), bucket_cap_mb=megabytes, **options)
            if hook is not None:
                model.register_comm_hook(None, hook)
            x, y = (part.chunk(2)[rank].to("tpu") for part in (inputs, labels))
            for step in range(2):  # buckets are made anew after the first one
                model.zero_grad(set_to_none=step == 0)
                loss_of("perceptron", model(x), y).backward()
            found.append([p.grad.cpu() for p in model.module.parameters()])
        return found

    for of_hooks in answers_of(run, 2):
        for hook, gradients in zip(hooks, of_hooks):
            exact = hook in hooks[:2]
            for found, parameter in zip(gradients, expected.parameters()):
                assert torch.allclose(found, parameter.grad, atol=1e-6 if exact else 1e-2)


@pytest.mark.parametrize("view", (False, True))
def test_gradients_of_several_batches(view):
    inputs, labels = batch_of("perceptron", 0)
    expected = model_of("perceptron")
    loss_of("perceptron", expected(inputs), labels).backward()

    def run(rank):
        model = nn.parallel.DistributedDataParallel(model_of("perceptron").to("tpu"), gradient_as_bucket_view=view)
        parts = [(x.to("tpu"), y.to("tpu")) for x, y in zip(inputs.chunk(4)[2 * rank :], labels.chunk(4)[2 * rank :])]
        with model.no_sync():
            (loss_of("perceptron", model(parts[0][0]), parts[0][1]) / 2).backward()
        (loss_of("perceptron", model(parts[1][0]), parts[1][1]) / 2).backward()
        return [p.grad.cpu() for p in model.module.parameters()]

    for gradients in answers_of(run, 2):
        for found, parameter in zip(gradients, expected.parameters()):
            assert torch.allclose(found, parameter.grad, atol=1e-6)


@pytest.mark.parametrize("momentum", (0.1, None))
@pytest.mark.parametrize("sizes", ([4, 4], [3, 5], [2, 3, 3]))
def test_batch_norm_over_all_devices(sizes, momentum):
    def model():
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv1d(3, 4, 2), nn.BatchNorm1d(4, momentum=momentum), nn.Linear(4, 2))

    torch.manual_seed(1)
    batches = [torch.randn(8, 3, 5) * (step + 1) + 3 for step in range(3)]
    expected = model()
    for batch in batches:
        expected.zero_grad()
        expected(batch).square().sum().backward()

    def run(rank):
        own = nn.SyncBatchNorm.convert_sync_batchnorm(model()).to("tpu")
        for batch in batches:
            own.zero_grad()
            own(batch.split(sizes)[rank].to("tpu")).square().sum().backward()
        gradients = [p.grad for p in own.parameters()]
        for gradient in gradients:
            dist.all_reduce(gradient)
        return [g.cpu() for g in gradients], [b.cpu() for b in own.buffers()]

    for gradients, buffers in answers_of(run, len(sizes)):
        for found, parameter in zip(gradients, expected.parameters()):
            assert torch.allclose(found, parameter.grad, atol=1e-3)
        for found, buffer in zip(buffers, expected.buffers()):
            assert torch.allclose(found, buffer, atol=1e-5)


@pytest.mark.parametrize("order", ("checkpoint within shards", "shards within checkpoint", "checkpoint of PyTorch"))
def test_shards_of_torch_xla_whose_activations_are_computed_again(order):
    def wrapped(block):
        if order == "checkpoint within shards":
            return XlaFullyShardedDataParallel(checkpoint_module(block))
        if order == "shards within checkpoint":
            return checkpoint_module(XlaFullyShardedDataParallel(block))
        return XlaFullyShardedDataParallel(Again(block))

    def run(rank):
        model = model_of("transformer").to("xla")
        model.blocks = nn.ModuleList(wrapped(block) for block in model.blocks)
        losses = train("transformer", "SGD", XlaFullyShardedDataParallel(model), rank, 2, "xla")
        assert not any("weight" in module.__dict__ for module in model.modules())
        return losses

    check_losses(answers_of(run, 2), "transformer", "SGD")


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


class Again(nn.Module):
    """A block whose values are computed again in the backward pass."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)


def test_shards_whose_activations_are_computed_again():
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
