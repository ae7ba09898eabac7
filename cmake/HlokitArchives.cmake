# SPDX-License-Identifier: Apache-2.0
# Abseil and gRPC consist of some seventy shared libraries, which the loader maps one by one: a program that links them
# starts in 10 to 20 ms. Our programs link their archives instead; shared objects, the Python package among them, link
# the shared libraries, since Debian's archives are not of position-independent code.
option(HLOKIT_ARCHIVES "Link the archives of Abseil and gRPC into programs, where they are installed" ON)

# hlokit_archives(OUT SHARED target… ARCHIVES file… [OTHERS library…]): sets OUT to what a library of ours links: in
# programs the archives and OTHERS, which they need, otherwise, and where we are installed, SHARED.
function(hlokit_archives out)
  cmake_parse_arguments(PARSE_ARGV 1 archives "" "" "SHARED;ARCHIVES;OTHERS")
  if(NOT HLOKIT_ARCHIVES OR NOT archives_ARCHIVES)
    set(${out} ${archives_SHARED} PARENT_SCOPE)
    return()
  endif()
  set(is_program "$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>")
  set(result "")
  foreach(target IN LISTS archives_SHARED)
    list(APPEND result "$<BUILD_INTERFACE:$<$<NOT:${is_program}>:${target}>>" "$<INSTALL_INTERFACE:${target}>")
  endforeach()
  # They need each other.
  list(JOIN archives_ARCHIVES "," group)
  list(APPEND result "$<BUILD_INTERFACE:$<${is_program}:$<LINK_GROUP:RESCAN,${group}>>>")
  foreach(library IN LISTS archives_OTHERS)
    list(APPEND result "$<BUILD_INTERFACE:$<${is_program}:${library}>>")
  endforeach()
  set(${out} ${result} PARENT_SCOPE)
endfunction()

# Sets `out` to the archives of Abseil in the folder of its shared libraries; "" if there are none.
function(hlokit_abseil_archives out)
  get_target_property(configurations absl::strings IMPORTED_CONFIGURATIONS)
  list(GET configurations 0 configuration)
  get_target_property(library absl::strings IMPORTED_LOCATION_${configuration})
  cmake_path(GET library PARENT_PATH folder)
  file(GLOB archives "${folder}/libabsl_*.a")
  set(${out} ${archives} PARENT_SCOPE)
endfunction()

# Sets `out` to the archives of gRPC, and `others` to the libraries that they need; both to "" if one is missing.
function(hlokit_grpc_archives out others)
  set(files "")
  foreach(name IN ITEMS grpc++ grpc gpr upb address_sorting)
    find_library(HLOKIT_${name}_ARCHIVE lib${name}.a)
    mark_as_advanced(HLOKIT_${name}_ARCHIVE)
    list(APPEND files "${HLOKIT_${name}_ARCHIVE}")
  endforeach()
  set(libraries "")
  foreach(name IN ITEMS cares ssl crypto re2 z)
    find_library(HLOKIT_${name}_SHARED ${name})
    mark_as_advanced(HLOKIT_${name}_SHARED)
    list(APPEND libraries "${HLOKIT_${name}_SHARED}")
  endforeach()
  if("${files};${libraries}" MATCHES "NOTFOUND")
    set(files "")
    set(libraries "")
  endif()
  set(${out} ${files} PARENT_SCOPE)
  set(${others} ${libraries} PARENT_SCOPE)
endfunction()
