// SPDX-License-Identifier: Apache-2.0
// The conversion of one program. Internal to this directory.
//
// No recursion: a frame is a computation that is being made, of a function or of a region. An operation with regions,
// or a call, waits until the computations of its callees are complete.
#ifndef HLOKIT_PARSER_STABLEHLO_IMPORT_CONVERTER_H_
#define HLOKIT_PARSER_STABLEHLO_IMPORT_CONVERTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/builder/builder.h"
#include "parser/mlir/module.h"
#include "parser/stablehlo/import/convert.h"
#include "parser/stablehlo/sdy_sharding.h"

namespace hlokit::stablehlo {

// Begins the messages of operations that HLO has, but not with these operands and attributes.
inline constexpr std::string_view kInferenceError = "failed to infer returned types: ";

inline absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

// The frontend attribute that has a sharding of sdy on the way through HLO.
inline constexpr std::string_view kSdySharding = "xla.sdy.sharding";
inline constexpr std::string_view kSdyShardingRule = "xla.sdy.sharding_rule";

class Converter {
 public:
  using Op = mlir::Operation;
  using OpKind = mlir::OpKind;
  using Result = absl::StatusOr<InstructionId>;
  using Operands = absl::Span<const InstructionId>;
  using Attrs = std::vector<AttrValue>;
  using Ints = std::vector<int64_t>;

  Converter(const mlir::Module& program, const ConvertOptions& options, DiagnosticSink* sink,
            std::shared_ptr<Context> context);

  std::unique_ptr<Module> Run();
  // Converts every function only for the errors of inference.
  void Check();

 private:
  enum class FrameKind : uint8_t {
    kFunction,  // a parameter for each argument
    kApply,     // likewise, of a region that is applied to elements
    kBranch,    // one parameter, or none: values from outside
    kLoop,      // one parameter: arguments and values from outside
  };
  struct Frame {
    FrameKind kind;
    ComputationId computation;
    mlir::OperationId op;                                        // the next one
    mlir::OperationId function;                                  // of kFunction
    std::vector<ComputationId> computations;                     // of the regions of `op` so far
    std::vector<std::vector<mlir::ValueId>> captures;            // by regions of `op`; one list for a whole loop
    std::vector<InstructionId> extra_results;                    // of a loop: values from outside
    std::vector<std::pair<mlir::ValueId, InstructionId>> saved;  // values to restore at the end
    bool is_body = true;                                         // of a loop: returns the state
    std::vector<mlir::OperationId> inlined = {};  // operations whose regions are being converted in place
  };

  // ---- check.cc ----
  void OpenForCheck(mlir::OperationId function);
  void CheckStep();
  // Gives the results of an operation that is not converted values of their types.
  void MakeUnknown(const Op& op);
  bool CanCheck(const Op& op);
  // Returns true for static types that HLO has.
  bool IsStatic(mlir::NodeId type);
  void CountUnchecked();

  // ---- converter.cc ----
  void FindFunctions();
  void ReportNoEntry(std::string_view entry);
  // Opens the next function that is converted though nothing calls it. Returns an error, or OK also if there is none.
  absl::Status OpenUncalled();
  absl::Status Step();
  // Gives instructions that have no place in the text yet that of an operation.
  void SetSources(uint32_t offset);
  // Returns the places of the first `count` arguments of a function; fewer of programs that are no text.
  std::vector<uint32_t> ArgumentOffsets(const Op& function, size_t count) const;
  absl::Status OpenFunction(mlir::OperationId function);
  absl::Status OpenRegion(const Op& op, size_t region);
  absl::Status CloseFrame();
  void Bind(mlir::ValueId value, InstructionId id);
  absl::Status PrepareOperands(const Op& op);
  static FrameKind RegionKind(OpKind kind);
  absl::Status Error(const Op& op, std::string_view message) const;

