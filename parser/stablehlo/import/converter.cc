// SPDX-License-Identifier: Apache-2.0
// Functions, regions and operands; convert_*.cc has the operations.
#include "parser/stablehlo/import/converter.h"

#include <algorithm>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/sharding/sharding.h"
#include "parser/stablehlo/kept_attributes.h"

namespace hlokit::stablehlo {

std::unique_ptr<Module> ConvertToHlo(const mlir::Module& program, const ConvertOptions& options, DiagnosticSink* sink,
                                     std::shared_ptr<Context> context) {
  return Converter(program, options, sink, std::move(context)).Run();
}

namespace {

using Handler = absl::Status (Converter::*)(const mlir::Operation&);

std::string MessageOf(const absl::Status& status) {
  const absl::string_view message = status.message();
  return std::string(message.data(), message.size());
}

}  // namespace

Converter::Converter(const mlir::Module& program, const ConvertOptions& options, DiagnosticSink* sink,
                     std::shared_ptr<Context> context)
    : program_(program),
      options_(options),
      sink_(sink),
      module_(context == nullptr ? std::make_unique<Module>() : std::make_unique<Module>(std::move(context))),
      values_(program.values.size()),
      used_(program.values.size(), 0),
      literal_budget_(options.max_literal_bytes),
      conversion_of_(program.operations.size(), 0) {
  for (const Op& op : program.operations) {
    const bool rng = op.kind() == OpKind::kStablehloRng;
    const absl::Span<const mlir::ValueId> operands = program.operands_of(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].valid()) continue;
      uint8_t& used = used_[operands[i].value];
      used = rng && i == 2 ? (used == 0 ? 2 : used) : 1;
    }
  }
  module_->context().Keep(program.source);
}

absl::Status Converter::Dispatch(const Op& op) {
  static constexpr Handler kHandlers[] = {
#define OP(kind, name, operands, attributes, regions, results, format, converter, opcode) \
  &Converter::Convert##converter,
#include "parser/mlir/operations.def"
      &Converter::ConvertNone};
  return (this->*kHandlers[static_cast<size_t>(op.kind())])(op);
}

absl::Status Converter::CheckCounts(const Op& op) const {
  if (op.definition == nullptr) return absl::OkStatus();
  const mlir::OpDefinition& definition = *op.definition;
  if (!definition.operand_counts.Contains(op.operand_count))
    return Error(op, "has another number of operands than it takes");
  if (!definition.result_counts.Contains(op.result_count))
    return Error(op, "has another number of results than it gives");
  if (!definition.region_counts.Contains(op.region_count))
    return Error(op, "has another number of regions than it takes");
  return absl::OkStatus();
}

Opcode Converter::OpcodeOf(const Op& op) {
  static constexpr Opcode kOpcodes[] = {
#define OP(kind, name, operands, attributes, regions, results, format, converter, opcode) Opcode::k##opcode,
#include "parser/mlir/operations.def"
      Opcode::kUnknown};
  return kOpcodes[static_cast<size_t>(op.kind())];
}

bool Converter::IsConvertible(const Op& op) {
  static constexpr std::string_view kConverters[] = {
#define OP(kind, name, operands, attributes, regions, results, format, converter, opcode) #converter,
#include "parser/mlir/operations.def"
      "None"};
  return kConverters[static_cast<size_t>(op.kind())] != "None";
}

absl::Status Converter::Error(const Op& op, std::string_view message) const {
  return absl::InvalidArgumentError(StrCat("'", nodes().str(op.name), "' op ", message));
}

absl::Status Converter::ConvertNone(const Op& op) { return Error(op, "can't be translated to XLA HLO"); }

// ---- functions ----

