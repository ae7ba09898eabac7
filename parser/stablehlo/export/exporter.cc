// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/export/exporter.h"

#include <algorithm>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/ops/opcode_set.h"
#include "ir/verify/verifier.h"
#include "parser/stablehlo/kept_attributes.h"
#include "parser/stablehlo/verify/verify.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

std::unique_ptr<mlir::Module> ExportToStablehlo(const Module& module, DiagnosticSink* sink,
                                                const ExportOptions& options) {
  // The exporter relies on what the verifier checks.
  DiagnosticSink invalid;
  VerifyModule(module, VerifierOptions(), &invalid);
  if (invalid.has_errors()) {
    for (const Diagnostic& diagnostic : invalid.diagnostics()) sink->Report(diagnostic);
    return nullptr;
  }
  return Exporter(module, sink, options).Run();
}

Exporter::Exporter(const Module& module, DiagnosticSink* sink, const ExportOptions& options)
    : module_(module),
      options_(options),
      sink_(sink),
      out_(std::make_unique<mlir::Module>()),
      values_(module.instruction_id_bound()),
      elements_(module.instruction_id_bound()),
      parts_(module.instruction_id_bound()),
      futures_(module.instruction_id_bound()),
      functions_(module.computation_id_bound()) {}

std::unique_ptr<mlir::Module> Exporter::Run() {
  // The file holds one module, whose block is filled first.
  out_->top = mlir::RegionId(0);
  out_->regions.resize(2);
  out_->blocks.resize(2);
  top_block_ = mlir::BlockId(1);
  for (uint32_t i = 0; i < 2; ++i) {
    out_->regions[i].first = out_->regions[i].last = mlir::BlockId(i);
    out_->blocks[i].region = mlir::RegionId(i);
  }
  FindControlDependencies();
  FindOutlined();
  absl::Status status = OpenFunction(module_.entry());
  Instruction at;
  while (status.ok() && !frames_.empty()) {
    if (frames_.back().next.valid()) at = module_.instruction(frames_.back().next);
    source_ = at.valid() ? RangeOf(at) : SourceRange{};
    status = Step();
    if (status.ok() && frames_.empty()) status = OpenNextFunction();
  }
  if (!status.ok()) {
    sink_->Error(DiagnosticKind::kUnsupported, at.valid() ? RangeOf(at) : SourceRange{},
                 std::string(status.message().data(), status.message().size()));
    return nullptr;
  }
  ReportLostControlDependencies();
  // Wraps the functions in the module.
  frames_.push_back({});
  frames_.back().block = mlir::BlockId(0);
  Attributes name = {{"sym_name", n().String(module_.name())}};
  Emit(OpKind::kBuiltinModule, {}, name, {}, {mlir::RegionId(1)}, HeaderAttributes());
  return options_.as_xla || IsValid() ? std::move(out_) : nullptr;
}

bool Exporter::IsValid() {
  DiagnosticSink errors;
  VerifyProgram(*out_, &errors);
  bool reported = false;
  for (const Diagnostic& error : errors.diagnostics()) {
    if (error.severity != Severity::kError || std::exchange(reported, true)) continue;
    sink_->Error(DiagnosticKind::kUnsupported, error.range, StrCat("StableHLO has no place for this: ", error.message));
  }
  return !reported;
}

// Of the computations that nothing calls.
absl::Status Exporter::OpenNextFunction() {
  if (uncalled_.empty()) {
    std::vector<uint8_t> called(module_.computation_id_bound(), 0);
    for (Computation computation : module_.computations()) {
      for (Instruction instruction : computation.instructions()) {
        instruction.ForEachCallee([&](Computation c) { called[c.id().value] = 1; });
      }
    }
    for (Computation computation : module_.computations()) {
      if (!computation.is_entry() && called[computation.id().value] == 0) uncalled_.push_back(computation.id());
    }
  }
  if (next_function_ == uncalled_.size()) return absl::OkStatus();
  if (absl::Status status = OpenFunction(module_.computation(uncalled_[next_function_++])); !status.ok()) return status;
  frames_.back().uncalled = true;
  return absl::OkStatus();
}

