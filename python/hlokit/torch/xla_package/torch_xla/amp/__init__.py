# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.amp import GradScaler, autocast  # noqa: F401

from . import syncfree  # noqa: F401, E402
