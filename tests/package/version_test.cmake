# SPDX-License-Identifier: Apache-2.0
# Tests --version of each tool, and the source of its commit:
#   cmake -D bin=DIR -D tools=NAME,... -D version=0.1.0 -D source=DIR -D scratch=DIR -P version_test.cmake
string(REPLACE "," ";" tools "${tools}")
foreach(tool IN LISTS tools)
  execute_process(COMMAND "${bin}/${tool}" --version OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  if(NOT text MATCHES "^${tool} \\(hlokit\\) ${version}( \\(commit [0-9a-f]+(, modified)?\\))?\n$")
    message(FATAL_ERROR "${tool} --version: ${text}")
  endif()
endforeach()

# expect(COMMIT): checks the commit that the script finds in the directory `tree`.
function(expect commit)
  execute_process(COMMAND "${CMAKE_COMMAND}" -D "source=${scratch}/tree" -D version=1.2.3 -D "output=${scratch}/version.cc"
    -P "${source}/cmake/HlokitVersion.cmake" COMMAND_ERROR_IS_FATAL ANY)
  file(READ "${scratch}/version.cc" text)
  if(NOT text MATCHES "kCommit = \"${commit}\";" OR NOT text MATCHES "kVersion = \"1.2.3\";")
    message(FATAL_ERROR "expected the commit '${commit}' in ${text}")
  endif()
endfunction()

file(REMOVE_RECURSE "${scratch}")
file(MAKE_DIRECTORY "${scratch}/tree/cmake")
# In a git archive.
file(WRITE "${scratch}/tree/cmake/commit.txt" "0123456789ab\n")
expect("0123456789ab")
# In a directory that is neither an archive nor a repository.
file(COPY_FILE "${source}/cmake/commit.txt" "${scratch}/tree/cmake/commit.txt")
file(STRINGS "${scratch}/tree/cmake/commit.txt" line LIMIT_COUNT 1)
if(line MATCHES "Format")
  expect("")
endif()

find_program(git git)
if(NOT git)
  return()
endif()
function(git)
  execute_process(COMMAND "${git}" -C "${scratch}/tree" -c user.name=a -c user.email=a@b ${ARGN}
    OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(output "${output}" PARENT_SCOPE)
endfunction()
file(WRITE "${scratch}/tree/cmake/commit.txt" "$Format:%h$\n")
file(WRITE "${scratch}/tree/.gitattributes" "/cmake/commit.txt export-subst\n")
git(init --quiet)
git(add .)
git(commit --quiet -m first)
git(rev-parse --short=12 HEAD)
set(commit "${output}")
expect("${commit}")
# Written only if it changed: nothing is recompiled.
file(TIMESTAMP "${scratch}/version.cc" before "%s")
execute_process(COMMAND "${CMAKE_COMMAND}" -E sleep 1.1)
expect("${commit}")
file(TIMESTAMP "${scratch}/version.cc" after "%s")
if(NOT before EQUAL after)
  message(FATAL_ERROR "the version's source is written again though it is the same")
endif()
file(APPEND "${scratch}/tree/.gitattributes" "# more\n")
expect("${commit}, modified")
# An archive of it has the same commit.
git(archive --output=${scratch}/archive.tar HEAD cmake/commit.txt)
file(ARCHIVE_EXTRACT INPUT "${scratch}/archive.tar" DESTINATION "${scratch}/archive")
file(STRINGS "${scratch}/archive/cmake/commit.txt" line LIMIT_COUNT 1)
if(NOT commit MATCHES "^${line}")
  message(FATAL_ERROR "an archive names the commit '${line}', not '${commit}'")
endif()
