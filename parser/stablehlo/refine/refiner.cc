// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/refine/refiner.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "ir/core/str_cat.h"
#include "parser/stablehlo/refine/argument_sizes.h"
#include "parser/stablehlo/refine/fold.h"
#include "parser/stablehlo/refine/infer_types.h"

namespace hlokit::stablehlo {

using mlir::BlockId;
using mlir::NodeId;
using mlir::NodeKind;
using mlir::OperationId;
using mlir::OpKind;
using mlir::ValueId;

namespace {

bool IsReturn(OpKind kind) {
  return kind == OpKind::kFuncReturn || kind == OpKind::kStablehloReturn || kind == OpKind::kSdyReturn;
}

std::string_view SymbolText(const mlir::NodeTable& n, NodeId symbol) {
  return symbol.valid() && n.kind(symbol) == NodeKind::kSymbol ? n.text(symbol) : std::string_view();
}

}  // namespace

bool Refiner::Fail(SourceRange range, std::string message, std::string hint) {
  sink_->Error(DiagnosticKind::kInference, range, std::move(message), std::move(hint));
  return false;
}

NodeId Refiner::Attribute(const RefinedOp& op, std::string_view name) const {
  for (const mlir::Attribute& a : op.attributes) {
    if (n().str(a.name) == name) return a.value;
  }
  return {};
}

uint32_t Refiner::NewValue(NodeId type, NodeId location) {
  values_.push_back({type, location, std::nullopt});
  return static_cast<uint32_t>(values_.size() - 1);
}

bool Refiner::Copy(const mlir::Operation& op, RefinedOp* made) {
  made->definition = op.definition;
  made->name = op.name;
  made->location = op.location;
  made->range = m_.range(op);
  for (ValueId operand : m_.operands_of(op)) {
    made->operands.push_back(numbers_[operand.value]);
    if (made->operands.back() == kNoNumber) return Fail(made->range, "an operand is defined after its use");
  }
  const absl::Span<const mlir::Attribute> attributes = m_.attributes_of(op);
  made->attributes.assign(attributes.begin(), attributes.end());
  for (uint32_t i = 0; i < op.result_count; ++i) {
    const ValueId result = m_.result(op, i);
    made->results.push_back(NewValue(m_.type(result)));
    numbers_[result.value] = made->results.back();
  }
  if (made->kind() == OpKind::kStablehloAdd && made->operands.size() == 2 && made->results.size() == 1) {
    std::copy(made->operands.begin(), made->operands.end(), values_[made->results[0]].addends);
  }
  return true;
}

bool Refiner::CheckBlocks(const mlir::Block& block) {
  for (OperationId op = block.first; op.valid(); op = m_.op(op).next) {
    if (m_.op(op).successor_count == 0 && !block.next.valid()) continue;
    return Fail(m_.range(m_.op(op)), "the sizes of programs with branches between blocks cannot be refined");
  }
  return !block.next.valid() || Fail({}, "the sizes of programs with several blocks cannot be refined");
}

void Refiner::SetResults(const RefinedOp& op, const std::vector<Known>& known) {
  for (size_t i = 0; i < op.results.size() && i < known.size(); ++i) {
    RefinedValue& value = values_[op.results[i]];
    if (n().kind(known[i].type) == NodeKind::kTensorType) {
      const absl::Span<const int64_t> sizes = n().ints(known[i].type);
      value.type = WithSizes(&n(), value.type, std::vector<int64_t>(sizes.begin(), sizes.end()));
    }
    value.constant = known[i].constant;
    if (!HasElements(n(), value)) value.constant.reset();
    value.late = known[i].late;
  }
}

// ---- functions ----

std::string Refiner::VariantName(std::string_view function) {
  std::string name(function);
  const auto [next, first] = next_number_.emplace(name, 0);
  if (first && !variants_by_name_.contains(name)) return name;
  do {
    name = StrCat(function, "_", next->second++);
  } while (variants_by_name_.contains(name) || names_.contains(name));
  return name;
}

void Refiner::SetFunctionType(RefinedOp* op, const std::vector<Known>& results) {
  std::vector<NodeId> types;
  for (uint32_t argument : op->regions[0]->arguments) types.push_back(values_[argument].type);
  const auto inputs = static_cast<int64_t>(types.size());
  for (const Known& result : results) types.push_back(result.type);
  SetAttribute(op, "function_type", n().Make(NodeKind::kFunctionType, "", {&inputs, 1}, types));
}

Refiner::Variant* Refiner::Refine(OperationId function, const std::vector<Known>& arguments, SourceRange caller) {
  // Constants make variants if they depend on open sizes, or if all that the function computes is a constant.
  const bool late = std::any_of(arguments.begin(), arguments.end(), [](const Known& k) { return k.late; }) ||
                    std::all_of(arguments.begin(), arguments.end(), [](const Known& k) { return k.constant; });
  std::string key = StrCat(function.value);
  for (const Known& argument : arguments) {
    StrAppend(&key, ";", argument.type.value);
    if (!late || !argument.constant) continue;
    for (int64_t value : *argument.constant) StrAppend(&key, ",", value);
  }
  if (const auto found = variants_.find(key); found != variants_.end()) {
    if (!found->second->open) return found->second.get();
    Fail(caller, "a function calls itself");
    return nullptr;
  }
  if (depth_ >= kMaxDepth) {
    Fail(caller, StrCat("functions and regions are nested deeper than ", kMaxDepth));
    return nullptr;
  }
  if (const auto made = variants_of_.find(function.value); made != variants_of_.end() && !made->second.empty()) {
    if (++more_variants_ > kMaxVariants) {
      Fail(caller, StrCat("functions are called with more than ", kMaxVariants, " lists of sizes"));
      return nullptr;
    }
  }
  const mlir::Operation source = m_.op(function);
  std::unique_ptr<Variant>& variant = variants_[key];
  variant = std::make_unique<Variant>();
  Variant* const made = variant.get();
  const NodeId symbol = m_.attribute(source, "sym_name");
  made->name = function == entry_ ? std::string(n().text(symbol)) : VariantName(n().text(symbol));
  variants_by_name_[made->name] = made;
  variants_of_[function.value].push_back(made);
  if (!Copy(source, &made->op)) return nullptr;
  made->op.regions.push_back(std::make_unique<RefinedRegion>());
  std::vector<Known> known = arguments;
  if (!late) {
    for (Known& argument : known) argument.constant.reset();
  }
  // The numbers of values are those of the function that is walked: a callee has values of its own.
  if (!WalkRegion(m_.regions_of(source)[0], known, made->op.regions[0].get(), &made->results)) return nullptr;
  SetAttribute(&made->op, "sym_name", n().String(made->name));
  SetFunctionType(&made->op, made->results);
  if (options_.shapes) RemoveUnusedSizes(made->op.regions[0].get(), values_);
  made->open = false;
  return made;
}

// ---- regions ----

bool Refiner::WalkRegion(mlir::RegionId id, const std::vector<Known>& arguments, RefinedRegion* out,
                         std::vector<Known>* returned) {
  const BlockId block_id = m_.block(id);
  out->has_block = block_id.valid();
  if (!out->has_block) return true;
  const mlir::Block block = m_.blocks[block_id.value];
  if (!CheckBlocks(block)) return false;
  out->label = block.label;
  for (uint32_t i = 0; i < block.argument_count; ++i) {
    const mlir::Value value = m_.values[m_.argument(block, i).value];
    const uint32_t number = NewValue(value.type, value.location);
    numbers_[m_.argument(block, i).value] = number;
    out->arguments.push_back(number);
    if (i >= arguments.size()) continue;
    if (n().kind(arguments[i].type) == NodeKind::kTensorType) {
      const absl::Span<const int64_t> sizes = n().ints(arguments[i].type);
      values_[number].type = WithSizes(&n(), value.type, std::vector<int64_t>(sizes.begin(), sizes.end()));
    }
    values_[number].constant = arguments[i].constant;
    if (!HasElements(n(), values_[number])) values_[number].constant.reset();
    values_[number].late = arguments[i].late;
  }
  ++depth_;
  for (OperationId op = block.first; op.valid(); op = m_.op(op).next) {
    if (!WalkOperation(m_.op(op), out)) return false;
    if (IsReturn(m_.kind(op)) && returned != nullptr) {
      returned->clear();
      for (uint32_t operand : out->operations.back().operands) returned->push_back(KnownOf(operand));
    }
  }
  --depth_;
  return true;
}

std::vector<Refiner::Known> Refiner::LoopState(const mlir::Operation& op, const RefinedOp& made) const {
  std::vector<Known> state;
  for (uint32_t operand : made.operands) state.push_back(KnownOf(operand));
  const mlir::BlockId body = op.region_count == 2 ? m_.block(m_.regions_of(op)[1]) : mlir::BlockId();
  if (!body.valid()) return state;
  const mlir::Block& block = m_.blocks[body.value];
  const absl::Span<const ValueId> results =
      block.last.valid() ? m_.operands_of(m_.op(block.last)) : absl::Span<const ValueId>();
  for (size_t i = 0; i < state.size(); ++i) {
    const bool same = i < results.size() && i < block.argument_count && results[i] == m_.argument(block, i);
    if (same) continue;
    state[i].constant.reset();
    state[i].late = false;
  }
  return state;
}

bool Refiner::WalkRegions(const mlir::Operation& op, RefinedOp* made) {
  const OpKind kind = made->kind();
  std::vector<Known> arguments;
  if (kind == OpKind::kStablehloWhile) arguments = LoopState(op, *made);
  if (kind == OpKind::kSdyNamedComputation || kind == OpKind::kStablehloAsyncStart) {
    for (uint32_t operand : made->operands) arguments.push_back(KnownOf(operand));
  }
  const std::vector<mlir::RegionId> regions(m_.regions_of(op).begin(), m_.regions_of(op).end());
  for (mlir::RegionId region : regions) {
    if (depth_ >= kMaxDepth) return Fail(made->range, StrCat("regions are nested deeper than ", kMaxDepth));
    made->regions.push_back(std::make_unique<RefinedRegion>());
    std::vector<Known> returned;
    if (!WalkRegion(region, arguments, made->regions.back().get(), &returned)) return false;
    if (kind == OpKind::kStablehloIf || kind == OpKind::kStablehloCase || kind == OpKind::kSdyNamedComputation) {
      for (Known& result : returned) {
        if (regions.size() != 1) result.constant.reset();
      }
      SetResults(*made, returned);
    }
  }
  if (kind == OpKind::kStablehloWhile) {
    // The arguments of the condition and of the body have the types of the initial values.
    for (size_t i = 0; i < arguments.size(); ++i) arguments[i].constant = std::nullopt;
    SetResults(*made, arguments);
  }
  return true;
}

bool Refiner::WalkCalls(RefinedOp* made) {
  const auto callee_of = [&](NodeId symbol) {
    const auto found = functions_.find(SymbolText(n(), symbol));
    return found == functions_.end() ? OperationId() : found->second;
  };
  const OpKind kind = made->kind();
  const std::string_view name = kind == OpKind::kStablehloComposite ? "decomposition" : "callee";
  if (kind == OpKind::kFuncCall || kind == OpKind::kStablehloComposite) {
    const OperationId function = callee_of(Attribute(*made, name));
    if (!function.valid()) return true;
    std::vector<Known> arguments;
    for (uint32_t operand : made->operands) arguments.push_back(KnownOf(operand));
    const Variant* const variant = Refine(function, arguments, made->range);
    if (variant == nullptr) return false;
    SetResults(*made, variant->results);
    SetAttribute(made, name, n().Make(NodeKind::kSymbol, variant->name, {}, {}));
  }
  if (kind != OpKind::kStablehloCustomCall && kind != OpKind::kMhloCustomCall) return true;
  // Computations that are applied to elements, as those of the program.
  const NodeId called = Attribute(*made, "called_computations");
  if (!called.valid() || n().kind(called) != NodeKind::kArray) return true;
  for (NodeId symbol : n().children(called)) {
    const OperationId function = callee_of(symbol);
    if (!function.valid() || variants_of_.contains(function.value)) continue;
    const mlir::Operation& op = m_.op(function);
    const mlir::Block& block = m_.blocks[m_.block(m_.regions_of(op)[0]).value];
    std::vector<Known> arguments;
    for (uint32_t i = 0; i < block.argument_count; ++i) arguments.push_back({m_.type(m_.argument(block, i)), {}, {}});
    if (Refine(function, arguments, made->range) == nullptr) return false;
  }
  return true;
}

// ---- operations ----

std::string Refiner::AssertionMessage(const RefinedOp& op) const {
  const NodeId text = Attribute(op, "error_message");
  std::string message(text.valid() && n().kind(text) == NodeKind::kString ? n().text(text)
                                                                          : "an assertion about sizes");
  for (size_t i = 1; i < op.operands.size(); ++i) {
    const std::string place = StrCat("{", i - 1, "}");
    const std::optional<Ints>& value = values_[op.operands[i]].constant;
    for (size_t at = message.find(place); at != std::string::npos; at = message.find(place, at + 1)) {
      message.replace(at, place.size(), value && value->size() == 1 ? StrCat((*value)[0]) : "?");
    }
  }
  return message;
}

bool Refiner::CheckAssertion(const RefinedOp& op, bool* holds) {
  const NodeId target = Attribute(op, "call_target_name");
  const bool is_call = op.kind() == OpKind::kStablehloCustomCall || op.kind() == OpKind::kMhloCustomCall;
  *holds = is_call && target.valid() && n().kind(target) == NodeKind::kString &&
           n().text(target) == "shape_assertion" && !op.operands.empty() && op.results.empty();
  if (!*holds) return true;
  const std::optional<Ints>& value = values_[op.operands[0]].constant;
  if (!value || value->size() != 1) {
    return Fail(op.range, "the condition of an assertion about sizes does not follow from the sizes of the arguments");
  }
  return (*value)[0] != 0 || Fail(op.range, AssertionMessage(op));
}

void Refiner::FoldOperation(RefinedOp* made, RefinedRegion* out) {
  if (made->kind() != OpKind::kFuncCall && made->results.size() == 1) {
    RefinedValue& value = values_[made->results[0]];
    if (!value.constant) value.constant = Fold(n(), *made, values_);
    const bool measured = made->kind() == OpKind::kStablehloGetDimensionSize || made->kind() == OpKind::kShapeShapeOf ||
                          made->kind() == OpKind::kTensorDim;
    value.late = value.constant && (measured || std::any_of(made->operands.begin(), made->operands.end(),
                                                            [&](uint32_t operand) { return values_[operand].late; }));
  }
  const bool folded = !made->results.empty() && made->regions.empty() &&
                      std::all_of(made->results.begin(), made->results.end(), [&](uint32_t result) {
                        return values_[result].constant && values_[result].late && HasElements(n(), values_[result]) &&
                               n().kind(values_[result].type) == NodeKind::kTensorType;
                      });
  if (!folded || made->kind() == OpKind::kStablehloComposite) {
    out->operations.push_back(std::move(*made));
    return;
  }
  for (uint32_t result : made->results) {
    RefinedOp constant;
    constant.location = made->location;
    constant.range = made->range;
    SetKind(&constant, OpKind::kStablehloConstant, 0);
    SetAttribute(&constant, "value", ConstantElements(*values_[result].constant, values_[result].type));
    constant.results = {result};
    out->operations.push_back(std::move(constant));
  }
}

bool Refiner::WalkOperation(const mlir::Operation& source, RefinedRegion* out) {
  if (++operations_ > kMaxOperations) {
    return Fail(m_.range(source), StrCat("the refined program has more than ", kMaxOperations, " operations"));
  }
  const mlir::Operation op = source;
  RefinedOp made;
  if (!Copy(op, &made)) return false;
  if (!options_.shapes) {
    if (!WalkRegions(op, &made)) return false;
    if (made.regions.empty() && made.operands.empty() && made.results.size() == 1) {
      values_[made.results[0]].constant = Fold(n(), made, values_);
    }
    if (options_.dynamism) Canonicalize(&made, out);
    out->operations.push_back(std::move(made));
    return true;
  }
  if (!WalkRegions(op, &made) || !WalkCalls(&made)) return false;
  InferTypes(&n(), made, &values_);
  bool holds = false;
  if (!CheckAssertion(made, &holds)) return false;
  if (holds) return true;
  if (options_.dynamism) Canonicalize(&made, out);
  FoldOperation(&made, out);
  return true;
}

// ---- the file ----

bool Refiner::CopyWhole(const mlir::Operation& source, RefinedOp* made) {
  const mlir::Operation op = source;
  if (!Copy(op, made)) return false;
  if (made->regions.empty() && made->operands.empty() && made->results.size() == 1) {
    values_[made->results[0]].constant = Fold(n(), *made, values_);
  }
  if (op.region_count != 0 && depth_ >= kMaxDepth) {
    return Fail(made->range, StrCat("regions are nested deeper than ", kMaxDepth));
  }
  for (uint32_t i = 0; i < op.region_count; ++i) {
    made->regions.push_back(std::make_unique<RefinedRegion>());
    RefinedRegion* const region = made->regions.back().get();
    const BlockId block_id = m_.block(m_.regions_of(op)[i]);
    region->has_block = block_id.valid();
    if (!region->has_block) continue;
    const mlir::Block block = m_.blocks[block_id.value];
    if (!CheckBlocks(block)) return false;
    region->label = block.label;
    for (uint32_t a = 0; a < block.argument_count; ++a) {
      const mlir::Value value = m_.values[m_.argument(block, a).value];
      region->arguments.push_back(numbers_[m_.argument(block, a).value] = NewValue(value.type, value.location));
    }
    ++depth_;
    if (!AddOperations(block_id, region)) return false;
    --depth_;
  }
  return true;
}

void Refiner::FindReached(const RefinedRegion& region, absl::flat_hash_set<std::string>* reached) const {
  std::vector<const RefinedRegion*> pending = {&region};
  const auto reach = [&](NodeId symbol) {
    const std::string name(SymbolText(n(), symbol));
    const auto found = variants_by_name_.find(name);
    if (found == variants_by_name_.end() || !reached->insert(name).second) return;
    pending.push_back(found->second->op.regions[0].get());
  };
  while (!pending.empty()) {
    const RefinedRegion* const next = pending.back();
    pending.pop_back();
    for (const RefinedOp& op : next->operations) {
      for (const auto& inner : op.regions) pending.push_back(inner.get());
      for (const mlir::Attribute& attribute : op.attributes) {
        reach(attribute.value);
        if (n().kind(attribute.value) != NodeKind::kArray) continue;
        for (NodeId child : n().children(attribute.value)) reach(child);
      }
    }
  }
}

void Refiner::AddVariants(OperationId function, RefinedRegion* out) {
  for (const Variant* variant : variants_of_[function.value]) {
    if (!variants_by_name_.contains(variant->name)) continue;
    out->operations.push_back(std::move(const_cast<Variant*>(variant)->op));
  }
}

bool Refiner::AddOperations(BlockId block, RefinedRegion* out) {
  for (OperationId id = m_.blocks[block.value].first; id.valid(); id = m_.op(id).next) {
    const mlir::Operation& op = m_.op(id);
    if (variants_of_.contains(id.value)) {
      AddVariants(id, out);
      continue;
    }
    // Public functions are of another entry.
    const NodeId visibility = m_.attribute(op, "sym_visibility");
    const bool is_private = visibility.valid() && n().text(visibility) == "private";
    if (op.kind() == OpKind::kFuncFunc && options_.shapes && is_private) continue;
    RefinedOp made;
    if (!CopyWhole(op, &made)) return false;
    if (!options_.shapes && options_.dynamism) Canonicalize(&made, out);
    out->operations.push_back(std::move(made));
  }
  return true;
}

bool Refiner::Run(OperationId entry, const std::vector<NodeId>& types) {
  entry_ = entry;
  for (uint32_t i = 0; i < m_.operations.size(); ++i) {
    const mlir::Operation& op = m_.operations[i];
    const NodeId name = m_.attribute(op, "sym_name");
    if (op.kind() != OpKind::kFuncFunc || !name.valid()) continue;
    names_.insert(std::string(n().text(name)));
    const bool body = op.region_count == 1 && m_.block(m_.regions_of(op)[0]).valid();
    if (body) functions_.emplace(n().text(name), OperationId(i));
  }
  std::vector<Known> arguments;
  for (NodeId type : types) arguments.push_back({type, std::nullopt, false});
  const Variant* const main = Refine(entry, arguments, m_.range(m_.op(entry)));
  if (main == nullptr) return false;
  absl::flat_hash_set<std::string> reached = {main->name};
  FindReached(*main->op.regions[0], &reached);
  for (const auto& [key, variant] : variants_) {
    if (!reached.contains(variant->name)) variants_by_name_.erase(variant->name);
  }
  RefinedRegion top;
  const BlockId block = m_.block(m_.top);
  top.has_block = block.valid();
  if (block.valid() && !AddOperations(block, &top)) return false;
  for (RefinedOp& op : top.operations) {
    if (op.kind() == OpKind::kBuiltinModule) DropAttribute(&op, "jax.uses_shape_polymorphism");
  }
  SetOperations(top, values_, &m_);
  return true;
}

bool RefineProgram(mlir::Module* program, const RefineOptions& options, DiagnosticSink* sink) {
  const OperationId entry = FindEntry(*program, options.entry);
  const auto fail = [&](std::string message, std::string hint = "") {
    const SourceRange range = entry.valid() ? program->range(program->op(entry)) : SourceRange{};
    sink->Error(DiagnosticKind::kInference, range, std::move(message), std::move(hint));
    return false;
  };
  if (!entry.valid())
    return fail(StrCat("there is no function `", options.entry.empty() ? "main" : options.entry, "`"));
  const std::vector<SizedArgument> arguments = ArgumentsOf(*program, entry);
  const absl::StatusOr<std::vector<NodeId>> types = TypesWithSizes(arguments, options.sizes, &program->nodes);
  if (!types.ok()) return fail(std::string(types.status().message().data(), types.status().message().size()));
  const bool any_open = std::any_of(arguments.begin(), arguments.end(),
                                    [&](const SizedArgument& a) { return IsOpen(program->nodes, a.type); });
  if (!any_open && options.shapes && options.dynamism) return true;  // a program of static shapes stays as it is
  for (size_t i = 0; i < types->size(); ++i) {
    if (!options.shapes || !IsOpen(program->nodes, (*types)[i])) continue;
    std::string open;
    for (const std::string& size : arguments[i].sizes) StrAppend(&open, open.empty() || size.empty() ? "" : ", ", size);
    return fail(StrCat("the sizes of ", arguments[i].names[0], " are not all given: ", open),
                "--shape NAME=SIZE gives them");
  }
  return Refiner(program, options, sink).Run(entry, *types);
}

std::vector<std::string> OpenSizes(const mlir::Module& program, const std::string& entry) {
  std::vector<std::string> names;
  const OperationId function = FindEntry(program, entry);
  if (!function.valid()) return names;
  for (const SizedArgument& argument : ArgumentsOf(program, function)) {
    for (const std::string& size : argument.sizes) {
      if (!size.empty() && std::find(names.begin(), names.end(), size) == names.end()) names.push_back(size);
    }
  }
  return names;
}

}  // namespace hlokit::stablehlo
