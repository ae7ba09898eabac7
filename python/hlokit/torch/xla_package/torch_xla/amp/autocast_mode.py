# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.amp import autocast  # noqa: F401
