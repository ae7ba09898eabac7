# SPDX-License-Identifier: Apache-2.0
from hlokit.torch._torch_xla_utils import PureModule, assume_pure  # noqa: F401
