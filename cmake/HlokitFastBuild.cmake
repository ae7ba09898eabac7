# SPDX-License-Identifier: Apache-2.0
# hlokit_fast_build(TARGET [HEADER file | REUSE target] [ALONE file…]): what makes a build of many files quick, without a
# change of what is built.
#
#   - HEADER, which includes what most files include, is compiled once (HLOKIT_PCH); REUSE takes that of another target with
#     the same compiler flags;
#   - files of one folder are compiled several at a time (HLOKIT_UNITY), except those in ALONE. Such a group is one
#     translation unit, so names in anonymous namespaces must differ within a folder; the compiler says where they do not.
function(hlokit_fast_build target)
  cmake_parse_arguments(PARSE_ARGV 1 fast "" "HEADER;REUSE" "ALONE")
  if(HLOKIT_PCH)
    if(fast_REUSE)
      target_precompile_headers(${target} REUSE_FROM ${fast_REUSE})
    elseif(fast_HEADER)
      target_precompile_headers(${target} PRIVATE "${fast_HEADER}")
    endif()
  endif()
  if(NOT HLOKIT_UNITY)
    return()
  endif()
  set(group_size 12)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(source IN_LIST fast_ALONE)
      set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      continue()
    endif()
    # Named by its place in the project: objects are the same wherever the checkout lies.
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE folder)
    cmake_path(GET folder PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    if(NOT DEFINED count_${folder})
      set(count_${folder} 0)
    endif()
    math(EXPR group "${count_${folder}} / ${group_size}")
    math(EXPR count_${folder} "${count_${folder}} + 1")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${group}")
  endforeach()
endfunction()
