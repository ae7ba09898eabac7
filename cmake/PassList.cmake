# SPDX-License-Identifier: Apache-2.0
# Writes the list of passes, a line PASS(Name) for each HLOKIT_PASS(Name) at the beginning of a line, in the order of the
# files' paths and of their lines:
#   cmake -D folder=passes -D list=FILE -P PassList.cmake
# An unchanged file is not written.
file(GLOB_RECURSE sources "${folder}/*.cc")
list(SORT sources)
set(text "")
foreach(source IN LISTS sources)
  file(STRINGS "${source}" rows REGEX "^ *HLOKIT_PASS *\\(")
  foreach(row IN LISTS rows)
    if(NOT row MATCHES "^HLOKIT_PASS\\([A-Za-z0-9]+\\) {")
      message(FATAL_ERROR "${source}: expected `HLOKIT_PASS(Name) {` at the beginning of a line, found `${row}`")
    endif()
    string(REGEX REPLACE "^HLOKIT_PASS\\(([A-Za-z0-9]+)\\).*" "PASS(\\1)\n" row "${row}")
    string(APPEND text "${row}")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT "${list}" CONTENT "${text}" @ONLY)