  Frame& frame() { return frames_.back(); }
  Builder b() {
    Builder builder(&module(), frame().computation);
    builder.SetMetadata(metadata_);
    builder.WithBaseNames();
    return builder;
  }
  Module& module() { return *module_; }
  Context& context() { return module_->context(); }
  ShapeTable& shapes() { return module_->context().shapes; }
  const mlir::NodeTable& nodes() const { return program_.nodes; }
  mlir::NodeTable& mutable_nodes() { return const_cast<mlir::NodeTable&>(program_.nodes); }

  // ---- region_captures.cc ----
  // Finds the values that each region uses from outside, but constants that are copied into it. Returns false if the
  // lists of all regions are too long together.
  bool FindCaptures();
  // Those of one region, or of both of a loop. FindCaptures comes first.
  std::vector<mlir::ValueId> CapturesOf(absl::Span<const mlir::RegionId> regions) const;
  bool IsConstant(mlir::ValueId value) const;

  // ---- repeated_conversion.cc ----
  // How the instructions of an operation came from its operands. An operation with equal attributes and types, whose
  // operands have the same shapes, becomes clones of them.
  struct Conversion {
    InstructionId first;  // the instructions: this one and those after it
    uint32_t count = 0;
    uint32_t operand_begin = 0, operand_count = 0;  // in conversion_operands_, operands of the operation
    uint32_t source_begin = 0;                      // in conversion_sources_, operands of the instructions
    uint32_t attr_begin = 0;                        // in conversion_attrs_, the number of each instruction's
    int32_t result = 0;                             // as a source
  };
  // Returns true for operations that become instructions of this computation by attributes and types alone.
  static bool IsRepeatable(const Op& op);
  void RecordConversion(const Op& op, mlir::OperationId key, InstructionId first);
  // Returns false, and adds nothing, if the operation is not as the one recorded.
  bool RepeatConversion(const Op& op, const Conversion& recorded);

  // ---- values ----
  InstructionId operand(const Op& op, size_t i) const { return values_[program_.operands_of(op)[i].value]; }
  std::vector<InstructionId> operands(const Op& op, size_t begin = 0, size_t count = ~size_t{0}) const;
  absl::StatusOr<Shape> ShapeOfType(mlir::NodeId type);
  absl::StatusOr<Shape> ResultShape(const Op& op, size_t i = 0);
  // ---- convert_layouts.cc ----
  // The shape of xla_shape, or with the order of result_layout, if the operation has one of these attributes and it
  // differs from `shape` only in layouts; `shape` otherwise.
  Shape LaidOut(const Op& op, Shape shape);
  // The array with the layout and memory space of a memref; invalid if HLO has none like it.
  Shape BufferLayout(mlir::NodeId memref, Shape array);
  // With the layouts that an attribute of the argument says.
  Shape ShapeOfArgument(const Op& function, size_t argument, Shape shape);
  // A shape in HLO's text; invalid if the text is none.
  Shape ReadShape(std::string_view text);
  // Layouts of the parameters and the result of the entry that attributes of the module or of main say.
  void SetEntryLayout(const Op& main);
  Shape LayoutOf(Shape shape, mlir::NodeId orders, mlir::NodeId tiles);
  Shape LayoutOfMode(Shape shape, mlir::NodeId attributes);
  // The shape of all results: a tuple if there are several.
  absl::StatusOr<Shape> ResultsShape(const Op& op);
  absl::Status SetResult(const Op& op, Result id, size_t i = 0);
  // Of an instruction whose value is a tuple, if the operation has several results (`always_tuple`: also if it has
  // one).
  absl::Status SetResults(const Op& op, Result id, bool always_tuple = false);
  Shape shape_of(InstructionId id) const { return module_->instruction(id).shape(); }
  // Adds an instruction with the shape of the first result.
  Result Make(const Op& op, Opcode opcode, Operands operands, const Attrs& attrs = {});
  absl::Status Emit(const Op& op, Opcode opcode, Operands operands, const Attrs& attrs = {}) {
    return SetResult(op, Make(op, opcode, operands, attrs));
  }
  absl::Status EmitTuple(const Op& op, Opcode opcode, Operands operands, const Attrs& attrs = {});

