# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.scan import scan_layers  # noqa: F401
