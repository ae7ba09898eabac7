# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.scan import scan  # noqa: F401
