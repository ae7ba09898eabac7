# SPDX-License-Identifier: Apache-2.0
# hlokit_version_source(TARGET): compiles version and commit into TARGET, as declared in tools/cli/version.h. Each build
# looks up the commit; the source is written, and the tools are linked, only if it changed.
#
# This file is also the script that does so:
#   cmake -D source=DIR -D version=0.1.0 -D output=FILE.cc -P HlokitVersion.cmake
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(HLOKIT_VERSION_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

  function(hlokit_version_source target)
    set(output "${PROJECT_BINARY_DIR}/generated/version.cc")
    add_custom_target(${target}_version BYPRODUCTS "${output}"
      COMMAND "${CMAKE_COMMAND}" -D "source=${PROJECT_SOURCE_DIR}" -D "version=${PROJECT_VERSION}" -D "output=${output}"
        -P "${HLOKIT_VERSION_SCRIPT}"
      VERBATIM)
    set_source_files_properties("${output}" PROPERTIES
      SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON GENERATED ON)
    target_sources(${target} PRIVATE "${output}")
    add_dependencies(${target} ${target}_version)
  endfunction()
  return()
endif()

# A git archive has the commit in a file: .gitattributes.
file(STRINGS "${source}/cmake/commit.txt" commit LIMIT_COUNT 1)
if(commit MATCHES "Format")
  set(commit "")
  find_program(git git)
  if(git AND EXISTS "${source}/.git")
    execute_process(COMMAND "${git}" -C "${source}" rev-parse --short=12 HEAD OUTPUT_VARIABLE commit
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
    execute_process(COMMAND "${git}" -C "${source}" diff --quiet HEAD RESULT_VARIABLE modified ERROR_QUIET)
    if(NOT status EQUAL 0)
      set(commit "")
    elseif(NOT modified EQUAL 0)
      string(APPEND commit ", modified")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT [[
#include "tools/cli/version.h"

namespace hlokit::cli {

const char* const kVersion = "@version@";
const char* const kCommit = "@commit@";

}  // namespace hlokit::cli
]])
