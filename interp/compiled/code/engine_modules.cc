// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/code/engine_modules.h"

#include <dlfcn.h>

#include <string_view>
#include <system_error>
#include <vector>

#include "interp/compiled/code/engine_build_id.h"
#include "interp/processor/instruction_set.h"
#include "io/stores/private_directory.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp::compiled {
namespace {

// The object that this code is part of: a tool, a test, the extension module of Python, the PJRT plugin. Empty:
// unknown, as that of a program that was found by PATH has no directory in its name.
std::filesystem::path ThisObject() {
  Dl_info self;
  static const int anchor = 0;
  if (dladdr(&anchor, &self) == 0 || self.dli_fname == nullptr) return {};
  if (std::string_view(self.dli_fname).find('/') == std::string_view::npos) return {};
  std::error_code error;
  const std::filesystem::path object = std::filesystem::canonical(self.dli_fname, error);
  return error ? std::filesystem::path() : object;
}

// Where modules may lie, and the file that they belong to.
struct ModuleDirectory {
  std::filesystem::path path;
  std::filesystem::path owner;
};

std::vector<ModuleDirectory> ModuleDirectories() {
  std::vector<ModuleDirectory> directories;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::filesystem::path above = program.parent_path().parent_path();
    directories.push_back({above / "lib/hlokit", program});
    if (above.filename() == "hlokit") directories.push_back({above, program});  // a wheel: hlokit/bin/hlo-run
  }
  const std::filesystem::path object = ThisObject();
  if (object.empty()) return directories;
  const std::filesystem::path directory = object.parent_path();
  directories.push_back({directory, object});
  directories.push_back({directory.parent_path() / "lib/hlokit", object});
  // The extension module of an installation: lib/python3/dist-packages/hlokit/_hlokit.*.so.
  const std::filesystem::path lib = directory.parent_path().parent_path().parent_path();
  const bool is_extension = object.filename().string().starts_with("_hlokit.") && directory.filename() == "hlokit";
  if (is_extension && lib.filename() == "lib") directories.push_back({lib / "hlokit", object});
  return directories;
}

// Returns the files of a module that there are, in the order in which they are tried.
std::vector<ModuleDirectory> FilesOfModule(const char* name) {
  std::vector<ModuleDirectory> files;
  for (const ModuleDirectory& directory : ModuleDirectories()) {
    std::error_code ignored;
    const std::filesystem::path file = directory.path / name;
    if (std::filesystem::exists(file, ignored)) files.push_back({file, directory.owner});
  }
  return files;
}

absl::StatusOr<void*> SymbolOfModule(const char* name, const char* symbol) {
  absl::StatusOr<void*> address =
      absl::NotFoundError(StrCat(name, " is not found (tools/install-deps engine, before the build)"));
  for (const ModuleDirectory& file : FilesOfModule(name)) {
    // What it does when it is loaded happens before its build is compared.
    if (const absl::Status status = CheckModuleOf(file.owner.string(), file.path.string()); !status.ok()) {
      address = absl::PermissionDeniedError(StrCat("not loaded: ", std::string(status.message())));
      continue;
    }
    address = LoadModule(file.path, symbol);
    if (address.ok()) return address;
  }
  return address;
}

constexpr char kOnednnModule[] = "libhlokit_onednn.so";
constexpr char kLlvmModule[] = "libhlokit_llvm.so";

}  // namespace

bool HasEngineModules() { return !FilesOfModule(kOnednnModule).empty() || HasGeneratorModule(); }

bool HasGeneratorModule() {
  static const bool has = !FilesOfModule(kLlvmModule).empty();
  return has;
}

absl::StatusOr<void*> LoadModule(const std::filesystem::path& file, const char* symbol) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = dlerror();
    return absl::UnavailableError(error == nullptr ? StrCat(file.filename().string(), " cannot be loaded") : error);
  }
  const auto build_id = reinterpret_cast<const char* (*)()>(dlsym(library, kEngineBuildIdName));
  void* const address = dlsym(library, symbol);
  if (build_id != nullptr && address != nullptr && std::string_view(build_id()) == kEngineBuildId) return address;
  dlclose(library);
  return absl::FailedPreconditionError(StrCat(file.filename().string(), " is of another build"));
}

const absl::StatusOr<Library*>& ProductLibrary() {
  static const auto* const library = [] {
    const absl::StatusOr<void*> open = SymbolOfModule(kOnednnModule, kOpenLibraryName);
    if (!open.ok()) return new absl::StatusOr<Library*>(open.status());
    return new absl::StatusOr<Library*>(reinterpret_cast<OpenLibraryFunction>(*open)(HostInstructionSet()));
  }();
  return *library;
}

const absl::StatusOr<CodeGenerator*>& Generator() {
  static const auto* const generator = [] {
    const absl::StatusOr<void*> open = SymbolOfModule(kLlvmModule, kOpenCodeGeneratorName);
    if (!open.ok()) return new absl::StatusOr<CodeGenerator*>(open.status());
    return new absl::StatusOr<CodeGenerator*>(reinterpret_cast<OpenCodeGeneratorFunction>(*open)());
  }();
  return *generator;
}

}  // namespace hlokit::interp::compiled
