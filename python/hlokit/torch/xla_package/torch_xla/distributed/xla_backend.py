# SPDX-License-Identifier: Apache-2.0
from hlokit.torch import _process_group
from hlokit.torch._process_group import ProcessGroupXla  # noqa: F401

_process_group.register()