  // ---- attributes: convert_attributes.cc ----
  mlir::NodeId Attribute(const Op& op, std::string_view name) const { return program_.attribute(op, name); }
  absl::StatusOr<Ints> IntsOf(const Op& op, std::string_view name, bool optional = false) const;
  Ints FieldInts(mlir::NodeId fields, std::string_view name) const;
  int64_t IntOf(const Op& op, std::string_view name, int64_t absent = 0) const;
  std::string_view StringOf(const Op& op, std::string_view name) const;
  // The value of an enum attribute; "" if it is absent.
  std::string_view EnumOf(const Op& op, std::string_view name) const;
  absl::Status AddPrecision(const Op& op, Attrs* attrs);
  absl::Status AddChannel(const Op& op, Attrs* attrs);
  absl::Status AddGroups(const Op& op, Attrs* attrs);
  absl::Status AddMeshGroups(const Op& op, mlir::NodeId groups, Attrs* attrs);
  absl::Status AddGroupList(const Op& op, mlir::NodeId groups, Attrs* attrs);
  absl::Status AddAccuracy(const Op& op, Attrs* attrs);
  absl::Status AddAlgorithm(const Op& op, Attrs* attrs);
  AttrValue List(Attr attr, absl::Span<const int64_t> values) { return {attr, module_->ListPayload(values)}; }
  AttrValue Int(Attr attr, int64_t value) { return {attr, module_->EncodeInt64(value)}; }
  AttrValue String(Attr attr, std::string_view value) { return {attr, context().strings.Intern(value).value}; }
  absl::StatusOr<AttrValue> EnumAttr(const Op& op, std::string_view name, Attr attr, std::string_view prefix = "");
  ComputationId callee(size_t i) { return frame().computations[i]; }
  // Sharding, frontend attributes and layout of an operation, onto its instruction.
  absl::Status Annotate(const Op& op, InstructionId id);
  // Reads an HLO sharding, one of sdy, or a serialized OpSharding.
  absl::StatusOr<ListId> ReadShardingText(std::string_view text);
  absl::Status SetSharding(InstructionId id, std::string_view text);
  // Of sdy: also kept as a frontend attribute, from which writing gives it back.
  absl::Status SetSdySharding(InstructionId id, std::string_view text);
  // Returns the value with a sharding as a constraint: the value itself if there is none, or one that leaves it open.
  // `sharding` may lack what stands before its bracket.
  Result Constrained(InstructionId value, std::string_view sharding);
  // Replaces values by those constrained by the elements of an attribute of shardings, if the operation has it.
  absl::Status ConstrainAll(const Op& op, std::string_view attribute, std::vector<InstructionId>* values);
  // Invalid: none.
  ListId ShardingOf(InstructionId id) const;
  // An element of a tuple, with its part of the tuple's sharding.
  InstructionId Element(InstructionId tuple, int64_t index);
  // A get-tuple-element also of a `tuple`, whose operand it is.
  InstructionId PickElement(InstructionId tuple, int64_t index);
  std::vector<InstructionId> TupledOperands(const Op& op);
  // Returns true for an element of a value of several results that the program had no instruction for before it became
  // StableHLO. Elements of the state of a loop are numbered: its results, the arguments of its body, of its condition.
  bool IsOmitted(const Op& op, size_t element) const;
  // Remembers a value that is an element of a tuple, for which there is no instruction yet.
  void BindElement(mlir::ValueId value, InstructionId tuple, int64_t index) { elements_[value.value] = {tuple, index}; }
  // Makes the instruction of such a value, in the computation of the tuple, if there is none.
  void Materialize(mlir::ValueId value);
  // The value whose elements are the operands of an operation that takes it as a whole; invalid if there is none.
  InstructionId WholeOf(const Op& op);
  // Reads the opcode and the attributes that hlokit keeps. Opcode: kUnknown if there is none.
  Opcode KeptOpcode(const Op& op) const;
  void SetKeptAttributes(const Op& op, InstructionId id);
  // Reads the attributes that the operation has under the name that HLO gives them (Named).
  void SetNamedAttributes(const Op& op, InstructionId id);
  // Remembers a number of an instruction, or its predecessors' (kControlId, kControlPredecessors).
  void RememberControl(std::string_view name, mlir::NodeId value, InstructionId id);
  void SetControlPredecessors();
  // The shardings of results of main that custom calls of @xla.sdy.FuncResultSharding have; several results with one
  // get an instruction of their own. Empty if none has one.
  std::vector<ListId> SdyResultShardings(const Op& op, std::vector<InstructionId>* results);
  // The result of main, or of the body of a loop, with its sharding as XLA gives it one.
  InstructionId ShardedResult(InstructionId value, ListId sharding);
  // Returns the value with the sharding of a result: as XLA's ShardedResult, otherwise a copy if the value is a
  // parameter or has another sharding. `open`: the sharding leaves dimensions open, so that of the value stays.
  InstructionId ResultWithSharding(InstructionId value, ListId sharding, bool open);
  // Sets the sharding of a flat tuple, if an element has one.
  void ShardTuple(InstructionId tuple, const std::vector<ListId>& leaves);
  // A tuple of the values, with their shardings.
  InstructionId MakeShardedTuple(const std::vector<InstructionId>& values);
  // The shardings of the results of an operation; empty if it has none.
  std::vector<ListId> LeavesOf(const Op& op);
  void AddFrontend(InstructionId id, std::string_view key, std::string_view value);
  // Adds an attribute that HLO has no place for to `kept`, if a dialect's prefix says that it is none of the operation.
  struct KeptAttributes {
    Ints names;
    std::vector<mlir::NodeId> values;
  };
  void Keep(std::string_view name, mlir::NodeId value, KeptAttributes* kept);
  // Of the first attribute that is neither one of the operation nor of a dialect.
  void WarnOfAttribute(const Op& op, std::string_view name);
  // Their text; "" if there are none.
  std::string TextOf(const KeptAttributes& kept);
  // Adds a frontend attribute of the module; none if `value` is empty.
  void AddModuleFrontend(std::string_view key, std::string_view value);
  absl::Status FindMeshes();
  absl::Status FindRoundTripMeshes();
  absl::Status SetFrontend(InstructionId id, mlir::NodeId dictionary);
  absl::StatusOr<ListId> FrontendAttributes(mlir::NodeId dictionary);

