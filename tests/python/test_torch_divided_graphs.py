# SPDX-License-Identifier: Apache-2.0
"""Graphs of tpu that are new only by their small integers: what those make new is interpreted, the rest compiled once."""

import json

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import hlokit.torch as ht  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    ht.configure(devices=1)


def interpreted():
    return json.loads(ht._session.current().metrics_json())["counters"].get("InterpretedGraph", 0)


def generate(model, cache, ids, device, count):
    """Tokens with a cache of a static size: the ids, the mask and the position grow."""
    tokens = []
    ids, cache = ids.to(device), cache.to(device)
    mask = torch.ones_like(ids)
    for _ in range(count):
        position = mask.sum() - 1
        places = torch.arange(cache.shape[0], device=device)
        padded = torch.nn.functional.pad(mask, (0, cache.shape[0] - mask.shape[0])).bool() & (places <= position)
        x = model[0](ids[-1:])
        cache = torch.where((places == position)[:, None], x, cache)
        weights = (cache @ x[0]).masked_fill(~padded, -torch.inf).softmax(0)
        token = model[1](weights @ cache).argmax()
        ids, mask = torch.cat([ids, token[None]]), torch.cat([mask, mask.new_ones(1)])
        if (ids == 99).any().item():
            break
        tokens.append(token)
    return [int(token) for token in tokens], ids.tolist()


def test_generation_compiles_few_programs():
    torch.manual_seed(0)
    model = torch.nn.ModuleList([torch.nn.Embedding(20, 8), torch.nn.Linear(8, 20)])
    cache, ids = torch.zeros(16, 8), torch.tensor([3, 1, 4])
    with torch.no_grad():
        expected = generate(model, cache, ids, "cpu", 9)
        model.to("tpu")
        with ht.trace() as trace:
            found = generate(model, cache, ids, "tpu", 9)
    assert found == expected
    assert sum(graph.compiled for graph in trace.graphs) <= 3 and interpreted() >= 7
    assert len({graph.hash for graph in trace.graphs}) <= 3


def test_small_integers_alone_are_interpreted():
    with ht.trace() as trace:
        x = torch.arange(5, device="tpu")
        for _ in range(3):
            x = torch.cat([x, x.flip(0)[:1] * 3 + 1])
            assert bool((x == 2).any())
    assert x.tolist() == [0, 1, 2, 3, 4, 13, 40, 121]
    assert not trace.graphs and interpreted() >= 3


def test_a_program_of_fixed_sizes_is_compiled_once():
    layer = torch.nn.Linear(4, 4).to("tpu")
    x, ids = torch.ones(3, 4).to("tpu"), torch.tensor([2, 0, 1]).to("tpu")
    with ht.trace() as trace, torch.no_grad():
        for _ in range(4):
            y = layer(x)[ids + 0].argmax(1)
            y = (y * 2 + ids).tolist()
    assert [graph.compiled for graph in trace.graphs] == [True, False, False, False] and interpreted() == 0


def test_values_that_are_written_in_place():
    counts = []
    for device in ("cpu", "tpu"):
        weights, count = torch.linspace(0, 1, 6).to(device), torch.zeros(6, dtype=torch.int64).to(device)
        seen = torch.zeros(1, dtype=torch.int64).to(device)
        for step in range(5):
            weights *= 0.5
            best = (weights * (6 - count)).argmax()
            count[best] += 1
            seen = torch.cat([seen, count.max()[None], best[None]])
            assert seen.sum().item() >= 0
        counts.append((count.tolist(), seen.tolist(), [round(w, 6) for w in weights.tolist()]))
    assert counts[0] == counts[1]


def test_graphs_of_xla_are_compiled_as_they_are():
    with ht.trace() as trace:
        x = torch.arange(5, device="xla")
        for _ in range(3):
            x = torch.cat([x, x[:1]])
            assert x.sum().item() == 10
    assert sum(graph.compiled for graph in trace.graphs) == 3 and interpreted() == 0