bool Exporter::IsUnpacked(Shape shape) { return shape.IsTuple() && shape.tuple_size() != 1; }

bool Exporter::IsSplit(Instruction instruction) const {
  const Opcode opcode = instruction.opcode();
  const bool kept = options_.as_xla && OpcodeSet{Opcode::kCall, Opcode::kCustomCall}.Contains(opcode);
  return IsUnpacked(instruction.shape()) && !kept;
}

SourceRange Exporter::RangeOf(Instruction instruction) {
  if (instruction.record().source_offset == InstructionRecord::kNoSourceOffset) return {};
  return {instruction.record().source_offset, static_cast<uint32_t>(instruction.name().size())};
}

Computation Exporter::CalledBy(Instruction instruction) {
  const Opcode opcode = instruction.opcode();
  if (opcode == Opcode::kCall) return instruction.computation_attr(Attr::kToApply);
  if (OpcodeSet{Opcode::kFusion, Opcode::kAsyncStart}.Contains(opcode))
    return instruction.computation_attr(Attr::kCalls);
  return {};
}

absl::Status Exporter::Unsupported(Instruction instruction, std::string_view why) const {
  return absl::UnimplementedError(StrCat("StableHLO has no place for `", instruction.name(), "`, ",
                                         instruction.opcode_text(), why.empty() ? "" : ": ", why));
}

// ---- functions and regions ----

std::vector<Computation> Exporter::RegionsOf(Instruction instruction) const {
  const Opcode opcode = instruction.opcode();
  if (opcode == Opcode::kAsyncStart && DoneOf(instruction).valid()) return instruction.called_computations();
  if (!HasTrait(opcode, kAppliesToElements) && !OpcodeSet{Opcode::kWhile, Opcode::kConditional}.Contains(opcode))
    return {};
  return instruction.called_computations();
}

absl::Status Exporter::OpenFunction(Computation computation) {
  const bool entry = computation.is_entry();
  functions_[computation.id().value] = entry ? "main" : std::string(computation.name());
  if (!entry && functions_[computation.id().value] == "main") functions_[computation.id().value] = "main.called";
  Frame frame;
  frame.computation = computation;
  frame.next = computation.record().first;
  frame.function = true;
  frame.unpack = !options_.as_xla && IsUnpacked(computation.root().shape());
  frame.region = mlir::RegionId(static_cast<uint32_t>(out_->regions.size()));
  frame.block = mlir::BlockId(static_cast<uint32_t>(out_->blocks.size()));
  out_->regions.push_back({});
  out_->blocks.push_back({});
  out_->blocks.back().region = frame.region;
  out_->regions.back().first = out_->regions.back().last = frame.block;
  frames_.push_back(std::move(frame));
  for (int64_t i = 0; i < computation.parameter_count(); ++i) {
    const Instruction parameter = computation.parameter(i);
    const NodeId type = TypeOf(parameter.shape());
    if (!type.valid()) return Unsupported(parameter, "its type");
    const mlir::ValueId value =
        NewArgument(frames_.back().block, type, options_.as_xla ? NodeId() : LocationOf(parameter));
    values_[parameter.id().value] = value;
    elements_[parameter.id().value].clear();
  }
  return absl::OkStatus();
}

