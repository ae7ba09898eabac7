# SPDX-License-Identifier: Apache-2.0
"""Programs of hlokit.torch on several devices, which are threads: what they share."""

import threading

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")

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
                lambda: torch.ones(1).to(xm.xla_device()).to("xla:0"),
                lambda: xm.send_cpu_data_to_device([torch.ones(1)], torch.device("xla", 0))):
        def run(index):
            value = use()
            xm.all_reduce("sum", [value] if torch.is_tensor(value) else value)
            xm.mark_step()

        with pytest.raises(RuntimeError, match="xla:0 is the device of another thread of spawn..; that of this one is xla:1"):
            ht.spawn(run, nprocs=2)
