# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.scan import fori_loop  # noqa: F401
