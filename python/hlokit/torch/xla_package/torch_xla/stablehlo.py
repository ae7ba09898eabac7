# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.stablehlo import *  # noqa: F401, F403
