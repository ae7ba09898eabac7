# SPDX-License-Identifier: Apache-2.0
from hlokit.torch._tpu_environment import *  # noqa: F401, F403