absl::Status Exporter::OpenRegion(Instruction instruction, Computation computation, size_t index) {
  const Opcode opcode = instruction.opcode();
  Frame frame;
  frame.computation = computation;
  frame.next = computation.record().first;
  frame.region = mlir::RegionId(static_cast<uint32_t>(out_->regions.size()));
  frame.block = mlir::BlockId(static_cast<uint32_t>(out_->blocks.size()));
  frame.unpack = IsUnpacked(computation.root().shape());
  out_->regions.push_back({});
  out_->blocks.push_back({});
  out_->blocks.back().region = frame.region;
  out_->regions.back().first = out_->regions.back().last = frame.block;
  const mlir::BlockId block = frame.block;
  if (opcode == Opcode::kConditional) {
    // Branches use values of the computation around them.
    const Instruction operand = instruction.operand(static_cast<int64_t>(index) + 1);
    const Instruction parameter = computation.parameter(0);
    if (!options_.as_xla && !CapturesAlike(operand, computation)) {
      values_[parameter.id().value] = Whole(operand);
      elements_[parameter.id().value].clear();
      parts_[parameter.id().value].clear();
      frames_.push_back(std::move(frame));
      const mlir::ValueId value = values_[parameter.id().value];
      const NodeId type = out_->type(value);
      Emit(OpKind::kStablehloTuple, {value}, {}, {n().Make(NodeKind::kTupleType, "", {}, {&type, 1})}, {},
           {{kOperand, n().Bool(true)}});
      return absl::OkStatus();
    }
    values_[parameter.id().value] = values_[operand.id().value];
    elements_[parameter.id().value] = elements_[operand.id().value];
    parts_[parameter.id().value] = parts_[operand.id().value];
    frames_.push_back(std::move(frame));
    return absl::OkStatus();
  }
  frames_.push_back(std::move(frame));
  for (int64_t i = 0; i < computation.parameter_count(); ++i) {
    const Instruction parameter = computation.parameter(i);
    values_[parameter.id().value] = mlir::ValueId();
    elements_[parameter.id().value].clear();
    if (opcode == Opcode::kWhile && IsUnpacked(parameter.shape())) {
      for (Shape element : parameter.shape().elements()) {
        const NodeId type = TypeOf(element);
        if (!type.valid()) return Unsupported(parameter, "its type");
        elements_[parameter.id().value].push_back(NewArgument(block, type));
      }
      continue;
    }
    const NodeId type = TypeOf(parameter.shape());
    if (!type.valid()) return Unsupported(parameter, "its type");
    values_[parameter.id().value] = NewArgument(block, type, options_.as_xla ? NodeId() : LocationOf(parameter));
  }
  return absl::OkStatus();
}

absl::Status Exporter::CloseFrame() {
  // The terminator.
  const Instruction root = frames_.back().computation.root();
  Values results;
  Attributes marks;
  if (frames_.back().unpack) {
    if (root.opcode() != Opcode::kTuple) marks = {{kWhole, n().Bool(true)}};
    if (Elements(root).empty() && root.shape().tuple_size() != 0) {
      // A tuple as a whole: its elements are taken out of it.
      const mlir::ValueId whole = Whole(root);
      for (int64_t i = 0; i < root.shape().tuple_size(); ++i) {
        const Values element = Emit(OpKind::kStablehloGetTupleElement, {whole}, {{"index", I32(i)}},
                                    {TypeOf(root.shape().element(i))}, {}, marks);
        results.push_back(element[0]);
      }
    } else {
      results = Elements(root);
    }
  } else {
    results.push_back(Whole(root));
  }
  Emit(frames_.back().function ? OpKind::kFuncReturn : OpKind::kStablehloReturn, results, {}, {}, {}, marks);
  const Frame closed = std::move(frames_.back());
  frames_.pop_back();
  if (closed.function) {
    std::vector<NodeId> types;
    const mlir::Block& block = out_->blocks[closed.block.value];
    for (uint32_t i = 0; i < block.argument_count; ++i) types.push_back(out_->values[block.argument_begin + i].type);
    const auto inputs = static_cast<int64_t>(types.size());
    for (mlir::ValueId value : results) types.push_back(out_->type(value));
    const bool entry = closed.computation.is_entry();
    Attributes attributes = {{"function_type", n().Make(NodeKind::kFunctionType, "", {&inputs, 1}, types)},
                             {"sym_name", n().String(functions_[closed.computation.id().value])}};
    if (!entry) attributes.push_back({"sym_visibility", n().String("private")});
    if (const NodeId arguments = ArgumentAttributes(closed.computation); arguments.valid()) {
      attributes.push_back({"arg_attrs", arguments});
    }
    Attributes discardable;
    AddFunctionAttributes(closed.computation, results.size(), &attributes, &discardable);
    if (const std::string_view thread = closed.computation.execution_thread(); thread != "main") {
      discardable.push_back({"execution_thread", n().String(thread)});
    }
    if (closed.uncalled && !options_.as_xla) discardable.push_back({kUncalled, n().Bool(true)});
    frames_.push_back({});
    frames_.back().block = top_block_;
    Emit(OpKind::kFuncFunc, {}, attributes, {}, {closed.region}, discardable);
    frames_.pop_back();
  } else {
    frames_.back().regions.push_back(closed.region);
  }
  return absl::OkStatus();
}

