# SPDX-License-Identifier: Apache-2.0
from hlokit.torch._utilities import PureModule, assume_pure  # noqa: F401
