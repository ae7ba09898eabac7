# SPDX-License-Identifier: Apache-2.0
"""torch.compile's limits are those of the modules' own code, not of what all modules share."""

from typing import Any

import torch

import hlokit.torch  # noqa: F401  wraps the call of modules


def test_modules_of_many_classes_are_compiled_each() -> None:
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    for k in range(torch._dynamo.config.recompile_limit + 2):
        body = {"forward": eval(f"lambda self, x: torch.relu(x) * {k}", {"torch": torch})}
        model = torch.compile(type(f"Model{k}", (torch.nn.Module,), body)(), backend=backend)
        assert model(torch.ones(2)).tolist() == [float(k)] * 2
    assert len(graphs) == torch._dynamo.config.recompile_limit + 2
