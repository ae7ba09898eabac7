# SPDX-License-Identifier: Apache-2.0
"""Types of elements that calls with several of them have, and those that PyTorch does not take, against the CPU."""

import itertools
import unittest
from typing import Any, Callable, Dict, List, Tuple

import torch
import torch.nn.functional as F

import hlokit.torch

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.complex64)


def two(f: Callable[..., Any]) -> Tuple[Callable[..., Any], List[Tuple[int, ...]]]:
    return f, [(2, 3), (2, 3)]


CALLS: Dict[str, Tuple[Callable[..., Any], List[Tuple[int, ...]]]] = {
    **{name: two(getattr(F, name)) for name in ("huber_loss", "soft_margin_loss", "binary_cross_entropy", "mse_loss", "smooth_l1_loss",
                                                "l1_loss", "hinge_embedding_loss")},
    "mm": (torch.mm, [(2, 3), (3, 2)]),
    "addmm": (lambda a, b: torch.addmm(a, b, b.t()), [(2, 2), (2, 3)]),
    "bmm": (torch.bmm, [(2, 2, 3), (2, 3, 2)]),
    "mv": (torch.mv, [(2, 3), (3,)]),
    "dot": (torch.dot, [(3,), (3,)]),
    "linear": (F.linear, [(2, 3), (4, 3)]),
    "cross": two(torch.linalg.cross),
    "lerp": two(lambda a, b: torch.lerp(a, b, 0.5)),
    "sub": two(torch.sub),
    "index_add": two(lambda a, b: torch.index_add(a, 0, torch.tensor([1, 0], device=a.device), b)),
    "index_copy": two(lambda a, b: torch.index_copy(a, 0, torch.tensor([1, 0], device=a.device), b)),
    "polar": two(torch.polar),
    "layer_norm": (lambda a, b: F.layer_norm(a, (3,), b, b), [(2, 3), (3,)]),
    "where": two(lambda a, b: torch.where(a != 0, a, b)),
    "copy_": two(lambda a, b: a.clone().copy_(b)),
    "add_": two(lambda a, b: a.clone().add_(b)),
}


def values(dtype: torch.dtype, shape: Tuple[int, ...], first: float) -> torch.Tensor:
    count = torch.Size(shape).numel()
    line = torch.linspace(first, 0.9, count).reshape(shape)
    if dtype == torch.bool:
        return line > 0.5
    return (line * 4 if dtype == torch.int64 else line).to(dtype)


