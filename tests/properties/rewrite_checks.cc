// SPDX-License-Identifier: Apache-2.0
// Judges each rewrite that a pass counts, on the golden modules. Golden files record what a pass makes of a module, and
// `tools/update-golden` writes down whatever it makes; here the result must be right:
//   verifies   the module is still valid
//   values     it returns the same results (module_values.h)
//   again      a second run of the pass finds nothing to do
//   property   what the row of the rewrite states, in the golden test of the pass or in the table (rewrite_table.h)
//
//   rewrite_checks [--list] [--pass=NAME] TABLE PASSES GOLDEN_DIR
//
// Pipelines of RUN lines of hlo-opt run over all modules of their file, and each pass over the example of its
// documentation. Each run of a pass that counts a rewrite is checked. PASSES is the directory of sources that are
// searched for names of rewrites.
//
// Each of these rewrites must be checked on some module, its values and its properties. Of its properties, at least one
// must be false of some module before the pass, so that a pass without effect fails. A row of the table may make an
// exception, with the reason, and must then need it. --list prints what was checked of each rewrite; --pass checks one
// pass alone, and then nothing is missed. Exit code 1 if a check fails.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interp/exact/instruction_evaluator.h"
#include "io/files/read_file.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "passes/annotations/text.h"
#include "passes/core/pipeline.h"
#include "tests/properties/module_values.h"
#include "tests/properties/rewrite_table.h"
#include "tests/properties/verified.h"

namespace hlokit::properties {
namespace {

// What was seen of a row of the table.
struct Coverage {
  std::set<std::string> modules;
  int64_t runs = 0;                    // of passes that counted the rewrite
  int64_t values = 0;                  // those with equal results
  int64_t exact = 0;                   // of these, those that the exact engine evaluated
  std::vector<int64_t> distinguished;  // by property: those of which it is false before the pass
  std::set<std::string> not_run;
};

class Checks {
 public:
  explicit Checks(std::vector<RewriteRow> rows) : rows_(std::move(rows)), coverage_(rows_.size()) {}

  // Checks one run of a pass; `counters`: its counters of this run.
  void Check(const std::string& place, const PassRun& run, const std::vector<Pass::Statistic>& counters,
             const Module& before, const Module& after) {
    ++runs_;
    const std::string where = StrCat(place, ": ", PipelineOf(run));
    const std::string problem = Problems(after);
    Expect(problem.empty(), where, "verifies", problem);
    if (!problem.empty()) return;
    // Edits change values and sizes as the user says, which a second run cannot repeat.
    const bool edits = run.info.name == "replace" || run.info.name == "resize";
    const bool partitioned = IsMarkedPartitioned(after) && !IsMarkedPartitioned(before);
    const ValueComparison values =
        edits         ? ValueComparison{ValueComparison::Outcome::kNotRun, "edits of the user"}
        : partitioned ? ValueComparison{ValueComparison::Outcome::kNotRun, "the program of one device of many"}
                      : CompareValuesOf(before, after, run.info);
    const bool equal = values.outcome == ValueComparison::Outcome::kEqual;
    if (values.outcome == ValueComparison::Outcome::kNotRun) {
      ++not_run_[values.what];
    } else {
      Expect(equal, where, "values", values.what);
    }
    if (!edits) CheckAgain(where, run, after);
    for (const Pass::Statistic& counter : counters) {
      const RewriteRow* row = FindRow(rows_, run.info.name, counter.what);
      if (row == nullptr) {
        Expect(false, where, "property", StrCat("no row for \"", counter.what, "\""));
        continue;
      }
      Coverage& seen = coverage_[static_cast<size_t>(row - rows_.data())];
      seen.modules.insert(place);
      ++seen.runs;
      seen.values += equal ? 1 : 0;
      seen.exact += equal && !values.by_reference ? 1 : 0;
      if (!values.what.empty()) seen.not_run.insert(values.what);
      CheckProperties(where, *row, counter.count, before, after, &seen);
    }
  }

  // Requires coverage of all `names`, but for the exceptions of the table.
  void CheckCoverage(const std::vector<std::string>& names) {
    for (const RewriteRow& row : rows_) {
      const Coverage& seen = coverage_[static_cast<size_t>(&row - rows_.data())];
      const std::string where = StrCat(row.place, ": ", row.pass, ": \"", row.rewrite, "\"");
      Expect(std::binary_search(names.begin(), names.end(), row.rewrite), where, "name", "no pass counts it");
      Expect((seen.runs > 0) == row.not_shown.empty(), where, "shown",
             seen.runs > 0 ? "is shown, contrary to its row" : "no golden module shows it");
      if (seen.runs == 0) continue;
      Expect((seen.values > 0) == row.no_values.empty(), where, "values",
             seen.values > 0 ? "are compared, contrary to its row"
                             : StrCat("are not compared on any module: ", Joined(seen.not_run)));
      for (size_t k = 0; k < row.properties.size(); ++k) {
        const Property& property = row.properties[k];
        if (IsGuard(property)) continue;
        Expect(k < seen.distinguished.size() && seen.distinguished[k] > 0, where, StrCat("`", property.Text(), "`"),
               "holds of all modules before the pass as well");
      }
    }
    for (const std::string& name : names) {
      const bool listed =
          std::any_of(rows_.begin(), rows_.end(), [&](const RewriteRow& row) { return row.rewrite == name; });
      Expect(listed, StrCat("\"", name, "\""), "row", "neither the table nor a golden test has one");
    }
  }

