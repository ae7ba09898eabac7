// SPDX-License-Identifier: Apache-2.0
// A difference of two modules for people: a summary, tables, and the instructions as in a unified diff.
#ifndef HLOKIT_PASSES_DIFF_DIFF_TEXT_H_
#define HLOKIT_PASSES_DIFF_DIFF_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/text_writer.h"
#include "passes/diff/diff_causes.h"
#include "passes/diff/module_diff.h"

namespace hlokit {

// A quantity of both modules, such as the operations of a scope.
struct DiffQuantity {
  std::string name;
  double before = 0;
  double after = 0;
  bool is_bytes = false;  // for people: bytes, otherwise a count
};

// Numbers of instructions and their costs in both modules, whole and by scope and opcode. Rows of groups that are equal
// are left out; others come with the largest change first.
struct DiffSummary {
  struct Row {
    std::string key;
    int64_t added = 0, removed = 0, changed = 0;
    int64_t flops_before = 0, flops_after = 0;
    int64_t bytes_before = 0, bytes_after = 0;
  };
  std::vector<DiffQuantity> totals;
  std::vector<Row> by_scope, by_opcode;
  std::vector<DiffCause> causes;
};
DiffSummary Summarize(const Module& a, const Module& b, const ModuleDiff& diff);

struct DiffTextOptions {
  std::string label_a, label_b;
  bool color = false;
  size_t max_instructions = 200;  // listed; the summary counts all
  size_t max_rows = 10;           // of a table
  size_t max_line = 400;          // bytes of an instruction, shortened in the middle
};

// Prints nothing but the summary line if the modules are equal.
void PrintDiff(TextWriter& out, const Module& a, const Module& b, const ModuleDiff& diff, const DiffSummary& summary,
               const DiffTextOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_DIFF_DIFF_TEXT_H_
