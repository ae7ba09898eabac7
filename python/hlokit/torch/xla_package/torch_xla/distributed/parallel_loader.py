# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.parallel_loader import *  # noqa: F401, F403
