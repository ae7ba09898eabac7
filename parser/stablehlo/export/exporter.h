// SPDX-License-Identifier: Apache-2.0
// The export of one module. Internal to this directory.
//
// A value of tuple shape is a list of values: elements are picked from it, and a `stablehlo.tuple` is made only where
// it is used as a whole. Computations that instructions apply become regions, those that are called private functions.
// No recursion: open regions and functions are frames.
#ifndef HLOKIT_PARSER_STABLEHLO_EXPORT_EXPORTER_H_
#define HLOKIT_PARSER_STABLEHLO_EXPORT_EXPORTER_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/module.h"
#include "parser/mlir/module.h"
#include "parser/stablehlo/export/export.h"
#include "parser/stablehlo/kept_attributes.h"

namespace hlokit::stablehlo {

// The frontend attribute that has the pairs of devices of a transfer.
inline constexpr std::string_view kSourceTargetPairs = "_xla_send_recv_source_target_pairs";

class Exporter {
 public:
  Exporter(const Module& module, DiagnosticSink* sink, const ExportOptions& options);
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
    bool uncalled = false;
    bool unpack = false;                  // the parameter and the result are tuples that are taken apart
    bool outside = false;                 // of a branch: the parameters are values of the frame around it
    std::vector<mlir::RegionId> regions;  // of the instruction `next` so far
  };

  // ---- exporter.cc ----
  absl::Status Step();
  absl::Status OpenFunction(Computation computation);
  absl::Status OpenNextFunction();
  absl::Status OpenRegion(Instruction instruction, Computation computation, size_t index);
  absl::Status CloseFrame();
  // Decides which computations are functions that regions call (export_outlined.cc).
  void FindOutlined();
  // Makes a region of an instruction that calls the function of the computation.
  absl::Status CallInRegion(Instruction instruction, Computation computation, size_t index);
  absl::Status AddFunction(const Frame& frame);
  // The computations that become regions of an instruction.
  std::vector<Computation> RegionsOf(Instruction instruction) const;
  // The computation that a call, a fusion or an asynchronous operation runs.
  static Computation CalledBy(Instruction instruction);
  // Returns true for tuples that are several values: those of one element stay tuples, as reading would give the
  // element.
  static bool IsUnpacked(Shape shape);
  static SourceRange RangeOf(Instruction instruction);
  absl::Status Unsupported(Instruction instruction, std::string_view why = "") const;

  // ---- values ----
  absl::Status BindShape(InstructionId id, mlir::ValueId value, Shape shape, bool unpack);
  // The value of an operand as a whole.
  mlir::ValueId Whole(Instruction operand);
  Values Elements(Instruction tuple);
  mlir::NodeId TypeOf(Shape shape);
  mlir::NodeId ElementTypeOf(ElementType type);
  mlir::ValueId NewArgument(mlir::BlockId block, mlir::NodeId type, mlir::NodeId location = {});
  Values Emit(mlir::OpKind kind, const Values& operands, const Attributes& attributes,
              const std::vector<mlir::NodeId>& results, const std::vector<mlir::RegionId>& regions = {},
              const Attributes& discardable = {}, mlir::NodeId location = {});
  Values OperandsOf(Instruction instruction);
  std::vector<mlir::NodeId> ResultTypes(Instruction instruction);
  // Emits an operation whose results are the value of the instruction, or the elements of its tuple.
  absl::Status Define(Instruction instruction, mlir::OpKind kind, const Values& operands,
                      const Attributes& attributes = {}, const Attributes& discardable = {});

  // As Define, with results of the types: the value of an asynchronous start is that of its done.
  absl::Status DefineAs(Instruction instruction, mlir::OpKind kind, const Values& operands,
                        const Attributes& attributes, const std::vector<mlir::NodeId>& types);
  // The attributes with those that the operation has under the name that HLO gives them (AttributeForm::kNamed).
  Attributes WithNamed(Instruction instruction, mlir::OpKind kind, Attributes attributes);
  // Adds attributes of hlokit that tell reading which get-tuple-elements there are.
  void AddOmitted(Instruction instruction, Attributes* discardable);
  // Adds what HLO has beside the operation: the opcode, and attributes in HLO's text.
  void AddKept(Instruction instruction, absl::Span<const Attr> attrs, Attributes* discardable, bool opcode = true);
  // Returns true if reading gives the operand and the parameter of a branch that captures values as this one does.
  static bool CapturesAlike(Instruction operand, Computation branch);
  // Gives `to` the value of `from`.
  void Forward(Instruction from, Instruction to);

