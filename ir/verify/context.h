// SPDX-License-Identifier: Apache-2.0
// State shared by the parts of the verifier: the module, facts gathered in the first pass, and reporting.
//
// Two passes. The first (structure.cc) checks each instruction in isolation: ids, operands, attributes, order. Unless
// it finds the module unsafe to traverse, the second (verifier.cc) checks shapes and then runs the check of the opcode,
// if it has one; a check may follow operands, users, callers and callees. Instructions that fail the first pass or
// shape inference are skipped in the second, so that one error yields one report.
#ifndef HLOKIT_IR_VERIFY_CONTEXT_H_
#define HLOKIT_IR_VERIFY_CONTEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/verify/verifier.h"

namespace hlokit::verify_internal {

// Callers of a computation.
struct Callers {
  uint32_t count = 0;  // of all kinds
  uint32_t fusions = 0;
  uint32_t loops = 0;  // while instructions with this body
  uint32_t async_starts = 0;
  InstructionId fusion;  // the first of each
  InstructionId loop;
  InstructionId async_start;
  bool has_forward_operands = false;  // an operand or control predecessor comes after its user
};

// One called computation of one instruction; in the order of the calling computations.
struct CallEdge {
  InstructionId caller;
  ComputationId callee;
};

class VerifierContext {
 public:
  VerifierContext(const Module& module, const VerifierOptions& options, DiagnosticSink* sink);

  const Module& module;
  const VerifierOptions& options;

  bool limit_reached() const { return sink_->limit_reached(); }
  size_t error_count() const { return sink_->error_count(); }
  // Reports a message that continues "`name`: ".
  void Report(Instruction at, DiagnosticKind kind, std::string_view message, std::string hint = "");
  void Report(Computation at, DiagnosticKind kind, std::string_view message);
  void ReportHeader(DiagnosticKind kind, std::string message);

  const Callers& callers(Computation c) const { return callers_[c.id().value]; }
  Callers& callers(ComputationId id) { return callers_[id.value]; }
  bool IsFused(Computation c) const { return callers(c).fusions != 0; }
  bool IsAsync(Computation c) const { return callers(c).async_starts != 0; }

  // Position in a traversal of the module, ascending from 1; 0 before the traversal reaches the instruction.
  uint32_t& position(InstructionId id) { return positions_[id.value]; }
  // Excludes the instruction from the second pass.
  void MarkInvalid(Instruction i) { invalid_[i.id().value] = 1; }
  bool is_invalid(Instruction i) const { return invalid_[i.id().value] != 0; }

  std::vector<CallEdge> call_edges;
  std::vector<InstructionId> async_ops;       // async-start, -update and -done, in order
  std::vector<InstructionId> host_transfers;  // send and recv with the host over a channel
  std::vector<InstructionId> all_reduces;
  std::vector<int64_t> scratch;           // cleared by its users
  uint64_t last_sharding = ~uint64_t{0};  // last sharding and shape found valid, and all of them
  absl::flat_hash_set<uint64_t> sound_shardings;

  bool has_buffer_calls = false;  // custom calls with buffer operands or results, whether or not there are any

  // Returns true if the shape is or contains a buffer.
  bool HoldsBuffer(Shape shape) const { return any_buffers_ && holds_buffer_[shape.id().value] != 0; }
  // Returns true if a layout in `shape` has fields that do not go together (LayoutFault).
  bool HasInvalidLayout(Shape shape) const {
    return any_invalid_layouts_ && has_invalid_layout_[shape.id().value] != 0;
  }
  bool any_buffers() const { return any_buffers_; }

  // Remaining steps of searches that could take quadratic time on adversarial modules.
  int64_t search_budget;

