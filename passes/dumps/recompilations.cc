// SPDX-License-Identifier: Apache-2.0
#include "passes/dumps/recompilations.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "io/files/read_file.h"
#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"
#include "ir/digest/fingerprint_diff.h"
#include "parser/formats/parser.h"

namespace hlokit::dump {
namespace {

constexpr size_t kMaxCompared = 20;  // modules of one name
constexpr std::string_view kJaxPrefix = "jax_ir";

struct FirstStage {
  std::string id;
  std::string path;
};

// Returns the first stages of the modules of each name, in the order in which the names begin. What JAX itself wrote of
// modules that XLA dumped too is left out.
std::vector<std::pair<std::string, std::vector<FirstStage>>> ByName(const std::vector<DumpedModule>& modules) {
  const auto is_of_jax = [](const DumpedModule& module) { return module.files.front()->prefix == kJaxPrefix; };
  const bool only_jax = std::all_of(modules.begin(), modules.end(), is_of_jax);
  std::vector<std::pair<std::string, std::vector<FirstStage>>> result;
  for (const DumpedModule& module : modules) {
    if (is_of_jax(module) && !only_jax) continue;
    if (module.stages.empty() || module.stages.front().file == nullptr) continue;
    auto row = std::find_if(result.begin(), result.end(), [&](const auto& r) { return r.first == module.name; });
    if (row == result.end()) row = result.insert(result.end(), {module.name, {}});
    row->second.push_back({std::string(module.id()), module.stages.front().file->path});
  }
  return result;
}

// Returns null if the file cannot be read, which ReadDumpFiles has reported.
std::unique_ptr<Module> ReadStage(const std::string& path, const StageOptions& options,
                                  std::shared_ptr<Context> context) {
  const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source =
      ReadFile(path, options.max_bytes, FileContents::kModule);
  if (!source.ok()) return nullptr;
  DiagnosticSink sink;
  std::unique_ptr<Module> module =
      ParseModulePart(*source, (*source)->text(), options.parse, &sink, std::move(context));
  return module != nullptr && module->entry().valid() ? std::move(module) : nullptr;
}

// Returns the first difference; empty if the programs are the same.
std::string FirstDifference(const Module& before, const Module& after) {
  const Computation a = before.entry(), b = after.entry();
  if (a.parameter_count() != b.parameter_count()) {
    return StrCat("number of parameters: ", a.parameter_count(), ", ", b.parameter_count());
  }
  for (int64_t k = 0; k < a.parameter_count(); ++k) {
    const std::string was = ToString(a.parameter(k).shape(), false), is = ToString(b.parameter(k).shape(), false);
    if (was != is) return StrCat("parameter ", k, ": ", was, ", ", is);
  }
  const FingerprintTable table_a(before, {}), table_b(after, {});
  const FingerprintDiff diff = CompareFingerprints({&before, &table_a}, {&after, &table_b});
  if (diff.same) return "";
  if (!diff.header.empty()) return diff.header.front();
  std::string text = diff.path.empty() ? std::string("the program") : RenderStep(diff.path.back());
  if (!diff.differences.empty()) StrAppend(&text, ": ", diff.differences.front());
  return text;
}

}  // namespace

std::vector<Recompilations> FindRecompilations(const std::vector<DumpedModule>& modules, const StageOptions& options) {
  std::vector<Recompilations> result;
  for (const auto& [name, stages] : ByName(modules)) {
    if (stages.size() < 2) continue;
    Recompilations& found = result.emplace_back();
    found.name = name;
    found.count = stages.size();
    std::unique_ptr<Module> before = ReadStage(stages[0].path, options, nullptr);
    for (size_t k = 1; k < std::min(stages.size(), kMaxCompared); ++k) {
      if (before == nullptr) break;
      std::unique_ptr<Module> after = ReadStage(stages[k].path, options, before->shared_context());
      if (after == nullptr) break;
      found.compared.push_back({stages[k - 1].id, stages[k].id, FirstDifference(*before, *after)});
      before = std::move(after);
    }
    found.left_out = stages.size() > kMaxCompared ? stages.size() - kMaxCompared : 0;
  }
  return result;
}

}  // namespace hlokit::dump
