// SPDX-License-Identifier: Apache-2.0
// The refinement of one program. Internal to this directory.
//
// The entry is walked once, with the types of its arguments; a function that is called, once for each list of types
// and late constants that it is called with.
#ifndef HLOKIT_PARSER_STABLEHLO_REFINE_REFINER_H_
#define HLOKIT_PARSER_STABLEHLO_REFINE_REFINER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/core/diagnostic.h"
#include "parser/mlir/module.h"
#include "parser/stablehlo/refine/refine.h"
#include "parser/stablehlo/refine/refined_program.h"

namespace hlokit::stablehlo {

class Refiner {
 public:
  Refiner(mlir::Module* program, const RefineOptions& options, DiagnosticSink* sink)
      : m_(*program), options_(options), sink_(sink), numbers_(program->values.size(), kNoNumber) {}

  // `types`: those of the arguments of the entry. Returns false after errors.
  bool Run(mlir::OperationId entry, const std::vector<mlir::NodeId>& types);

 private:
  using Ints = std::vector<int64_t>;
  // Regions in regions, and functions that call functions.
  static constexpr int kMaxDepth = 256;
  static constexpr size_t kMaxOperations = size_t{1} << 24;
  // Of all functions together, those after the first of each.
  static constexpr size_t kMaxVariants = 4096;

  static constexpr uint32_t kNoNumber = ~uint32_t{0};

  // What is known of a value that is passed on.
  struct Known {
    mlir::NodeId type;
    std::optional<Ints> constant;
    bool late = false;
  };
  // A function with types of its arguments.
  struct Variant {
    std::string name;
    RefinedOp op;
    std::vector<Known> results;
    bool open = true;
  };

  // ---- refiner.cc ----
  // Returns null after errors.
  Variant* Refine(mlir::OperationId function, const std::vector<Known>& arguments, SourceRange caller);
  bool WalkRegion(mlir::RegionId region, const std::vector<Known>& arguments, RefinedRegion* out,
                  std::vector<Known>* returned);
  bool WalkOperation(const mlir::Operation& op, RefinedRegion* out);
  bool WalkRegions(const mlir::Operation& op, RefinedOp* made);
  // Calls the variants of the functions that the operation names.
  bool WalkCalls(RefinedOp* made);
  // Returns false if an operand is not defined before the operation.
  bool Copy(const mlir::Operation& op, RefinedOp* made);
  // Returns false if there are branches between blocks, which are not refined.
  bool CheckBlocks(const mlir::Block& block);
  // Arguments that the body of a loop returns as they are keep what is known of the initial values.
  std::vector<Known> LoopState(const mlir::Operation& op, const RefinedOp& made) const;
  void FoldOperation(RefinedOp* made, RefinedRegion* out);
  // Returns false if the operation is an assertion that does not hold, or that is not known; `*holds`: it is one.
  bool CheckAssertion(const RefinedOp& op, bool* holds);
  std::string AssertionMessage(const RefinedOp& op) const;
  void SetResults(const RefinedOp& op, const std::vector<Known>& known);
  void SetFunctionType(RefinedOp* op, const std::vector<Known>& results);
  std::string VariantName(std::string_view function);
  // The file, with the variants of functions in their place.
  bool AddOperations(mlir::BlockId block, RefinedRegion* out);
  void AddVariants(mlir::OperationId function, RefinedRegion* out);
  bool CopyWhole(const mlir::Operation& op, RefinedOp* made);
  void FindReached(const RefinedRegion& region, absl::flat_hash_set<std::string>* reached) const;

  // ---- canonicalize.cc ----
  // Replaces an operation that takes sizes as operands, if all of them are known. Adds operations before it.
  void Canonicalize(RefinedOp* op, RefinedRegion* out);
  // A slice of known size that begins somewhere.
  void CanonicalizeSlice(RefinedOp* op, RefinedRegion* out);
  void CanonicalizeCustomCall(RefinedOp* op);
  void CanonicalizeReduceWindow(RefinedOp* op);
  void DropShapeOperands(RefinedOp* op);
  void SetKind(RefinedOp* op, mlir::OpKind kind, size_t operands);
  void SetAttribute(RefinedOp* op, std::string_view name, mlir::NodeId value);
  void DropAttribute(RefinedOp* op, std::string_view name);
  bool ResultsAreStatic(const RefinedOp& op) const;
  const std::optional<Ints>& ConstantOf(const RefinedOp& op, size_t operand) const {
    return values_[op.operands[operand]].constant;
  }
  // An attribute of elements of i64, of the sizes.
  mlir::NodeId Elements(absl::Span<const int64_t> values, absl::Span<const int64_t> sizes);
  // Of the type of a value.
  mlir::NodeId ConstantElements(const Ints& values, mlir::NodeId type);

  mlir::NodeTable& n() { return m_.nodes; }
  const mlir::NodeTable& n() const { return m_.nodes; }
  mlir::NodeId Attribute(const RefinedOp& op, std::string_view name) const;
  Known KnownOf(uint32_t value) const { return {values_[value].type, values_[value].constant, values_[value].late}; }
  uint32_t NewValue(mlir::NodeId type, mlir::NodeId location = {});
  bool Fail(SourceRange range, std::string message, std::string hint = "");

  mlir::Module& m_;
  const RefineOptions& options_;
  DiagnosticSink* sink_;
  std::vector<RefinedValue> values_;
  std::vector<uint32_t> numbers_;  // by mlir::ValueId: the number in the function that is walked
  std::map<std::string, mlir::OperationId, std::less<>> functions_;
  std::map<std::string, std::unique_ptr<Variant>> variants_;                // by function, types and constants
  absl::flat_hash_map<uint32_t, std::vector<const Variant*>> variants_of_;  // by function, in order
  absl::flat_hash_map<std::string, const Variant*> variants_by_name_;
  absl::flat_hash_set<std::string> names_;                // of functions
  absl::flat_hash_map<std::string, size_t> next_number_;  // by function: of the name of its next variant
  size_t more_variants_ = 0;
  int depth_ = 0;
  size_t operations_ = 0;
  mlir::OperationId entry_;
};

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_REFINE_REFINER_H_
