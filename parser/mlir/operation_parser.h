// SPDX-License-Identifier: Apache-2.0
// Operations, regions and blocks: text -> mlir::Module. Internal to this directory.
#ifndef HLOKIT_PARSER_MLIR_OPERATION_PARSER_H_
#define HLOKIT_PARSER_MLIR_OPERATION_PARSER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parser/mlir/cursor.h"
#include "parser/mlir/module.h"
#include "parser/mlir/node_parser.h"
#include "parser/mlir/parser.h"
#include "parser/text/text_cache.h"

namespace hlokit::mlir {

class OperationParser {
 public:
  OperationParser(std::string_view text, uint32_t base, const MlirOptions& options, Module* module,
                  DiagnosticSink* sink)
      : in_(text, sink, base),
        m_(*module),
        nodes_(&in_, &module->nodes, {options.max_nesting, options.max_literal_bytes, /*have_flags=*/true}),
        options_(options),
        tree_budget_(int64_t{kMaxTreeSize} + kTreeSizeOfByte * static_cast<int64_t>(text.size())),
        names_by_kind_(kOpKindCount) {}

  // Parses the whole text. Returns false after errors.
  bool Run();

 private:
  // What comes after a step of an operation: an error, its end, or a region, after which it goes on.
  enum class Flow : uint8_t { kError, kDone, kRegion };

  struct PendingArgument {
    std::string_view name;
    uint32_t offset;
    NodeId type;
    NodeId location;
  };
  struct OpenOperation {
    const OpDefinition* definition = nullptr;
    StringId name;
    uint32_t offset = 0;
    uint32_t name_size = 0;
    bool generic = false;
    size_t results = 0;  // first ones of this operation on the stacks
    size_t operands = 0;
    size_t attributes = 0;
    size_t regions = 0;
    size_t operand_types = 0;
    size_t result_types = 0;
    size_t directive = 0;  // where the custom form goes on
    int state = 0;         // where a custom syntax goes on
    int64_t number = 0;    // for custom syntaxes
    bool has_types = false;
    OperationId same_as;       // whose attributes and types these are
    uint64_t tree_size = 0;    // of these
    BlockId reducer;           // of `applies`: its operations have the location of this one
    std::string_view tail;     // the text after the operands, to the end of the line or the location
    uint32_t tail_kind = 0;    // in known_tails_
    size_t tail_operands = 0;  // on the stack where the tail begins
    std::vector<BlockId> successors;
    std::vector<PendingArgument> names;  // of the arguments of all regions
  };
  struct OpenRegion {
    RegionId region;
    BlockId block;
    size_t scope = 0;  // names defined before it
  };
  struct ResultName {
    std::string_view name;
    uint32_t offset;
    uint32_t count;
  };
  struct OperandUse {
    ValueId value;  // invalid: its definition has an error
    uint32_t offset;
    uint32_t size;
  };
  struct Definition {
    ValueId first;  // invalid: not defined
    uint32_t count = 0;
    bool failed = false;  // what defines it has an error, so that uses report none
  };
  struct NameKey {
    bool is_number = false;
    uint32_t index = 0;  // in numbered_ or definitions_
  };

  // ---- parser.cc: the file ----
  bool ParseAlias();
  // Replaces the location aliases that stand after their uses.
  void ResolveLocations();
  bool ParseResources();

  // ---- recovery.cc ----
  // After an error in what begins at `start`: goes on at the next operation of the innermost region, or at the next
  // function.
  void Recover(const char* start);
  // Ends all that is open, without errors.
  void GiveUp();
  // The innermost module, or the file, is what goes on.
  void LeaveFunction();
  // Drops the operations that are open in region `keep - 1` and in those after it, which it closes.
  void DropOperations(size_t keep);

  // ---- operation_parser.cc ----
  // Starts the next operation of the innermost region.
  Flow StartOperation();
  Flow Resume();
  Flow GenericHead();
  Flow GenericTail();
  // Adds the operation to its block. `with_location`: a location may follow.
  bool FinishOperation(bool with_location = true);
  // Its parts: each moves what the open operation has on a stack into the module.
  bool MakeOperands(Operation* made);
  void MakeAttributes(Operation* made);
  void MakeRegions(OperationId id, Operation* made);
  void MakeResults(OperationId id, Operation* made);
  // The size of the trees of its attributes and types.
  uint64_t TreeSizeOf(const Operation& made) const;
  void AppendToBlock(OperationId id, Operation* made);
  bool DefineResults(const Operation& made);
  void CloseOperation();
  // ---- operation_tail.cc ----
  // Reads the text after the operands if it is that of an earlier operation whose operands have the same types.
  bool TakeKnownTail();
  // Returns true if the text after the operands ends where the cursor is, so that others may take it.
  bool TailEndsHere();

  bool ParseOperand();
  // `%a, %b`: up to what is not an operand. `required`: at least one.
  bool ParseOperands(bool required);
  bool ParseSuccessors();
  uint64_t TreeSizeOfType(ValueId value) const { return value.valid() ? m_.nodes[m_.type(value)].tree_size : 0; }
  // Takes the size of the trees of an operation from the budget of the program. Reports an error if there is not
  // enough.
  bool TakeFromBudget(uint64_t size, SourceRange range);
  bool HasPropertyOrAttribute(std::string_view name) const;
  bool AddAttribute(std::string_view name, NodeId value, bool inherent);
  bool ParseAttributeDictionary();
  bool ParseTypeList(std::vector<NodeId>* types);
  // `(T, T) -> T`, into the types of the operation.
  bool ParseFunctionType();
  bool SetFunctionType(NodeId type);