 private:
  DiagnosticSink* sink_;
  std::vector<Callers> callers_;             // by computation
  std::vector<uint32_t> positions_;          // by instruction
  std::vector<uint8_t> invalid_;             // by instruction
  std::vector<uint8_t> has_invalid_layout_;  // by shape
  bool any_invalid_layouts_ = false;
  std::vector<uint8_t> holds_buffer_;  // by shape
  bool any_buffers_ = false;
};

// ---- first pass ----

// sharding.cc and original_value.cc; part of the first pass.
void CheckSharding(VerifierContext& v, Instruction i, ListId sharding);
void CheckOriginalValue(VerifierContext& v, Instruction i, ListId origin);

// Returns false if the module is not safe to traverse.
bool CheckStructure(VerifierContext& v);
// Checks for cycles among instructions of computations with forward operands and among computations, and checks the
// schedule. Returns as CheckStructure.
bool CheckOrder(VerifierContext& v);

// ---- second pass: checks of one instruction, by opcode ----

using InstructionCheck = void (*)(VerifierContext& v, Instruction i);

// attributes.cc
void CheckBroadcast(VerifierContext& v, Instruction i);
void CheckCompare(VerifierContext& v, Instruction i);
void CheckConstant(VerifierContext& v, Instruction i);
void CheckParameter(VerifierContext& v, Instruction i);
// calls.cc
void CheckCall(VerifierContext& v, Instruction i);
void CheckConditional(VerifierContext& v, Instruction i);
void CheckFusion(VerifierContext& v, Instruction i);
void CheckWhile(VerifierContext& v, Instruction i);
void CheckReducerParameters(VerifierContext& v, Instruction i);
// aliasing.cc
void CheckCustomCall(VerifierContext& v, Instruction i);
void CheckFusionAliasing(VerifierContext& v, Instruction i);
void CheckAsyncStartAliasing(VerifierContext& v, Instruction i);
void CheckAsyncUpdateAliasing(VerifierContext& v, Instruction i);
// async.cc
void CheckAsyncOp(VerifierContext& v, Instruction i);
// pairs.cc
void CheckStart(VerifierContext& v, Instruction i);
void CheckDone(VerifierContext& v, Instruction i);
void CheckSendRecv(VerifierContext& v, Instruction i);
// collectives.cc
void CheckGroups(VerifierContext& v, Instruction i);
void CheckAllGather(VerifierContext& v, Instruction i);
void CheckAllReduce(VerifierContext& v, Instruction i);
void CheckAllToAll(VerifierContext& v, Instruction i);
void CheckReduceScatter(VerifierContext& v, Instruction i);
void CheckCollectivePermute(VerifierContext& v, Instruction i);
// layout.cc
void CheckLayouts(VerifierContext& v, Instruction i);
void CheckLayoutFields(VerifierContext& v, Instruction i);  // the shape has an invalid layout

// ---- second pass: checks of the whole module ----

void CheckHeader(VerifierContext& v);       // header.cc
void CheckThreads(VerifierContext& v);      // calls.cc
void CheckAsyncChains(VerifierContext& v);  // async.cc
void CheckChannels(VerifierContext& v);     // pairs.cc
void CheckBuffers(VerifierContext& v);      // buffers.cc

// ---- helpers ----

// Returns true if the shapes are equal under layout_sensitive, else compatible (CompatibleIgnoringDynamism).
bool SameShapes(const VerifierContext& v, Shape a, Shape b);

// Returns the value of a frontend attribute, or nullopt.
std::optional<std::string_view> FrontendAttribute(Instruction i, std::string_view key);

// Returns the text of a shape, truncated: a tuple may have more elements than memory holds.
std::string ShapeText(Shape shape, bool with_layout = false);
// Returns which fields of a layout do not go together, or "". These are the rules of XLA's ValidateLayoutForShape: only
// a sparse layout has a physical shape, and only a dense one has tiles.
std::string LayoutFault(const LayoutRecord& layout);
// Returns true if both arrays have the same layout except for the memory space, or one has none.
bool SameLayoutIgnoringMemorySpace(Shape a, Shape b);
// Returns "{1,0}".
std::string IndexText(absl::Span<const int64_t> index);

}  // namespace hlokit::verify_internal

#endif  // HLOKIT_IR_VERIFY_CONTEXT_H_
