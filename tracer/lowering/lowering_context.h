// SPDX-License-Identifier: Apache-2.0
// Lowering of one node: its arguments as HLO and attributes, by position in the op's schema, and its results.
#ifndef HLOKIT_TRACER_LOWERING_LOWERING_CONTEXT_H_
#define HLOKIT_TRACER_LOWERING_LOWERING_CONTEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tracer/graph/encoded_args.h"
#include "tracer/graph/op.h"
#include "tracer/lowering/xla_op.h"

namespace hlokit::lazy {

class LoweringContext {
 public:
  // `args` and `operands` must outlive it.
  LoweringContext(XlaEmitter* e, Op op, const EncodedArgs& args, absl::Span<const InstructionId> operands)
      : emitter_(*e), op_(op), args_(args), operands_(operands) {}

  XlaEmitter& emitter() { return emitter_; }
  Op op() const { return op_; }
  const EncodedArgs& args() const { return args_; }
  size_t arg_count() const { return args_.size(); }

  bool has(size_t i) const { return i < args_.size() && args_[i].tag != ArgTag::kNone; }
  bool has_operand(size_t i) const { return i < args_.size() && args_[i].tag == ArgTag::kOperand; }
  // Returns a tensor, or a number that is an operand.
  XlaOp in(size_t i) {
    if (i >= args_.size() || args_[i].tag != ArgTag::kOperand) return emitter_.Fail("missing operand");
    return XlaOp(&emitter_, operands_[args_[i].operand]);
  }
  // Returns a list; members that are None are failed values.
  std::vector<XlaOp> list(size_t i) {
    std::vector<XlaOp> out;
    uint32_t next = args_[i].operand;
    for (int64_t present : args_[i].ints()) {
      out.push_back(present != 0 ? XlaOp(&emitter_, operands_[next++]) : XlaOp(&emitter_, InstructionId()));
    }
    return out;
  }
  Scalar scalar(size_t i) const { return args_[i].scalar(); }
  int64_t int_arg(size_t k) const { return args_[k].scalar().ToInt(); }
  double float_arg(size_t k) const { return args_[k].scalar().ToDouble(); }
  bool bool_arg(size_t k) const { return args_[k].scalar().ToBool(); }
  Dims ints(size_t i) const { return args_[i].tag == ArgTag::kInts ? args_[i].ints() : Dims(); }
  std::vector<double> floats(size_t i) const {
    std::vector<double> out;
    for (size_t k = 0; args_[i].tag == ArgTag::kFloats && k < args_[i].count; ++k) out.push_back(args_[i].float_at(k));
    return out;
  }
  std::string str(size_t i) const { return args_[i].tag == ArgTag::kString ? args_[i].string() : ""; }
  ElementType dtype(size_t i, ElementType none) const {
    return args_[i].tag == ArgTag::kDtype ? args_[i].dtype() : none;
  }

  void Return(XlaOp x) { results_.push_back(x); }
  void Return(XlaOp x, XlaOp y) {
    Return(x);
    Return(y);
  }
  void Return(XlaOp x, XlaOp y, XlaOp z) {
    Return(x, y);
    Return(z);
  }
  std::vector<XlaOp>& results() { return results_; }

 private:
  XlaEmitter& emitter_;
  Op op_;
  const EncodedArgs& args_;
  absl::Span<const InstructionId> operands_;
  std::vector<XlaOp> results_;
};

// Returns the result shapes of `op`, found by lowering it into a temporary computation. Operand shapes may be of any
// context; results are of `context`.
absl::StatusOr<std::vector<Shape>> InferShapesByLowering(Op op, absl::Span<const int64_t> attrs,
                                                         absl::Span<const Shape> operands,
                                                         const std::shared_ptr<Context>& context);

namespace lower {
#define ATEN_OP(id, schema, ir, kernel, lower_name, derivative, ...) void lower_name(LoweringContext&);
#include "tracer/graph/aten_ops.def"
}  // namespace lower

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_LOWERING_LOWERING_CONTEXT_H_