  // ---- header: convert_header.cc ----
  absl::Status ConvertHeader();
  absl::Status HeaderAttribute(std::string_view key, mlir::NodeId value, KeptAttributes* kept);
  // Attributes of a function and of its results that HLO has no place for: of main on the module, of others on `root`.
  void KeepFunctionAttributes(const Op& function, InstructionId root);
  absl::Status ResultShardings(const Op& function, ComputationId computation);
  void SortAliases();
  // How many results the type of a function says; 0 if it has no type.
  size_t ResultCount(const Op& function) const;
  void NameInstructions();
  // The part of a name after the last `/`, of characters that names may have.
  static std::string CleanName(std::string_view text);
  int64_t StackFrameOf(mlir::NodeId location);
  absl::Status ArgumentAttributes(const Op& function);
  absl::Status TupledArgumentAttributes(const Op& function, mlir::NodeId list);
  void AddAlias(int64_t parameter, absl::Span<const int64_t> index, int64_t output, size_t results);
  std::optional<Ints> ReplicationOf(std::string_view key, mlir::NodeId value, Shape shape) const;
  MetadataId MetadataOf(mlir::NodeId location);
  // The place in the file.
  MetadataId MetadataOfPlace(const Op& op);

  // ---- converters of operations.def ----
  // Operands, results and regions are as many as the row of the operation says.
  absl::Status CheckCounts(const Op& op) const;
  absl::Status Dispatch(const Op& op);
  absl::Status ConvertNone(const Op& op);
  absl::Status ConvertNothing(const Op& op);
  absl::Status ConvertShardingConstraint(const Op& op);
  absl::Status ConvertDataFlowEdge(const Op& op);
  absl::Status ConvertPropagationBarrier(const Op& op);
  absl::Status ConvertShardingGroup(const Op& op);
  absl::Status ConvertReturn(const Op& op);
  // ---- convert_sdy.cc ----
  // Operations whose regions become part of the computation.
  absl::Status ConvertInlined(const Op& op);
  absl::Status ConvertManualComputation(const Op& op);
  absl::Status ConvertInlinedReturn(const Op& op);
  absl::Status ConvertResharding(const Op& op);
  absl::Status ConvertCall(const Op& op);
  absl::Status ConvertComposite(const Op& op);
  absl::Status ConvertConstant(const Op& op);
  absl::Status ConvertConstantLike(const Op& op);
  absl::Status ConvertElementwise(const Op& op);
  absl::Status ConvertExplicit(const Op& op);
  absl::Status ConvertConvert(const Op& op);
  absl::Status ConvertMinMax(const Op& op);
  absl::Status ConvertCompare(const Op& op);
  absl::Status ConvertSelect(const Op& op);
  absl::Status ConvertClamp(const Op& op);
  absl::Status ConvertReducePrecision(const Op& op);
  absl::Status ConvertBitcastConvert(const Op& op);
  absl::Status ConvertBroadcasting(const Op& op);

