# SPDX-License-Identifier: Apache-2.0
from hlokit.torch._compile import extract_compiled_graph  # noqa: F401
