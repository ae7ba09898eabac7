# SPDX-License-Identifier: Apache-2.0
# Bundles the pages of tools/web into C++ sources at build time:
#   cmake -D folder=tools/web -D work=BUILD/web-pages -D output=FOLDER [-D node=PROGRAM -D npm=PROGRAM]
#     -P BuildWebPages.cmake
# writes FOLDER/report_page_text.cc, view_page_text.cc and layout_worker_text.cc, and the documents of the pages with
# @DATA@ where the data goes, FOLDER/report.html and view.html, which are empty if there are none. A source package
# contains the bundles, in tools/web/bundle, which are used if they were built from the same sources. Otherwise node and
# npm build them. If they are missing, or the libraries cannot be fetched, the generated sources have no page: the build
# succeeds, and hlo-run --report and hlo-view report why they cannot write one.
set(pages report view)
set(texts report_page view_page layout_worker)
# Without pages.
set(none_report_page "const WebPage kReportPage = {nullptr, nullptr}")
set(none_view_page "const WebPage kViewPage = {nullptr, nullptr}")
set(none_layout_worker "const char* const kLayoutWorker = nullptr")

# Writes the documents: the text of the literals in the sources, whose halves a comma separates.
function(write_documents)
  set(begin "R\"hlokitpage(")
  set(end ")hlokitpage\"")
  foreach(page IN LISTS pages)
    file(READ "${output}/${page}_page_text.cc" text)
    string(FIND "${text}" "${begin}" from)
    string(FIND "${text}" "${end}" to REVERSE)
    if(from EQUAL -1)
      file(WRITE "${output}/${page}.html" "")
      continue()
    endif()
    string(LENGTH "${begin}" length)
    math(EXPR from "${from} + ${length}")
    math(EXPR length "${to} - ${from}")
    string(SUBSTRING "${text}" ${from} ${length} text)
    string(REPLACE "${end},\n${begin}" "@DATA@" text "${text}")
    string(REPLACE "${end}\n${begin}" "" text "${text}")
    file(WRITE "${output}/${page}.html" "${text}")
  endforeach()
endfunction()

function(no_pages why)
  message(WARNING "hlo-run --report and hlo-view will not write pages: ${why}. To try again, remove "
    "${output}/report_page_text.cc.")
  foreach(text IN LISTS texts)
    set(definition "${none_${text}}")
    file(CONFIGURE OUTPUT "${output}/${text}_text.cc" @ONLY CONTENT [[
#include "tools/cli/pages/web_page.h"

namespace hlokit::cli {

@definition@;

}  // namespace hlokit::cli
]])
  endforeach()
  write_documents()
endfunction()

# The first line of a bundle names the sources that it is made of.
file(GLOB_RECURSE sources LIST_DIRECTORIES false RELATIVE "${folder}" "${folder}/common/*" "${folder}/*/src/*")
list(SORT sources)
set(sums "")
foreach(source IN ITEMS package.json package-lock.json build.mjs ../../NOTICE LISTS sources)
  file(SHA256 "${folder}/${source}" sum)
  string(APPEND sums "${source} ${sum}\n")
endforeach()
string(SHA256 sum "${sums}")
set(head "// Sources: ${sum}")

set(bundled TRUE)
foreach(text IN LISTS texts)
  set(bundle_head "")
  if(EXISTS "${folder}/bundle/${text}_text.cc")
    file(STRINGS "${folder}/bundle/${text}_text.cc" bundle_head LIMIT_COUNT 1)
  endif()
  if(NOT bundle_head STREQUAL head)
    set(bundled FALSE)
  endif()
endforeach()
if(bundled)
  foreach(text IN LISTS texts)
    file(COPY_FILE "${folder}/bundle/${text}_text.cc" "${output}/${text}_text.cc")
    file(TOUCH "${output}/${text}_text.cc")
  endforeach()
  write_documents()
  return()
endif()

if(NOT node OR NOT npm)
  no_pages("node and npm are not installed (tools/install-deps page does it)")
  return()
endif()

file(MAKE_DIRECTORY "${work}")
file(COPY "${folder}/package.json" "${folder}/package-lock.json" "${folder}/build.mjs" "${folder}/../../NOTICE" DESTINATION "${work}")
foreach(part IN ITEMS common LISTS pages)
  file(REMOVE_RECURSE "${work}/${part}")
  file(COPY "${folder}/${part}" DESTINATION "${work}")
endforeach()

# Libraries are fetched again only when the lock file changes.
file(SHA256 "${folder}/package-lock.json" wanted)
set(installed "")
if(EXISTS "${work}/installed")
  file(READ "${work}/installed" installed)
endif()
if(NOT installed STREQUAL wanted)
  # No code of packages runs here: none of them has a script that it needs.
  execute_process(COMMAND "${npm}" ci --ignore-scripts --no-audit --no-fund --prefer-offline WORKING_DIRECTORY "${work}"
    RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log TIMEOUT 240)
  if(NOT status EQUAL 0)
    no_pages("npm ci failed: ${log}")
    return()
  endif()
  file(WRITE "${work}/installed" "${wanted}")
endif()
execute_process(COMMAND "${node}" build.mjs "--cc=${output}" "--packages=${work}/packages.txt" WORKING_DIRECTORY "${work}"
  RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the pages do not build:\n${log}")
endif()
foreach(text IN LISTS texts)
  file(READ "${output}/${text}_text.cc" content)
  file(WRITE "${output}/${text}_text.cc" "${head}\n${content}")
endforeach()
write_documents()
