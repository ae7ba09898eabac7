# SPDX-License-Identifier: Apache-2.0
from hlokit.torch._process_group import LazyProcessGroup as ProcessGroupXla  # noqa: F401
