# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.fsdp import SpmdFullyShardedDataParallel  # noqa: F401