void Converter::FindFunctions() {
  const auto collect = [&](mlir::RegionId region) {
    for (mlir::BlockId block = program_.block(region); block.valid(); block = program_.blocks[block.value].next) {
      for (mlir::OperationId id = program_.blocks[block.value].first; id.valid(); id = program_.op(id).next) {
        if (program_.kind(id) != OpKind::kFuncFunc) continue;
        functions_.emplace(std::string(StringOf(program_.op(id), "sym_name")), id);
        if (Attribute(program_.op(id), kUncalled).valid()) uncalled_.push_back(id);
      }
    }
  };
  collect(program_.top);
  if (functions_.empty()) {
    const mlir::BlockId block = program_.block(program_.top);
    for (mlir::OperationId id = block.valid() ? program_.blocks[block.value].first : mlir::OperationId(); id.valid();
         id = program_.op(id).next) {
      if (program_.kind(id) != OpKind::kBuiltinModule) continue;
      root_ = id;
      if (program_.op(id).region_count != 0) collect(program_.regions_of(program_.op(id))[0]);
      break;
    }
  }
}

void Converter::ReportNoEntry(std::string_view entry) {
  // In order of names.
  std::vector<std::string> names;
  for (const auto& [name, function] : functions_) names.push_back(name);
  std::sort(names.begin(), names.end());
  const SourceRange range = root_.valid() ? program_.range(program_.op(root_)) : SourceRange{};
  if (!options_.entry.empty()) {
    sink_->Error(DiagnosticKind::kUndefinedComputation, range, StrCat("there is no function `", entry, "`"),
                 DidYouMean(entry, {names.begin(), names.end()}));
    return;
  }
  constexpr size_t kMaxNamed = 3;
  std::string hint;
  for (size_t k = 0; k < std::min(names.size(), kMaxNamed); ++k) StrAppend(&hint, k == 0 ? "" : ", ", "@", names[k]);
  if (names.size() > kMaxNamed) hint += ", ...";
  if (names.size() == 1) hint = StrCat("there is ", hint, "; --entry=", names[0], " makes it the entry computation");
  if (names.size() > 1) hint = StrCat("there are ", hint, "; --entry=NAME chooses the entry computation");
  sink_->Error(DiagnosticKind::kUndefinedComputation, range, "conversion requires module with `main` function", hint);
}

std::unique_ptr<Module> Converter::Run() {
  FindFunctions();
  std::string_view entry = options_.entry.empty() ? std::string_view("main") : options_.entry;
  if (entry.starts_with('@')) entry.remove_prefix(1);
  const auto found = functions_.find(std::string(entry));
  if (found == functions_.end()) {
    ReportNoEntry(entry);
    return nullptr;
  }
  const mlir::OperationId main = main_ = found->second;
  absl::Status status = FindMeshes();
  if (status.ok()) status = OpenFunction(main);
  SourceRange range = program_.range(program_.op(main));
  if (status.ok()) module_->SetEntry(frame().computation);
  while (status.ok() && !frames_.empty()) {
    const mlir::OperationId at = frame().op;
    if (at.valid()) range = program_.range(program_.op(at));
    status = Step();
    SetSources(range.offset);
    if (status.ok() && frames_.empty()) status = OpenUncalled();
  }
  if (status.ok()) SetControlPredecessors();
  if (status.ok()) status = ConvertHeader();
  if (status.ok()) {
    KeepFunctionAttributes(program_.op(main), InstructionId());
    status = ResultShardings(program_.op(main), module_->entry().id());
  }
  if (!status.ok()) {
    sink_->Error(DiagnosticKind::kUnsupported, range, MessageOf(status));
    return nullptr;
  }
  // Callees come before their callers, the entry last.
  std::vector<ComputationId> order;
  for (Computation c : module_->computations()) {
    if (!c.is_entry()) order.push_back(c.id());
  }
  order.push_back(module_->entry().id());
  std::vector<ComputationId> finished;
  finished.reserve(order.size());
  std::vector<uint8_t> done(module_->computation_id_bound(), 0);
  std::vector<std::pair<ComputationId, bool>> stack;
  for (ComputationId root : order) {
    stack.push_back({root, false});
    while (!stack.empty()) {
      const auto [id, leaving] = stack.back();
      stack.pop_back();
      if (leaving) {
        finished.push_back(id);
        continue;
      }
      if (done[id.value] != 0) continue;
      done[id.value] = 1;
      stack.push_back({id, true});
      for (Instruction i : module_->computation(id).instructions()) {
        i.ForEachCallee([&](Computation c) {
          if (done[c.id().value] == 0) stack.push_back({c.id(), false});
        });
      }
    }
  }
  module_->SetComputationOrder(std::move(finished));
  NameInstructions();
  return std::move(module_);
}

