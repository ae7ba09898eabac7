# SPDX-License-Identifier: Apache-2.0
# Writes a header with the identity of the interface between the fast engine and its modules. They exchange C++ objects,
# so a module works only with an engine that was compiled with the same compiler and the same headers:
#   cmake -D source=DIR -D files=FILE,… -D "compiler=TEXT" -D version=0.1.0 -D output=FILE.h -P EngineBuildId.cmake
string(REPLACE "," ";" files "${files}")
set(texts "${compiler}")
foreach(file IN LISTS files)
  file(SHA256 "${source}/${file}" hash)
  string(APPEND texts " ${file} ${hash}")
endforeach()
string(SHA256 id "${texts}")
string(SUBSTRING "${id}" 0 32 id)
file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT [[
// Written by cmake/EngineBuildId.cmake.
#ifndef HLOKIT_INTERP_COMPILED_CODE_ENGINE_BUILD_ID_H_
#define HLOKIT_INTERP_COMPILED_CODE_ENGINE_BUILD_ID_H_

namespace hlokit::interp::compiled {

inline constexpr char kEngineBuildId[] = "@version@ @id@";
// A function of each module, const char* (), that returns the identity of its build.
inline constexpr char kEngineBuildIdName[] = "HlokitEngineBuildId";

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_CODE_ENGINE_BUILD_ID_H_
]])
