# SPDX-License-Identifier: Apache-2.0
from hlokit.torch._torch_xla_utils import *  # noqa: F401, F403
