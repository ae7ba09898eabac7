# SPDX-License-Identifier: Apache-2.0
# hlokit_engine_modules(LIBRARY): builds the modules of the compiled engine, interp/compiled, where their libraries are
# installed: interp/compiled/onednn, products and convolutions of oneDNN, and interp/compiled/llvm, which writes machine
# code with LLVM. They are loaded at run time, when a program needs them, from ../lib/hlokit beside the directory of the
# tools; without one of this build, what it would do is left to the exact engine's kernels.
function(hlokit_engine_modules library)
  option(HLOKIT_ONEDNN "Build the module for oneDNN where it is installed" ON)
  option(HLOKIT_LLVM "Build the module for LLVM 19 where it is installed" ON)
  # LLVM's own CMake configuration requires packages that its shared library does not need.
  find_path(LLVM19_INCLUDE_DIR llvm/IR/Module.h PATHS /usr/lib/llvm-19/include NO_DEFAULT_PATH)
  find_library(LLVM19_LIBRARY LLVM-19 PATHS /usr/lib/llvm-19/lib NO_DEFAULT_PATH)
  mark_as_advanced(LLVM19_INCLUDE_DIR LLVM19_LIBRARY)
  hlokit_engine_build_id(${library})
  set(HLOKIT_HAS_ONEDNN OFF)
  set(HLOKIT_HAS_LLVM OFF)
  if(HLOKIT_ONEDNN)
    find_package(dnnl QUIET)
    find_package(OpenMP QUIET COMPONENTS CXX)
    if(dnnl_FOUND AND OpenMP_CXX_FOUND)
      set(HLOKIT_HAS_ONEDNN ON)
      hlokit_engine_module(${library} onednn)
      target_link_libraries(hlokit_onednn PRIVATE DNNL::dnnl OpenMP::OpenMP_CXX)
    elseif(HLOKIT_PACKAGING)
      message(FATAL_ERROR "Packages have the fast engine's module for oneDNN, which is not installed: "
        "tools/install-deps engine installs it, and -DHLOKIT_ONEDNN=OFF leaves the module out.")
    else()
      message(STATUS "no oneDNN: --engine=fast computes products with the exact engine's kernels (Debian: libdnnl-dev)")
    endif()
  endif()
  if(HLOKIT_LLVM)
    if(LLVM19_INCLUDE_DIR AND LLVM19_LIBRARY AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      set(HLOKIT_HAS_LLVM ON)
      hlokit_engine_module(${library} llvm)
      target_include_directories(hlokit_llvm SYSTEM PRIVATE "${LLVM19_INCLUDE_DIR}")
      target_compile_options(hlokit_llvm PRIVATE -fno-rtti)
      target_link_libraries(hlokit_llvm PRIVATE "${LLVM19_LIBRARY}")
    elseif(HLOKIT_PACKAGING)
      message(FATAL_ERROR "Packages have the fast engine's module for LLVM 19, which is not installed: "
        "tools/install-deps engine installs it, and -DHLOKIT_LLVM=OFF leaves the module out.")
    else()
      message(STATUS "no LLVM 19: --engine=fast compiles no loops (Debian: llvm-19-dev)")
    endif()
  endif()
  set(HLOKIT_HAS_ONEDNN ${HLOKIT_HAS_ONEDNN} PARENT_SCOPE)
  set(HLOKIT_HAS_LLVM ${HLOKIT_HAS_LLVM} PARENT_SCOPE)
endfunction()

# Writes interp/compiled/code/engine_build_id.h, which the engine and its modules compare before they use each other,
# from the compiler and the headers that both include, and from the code generator, whose code is kept on disk.
function(hlokit_engine_build_id library)
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
    "${PROJECT_SOURCE_DIR}/interp/compiled/code/*.h"
    "${PROJECT_SOURCE_DIR}/interp/compiled/programs/*.h" "${PROJECT_SOURCE_DIR}/interp/compiled/programs/*.def"
    "${PROJECT_SOURCE_DIR}/interp/processor/instruction_set.h"
    "${PROJECT_SOURCE_DIR}/interp/compiled/llvm/*.h" "${PROJECT_SOURCE_DIR}/interp/compiled/llvm/*.cc"
    "${PROJECT_SOURCE_DIR}/ir/types/*.h" "${PROJECT_SOURCE_DIR}/ir/types/*.def"
    "${PROJECT_SOURCE_DIR}/ir/ops/*.h" "${PROJECT_SOURCE_DIR}/ir/ops/*.def")
  set(llvm_version "")
  if(LLVM19_INCLUDE_DIR AND HLOKIT_LLVM)
    file(STRINGS "${LLVM19_INCLUDE_DIR}/llvm/Config/llvm-config.h" llvm_version REGEX "define LLVM_VERSION_STRING")
    string(REGEX MATCH "[0-9]+[0-9.]+" llvm_version "${llvm_version}")
  endif()
  list(TRANSFORM headers PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE depends)
  list(JOIN headers "," files)
  set(output "${PROJECT_BINARY_DIR}/generated/tables/interp/compiled/code/engine_build_id.h")
  set(script "${PROJECT_SOURCE_DIR}/cmake/EngineBuildId.cmake")
  set(compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_SYSTEM_PROCESSOR} ${HLOKIT_SANITIZE}")
  string(APPEND compiler " ${llvm_version}")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -D "source=${PROJECT_SOURCE_DIR}" -D "files=${files}" -D "compiler=${compiler}"
      -D "version=${PROJECT_VERSION}" -D "output=${output}" -P "${script}"
    DEPENDS ${depends} "${script}" VERBATIM)
  target_sources(${library} PRIVATE "${output}")
  set(HLOKIT_ENGINE_BUILD_ID "${output}" PARENT_SCOPE)
endfunction()

function(hlokit_engine_module library name)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/interp/compiled/${name}/*.cc")
  add_library(hlokit_${name} MODULE ${sources})
  target_sources(hlokit_${name} PRIVATE "${HLOKIT_ENGINE_BUILD_ID}")
  target_include_directories(hlokit_${name} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/generated/tables")
  set_target_properties(hlokit_${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/hlokit" CXX_VISIBILITY_PRESET hidden)
  # A symbol that neither the module nor its libraries define would be found missing at run time only. (The run-time
  # library of a sanitizer belongs to the program.)
  if(NOT HLOKIT_SANITIZE)
    target_link_options(hlokit_${name} PRIVATE -Wl,-z,defs)
  endif()
  add_dependencies(${library} hlokit_${name})
  install(TARGETS hlokit_${name} DESTINATION lib/hlokit COMPONENT modules)
endfunction()
