# SPDX-License-Identifier: Apache-2.0
from hlokit.torch._eager import eager_mode, eager_mode_context, is_eager_mode  # noqa: F401
