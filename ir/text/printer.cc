// SPDX-License-Identifier: Apache-2.0
#include "ir/text/printer.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "ir/graph/async.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "ir/text/attribute_text.h"
#include "ir/text/header_text.h"
#include "ir/text/literal_text.h"
#include "ir/text/shape_text.h"
#include "ir/types/float_types.h"

namespace hlokit {
namespace {

// Returns true if every element of an array equals `value`.
bool IsAllScalar(const LiteralRecord& literal, int value) {
  if (literal.elided || !literal.shape.IsArray()) return false;
  return VisitType(literal.shape.element_type(), [&]<typename T>(std::type_identity<T>) {
    T wanted;
    if constexpr (std::is_constructible_v<T, float> && !std::is_integral_v<T>) {
      wanted = T(static_cast<float>(value));
    } else {
      wanted = static_cast<T>(value);
    }
    const auto* elements = reinterpret_cast<const T*>(literal.data);
    const size_t count = literal.size_bytes / sizeof(T);
    return std::all_of(elements, elements + count, [&](const T& e) { return e == wanted; });
  });
}

// Prints one module or a part of it; caches texts of shapes and canonical names.
class Printer {
 public:
  Printer(TextWriter& out, const Module& module, const PrintOptions& options)
      : out_(out), module_(module), context_(module.context()), options_(options), attrs_(out, module, options) {}

  void PrintModule();
  void PrintComputation(Computation c, bool nested, bool as_entry, int indent);
  void PrintInstruction(Instruction i, int indent, bool named);

 private:
  void PrintShape(ShapeId id, bool with_layout) {
    out_ << (with_layout ? with_layout_ : without_layout_).Get(context_.shape(id), with_layout);
  }
  void PrintName(std::string_view name) {
    if (options_.print_percent) out_ << '%';
    PrintBareName(name);
  }
  void PrintBareName(std::string_view name) {
    if (!options_.print_ids) name = name.substr(0, name.find('.'));
    out_ << name;
  }
  void PrintInstructionName(InstructionId id, StringId name) {
    if (options_.canonicalize_instruction_names) {
      if (options_.print_percent) out_ << '%';
      out_ << "tmp_" << CanonicalNumber(id);
    } else {
      PrintName(context_.str(name));
    }
  }
  // Canonical numbers restart in each computation, in order of first use.
  int64_t CanonicalNumber(InstructionId id) {
    int64_t& number = canonical_[id.value];
    if (number < 0) number = next_canonical_++;
    return number;
  }
  void PrintOperands(Instruction i);
  void PrintConstant(Instruction i);
  void PrintAttributes(Instruction i, int indent);
  void PrintComputationAttr(Opcode opcode, AttrValue value, int indent);
  void PrintComparisonOrder(Instruction compare, ComparisonType type);
  // Returns true if the instructions stand behind their operands and control predecessors as they are listed.
  bool IsListedInOrder(Computation c);
  // Returns true for the element of a tuple that its users name in place, and that has no line of its own.
  bool IsCompactElement(InstructionId id);
  void PrintOperandName(InstructionId id);
  // Finds the computations of asynchronous operations that other instructions call too: sugar cannot hide them.
  void FindSharedWrappers(const ComputationRoles& roles);
  bool IsHiddenBySugar(Computation wrapper) const {
    const uint32_t id = wrapper.id().value;
    return IsSingleInstructionWrapper(wrapper) && (id >= shared_wrappers_.size() || shared_wrappers_[id] == 0);
  }
  void Indent(int amount) {
    for (int k = 0; k < amount; ++k) out_ << "  ";
  }

