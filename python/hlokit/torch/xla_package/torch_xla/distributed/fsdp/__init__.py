# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.fsdp import (  # noqa: F401
    XlaFullyShardedDataParallel,
    checkpoint_module,
    consolidate_sharded_model_checkpoints,
)
