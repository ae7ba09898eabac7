# SPDX-License-Identifier: Apache-2.0
from hlokit.torch._utilities import *  # noqa: F401, F403
