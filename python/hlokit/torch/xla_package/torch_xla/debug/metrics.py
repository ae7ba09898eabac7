# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.metrics import *  # noqa: F401, F403
