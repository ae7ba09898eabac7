// SPDX-License-Identifier: Apache-2.0
// The rules for one operation. Internal to this directory.
#ifndef HLOKIT_PARSER_STABLEHLO_VERIFY_RULES_H_
#define HLOKIT_PARSER_STABLEHLO_VERIFY_RULES_H_

#include <string>
#include <string_view>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "parser/mlir/module.h"

namespace hlokit::stablehlo {

// Returns true if a type is one of those of a constraint of operations.def.
bool Satisfies(const mlir::NodeTable& nodes, mlir::TypeConstraint constraint, mlir::NodeId type);

// Methods report violations and return false.
class Rules {
 public:
  using Ints = std::vector<int64_t>;

  Rules(const mlir::Module& program, const mlir::Operation& operation, DiagnosticSink* sink)
      : m(program), n(program.nodes), op(operation), sink_(sink) {}

  bool CheckTable();
  // The rules of this kind of operation.
  bool CheckOperation();

 private:
  bool CheckValues(const std::vector<mlir::ValueDefinition>& definitions, absl::Span<const mlir::ValueId> values,
                   std::string_view what);
  bool Fail(std::string message) {
    sink_->Error(DiagnosticKind::kInference, m.range(op), StrCat("'", n.str(op.name), "' op ", message));
    return false;
  }
  bool FailInference(std::string_view message) {
    sink_->Error(DiagnosticKind::kInference, m.range(op), std::string(message));
    return Fail("failed to infer returned types");
  }

  // ---- types ----
  mlir::NodeId operand(size_t i) const { return m.type(m.operands_of(op)[i]); }
  mlir::NodeId result(size_t i = 0) const { return m.type(m.result(op, i)); }
  bool IsTensor(mlir::NodeId type) const { return n.kind(type) == mlir::NodeKind::kTensorType; }
  absl::Span<const int64_t> sizes(mlir::NodeId type) const { return n.ints(type); }
  int64_t rank(mlir::NodeId type) const { return static_cast<int64_t>(n.ints(type).size()); }
  mlir::NodeId element(mlir::NodeId type) const { return n.child(type, 0); }
  bool IsStatic(mlir::NodeId type) const;
  bool IsQuantized(mlir::NodeId type) const;
  std::string Text(mlir::NodeId type) const { return mlir::ToText(n, type); }
  static std::string ListText(absl::Span<const int64_t> values);
  static bool SizesAgree(int64_t a, int64_t b) { return a == b || a == mlir::kDynamicSize || b == mlir::kDynamicSize; }
  bool ShapesAgree(absl::Span<const int64_t> a, absl::Span<const int64_t> b) const;
  // Types that differ only in dynamic dimensions, encodings or quantization.
  bool Compatible(mlir::NodeId a, mlir::NodeId b) const;
  bool CompatibleElements(mlir::NodeId a, mlir::NodeId b) const;
  // Compares inferred types of results with those of the text.
  bool CheckResults(const std::vector<mlir::NodeId>& inferred);
  bool CheckShape(absl::Span<const int64_t> inferred);

  // ---- attributes ----
  Ints List(std::string_view name) const { return n.Integers(m.attribute(op, name)).value_or(Ints()); }
  Ints Field(mlir::NodeId fields, std::string_view name) const {
    return n.Integers(n.Entry(fields, name)).value_or(Ints());
  }
  bool Has(std::string_view name) const { return m.attribute(op, name).valid(); }
  int64_t Int(std::string_view name, int64_t absent = 0) const {
    return n.IntegerValue(m.attribute(op, name)).value_or(absent);
  }

  // ---- verify_regions.cc: reductions, windows, scatter ----
  // The region of a reduction of `inputs` with accumulators of the types of `inits`.
  bool CheckReducer(size_t region, const std::vector<mlir::NodeId>& inputs, const std::vector<mlir::NodeId>& inits);
  bool CheckReduce();
  bool CheckReduceWindow();
  bool CheckSelectAndScatter();
  bool CheckScatter();
  // Window attributes: those given have as many entries as `count`, and positive ones.
  bool CheckWindow(size_t count, const Ints& sizes, std::string_view base, std::string_view dilation);
  bool CheckPaddingShape();
  bool CheckWhile();

  // ---- verify_contractions.cc ----
  bool CheckPrecision();
  bool CheckDotGeneral();
  bool CheckConvolution();
  bool CheckAccuracy();

  // ---- verify_devices.cc ----
  bool CheckGroups();
  bool CheckCollective();
  bool CheckPermute();
  bool CheckChannelType();
  bool CheckAllGather();
  bool CheckReduceScatter();

  // ---- verify_movement.cc ----
  bool CheckBroadcastInDim();
  bool CheckBitcastConvert();
  bool CheckReshape();
  bool CheckReverse();

  const mlir::Module& m;
  const mlir::NodeTable& n;
  const mlir::Operation& op;
  DiagnosticSink* sink_;
};

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_VERIFY_RULES_H_