  // ---- block_parser.cc: regions, blocks, names of values ----
  // Opens a region after `{`, with the pending arguments.
  void OpenRegionHere();
  Flow OpenedRegion() {
    OpenRegionHere();
    return Flow::kRegion;
  }
  void CloseRegion();
  bool ParseArgument(PendingArgument* argument);
  bool ParseAssignedArgument(PendingArgument* argument);
  bool ParseBlockLabel();
  BlockId BlockNamed(std::string_view label);
  bool ParseLocation(NodeId* location);
  // Where the definition of a name is. Returns false for names that occur nowhere, unless they are added.
  bool FindName(std::string_view name, bool add, NameKey* key);
  Definition& DefinitionAt(NameKey key);
  // Reports an error if the name is defined already.
  void Define(std::string_view name, uint32_t offset, ValueId first, uint32_t count);
  // The definition of the name has an error.
  void DefineFailed(std::string_view name);
  void Unwind(size_t scope);

  // ---- custom_parser.cc ----
  Flow RunFormat();
  bool RunDirective(const Directive& directive);
  bool ParseAttributeValue(const AttributeDefinition& attribute);
  // Values of attributes; invalid after an error.
  NodeId ParseBool();
  NodeId ParseIntegers(int64_t bits);
  NodeId ParsePrecisions();
  NodeId ParseConvolutionNumbers();
  bool SkipOptional(const OpDefinition& definition, size_t* directive);
  bool ParseSameTypes();
  bool ParseArrowTypes();
  bool IntegerList(std::vector<int64_t>* values);
  NodeId ParseKeywordEnum(std::string_view mnemonic);
  NodeId ParseVerbatimAxes(std::string_view name);

  // ---- custom_syntax.cc, custom_regions.cc: a function for each row of custom_syntax.def ----
  Flow RunCustom(Custom custom);
  Flow CustomModule();
  Flow CustomFunc();
  bool FuncSignature();
  Flow CustomReduce();
  bool ReduceOperands(int64_t* pairs);
  bool MakeReducer(OpKind applied);
  Flow CustomWhile();
  Flow CustomScan();
  Flow CustomFor();
  Flow CustomManual(bool named);
  Flow CustomRegions();
  bool CustomValueType();
  bool CustomTo();
  // `of_result`: the type is that of the result; else the result has its element type.
  bool CustomTensorType(bool of_result);
  bool CustomOperandTypes();
  bool CustomTuple();
  bool CustomUi32();
  bool CustomIndirect();
  bool CustomBarrier();
  bool CustomMesh();
  bool CustomDirection();
  bool CustomWindow();
  bool CustomDotDims();
  bool CustomRanges();
  bool CustomBits();
  bool CustomSelect();
  bool CustomComplex();
  bool CustomCallTarget();
  bool SymbolName(std::string* name);

  OpenOperation& op() { return ops_.back(); }
  size_t operand_count() { return operands_.size() - op().operands; }
  NodeId operand_type(size_t i) {
    const ValueId value = operands_[op().operands + i].value;
    return value.valid() ? m_.type(value) : NodeId();
  }
  bool Error(SourceRange range, std::string message) {
    return in_.Error(DiagnosticKind::kUnexpectedToken, range, std::move(message));
  }
  bool ErrorAtOp(std::string message) {
    return in_.Error(DiagnosticKind::kUnexpectedToken, {op().offset, op().name_size}, std::move(message));
  }
  bool ErrorCustom(std::string message) {
    return in_.ErrorHere(StrCat("custom op '", m_.nodes.str(op().name), "' ", message));
  }

  struct KnownTail {
    OperationId operation;
    uint64_t tree_size = 0;  // of its attributes and types
  };

  // Aliases make attributes and types larger than their text. All together may be this much larger than the text of the
  // program, in the units of Node::tree_size, and as large as one tree may be.
  static constexpr int64_t kTreeSizeOfByte = 16;

  Cursor in_;
  Module& m_;
  NodeParser nodes_;
  const MlirOptions options_;
  int64_t tree_budget_;
  std::vector<OpenOperation> ops_;
  std::vector<OpenRegion> regions_;
  std::vector<ResultName> results_;
  std::vector<OperandUse> operands_;
  std::vector<Attribute> attributes_;
  std::vector<RegionId> region_list_;
  std::vector<NodeId> operand_types_;
  std::vector<NodeId> result_types_;
  std::vector<PendingArgument> arguments_;
  bool has_arguments_ = false;  // the pending region has a block even if empty
  TextCache<KnownTail, 1 << 12> known_tails_;
  std::vector<StringId> names_by_kind_;  // of operations, by OpDefinition::row
  std::vector<Definition> numbered_;     // of names that are numbers, as most are
  std::vector<Definition> definitions_;  // of others, by StringId
  std::vector<NameKey> shadowed_;        // names in scope, the innermost last
};

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_OPERATION_PARSER_H_
