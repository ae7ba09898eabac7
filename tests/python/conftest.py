# SPDX-License-Identifier: Apache-2.0
import glob
import os
import signal

import pytest

import hlokit

# A shell starts what runs in its background with ^C ignored, which programs that tests start would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)



def _torch_version():
    try:
        import torch
    except ImportError:
        return None
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


# hlokit.torch needs PyTorch 2.9: `tests/frameworks/run.py 'PyTorch programs'` runs its tests with one of PyPI.
_VERSION = _torch_version()
collect_ignore = []
if _VERSION is None or _VERSION < (2, 9):
    collect_ignore = [os.path.basename(path) for path in glob.glob(os.path.join(os.path.dirname(__file__), "test_torch*.py"))]


def pytest_report_header():
    return f"without {len(collect_ignore)} files of hlokit.torch: PyTorch is {_VERSION}" if collect_ignore else None


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
