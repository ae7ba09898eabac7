# SPDX-License-Identifier: Apache-2.0
"""Ops of hlokit.torch whose lengths are tensors on the host, as on other accelerators: against the CPU."""

import pytest

torch = pytest.importorskip("torch")

import hlokit.torch as ht
from torch.nn.utils import rnn

SORTED, UNSORTED = torch.tensor([4, 3, 1]), torch.tensor([3, 4, 1])


def assert_same(actual, expected):
    for ours, theirs in zip(actual, expected):
        torch.testing.assert_close(ours.detach().cpu(), theirs.detach())


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("on_host", ["", "lengths", "targets and lengths"])
def test_ctc_loss_takes_lengths_on_the_host(reduction, zero_infinity, on_host):
    torch.manual_seed(0)
    scores = torch.randn(5, 3, 4).log_softmax(2)
    targets = torch.tensor([[1, 2, 3], [2, 3, 1], [3, 3, 3]])
    input_lengths, target_lengths = torch.tensor([5, 4, 3]), torch.tensor([2, 1, 3])  # the last has no alignment
    loss_of = torch.nn.CTCLoss(reduction=reduction, zero_infinity=zero_infinity)

    def run(device):
        place = lambda value, kind: value if kind in on_host else value.to(device)
        x = scores.clone().to(device).requires_grad_()
        lengths = [place(value, "lengths") for value in (input_lengths, target_lengths)]
        loss = loss_of(x, place(targets, "targets"), *lengths)
        loss.sum().backward()
        return loss, x.grad

    actual, expected = run(ht.device()), run("cpu")
    assert actual[0].device == ht.device()
    for ours, theirs in zip(actual, expected):
        torch.testing.assert_close(ours.detach().cpu(), theirs.detach(), equal_nan=True)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", [SORTED, UNSORTED], ids=["sorted", "unsorted"])
def test_sequences_are_packed_and_padded_on_the_device(lengths, batch_first):
    torch.manual_seed(0)
    values = torch.randn(3, 4, 5) if batch_first else torch.randn(4, 3, 5)

    def run(device):
        x = values.clone().to(device).requires_grad_()
        packed = rnn.pack_padded_sequence(x, lengths, batch_first, enforce_sorted=lengths is SORTED)
        assert packed.batch_sizes.tolist() == [3, 2, 2, 1] and packed.batch_sizes.device.type == "cpu"
        padded, again = rnn.pad_packed_sequence(packed, batch_first, padding_value=7.0, total_length=6)
        assert torch.equal(again, lengths) and packed.data.device == x.device
        (padded * padded).sum().backward()
        return packed.data, padded, x.grad

    before = dict(ht.fallbacks())
    actual = run(ht.device())
    assert dict(ht.fallbacks()) == before  # nothing runs on the host
    assert_same(actual, run("cpu"))


def test_packing_has_the_errors_of_torch():
    x = torch.ones(4, 3, 5, device=ht.device())
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
        rnn.pack_padded_sequence(x, UNSORTED)
    with pytest.raises(RuntimeError, match="[Ll]ength"):
        rnn.pack_padded_sequence(x, torch.tensor([4, 3, 0]))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", [torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU], ids=lambda kind: kind.__name__)
def test_recurrent_modules_take_packed_sequences(kind, bidirectional):
    torch.manual_seed(0)
    values = torch.randn(4, 3, 5)
    state = kind(5, 6, num_layers=2, bidirectional=bidirectional).state_dict()

    def run(device):
        model = kind(5, 6, num_layers=2, bidirectional=bidirectional)
        model.load_state_dict(state)
        model.to(device)
        x = values.clone().to(device).requires_grad_()
        output, hidden = model(rnn.pack_padded_sequence(x, UNSORTED, enforce_sorted=False))
        padded, lengths = rnn.pad_packed_sequence(output)
        assert torch.equal(lengths, UNSORTED)
        padded.sum().backward()
        states = hidden if isinstance(hidden, tuple) else (hidden,)
        return [padded, *states, x.grad, *(p.grad for p in model.parameters())]

    assert_same(run(ht.device()), run("cpu"))