absl::Status Exporter::Step() {
  if (!frames_.back().next.valid()) return CloseFrame();
  const Instruction instruction = module_.instruction(frames_.back().next);
  const std::vector<Computation> regions = RegionsOf(instruction);
  if (frames_.back().regions.size() < regions.size()) {
    const size_t index = frames_.back().regions.size();
    if (options_.as_xla && functions_[regions[index].id().value].empty()) {
      return OpenFunction(regions[index]);
    }
    if (outlined_[regions[index].id().value] == 0) return OpenRegion(instruction, regions[index], index);
    if (functions_[regions[index].id().value].empty()) return OpenFunction(regions[index]);
    return CallInRegion(instruction, regions[index], index);
  }
  const Computation called = regions.empty() ? CalledBy(instruction) : Computation();
  if (called.valid() && functions_[called.id().value].empty()) return OpenFunction(called);
  if (instruction.opcode() == Opcode::kCustomCall) {
    for (Computation called : instruction.called_computations()) {
      if (functions_[called.id().value].empty()) return OpenFunction(called);
    }
  }
  if (absl::Status status = Convert(instruction); !status.ok()) return status;
  frames_.back().regions.clear();
  frames_.back().next = instruction.record().next;
  return absl::OkStatus();
}

// ---- values ----

NodeId Exporter::ElementTypeOf(ElementType type) {
  if (type == ElementType::kPred) return n().IntegerType(1);
  if (type == ElementType::kC64 || type == ElementType::kC128) {
    const NodeId part = ElementTypeOf(ComponentType(type));
    return n().Make(NodeKind::kComplexType, "", {}, {&part, 1});
  }
  if (type == ElementType::kS1 || type == ElementType::kU1) return {};
  if (IsSigned(type)) return n().IntegerType(BitsOf(type));
  if (IsUnsigned(type)) return n().IntegerType(BitsOf(type), mlir::Signedness::kUnsigned);
  if (!IsFloat(type)) return {};
  // f8e4m3fn -> f8E4M3FN; f32 and bf16 stay as they are.
  std::string text(ToString(type));
  if (text.find('e') != std::string::npos) {
    for (size_t i = 1; i < text.size(); ++i)
      text[i] = static_cast<char>(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 'a' + 'A' : text[i]);
  }
  return n().Make(NodeKind::kFloatType, text, {}, {});
}

