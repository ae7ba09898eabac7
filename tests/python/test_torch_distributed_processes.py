# SPDX-License-Identifier: Apache-2.0
"""torch.distributed in several processes, of torchrun and of torch.multiprocessing: values are those of threads of spawn(), and
of PyTorch's gloo."""

import datetime
import json
import pathlib
import re
import socket
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")

import torch.distributed as dist  # noqa: E402
import torch.multiprocessing  # noqa: E402
from torch_parallel_programs import answers_of, filled, new_session  # noqa: E402
from torch_process_programs import PROGRAMS, data_parallel, differs, fails, sharded  # noqa: E402

SCRIPT = str(pathlib.Path(__file__).with_name("torch_process_programs.py"))
COUNT = 2


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def run_processes(folder, *program):
    """What each rank of torchrun writes."""
    folder.mkdir()
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={COUNT}", f"--master-port={free_port()}", *program]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(COUNT)], done.stderr


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    return run_processes(tmp_path_factory.mktemp("processes") / "hlokit", SCRIPT, "hlokit")[0]


@pytest.fixture(scope="module")
def gloo(tmp_path_factory):
    return run_processes(tmp_path_factory.mktemp("processes") / "gloo", SCRIPT, "gloo")[0]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_processes_threads_and_gloo_agree(program, processes, gloo):
    new_session()
    threads = json.loads(json.dumps(answers_of(lambda rank: program(rank, COUNT, "tpu"), COUNT)))
    for rank in range(COUNT):
        found, other = processes[rank][program.__name__], gloo[rank][program.__name__]
        assert found == threads[rank]
        if program in (data_parallel, sharded):  # losses
            assert found == pytest.approx(other, abs=1e-5)
        else:
            assert found == other


def test_losses_in_parts(processes, gloo):
    torch.manual_seed(0)
    logits, labels = torch.randn(4, 8).requires_grad_(), torch.randint(0, 8, (4,))
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    expected = pytest.approx([loss.item(), *logits.grad.flatten().tolist()], abs=1e-6)
    for found in (*processes, *gloo):
        assert found["loss_in_parts"] == expected


def test_unmodified_scripts_in_processes(tmp_path):
    found, printed = run_processes(tmp_path / "found", "-m", "hlokit.torch", "--engine=exact", SCRIPT, "xla")
    assert [found[rank]["some_ranks"] for rank in range(COUNT)] == [[6, [6, 6]], [None, [6, 6]]]
    assert printed.count("graphs run") >= COUNT


def run_ranks(program, folder):
    """How the processes end, which are started one by one: nobody ends those that wait for one that has failed."""
    context, port = torch.multiprocessing.get_context("spawn"), free_port()
    ranks = [context.Process(target=program, args=(rank, port, str(folder))) for rank in range(COUNT)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(120)
        if process.is_alive():
            process.kill()
    return [process.exitcode for process in ranks]


def waits_for_one_that_fails(rank, port, folder):
    try:
        fails(rank, "hlokit", port)
    except (RuntimeError, ValueError) as error:
        (pathlib.Path(folder) / f"{rank}.txt").write_text(f"{type(error).__name__}: {error}")
        raise


def test_a_process_that_fails_ends_the_others(tmp_path):
    assert run_ranks(waits_for_one_that_fails, tmp_path) == [1, 1]
    assert (tmp_path / "1.txt").read_text() == "ValueError: this one fails"
    error = (tmp_path / "0.txt").read_text()
    assert re.match("RuntimeError: all_reduce sum of float32.2.: xla:1 (failed: this one fails|has ended)$", error), error


def has_failures(rank, port, folder):
    dist.init_process_group("hlokit", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=COUNT)
    found = []
    for _ in range(3):
        with pytest.raises(RuntimeError, match="all devices wait"):
            dist.all_reduce(filled(100, 1, device="tpu" if rank == 1 else "cpu"))
        for scale in (1, 10, 100):
            value = filled(scale * (rank + 1), 1, device="cpu")
            dist.all_reduce(value)
            found.append(value.item())
    if rank == 0:
        with pytest.raises(RuntimeError, match="a receive: waited 0.5 s for xla:1"):
            dist.irecv(torch.zeros(1), 1).wait(datetime.timedelta(seconds=0.5))
        dist.send(torch.ones(1), 1)
    else:
        time.sleep(3)
        dist.recv(torch.zeros(1), 0)
    dist.destroy_process_group()
    with pytest.raises(ValueError, match=f"this is rank {rank} of 2, and cannot become rank {1 - rank} of 2"):
        dist.init_process_group("hlokit", init_method=f"file://{folder}/store", rank=1 - rank, world_size=COUNT)
    (pathlib.Path(folder) / f"{rank}.json").write_text(json.dumps(found))


def test_processes_go_on_after_failures(tmp_path):
    assert run_ranks(has_failures, tmp_path) == [0, 0]
    for rank in range(COUNT):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == [3, 30, 300] * 3


def test_processes_at_different_collectives(tmp_path):
    torch.multiprocessing.spawn(differs, args=("hlokit", free_port(), str(tmp_path)), nprocs=COUNT)
    for rank in range(COUNT):
        error, value = json.loads((tmp_path / f"{rank}.json").read_text())
        assert "the ranks are at different collectives: xla:0 all_reduce sum of float32[2], xla:1 all_reduce sum of float32[3]" in error
        assert value == [1, 1]
