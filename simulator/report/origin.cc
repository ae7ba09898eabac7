// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/origin.h"

#include <tuple>

#include "ir/core/str_cat.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/cost_key.h"
#include "passes/target/op_class.h"
#include "simulator/report/report.h"

namespace hlokit::tpu {

Shape LeafShape(Shape shape, int64_t leaf) {
  while (shape.IsTuple()) {
    int64_t element = 0;
    while (element < shape.tuple_size() && leaf >= shape.element(element).leaf_count()) {
      leaf -= shape.element(element++).leaf_count();
    }
    if (element == shape.tuple_size()) break;
    shape = shape.element(element);
  }
  return shape;
}

Origins::Origins(const Module* source) {
  if (source == nullptr) return;
  for (Computation c : source->computations()) {
    for (Instruction i : c.instructions()) names_.insert(i.name());
  }
}

std::string Origins::InstructionOf(Instruction i) const {
  const Computation body = i.opcode() == Opcode::kFusion ? i.computation_attr(Attr::kCalls) : Computation();
  if (!body.valid()) return std::string(i.opcode_text());
  Instruction best;
  std::tuple<bool, bool, int64_t> most;
  for (Instruction inner : body.instructions()) {
    if (OpcodeSet{Opcode::kParameter, Opcode::kTuple}.Contains(inner.opcode())) continue;
    const std::tuple<bool, bool, int64_t> size = {names_.contains(inner.name()),
                                                  ClassOf(inner.opcode()) == OpClass::kProduct,
                                                  inner.shape().IsTuple() ? 0 : ByteSize(inner.shape())};
    if (best.valid() && size <= most) continue;
    best = inner;
    most = size;
  }
  if (!best.valid()) return std::string(i.opcode_text());
  return StrCat(best.opcode_text(), " %", best.name());
}

std::string Origins::Of(Instruction i, int64_t leaf) const {
  const Instruction named = ProducerOf(i, leaf);
  std::string text(ScopeOf(named));
  if (const std::string source = SourceOf(named); !source.empty()) StrAppend(&text, text.empty() ? "" : "  ", source);
  return text.empty() ? InstructionOf(i) : text;
}

}  // namespace hlokit::tpu
