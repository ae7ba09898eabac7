# Compiler and linker flags for everything in this project; none of them reaches those who use the installed package.

add_compile_options(-Wall -Wextra -Werror=switch)
if(HLOKIT_WERROR)
  add_compile_options(-Werror)
endif()

# GCC warns of array bounds in functions of one class template that it has merged with those of another.
# And it looks for garbage of its own too often where there is room: a fifth of the time of a large translation unit.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fno-ipa-icf)
  cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
  if(memory_mib GREATER 6000)
    add_compile_options("SHELL:--param ggc-min-expand=100" "SHELL:--param ggc-min-heapsize=1000000")
  endif()
endif()

# Abseil's targets name dozens of shared libraries; a tool should load only those it calls.
add_link_options(-Wl,--as-needed)

# A linker that is quicker than the default one, where there is one.
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

if(HLOKIT_SANITIZE)
  add_compile_options(-fsanitize=${HLOKIT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HLOKIT_SANITIZE})
endif()

if(HLOKIT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(HLOKIT_CCACHE_PROGRAM ccache)
  if(HLOKIT_CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${HLOKIT_CCACHE_PROGRAM}")
  endif()
endif()