  TextWriter& out_;
  const Module& module_;
  const Context& context_;
  const PrintOptions& options_;
  AttributePrinter attrs_;
  ShapeTextCache with_layout_;
  ShapeTextCache without_layout_;
  AsyncStarts async_starts_;
  std::vector<uint8_t> shared_wrappers_;  // by ComputationId
  std::vector<int64_t> canonical_;        // by InstructionId, -1: none yet
  int64_t next_canonical_ = 0;
  std::vector<int64_t> saved_canonical_;
  std::vector<uint8_t> listed_;         // by InstructionId
  std::vector<uint8_t> control_named_;  // by InstructionId, of compact elements: others have it as control predecessor
};

void Printer::FindSharedWrappers(const ComputationRoles& roles) {
  if (!options_.syntax_sugar_async_ops ||
      std::find(roles.async.begin(), roles.async.end(), uint8_t{1}) == roles.async.end()) {
    return;
  }
  shared_wrappers_.assign(roles.async.size(), 0);
  for (Computation c : module_.computations()) {
    for (Instruction i : c.instructions()) {
      if (!MightHaveCalledComputations(i.opcode()) || HasTrait(i.opcode(), kGenericAsync)) continue;
      i.ForEachCallee(
          [&](Computation callee) { shared_wrappers_[callee.id().value] = roles.async[callee.id().value]; });
    }
  }
}

void Printer::PrintModule() {
  if (options_.print_header) {
    PrintModuleHeader(out_, module_, options_);
    PrintStackFrames(out_, module_, options_);
    out_ << "\n\n";
  }
  const ComputationRoles roles = RolesOf(module_);
  FindSharedWrappers(roles);
  std::vector<ComputationId> order;
  if (options_.canonicalize_computations) {
    for (Computation c : module_.computations()) order.push_back(c.id());
  } else {
    order = options_.listed_order ? ComputationListedOrder(module_)
                                  : ComputationTextOrder(module_, options_.stable_computation_order);
  }
  for (ComputationId id : order) {
    const Computation c = module_.computation(id);
    if (options_.syntax_sugar_async_ops && roles.async[id.value] && IsHiddenBySugar(c)) continue;
    if (c.is_entry()) {
      out_ << "ENTRY ";
      // Without ids the name of the entry computation is omitted too.
    }
    PrintComputation(c, /*nested=*/false, /*as_entry=*/!roles.fusion[id.value], options_.indent_amount);
    out_ << "\n\n";
  }
}

void Printer::PrintComputation(Computation c, bool nested, bool in_text_order, int indent) {
  Indent(indent);
  if (!nested) {
    if (options_.print_percent) out_ << '%';
    if (options_.print_ids) out_ << c.name() << ' ';
  }
  if (options_.print_program_shape) {
    out_ << '(';
    for (int64_t k = 0; k < c.parameter_count(); ++k) {
      if (k != 0) out_ << ", ";
      const Instruction p = c.parameter(k);
      if (options_.print_ids) {
        out_ << p.name();
      } else {
        PrintBareName(p.name());
      }
      out_ << ": ";
      PrintShape(p.record().shape, false);
    }
    out_ << ") -> ";
    PrintShape(c.root().record().shape, false);
    out_ << ' ';
  }
  out_ << "{\n";
  if (options_.canonicalize_instruction_names) {
    canonical_.resize(module_.instruction_id_bound(), -1);
    for (Instruction i : c.instructions()) canonical_[i.id().value] = -1;
    next_canonical_ = 0;
  }
  const InstructionId root = c.record().root;
  const auto one = [&](InstructionId id) {
    if (IsCompactElement(id)) return;
    Indent(indent + 1);
    if (id == root) out_ << "ROOT ";
    PrintInstruction(module_.instruction(id), indent + 1, /*named=*/true);
    out_ << '\n';
  };
  const bool scheduled = module_.header().is_scheduled && in_text_order;
  if (!nested && (scheduled || (options_.listed_order && IsListedInOrder(c)))) {
    for (InstructionId id = c.record().first; id.valid(); id = module_.record(id).next) one(id);
  } else {
    for (InstructionId id : PostOrder(c)) one(id);
  }
  Indent(indent);
  out_ << '}';
  if (options_.print_ids && c.execution_thread() != "main") {
    out_ << ", execution_thread=\"" << c.execution_thread() << '"';
  }
}

void Printer::PrintInstruction(Instruction i, int indent, bool named) {
  const InstructionRecord& r = i.record();
  if (named || !options_.canonicalize_instruction_names) {
    PrintInstructionName(i.id(), r.name);
    out_ << " = ";
  }
  if (options_.print_result_shape) {
    PrintShape(r.shape, options_.include_layout_in_shapes);
    out_ << ' ';
  }
  std::string_view suffix;
  std::string_view opcode = i.opcode_text();
  if (options_.syntax_sugar_async_ops && HasTrait(r.opcode, kGenericAsync)) {
    const Instruction start = async_starts_.Find(i);
    const Computation wrapper = start.valid() ? start.computation_attr(Attr::kCalls) : Computation();
    if (wrapper.valid() && IsHiddenBySugar(wrapper)) {
      suffix = r.opcode == Opcode::kAsyncStart ? "-start" : r.opcode == Opcode::kAsyncUpdate ? "-update" : "-done";
      opcode = wrapper.root().opcode_text();
    }
  }
  out_ << opcode << suffix << '(';
  if (r.opcode == Opcode::kConstant) {
    PrintConstant(i);
  } else if (r.opcode == Opcode::kParameter) {
    if (options_.print_parameter_number) out_ << i.parameter_number();
  } else {
    PrintOperands(i);
  }
  out_ << ')';
  if (options_.print_extra_attributes) PrintAttributes(i, indent);
}

void Printer::PrintOperands(Instruction i) {
  const InstructionRecord& r = i.record();
  constexpr int64_t kShown = 4;  // of a compacted list
  int64_t count = r.operand_count;
  const bool cut = options_.compact_operands && count > kShown;
  if (cut) count = kShown;
  for (int64_t k = 0; k < count; ++k) {
    if (k != 0) {
      out_ << ", ";
      if (options_.print_operand_index_annotation_interval_set && k % 5 == 0) out_ << "/*index=" << k << "*/";
    }
    const InstructionId id = module_.use(UseId(r.operand_begin + static_cast<uint32_t>(k))).def;
    const InstructionRecord& operand = module_.record(id);
    if (options_.print_operand_shape) {
      PrintShape(operand.shape, options_.include_layout_in_shapes);
      out_ << ' ';
    }
    PrintOperandName(id);
  }
  if (cut) out_ << ", ...(+" << int64_t{r.operand_count} - kShown << ')';
}

bool Printer::IsListedInOrder(Computation c) {
  listed_.resize(module_.instruction_id_bound(), 0);
  for (Instruction i : c.instructions()) {
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      if (listed_[i.operand(k).id().value] == 0) return false;
    }
    if (i.has(Attr::kControlPredecessors)) {
      for (int64_t before : i.list_attr(Attr::kControlPredecessors)) {
        if (listed_[static_cast<size_t>(before)] == 0) return false;
      }
    }
    listed_[i.id().value] = 1;
  }
  return true;
}

bool Printer::IsCompactElement(InstructionId id) {
  if (!options_.compact_tuple_elements || module_.record(id).opcode != Opcode::kGetTupleElement) return false;
  const Instruction i = module_.instruction(id);
  if (i.parent().record().root == id || i.has(Attr::kControlPredecessors)) return false;
  if (control_named_.empty()) {
    control_named_.resize(module_.instruction_id_bound(), 0);
    for (Computation c : module_.computations()) {
      for (Instruction user : c.instructions()) {
        if (!user.has(Attr::kControlPredecessors)) continue;
        for (int64_t named : user.list_attr(Attr::kControlPredecessors)) control_named_[static_cast<size_t>(named)] = 1;
      }
    }
  }
  return control_named_[id.value] == 0;
}

void Printer::PrintOperandName(InstructionId id) {
  std::vector<int64_t> indices;
  for (; IsCompactElement(id); id = module_.instruction(id).operand(0).id()) {
    indices.push_back(module_.instruction(id).int_attr(Attr::kIndex));
  }
  PrintInstructionName(id, module_.record(id).name);
  for (size_t k = indices.size(); k-- > 0;) out_ << '#' << indices[k];
}

void Printer::PrintConstant(Instruction i) {
  const Shape shape = i.shape();
  const LiteralRecord& literal = i.literal();
  if (options_.print_only_essential_constants) {
    if (IsAllScalar(literal, 0)) {
      out_ << '0';
      return;
    }
    if (IsAllScalar(literal, 1)) {
      out_ << '1';
      return;
    }
    if (literal.elided || !IsInteger(shape.element_type())) {
      out_ << "{...}";
      return;
    }
    PrintLiteral(out_, context_, i.literal_id());
    return;
  }
  if (literal.elided || IsElidedBy(options_, i)) {
    out_ << "{...}";
    return;
  }
  PrintLiteral(out_, context_, i.literal_id());
}

void Printer::PrintComputationAttr(Opcode opcode, AttrValue value, int indent) {
  const AttrInfo& info = InfoOf(value.attr);
  const bool list = HoldsList(info.type);
  const auto name = [&](ComputationId id) { PrintName(context_.str(module_.record(id).name)); };
  if (options_.subcomputations == PrintOptions::Subcomputations::kOff) return;
  const bool bodies = options_.subcomputations == PrintOptions::Subcomputations::kFullBodies;
  // With bodies XLA prints `calls` for attributes without a specific name.
  const bool unnamed = bodies && OpcodeSet{Opcode::kReduceScatter, Opcode::kScan}.Contains(opcode);
  out_ << ", " << (unnamed ? ToString(Attr::kCalls) : info.text) << '=';
  const auto body = [&](ComputationId id) {
    // Nested bodies have separate canonical names; those of the enclosing computation continue afterwards.
    const int64_t next = next_canonical_;
    PrintComputation(module_.computation(id), /*nested=*/true, /*in_text_order=*/false, indent);
    next_canonical_ = next;
  };
  if (!list) {
    if (bodies) {
      out_ << '\n';
      body(ComputationId(value.payload));
    } else {
      name(ComputationId(value.payload));
    }
    return;
  }
  const absl::Span<const int64_t> ids = context_.list(ListId(value.payload));
  out_ << (bodies ? "{\n" : "{");
  for (size_t k = 0; k < ids.size(); ++k) {
    const ComputationId id(static_cast<uint32_t>(ids[k]));
    if (k != 0) out_ << (bodies ? ",\n" : ", ");
    if (bodies) {
      body(id);
    } else {
      name(id);
    }
  }
  out_ << (bodies ? "\n}" : "}");
}

// The order that is none of the element type's: integers are ordered totally, others partially.
void Printer::PrintComparisonOrder(Instruction compare, ComparisonType type) {
  const Shape operand = compare.operand(0).shape();
  const bool total = type != ComparisonType::kFloat;
  const bool is_default =
      operand.IsArray() && total != (IsFloat(operand.element_type()) || IsComplex(operand.element_type()));
  if (!is_default) out_ << (total ? ", order=TOTAL" : ", order=PARTIAL");
}

void Printer::PrintAttributes(Instruction i, int indent) {
  const InstructionRecord& r = i.record();
  bool metadata_due = options_.print_metadata && r.metadata.valid();
  bool sugar_due = false;
  Instruction wrapped;
  if (r.opcode == Opcode::kAsyncStart && options_.syntax_sugar_async_ops) {
    const Computation wrapper = i.computation_attr(Attr::kCalls);
    if (wrapper.valid() && IsHiddenBySugar(wrapper)) {
      sugar_due = true;
      wrapped = wrapper.root();
    }
  }
  const auto metadata = [&] {
    metadata_due = false;
    const Metadata m = context_.metadata[r.metadata];
    if (!HasMetadataToPrint(context_, m)) return;
    out_ << ", metadata=";
    PrintMetadata(out_, context_, r.metadata, options_.print_metadata_only_op_name);
  };
  const auto wrapped_attrs = [&] {
    sugar_due = false;
    for (const AttrValue& value : wrapped.attrs()) {
      // Attributes of the start are not repeated.
      if (IsCommon(value.attr) && (i.has(value.attr) || value.attr == Attr::kBackendConfig)) continue;
      if (NamesComputations(value.attr)) {
        PrintComputationAttr(wrapped.opcode(), value, indent);
      } else {
        attrs_.Print(value);
      }
    }
  };
  for (const AttrValue& value : module_.attrs_of(r)) {
    if (sugar_due &&
        (value.attr == Attr::kOutputToOperandAliasing || value.attr == Attr::kCalls || IsCommon(value.attr))) {
      wrapped_attrs();
    }
    if (wrapped.valid() && value.attr == Attr::kCalls &&
        options_.subcomputations != PrintOptions::Subcomputations::kFullBodies) {
      continue;
    }
    if (metadata_due && value.attr >= Attr::kMetadata) metadata();
    if (NamesComputations(value.attr)) {
      PrintComputationAttr(r.opcode, value, indent);
    } else if (value.attr == Attr::kCompareType && options_.print_comparison_order && r.operand_count != 0) {
      PrintComparisonOrder(i, static_cast<ComparisonType>(value.payload));
    } else {
      attrs_.Print(value);
    }
  }
  if (sugar_due) wrapped_attrs();
  if (metadata_due) metadata();
}

}  // namespace

