// SPDX-License-Identifier: Apache-2.0
// A hierarchy of the instructions of a module for viewers: scopes of the program, called computations, and sections of
// what has no structure of its own, so that no level has more than a screenful of children.
//
// Nodes are the instructions, numbered in the order of the text, and then the groups. The children of a node are
//   - of the module: the instructions of the entry computation, and groups of computations that several instructions
//     call and of those that none calls;
//   - of an instruction: those of a computation that only this instruction calls, or a group for each of several;
//   - of a scope: instructions whose op_name begins with it. Scopes that all instructions of a computation share are
//     left out, a scope with one child has its place taken by the child. Instructions without an op_name are where
//     their users are, or else their operands;
//   - of a section: neighbors in the text. Sections are about equal and end where few values are live; their names are
//     those of their first and last child.
#ifndef HLOKIT_PASSES_VIEW_GRAPH_GROUPS_H_
#define HLOKIT_PASSES_VIEW_GRAPH_GROUPS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

enum class GroupKind : uint8_t {
  kModule,       // the root
  kComputation,  // a called computation
  kScope,        // of op_name
  kParameters,   // the parameters of a computation
  kSection,      // consecutive children of a group that has too many
  kShared,       // computations with several callers
  kUncalled,     // computations that nothing calls
};
std::string_view ToString(GroupKind kind);

struct GraphGroup {
  GroupKind kind = GroupKind::kScope;
  std::string label;
  ComputationId computation;  // of a computation
};

struct GraphGroups {
  static constexpr int32_t kNone = -1;
  static constexpr size_t kMaxChildren = 50;

  std::vector<InstructionId> instructions;  // by node
  std::vector<int32_t> node_of;             // by InstructionId; kNone if erased
  std::vector<GraphGroup> groups;           // node = instructions.size() + index; the first is the module
  std::vector<int32_t> parent;              // by node; kNone for the module

  int32_t NodeOfGroup(size_t group) const { return static_cast<int32_t>(instructions.size() + group); }
};

// Returns the number of each instruction in the order of the text, by InstructionId; kNone if erased.
std::vector<int32_t> NumberInstructions(const Module& module);

// Nearly linear in the module. The parser's invariants are enough: the module need not verify.
GraphGroups GroupInstructions(const Module& module);

// Splits "jit(f)/transpose(jvp(a/b))/dot" at slashes outside parentheses, at most `limit` parts: the rest is the last.
std::vector<std::string_view> SplitScopes(std::string_view op_name, size_t limit);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_VIEW_GRAPH_GROUPS_H_
