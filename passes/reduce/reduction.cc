// SPDX-License-Identifier: Apache-2.0
#include "passes/reduce/reduction.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/core/hashing.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/core/thread_group.h"
#include "ir/ops/opcode_set.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "passes/reduce/module_edits.h"
#include "passes/reduce/reducer.h"

namespace hlokit::reduce {
namespace {

// Returns true for instructions that compute nothing.
bool IsStructural(Opcode opcode) {
  return HasTrait(opcode, kLeaf) || OpcodeSet{Opcode::kTuple, Opcode::kGetTupleElement}.Contains(opcode);
}

// Linear in the module.
ModuleSize SizeOf(const Module& module, const std::string& text, bool count_parameters) {
  ModuleSize size;
  if (count_parameters) size.parameters = module.entry().parameter_count();
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      ++size.instructions;
      if (!IsStructural(i.opcode())) ++size.computing;
      size.bytes = SaturatingAdd(size.bytes, ByteSize(i.shape()));
    }
  }
  size.text = static_cast<int64_t>(text.size());
  return size;
}

// The module after editing targets [begin, end) of the reducer's list.
struct Candidate {
  Module module;
  std::string text;
  ModuleSize size;
  size_t begin = 0, end = 0;
};

class Reduction {
 public:
  Reduction(const InterestingTest& test, const ReductionOptions& options, ReductionResult* result)
      : test_(test), options_(options), result_(*result) {}

  // Runs the reducers until none makes the module smaller.
  absl::Status Run() {
    const Reducers reducers = AllReducers(options_.record ? &values_ : nullptr);
    for (const std::unique_ptr<Reducer>& reducer : reducers) result_.rows.push_back({reducer->name()});
    for (int64_t accepted = -1; accepted != accepted_ && !stopped_;) {
      accepted = accepted_;
      for (size_t k = 0; k < reducers.size() && !stopped_; ++k) {
        // A new context: candidates leave shapes, names and literals in theirs.
        absl::StatusOr<std::unique_ptr<Module>> parsed = ParseModuleText(result_.text);
        if (!parsed.ok()) return parsed.status();
        best_ = *std::move(parsed);
        reducer_ = reducers[k].get();
        values_ = reducer_->uses_values() ? options_.record(*best_) : RecordedValues();
        row_ = &result_.rows[k];
        if (reducer_->search() == Search::kSubsets) {
          SearchSubsets();
        } else {
          SearchAlternatives();
        }
      }
    }
    result_.complete = !stopped_;
    return absl::OkStatus();
  }

 private:
  // Edits targets [begin, end). Returns nullopt unless the result is smaller, verifies, and has not been tested.
  std::optional<Candidate> Edit(size_t begin, size_t end) {
    Candidate candidate{best_->Clone(), {}, {}, begin, end};
    bool changed = false;
    for (size_t k = begin; k < end; ++k) changed |= reducer_->Apply(candidate.module, targets_[k]);
    if (!changed) return std::nullopt;
    CleanUp(candidate.module);
    DiagnosticSink sink;
    VerifyModule(candidate.module, {}, &sink);
    if (sink.error_count() != 0) {
      ++result_.invalid;
      return std::nullopt;
    }
    candidate.text = ToString(candidate.module, PrintOptions::Lossless());
    candidate.size = SizeOf(candidate.module, candidate.text, options_.record != nullptr);
    if (candidate.size >= result_.after) return std::nullopt;
    if (tested_.contains(HashBytes(candidate.text))) {
      ++result_.repeated;
      return std::nullopt;
    }
    return candidate;
  }

  // Tests candidates concurrently. Returns the index of the first interesting one, or their number.
  size_t Test(const std::vector<Candidate>& candidates) {
    std::atomic<size_t> next = 0, first = candidates.size();
    const auto work = [&] {
      for (size_t k = next++; k < first.load(); k = next++) {
        if (!test_(candidates[k].text)) continue;
        size_t seen = first.load();
        while (k < seen && !first.compare_exchange_weak(seen, k)) {
        }
      }
    };
    ThreadGroup threads;
    for (size_t t = 1; t < candidates.size(); ++t) {
      if (!threads.Start(work)) break;  // those that there are test all
    }
    work();
    threads.Join();
    // Counted as if they had been tested one after the other.
    const size_t count = std::min(first.load() + 1, candidates.size());
    for (size_t k = 0; k < count; ++k) tested_.insert(HashBytes(candidates[k].text));
    row_->tests += static_cast<int64_t>(count);
    result_.tests += static_cast<int64_t>(count);
    return first.load();
  }

