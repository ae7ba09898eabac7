# SPDX-License-Identifier: Apache-2.0
"""DTensor on the threads of spawn(), and checkpoints of shards."""

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor  # noqa: E402
from torch_parallel_programs import answers_of, filled, model_of, new_session  # noqa: E402



@pytest.fixture(autouse=True)
def session():
    new_session()


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