void Converter::SetSources(uint32_t offset) {
  for (; placed_ < module_->instruction_id_bound(); ++placed_) {
    const InstructionId id(placed_);
    if (module_->record(id).source_offset == InstructionRecord::kNoSourceOffset) module_->SetSource(id, offset);
  }
}

std::vector<uint32_t> Converter::ArgumentOffsets(const Op& function, size_t count) const {
  std::vector<uint32_t> offsets;
  if (function.offset == SourceRange::kNoOffset || program_.source == nullptr) return offsets;
  const std::string_view text = program_.source->text();
  // The names of the arguments are the first that begin with `%`, in both forms of a function.
  for (size_t at = function.offset; at < text.size() && offsets.size() < count; ++at) {
    if (text[at] == '%') {
      offsets.push_back(static_cast<uint32_t>(at));
    } else if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\';
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    }
  }
  return offsets;
}

absl::Status Converter::OpenUncalled() {
  while (!uncalled_.empty()) {
    const mlir::OperationId id = uncalled_.back();
    uncalled_.pop_back();
    if (!computations_.contains(id.value)) return OpenFunction(id);
  }
  return absl::OkStatus();
}

absl::Status Converter::OpenFunction(mlir::OperationId id) {
  const Op& function = program_.op(id);
  const std::string_view name = StringOf(function, "sym_name");
  const mlir::BlockId block =
      function.region_count == 0 ? mlir::BlockId() : program_.block(program_.regions_of(function)[0]);
  if (!block.valid()) return Error(function, StrCat("@", name, " has no body"));
  Frame opened{FrameKind::kFunction,
               module_->AddComputation(module_->UniqueComputationName(name)),
               program_.blocks[block.value].first,
               id,
               {},
               {},
               {},
               {},
               true};
  const mlir::NodeId thread = Attribute(function, "execution_thread");
  if (thread.valid() && nodes().kind(thread) == mlir::NodeKind::kString) {
    module_->SetExecutionThread(opened.computation, context().strings.Intern(nodes().text(thread)));
  }
  computations_[id.value] = opened.computation;
  open_functions_[id.value] = true;
  frames_.push_back(std::move(opened));
  module_->SetSource(frame().computation, function.offset);
  const mlir::Block& entry = program_.blocks[block.value];
  const std::vector<uint32_t> offsets = ArgumentOffsets(function, entry.argument_count);
  const bool main = frame().function == main_;
  if (main && options_.use_tuple_args) {
    std::vector<Shape> elements;
    for (uint32_t i = 0; i < entry.argument_count; ++i) {
      absl::StatusOr<Shape> shape = ShapeOfType(program_.type(program_.argument(entry, i)));
      if (!shape.ok()) return shape.status();
      elements.push_back(*shape);
    }
    const Result tuple = b().Parameter(0, shapes().Tuple(elements), "arg_tuple");
    if (!tuple.ok()) return tuple.status();
    for (uint32_t i = 0; i < entry.argument_count; ++i) Bind(program_.argument(entry, i), b().MakeElement(*tuple, i));
    return ArgumentAttributes(function);
  }
  for (uint32_t i = 0; i < entry.argument_count; ++i) {
    const mlir::ValueId argument = program_.argument(entry, i);
    absl::StatusOr<Shape> shape = ShapeOfType(program_.type(argument));
    if (!shape.ok()) return shape.status();
    *shape = ShapeOfArgument(function, i, *shape);
    // The name of the argument in the location, if it has one.
    std::string parameter = StrCat("Arg_", i);
    const mlir::NodeId location = program_.values[argument.value].location;
    metadata_ = MetadataId();
    if (location.valid() && nodes().kind(location) == mlir::NodeKind::kNameLocation) {
      if (std::string cleaned = CleanName(nodes().text(location)); !cleaned.empty()) parameter = std::move(cleaned);
      metadata_ = MetadataOf(location);
    } else if (!options_.as_xla) {
      metadata_ = MetadataOf(location);
    }
    const Result made = b().Parameter(i, *shape, parameter);
    if (!made.ok()) return made.status();
    if (i < offsets.size()) module_->SetSource(*made, offsets[i]);
    Bind(argument, *made);
  }
  return ArgumentAttributes(function);
}

