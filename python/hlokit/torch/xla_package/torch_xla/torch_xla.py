# SPDX-License-Identifier: Apache-2.0
from hlokit.torch._program import *  # noqa: F401, F403
