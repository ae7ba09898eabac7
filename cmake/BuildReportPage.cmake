# SPDX-License-Identifier: Apache-2.0
# Bundles tools/web/report into a C++ source at build time:
#   cmake -D folder=tools/web/report -D work=BUILD/report-page -D output=FILE.cc [-D node=PROGRAM -D npm=PROGRAM]
#     -P BuildReportPage.cmake
# A source package contains the bundle, in tools/web/report/bundle, which is used if it was built from the same sources.
# Otherwise node and npm build it. If they are missing, or the libraries cannot be fetched, the generated source has no
# page: the build succeeds, and hlo-run --report reports why it cannot write one.
function(no_page why)
  message(WARNING "hlo-run --report will not work: ${why}. To try again, remove ${output}.")
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT [[
#include "tools/cli/report_page.h"

namespace hlokit::cli {

const char* const kReportPageBefore = nullptr;
const char* const kReportPageAfter = nullptr;

}  // namespace hlokit::cli
]])
endfunction()

# The first line of a bundle names the sources that it is made of.
file(GLOB_RECURSE sources LIST_DIRECTORIES false RELATIVE "${folder}" "${folder}/src/*")
list(SORT sources)
set(sums "")
foreach(source IN ITEMS package.json package-lock.json build.mjs ../../../NOTICE LISTS sources)
  file(SHA256 "${folder}/${source}" sum)
  string(APPEND sums "${source} ${sum}\n")
endforeach()
string(SHA256 sum "${sums}")
set(head "// Sources: ${sum}")

set(bundle "${folder}/bundle/report_page_text.cc")
if(EXISTS "${bundle}")
  file(STRINGS "${bundle}" bundle_head LIMIT_COUNT 1)
  if(bundle_head STREQUAL head)
    file(COPY_FILE "${bundle}" "${output}")
    file(TOUCH "${output}")
    return()
  endif()
endif()

if(NOT node OR NOT npm)
  no_page("node and npm are not installed (tools/install-deps page does it)")
  return()
endif()

file(MAKE_DIRECTORY "${work}")
file(COPY "${folder}/package.json" "${folder}/package-lock.json" "${folder}/build.mjs" "${folder}/../../../NOTICE" DESTINATION "${work}")
file(REMOVE_RECURSE "${work}/src")
file(COPY "${folder}/src" DESTINATION "${work}")

# Libraries are fetched again only when the lock file changes.
file(SHA256 "${folder}/package-lock.json" wanted)
set(installed "")
if(EXISTS "${work}/installed")
  file(READ "${work}/installed" installed)
endif()
if(NOT installed STREQUAL wanted)
  execute_process(COMMAND "${npm}" ci --no-audit --no-fund --prefer-offline WORKING_DIRECTORY "${work}"
    RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log TIMEOUT 240)
  if(NOT status EQUAL 0)
    no_page("npm ci failed: ${log}")
    return()
  endif()
  file(WRITE "${work}/installed" "${wanted}")
endif()
execute_process(COMMAND "${node}" build.mjs "--cc=${output}" "--packages=${work}/packages.txt" WORKING_DIRECTORY "${work}"
  RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the report page does not build:\n${log}")
endif()
file(READ "${output}" text)
file(WRITE "${output}" "${head}\n${text}")