// ---- regions ----

Converter::FrameKind Converter::RegionKind(OpKind kind) {
  if (kind == OpKind::kStablehloIf || kind == OpKind::kStablehloCase) return FrameKind::kBranch;
  if (kind == OpKind::kStablehloWhile) return FrameKind::kLoop;
  return FrameKind::kApply;
}

void Converter::Bind(mlir::ValueId value, InstructionId id) {
  frame().saved.push_back({value, values_[value.value]});
  values_[value.value] = id;
}

absl::Status Converter::OpenRegion(const Op& op, size_t index) {
  const FrameKind kind = RegionKind(op.kind());
  // The body of a loop comes before its condition, as XLA has it.
  const mlir::BlockId id = program_.block(program_.regions_of(op)[kind == FrameKind::kLoop ? 1 - index : index]);
  if (!id.valid()) return Error(op, "has an empty region");
  const mlir::Block& block = program_.blocks[id.value];
  if (index == 0) frame().captures.clear();
  std::vector<mlir::ValueId> captures;
  if (kind == FrameKind::kBranch || (kind == FrameKind::kLoop && index == 0)) {
    if (!FindCaptures()) return Error(op, "is in a program whose nested regions use too many values from outside");
    const absl::Span<const mlir::RegionId> regions = program_.regions_of(op);
    frame().captures.push_back(CapturesOf(kind == FrameKind::kLoop ? regions : regions.subspan(index, 1)));
    // Each must be a value of this computation.
    for (mlir::ValueId value : frame().captures.back()) {
      Materialize(value);
      if (!values_[value.value].valid()) return Error(op, "uses a value that is not defined before it");
    }
  }
  if (kind != FrameKind::kApply) captures = frame().captures.back();
  std::vector<Shape> elements;
  if (kind != FrameKind::kBranch) {
    // The state of a loop has the layouts of its results.
    const absl::StatusOr<Shape> state = kind == FrameKind::kLoop && op.result_count != 0 ? ResultsShape(op) : Shape();
    for (uint32_t i = 0; i < block.argument_count; ++i) {
      absl::StatusOr<Shape> shape = ShapeOfType(program_.type(program_.argument(block, i)));
      if (!shape.ok()) return shape.status();
      elements.push_back(*shape);
      if (!state.ok() || !state->valid() || i >= op.result_count) continue;
      const Shape result = op.result_count == 1 ? *state : state->element(i);
      if (result.WithoutLayout() == shape->WithoutLayout()) elements.back() = result;
    }
  }
  const std::string name =
      op.kind() == OpKind::kSdyManualComputation ? "xla.sdy.manual_computation_body" : StrCat("region_", regions_++);
  Frame opened{kind,        module_->AddComputation(module_->UniqueComputationName(name)),
               block.first, mlir::OperationId(),
               {},          {},
               {},          {},
               true};
  opened.is_body = kind != FrameKind::kLoop || index == 0;
  if (kind != FrameKind::kApply) {
    for (mlir::ValueId value : captures) elements.push_back(shape_of(values_[value.value]));
  }
  frames_.push_back(std::move(opened));
  if (!options_.as_xla) metadata_ = MetadataId();  // that of an operation before the region
  if (kind == FrameKind::kApply) {
    for (uint32_t i = 0; i < block.argument_count; ++i) {
      if (!options_.as_xla) metadata_ = MetadataOf(program_.values[program_.argument(block, i).value].location);
      const Result parameter = b().Parameter(i, elements[i], StrCat("Arg_", i));
      if (!parameter.ok()) return parameter.status();
      Bind(program_.argument(block, i), *parameter);
    }
    return absl::OkStatus();
  }
  // One value is the parameter itself, several are in a tuple.
  const bool tuple = elements.size() != 1;
  const Result parameter = b().Parameter(0, tuple ? shapes().Tuple(elements) : elements[0],
                                         elements.empty()           ? "arg_empty_tuple"
                                         : tuple                    ? "arg_tuple"
                                         : kind == FrameKind::kLoop ? "Arg_"
                                                                    : "Arg_0");
  if (!parameter.ok()) return parameter.status();
  std::vector<ListId> leaves = kind == FrameKind::kLoop ? LeavesOf(op) : std::vector<ListId>();
  if (kind == FrameKind::kBranch || !leaves.empty()) {
    for (mlir::ValueId value : captures) leaves.push_back(ShardingOf(values_[value.value]));
    if (tuple) ShardTuple(*parameter, leaves);
    if (!tuple && leaves.size() == 1 && leaves[0].valid()) {
      module_->SetAttr(*parameter, Attr::kSharding, leaves[0].value);
    }
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    const size_t arguments = elements.size() - captures.size();
    if (i < arguments && tuple && IsOmitted(op, i + arguments * (frame().is_body ? 1 : 2))) {
      BindElement(program_.argument(block, i), *parameter, static_cast<int64_t>(i));
      continue;
    }
    const InstructionId element = tuple ? Element(*parameter, static_cast<int64_t>(i)) : *parameter;
    if (i < arguments) {
      Bind(program_.argument(block, i), element);
    } else {
      Bind(captures[i - arguments], element);
      if (kind == FrameKind::kLoop) frame().extra_results.push_back(element);
    }
  }
  return absl::OkStatus();
}

