# SPDX-License-Identifier: Apache-2.0
"""The folders of the sources, for all checks of them. rooms.py holds that none is missing."""

# Left to right: each may include what stands before it.
ROOMS = ("ir", "parser", "io", "passes", "interp", "runtime", "check", "simulator", "tracer", "pjrt")
PROGRAMS = (*ROOMS, "python", "tools")
ALL = (*PROGRAMS, "tests", "bench", "examples", "cmake")