  // ---- export_*.cc: the functions of exports.def ----
  absl::Status Convert(Instruction instruction);
  static mlir::OpKind SimpleKind(Opcode opcode);
  absl::Status DefineCollective(Instruction instruction, mlir::OpKind kind, const Attributes& attributes);
  // A collective operation with a root.
  absl::Status ExportRooted(Instruction instruction, mlir::OpKind kind);
  absl::Status AddDevices(Instruction instruction, Attributes* attributes);
  absl::StatusOr<mlir::NodeId> GroupsOf(Instruction instruction);
  mlir::NodeId ChannelOf(Instruction instruction, int64_t type);
  std::vector<mlir::NodeId> StartedTypes(Instruction instruction);
  // The done of a start, if the only user of the start and of each update is an update or the done.
  static Instruction DoneOf(Instruction start);
  // A transfer that its computation also completes; an error for others.
  absl::Status CheckCompleted(Instruction transfer) const;
  // Emits the start of an operation whose region is `region`, or a region of the operation on its arguments.
  absl::Status DefineStart(Instruction instruction, mlir::OpKind kind, const Attributes& attributes);
  absl::Status EmitStart(Instruction instruction, mlir::RegionId region, const Attributes& kept = {});
  Values DataOf(Instruction data);
  std::vector<mlir::NodeId> DataTypes(Shape data);
  void BindData(Instruction instruction, Shape data, const Values& results);
  Attributes TransferAttributes(Instruction instruction, int64_t host_type);
  absl::Status ExportNothing(Instruction instruction);
  absl::Status ExportAddDependency(Instruction instruction);
  absl::Status ExportStochasticConvert(Instruction instruction);
  absl::Status ExportSimple(Instruction instruction);
  absl::Status ExportForwarded(Instruction instruction);
  absl::Status ExportDone(Instruction instruction);
  absl::Status ExportAfterAll(Instruction instruction);
  absl::Status ExportAllGather(Instruction instruction);
  absl::Status ExportAllReduce(Instruction instruction);
  absl::Status ExportAllToAll(Instruction instruction);
  absl::Status ExportBatchNorm(Instruction instruction);
  absl::Status ExportBitcast(Instruction instruction);
  absl::Status ExportBitcastConvert(Instruction instruction);
  absl::Status ExportBroadcast(Instruction instruction);
  absl::Status ExportCall(Instruction instruction);
  absl::Status ExportCholesky(Instruction instruction);
  absl::Status ExportCollectiveBroadcast(Instruction instruction);
  absl::Status ExportCollectivePermute(Instruction instruction);
  absl::Status ExportCollectiveReduce(Instruction instruction);
  absl::Status ExportCompare(Instruction instruction);
  absl::Status ExportConcatenate(Instruction instruction);
  absl::Status ExportConditional(Instruction instruction);
  absl::Status ExportConstant(Instruction instruction);
  absl::Status ExportCopyStart(Instruction instruction);
  absl::Status ExportCustomCall(Instruction instruction);
  absl::Status ExportDimensionSize(Instruction instruction);
  absl::Status ExportDot(Instruction instruction);
  absl::Status ExportDomain(Instruction instruction);
  absl::Status ExportDynamicReshape(Instruction instruction);
  absl::Status ExportDynamicSlice(Instruction instruction);
  absl::Status ExportFft(Instruction instruction);
  absl::Status ExportGather(Instruction instruction);
  absl::Status ExportGetTupleElement(Instruction instruction);
  absl::Status ExportInfeed(Instruction instruction);
  absl::Status ExportIota(Instruction instruction);
  absl::Status ExportMap(Instruction instruction);
  absl::Status ExportOptimizationBarrier(Instruction instruction);
  absl::Status ExportOutfeed(Instruction instruction);
  absl::Status ExportPad(Instruction instruction);
  absl::Status ExportParameter(Instruction instruction);
  absl::Status ExportRaggedAllToAll(Instruction instruction);
  absl::Status ExportRaggedDot(Instruction instruction);
  absl::Status ExportRecv(Instruction instruction);
  absl::Status ExportReduce(Instruction instruction);
  absl::Status ExportReducePrecision(Instruction instruction);
  absl::Status ExportReduceScatter(Instruction instruction);
  absl::Status ExportReshape(Instruction instruction);
  absl::Status ExportReverse(Instruction instruction);
  absl::Status ExportRng(Instruction instruction);
  absl::Status ExportRngBitGenerator(Instruction instruction);
  absl::Status ExportScan(Instruction instruction);
  absl::Status ExportScatter(Instruction instruction);
  absl::Status ExportSend(Instruction instruction);
  absl::Status ExportSlice(Instruction instruction);
  absl::Status ExportSort(Instruction instruction);
  absl::Status ExportTopK(Instruction instruction);
  absl::Status ExportTranspose(Instruction instruction);
  absl::Status ExportTriangularSolve(Instruction instruction);
  absl::Status ExportTuple(Instruction instruction);
  absl::Status ExportWhile(Instruction instruction);
  absl::Status ExportWindowed(Instruction instruction);