absl::Status Converter::CloseFrame() {
  Frame closed = std::move(frames_.back());
  frames_.pop_back();
  for (size_t i = closed.saved.size(); i-- > 0;) values_[closed.saved[i].first.value] = closed.saved[i].second;
  if (!module_->record(closed.computation).root.valid()) {
    return absl::InvalidArgumentError("a block ends without a terminator");
  }
  if (closed.function.valid()) {
    open_functions_.erase(closed.function.value);
    if (closed.function != main_ && !options_.as_xla) {
      KeepFunctionAttributes(program_.op(closed.function), module_->record(closed.computation).root);
    }
    if (closed.function != main_) return ResultShardings(program_.op(closed.function), closed.computation);
  } else {
    frame().computations.push_back(closed.computation);
  }
  return absl::OkStatus();
}

// ---- operations ----

absl::Status Converter::PrepareOperands(const Op& op) {
  if (WholeOf(op).valid()) return absl::OkStatus();
  for (mlir::ValueId value : program_.operands_of(op)) {
    if (!value.valid()) return Error(op, "has an operand without a value");
    Materialize(value);
    if (used_[value.value] == 2 && IsConstant(value)) continue;
    const InstructionId known = values_[value.value];
    if (known.valid() && module_->record(known).parent == frame().computation) continue;
    if (!IsConstant(value)) {
      if (!known.valid()) return Error(op, "uses a value that is not defined before it");
      return Error(op, "uses a value from outside of its region, which HLO has no place for");
    }
    const Op& constant = program_.op(program_.values[value.value].definition);
    absl::StatusOr<Shape> shape = ShapeOfType(program_.type(value));
    if (!shape.ok()) return shape.status();
    const Result made = MakeConstant(Attribute(constant, "value"), *shape);
    if (!made.ok()) return made.status();
    Bind(value, *made);
  }
  return absl::OkStatus();
}

