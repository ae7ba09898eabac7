# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.xla_multiprocessing import *  # noqa: F401, F403