PrintOptions PrintOptions::ShortParsable() {
  PrintOptions o;
  o.print_large_constants = true;
  o.print_metadata = false;
  o.print_operand_index_annotation_interval_set = false;
  o.print_program_shape = false;
  o.print_percent = false;
  o.print_control_dependencies = false;
  return o;
}

PrintOptions PrintOptions::Dump() {
  PrintOptions o;
  o.compact_tuple_elements = true;
  o.print_comparison_order = true;
  o.listed_order = true;
  o.sort_backend_config = true;
  return o;
}

PrintOptions PrintOptions::Canonical() {
  PrintOptions o;
  o.subcomputations = Subcomputations::kFullBodies;
  o.print_metadata = false;
  o.print_backend_config = false;
  o.print_operand_shape = true;
  o.print_operand_index_annotation_interval_set = false;
  o.print_program_shape = false;
  o.print_percent = false;
  o.print_control_dependencies = false;
  o.canonicalize_instruction_names = true;
  return o;
}

PrintOptions PrintOptions::Fingerprint() {
  PrintOptions o = Canonical();
  o.print_infeed_outfeed_config = false;
  o.print_only_essential_constants = true;
  o.print_ids = false;
  o.canonicalize_computations = true;
  o.print_full_replica_groups = true;
  return o;
}

