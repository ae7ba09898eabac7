// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/code/engine_modules.h"

#include <dlfcn.h>

#include <string_view>
#include <system_error>
#include <vector>

#include "interp/compiled/code/engine_build_id.h"
#include "interp/exact/processor/instruction_set.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp::compiled {
namespace {

// A module that was looked for once.
template <typename Interface>
struct EngineModule {
  Interface* interface = nullptr;
  std::string why;  // it is null

  Interface* Get(std::string* reason) const {
    if (interface == nullptr && reason != nullptr) *reason = why;
    return interface;
  }
};

std::vector<std::filesystem::path> ModuleDirectories() {
  std::vector<std::filesystem::path> directories;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::filesystem::path above = program.parent_path().parent_path();
    directories.push_back(above / "lib/hlokit");
    if (above.filename() == "hlokit") directories.push_back(above);  // a wheel: hlokit/bin/hlo-run
  }
  // The object that this code is part of: a tool, a test, the extension module of Python, the PJRT plugin. A program
  // that was found by PATH has no directory in its name; its directory is that of the program above.
  Dl_info self;
  static const int anchor = 0;
  if (dladdr(&anchor, &self) == 0 || self.dli_fname == nullptr) return directories;
  if (std::string_view(self.dli_fname).find('/') == std::string_view::npos) return directories;
  const std::filesystem::path object = std::filesystem::canonical(self.dli_fname, error);
  if (error) return directories;
  const std::filesystem::path directory = object.parent_path();
  directories.push_back(directory);
  directories.push_back(directory.parent_path() / "lib/hlokit");
  directories.push_back(directory.parent_path().parent_path().parent_path() / "hlokit");
  return directories;
}

void* SymbolOfModule(const char* name, const char* symbol, std::string* why) {
  *why = StrCat(name, " is not found (tools/install-deps engine, before the build)");
  for (const std::filesystem::path& directory : ModuleDirectories()) {
    std::error_code ignored;
    const std::filesystem::path file = directory / name;
    if (!std::filesystem::exists(file, ignored)) continue;
    if (void* const address = LoadModule(file, symbol, why)) return address;
  }
  return nullptr;
}

constexpr char kOnednnModule[] = "libhlokit_onednn.so";
constexpr char kLlvmModule[] = "libhlokit_llvm.so";

}  // namespace

bool HasEngineModules() {
  for (const std::filesystem::path& directory : ModuleDirectories()) {
    std::error_code ignored;
    for (const char* const name : {kOnednnModule, kLlvmModule}) {
      if (std::filesystem::exists(directory / name, ignored)) return true;
    }
  }
  return false;
}

void* LoadModule(const std::filesystem::path& file, const char* symbol, std::string* why) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = dlerror();
    *why = error == nullptr ? StrCat(file.filename().string(), " cannot be loaded") : error;
    return nullptr;
  }
  const auto build_id = reinterpret_cast<const char* (*)()>(dlsym(library, kEngineBuildIdName));
  void* const address = dlsym(library, symbol);
  if (build_id != nullptr && address != nullptr && std::string_view(build_id()) == kEngineBuildId) return address;
  dlclose(library);
  *why = StrCat(file.filename().string(), " is of another build");
  return nullptr;
}

Library* ProductLibrary(std::string* why) {
  static const auto* const module = [] {
    auto* const loaded = new EngineModule<Library>();
    const auto open =
        reinterpret_cast<OpenLibraryFunction>(SymbolOfModule(kOnednnModule, kOpenLibraryName, &loaded->why));
    if (open != nullptr) loaded->interface = open(HostInstructionSet());
    return loaded;
  }();
  return module->Get(why);
}

CodeGenerator* Generator(std::string* why) {
  static const auto* const module = [] {
    auto* const loaded = new EngineModule<CodeGenerator>();
    const auto open =
        reinterpret_cast<OpenCodeGeneratorFunction>(SymbolOfModule(kLlvmModule, kOpenCodeGeneratorName, &loaded->why));
    if (open != nullptr) loaded->interface = open();
    return loaded;
  }();
  return module->Get(why);
}

}  // namespace hlokit::interp::compiled
