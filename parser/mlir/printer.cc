// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/printer.h"

#include "parser/mlir/operation_printer.h"

namespace hlokit::mlir {

std::string PrintMlir(const Module& module, const MlirPrintOptions& options) {
  std::string text;
  OperationPrinter(module, options, &text).Run();
  return text;
}

void OperationPrinter::Run() {
  const BlockId block = m_.block(m_.top);
  const OperationId first = block.valid() ? m_.blocks[block.value].first : OperationId();
  const bool wrapped = first.valid() && !m_.op(first).next.valid() && m_.kind(first) == OpKind::kBuiltinModule;
  if (!wrapped) {
    out_ += options_.generic ? "\"builtin.module\"() ({\n" : "module {\n";
    indent_ = 2;
  }
  if (block.valid()) PushBlocks(m_.top, false);
  while (!frames_.empty()) Step();
  if (!wrapped) out_ += options_.generic ? "}) : () -> ()\n" : "}\n";
  locations_.AppendDefinitions(&out_);
}

void OperationPrinter::PushBlocks(RegionId region, bool labels) {
  Frame frame;
  frame.block = m_.block(region);
  frame.labels = labels;
  if (frame.block.valid()) {
    frame.next = m_.blocks[frame.block.value].first;
    frame.at_start = true;
    frames_.push_back(frame);
  }
}

// The innermost frame is a list of operations, or an operation whose regions are being printed.
void OperationPrinter::Step() {
  Frame& frame = frames_.back();
  if (frame.op.valid()) {
    ResumeOperation();
    return;
  }
  if (frame.at_start) {
    frame.at_start = false;
    const Block& block = m_.blocks[frame.block.value];
    const bool first = m_.regions[block.region.value].first == frame.block;
    if (!first || (frame.labels && (block.argument_count != 0 || !block.first.valid()))) {
      out_.append(static_cast<size_t>(indent_ - 2), ' ');
      out_ += names_.Block(frame.block);
      if (block.argument_count != 0) {
        out_ += "(";
        for (uint32_t i = 0; i < block.argument_count; ++i) {
          if (i != 0) out_ += ", ";
          Argument(m_.argument(block, i));
        }
        out_ += ")";
      }
      out_ += ":\n";
    }
  }
  if (!frame.next.valid()) {
    const BlockId next = m_.blocks[frame.block.value].next;
    if (next.valid()) {
      frame.block = next;
      frame.next = m_.blocks[next.value].first;
      frame.at_start = true;
      return;
    }
    frames_.pop_back();
    return;
  }
  const OperationId id = frame.next;
  frame.next = m_.op(id).next;
  StartOperation(id);
}

void OperationPrinter::Argument(ValueId value) {
  out_ += names_.Use(value);
  out_ += ": ";
  Type(m_.type(value));
  if (options_.locations && m_.values[value.value].location.valid()) {
    out_ += " ";
    locations_.AppendUse(m_.values[value.value].location, &out_);
  }
}

void OperationPrinter::StartOperation(OperationId id) {
  const Operation& op = m_.op(id);
  out_.append(static_cast<size_t>(indent_), ' ');
  out_ += names_.Results(op);
  Frame frame;
  frame.op = id;
  frame.generic = options_.generic || !CanPrintCustom(op);
  frames_.push_back(frame);
  const std::string_view name = m_.nodes.str(op.name);
  if (frame.generic) {
    const bool bare = !options_.generic && op.kind() == OpKind::kStablehloConstant;
    if (bare) {
      out_ += name;
    } else {
      AppendQuoted(name, &out_);
    }
    GenericHead(op);
  } else {
    const OpKind kind = op.kind();
    const bool short_name = kind == OpKind::kFuncReturn || kind == OpKind::kBuiltinModule || kind == OpKind::kFuncCall;
    // In functions `func.` is left out; in regions of other dialects it is not.
    bool default_dialect = kind == OpKind::kBuiltinModule;
    if (short_name && !default_dialect) {
      const OperationId parent = m_.regions[m_.blocks[op.block.value].region.value].parent;
      default_dialect = parent.valid() && m_.kind(parent) == OpKind::kFuncFunc;
    }
    out_ += default_dialect ? name.substr(name.find('.') + 1) : name;
  }
  ResumeOperation();
}

void OperationPrinter::ResumeOperation() {
  const size_t index = frames_.size() - 1;
  const bool generic = frames_[index].generic;
  const Operation& op = m_.op(frames_[index].op);
  if (!(generic ? GenericRegions(op) : RunFormat(op))) return;  // a region comes first
  if (options_.locations) {
    out_ += " ";
    if (op.location.valid()) {
      locations_.AppendUse(op.location, &out_);
    } else {
      out_ += "loc(unknown)";
    }
  }
  out_ += "\n";
  frames_.pop_back();
}

// ---- the generic form ----

void OperationPrinter::GenericHead(const Operation& op) {
  out_ += "(";
  Operands(m_.operands_of(op));
  out_ += ")";
  if (op.successor_count != 0) {
    out_ += "[";
    for (uint32_t i = 0; i < op.successor_count; ++i) {
      if (i != 0) out_ += ", ";
      out_ += names_.Block(m_.successors[op.successor_begin + i]);
    }
    out_ += "]";
  }
  std::vector<Attribute> properties;
  for (const Attribute& a : m_.attributes_of(op)) {
    if (a.inherent) properties.push_back(a);
  }
  if (!properties.empty()) {
    out_ += " <";
    Dictionary(properties);
    out_ += ">";
  }
}

bool OperationPrinter::GenericRegions(const Operation& op) {
  Frame& frame = frames_.back();
  if (frame.region < op.region_count) {
    if (frame.open_region) CloseRegion();
    out_ += frame.region == 0 ? " (" : ", ";
    OpenRegion(m_.regions_of(op)[frame.region++], /*labels=*/true);
    return false;
  }
  if (frame.open_region) CloseRegion();
  if (op.region_count != 0) out_ += ")";
  std::vector<Attribute> discardable;
  for (const Attribute& a : m_.attributes_of(op)) {
    if (!a.inherent) discardable.push_back(a);
  }
  if (!discardable.empty()) {
    out_ += " ";
    Dictionary(discardable);
  }
  out_ += " : ";
  FunctionType(op);
  return true;
}

void OperationPrinter::OpenRegion(RegionId region, bool labels) {
  out_ += "{\n";
  frames_.back().open_region = true;
  indent_ += 2;
  PushBlocks(region, labels);
}

void OperationPrinter::CloseRegion() {
  frames_.back().open_region = false;
  indent_ -= 2;
  out_.append(static_cast<size_t>(indent_), ' ');
  out_ += "}";
}

// ---- pieces ----

void OperationPrinter::Operands(absl::Span<const ValueId> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out_ += ", ";
    out_ += names_.Use(values[i]);
  }
}

