# SPDX-License-Identifier: Apache-2.0
# hlokit_mpi_module(LIBRARY): builds interp/processes/mpi, the module that `--mpi` loads, where an MPI library is
# installed. The tools do not link MPI: they find the module in ../lib/hlokit beside their own directory.
function(hlokit_mpi_module library)
  option(HLOKIT_MPI "Build the module for MPI where an MPI library is installed" ON)
  set(HLOKIT_HAS_MPI OFF PARENT_SCOPE)
  # A machine that installs a wheel has an MPI of its own, or none.
  if(NOT HLOKIT_MPI OR HLOKIT_WHEEL)
    return()
  endif()
  enable_language(C)
  find_package(MPI QUIET COMPONENTS C)
  if(NOT MPI_C_FOUND)
    if(HLOKIT_PACKAGING)
      message(FATAL_ERROR "Packages have the module for MPI, which is not installed: "
        "tools/install-deps mpi installs it, and -DHLOKIT_MPI=OFF leaves the module out.")
    endif()
    message(STATUS "no MPI library: --mpi is an error in the tools (Debian: libopenmpi-dev)")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/interp/processes/mpi/*.cc")
  add_library(hlokit_mpi MODULE ${sources})
  target_include_directories(hlokit_mpi PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(hlokit_mpi PRIVATE MPI::MPI_C)
  set_target_properties(hlokit_mpi PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/hlokit" CXX_VISIBILITY_PRESET hidden)
  add_dependencies(${library} hlokit_mpi)
  install(TARGETS hlokit_mpi DESTINATION lib/hlokit COMPONENT modules)
  set(HLOKIT_HAS_MPI ON PARENT_SCOPE)
endfunction()
