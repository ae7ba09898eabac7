# SPDX-License-Identifier: Apache-2.0
# hlokit_library(NAME [PUBLIC targets…] [PRIVATE targets…] [HEADER_ONLY targets…] [ALONE regex] [COLD regex])
#
# Builds the library hlokit_NAME (hlokit::NAME) from every .cc file under NAME/ and installs its headers. A new file
# needs no line here: the next build finds it. A library without .cc files is an interface library, so that others can
# already link it.
#   PUBLIC       dependencies of the library's headers
#   PRIVATE      dependencies of its sources; users of the installed static library link them too
#   HEADER_ONLY  header-only dependencies of its sources; users of the installed library do not need them
#   ALONE        sources that are never compiled together with others (HlokitFastBuild.cmake)
#   COLD         folders that are compiled for the sake of a short build (HlokitFastBuild.cmake)
function(hlokit_library name)
  cmake_parse_arguments(PARSE_ARGV 1 library "" "ALONE;COLD" "PUBLIC;PRIVATE;HEADER_ONLY")
  set(target hlokit_${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${name}/*.cc")
  # Programs that write sources, and modules that are loaded at run time.
  set(others "/(codegen|processes/mpi|compiled/llvm|compiled/onednn)/")
  list(FILTER sources EXCLUDE REGEX "${others}")
  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources})
    set(alone ${sources})
    if(library_ALONE)
      list(FILTER alone INCLUDE REGEX "${library_ALONE}")
    else()
      set(alone "")
    endif()
    # Libraries share one precompiled header, that of the first.
    if(name STREQUAL "ir")
      hlokit_fast_build(${target} HEADER "${PROJECT_SOURCE_DIR}/cmake/precompiled.h" COLD "${library_COLD}")
    else()
      hlokit_fast_build(${target} REUSE hlokit_ir ALONE ${alone} COLD "${library_COLD}")
    endif()
    target_link_libraries(${target} PRIVATE ${library_PRIVATE})
    foreach(header_only IN LISTS library_HEADER_ONLY)
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${header_only}>)
    endforeach()
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(hlokit::${name} ALIAS ${target})
  set_property(GLOBAL APPEND PROPERTY HLOKIT_ROOMS ${name})  # each after what it uses
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_link_libraries(${target} ${scope} ${library_PUBLIC})
  # Headers are included as "library/file.h", here and from the installed package.
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/hlokit>)

  install(TARGETS ${target} EXPORT hlokitTargets)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
    "${PROJECT_SOURCE_DIR}/${name}/*.h" "${PROJECT_SOURCE_DIR}/${name}/*.def")
  list(FILTER headers EXCLUDE REGEX "${others}")
  foreach(header IN LISTS headers)
    cmake_path(GET header PARENT_PATH folder)
    install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/hlokit/${folder}")
  endforeach()
endfunction()

# The CMake package: after `cmake --install`, find_package(hlokit) provides hlokit::ir, hlokit::parser, …
function(hlokit_install_package)
  include(CMakePackageConfigHelpers)
  set(destination "${CMAKE_INSTALL_LIBDIR}/cmake/hlokit")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/hlokitConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/hlokitConfig.cmake" INSTALL_DESTINATION "${destination}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/hlokitConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(EXPORT hlokitTargets NAMESPACE hlokit:: DESTINATION "${destination}")
  install(FILES
    "${PROJECT_BINARY_DIR}/hlokitConfig.cmake"
    "${PROJECT_BINARY_DIR}/hlokitConfigVersion.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/Findxxhash.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/FindgRPC.cmake"
    DESTINATION "${destination}")
endfunction()