class TypesTest(unittest.TestCase):
    def outcome(self, call: Callable[..., Any], *arguments: torch.Tensor) -> Any:
        try:
            return call(*arguments).cpu()
        except (RuntimeError, NotImplementedError):
            return None

    def test_two_types(self) -> None:
        for name, (call, shapes) in CALLS.items():
            for first, second in itertools.product(DTYPES, DTYPES):
                if torch.bool in (first, second) and first == second and name in ("mv", "dot"):
                    continue  # a product of booleans, which the device has
                if name not in ("sub", "add_", "copy_") and first == second and not first.is_floating_point:
                    continue
                a, b = values(first, shapes[0], 0.1), values(second, shapes[1], 0.2)
                expected = self.outcome(call, a, b)
                found = self.outcome(call, a.to("tpu"), b.to("tpu"))
                with self.subTest(name, first=first, second=second):
                    self.assertEqual(found is None, expected is None)
                    if found is not None:
                        self.assertEqual(found.dtype, expected.dtype)
                        near = 2e-2 if torch.bfloat16 in (first, second) else 1e-4
                        self.assertTrue(torch.allclose(found, expected, near, near), f"{found}, expected {expected}")

    def test_complex_weights(self) -> None:
        a, b = torch.tensor([1 + 2j, 3 - 1j]), torch.tensor([2 - 2j, 1j])
        weight = torch.tensor([0.25 + 0.1j, 2 - 1j])
        before = dict(hlokit.torch.fallbacks())
        found = torch.lerp(a.to("tpu"), b.to("tpu"), weight.to("tpu")).cpu()
        self.assertTrue(torch.allclose(found, torch.lerp(a, b, weight)))
        self.assertEqual(dict(hlokit.torch.fallbacks()), before)

    def test_least_squares(self) -> None:
        a, b = torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 1.0]]), torch.tensor([[1.0], [2.0], [0.5]])
        for driver in (None, "gels", "gelsy", "gelsd", "gelss"):
            found = torch.linalg.lstsq(a.to("tpu"), b.to("tpu"), driver=driver)
            for ours, theirs in zip(found, torch.linalg.lstsq(a, b, driver=driver)):
                self.assertEqual(ours.shape, theirs.shape, driver)
                self.assertTrue(torch.allclose(ours.cpu().double(), theirs.double(), 1e-4, 1e-4), driver)

    def test_gradients_of_two_types(self) -> None:
        for loss in (F.huber_loss, F.soft_margin_loss):
            def gradient(device: str) -> Any:
                x = torch.tensor([0.5, -1.5, 3.0]).to(device).requires_grad_()
                loss(x, torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64).to(device)).backward()
                return x.grad

            found, expected = self.outcome(lambda: gradient("tpu")), self.outcome(lambda: gradient("cpu"))
            self.assertEqual(found is None, expected is None, loss.__name__)
            if found is not None:
                self.assertTrue(torch.allclose(found, expected), f"{loss.__name__}: {found}, expected {expected}")

    def test_collectives_of_conjugates(self) -> None:
        import torch.distributed as dist

        import hlokit.torch.xla_model as xm

        found: Dict[Tuple[str, str], Any] = {}

        def rank(index: int) -> None:
            dist.init_process_group("hlokit")
            for device in ("xla", "tpu"):
                def given() -> torch.Tensor:
                    return (torch.tensor([1 + 2j, 3 - 4j]) * (index + 1)).to(device).conj().imag  # [-2, 4], [-4, 8]

                def put(name: str, value: torch.Tensor) -> None:
                    value = value.cpu()
                    if index == 0:
                        found[device, name] = value.tolist()

                y = given()
                dist.all_reduce(y)
                put("all_reduce", y)
                rows = [torch.empty(2, device=device) for _ in range(2)]
                dist.all_gather(rows, given())
                put("all_gather", torch.cat(rows))
                for name, call, size in (
                    ("all_gather_into_tensor", dist.all_gather_into_tensor, 4),
                    ("reduce_scatter_tensor", dist.reduce_scatter_tensor, 1),
                    ("all_to_all_single", dist.all_to_all_single, 2),
                ):
                    output = torch.empty(size, device=device)
                    call(output, given())
                    put(name, output)
                y = given()
                dist.broadcast(y, 1)
                put("broadcast", y)
                put("xm.all_reduce", xm.all_reduce("sum", given()))
                y = given()
                xm.all_reduce("sum", [y])
                put("xm.all_reduce of a list", y)
                put("xm.all_gather", xm.all_gather(given()))
                put("xm.reduce_scatter", xm.reduce_scatter("sum", given(), 1.0, 0, 2))
                put("xm.all_to_all", xm.all_to_all(given(), 0, 0, 2))
                put("xm.collective_permute", xm.collective_permute(given(), [(0, 1), (1, 0)]))
                y = given()
                xm.collective_broadcast([y], 1)
                put("xm.collective_broadcast", y)
                y = given()
                xm.optimization_barrier_([y])
                put("xm.optimization_barrier_", y)
            dist.destroy_process_group()

        hlokit.torch.spawn(rank, nprocs=2)
        hlokit.torch.configure(devices=1)
        total, both = [-6.0, 12.0], [-2.0, 4.0, -4.0, 8.0]
        expected = {
            "all_reduce": total,
            "all_gather": both,
            "all_gather_into_tensor": both,
            "reduce_scatter_tensor": total[:1],
            "all_to_all_single": [-2.0, -4.0],
            "broadcast": both[2:],
            "xm.all_reduce": total,
            "xm.all_reduce of a list": total,
            "xm.all_gather": both,
            "xm.reduce_scatter": total[:1],
            "xm.all_to_all": [-2.0, -4.0],
            "xm.collective_permute": both[2:],
            "xm.collective_broadcast": both[2:],
            "xm.optimization_barrier_": both[:2],
        }
        for device in ("xla", "tpu"):
            self.assertEqual({name: value for (place, name), value in found.items() if place == device}, expected, device)

    def test_conjugates_on_the_host(self) -> None:
        import hlokit.torch.xla_model as xm

        z = torch.tensor([1 + 2j, 3 - 4j])
        for device in ("xla", "tpu"):
            y = z.to(device).conj()
            for value, expected in ((y, z.conj()), (y.imag, z.conj().imag)):
                self.assertTrue(torch.equal(value.cpu(), expected))
                self.assertTrue(torch.equal(xm._to_cpu([value])[0], expected))
                self.assertEqual(value[0].item(), expected[0].item())


if __name__ == "__main__":
    unittest.main()