  void List() const {
    for (const RewriteRow& row : rows_) {
      const Coverage& seen = coverage_[static_cast<size_t>(&row - rows_.data())];
      std::printf("%-28s %-52s %3zu modules, %3lld runs, %3lld with values (%lld exact)\n", row.pass.c_str(),
                  row.rewrite.c_str(), seen.modules.size(), static_cast<long long>(seen.runs),
                  static_cast<long long>(seen.values), static_cast<long long>(seen.exact));
    }
  }

  int Report() const {
    std::printf("%lld runs of passes that rewrote something\n", static_cast<long long>(runs_));
    for (const auto& [why, count] : not_run_) {
      std::printf("values not compared, %lld times: %s\n", static_cast<long long>(count), why.c_str());
    }
    for (const RewriteRow& row : rows_) {
      if (!row.not_shown.empty()) std::printf("\"%s\" is not shown: %s\n", row.rewrite.c_str(), row.not_shown.c_str());
      if (!row.no_values.empty()) std::printf("\"%s\" has no values: %s\n", row.rewrite.c_str(), row.no_values.c_str());
    }
    std::printf("%lld passed, %lld failed\n", static_cast<long long>(passed_), static_cast<long long>(failed_));
    return failed_ == 0 ? 0 : 1;
  }

 private:
  static std::string Joined(const std::set<std::string>& texts) {
    std::string joined;
    for (const std::string& text : texts) StrAppend(&joined, joined.empty() ? "" : "; ", text);
    return joined;
  }

  void Expect(bool holds, const std::string& where, std::string_view check, const std::string& what) {
    ++(holds ? passed_ : failed_);
    if (!holds)
      std::printf("%s: %.*s: %s\n", where.c_str(), static_cast<int>(check.size()), check.data(), what.c_str());
  }

  // Returns true for properties that must stay true, and so are true before the pass as well.
  static bool IsGuard(const Property& property) {
    return property.relation == Relation::kNoMore || property.relation == Relation::kSame ||
           property.relation == Relation::kWas || property.Text() == "gone #misordered";
  }

  static std::string PipelineOf(const PassRun& run) { return StrCat(run.info.name, run.pass.options().ToString()); }

  void CheckAgain(const std::string& where, const PassRun& run, const Module& after) {
    absl::StatusOr<Pipeline> pass = Pipeline::Parse(PipelineOf(run));
    Module copy = after.Clone();
    const auto result = pass.ok() ? pass->Run(copy, WithEvaluator()) : pass.status();
    Expect(result.ok() && !result->changed, where, "again",
           result.ok() ? "a second run changes the module" : std::string(result.status().message()));
  }

  void CheckProperties(const std::string& where, const RewriteRow& row, int64_t counter, const Module& before,
                       const Module& after, Coverage* seen) {
    seen->distinguished.resize(row.properties.size(), 0);
    for (size_t k = 0; k < row.properties.size(); ++k) {
      const Property& property = row.properties[k];
      const int64_t was = property.measure.Of(before), is = property.measure.Of(after);
      if (!property.Applies(was, is)) continue;
      Expect(property.Holds(was, is, counter), where, StrCat("\"", row.rewrite, "\" (", counter, ")"),
             StrCat("`", property.Text(), "`: ", was, " before, ", is, " after"));
      seen->distinguished[k] += property.Holds(was, was, counter) ? 0 : 1;
    }
  }

  std::vector<RewriteRow> rows_;
  std::vector<Coverage> coverage_;  // by row
  std::map<std::string, int64_t> not_run_;
  int64_t runs_ = 0, passed_ = 0, failed_ = 0;
};

// Hands each run of a pass that counted something to the checks.
class CheckEach : public PassInstrumentation {
 public:
  CheckEach(Checks* checks, std::string place, std::string_view only)
      : checks_(*checks), place_(std::move(place)), only_(only) {}

  absl::Status RunBeforePass(const PassRun& run, const Module& module) override {
    counted_ = run.pass.statistics();
    before_.emplace(module.Clone());
    return absl::OkStatus();
  }
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override {
    if (!changed || (!only_.empty() && run.info.name != only_)) return absl::OkStatus();
    std::vector<Pass::Statistic> counters;
    for (Pass::Statistic counter : run.pass.statistics()) {
      for (const Pass::Statistic& known : counted_) {
        if (known.what == counter.what) counter.count -= known.count;
      }
      if (counter.count != 0) counters.push_back(counter);
    }
    if (!counters.empty()) checks_.Check(place_, run, counters, *before_, module);
    return absl::OkStatus();
  }

