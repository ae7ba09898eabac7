# SPDX-License-Identifier: Apache-2.0
"""The files that programs of this folder are given: as they are named, and all modules below folders."""
import os


def files_of(paths):
    for path in paths:
        if os.path.isfile(path):
            yield path
        for folder, _, names in sorted(os.walk(path)):
            yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".hlo"))