  // Tests candidates that edit `chunk` targets each, from target `at` on, until one is interesting, which becomes the
  // best module. Returns its targets; nullopt if there is none.
  std::optional<std::pair<size_t, size_t>> TestChunks(size_t at, size_t chunk) {
    while (at < targets_.size()) {
      if ((options_.max_tests >= 0 && result_.tests >= options_.max_tests) || (options_.stop && options_.stop())) {
        stopped_ = true;
        return std::nullopt;
      }
      std::vector<Candidate> batch;
      // As many as would be tested one after the other, and none twice.
      int64_t most = std::max(1, options_.jobs);
      if (options_.max_tests >= 0) most = std::min(most, options_.max_tests - result_.tests);
      const auto in_batch = [&](const std::string& text) {
        return std::any_of(batch.begin(), batch.end(), [&](const Candidate& c) { return c.text == text; });
      };
      while (at < targets_.size() && static_cast<int64_t>(batch.size()) < most) {
        const size_t end = std::min(at + chunk, targets_.size());
        std::optional<Candidate> candidate = Edit(at, end);
        at = end;
        if (!candidate) continue;
        if (in_batch(candidate->text)) {
          ++result_.repeated;
          continue;
        }
        batch.push_back(*std::move(candidate));
      }
      if (batch.empty()) return std::nullopt;
      const size_t first = Test(batch);
      const bool found = first < batch.size();
      if (found) {
        *best_ = std::move(batch[first].module);
        result_.text = std::move(batch[first].text);
        result_.after = batch[first].size;
        ++row_->accepted;
        ++accepted_;
      }
      if (options_.progress) {
        options_.progress({row_->reducer, result_.tests, accepted_, result_.after}, found ? &result_.text : nullptr);
      }
      if (found) return std::pair(batch[first].begin, batch[first].end);
    }
    return std::nullopt;
  }

  void SearchSubsets() {
    targets_ = reducer_->Targets(*best_);
    for (size_t chunk = targets_.size(); chunk >= 1 && !stopped_; chunk /= 2) {
      for (size_t at = 0; at < targets_.size() && !stopped_;) {
        const auto accepted = TestChunks(at, chunk);
        if (!accepted) break;
        targets_.erase(targets_.begin() + static_cast<int64_t>(accepted->first),
                       targets_.begin() + static_cast<int64_t>(accepted->second));
        at = accepted->first;
      }
    }
  }

  void SearchAlternatives() {
    do {
      targets_ = reducer_->Targets(*best_);
    } while (TestChunks(0, 1).has_value());
  }

  const InterestingTest& test_;
  const ReductionOptions& options_;
  ReductionResult& result_;
  std::unique_ptr<Module> best_;  // of result_.text
  RecordedValues values_;         // for reducers that use them
  const Reducer* reducer_ = nullptr;
  ReductionResult::Row* row_ = nullptr;
  std::vector<Target> targets_;
  absl::flat_hash_set<uint64_t> tested_;  // hashes of texts
  int64_t accepted_ = 0;
  bool stopped_ = false;
};

}  // namespace

absl::StatusOr<ReductionResult> Reduce(const Module& module, const InterestingTest& test,
                                       const ReductionOptions& options) {
  ReductionResult result;
  result.text = ToString(module, PrintOptions::Lossless());
  result.before = result.after = SizeOf(module, result.text, options.record != nullptr);
  result.tests = 1;
  if (!test(result.text)) return absl::FailedPreconditionError("the module is not interesting as it is");
  if (const absl::Status status = Reduction(test, options, &result).Run(); !status.ok()) return status;
  return result;
}

}  // namespace hlokit::reduce
