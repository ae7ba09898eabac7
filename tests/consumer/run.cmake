# SPDX-License-Identifier: Apache-2.0
# Installs the build at `library_build` below `scratch`, then configures, builds and runs this project against that
# installation; compiles and runs its program with the flags of pkg-config, if available; then runs the tutorials that
# build programs.
file(REMOVE_RECURSE "${scratch}")

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run("${CMAKE_COMMAND}" --install "${library_build}" --prefix "${scratch}/prefix")
run("${CMAKE_COMMAND}" -G "${generator}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${scratch}/build"
  "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${scratch}/prefix")
run("${CMAKE_COMMAND}" --build "${scratch}/build")
run("${scratch}/build/consumer")

find_program(pkg_config pkg-config)
if(pkg_config)
  file(GLOB_RECURSE file "${scratch}/prefix/*/hlokit.pc")
  cmake_path(GET file PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} "${folder}")
  run("${pkg_config}" --validate hlokit)
  execute_process(COMMAND "${pkg_config}" --cflags --libs hlokit OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run("${compiler}" -std=c++20 "${CMAKE_CURRENT_LIST_DIR}/main.cc" -o "${scratch}/by-pkg-config" ${flags})
  run("${scratch}/by-pkg-config")
else()
  message("pkg-config is not installed: its file is not tried")
endif()

cmake_path(SET source NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../..")
# The environment that the pages set after installing.
set(ENV{CMAKE_PREFIX_PATH} "${scratch}/prefix")
set(ENV{CMAKE_GENERATOR} "${generator}")
set(ENV{CXX} "${compiler}")
run("${python}" "${source}/tests/readme/readme_tour.py" "${source}" "${scratch}/prefix/bin"
  "${source}/docs/tutorials/embed-the-library.md" "${source}/docs/tutorials/write-a-pass.md")
