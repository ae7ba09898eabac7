// SPDX-License-Identifier: Apache-2.0
#include "io/stores/shared_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

// A fully static program has no dynamic linker, and the C library's loader of another version would break it.
bool IsStaticProgram() {
  const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const unsigned long count = getauxval(AT_PHNUM);
  if (headers == nullptr) return false;
  for (unsigned long i = 0; i < count; ++i) {
    if (headers[i].p_type == PT_INTERP) return false;
  }
  return true;
}

}  // namespace

absl::Status SharedLibrary::Load(const std::string& name, const std::string& package) {
  name_ = name;
  if (IsStaticProgram()) {
    return status_ = absl::UnimplementedError("static programs have no remote stores: use the dynamically linked one");
  }
  handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    status_ = absl::UnimplementedError(StrCat("requires ", name, ", which is not installed (Debian: ", package, ")"));
  }
  return status_;
}

void* SharedLibrary::Find(const char* name) {
  if (handle_ == nullptr) return nullptr;
  void* const found = dlsym(handle_, name);
  if (found == nullptr && status_.ok()) status_ = absl::UnimplementedError(StrCat(name_, " has no function ", name));
  return found;
}

}  // namespace hlokit
