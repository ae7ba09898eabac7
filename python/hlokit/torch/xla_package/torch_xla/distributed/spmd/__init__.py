# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.spmd import *  # noqa: F401, F403

from . import xla_sharding  # noqa: F401, E402
