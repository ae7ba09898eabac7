// SPDX-License-Identifier: Apache-2.0
#include "passes/layout/layout_remarks.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "ir/core/str_cat.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/cost.h"
#include "passes/target/minor_to_major.h"
#include "passes/target/tpu_target.h"

namespace hlokit {
namespace {

// Returns "{1,0}".
std::string OrderText(Shape array) {
  if (!array.IsArray() || !array.has_layout()) return "{}";
  std::string text = "{";
  for (int64_t d : array.layout()->minor_to_major) StrAppend(&text, text.size() == 1 ? "" : ",", d);
  return text + "}";
}

bool HasSameOrder(Shape a, Shape b) {
  return a.has_layout() && b.has_layout() && a.layout()->minor_to_major == b.layout()->minor_to_major;
}

// Returns true if a transpose or reshape with these layouts moves no data.
bool MovesNothing(Instruction i) {
  const Shape from = i.operand(0).shape(), to = i.shape();
  if (tpu::HasTiles(from) || tpu::HasTiles(to)) return IsLayoutBitcast(i);
  const absl::Span<const int64_t> in = from.layout()->minor_to_major, out = to.layout()->minor_to_major;
  if (i.opcode() == Opcode::kReshape) {
    return absl::c_is_sorted(in, std::greater<>()) && absl::c_is_sorted(out, std::greater<>());
  }
  const absl::Span<const int64_t> permutation = i.list_attr(Attr::kDimensions);
  if (in.size() != out.size() || permutation.size() != out.size()) return false;
  for (size_t k = 0; k < out.size(); ++k) {
    if (permutation[static_cast<size_t>(out[k])] != in[k]) return false;
  }
  return true;
}

// Returns the user that most likely fixes the layout of the value: one with a preference or a constraint, else the
// first; an invalid instruction if there is none.
Instruction FixingUser(Instruction value) {
  Instruction first;
  for (Instruction user : value.users()) {
    const bool prefers =
        OpcodeSet{Opcode::kDot, Opcode::kConvolution, Opcode::kCustomCall, Opcode::kReduce}.Contains(user.opcode());
    if (prefers) return user;
    if (!first.valid()) first = user;
  }
  return first;
}

void NameUser(Instruction value, Remark* remark) {
  const Instruction user = FixingUser(value);
  if (!user.valid()) {
    remark->Text(" for the caller: it is a result of the computation");
    return;
  }
  remark->Text(" for ").Name("User", user).Text(" (").Text(user.opcode_text()).Text(")");
}

void AddLayouts(Instruction i, Remark* remark) {
  remark->Text(" from ").Value("From", OrderText(i.operand(0).shape()));
  remark->Text(" to ").Value("To", OrderText(i.shape()));
}

class LayoutRemarks {
 public:
  LayoutRemarks(const std::optional<tpu::VectorTile>& tile, RemarkCollector* collector)
      : tile_(tile), collector_(*collector) {}

  void Visit(Instruction i);

 private:
  void VisitCopy(Instruction i);
  void VisitMove(Instruction i);
  void VisitPadding(Instruction i);

  const std::optional<tpu::VectorTile>& tile_;
  RemarkCollector& collector_;
};

void LayoutRemarks::VisitCopy(Instruction i) {
  const Instruction operand = i.operand(0);
  if (!i.shape().IsArray() || HasSameOrder(i.shape(), operand.shape())) return;
  bool is_result = i.is_root();
  for (Instruction user : i.users()) is_result |= user.is_root() && user.opcode() == Opcode::kTuple;
  const bool of_parameter = operand.opcode() == Opcode::kParameter;
  const bool at_border = i.parent().is_entry() && (is_result || of_parameter);
  Remark remark(at_border ? RemarkRule::kEntryLayoutCopy : RemarkRule::kCopyChangesLayout, i);
  remark.Text(" copies ").Name("Operand", operand);
  AddLayouts(i, &remark);
  if (!at_border) {
    NameUser(i, &remark);
  } else if (of_parameter) {
    remark.Text(": the caller passes the parameter so, and the program computes otherwise");
    NameUser(i, &remark);
  } else {
    remark.Text(": the caller takes the result so, and the program computes it otherwise");
  }
  remark.Text("; it moves ").Number("Bytes", BufferBytes(i.shape())).Text(" bytes");
  collector_.Add(std::move(remark));
}

// A transpose or reshape.
void LayoutRemarks::VisitMove(Instruction i) {
  if (!i.shape().IsArray() || !i.shape().has_layout() || !i.operand(0).shape().has_layout()) return;
  if (i.shape().element_count() <= 1) return;
  if (MovesNothing(i)) {
    if (i.opcode() != Opcode::kTranspose) return;
    Remark remark(RemarkRule::kTransposeIsBitcast, i);
    remark.Text(" moves nothing: its result has the memory order of ").Name("Operand", i.operand(0)).Text(",");
    AddLayouts(i, &remark);
    collector_.Add(std::move(remark));
    return;
  }
  Remark remark(i.opcode() == Opcode::kTranspose ? RemarkRule::kTransposeMoves : RemarkRule::kReshapeMoves, i);
  remark.Text(" moves ").Number("Bytes", BufferBytes(i.shape())).Text(" bytes of ").Name("Operand", i.operand(0));
  AddLayouts(i, &remark);
  NameUser(i, &remark);
  collector_.Add(std::move(remark));
}

void LayoutRemarks::VisitPadding(Instruction i) {
  // Arrays that take twice their size, of those that are not tiny.
  constexpr int64_t kMinBytes = int64_t{1} << 16;
  if (!tile_ || !i.shape().IsArray() || HasTrait(i.opcode(), kForwards)) return;
  const int64_t bytes = BufferBytes(i.shape()), padded = tpu::PaddedBytes(*tile_, i.shape());
  if (padded < kMinBytes || padded < 2 * bytes) return;
  Remark remark(RemarkRule::kLayoutPadding, i);
  remark.Text(" takes ").Number("PaddedBytes", padded).Text(" bytes for ").Number("Bytes", bytes);
  remark.Text(": the tiles pad ").Value("Shape", ToString(i.shape(), true));
  collector_.Add(std::move(remark));
}

void LayoutRemarks::Visit(Instruction i) {
  if (i.opcode() == Opcode::kCopy) VisitCopy(i);
  if (OpcodeSet{Opcode::kTranspose, Opcode::kReshape}.Contains(i.opcode())) VisitMove(i);
  if (i.has(Attr::kOperandLayoutConstraints) || i.bool_attr(Attr::kConstrainLayout)) {
    Remark remark(RemarkRule::kLayoutConstrained, i);
    remark.Text(" fixes the layouts of its operands and of its result ").Value("Shape", ToString(i.shape(), true));
    collector_.Add(std::move(remark));
  }
  VisitPadding(i);
}

}  // namespace

void AddLayoutRemarks(const Module& module, const std::optional<tpu::VectorTile>& tile, RemarkCollector* collector) {
  const CallGraph calls(module);
  LayoutRemarks remarks(tile, collector);
  for (Computation c : module.computations()) {
    // The arrays of fusions and of functions of reductions are not stored.
    if (!calls.IsSequential(c) || !calls.IsLive(c)) continue;
    for (Instruction i : c.instructions()) remarks.Visit(i);
  }
}

}  // namespace hlokit
