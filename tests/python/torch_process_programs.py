# SPDX-License-Identifier: Apache-2.0
"""Programs of torch.distributed whose ranks are threads or processes, and, as a script of torchrun, these programs:
torch_process_programs.py BACKEND FOLDER writes what each returns to FOLDER/RANK.json."""

import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.parallel import loss_parallel
from torch_parallel_programs import filled, layers_of, model_of, train


def collectives(rank, count, device):
    found = {}
    for name, op in (("sum", dist.ReduceOp.SUM), ("product", dist.ReduceOp.PRODUCT), ("min", dist.ReduceOp.MIN),
                     ("max", dist.ReduceOp.MAX)):
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
    value = torch.empty(count, device=device)
    dist.all_to_all_single(value, torch.arange(float(count), device=device) + 10 * rank)
    found["all_to_all_single"] = value.tolist()
    value = filled(rank, 2, device=device)
    dist.broadcast(value, 1)
    dist.reduce(value, 0)
    found["broadcast"] = value.tolist() if rank == 0 else None  # that of others is what an implementation likes
    value = torch.empty(2, device=device)
    dist.scatter(value, [filled(i, 2, device=device) for i in range(count)] if rank == 1 else None, src=1)
    found["scatter"] = value.tolist()
    gathered = [torch.empty(1, device=device) for _ in range(count)] if rank == 0 else None
    dist.gather(filled(rank, 1, device=device), gathered, dst=0)
    found["gather"] = None if gathered is None else [g.item() for g in gathered]
    return found


def between_ranks(rank, count, device):
    objects = [None] * count
    dist.all_gather_object(objects, {"rank": rank})
    sent = [rank, "text"] if rank == 0 else [None, None]
    dist.broadcast_object_list(sent, 0)
    value = filled(rank, 2, device=device)
    if rank == 0:
        dist.send(value + 5, 1)
    elif rank == 1:
        dist.recv(value, 0)
    dist.barrier()
    next_one = torch.empty(2, device=device)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, value, (rank + 1) % count),
                                        dist.P2POp(dist.irecv, next_one, (rank - 1) % count)]):
        work.wait()
    return objects, sent, value.tolist(), next_one.tolist()


def some_ranks(rank, count, device):
    """A collective of one rank less, and a value that one reads alone."""
    group = dist.new_group(list(range(count - 1)))
    value = filled(rank + 1, 2, device=device)
    dist.all_reduce(value)
    read = value.sum().item() if rank == 0 else None
    if rank < count - 1:
        dist.all_reduce(value, group=group)
    dist.all_reduce(value)
    return read, value.tolist()


def data_parallel(rank, count, device):
    model = nn.parallel.DistributedDataParallel(model_of("perceptron").to(device), gradient_as_bucket_view=True)
    return train("perceptron", "SGD", model, rank, count, device)


def sharded(rank, count, device):
    mesh = dist.init_device_mesh(device, (count,))
    model = model_of("transformer").to(device)
    for layer in layers_of("transformer", model):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return train("transformer", "AdamW", model, rank, count, device)


PROGRAMS = [collectives, between_ranks, some_ranks, data_parallel, sharded]


def loss_in_parts(rank, count, device):
    """Not of threads: loss_parallel() changes PyTorch for the process."""
    torch.manual_seed(0)
    logits, labels = torch.randn(4, 8), torch.randint(0, 8, (4,))
    parts = distribute_tensor(logits.to(device), dist.init_device_mesh(device, (count,)), [Shard(1)]).requires_grad_()
    with loss_parallel():
        loss = nn.functional.cross_entropy(parts, labels.to(device))
        loss.backward()
    return [loss.full_tensor().item(), *parts.grad.full_tensor().flatten().tolist()]


def fails(rank, backend, port):
    """For torch.multiprocessing: the last rank fails, and others wait for it."""
    dist.init_process_group(backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    value = filled(rank, 2, device="tpu")
    dist.all_reduce(value)
    if rank == 1:
        raise ValueError("this one fails")
    dist.all_reduce(value)


def differs(rank, backend, port, folder):
    """For torch.multiprocessing: ranks at different collectives, and at the same one after that."""
    dist.init_process_group(backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    error = ""
    try:
        dist.all_reduce(filled(rank, 2 + rank, device="tpu"))
    except RuntimeError as raised:
        error = str(raised)
    value = filled(rank, 2, device="tpu")
    dist.all_reduce(value)
    with open(f"{folder}/{rank}.json", "w") as file:
        json.dump([error, value.tolist()], file)


def main(backend, folder):
    dist.init_process_group(backend)
    rank, count = dist.get_rank(), dist.get_world_size()
    device = "cpu" if backend == "gloo" else "tpu"
    found = {program.__name__: program(rank, count, device) for program in [*PROGRAMS, loss_in_parts]}
    with open(f"{folder}/{rank}.json", "w") as file:
        json.dump(found, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
