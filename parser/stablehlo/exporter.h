// SPDX-License-Identifier: Apache-2.0
// The export of one module. Internal to this directory.
//
// A value of tuple shape is a list of values: elements are picked from it, and a `stablehlo.tuple` is made only where
// it is used as a whole. Computations that instructions apply become regions, those that are called private functions.
// No recursion: open regions and functions are frames.
#ifndef HLOKIT_PARSER_STABLEHLO_EXPORTER_H_
#define HLOKIT_PARSER_STABLEHLO_EXPORTER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/module.h"
#include "parser/mlir/module.h"
#include "parser/stablehlo/export.h"

namespace hlokit::stablehlo {

class Exporter {
 public:
  Exporter(const Module& module, DiagnosticSink* sink);
  std::unique_ptr<mlir::Module> Run();

 private:
  using Values = std::vector<mlir::ValueId>;
  using Ints = std::vector<int64_t>;
  struct NamedAttribute {
    std::string_view name;
    mlir::NodeId value;
  };
  using Attributes = std::vector<NamedAttribute>;

  struct Frame {
    Computation computation;
    InstructionId next;
    mlir::RegionId region;
    mlir::BlockId block;
    bool function = false;
    bool unpack = false;                  // the parameter and the result are tuples that are taken apart
    bool outside = false;                 // of a branch: the parameters are values of the frame around it
    std::vector<mlir::RegionId> regions;  // of the instruction `next` so far
  };

  // ---- exporter.cc ----
  absl::Status Step();
  absl::Status OpenFunction(Computation computation);
  absl::Status OpenRegion(Instruction instruction, Computation computation, size_t index);
  absl::Status CloseFrame();
  absl::Status AddFunction(const Frame& frame);
  // The computations that become regions of an instruction.
  std::vector<Computation> RegionsOf(Instruction instruction) const;
  static bool IsApplied(Opcode opcode);
  absl::Status Unsupported(Instruction instruction, std::string_view why = "") const;

  // ---- values ----
  absl::Status BindShape(InstructionId id, mlir::ValueId value, Shape shape, bool unpack);
  // The value of an operand as a whole.
  mlir::ValueId Whole(Instruction operand);
  const Values& Elements(Instruction tuple) const { return elements_[tuple.id().value]; }
  mlir::NodeId TypeOf(Shape shape);
  mlir::NodeId ElementTypeOf(ElementType type);
  mlir::ValueId NewArgument(mlir::BlockId block, mlir::NodeId type);
  Values Emit(std::string_view name, const Values& operands, const Attributes& attributes,
              const std::vector<mlir::NodeId>& results, const std::vector<mlir::RegionId>& regions = {},
              const Attributes& discardable = {});
  Values OperandsOf(Instruction instruction);
  std::vector<mlir::NodeId> ResultTypes(Instruction instruction);
  // Emits an operation whose results are the value of the instruction, or the elements of its tuple.
  absl::Status Define(Instruction instruction, std::string_view name, const Values& operands,
                      const Attributes& attributes = {});

  // ---- export_operations.cc ----
  absl::Status Convert(Instruction instruction);
  absl::Status ConvertWindowed(Instruction instruction);
  absl::Status ConvertCollective(Instruction instruction);
  absl::Status ConvertCustomCall(Instruction instruction);
  absl::Status ConvertConstant(Instruction instruction);
  absl::Status ConvertControlFlow(Instruction instruction);
  Attributes Discardable(Instruction instruction);

  // ---- attributes ----
  mlir::NodeId Dims(absl::Span<const int64_t> values, int64_t width = 64) { return n().DenseArray(values, width); }
  mlir::NodeId I64(int64_t value) { return n().Integer(value, n().IntegerType(64)); }
  mlir::NodeId I32(int64_t value) { return n().Integer(value, n().IntegerType(32)); }
  mlir::NodeId IntegerArray(absl::Span<const int64_t> values);
  // Elements of the sizes, of i64.
  mlir::NodeId Elements64(absl::Span<const int64_t> values, absl::Span<const int64_t> sizes);
  mlir::NodeId Fields(std::string_view name, const std::vector<std::pair<std::string_view, Ints>>& lists,
                      const std::vector<std::pair<std::string_view, int64_t>>& numbers = {});
  void AddPrecision(Instruction instruction, Attributes* attributes, std::string_view dialect = "stablehlo");
  mlir::NodeTable& n() { return out_->nodes; }

  const Module& module_;
  DiagnosticSink* sink_;
  std::unique_ptr<mlir::Module> out_;
  std::vector<Frame> frames_;
  std::vector<mlir::ValueId> values_;   // by InstructionId
  std::vector<Values> elements_;        // by InstructionId, of tuples
  std::vector<std::string> functions_;  // by ComputationId: the name, once it is made
  mlir::BlockId top_block_;
};

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_EXPORTER_H_
