// SPDX-License-Identifier: Apache-2.0
// Instruments that measure: time, statistics; and the one that stops passes at a number.
#ifndef HLOKIT_PASSES_INSTRUMENTATION_REPORTS_H_
#define HLOKIT_PASSES_INSTRUMENTATION_REPORTS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/core/pass_instrumentation.h"

namespace hlokit {

// A row for each pass, in the order of first runs.
struct PassRow {
  std::string_view name;
  int64_t runs = 0;
  int64_t changed = 0;
};
template <typename Row>
class PassTable {
 public:
  const std::vector<Row>& rows() const { return rows_; }
  // Counts a run; gives the row of the pass.
  Row& CountRun(const PassRun& run, bool changed) {
    Row* row = nullptr;
    for (Row& known : rows_) {
      if (known.name == run.info.name) row = &known;
    }
    if (row == nullptr) {
      row = &rows_.emplace_back();
      row->name = run.info.name;
    }
    ++row->runs;
    row->changed += changed ? 1 : 0;
    return *row;
  }

 private:
  std::vector<Row> rows_;
};

// Time in each pass, over all its runs.
class TimePasses : public PassInstrumentation {
 public:
  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

  // A table, the slowest first.
  std::string Text() const;
  // {"total_ms": 1.5, "passes": [{"pass": "cse", "runs": 2, "changed": 1, "ms": 1.5}]}, in the order of first runs.
  std::string Json() const;

 private:
  struct Row : PassRow {
    double ms = 0;
  };
  PassTable<Row> table_;
  std::chrono::steady_clock::time_point start_;
};

// What each pass did: its counts, and by how many instructions the module grew or shrank under it.
class PassStatistics : public PassInstrumentation {
 public:
  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

  std::string Text() const;
  // [{"pass": "cse", "runs": 2, "changed": 1, "instructions": -3, "counts": {"instructions merged": 3}}]
  std::string Json() const;

 private:
  struct Row : PassRow {
    int64_t instructions = 0;
    std::vector<Pass::Statistic> counts;
  };
  PassTable<Row> table_;
  int64_t instructions_before_ = 0;
  std::vector<Pass::Statistic> counts_before_;
};

// Runs the first `limit` passes and leaves out the rest, saying so for each in the manner of LLVM's bisection.
class OptBisect : public PassInstrumentation {
 public:
  OptBisect(int64_t limit, std::function<void(std::string_view)> write) : limit_(limit), write_(std::move(write)) {}
  bool ShouldRun(const PassRun& run) override;

 private:
  int64_t limit_;
  int64_t passes_seen_ = 0;
  std::function<void(std::string_view)> write_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_INSTRUMENTATION_REPORTS_H_