absl::Status Converter::Step() {
  if (!frame().op.valid()) return CloseFrame();
  const mlir::OperationId id = frame().op;
  const Op& op = program_.op(id);
  const mlir::OperationId key = op.same_as.valid() ? op.same_as : id;
  if (const uint32_t known = conversion_of_[key.value]; known != 0) {
    metadata_ = op.location.valid() || !options_.as_xla ? MetadataOf(op.location) : MetadataOfPlace(op);
    if (absl::Status status = PrepareOperands(op); !status.ok()) return status;
    if (RepeatConversion(op, conversions_[known - 1])) {
      frame().op = op.next;
      return absl::OkStatus();
    }
  }
  if (absl::Status status = CheckCounts(op); !status.ok()) return status;
  if (IsConvertible(op) && frame().computations.size() < op.region_count && op.kind() != OpKind::kStablehloComposite &&
      op.kind() != OpKind::kSdyNamedComputation) {
    if (static_cast<int64_t>(frames_.size()) > 1 << 16) return Error(op, "is nested too deeply");
    return OpenRegion(op, frame().computations.size());
  }
  const mlir::NodeId symbol = OpcodeOf(op) == Opcode::kCall
                                  ? Attribute(op, op.kind() == OpKind::kFuncCall ? "callee" : "decomposition")
                                  : mlir::NodeId();
  if (symbol.valid() && nodes().kind(symbol) == mlir::NodeKind::kSymbol) {
    const auto found = functions_.find(std::string(nodes().text(symbol)));
    if (found == functions_.end())
      return Error(op, StrCat("refers to @", nodes().text(symbol), ", which is not defined"));
    if (open_functions_.contains(found->second.value)) return Error(op, "calls recursively");
    if (!computations_.contains(found->second.value)) return OpenFunction(found->second);
  }
  if (const mlir::NodeId called = Attribute(op, "called_computations");
      called.valid() && nodes().kind(called) == mlir::NodeKind::kArray) {
    for (mlir::NodeId name : nodes().children(called)) {
      const auto found = functions_.find(std::string(nodes().text(name)));
      if (found == functions_.end()) continue;  // reported by the conversion
      if (open_functions_.contains(found->second.value)) return Error(op, "calls recursively");
      if (!computations_.contains(found->second.value)) return OpenFunction(found->second);
    }
  }
  metadata_ = op.location.valid() || !options_.as_xla ? MetadataOf(op.location) : MetadataOfPlace(op);
  if (absl::Status status = PrepareOperands(op); !status.ok()) return status;
  const InstructionId first(static_cast<uint32_t>(module_->instruction_id_bound()));
  if (absl::Status status = Dispatch(op); !status.ok()) return status;
  // An operation whose region is inlined continues there.
  if (frame().op == id) {
    if (IsRepeatable(op) && !Attribute(op, kControlPredecessors).valid()) RecordConversion(op, key, first);
    frame().op = op.next;
  }
  frame().computations.clear();
  return absl::OkStatus();
}

// ---- values ----

std::vector<InstructionId> Converter::operands(const Op& op, size_t begin, size_t count) const {
  std::vector<InstructionId> result;
  const size_t end = std::min<size_t>(op.operand_count, count == ~size_t{0} ? op.operand_count : begin + count);
  for (size_t i = begin; i < end; ++i) result.push_back(operand(op, i));
  return result;
}

absl::StatusOr<Shape> Converter::ResultShape(const Op& op, size_t i) {
  const mlir::NodeId type = program_.type(program_.result(op, i));
  if (type.value >= known_shapes_.size()) known_shapes_.resize(type.value + 1);
  Shape& known = known_shapes_[type.value];
  if (!known.valid()) {
    absl::StatusOr<Shape> shape = ShapeOfType(type);
    if (!shape.ok()) return shape;
    known = *shape;
  }
  return op.result_count == 1 ? LaidOut(op, known) : known;
}

