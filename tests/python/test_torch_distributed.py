# SPDX-License-Identifier: Apache-2.0
"""torch.distributed on the threads of spawn(): collectives of all ranks and of some, and ranks that wait for each other."""

import sys
import time

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")

import torch.distributed as dist  # noqa: E402
import torch.distributed._functional_collectives as functional  # noqa: E402
import torch.distributed.nn as dist_nn  # noqa: E402
from torch_parallel_programs import answers_of, filled, new_session  # noqa: E402

import hlokit.torch as ht  # noqa: E402
import hlokit.torch.xla_model as xm  # noqa: E402


@pytest.fixture(autouse=True)
def session():
    new_session()


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


@pytest.mark.parametrize("device", ("tpu", "cpu"))
def test_collectives_of_some_devices_alone(device):
    def run(rank):
        group = dist.new_group([0, 3])
        value = filled(rank + 1, 2, device=device)
        dist.all_reduce(value)
        if rank == 2:
            return value.tolist()  # ends before the others
        found = []
        if rank in (0, 3):
            dist.all_reduce(value, group=group)
            rows = [torch.empty(1, device=device) for _ in range(2)]
            dist.all_gather(rows, filled(rank, 1, device=device), group=group)
            part = torch.empty(1, device=device)
            dist.reduce_scatter_tensor(part, filled(rank, 2, device=device), group=group)
            swapped = torch.empty(2, device=device)
            dist.all_to_all_single(swapped, filled(rank, 2, device=device), group=group)
            sent = filled(rank, 1, device=device)
            dist.broadcast(sent, 3, group=group)
            found = [[r.item() for r in rows], part.item(), swapped.tolist(), sent.item()]
        return value.tolist(), found

    of_members = ([20, 20], [[0, 3], 3, [0, 3], 3])
    assert answers_of(run, 4) == [of_members, ([10, 10], []), [10, 10], of_members]


def test_collectives_of_one_of_several_groups():
    def run(rank):
        rows = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        value = filled(rank + 1, 1, device="tpu")
        if rank < 2:  # the others are at the collective of all
            dist.all_reduce(value, group=rows[0])
        dist.all_reduce(value)
        return value.item()

    assert answers_of(run, 4) == [13] * 4


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


def forms_of_functional_collectives(rank, count):
    """By name what it gives, and what it should."""
    own, row = filled(rank, 2, device="tpu"), torch.arange(2.0 * count, device="tpu") + rank
    total, world = sum(range(count)), dist.group.WORLD
    parts = [2 * rank * count + total, (2 * rank + 1) * count + total]
    sizes = [i + 1 for i in range(count)]
    found = {
        "all_reduce": (functional.all_reduce(own, "sum", world), [total] * 2),
        "mean": (functional.all_reduce(own, "avg", world), [total / count] * 2),
        "max": (functional.wait_tensor(functional.all_reduce(own, "max", world)), [count - 1] * 2),
        "all_reduce_coalesced": (functional.all_reduce_coalesced([own, row], "sum", world)[1], [i * count + total for i in range(2 * count)]),
        "broadcast": (functional.broadcast(own, 1, world), [1, 1]),
        "permute": (functional.permute_tensor(own, [(i + 1) % count for i in range(count)], world), [(rank - 1) % count] * 2),
        "all_to_all": (functional.all_to_all_single(row, None, None, world),
                       [2 * rank + k + i for i in range(count) for k in range(2)]),
        "all_to_all of sizes": (
            functional.all_to_all_single(torch.arange(float(sum(sizes)), device="tpu") + rank, [rank + 1] * count, sizes, world),
            [sum(sizes[:rank]) + k + i for i in range(count) for k in range(rank + 1)]),
        "all_reduce_inplace": (functional.all_reduce_inplace(own.clone(), "sum", world), [total] * 2),
        "all_gather_inplace": (functional.all_gather_inplace([torch.empty(2, device="tpu") for _ in range(count)], own, world)[-1],
                               [count - 1] * 2),
        "all_to_all_inplace": (functional.all_to_all_inplace(torch.empty(2 * count, device="tpu"), row, None, None, world),
                               [2 * rank + k + i for i in range(count) for k in range(2)]),
    }
    for name in ("all_gather_tensor", "all_gather_single"):  # by versions of PyTorch
        if hasattr(functional, name):
            gathered = getattr(functional, name)(own.unsqueeze(0), 1, world)
            found[name] = gathered, [[i for i in range(count) for _ in range(2)]]
    for name in ("reduce_scatter_tensor", "reduce_scatter_single"):
        if hasattr(functional, name):
            found[name] = getattr(functional, name)(row, "sum", 0, world), parts
            columns = getattr(functional, name)(row.reshape(2, count), "avg", 1, world)
            found[name + " of columns"] = columns, [[rank + total / count], [rank + count + total / count]]
    for name in ("all_gather_into_tensor_coalesced", "all_gather_single_coalesced"):
        if hasattr(functional, name):
            found[name] = getattr(functional, name)([row, own], world)[1], [i for i in range(count) for _ in range(2)]
    for name in ("reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced"):
        if hasattr(functional, name):
            found[name] = getattr(functional, name)([row, row], "sum", [0, 0], world)[1], parts
    return {name: (value.tolist(), expected) for name, (value, expected) in found.items()}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("count", (2, 4))
