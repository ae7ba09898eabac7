# SPDX-License-Identifier: Apache-2.0
# Compiler and linker flags of this project; users of the installed package do not inherit them.

add_compile_options(-Wall -Wextra -Werror=switch)
if(HLOKIT_WERROR)
  add_compile_options(-Werror)
endif()

# The engines round after each operation, whatever the processor could fuse.
add_compile_options(-ffp-contract=off)

# The libraries can be part of a shared one: a Python module, a plugin. Without interposition of our own symbols that
# costs no speed.
add_compile_options(-fPIC -fno-semantic-interposition)

# GCC warns of array bounds in functions of one class template that it has merged with those of another.
# It collects its garbage often: a heap of 1 GB, where each core has room for that, saves a fifth of the time of a large
# translation unit.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fno-ipa-icf)
  cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
  cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR memory_mib "${memory_mib} / (${cores} + 1)")
  if(memory_mib GREATER 2500)
    add_compile_options("SHELL:--param ggc-min-heapsize=1000000")
  endif()
endif()

# Abseil's targets name dozens of shared libraries; a tool should load only those it calls.
add_link_options(-Wl,--as-needed)

# A faster linker than the default one, if available.
if(NOT HLOKIT_LINKER)
  find_program(HLOKIT_MOLD mold)
  find_program(HLOKIT_LLD ld.lld)
  mark_as_advanced(HLOKIT_MOLD HLOKIT_LLD)
  if(HLOKIT_MOLD)
    set(HLOKIT_LINKER mold)
  elseif(HLOKIT_LLD)
    set(HLOKIT_LINKER lld)
  endif()
endif()
if(HLOKIT_LINKER)
  add_link_options(-fuse-ld=${HLOKIT_LINKER})
endif()

if(HLOKIT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HLOKIT_FUZZ needs clang: libFuzzer comes with it (try --preset fuzz)")
  endif()
  if(NOT HLOKIT_SANITIZE)
    set(HLOKIT_SANITIZE address)
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(HLOKIT_SANITIZE AND NOT HLOKIT_SANITIZE STREQUAL "none")
  add_compile_options(-fsanitize=${HLOKIT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HLOKIT_SANITIZE})
endif()

if(HLOKIT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(HLOKIT_CCACHE_PROGRAM ccache)
  if(HLOKIT_CCACHE_PROGRAM)
    # Settings that ccache and the compiler need for precompiled headers. One that is made must not see the one of the
    # build before: with -fpch-preprocess that stands for all that it includes, and ccache would find what was made of it.
    set(launcher "${PROJECT_BINARY_DIR}/generated/ccache_launcher")
    file(CONFIGURE OUTPUT "${launcher}" @ONLY CONTENT [=[#!/bin/sh
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
case " $* " in
  *" c++-header "*)
    for argument; do
      shift
      [ "$argument" = -fpch-preprocess ] || set -- "$@" "$argument"
    done
    ;;
esac
exec "@HLOKIT_CCACHE_PROGRAM@" "$@"
]=])
    file(CHMOD "${launcher}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${launcher}")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      add_compile_options(-fpch-preprocess)
    else()
      add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
    endif()
  endif()
endif()
