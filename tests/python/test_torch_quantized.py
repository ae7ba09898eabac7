# SPDX-License-Identifier: Apache-2.0
"""Programs with integers and 8-bit floats in place of floats, against the CPU."""

import unittest
from typing import Any, Callable

import torch
import torch.ao.quantization
import torch.ao.quantization.fx._decomposed  # noqa: F401  (registers torch.ops.quantized_decomposed)

import hlokit.torch as ht

quantized = torch.ops.quantized_decomposed


class QuantizedTest(unittest.TestCase):
    def check(self, program: Callable[[str], Any], near: float = 0.0) -> None:
        before = dict(ht.fallbacks())
        found, expected = program("tpu").cpu(), program("cpu")
        self.assertEqual(found.dtype, expected.dtype)
        self.assertTrue(torch.allclose(found.double(), expected.double(), near, near), f"{found}, expected {expected}")
        self.assertEqual(dict(ht.fallbacks()), before)

    def test_decomposed(self) -> None:
        torch.manual_seed(0)
        x, w = torch.randn(4, 8), torch.randn(6, 8)
        scales, zeros = torch.rand(6) * 0.1 + 0.01, torch.zeros(6, dtype=torch.int64)
        tensor = (0.05, 3, -128, 127, torch.int8)
        self.check(lambda d: quantized.quantize_per_tensor(x.to(d), *tensor))
        self.check(lambda d: quantized.dequantize_per_tensor(quantized.quantize_per_tensor(x.to(d), *tensor), *tensor), 1e-6)

        def by_channel(d: str) -> Any:
            channel = (scales.to(d), zeros.to(d), 0, -127, 127, torch.int8)
            return quantized.dequantize_per_channel(quantized.quantize_per_channel(w.to(d), *channel), *channel)

        self.check(by_channel, 1e-6)
        self.check(lambda d: torch.stack([t.double() for t in quantized.choose_qparams.tensor(x.to(d), -128, 127, 1e-6, torch.int8)]), 1e-6)

    def test_products(self) -> None:
        torch.manual_seed(0)
        a = torch.randint(-128, 128, (32, 16), dtype=torch.int8)
        b = torch.randint(-128, 128, (16, 24), dtype=torch.int8)
        self.check(lambda d: torch._int_mm(a.to(d), b.to(d)))
        x, scales = torch.randn(4, 16).bfloat16(), torch.rand(32).bfloat16()
        self.check(lambda d: torch._weight_int8pack_mm(x.to(d), a.to(d), scales.to(d)), 2e-2)
        f, g = torch.randn(16, 32).to(torch.float8_e4m3fn), torch.randn(16, 32).to(torch.float8_e4m3fn)
        half, two = torch.tensor(0.5), torch.tensor(2.0)
        self.check(lambda d: torch._scaled_mm(f.to(d), g.to(d).t(), half.to(d), two.to(d), out_dtype=torch.bfloat16), 2e-2)

    def test_training(self) -> None:
        def step(d: str) -> Any:
            torch.manual_seed(0)
            layer = torch.nn.Linear(8, 4)
            x = torch.randn(5, 8)
            layer, fake = layer.to(d), torch.ao.quantization.FakeQuantize().to(d)
            fake(layer(x.to(d))).square().sum().backward()
            return layer.weight.grad

        self.check(step, 1e-4)

    def test_casts(self) -> None:
        # As XLA: the nearest number of the type, and 0 for NaN.
        x = torch.tensor([300.7, -1e10, float("nan"), 1e10, -1.5], device="tpu")
        self.assertEqual(x.to(torch.int32).tolist(), [300, -(2**31), 0, 2**31 - 1, -1])
        self.assertEqual(x.to(torch.uint8).tolist(), [255, 0, 0, 255, 0])

    def test_quantized_types(self) -> None:
        with self.assertRaisesRegex(TypeError, "no elements of type torch.qint8"):
            torch.quantize_per_tensor(torch.ones(2, device="tpu"), 0.1, 0, torch.qint8)


if __name__ == "__main__":
    unittest.main()
