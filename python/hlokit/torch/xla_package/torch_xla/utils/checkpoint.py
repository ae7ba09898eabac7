# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.checkpoint import checkpoint  # noqa: F401