NodeId Exporter::TypeOf(Shape root) {
  // Tuples are made after their elements.
  std::vector<std::pair<Shape, bool>> pending = {{root, false}};
  std::vector<NodeId> made;
  while (!pending.empty()) {
    const auto [shape, leaving] = pending.back();
    pending.pop_back();
    if (shape.IsTuple()) {
      const auto count = static_cast<size_t>(shape.tuple_size());
      if (!leaving) {
        pending.push_back({shape, true});
        for (size_t i = count; i-- > 0;) pending.push_back({shape.element(static_cast<int64_t>(i)), false});
        continue;
      }
      const std::vector<NodeId> elements(made.end() - static_cast<std::ptrdiff_t>(count), made.end());
      made.resize(made.size() - count);
      made.push_back(n().Make(NodeKind::kTupleType, "", {}, elements));
    } else if (shape.IsToken()) {
      made.push_back(n().Make(NodeKind::kDialectType, "stablehlo.token", {}, {}));
    } else if (shape.IsArray()) {
      const NodeId element = ElementTypeOf(shape.element_type());
      if (!element.valid()) return {};
      Ints sizes(shape.dims().begin(), shape.dims().end());
      std::string bounds;
      bool bounded = false;
      for (int64_t i = 0; i < shape.rank(); ++i) {
        StrAppend(&bounds, i == 0 ? "" : ", ");
        if (shape.is_dynamic(i) && !shape.is_unbounded(i)) {
          StrAppend(&bounds, sizes[static_cast<size_t>(i)]);
          bounded = true;
        } else {
          bounds += "?";
        }
        if (shape.is_dynamic(i)) sizes[static_cast<size_t>(i)] = mlir::kDynamicSize;
      }
      std::vector<NodeId> children = {element};
      if (bounded) children.push_back(n().Make(NodeKind::kVerbatim, StrCat("#stablehlo.bounds<", bounds, ">"), {}, {}));
      made.push_back(n().Make(NodeKind::kTensorType, "", sizes, children));
    } else {
      return {};
    }
  }
  return made.back();
}

mlir::ValueId Exporter::NewArgument(mlir::BlockId block, NodeId type, NodeId location) {
  mlir::Block& b = out_->blocks[block.value];
  const mlir::ValueId value(static_cast<uint32_t>(out_->values.size()));
  if (b.argument_count == 0) b.argument_begin = value.value;
  out_->values.push_back({type, location, mlir::OperationId(), block, b.argument_count++});
  return value;
}

Exporter::Values Exporter::Emit(OpKind kind, const Values& operands, const Attributes& attributes,
                                const std::vector<NodeId>& results, const std::vector<mlir::RegionId>& regions,
                                const Attributes& discardable, NodeId location) {
  mlir::Operation op;
  op.location = location;
  op.offset = source_.offset;
  op.name_size = source_.size;
  op.definition = &mlir::DefinitionOf(kind);
  op.name = n().strings().Intern(op.definition->name);
  const mlir::OperationId id(static_cast<uint32_t>(out_->operations.size()));
  op.operand_begin = static_cast<uint32_t>(out_->operands.size());
  op.operand_count = static_cast<uint32_t>(operands.size());
  out_->operands.insert(out_->operands.end(), operands.begin(), operands.end());
  op.attribute_begin = static_cast<uint32_t>(out_->attributes.size());
  for (const NamedAttribute& a : attributes) {
    out_->attributes.push_back({n().strings().Intern(a.name), a.value, true});
  }
  for (const NamedAttribute& a : WithoutRepeats(discardable)) {
    if (options_.as_xla && a.name.starts_with("hlokit.")) continue;
    const auto same = [&](const NamedAttribute& own) { return own.name == a.name; };
    if (std::any_of(attributes.begin(), attributes.end(), same)) continue;
    out_->attributes.push_back({n().strings().Intern(a.name), a.value, false});
  }
  std::sort(out_->attributes.begin() + op.attribute_begin, out_->attributes.end(),
            [&](const mlir::Attribute& a, const mlir::Attribute& b) { return n().str(a.name) < n().str(b.name); });
  op.attribute_count = static_cast<uint32_t>(out_->attributes.size()) - op.attribute_begin;
  op.region_begin = static_cast<uint32_t>(out_->region_lists.size());
  op.region_count = static_cast<uint32_t>(regions.size());
  for (mlir::RegionId region : regions) {
    out_->region_lists.push_back(region);
    out_->regions[region.value].parent = id;
  }
  op.result_begin = static_cast<uint32_t>(out_->values.size());
  op.result_count = static_cast<uint32_t>(results.size());
  Values made;
  for (size_t i = 0; i < results.size(); ++i) {
    made.push_back(mlir::ValueId(static_cast<uint32_t>(out_->values.size())));
    out_->values.push_back({results[i], NodeId(), id, mlir::BlockId(), static_cast<uint32_t>(i)});
  }
  op.block = frames_.back().block;
  mlir::Block& block = out_->blocks[op.block.value];
  if (block.last.valid()) {
    out_->operations[block.last.value].next = id;
  } else {
    block.first = id;
  }
  block.last = id;
  out_->operations.push_back(op);
  return made;
}