  absl::Status ConvertIota(const Op& op);
  absl::Status ConvertBroadcastInDim(const Op& op);
  absl::Status ConvertBroadcast(const Op& op);
  absl::Status ConvertReshape(const Op& op);
  absl::Status ConvertTranspose(const Op& op);
  absl::Status ConvertSlice(const Op& op);
  absl::Status ConvertPad(const Op& op);
  absl::Status ConvertDynamicPad(const Op& op);
  absl::Status ConvertConcatenate(const Op& op);
  absl::Status ConvertReverse(const Op& op);
  absl::Status ConvertDynamicSlice(const Op& op);
  absl::Status ConvertRealDynamicSlice(const Op& op);
  absl::Status ConvertGather(const Op& op);
  absl::Status ConvertScatter(const Op& op);
  absl::Status ConvertSort(const Op& op);
  absl::Status ConvertDimensionSize(const Op& op);
  absl::Status ConvertSetDimensionSize(const Op& op);
  absl::Status ConvertTorchIndexSelect(const Op& op);

  absl::Status ConvertDotGeneral(const Op& op);
  absl::Status ConvertDot(const Op& op);
  absl::Status ConvertConvolution(const Op& op);
  absl::Status ConvertDynamicConv(const Op& op);
  absl::Status ConvolutionWithPadding(const Op& op, const Ints& padding);
  absl::Status ConvertReduce(const Op& op);
  absl::Status ConvertReduceWindow(const Op& op);
  absl::Status ConvertSelectAndScatter(const Op& op);
  absl::Status ConvertMap(const Op& op);
  absl::Status ConvertFft(const Op& op);
  absl::Status ConvertCholesky(const Op& op);
  absl::Status ConvertTriangularSolve(const Op& op);
  absl::Status ConvertBatchNorm(const Op& op);
  absl::Status ConvertEinsum(const Op& op);
  absl::Status ConvertRng(const Op& op);
  absl::Status ConvertRngBitGenerator(const Op& op);
  absl::Status ConvertRaggedDot(const Op& op);
  absl::Status ConvertTopK(const Op& op);
  absl::Status ConvertScan(const Op& op);

