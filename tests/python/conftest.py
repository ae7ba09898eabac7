# SPDX-License-Identifier: Apache-2.0
import signal

import pytest

import hlokit

# A shell starts what runs in its background with ^C ignored, which programs that tests start would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

PROGRAM = """HloModule t

add {
  lhs = f32[] parameter(0)
  rhs = f32[] parameter(1)
  ROOT s = f32[] add(lhs, rhs)
}

ENTRY main {
  x = f32[2,3] parameter(0)
  y = f32[3,4] parameter(1)
  c = f32[] constant(2)
  b = f32[2,3] broadcast(c), dimensions={}
  z = f32[2,3] multiply(x, b), metadata={op_name="net/scale" source_file="net.py" source_line=7}
  d = f32[2,4] dot(z, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="net/dense/dot"}
  zero = f32[] constant(0)
  ROOT r = f32[2] reduce(d, zero), dimensions={1}, to_apply=add
}
"""


@pytest.fixture
def module() -> hlokit.Module:
    return hlokit.parse(PROGRAM, "t.hlo")
