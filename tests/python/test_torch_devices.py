# SPDX-License-Identifier: Apache-2.0
"""Programs of hlokit.torch on several devices, which are threads: what they share, and how they end."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import hlokit.torch as ht  # noqa: E402
import hlokit.torch.xla_model as xm  # noqa: E402
import hlokit.torch.xla_multiprocessing as xmp  # noqa: E402


@pytest.fixture(autouse=True)
def session():
    ht.configure(devices=1, pipeline="default", debug=True, fake=False, replicas=1, engine="exact", num_threads=0)


def answers_of(fn, count):
    answers = [None] * count

    def run(index):
        answers[index] = fn(index)

    ht.spawn(run, nprocs=count)
    return answers


def test_a_thread_seeds_its_own_numbers():
    meet = threading.Barrier(4)

    def drawn(index):
        torch.manual_seed(42)
        meet.wait()
        layer = torch.nn.Linear(64, 64).to(xm.xla_device())
        state = torch.get_rng_state()
        numbers = [torch.rand(3), torch.randn(2, 2), torch.empty(3).uniform_(), torch.randperm(5), torch.rand_like(torch.ones(2))]
        meet.wait()
        torch.set_rng_state(state)
        again = torch.rand(3)
        return [layer.weight.detach().cpu(), *numbers, again, torch.tensor(torch.initial_seed())]

    torch.manual_seed(42)
    layer = torch.nn.Linear(64, 64)
    expected = [layer.weight.detach(), torch.rand(3), torch.randn(2, 2), torch.empty(3).uniform_(), torch.randperm(5),
                torch.rand_like(torch.ones(2))]
    expected += [expected[1], torch.tensor(42)]
    torch.manual_seed(7)
    for found in answers_of(drawn, 4):
        assert [torch.equal(a, b) for a, b in zip(found, expected)] == [True] * len(expected)
    # The program's own numbers go on as if there had been no threads.
    assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(7)))


def test_threads_begin_with_the_state_of_the_program():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    found = answers_of(lambda index: torch.rand(4), 2)
    torch.set_rng_state(state)
    expected = torch.rand(4)
    assert torch.equal(found[0], expected) and torch.equal(found[1], expected)


def test_models_and_parameters_come_from_the_first_device():
    wrapped = xmp.MpModelWrapper(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)))
    expected = {name: value.clone() for name, value in wrapped._model.state_dict().items()}

    def run(index):
        model = wrapped.to(xm.xla_device())
        same = all(torch.equal(v.cpu(), expected[k]) for k, v in model.state_dict().items())
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.tensor(index + 1.0).to(xm.xla_device()))
        model[1].num_batches_tracked += torch.tensor(7 * index).to(xm.xla_device())
        xm.broadcast_master_param(model)
        return same, model[0].weight.detach().cpu(), int(model[1].num_batches_tracked)

    for same, weight, batches in answers_of(run, 3):
        assert same and torch.allclose(weight, expected["0.weight"] + 1) and batches == 0


def test_a_device_without_a_number_is_that_of_the_thread():
    def run(index):
        made = [torch.ones(2, device="xla"), torch.ones(2).to("xla"), torch.tensor([1.0], device="xla"),
                torch.nn.Linear(2, 2).to("xla").weight, torch.ones(2).to(device="xla", dtype=torch.float64)]
        return [t.device for t in made]

    assert answers_of(run, 2) == [[torch.device("xla", i)] * 5 for i in range(2)]
    assert torch.ones(2).to("xla").device == torch.device("xla", 0)


def test_a_thread_that_uses_the_device_of_another_ends_with_an_error():
    for use in (lambda: torch.ones(1, device="xla:0"), lambda: torch.ones(1).to("xla:0"),
                lambda: xm.send_cpu_data_to_device([torch.ones(1)], torch.device("xla", 0))):
        def run(index):
            value = use()
            xm.all_reduce("sum", [value] if torch.is_tensor(value) else value)
            xm.mark_step()

        with pytest.raises(RuntimeError, match="xla:0 is the device of another thread of spawn..; that of this one is xla:1"):
            ht.spawn(run, nprocs=2)


def test_programs_of_devices_may_differ_between_collectives():
    def run(index):
        value = torch.full((2,), index + 1.0).to(xm.xla_device())
        if index == 0:
            value = torch.sin(value) * 0 + 10
        total = xm.all_reduce("sum", torch.nn.functional.pad(value, (2 * index, 2 - 2 * index)))
        xm.mark_step()
        return total.cpu().tolist()

    assert answers_of(run, 2) == [[10, 10, 2, 2]] * 2


# What ends on one device, and what the devices are told that wait for it.
def one_fails_before_a_collective(index):
    x = torch.rand(4).to(xm.xla_device())
    if index == 1:
        x.item()
    xm.all_reduce("sum", x).cpu()


def one_fails_in_its_third_step(index):
    x = torch.rand(4).to(xm.xla_device())
    for step in range(3):
        if index == 1 and step == 2:
            x.item()
        total = xm.all_reduce("sum", x)
        xm.mark_step()
        total.cpu()


def one_fails_before_a_rendezvous(index):
    if index == 1:
        torch.rand(4).to(xm.xla_device()).item()
    xm.rendezvous("start")


def one_ends_early(index):
    if index == 0:
        xm.all_reduce("sum", torch.rand(4).to(xm.xla_device())).cpu()


# Of item() of four elements, by PyTorch 1.13 and 2.
NO_SCALAR = "(only one element tensors can|a Tensor with 4 elements cannot) be converted"


@pytest.mark.parametrize("program, raised, told", [
    (one_fails_before_a_collective, "^" + NO_SCALAR, 1),
    (one_fails_in_its_third_step, "^" + NO_SCALAR, 3),
    (one_fails_before_a_rendezvous, "^" + NO_SCALAR, 2),
    (one_ends_early, "^xla:[12] has ended", 1),
], ids=lambda value: getattr(value, "__name__", ""))
def test_devices_do_not_wait_for_one_that_has_ended(program, raised, told):
    said = {}

    def run(index):
        try:
            program(index)
        except Exception as error:
            said[index] = str(error)
            raise

    with pytest.raises((RuntimeError, ValueError), match=raised):
        ht.spawn(run, nprocs=3 if program is one_ends_early else told + 1)
    waited = [text for index, text in said.items() if index != 1]
    assert len(waited) == told
    assert all(re.search("xla:1 failed: " + NO_SCALAR, text) for text in waited) or program is one_ends_early, waited


LOOPS = {
    "an execution": """
        x = torch.ones(1200, 1200).to(ht.device())
        y = x
        for _ in range(400):
            y = torch.tanh(y @ x)
        print("ready", flush=True)
        y.sum().item()
    """,
    "threads": """
        def run(index):
            x = torch.ones(600, 600).to(xm.xla_device())
            if index == 0:
                print("ready", flush=True)
            for _ in range(100000):
                x = torch.tanh(x @ x)
                xm.mark_step()
                x.sum().item()
        ht.spawn(run, nprocs=2)
    """,
    "a collective": """
        def run(index):
            if index == 0:
                value = xm.all_reduce("sum", torch.ones(2).to(xm.xla_device()))
                xm.mark_step()
                print("ready", flush=True)
                value.sum().item()
            else:
                xm.rendezvous("late")
        ht.spawn(run, nprocs=2)
    """,
}


@pytest.mark.parametrize("where", LOOPS)
def test_an_interrupt_ends(where, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import time, torch, hlokit.torch as ht\nimport hlokit.torch.xla_model as xm\ntry:\n"
                       + textwrap.indent(textwrap.dedent(LOOPS[where]), "    ")
                       + "\nexcept KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
                       + "    print((torch.ones(2).to(ht.device()) + 1).cpu().tolist())\n")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    process = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment, cwd=pathlib.Path(tmp_path))
    try:
        assert process.stdout.readline() == "ready\n"
        threading.Event().wait(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=40)
    finally:
        process.kill()
    assert (out, process.returncode) == ("interrupted\n[2.0, 2.0]\n", 0), err


@pytest.mark.parametrize("count", [0, -3, 1025])
def test_a_session_has_a_device(count):
    for start in (lambda: ht.configure(devices=count), lambda: ht.spawn(lambda index: None, nprocs=count)):
        with pytest.raises(ValueError, match=f"a session has 1 to 1024 devices, not {count}"):
            start()
    assert torch.ones(2, device="xla").sum().item() == 2 and xm.xrt_world_size() == 1  # the session is as it was


def test_tensors_of_a_session_before_spawn_are_said_to_be():
    before = torch.ones(2, device="xla")
    ht.spawn(lambda index: None, nprocs=1)
    assert (before + torch.ones(2, device="xla")).tolist() == [2.0, 2.0]  # the same number of devices
    ht.spawn(lambda index: None, nprocs=2)
    assert before.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match=r"different sessions: .* spawn\(\) for another number of devices"):
        before + torch.ones(2, device="xla")


def test_tensors_made_before_spawn_are_used_after_it_with_as_many_devices():
    ht.configure(devices=2)
    before = torch.ones(2, device="xla")
    ht.spawn(lambda index: torch.ones(2, device="xla").sum().item(), nprocs=2)
    assert (before + torch.ones(2, device="xla")).tolist() == [2.0, 2.0]
