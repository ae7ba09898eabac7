// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/engine_modules.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace hlokit::interp::compiled {
namespace {

// Returns the address of `symbol` in the module, or null.
void* SymbolOfModule(const char* file, const char* symbol) {
  // The object that this code is part of: a tool, a test, the extension module of Python.
  Dl_info self;
  static const int anchor = 0;
  std::error_code ignored;
  std::filesystem::path object;
  if (dladdr(&anchor, &self) != 0 && self.dli_fname != nullptr) {
    object = std::filesystem::canonical(self.dli_fname, ignored);
  }
  // A program that was found by PATH has no folder in its name.
  for (const std::filesystem::path& from : {object, std::filesystem::read_symlink("/proc/self/exe", ignored)}) {
    std::filesystem::path folder = from.parent_path();
    for (int up = 0; up < 3 && folder.has_relative_path(); ++up, folder = folder.parent_path()) {
      const std::filesystem::path module = folder / "lib/hlokit" / file;
      if (!std::filesystem::exists(module, ignored)) continue;
      void* const library = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
      return library == nullptr ? nullptr : dlsym(library, symbol);
    }
  }
  return nullptr;
}

}  // namespace

Library* ProductLibrary() {
  static Library* const library = [] {
    const auto open = reinterpret_cast<OpenLibraryFunction>(SymbolOfModule("libhlokit_onednn.so", kOpenLibraryName));
    return open == nullptr ? nullptr : open();
  }();
  return library;
}

CodeGenerator* Generator() {
  static CodeGenerator* const generator = [] {
    const auto open =
        reinterpret_cast<OpenCodeGeneratorFunction>(SymbolOfModule("libhlokit_llvm.so", kOpenCodeGeneratorName));
    return open == nullptr ? nullptr : open();
  }();
  return generator;
}

}  // namespace hlokit::interp::compiled
