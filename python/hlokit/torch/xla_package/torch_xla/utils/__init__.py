# SPDX-License-Identifier: Apache-2.0
from . import checkpoint, serialization, utils  # noqa: F401
