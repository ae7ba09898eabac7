# SPDX-License-Identifier: Apache-2.0
__version__ = "2.9.0+hlokit"
__xla_gitrev__ = __torch_gitrev__ = "unknown"
