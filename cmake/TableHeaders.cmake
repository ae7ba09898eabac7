# SPDX-License-Identifier: Apache-2.0
# Writes the headers generated from a table of rows `MACRO(Name, …, "description", …)`:
#   cmake -D table=ir/ops/opcodes.def -D macro=OPCODE -D names=FILE -D columns=FILE -P TableHeaders.cmake
#   names    the first column as enumerators, one per line
#   columns  the table with an empty description, the last string of each row
# An unchanged file is not written, so that a changed description recompiles only its users.
file(READ "${table}" text)
string(REGEX MATCHALL "\n${macro}\\([A-Za-z0-9_]+," rows "${text}")
list(TRANSFORM rows REPLACE "^\n${macro}\\((.*),$" "k\\1,\n")
string(JOIN "" enumerators ${rows})
file(CONFIGURE OUTPUT "${names}" CONTENT "${enumerators}" @ONLY)
string(REGEX REPLACE "\"([^\"\\\n]|\\\\.)*\"([^\"\n]*\\)\n)" "\"\"\\2" blanked "${text}")
file(CONFIGURE OUTPUT "${columns}" CONTENT "${blanked}" @ONLY)
