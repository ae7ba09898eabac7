// SPDX-License-Identifier: Apache-2.0
// Remarks: what passes decided about an instruction, by which rule, and what would change it. After LLVM's optimization
// remarks (-Rpass, -Rpass-missed, -Rpass-analysis).
//
// A pass takes the collector of its context, which is null unless somebody asked for remarks:
//
//   if (RemarkCollector* remarks = RemarksFor(context().remarks, RemarkCategory::kFusion)) {
//     Remark remark(RemarkRule::kFused, instruction);
//     remark.Text("reads ").Name("Operand", operand).Text(", ").Number("Bytes", bytes).Text(" bytes");
//     remarks->Add(std::move(remark));
//   }
//
// Remarks keep texts, not ids: the instructions may be erased later.
#ifndef HLOKIT_PASSES_REMARKS_REMARK_H_
#define HLOKIT_PASSES_REMARKS_REMARK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit {

enum class RemarkKind : uint8_t { kPassed, kMissed, kAnalysis };
enum class RemarkCategory : uint8_t { kFusion, kLayout, kSharding, kSchedule, kMemory };
inline constexpr int kRemarkCategoryCount = 5;

enum class RemarkRule : uint8_t {
#define REMARK_RULE(name, id, category, kind, says, advice) k##name,
#include "passes/remarks/remark_rules.def"
};

struct RemarkRuleInfo {
  std::string_view id;  // "duplicates-expensive"
  RemarkCategory category;
  RemarkKind kind;
  std::string_view says;    // what the rule is, a sentence
  std::string_view advice;  // what would change the decision; "" for nothing
};
const RemarkRuleInfo& InfoOf(RemarkRule rule);
// Returns all rules in the order of the table.
absl::Span<const RemarkRuleInfo> RemarkRules();
std::string_view ToString(RemarkKind kind);
std::string_view ToString(RemarkCategory category);

// A part of a message. Keys are those of the YAML form; plain text has the key "String".
struct RemarkArg {
  std::string_view key;
  std::string text;
  enum class Kind : uint8_t { kText, kName, kNumber };
  Kind kind = Kind::kText;
  std::string source = {};  // "model.py:12" of an instruction that is named; "" if it is not known
};

// The neighborhood of a decision, for the stepwise view.
struct RemarkGraph {
  enum class Role : uint8_t { kProducer, kConsumer, kMember, kNeighbor };
  struct Node {
    std::string name;
    std::string text;  // "f32[4] add"
    Role role = Role::kNeighbor;
  };
  std::vector<Node> nodes;
  std::vector<std::pair<uint32_t, uint32_t>> edges;  // of operand and user
  int64_t left_out = 0;                              // neighbors beyond the limit
};
// Collects producer, consumer, the members of the consumer's fusion, and their operands and users.
void BuildRemarkGraph(const Module& module, InstructionId producer, InstructionId consumer,
                      absl::Span<const InstructionId> members, RemarkGraph* graph);

struct Remark {
  // Requires: `instruction` is valid.
  Remark(RemarkRule rule, Instruction instruction);

  Remark& Text(std::string_view text);
  // Appends the name of an instruction. The first that is named is the related instruction.
  Remark& Name(std::string_view key, Instruction other);
  Remark& Number(std::string_view key, int64_t value);
  Remark& Value(std::string_view key, std::string_view value);

  // Returns the message: the name of the instruction, and the parts, with names in backticks.
  std::string Message() const;

  RemarkRule rule;
  std::string_view pass = {};  // that made the remark
  std::string function;        // its computation
  std::string instruction;
  std::string opcode;
  std::string source;        // "model.py:12", or ""
  std::string op_name;       // or ""
  std::string related = {};  // another instruction; "" if there is none
  std::vector<RemarkArg> args = {};
  std::shared_ptr<const RemarkGraph> graph = nullptr;  // if the collector wants graphs
};

// Which remarks are wanted.
struct RemarkFilter {
  uint32_t categories = 0;  // a bit for each category
  uint32_t kinds = 7;       // a bit for each kind
  // Returns true for the texts of the remarks that are wanted; null: all are.
  std::function<bool(std::string_view)> matches;
};

class RemarkCollector {
 public:
  explicit RemarkCollector(RemarkFilter filter) : filter_(std::move(filter)) {}

  bool Wants(RemarkCategory category) const { return (filter_.categories >> static_cast<int>(category) & 1) != 0; }
  bool Wants(RemarkRule rule) const {
    return Wants(InfoOf(rule).category) && (filter_.kinds >> static_cast<int>(InfoOf(rule).kind) & 1) != 0;
  }
  // Whether remarks of fusion have graphs.
  bool wants_graphs() const { return wants_graphs_; }
  void set_wants_graphs(bool wants) { wants_graphs_ = wants; }
  // Sets the pass that later remarks are from. The name must outlive the collector.
  void BeginPass(std::string_view name) { pass_ = name; }
  // Adds a remark, unless the filter excludes it or an equal one of this pass is there.
  void Add(Remark remark);

  // In the order in which they were added.
  const std::vector<Remark>& remarks() const { return remarks_; }

 private:
  RemarkFilter filter_;
  std::string_view pass_;
  bool wants_graphs_ = false;
  std::vector<Remark> remarks_;
};

// Returns the collector if it wants remarks of the category, else null.
inline RemarkCollector* RemarksFor(RemarkCollector* collector, RemarkCategory category) {
  return collector != nullptr && collector->Wants(category) ? collector : nullptr;
}

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REMARKS_REMARK_H_
