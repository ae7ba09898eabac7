# SPDX-License-Identifier: Apache-2.0
"""Views of tensors of the device, and what writes to them do to their bases, against the CPU."""

import os
import time
import unittest
from typing import Any, Callable

import torch

import hlokit
import hlokit.torch as ht
from torch_view_programs import run

DEVICES = ("tpu", "xla")


class ViewTest(unittest.TestCase):
    def check(self, program: Callable[[str], Any], devices: Any = DEVICES) -> None:
        expected = program("cpu")
        for device in devices:
            for ours, theirs in zip(program(device), expected):
                value = ours.detach().cpu().resolve_conj().resolve_neg()
                self.assertTrue(torch.equal(value, theirs.resolve_conj().resolve_neg()), f"{device}: {value}, expected {theirs}")

    def test_random_programs(self) -> None:
        for seed in range(60):
            self.assertEqual(run(seed, "tpu"), "", f"seed {seed}")

    def test_windows(self) -> None:
        def program(device: str) -> Any:
            x = torch.arange(6.0).to(device)
            windows = x.unfold(0, 2, 1)
            windows[1] = 10
            windows[3].add_(1)
            apart = torch.arange(8.0).to(device)
            apart.unfold(0, 2, 3)[1] = -1
            rows = torch.arange(3.0).to(device).reshape(3, 1)
            rows.expand(3, 4)[1] = 7
            strided = torch.arange(6.0).to(device)
            strided.as_strided((3, 3), (1, 1))[1, 1] = 9
            return x, windows, apart, rows, strided

        self.check(program)

    def test_other_types(self) -> None:
        def program(device: str) -> Any:
            x = torch.tensor([1.0, -2.0, 3.0, 4.0]).to(device)
            x.view(torch.int32)[1] &= 0x7FFFFFFF
            x.view(torch.uint8)[3] = 0x40
            x.view(torch.float64)[1:] = 1.5
            c = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64).to(device)
            c.view(torch.float32)[1] = 7
            torch.view_as_real(c)[1, 0] = 5
            f = torch.arange(4.0).to(device)
            torch.view_as_complex(f.view(2, 2))[1] = 1 + 1j
            b = torch.tensor([True, False, True]).to(device)
            b.view(torch.uint8)[1] = 1
            return x, c, f, b

        self.check(program)

    def test_conjugates_and_negatives(self) -> None:
        def program(device: str) -> Any:
            x = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64).to(device)
            y = x.conj()
            self.assertTrue(y.is_conj())
            self.assertFalse(y.resolve_conj().is_conj())
            y[0] = 5 + 6j
            y.mul_(2)
            z = x.conj().imag
            self.assertTrue(z.is_neg())
            z[1] = 9
            m = torch.tensor([[1 + 1j, 2], [3, 4 - 1j]], dtype=torch.complex64).to(device)
            product = m.mH @ m
            m.mH[0] = 1 - 1j
            m.conj().t_()
            return x, y, z, product, m, torch.add(x, 1, out=torch.empty_like(x).conj())

        self.check(program)

    def test_storages(self) -> None:
        def program(device: str) -> Any:
            x = torch.arange(6.0).to(device)
            part = x[1:3]
            part.resize_(4)
            part.mul_(10)
            y = torch.arange(4.0).to(device)
            view = y[2:]
            y.resize_(2, 3)
            y[0, 2] = 50
            y[1, 1:] = 0
            other = torch.zeros(1).to(device)
            other.set_(x)
            other[5] = 60
            square = torch.arange(9.0).to(device).reshape(3, 3)
            row = square[0]
            square.t_()
            square[2, 0] = 70
            out = torch.arange(3.0).to(device)
            torch.add(torch.ones(2).to(device), 1, out=out[:0].resize_(2))
            return x, part, y, view, other, square, row, out

        self.check(program, ("tpu",))

    def test_long_chains(self) -> None:
        def seconds(count: int) -> float:
            start = time.process_time()
            x = base = torch.ones(4, 4, device="tpu")  # seen by all views
            for number in range(1, count + 1):
                x = x.view(2, 8) if number % 2 else x.view(4, 4)
                x = x.t().t()
                if number % 50 == 0:
                    x += 1
            self.assertEqual(base.sum().item(), 16 + 16 * (count // 50))
            return time.process_time() - start

        seconds(100)
        short, long = seconds(500), seconds(2500)
        self.assertLess(long, 15 * max(short, 0.05))

    def test_items(self) -> None:
        x = torch.zeros(8, device="tpu")
        for number in range(400):
            x[number % 8] += 1
        self.assertEqual(x.tolist(), [50.0] * 8)


class MemoryTest(unittest.TestCase):
    def test_accelerator(self) -> None:
        accelerator = torch.accelerator
        before = accelerator.memory_allocated()
        accelerator.reset_peak_memory_stats()
        accelerator.reset_accumulated_memory_stats()
        x = torch.ones(1 << 18, device="tpu")  # 1 MiB
        views = [x.view(512, 512).t()[i] for i in range(4)]
        self.assertEqual(accelerator.memory_allocated() - before, 1 << 20)
        y = x + 1
        self.assertEqual(accelerator.memory_allocated() - before, 2 << 20)
        del y
        self.assertEqual(accelerator.memory_allocated() - before, 1 << 20)
        self.assertEqual(accelerator.max_memory_allocated() - before, 2 << 20)
        self.assertEqual(accelerator.memory_reserved(), accelerator.memory_allocated())
        stats = accelerator.memory_stats()
        self.assertEqual(stats["allocated_bytes.all.allocated"], 2 << 20)
        self.assertEqual(stats["allocated_bytes.all.current"], accelerator.memory_allocated())
        x.untyped_storage().resize_(0)
        self.assertEqual(accelerator.memory_allocated(), before)
        accelerator.empty_cache()
        del x, views
        self.assertEqual(accelerator.memory_allocated(), before)
        self.assertEqual(torch.tpu.memory_allocated(), before)  # type: ignore[attr-defined]
        if hasattr(accelerator, "get_memory_info"):
            free, total = accelerator.get_memory_info()
            self.assertEqual(total - free, before)


class LimitTest(unittest.TestCase):
    def test_expansion(self) -> None:
        with self.assertRaisesRegex(hlokit.RunError, r"f32\[1000000,1000000\] has 4000000000000 bytes; the limit"):
            torch.ones(1, device="tpu").expand(10**6, 10**6).sum().item()

    def test_unknown_sizes(self) -> None:
        with ht.trace(fake=True):
            x = torch.ones(4, device="tpu")
            for call in (torch.nonzero, torch.unique, lambda t: t[t > 0], lambda t: torch.masked_select(t, t > 0)):
                with self.assertRaisesRegex(RuntimeError, "it reads values, which say the size"):
                    call(x)
            x[x > 0] = 2  # its size is known

    def test_programs_in_memory(self) -> None:
        os.environ["XLA_COMPILATION_CACHE_SIZE"] = "3"
        try:
            ht.configure()

            def compiled(sizes: Any) -> int:
                before = ht.metrics.counter_value("UncachedCompile") or 0
                for size in sizes:
                    torch.ones(size, device="xla").cumsum(0).cpu()
                return int(ht.metrics.counter_value("UncachedCompile") or 0) - before

            compiled((1, 2))
            each = compiled((3,))
            self.assertGreater(each, 0)
            self.assertEqual(compiled((3, 3)), 0)
            compiled((4, 5, 6, 7))
            self.assertEqual(compiled((3,)), each)  # it was dropped
        finally:
            del os.environ["XLA_COMPILATION_CACHE_SIZE"]
            ht.configure()


class IndexTest(unittest.TestCase):
    def test_debug_mode(self) -> None:
        x = torch.arange(6.0, device="tpu").reshape(2, 3)
        far = torch.tensor([0, 5], device="tpu")
        calls = {
            "index": lambda: x[far],
            "index_select": lambda: torch.index_select(x, 1, far),
            "gather": lambda: torch.gather(x, 1, far.reshape(2, 1)),
            "embedding": lambda: torch.nn.functional.embedding(far, x),
            "take": lambda: torch.take(x, far * 2),
            "nll_loss": lambda: torch.nn.functional.nll_loss(x, far),
            "index_put": lambda: x.index_put((far,), torch.ones(3, device="tpu")),
        }
        before = ht.eager_mode("debug")
        try:
            for name, call in calls.items():
                with self.assertRaisesRegex(IndexError, "out of bounds for dimension [01] with size", msg=name):
                    call()
            self.assertEqual(x[torch.tensor([-1], device="tpu")].tolist(), [[3.0, 4.0, 5.0]])
        finally:
            ht.eager_mode(before)


if __name__ == "__main__":
    unittest.main()
