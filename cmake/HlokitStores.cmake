# SPDX-License-Identifier: Apache-2.0
# hlokit_store_clients(TARGET): lets parser/store use libcurl and libcrypto (s3, gs, az) and hiredis (redis), each where
# its headers are installed. Programs do not link them, but load them by their sonames when a remote store is opened.
option(HLOKIT_STORES "Read and write s3, gs, az and redis addresses, where libcurl and hiredis are installed" ON)

# Sets `out` to the soname of a shared library, or to "".
function(hlokit_soname library out)
  set(${out} "" PARENT_SCOPE)
  execute_process(COMMAND "${CMAKE_READELF}" -d "${library}" OUTPUT_VARIABLE dynamic ERROR_QUIET)
  if(dynamic MATCHES "Library soname: \\[([^]]+)\\]")
    set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  endif()
endfunction()

function(hlokit_store_clients target)
  set(files "${PROJECT_SOURCE_DIR}/parser/store/crypto.cc" "${PROJECT_SOURCE_DIR}/parser/store/http_client.cc"
    "${PROJECT_SOURCE_DIR}/parser/store/redis_store.cc")
  set(missing "")
  foreach(client IN ITEMS curl crypto hiredis)
    set(header_curl curl/curl.h)
    set(header_crypto openssl/evp.h)
    set(header_hiredis hiredis/hiredis.h)
    find_path(HLOKIT_${client}_INCLUDE ${header_${client}})
    find_library(HLOKIT_${client}_LIBRARY ${client})
    mark_as_advanced(HLOKIT_${client}_INCLUDE HLOKIT_${client}_LIBRARY)
    set(soname_${client} "")
    if(HLOKIT_STORES AND HLOKIT_${client}_INCLUDE AND HLOKIT_${client}_LIBRARY)
      hlokit_soname("${HLOKIT_${client}_LIBRARY}" soname_${client})
    endif()
    if(soname_${client})
      set_property(SOURCE ${files} APPEND PROPERTY INCLUDE_DIRECTORIES "${HLOKIT_${client}_INCLUDE}")
    else()
      list(APPEND missing ${client})
    endif()
  endforeach()
  set(http 0)
  if(soname_curl AND soname_crypto)
    set(http 1)
  endif()
  set(redis 0)
  if(soname_hiredis)
    set(redis 1)
  endif()
  set_property(SOURCE ${files} APPEND PROPERTY COMPILE_DEFINITIONS "HLOKIT_HTTP_STORES=${http}"
    "HLOKIT_REDIS_STORE=${redis}" "HLOKIT_LIBCURL=\"${soname_curl}\"" "HLOKIT_LIBCRYPTO=\"${soname_crypto}\""
    "HLOKIT_LIBHIREDIS=\"${soname_hiredis}\"")
  # Definitions of a file keep it out of files that are compiled together.
  set_property(SOURCE ${files} PROPERTY SKIP_UNITY_BUILD_INCLUSION TRUE)
  if(missing AND HLOKIT_STORES)
    list(JOIN missing ", " missing)
    message(NOTICE "Remote stores are left out as far as they need ${missing}, not found (tools/install-deps build).")
  endif()
endfunction()
