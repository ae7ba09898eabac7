// SPDX-License-Identifier: Apache-2.0
// Prints the operations of one module. Internal to this directory.
#ifndef HLOKIT_PARSER_MLIR_OPERATION_PRINTER_H_
#define HLOKIT_PARSER_MLIR_OPERATION_PRINTER_H_

#include <string>
#include <string_view>
#include <vector>

#include "parser/mlir/module.h"
#include "parser/mlir/printer.h"
#include "parser/mlir/value_names.h"

namespace hlokit::mlir {

class OperationPrinter {
 public:
  OperationPrinter(const Module& module, const MlirPrintOptions& options, std::string* out)
      : m_(module), options_(options), names_(module), locations_(module.nodes), out_(*out) {}

  void Run();

 private:
  // A list of operations (`op` is invalid), or an operation whose regions are being printed.
  struct Frame {
    BlockId block;
    OperationId next;
    bool labels = false;
    bool at_start = false;
    OperationId op;
    bool generic = false;
    bool open_region = false;
    uint32_t region = 0;   // the next one
    size_t directive = 0;  // where the custom form goes on
    size_t operand = 0;
  };

  // ---- printer.cc ----
  void PushBlocks(RegionId region, bool labels);
  void Step();
  void StartOperation(OperationId id);
  void ResumeOperation();
  void GenericHead(const Operation& op);
  // Return false if a region was opened, which is printed first.
  bool GenericRegions(const Operation& op);
  void OpenRegion(RegionId region, bool labels);
  void CloseRegion();
  void Argument(ValueId value);
  void Operands(absl::Span<const ValueId> values);
  void Dictionary(const std::vector<Attribute>& attributes);
  void Type(NodeId type) { AppendText(m_.nodes, type, &out_); }
  void Types(absl::Span<const ValueId> values);
  void FunctionType(const Operation& op);
  std::vector<ValueId> ResultsOf(const Operation& op) const;

  // ---- custom_printer.cc ----
  // Return false if a region was opened, which is printed first.
  bool RunFormat(const Operation& op);
  void AttributeValue(const Operation& op, const AttributeDefinition& attribute);
  // The attributes that the format has no place for, in braces.
  void AttributeDictionary(const Operation& op, std::string_view keyword = "");
  bool IsDefault(const AttributeDefinition& attribute, NodeId value) const;
  void SameTypes(const Operation& op);
  void IntegerList(const std::vector<int64_t>& values, bool booleans = false);
  // #sdy.sharding<...> as in custom forms, where others are without the outer brackets.
  void Axes(NodeId value);
  // How many operands a name of the definition stands for.
  size_t OperandCount(const Operation& op, size_t index) const;

  // ---- custom_printable.cc ----
  // Returns true if the custom form can say all of the operation: the attributes that it needs are there, in the form
  // it has for them, and the types are those that it leaves out.
  bool CanPrintCustom(const Operation& op) const;
  // The same of the numbers of its operands, results and regions; of an attribute; of a part with a syntax of its own.
  bool HasCountsOfFormat(const Operation& op) const;
  bool CanPrintAttribute(AttributeKind kind, NodeId value) const;
  bool CanPrintSyntax(const Operation& op, Custom custom) const;
  bool CanPrintRanges(const Operation& op) const;
  bool CanPrintFunc(const Operation& op) const;
  bool CanPrintReduce(const Operation& op) const;
  bool CanPrintWhile(const Operation& op) const;
  bool CanPrintBarrier(const Operation& op) const;
  bool CanPrintScan(const Operation& op) const;

  // ---- custom_printer_syntax.cc: a function for each row of custom_syntax.def ----
  bool RunCustom(const Operation& op, Custom custom);
  void SymbolName(const Operation& op);
  void CustomTo(const Operation& op);
  void CustomMesh(const Operation& op);
  void CustomDirection(const Operation& op);
  void CustomBits(const Operation& op);
  void CustomRanges(const Operation& op);
  void CustomSelect(const Operation& op);
  void CustomComplex(const Operation& op);
  void CustomTuple(const Operation& op);
  void CustomBarrier(const Operation& op);
  void CustomCallTarget(const Operation& op);
  void CustomWindow(const Operation& op);
  void CustomDotDims(const Operation& op);
  // With regions: false if one was opened, which is printed first.
  bool CustomModule(const Operation& op);
  bool CustomFunc(const Operation& op);
  bool CustomManual(const Operation& op, bool named);
  bool CustomReduce(const Operation& op);
  bool IsShortReducer(const Operation& op, std::string_view* inner) const;
  bool CustomRegions(const Operation& op);
  bool CustomWhile(const Operation& op);
  bool CustomScan(const Operation& op);

  const Module& m_;
  const MlirPrintOptions options_;
  ValueNames names_;
  LocationNames locations_;
  std::string& out_;
  std::vector<Frame> frames_;
  int indent_ = 0;
};

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_OPERATION_PRINTER_H_
