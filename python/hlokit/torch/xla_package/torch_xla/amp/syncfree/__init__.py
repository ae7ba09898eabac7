# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.syncfree import SGD, Adam, AdamW  # noqa: F401