Exporter::Values Exporter::Elements(Instruction tuple) {
  const uint32_t id = tuple.id().value;
  Values values = elements_[id];
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].valid()) continue;
    const Shape part = tuple.shape().element(static_cast<int64_t>(i));
    Attributes marks;
    if (options_.as_xla) marks = {{"xla_shape", n().String(ToString(part))}};
    values[i] = Emit(OpKind::kStablehloTuple, parts_[id], {}, {TypeOf(part)}, {}, marks)[0];
  }
  return values;
}

mlir::ValueId Exporter::Whole(Instruction operand) {
  const uint32_t id = operand.id().value;
  if (values_[id].valid()) return values_[id];
  Attributes marks;
  if (options_.as_xla) {
    marks = {{"xla_shape", n().String(ToString(operand.shape()))}};
  } else if (operand.opcode() != Opcode::kTuple) {
    marks = {{kWhole, n().Bool(true)}};
  }
  const Values made = Emit(OpKind::kStablehloTuple, Elements(operand), {}, {TypeOf(operand.shape())}, {}, marks);
  // Not kept: it may be in a region.
  return made[0];
}

Exporter::Values Exporter::OperandsOf(Instruction instruction) {
  Values values;
  for (Instruction operand : instruction.operands()) values.push_back(Whole(operand));
  return values;
}

std::vector<NodeId> Exporter::ResultTypes(Instruction instruction) {
  std::vector<NodeId> types;
  if (!IsSplit(instruction)) return {TypeOf(instruction.shape())};
  for (Shape element : instruction.shape().elements()) types.push_back(TypeOf(element));
  return types;
}

absl::Status Exporter::Define(Instruction instruction, OpKind kind, const Values& operands,
                              const Attributes& attributes, const Attributes& discardable) {
  const std::vector<NodeId> types = ResultTypes(instruction);
  for (NodeId type : types) {
    if (!type.valid()) return Unsupported(instruction, "its type");
  }
  Attributes others = Discardable(instruction);
  others.insert(others.end(), discardable.begin(), discardable.end());
  AddOmitted(instruction, &others);
  const Values results = Emit(kind, operands, WithNamed(instruction, kind, attributes), types, frames_.back().regions,
                              others, LocationOf(instruction));
  if (IsSplit(instruction)) {
    elements_[instruction.id().value] = results;
    values_[instruction.id().value] = mlir::ValueId();
  } else {
    values_[instruction.id().value] = results[0];
  }
  return absl::OkStatus();
}

absl::Status Exporter::DefineAs(Instruction instruction, OpKind kind, const Values& operands,
                                const Attributes& attributes, const std::vector<NodeId>& types) {
  for (NodeId type : types) {
    if (!type.valid()) return Unsupported(instruction, "its type");
  }
  const Values results = Emit(kind, operands, WithNamed(instruction, kind, attributes), types, frames_.back().regions,
                              Discardable(instruction), LocationOf(instruction));
  const uint32_t id = instruction.id().value;
  values_[id] = results.size() == 1 ? results[0] : mlir::ValueId();
  elements_[id] = results.size() == 1 ? Values() : results;
  return absl::OkStatus();
}

}  // namespace hlokit::stablehlo