 private:
  Checks& checks_;
  std::string place_;
  std::string_view only_;
  std::vector<Pass::Statistic> counted_;
  std::optional<Module> before_;
};

// Returns the pipelines of the RUN lines of hlo-opt, sorted. Those that do not parse test the error.
std::vector<std::string> PipelinesOf(std::string_view text) {
  std::set<std::string> pipelines;
  for (size_t at = text.find("RUN:"); at != std::string_view::npos; at = text.find("RUN:", at + 1)) {
    std::string_view line = text.substr(at, text.find('\n', at) - at);
    constexpr std::string_view kFlag = "--passes=";
    const size_t flag = line.find(kFlag);
    if (line.find("hlo-opt") == std::string_view::npos || flag == std::string_view::npos) continue;
    line.remove_prefix(flag + kFlag.size());
    const bool quoted = line.starts_with("'");
    if (quoted) line.remove_prefix(1);
    const std::string_view name = line.substr(0, line.find(quoted ? '\'' : ' '));
    if (Pipeline::Parse(name).ok()) pipelines.emplace(name);
  }
  return {pipelines.begin(), pipelines.end()};
}

// Returns the modules of a file, which come after lines `// -----` and, in those for split-file, `//--- NAME`.
std::vector<std::string> ModulesOf(std::string_view text) {
  std::vector<std::string> modules(1);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line == "// -----" || line.starts_with("//--- ")) {
      modules.emplace_back();
    } else {
      StrAppend(&modules.back(), line, "\n");
    }
    at = end + 1;
  }
  return modules;
}

// Runs the pipelines on one module, if it is a valid one.
void CheckModule(const std::string& place, std::string_view text, const std::vector<std::string>& pipelines,
                 std::string_view only, Checks* checks) {
  const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
  if (!module.ok() || !Problems(**module).empty()) return;
  for (const std::string& pipeline_text : pipelines) {
    Module copy = (*module)->Clone();
    ReadMetadataSources(copy);
    CheckEach each(checks, place, only);
    PassInstrumentation* const instruments[] = {&each};
    absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(pipeline_text);
    // A pass may decline a module; what ran before it was checked.
    if (pipeline.ok()) pipeline->Run(copy, WithEvaluator(), instruments).IgnoreError();
  }
}

void CheckFile(const std::string& path, const std::string& name, std::string_view only, Checks* checks) {
  const auto source = ReadFile(path);
  if (!source.ok()) return;
  const std::vector<std::string> pipelines = PipelinesOf((*source)->text());
  if (pipelines.empty()) return;
  int64_t number = 0;
  for (const std::string& text : ModulesOf((*source)->text())) {
    CheckModule(StrCat(name, "#", ++number), text, pipelines, only, checks);
  }
}

int Main(int argc, char** argv) {
  bool list = false;
  std::string_view only;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--list") {
      list = true;
    } else if (argument.starts_with("--pass=")) {
      only = argument.substr(std::string_view("--pass=").size());
    } else {
      paths.emplace_back(argument);
    }
  }
  if (paths.size() != 3) {
    std::fprintf(stderr, "usage: rewrite_checks [--list] [--pass=NAME] TABLE PASSES GOLDEN_DIR\n");
    return 2;
  }
  const auto table = ReadFile(paths[0]);
  absl::StatusOr<std::vector<RewriteRow>> rows =
      table.ok() ? ParseRewriteTable((*table)->text()) : absl::StatusOr<std::vector<RewriteRow>>(table.status());
  if (!rows.ok()) {
    std::fprintf(stderr, "%s: %s\n", paths[0].c_str(), std::string(rows.status().message()).c_str());
    return 2;
  }
  const std::vector<std::string> names = CountedRewrites(paths[1]);
  constexpr size_t kMinNames = 100;
  if (names.size() < kMinNames) {
    std::fprintf(stderr, "rewrite_checks does not find the names of rewrites in %s any more\n", paths[1].c_str());
    return 2;
  }
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(paths[2])) {
    const std::filesystem::path extension = entry.path().extension();
    if (extension == ".hlo" || extension == ".test") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    const auto text = ReadFile(file);
    const absl::Status added = text.ok() ? AddRewritesOfGolden(file, (*text)->text(), &*rows) : text.status();
    if (!added.ok()) {
      std::fprintf(stderr, "%s\n", std::string(added.message()).c_str());
      return 2;
    }
  }
  Checks checks(*std::move(rows));
  for (const std::string& file : files) {
    CheckFile(file, std::filesystem::path(file).lexically_relative(paths[2]).string(), only, &checks);
  }
  for (const PassInfo* pass : PassRegistry::Get().passes()) {
    CheckModule(StrCat("example of ", pass->name), pass->example, {std::string(pass->name)}, only, &checks);
  }
  if (only.empty()) checks.CheckCoverage(names);
  if (list) checks.List();
  return checks.Report();
}

}  // namespace
}  // namespace hlokit::properties

int main(int argc, char** argv) { return hlokit::properties::Main(argc, argv); }
