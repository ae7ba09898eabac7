# SPDX-License-Identifier: Apache-2.0
"""hlokit's package under the name of PyTorch/XLA: modules of torch_xla 2.9, which hlokit.torch implements."""

import hlokit.torch  # noqa: F401: registers the device
from hlokit.torch import _xlac as _XLAC  # noqa: F401
from hlokit.torch._program import (  # noqa: F401
    compile,
    device,
    device_count,
    devices,
    launch,
    manual_seed,
    real_devices,
    step,
    sync,
)


from .version import __version__  # noqa: F401
from . import amp, core, debug, distributed, experimental, runtime, utils  # noqa: F401, E402

from .stablehlo import save_as_stablehlo, save_torch_model_as_stablehlo  # noqa: F401, E402
