# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
# Fails if a library with code in the report page, a line of the file `packages`, is missing in NOTICE. Passes if there
# is no such file: the page was not built from its sources.
if(NOT EXISTS "${packages}")
  return()
endif()
file(READ "${source}/NOTICE" notice)
file(STRINGS "${packages}" bundled)
foreach(package IN LISTS bundled)
  string(FIND "${notice}" "\n* ${package}, " place)
  if(place EQUAL -1)
    message(FATAL_ERROR "NOTICE does not name ${package}, which is bundled into the report page")
  endif()
endforeach()
