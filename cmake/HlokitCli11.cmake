# SPDX-License-Identifier: Apache-2.0
# hlokit_cli11(TARGET source): CLI11 for the sources of TARGET and of its users, with its functions compiled once, in
# `source`.
#
# Before version 2.3 CLI11 has headers alone, all of whose classes are virtual: each unit that includes them compiles
# the whole parser, which takes longer than the flags of a tool. `#pragma interface`, on which GCC leaves out the inline
# functions and tables of the classes of a file, must stand in that file: the headers are copied with it. Other compilers
# ignore it.
function(hlokit_cli11 target source)
  find_package(CLI11 REQUIRED)
  find_path(HLOKIT_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
  mark_as_advanced(HLOKIT_CLI11_INCLUDE)
  set(implementations "")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CLI11_VERSION VERSION_LESS 2.3)
    set(copies "${PROJECT_BINARY_DIR}/generated/cli11")
    file(GLOB headers RELATIVE "${HLOKIT_CLI11_INCLUDE}" "${HLOKIT_CLI11_INCLUDE}/CLI/*.hpp")
    foreach(header IN LISTS headers)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${HLOKIT_CLI11_INCLUDE}/${header}")
      file(READ "${HLOKIT_CLI11_INCLUDE}/${header}" text)
      file(CONFIGURE OUTPUT "${copies}/${header}" CONTENT "#pragma interface\n#line 1\n${text}" @ONLY)
      cmake_path(GET header FILENAME name)
      string(APPEND implementations "#pragma implementation \"${name}\"\n")
    endforeach()
    target_include_directories(${target} SYSTEM BEFORE PUBLIC "${copies}")
  endif()
  file(CONFIGURE OUTPUT "${source}" CONTENT "${implementations}#include <CLI/CLI.hpp>\n" @ONLY)
  target_sources(${target} PRIVATE "${source}")
  target_link_libraries(${target} PUBLIC CLI11::CLI11)
  set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endfunction()
