# SPDX-License-Identifier: Apache-2.0
"""The input files of the programs in this directory: the named ones, and all modules below named directories."""
import os


def files_of(paths):
    for path in paths:
        if os.path.isfile(path):
            yield path
        for folder, _, names in sorted(os.walk(path)):
            yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".hlo"))
