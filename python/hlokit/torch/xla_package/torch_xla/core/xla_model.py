# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.xla_model import *  # noqa: F401, F403
from hlokit.torch.xla_model import _fetch_gradients, _maybe_convert_to_cpu  # noqa: F401
