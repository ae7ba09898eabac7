# SPDX-License-Identifier: Apache-2.0
"""Runs a PyTorch program that knows nothing of hlokit: python -m hlokit.torch [OPTION]... train.py [ARGUMENT]..."""

import sys

from ._runner import main

sys.exit(main(sys.argv[1:]))
