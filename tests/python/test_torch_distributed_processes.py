# SPDX-License-Identifier: Apache-2.0
"""torch.distributed in several processes, of torchrun and of torch.multiprocessing: values are those of threads of spawn(), and
of PyTorch's gloo."""

import json
import pathlib
import socket
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")

import torch.multiprocessing  # noqa: E402
from torch_parallel_programs import answers_of, new_session  # noqa: E402
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


def test_a_process_that_fails_ends_the_others():
    with pytest.raises(torch.multiprocessing.ProcessRaisedException, match="this one fails"):
        torch.multiprocessing.spawn(fails, args=("hlokit", free_port()), nprocs=COUNT)


def test_processes_at_different_collectives(tmp_path):
    torch.multiprocessing.spawn(differs, args=("hlokit", free_port(), str(tmp_path)), nprocs=COUNT)
    for rank in range(COUNT):
        error, value = json.loads((tmp_path / f"{rank}.json").read_text())
        assert "the ranks are at different collectives: xla:0 all_reduce sum of float32[2], xla:1 all_reduce sum of float32[3]" in error
        assert value == [1, 1]