def test_functional_collectives(count):
    for found in answers_of(lambda rank: forms_of_functional_collectives(rank, count), count):
        for name, (value, expected) in found.items():
            assert value == expected, name


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_gradients_of_functional_collectives():
    def squares(rank, collective):
        value = torch.arange(2.0, device="tpu").requires_grad_()
        (collective(value * (rank + 1)) ** 2).sum().backward()
        return value.grad.tolist()

    def run(rank):
        world = dist.group.WORLD
        return [
            squares(rank, lambda x: functional.all_gather_tensor_autograd(x, 0, world)),
            squares(rank, lambda x: functional.reduce_scatter_tensor_autograd(x, "sum", 0, world)),
            squares(rank, lambda x: functional.all_to_all_single_autograd(x, None, None, world)),
            squares(rank, dist_nn.all_reduce),
            squares(rank, lambda x: torch.stack(list(dist_nn.all_gather(x)))),
        ]

    # The gradient of each value comes from all devices that have it.
    assert answers_of(run, 2) == [
        [[0, 4], [0, 6], [0, 2], [0, 12], [0, 4]],
        [[0, 16], [0, 12], [0, 8], [0, 24], [0, 16]],
    ]


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


def test_ranks_and_reductions_that_do_not_exist():
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

    with pytest.raises(RuntimeError, match="all devices wait: xla:0 for barrier on the host, xla:1 for all_reduce sum of float32.1."):
        answers_of(run, 2)


def other_collective(rank, group):
    value = filled(1, 2, device="tpu")
    if rank % 2 == 0:
        dist.all_reduce(value, group=group)
    else:
        dist.all_gather([torch.empty(2, device="tpu")] * 2, value, group=group)


def other_shape(rank, group):
    dist.all_reduce(filled(1, 2 + rank % 2, device="tpu"), group=group)


def other_reduction(rank, group):
    dist.all_reduce(filled(1, 2, device="tpu"), dist.ReduceOp.MAX if rank % 2 else dist.ReduceOp.SUM, group=group)


def other_root(rank, group):
    dist.broadcast(filled(1, 2, device="tpu"), dist.get_global_rank(group, rank % 2), group=group)


def other_collective_on_the_host(rank, group):
    value = torch.ones(2)
    if rank % 2 == 0:
        dist.all_reduce(value, group=group)
    else:
        dist.broadcast(value, dist.get_global_rank(group, 0), group=group)


@pytest.mark.parametrize("program", [other_collective, other_shape, other_reduction, other_root, other_collective_on_the_host])
@pytest.mark.parametrize("count", (2, 4))
def test_ranks_at_different_collectives_end_with_an_error_and_the_next_ones_work(program, count):
    ended = []

    def run(rank):
        groups = [dist.new_group([first, first + 1]) for first in range(0, count, 2)]
        group = groups[rank // 2]
        if rank < 2:
            with pytest.raises(RuntimeError, match="the ranks are at different collectives: xla:0 .*, xla:1 "):
                program(rank, group)
            ended.append(rank)
        else:
            while len(ended) < 2:  # the error of a group does not wait for others
                time.sleep(0.01)
        value = filled(rank, 1, device="tpu")
        dist.all_reduce(value)
        return value.item()

    assert answers_of(run, count) == [sum(range(count))] * count


def test_ranks_set_no_hooks_of_the_process():
    before = sys.excepthook
    answers_of(lambda rank: None, 4)
    assert sys.excepthook is before


def test_programs_that_fail_leave_nothing_behind():
    def different(rank):
        value = torch.ones(4, device="xla")
        result = xm.all_reduce(xm.REDUCE_SUM, value) if rank == 0 else xm.all_gather(value)
        return result.tolist()

    def equal(rank):
        return xm.all_reduce(xm.REDUCE_SUM, torch.ones(2, device="xla")).tolist()

    with pytest.raises(RuntimeError, match="devices entered a collective with different programs"):
        answers_of(different, 2)
    assert answers_of(equal, 2) == [[2, 2]] * 2


def test_ranks_that_wait_for_one_that_fails_end_with_its_error():
    def run(rank):
        dist.all_reduce(torch.ones(1, device="tpu"))
        if rank == 1:
            raise ValueError("this one fails")
        dist.all_reduce(torch.ones(1, device="tpu"))

    with pytest.raises(ValueError, match="this one fails"):
        answers_of(run, 3)


@pytest.mark.parametrize("device", ["cpu", "tpu"])
def test_means_of_integers_are_integers(device):
    def run(rank):
        dist.init_process_group("hlokit")
        value = torch.tensor([4, 6], device=device) * (rank + 1)
        dist.all_reduce(value, dist.ReduceOp.AVG)
        assert value.tolist() == [6, 9]

    ht.spawn(run, nprocs=2)