  absl::Status ConvertTuple(const Op& op);
  absl::Status ConvertGetTupleElement(const Op& op);
  absl::Status ConvertToken(const Op& op);
  absl::Status ConvertOptimizationBarrier(const Op& op);
  absl::Status ConvertInfeed(const Op& op);
  absl::Status ConvertOutfeed(const Op& op);
  absl::Status ConvertSend(const Op& op);
  absl::Status ConvertRecv(const Op& op);
  absl::Status ConvertCustomCall(const Op& op);
  absl::Status ConvertRaggedAllToAll(const Op& op);
  // An operation of CHLO or MHLO that was serialized as a custom call; nullopt if it is none.
  std::optional<absl::Status> ConvertRecomposed(const Op& op);
  absl::Status ConvertApproxTopK(const Op& op);
  // The computations that an operation names.
  absl::StatusOr<std::vector<ComputationId>> CalledComputations(const Op& op) const;
  // A collective that JAX starts and ends in custom calls (convert_async_calls.cc); nullopt if it is none.
  std::optional<absl::Status> ConvertAsyncCall(const Op& op);
  struct ApproxTopK {  // its backend_config
    int64_t k = 0;
    int64_t dimension = 0;
    int64_t size_override = 0;
    double recall = 0;
    bool aggregate = false;
    bool fallback = false;  // sorts everything
  };
  absl::StatusOr<ApproxTopK> ReadApproxTopK(const Op& op) const;
  absl::Status CheckApproxTopKShapes(const Op& op, const ApproxTopK& call, absl::Span<const InstructionId> inputs,
                                     int64_t returned);
  // PartialReduce to `kept` elements, if these are fewer, a sort, and a slice of the `returned` ones.
  absl::Status MakeApproxTopK(const Op& op, const ApproxTopK& call, ComputationId comparison,
                              absl::Span<const InstructionId> inputs, int64_t kept, int64_t returned);
  absl::Status AnnotateTransfer(const Op& op, InstructionId id);
  absl::Status ConvertConditional(const Op& op);
  absl::Status ConvertWhile(const Op& op);
  absl::Status ConvertAsyncStart(const Op& op);
  absl::Status ConvertAsyncDone(const Op& op);

  absl::Status ConvertAllGather(const Op& op);
  absl::Status ConvertAllReduce(const Op& op);
  absl::Status ConvertReduceScatter(const Op& op);
  absl::Status ConvertAllToAll(const Op& op);
  // The parts go from dimension `split` to `concat`.
  absl::Status EmitAllToAll(const Op& op, Attrs attrs, int64_t split, int64_t concat, int64_t count);
  absl::Status ConvertAllToAllOfTuple(const Op& op);
  absl::Status ConvertDomain(const Op& op);
  absl::Status ConvertCollectivePermute(const Op& op);
  absl::Status ConvertCollectiveBroadcast(const Op& op);
  absl::Status ConvertCollectiveReduce(const Op& op);
  absl::Status ConvertCrossReplicaSum(const Op& op);

  absl::Status ConvertAtan(const Op& op);
  absl::Status ConvertSquare(const Op& op);
  absl::Status ConvertConj(const Op& op);
  absl::Status ConvertIsInf(const Op& op);
  absl::Status ConvertSpecialFunction(const Op& op);
  absl::Status EmitSpecialFunction(const Op& op, Operands inputs);

  // ---- constants ----
  absl::StatusOr<Literal> LiteralOf(mlir::NodeId value, Shape shape);
  // The integers of a value that is a constant; nullopt if it is none.
  std::optional<Ints> ConstantInts(mlir::ValueId value) const;
  Result MakeConstant(mlir::NodeId value, Shape shape);
  absl::StatusOr<Ints> WindowList(const Op& op, const Ints& sizes, const Ints& strides, const Ints& padding,
                                  const Ints& base, const Ints& dilation, const Ints& reversal) const;
  // Broadcasts by NumPy's rules, or at the dimensions.
  Result BroadcastTo(InstructionId id, absl::Span<const int64_t> sizes, absl::Span<const int64_t> dimensions);
  // A literal of the module, if the limit on all together admits it.
  absl::StatusOr<LiteralId> AddLiteral(Shape shape, mlir::Blob blob);
  // The elements of a resource that the program has; invalid if their size is not that of the type.
  mlir::NodeId ElementsOfResource(mlir::NodeId value, std::string_view data);
  // The opcode of the row.
  static Opcode OpcodeOf(const Op& op);
  // Returns false for operations that HLO has no place for.
  static bool IsConvertible(const Op& op);

