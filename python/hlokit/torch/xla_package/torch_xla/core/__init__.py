# SPDX-License-Identifier: Apache-2.0
from . import functions, xla_env_vars, xla_model  # noqa: F401
