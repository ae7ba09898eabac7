// SPDX-License-Identifier: Apache-2.0
// The rules for one operation. Internal to this directory.
#ifndef HLOKIT_PARSER_STABLEHLO_VERIFY_VERIFY_RULES_H_
#define HLOKIT_PARSER_STABLEHLO_VERIFY_VERIFY_RULES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "parser/mlir/module.h"
#include "parser/mlir/quantized.h"

namespace hlokit::stablehlo {

// Returns true if a type is one of those of a constraint of operations.def.
bool Satisfies(const mlir::NodeTable& nodes, mlir::TypeConstraint constraint, mlir::NodeId type);

// The functions and meshes of a program, by name.
using Symbols = absl::flat_hash_map<std::string_view, const mlir::Operation*>;

// Methods report violations and return false.
class Rules {
 public:
  using Ints = std::vector<int64_t>;

  Rules(const mlir::Module& program, const mlir::Operation& operation, const Symbols& symbols, DiagnosticSink* sink)
      : m(program), n(program.nodes), op(operation), symbols_(symbols), sink_(sink) {}

  bool CheckTable();
  // The rules of this kind of operation, those of constraints.def.
  bool CheckOperation();
#define RULE(name, function, description) bool function();
#include "parser/stablehlo/verify/rules.def"

 private:
  bool CheckValues(const std::vector<mlir::ValueDefinition>& definitions, absl::Span<const mlir::ValueId> values,
                   std::string_view what);
  bool Fail(std::string message) {
    sink_->Error(DiagnosticKind::kInference, m.range(op), StrCat("'", n.str(op.name), "' op ", message));
    if (in_inference_) {
      in_inference_ = false;
      Fail("failed to infer returned types");
    }
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
  // Compares inferred types of results with those of the text; FailResults says that they differ.
  bool CheckResults(const std::vector<mlir::NodeId>& inferred);
  bool FailResults(const std::vector<mlir::NodeId>& inferred);

  // ---- attributes ----
  Ints List(std::string_view name) const { return n.Integers(m.attribute(op, name)).value_or(Ints()); }
  Ints Field(mlir::NodeId fields, std::string_view name) const {
    return n.Integers(n.Entry(fields, name)).value_or(Ints());
  }
  bool Has(std::string_view name) const { return m.attribute(op, name).valid(); }
  int64_t Int(std::string_view name, int64_t absent = 0) const {
    return n.IntegerValue(m.attribute(op, name)).value_or(absent);
  }

  // ---- parts of rules ----
  // The integers of an operand that is a constant.
  std::optional<Ints> ConstantOf(size_t operand) const;
  std::optional<mlir::QuantizedType> Quantized(mlir::NodeId type) const;
  mlir::NodeId TensorOf(absl::Span<const int64_t> sizes, mlir::NodeId element,
                        absl::Span<const int64_t> bounds = {}) const;
  mlir::NodeId RealElement(mlir::NodeId type) const;
  // Returns true if a value of the type `to` may be declared where `from` is inferred.
  bool ElementsInfer(mlir::NodeId from, mlir::NodeId to) const;
  bool TypesInfer(mlir::NodeId from, mlir::NodeId to) const;
  std::string TypesText(const std::vector<mlir::NodeId>& types) const;
  // The types of operands, then results.
  std::vector<mlir::NodeId> ValueTypes() const;
  const mlir::Block* BlockOf(size_t region) const;
  std::vector<mlir::NodeId> ArgumentTypes(const mlir::Block& block) const;
  std::vector<mlir::NodeId> ReturnedTypes(const mlir::Block& block) const;
  // The region of a reduction of `inputs` with accumulators of the types of `inits`. Arguments may be arrays, whose
  // sizes are some of `allowed`, in order.
  bool CheckReducer(size_t region, const std::vector<mlir::NodeId>& inputs, const std::vector<mlir::NodeId>& inits,
                    const Ints& allowed);
  // Window attributes: those given have as many entries as `count`, and positive ones.
  bool CheckWindow(size_t count, const Ints& sizes, std::string_view base, std::string_view dilation);
  bool CheckPaddingShape();
  bool CheckGroups();
  bool CheckLayouts(const std::vector<mlir::NodeId>& types, mlir::NodeId layouts, std::string_view what);
  bool CheckQuantizedContraction();
  // Whose words messages about lists of dimensions have.
  enum class Words : uint8_t { kGather, kScatter };
  bool FailIn(Words words, std::string message) {
    return words == Words::kGather ? FailInference(message) : Fail(std::move(message));
  }
  bool DimsInRange(const Ints& list, std::string_view name, int64_t limit, std::string_view limit_name, Words words);
  bool Sorted(const Ints& list, std::string_view name, bool ordered, Words words);
  bool Disjoint(const Ints& a, std::string_view a_name, const Ints& b, std::string_view b_name, Words words);

  const mlir::Module& m;
  const mlir::NodeTable& n;
  const mlir::Operation& op;
  const Symbols& symbols_;
  DiagnosticSink* sink_;
  bool in_inference_ = false;  // messages are followed by that of inference
};

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_VERIFY_VERIFY_RULES_H_
