// SPDX-License-Identifier: Apache-2.0
#include "passes/view/diff_documents.h"

#include <vector>

#include "ir/core/str_cat.h"
#include "passes/diff/diff_causes.h"
#include "passes/view/graph_document.h"

namespace hlokit {
namespace {

GraphDocumentOptions Unchanged(const Module& module, const std::string& file,
                               const std::vector<InstructionId>& counterparts) {
  GraphDocumentOptions options;
  options.file = file;
  options.status.assign(module.instruction_id_bound(), DiffStatus::kSame);
  options.differences.resize(module.instruction_id_bound());
  options.counterparts = counterparts;
  options.counterparts.resize(module.instruction_id_bound());
  return options;
}

}  // namespace

void WriteDiffDocuments(const Module& a, const Module& b, const ModuleDiff& diff, const std::string& file_a,
                        const std::string& file_b, JsonWriter* json) {
  GraphDocumentOptions before = Unchanged(a, file_a, diff.matching.in_b);
  GraphDocumentOptions after = Unchanged(b, file_b, diff.matching.in_a);
  before.other = &b;
  after.other = &a;
  for (const ChangedInstruction& changed : diff.changed) {
    std::string lines;
    for (const std::string& difference : changed.differences) {
      if (!lines.empty()) lines += '\n';
      lines += difference;
    }
    before.status[changed.a.id().value] = after.status[changed.b.id().value] = DiffStatus::kChanged;
    before.differences[changed.a.id().value] = lines;
    after.differences[changed.b.id().value] = std::move(lines);
  }
  for (const Instruction i : diff.added) after.status[i.id().value] = DiffStatus::kAdded;
  for (const Instruction i : diff.removed) before.status[i.id().value] = DiffStatus::kRemoved;
  for (const DiffCause& cause : CausesOf(diff)) {
    after.causes.push_back(StrCat(Counted(cause.pairs, "pair"), ": ", cause.what, ": ", cause.change));
  }
  json->BeginArray();
  WriteGraphDocument(a, before, json);
  WriteGraphDocument(b, after, json);
  json->EndArray();
}

}  // namespace hlokit
