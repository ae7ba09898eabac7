# Installs the build at `library_build` below `scratch`, then configures, builds and runs the project beside this file
# against that installation; then follows the tutorials that build programs.
file(REMOVE_RECURSE "${scratch}")

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run("${CMAKE_COMMAND}" --install "${library_build}" --prefix "${scratch}/prefix")
run("${CMAKE_COMMAND}" -G "${generator}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${scratch}/build"
  "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_PREFIX_PATH=${scratch}/prefix")
run("${CMAKE_COMMAND}" --build "${scratch}/build")
run("${scratch}/build/consumer")

cmake_path(SET source NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../..")
# What the pages export after installing.
set(ENV{CMAKE_PREFIX_PATH} "${scratch}/prefix")
set(ENV{CMAKE_GENERATOR} "${generator}")
set(ENV{CXX} "${compiler}")
run("${python}" "${source}/tests/readme/readme_tour.py" "${source}" "${scratch}/prefix/bin"
  "${source}/docs/tutorials/embed-the-library.md" "${source}/docs/tutorials/write-a-pass.md")
