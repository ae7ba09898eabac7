# SPDX-License-Identifier: Apache-2.0
from . import parallel_loader, spmd, xla_multiprocessing  # noqa: F401
