// SPDX-License-Identifier: Apache-2.0
// Instrumentations that measure time and statistics, and pass bisection.
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
  // Counts a run. Returns the row of the pass.
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

// Measures the time of each pass, over all its runs.
class TimePasses : public PassInstrumentation {
 public:
  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

  // Returns a table, slowest first.
  std::string Text() const;
  // Returns {"total_ms": 1.5, "passes": [{"pass": "cse", "runs": 2, "changed": 1, "ms": 1.5}]}, in the order of first
  // runs.
  std::string Json() const;

 private:
  struct Row : PassRow {
    double ms = 0;
  };
  PassTable<Row> table_;
  std::chrono::steady_clock::time_point start_;
};

// Collects the counters of each pass, and the change in the number of instructions.
class PassStatistics : public PassInstrumentation {
 public:
  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

  std::string Text() const;
  // Returns [{"pass": "cse", "runs": 2, "changed": 1, "instructions": -3, "counts": {"instructions merged": 3}}].
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

// Runs the first `limit` passes and skips the rest, with a message for each in the style of LLVM's OptBisect. Of the
// last one only `rewrites` rewrites are done, unless that is negative; `rewrite_limit` is that of the pipeline's
// context.
class OptBisect : public PassInstrumentation {
 public:
  OptBisect(int64_t limit, int64_t rewrites, RewriteLimit* rewrite_limit, std::function<void(std::string_view)> write)
      : limit_(limit), rewrites_(rewrites), rewrite_limit_(*rewrite_limit), write_(std::move(write)) {}
  bool ShouldRun(const PassRun& run) override;

 private:
  int64_t limit_, rewrites_;
  RewriteLimit& rewrite_limit_;
  int64_t passes_seen_ = 0;
  std::function<void(std::string_view)> write_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_INSTRUMENTATION_REPORTS_H_
