# SPDX-License-Identifier: Apache-2.0
# Writes the first column of a table of rows `MACRO(Name, …)` as enumerators, one a line:
#   cmake -D table=ir/ops/opcodes.def -D macro=OPCODE -D output=FILE -P RowNames.cmake
# The file is left alone where it would be the same, so that a change of another column compiles only what reads that.
file(READ "${table}" text)
string(REGEX MATCHALL "\n${macro}\\([A-Za-z0-9_]+," rows "${text}")
list(TRANSFORM rows REPLACE "^\n${macro}\\((.*),$" "k\\1,\n")
string(JOIN "" names ${rows})
file(CONFIGURE OUTPUT "${output}" CONTENT "${names}" @ONLY)
