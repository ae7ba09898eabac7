// SPDX-License-Identifier: Apache-2.0
#include "io/dumps/module_files.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <set>
#include <system_error>

#include "io/dumps/dump_files.h"
#include "ir/core/str_cat.h"
#include "parser/formats/module_formats.h"
#include "parser/formats/stablehlo_program.h"

namespace hlokit {
namespace {

bool IsSelected(DumpedStages stages, const DumpFile& file) {
  switch (stages) {
    case DumpedStages::kAll:
      return true;
    case DumpedStages::kBefore:
      return file.kind == DumpFile::Kind::kBeforeOptimizations;
    case DumpedStages::kAfter:
      return file.kind == DumpFile::Kind::kAfterOptimizations;
  }
  return true;
}

constexpr size_t kMlirBeginning = size_t{64} << 10;  // has the main function, or operations of it

// Returns the beginning of a file; less where it ends, or cannot be read.
std::string BeginningOf(const std::string& path, size_t bytes) {
  std::string text(bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

bool BeginsAsModule(const std::string& path) {
  constexpr std::string_view kModule = "HloModule";
  return BeginningOf(path, kModule.size()) == kModule;
}

bool IsText(std::string_view path) {
  return path.ends_with(".txt") || path.ends_with(".pbtxt") || path.ends_with(".textproto");
}

// What there is in folders of dumps.
struct DumpedModules {
  std::set<std::string> staged;    // FOLDER/module_NNNN with HLO of a stage
  std::set<std::string> before;    // FOLDER/module_NNNN.NAME and FOLDER/NAME with HLO before optimizations
  std::set<std::string> compiled;  // folders with what one module was compiled from, module.mlir, and with
};

DumpedModules ModulesAmong(const std::vector<std::string>& files) {
  DumpedModules modules;
  for (const std::string& path : files) {
    const std::filesystem::path name(path);
    const std::string folder = name.parent_path().string();
    DumpFile file;
    if (name.filename().string().starts_with("compile_options.")) modules.compiled.insert(folder);
    if (!ParseDumpName(name.filename().string(), &file)) continue;
    if (!IsStage(file.kind) || file.kind == DumpFile::Kind::kStablehlo) continue;
    modules.staged.insert(StrCat(folder, "/", file.module));
    constexpr std::string_view kBefore = ".before_optimizations";
    if (!file.stage.ends_with(kBefore)) continue;
    const std::string module = file.stage.substr(0, file.stage.size() - kBefore.size());
    modules.before.insert(StrCat(folder, "/", file.module, ".", module));
    modules.before.insert(StrCat(folder, "/", module));
  }
  return modules;
}

// Returns true for a file in a folder of what a module was compiled from and with, called module_NNNN.NAME or
// NAME_TIME, that is no module, or one of which there is a dump of a stage.
bool IsLeftOutOfCompiled(DumpedStages stages, const DumpedModules& modules, const std::filesystem::path& path) {
  const std::string folder = path.parent_path().string(), name = path.filename().string();
  if (!modules.compiled.contains(folder)) return false;
  if (name != "module.mlir") return name.starts_with("compile_options.") || name.starts_with("topology.");
  const size_t time = folder.find_last_not_of("0123456789");
  return stages == DumpedStages::kAfter || modules.before.contains(folder) ||
         (time != std::string::npos && folder[time] == '_' && modules.before.contains(folder.substr(0, time)));
}

// Returns true for a file of a dump without a module, or with one of another stage or that is in other files.
bool IsLeftOut(DumpedStages stages, const DumpedModules& modules, const std::string& folder, const DumpFile& file,
               const std::string& path) {
  if (IsKnownSideFile(file)) return true;
  if (file.kind == DumpFile::Kind::kSnapshot) return modules.staged.contains(StrCat(folder, "/", file.module));
  if (IsStage(file.kind) && !IsSelected(stages, file)) return true;
  if (file.kind == DumpFile::Kind::kStablehlo) return !IsStablehloDump(BeginningOf(path, kMlirBeginning));
  // Texts beside a module are of many kinds.
  return file.kind == DumpFile::Kind::kOther && IsText(path) && (stages != DumpedStages::kAll || !BeginsAsModule(path));
}

// Keeps of the files of dumps those with modules, of the selected stages, and one form of each.
std::vector<std::string> ModulesOfDumps(DumpedStages stages, const std::vector<std::string>& files) {
  std::vector<std::string> kept;
  std::set<std::string> known;
  const DumpedModules modules = ModulesAmong(files);
  for (const std::string& path : files) {
    const std::filesystem::path name(path);
    const std::string folder = name.parent_path().string();
    if (IsLeftOutOfCompiled(stages, modules, name)) continue;
    DumpFile file;
    if (ParseDumpName(name.filename().string(), &file)) {
      if (IsLeftOut(stages, modules, folder, file, path)) continue;
      if (file.kind == DumpFile::Kind::kOther && IsText(path)) {  // a stage whose name tells nothing
        file.kind = DumpFile::Kind::kStage;
        file.stage = file.rest.substr(0, file.rest.rfind('.'));
      }
      const std::string stage = StrCat(folder, "/", file.module, ".", file.stage, " ", static_cast<int>(file.kind));
      if (IsStage(file.kind) && !known.insert(stage).second) continue;
    }
    kept.push_back(path);
  }
  return kept;
}

}  // namespace

bool IsStablehloDump(std::string_view text) {
  if (!LooksLikeStablehlo(text)) return false;
  if (text.starts_with("ML\xefR")) return true;
  for (std::string_view word : {"stablehlo.", "mhlo.", "@main"}) {
    if (text.find(word) != std::string_view::npos) return true;
  }
  return false;
}

std::vector<std::string> FindModuleFiles(const std::vector<std::string>& paths, DumpedStages stages) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    using Iterator = std::filesystem::recursive_directory_iterator;
    const auto options = std::filesystem::directory_options::skip_permission_denied;
    for (Iterator at(path, options, error), end; !error && at != end; at.increment(error)) {
      const std::string inner = at->path().string();
      if (ModuleFormatOfPath(inner) != nullptr && at->is_regular_file(error)) inside.push_back(inner);
    }
    std::sort(inside.begin(), inside.end());
    inside = ModulesOfDumps(stages, inside);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

}  // namespace hlokit
