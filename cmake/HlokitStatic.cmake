# SPDX-License-Identifier: Apache-2.0
include(CheckLinkerFlag)

# hlokit_static_tools(TOOL...): builds each tool fully statically, including the C library, in build/NAME/static/bin: it
# runs on any Linux of this architecture. The target is hlokit_static_tools; object files are those of the tools.
#
# Libraries are those that pkg-config lists for hlokit.pc; Debian's -dev packages have them as archives.
function(hlokit_static_tools)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(HLOKIT_STATIC REQUIRED ${HLOKIT_PC_REQUIRES} re2)
  # Most linkers warn that host name lookup loads libraries; the profiler only uses local addresses.
  check_linker_flag(CXX -Wl,--no-warnings HLOKIT_LINKER_NO_WARNINGS)
  add_custom_target(hlokit_static_tools)
  foreach(tool IN LISTS ARGN)
    set(target ${tool}-static)
    add_executable(${target} $<TARGET_OBJECTS:${tool}>)
    set(archives $<TARGET_FILE:hlokit_cli>)
    string(REPLACE "-" "_" own "hlokit_${tool}")
    if(TARGET ${own})
      list(APPEND archives $<TARGET_FILE:${own}>)
    endif()
    get_property(rooms GLOBAL PROPERTY HLOKIT_ROOMS)
    foreach(room IN LISTS rooms)
      list(APPEND archives $<TARGET_FILE:hlokit_${room}>)
    endforeach()
    target_link_options(${target} PRIVATE -static-pie -s $<$<BOOL:${HLOKIT_LINKER_NO_WARNINGS}>:-Wl,--no-warnings>)
    target_link_libraries(${target} PRIVATE -Wl,--start-group ${archives} ${HLOKIT_STATIC_STATIC_LDFLAGS} -Wl,--end-group)
    add_dependencies(${target} ${tool})
    set_target_properties(${target} PROPERTIES
      LINKER_LANGUAGE CXX
      OUTPUT_NAME ${tool}
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/static/bin")
    add_dependencies(hlokit_static_tools ${target})
  endforeach()
endfunction()