void OperationPrinter::Dictionary(const std::vector<Attribute>& attributes) {
  out_ += "{";
  bool first = true;
  for (const Attribute& a : attributes) {
    if (!first) out_ += ", ";
    first = false;
    const std::string_view name = m_.nodes.str(a.name);
    bool bare = !name.empty() && !(name[0] >= '0' && name[0] <= '9');
    for (char c : name) {
      bare = bare && ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
                      c == '.' || c == '$');
    }
    if (bare) {
      out_ += name;
    } else {
      AppendQuoted(name, &out_);
    }
    if (m_.nodes.kind(a.value) == NodeKind::kUnit) continue;
    out_ += " = ";
    AppendText(m_.nodes, a.value, &out_);
  }
  out_ += "}";
}

void OperationPrinter::Types(absl::Span<const ValueId> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out_ += ", ";
    Type(m_.type(values[i]));
  }
}

std::vector<ValueId> OperationPrinter::ResultsOf(const Operation& op) const {
  std::vector<ValueId> values;
  for (size_t i = 0; i < op.result_count; ++i) values.push_back(m_.result(op, i));
  return values;
}

void OperationPrinter::FunctionType(const Operation& op) {
  out_ += "(";
  Types(m_.operands_of(op));
  out_ += ") -> ";
  const std::vector<ValueId> results = ResultsOf(op);
  const bool single = results.size() == 1 && m_.nodes.kind(m_.type(results[0])) != NodeKind::kFunctionType;
  if (!single) out_ += "(";
  Types(results);
  if (!single) out_ += ")";
}

}  // namespace hlokit::mlir
