# SPDX-License-Identifier: Apache-2.0
from hlokit.torch._wrap_policies import (  # noqa: F401
    always_wrap_policy,
    lambda_auto_wrap_policy,
    recursive_wrap,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
)