absl::StatusOr<Shape> Converter::ResultsShape(const Op& op) {
  if (op.result_count == 1) return ResultShape(op);
  std::vector<Shape> elements;
  for (size_t i = 0; i < op.result_count; ++i) {
    absl::StatusOr<Shape> shape = ResultShape(op, i);
    if (!shape.ok()) return shape;
    elements.push_back(*shape);
  }
  return LaidOut(op, shapes().Tuple(elements));
}

absl::Status Converter::SetResult(const Op& op, Result id, size_t i) {
  if (!id.ok()) return Error(op, StrCat(kInferenceError, MessageOf(id.status())));
  Bind(program_.result(op, i), *id);
  return i == 0 ? Annotate(op, *id) : absl::OkStatus();
}

absl::Status Converter::SetResults(const Op& op, Result id, bool always_tuple) {
  if (op.result_count == 1 && !always_tuple) return SetResult(op, id);
  if (!id.ok()) return Error(op, StrCat(kInferenceError, MessageOf(id.status())));
  if (absl::Status status = Annotate(op, *id); !status.ok()) return status;
  for (size_t i = 0; i < op.result_count; ++i) {
    if (IsOmitted(op, i)) {
      BindElement(program_.result(op, i), *id, static_cast<int64_t>(i));
    } else {
      Bind(program_.result(op, i), Element(*id, static_cast<int64_t>(i)));
    }
  }
  return absl::OkStatus();
}

Converter::Result Converter::Make(const Op& op, Opcode opcode, Operands operands, const Attrs& attrs) {
  absl::StatusOr<Shape> shape = ResultShape(op);
  if (!shape.ok()) return shape.status();
  return b().Add(opcode, operands, attrs, *shape);
}

absl::Status Converter::EmitTuple(const Op& op, Opcode opcode, Operands operands, const Attrs& attrs) {
  absl::StatusOr<Shape> shape = ResultsShape(op);
  if (!shape.ok()) return shape.status();
  return SetResults(op, b().Add(opcode, operands, attrs, *shape));
}

absl::Status Converter::ConvertReturn(const Op& op) {
  if (const InstructionId whole = WholeOf(op); whole.valid()) {
    module_->SetRoot(frame().computation, whole);
    return absl::OkStatus();
  }
  std::vector<InstructionId> results = operands(op);
  InstructionId root;
  if (options_.as_xla) metadata_ = MetadataId();
  if (frame().kind == FrameKind::kLoop && frame().is_body) {
    results.insert(results.end(), frame().extra_results.begin(), frame().extra_results.end());
  }
  const bool main = frame().function == main_;
  std::vector<ListId> shardings;
  if (main) shardings = SdyResultShardings(op, &results);
  root = results.size() == 1 && !(main && options_.return_tuple) ? results[0] : b().MakeTuple(results);
  if (results.size() == 1 && options_.as_xla && frame().kind == FrameKind::kLoop && frame().is_body) {
    root = ShardedResult(root, ShardingOf(module_->computation(frame().computation).parameter(0).id()));
  }
  if (!shardings.empty()) {
    if (results.size() != 1 || options_.return_tuple) {
      ShardTuple(root, shardings);
    } else {
      root = ResultWithSharding(root, shardings[0], /*open=*/false);
    }
  }
  if (results.size() != 1 && !main && !ShardingOf(root).valid()) {
    // The state of a loop, or the results of branches, are as the operation says.
    const Computation made = module_->computation(frame().computation);
    if (frame().kind == FrameKind::kLoop && frame().is_body) {
      if (const ListId sharding = ShardingOf(made.parameter(0).id()); sharding.valid()) {
        module_->SetAttr(root, Attr::kSharding, sharding.value);
      }
    } else if (frame().kind == FrameKind::kBranch) {
      ShardTuple(root, LeavesOf(program_.op(frames_[frames_.size() - 2].op)));
    }
  }
  module_->SetRoot(frame().computation, root);
  return absl::OkStatus();
}

}  // namespace hlokit::stablehlo
