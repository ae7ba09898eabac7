# SPDX-License-Identifier: Apache-2.0
# hlokit_pjrt_plugin(): builds pjrt, the plugin that JAX and PyTorch/XLA load. It exports one symbol, so
# that neither its functions nor those of its libraries meet those of the program that loads it.
function(hlokit_pjrt_plugin)
  option(HLOKIT_PJRT "Build the PJRT plugin" ON)
  if(NOT HLOKIT_PJRT OR HLOKIT_FUZZ)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/pjrt/*.cc")
  add_library(hlokit_pjrt MODULE ${sources})
  hlokit_link_messages(hlokit_pjrt)
  target_link_libraries(hlokit_pjrt PRIVATE hlokit::simulator)
  target_compile_definitions(hlokit_pjrt PRIVATE "HLOKIT_VERSION=\"${PROJECT_VERSION}\"")
  set(exports "${PROJECT_SOURCE_DIR}/pjrt/exports.map")
  target_link_options(hlokit_pjrt PRIVATE "-Wl,--version-script=${exports}" "-Wl,-Bsymbolic" "-Wl,--gc-sections")
  set_target_properties(hlokit_pjrt PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/hlokit" INSTALL_RPATH "$ORIGIN"
    CXX_VISIBILITY_PRESET hidden LINK_DEPENDS "${exports}")
  hlokit_fast_build(hlokit_pjrt HEADER "${PROJECT_SOURCE_DIR}/cmake/precompiled.h" COLD ".")
  install(TARGETS hlokit_pjrt DESTINATION lib/hlokit COMPONENT tools)
endfunction()