  // ---- attributes ----
  mlir::NodeId Dims(absl::Span<const int64_t> values, int64_t width = 64) { return n().DenseArray(values, width); }
  mlir::NodeId I64(int64_t value) { return n().Integer(value, n().IntegerType(64)); }
  mlir::NodeId I32(int64_t value) { return n().Integer(value, n().IntegerType(32)); }
  mlir::NodeId IntegerArray(absl::Span<const int64_t> values);
  // Elements of the sizes, of i64.
  mlir::NodeId Elements64(absl::Span<const int64_t> values, absl::Span<const int64_t> sizes);
  mlir::NodeId Fields(std::string_view name, const std::vector<std::pair<std::string_view, Ints>>& lists,
                      const std::vector<std::pair<std::string_view, int64_t>>& numbers = {});
  // The accuracy that is asked of an elementwise function; invalid if there is none.
  mlir::NodeId AccuracyOf(Instruction instruction);
  std::string ShardingText(ListId sharding) const;
  void AddPrecision(Instruction instruction, Attributes* attributes, std::string_view dialect = "stablehlo");
  static Ints IntsOf(Instruction instruction, Attr attr);
  // The only dimension of the attribute.
  mlir::NodeId DimensionOf(Instruction instruction);
  // Minor to major.
  static absl::Span<const int64_t> OrderOf(Shape shape);
  // Sorted by their names, each once: of several values the last, as those that are kept come first; of kAttributes the
  // entries of all.
  Attributes WithoutRepeats(Attributes attributes);
  mlir::NodeId Dictionary(const Attributes& attributes);
  // Parses an attribute of the kind; invalid if the text is none.
  mlir::NodeId ParseAttribute(std::string_view text, mlir::NodeKind kind);
  // Adds the entries of a dictionary that `attributes` does not have. Returns false if the text is no dictionary.
  bool AddParsed(std::string_view text, Attributes* attributes);
  // The value of a frontend attribute; nullopt if there is none.
  std::optional<std::string_view> FrontendAttributeOf(std::optional<uint32_t> list, std::string_view name) const;
  // Those of a function that HLO keeps for it.
  void AddFunctionAttributes(Computation computation, size_t results, Attributes* attributes, Attributes* discardable);
  bool HasIotaGroups(Instruction instruction) const;
  // Numbers the instructions that others depend on.
  void FindControlDependencies();
  // Adds the number of an instruction and those of its control predecessors.
  void AddControlDependencies(Instruction instruction, Attributes* attributes);
  // Warns of a dependency between instructions of which one is no operation.
  void ReportLostControlDependencies();
  // Reports the first rule of StableHLO that the program violates, as HLO of mixed precision does.
  bool IsValid();
  // Shardings, frontend attributes.
  Attributes Discardable(Instruction instruction);
  // Of the parameters of a function; invalid if there are none.
  mlir::NodeId ArgumentAttributes(Computation computation);
  // Adds the parts of a tuple's sharding to the attributes of results, of which invalid ones are none.
  void AddResultShardings(std::string_view tuple, std::vector<mlir::NodeId>* of_results);
  Attributes HeaderAttributes();
  // Layouts of the entry that are not the default ones: orders and tiles as XLA has them, and all that these cannot say
  // as text.
  void AddEntryLayout(Attributes* attributes);
  // The orders of the arrays of a shape, nested as it is, or their tiles.
  mlir::NodeId NestedLayout(Shape shape, bool tiles);

  mlir::NodeId LocationOf(Instruction instruction);
  mlir::NodeTable& n() { return out_->nodes; }

  // Returns true for instructions whose value is several values.
  bool IsSplit(Instruction instruction) const;

  const Module& module_;
  const ExportOptions options_;
  DiagnosticSink* sink_;
  std::unique_ptr<mlir::Module> out_;
  std::vector<Frame> frames_;
  std::vector<mlir::ValueId> values_;   // by InstructionId
  std::vector<Values> elements_;        // by InstructionId, of tuples; an invalid element is a tuple of parts_
  std::vector<Values> parts_;           // by InstructionId, of transfers: the arrays of the first element
  std::vector<uint8_t> futures_;        // by InstructionId: 1 for starts whose value is a future
  std::vector<std::string> functions_;  // by ComputationId: the name, once it is made
  std::vector<uint8_t> outlined_;       // by ComputationId: 1 if regions of it call its function
  mlir::BlockId top_block_;
  std::vector<uint32_t> control_ids_;    // by InstructionId, from 1 on; empty if there are no control dependencies
  std::vector<uint8_t> ordered_;         // by InstructionId: 1 once its numbers are written
  SourceRange source_;                   // the place of the instruction that is exported
  std::vector<ComputationId> uncalled_;  // that nothing calls
  size_t next_function_ = 0;             // of these
};

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_EXPORT_EXPORTER_H_
