# SPDX-License-Identifier: Apache-2.0
"""Functions of custom calls in Python, and sizes that programs leave open."""

from typing import Any, Tuple

import numpy as np
import pytest

import hlokit

CALL = """
HloModule call
ENTRY main {
  x = f32[2,3] parameter(0)
  y = s32[3] parameter(1)
  c = (f32[2,3], f32[]) custom-call(x, y), custom_call_target="scaled_rows", backend_config="3"
  a = f32[2,3] get-tuple-element(c), index=0
  b = f32[] get-tuple-element(c), index=1
  ROOT r = (f32[2,3], f32[]) tuple(a, b)
}
"""

OPEN = """
func.func @main(%x: tensor<?x2xf32>) -> tensor<?xf32> {
  %two = stablehlo.constant dense<2> : tensor<i32>
  %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
  %n = stablehlo.multiply %b, %two : tensor<i32>
  %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %r = stablehlo.dynamic_reshape %x, %s : (tensor<?x2xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


@pytest.fixture(autouse=True)
def forget() -> Any:
    yield
    hlokit.register_custom_call("scaled_rows", None)
    hlokit.stub_custom_calls(False)


def scaled_rows(x: Any, y: Any, backend_config: str) -> Tuple[Any, Any]:
    assert not x.flags.writeable or x.dtype == np.float32
    return x * y * float(backend_config), x.sum()


@pytest.mark.parametrize("engine", ["exact", "reference", "fast"])
def test_function(engine: str) -> None:
    hlokit.register_custom_call("scaled_rows", scaled_rows)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    rows, total = hlokit.parse(CALL).run_on(x, [1, 2, 3], engine=engine)
    assert np.array_equal(rows, x * [1, 2, 3] * 3)
    assert total == 15


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x, y, backend_config: x, "returned 1 arrays, not 2"),
        (lambda x, y, backend_config: (x.T, x.sum()), "another shape"),
        (lambda x, y, backend_config: 1 // 0, "ZeroDivisionError"),
    ],
)
def test_wrong_function(function: Any, message: str) -> None:
    hlokit.register_custom_call("scaled_rows", function)
    with pytest.raises(hlokit.RunError, match=message):
        hlokit.parse(CALL).run_on(np.zeros((2, 3), np.float32), [1, 2, 3])


def test_stub() -> None:
    arguments = np.ones((2, 3), np.float32), [1, 2, 3]
    with pytest.raises(hlokit.RunError, match="no function for custom-call target"):
        hlokit.parse(CALL).run_on(*arguments)
    hlokit.stub_custom_calls()
    first = hlokit.parse(CALL).run_on(*arguments)
    second = hlokit.parse(CALL).run_on(*arguments)
    assert np.array_equal(first[0], second[0])
    assert np.all(np.abs(first[0]) <= 2)


@pytest.mark.parametrize("shape", [{"arg0_0": 3}, {"arg0": (3, 2)}])
def test_open_sizes(shape: Any) -> None:
    m = hlokit.parse(OPEN, shape=shape)
    assert m.entry.root.shape.dims == (6,)
    assert m.run_on(np.arange(6, dtype=np.float32).reshape(3, 2)).tolist() == [0, 1, 2, 3, 4, 5]


def test_wrong_sizes() -> None:
    with pytest.raises(hlokit.ParseError, match="there is no size or argument `b`"):
        hlokit.parse(OPEN, shape={"b": 3})
    with pytest.raises(TypeError, match="dictionary"):
        hlokit.parse(OPEN, shape=3)  # type: ignore[arg-type]
