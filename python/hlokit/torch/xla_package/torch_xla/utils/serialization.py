# SPDX-License-Identifier: Apache-2.0
from hlokit.torch.serialization import TensorReference, load, save  # noqa: F401
