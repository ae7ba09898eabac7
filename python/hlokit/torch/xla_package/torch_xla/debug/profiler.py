# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.profiler import *  # noqa: F401, F403