  const mlir::Module& program_;
  const ConvertOptions options_;
  DiagnosticSink* sink_;
  bool warned_of_attributes_ = false;
  std::unique_ptr<Module> module_;
  std::vector<Frame> frames_;
  std::vector<InstructionId> values_;  // by mlir::ValueId
  std::vector<uint8_t> used_;          // by mlir::ValueId: 1 if it has a use, 2 if only shapes of rng are
  absl::flat_hash_map<std::string, mlir::OperationId> functions_;
  absl::flat_hash_map<uint32_t, ComputationId> computations_;  // of functions, by operation
  absl::flat_hash_map<uint32_t, bool> open_functions_;
  absl::flat_hash_set<uint32_t> fused_;  // computations of fusions
  uint32_t placed_ = 0;                  // the first instruction without SetSources
  mlir::OperationId main_;
  std::vector<mlir::OperationId> uncalled_;  // functions that are converted though nothing calls them, the last first
  mlir::OperationId root_;                   // the module of main; invalid: functions without one
  absl::flat_hash_map<uint32_t, std::pair<InstructionId, int64_t>> elements_;  // of BindElement, by mlir::ValueId
  MetadataId metadata_;
  std::pair<size_t, int64_t> place_ = {0, 1};              // an offset in the file, and its line
  absl::flat_hash_map<uint32_t, MetadataId> metadata_of_;  // by location
  absl::flat_hash_map<uint32_t, int32_t> file_names_;      // places in the table, by StringId
  absl::flat_hash_map<uint32_t, int32_t> function_names_;  // also
  std::map<std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t, int32_t>, int32_t> file_locations_;
  std::map<std::pair<int32_t, int32_t>, int32_t> frames_by_caller_;
  SdyMeshes meshes_;
  absl::flat_hash_map<std::string, ListId> sdy_shardings_;  // by their text
  int64_t literal_budget_;                                  // bytes left of options_.max_literal_bytes
  int64_t device_budget_ = 1 << 24;                         // of devices that shardings list one by one
  int64_t regions_ = 0;                                     // named so far
  absl::flat_hash_map<int64_t, InstructionId> control_ids_;
  std::vector<std::pair<InstructionId, mlir::NodeId>> control_successors_;  // with the numbers of their predecessors
  absl::flat_hash_map<uint32_t, mlir::NodeId> resources_;  // of ElementsOfResource, by mlir::NodeId of the value
  std::vector<Shape> known_shapes_;                        // by mlir::NodeId of the type
  // ---- region_captures.cc ----
  std::vector<mlir::ValueId> captures_;                 // of one region after the other, in the order of use
  std::vector<std::pair<size_t, size_t>> captures_of_;  // by mlir::RegionId: its part of captures_
  // ---- repeated_conversion.cc ----
  std::vector<uint32_t> conversion_of_;  // by mlir::OperationId: 1 + the place in conversions_, or 0
  std::vector<Conversion> conversions_;
  std::vector<InstructionId> conversion_operands_;
  std::vector<int32_t> conversion_sources_;  // operands from 0 on, or -1 - the number of an instruction of its own
  std::vector<std::pair<uint32_t, uint16_t>> conversion_attrs_;
  std::vector<InstructionId> repeated_operands_;
  // ---- check.cc ----
  std::vector<uint8_t> static_types_;  // by mlir::NodeId of the type; 2: not known yet
  // Of values and operations, the numbers of those before each that are not static, and of values that are arrays.
  std::vector<uint32_t> dynamic_values_, array_values_, dynamic_operations_;
};

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_IMPORT_CONVERTER_H_