PrintOptions PrintOptions::Lossless() {
  PrintOptions o;
  o.print_large_constants = true;
  o.syntax_sugar_async_ops = false;
  o.stable_computation_order = true;
  return o;
}

void PrintModule(TextWriter& out, const Module& module, const PrintOptions& options) {
  Printer(out, module, options).PrintModule();
}

void PrintComputation(TextWriter& out, Computation computation, const PrintOptions& options) {
  Printer(out, computation.module(), options)
      .PrintComputation(computation, /*nested=*/false, /*in_text_order=*/true, options.indent_amount);
}

void PrintInstruction(TextWriter& out, Instruction instruction, const PrintOptions& options) {
  Printer(out, instruction.module(), options)
      .PrintInstruction(instruction, options.indent_amount, /*named=*/!options.canonicalize_instruction_names);
}

void PrintAttrValue(TextWriter& out, const Module& module, AttrValue value, const PrintOptions& options) {
  AttributePrinter(out, module, options).PrintValue(value);
}

bool IsElidedBy(const PrintOptions& options, Instruction constant) {
  if (options.print_large_constants || options.print_only_essential_constants || constant.literal().elided)
    return false;
  const Shape shape = constant.shape();
  return !shape.IsArray() || shape.element_count() > PrintOptions::kLargeConstantElements;
}

std::string ToString(const Module& module, const PrintOptions& options) {
  constexpr size_t kBytesOfInstruction = 160;  // typical of dumps; avoids repeated reallocation
  std::string text;
  text.reserve(module.instruction_count() * kBytesOfInstruction);
  {
    TextWriter out(&text);
    PrintModule(out, module, options);
  }
  return text;
}

std::string ToString(Computation computation, const PrintOptions& options) {
  std::string text;
  {
    TextWriter out(&text);
    PrintComputation(out, computation, options);
  }
  return text;
}

std::string ToString(Instruction instruction, const PrintOptions& options) {
  std::string text;
  {
    TextWriter out(&text);
    PrintInstruction(out, instruction, options);
  }
  return text;
}

}  // namespace hlokit
