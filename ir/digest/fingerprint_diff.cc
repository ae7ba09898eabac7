// SPDX-License-Identifier: Apache-2.0
#include "ir/digest/fingerprint_diff.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/digest/fingerprint_internal.h"
#include "ir/text/literal_text.h"
#include "ir/text/printer.h"

namespace hlokit {
namespace {

// Maximum bytes of a value.
constexpr size_t kMaxValue = 160;

// Returns "x vs y", with long values shortened around the first byte in which they differ.
std::string Versus(std::string_view a, std::string_view b) {
  const size_t common = static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  return StrCat(Shorten(a, kMaxValue, common), " vs ", Shorten(b, kMaxValue, common));
}

std::string Number(int64_t n) { return StrCat(n); }

std::string Hex(const std::byte* data, size_t size) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "0x";
  for (size_t i = size; i-- > 0;) {
    text += kHex[std::to_integer<int>(data[i]) >> 4];
    text += kHex[std::to_integer<int>(data[i]) & 15];
  }
  return text;
}

// Returns two different elements. Those with equal text, such as some NaNs, are followed by their bits.
std::string ElementsToString(ElementType type, const std::byte* a, const std::byte* b) {
  std::string text_a, text_b;
  {
    TextWriter out_a(&text_a), out_b(&text_b);
    AppendScalar(out_a, type, a);
    AppendScalar(out_b, type, b);
  }
  const std::string text = StrCat(text_a, " vs ", text_b);
  const size_t width = static_cast<size_t>(BytesOf(type));
  return text_a != text_b ? text : StrCat(text, " (", Hex(a, width), " vs ", Hex(b, width), ")");
}

std::string IndexToString(absl::Span<const int64_t> index) {
  std::string text = "{";
  for (size_t i = 0; i < index.size(); ++i) StrAppend(&text, i > 0 ? "," : "", index[i]);
  return text + "}";
}

std::string MetadataToString(Instruction i) {
  if (!i.metadata_id().valid()) return "absent";
  std::string text;
  {
    TextWriter out(&text);
    PrintMetadata(out, i.module().context(), i.metadata_id());
  }
  return text;
}

class Comparison {
 public:
  Comparison(const FingerprintedModule& a, const FingerprintedModule& b) : a_(a), b_(b), options_(a.table->options()) {
    print_.print_metadata = options_.metadata;
    print_.include_layout_in_shapes = options_.layout;
  }

  FingerprintDiff Run();

 private:
  void CompareHeaders();
  void ListWhatIsLeftOut();

  // Finds the next step and returns true, or describes a difference here and returns false.
  bool StepIntoComputation(Computation a, Computation b, std::string caller);
  bool StepIntoUncalled();
  bool StepFromPair(Instruction a, Instruction b);
  bool StepToCallee(Instruction a, Instruction b);
  bool StepToControl(Instruction a, Instruction b);

  void DescribePair(Instruction a, Instruction b);
  void DescribeAttrs(Instruction a, Instruction b);
  void DescribeLiterals(std::string_view what, LiteralId a, LiteralId b);
  void DescribeInsertion(Instruction a, Instruction b);

  Digest Of(Instruction i) const { return (&i.module() == a_.module ? a_ : b_).table->of(i.id()); }
  Digest Of(Computation c) const { return (&c.module() == a_.module ? a_ : b_).table->of(c.id()); }
  // Returns the instructions of `from` whose digests are not in `others`, or are there fewer times.
  std::vector<Instruction> Unmatched(const std::vector<Instruction>& from,
                                     const std::vector<Instruction>& others) const;
  std::string ShapeText(Shape shape) const { return ToString(shape, options_.layout); }
  std::string AttrToString(Instruction i, const AttrValue& value) const;
  void Report(std::string text) { diff_.differences.push_back(std::move(text)); }
  void ReportHeader(std::string_view field, std::string_view a, std::string_view b) {
    if (a != b) diff_.header.push_back(StrCat(field, ": ", Versus(a, b)));
  }

  const FingerprintedModule a_, b_;
  const FingerprintOptions options_;
  PrintOptions print_;
  FingerprintDiff diff_;
};

// ---- header ----

std::string AliasesToString(const Module& module) {
  const Context& context = module.context();
  std::string text = "{";
  for (const InputOutputAlias& alias : module.header().input_output_alias) {
    StrAppend(&text, " ", IndexToString(context.list(alias.output_index)), ": (", alias.parameter, ", ",
              IndexToString(context.list(alias.parameter_index)), alias.must_alias ? ", must-alias)" : ", may-alias)");
  }
  return text + " }";
}

std::string DonorsToString(const Module& module) {
  std::string text = "{";
  for (const BufferDonor& donor : module.header().buffer_donor) {
    StrAppend(&text, " (", donor.parameter, ", ", IndexToString(module.context().list(donor.parameter_index)), ")");
  }
  return text + " }";
}

std::string UnknownAttributesToString(const Module& module) {
  std::string text;
  for (StringId s : module.header().unknown_attributes) StrAppend(&text, module.context().str(s), " ");
  return text;
}

std::string EntryLayoutToString(const Module& module) {
  if (!module.header().entry_layout.has_value()) return "none";
  std::string text = "(";
  for (Shape shape : module.header().entry_layout->parameters) {
    StrAppend(&text, text.size() > 1 ? ", " : "", ToString(shape));
  }
  text += ")->";
  const Shape result = module.header().entry_layout->result;
  return result.valid() ? text + ToString(result) : text;
}

std::string PropagationToString(const Module& module, ListId list) {
  return list.valid() ? IndexToString(module.context().list(list)) : "none";
}

std::string FrontendAttributesToString(const Module& module) {
  const ListId list = module.header().frontend_attributes;
  if (!list.valid()) return "none";
  std::string text;
  {
    TextWriter out(&text);
    PrintAttrValue(out, module, {Attr::kFrontendAttributes, list.value});
  }
  return text;
}

void Comparison::CompareHeaders() {
  const ModuleHeader& a = a_.module->header();
  const ModuleHeader& b = b_.module->header();
  const Module& ma = *a_.module;
  const Module& mb = *b_.module;
  const auto flag = [](bool value) { return value ? std::string_view("true") : std::string_view("false"); };
  ReportHeader("replica_count", Number(a.replica_count), Number(b.replica_count));
  ReportHeader("num_partitions", Number(a.num_partitions), Number(b.num_partitions));
  ReportHeader("alias_passthrough_params", flag(a.alias_passthrough_params), flag(b.alias_passthrough_params));
  ReportHeader("input_output_alias", AliasesToString(ma), AliasesToString(mb));
  ReportHeader("buffer_donor", DonorsToString(ma), DonorsToString(mb));
  ReportHeader("unknown attributes", UnknownAttributesToString(ma), UnknownAttributesToString(mb));
  if (options_.layout) ReportHeader("entry_computation_layout", EntryLayoutToString(ma), EntryLayoutToString(mb));
  if (options_.sharding) {
    ReportHeader("allow_spmd_sharding_propagation_to_parameters",
                 PropagationToString(ma, a.allow_spmd_sharding_propagation_to_parameters),
                 PropagationToString(mb, b.allow_spmd_sharding_propagation_to_parameters));
    ReportHeader("allow_spmd_sharding_propagation_to_output",
                 PropagationToString(ma, a.allow_spmd_sharding_propagation_to_output),
                 PropagationToString(mb, b.allow_spmd_sharding_propagation_to_output));
  }
  if (options_.frontend_attributes)
    ReportHeader("frontend_attributes", FrontendAttributesToString(ma), FrontendAttributesToString(mb));
  if (options_.schedule) ReportHeader("is_scheduled", flag(a.is_scheduled), flag(b.is_scheduled));
}

// ---- path ----

std::vector<Instruction> Comparison::Unmatched(const std::vector<Instruction>& from,
                                               const std::vector<Instruction>& others) const {
  std::vector<Digest> digests;
  for (Instruction i : others) digests.push_back(Of(i));
  std::sort(digests.begin(), digests.end());
  std::vector<uint8_t> used(digests.size());
  std::vector<Instruction> unmatched;
  for (Instruction i : from) {
    size_t at = static_cast<size_t>(std::lower_bound(digests.begin(), digests.end(), Of(i)) - digests.begin());
    while (at < digests.size() && digests[at] == Of(i) && used[at]) ++at;
    if (at < digests.size() && digests[at] == Of(i)) {
      used[at] = 1;
    } else {
      unmatched.push_back(i);
    }
  }
  return unmatched;
}

std::vector<Instruction> SinksOf(Computation computation) {
  std::vector<Instruction> sinks;
  for (Instruction i : computation.instructions()) {
    if (IsSink(i)) sinks.push_back(i);
  }
  return sinks;
}

bool Comparison::StepIntoComputation(Computation a, Computation b, std::string caller) {
  FingerprintStep step;
  step.computation_a = a;
  step.computation_b = b;
  step.caller = std::move(caller);
  const auto take = [&](FingerprintStep::Via via, int64_t index, Instruction at_a, Instruction at_b) {
    step.via = via;
    step.index = index;
    step.a = at_a;
    step.b = at_b;
    diff_.path.push_back(std::move(step));
    return diff_.path.back().a.valid() && diff_.path.back().b.valid();
  };
  if (a.execution_thread() != b.execution_thread()) {
    Report(StrCat("execution thread of ", step.caller, ": ", Versus(a.execution_thread(), b.execution_thread())));
    return false;
  }
  if (a.parameter_count() != b.parameter_count()) {
    Report(StrCat("parameters of ", step.caller,
                  " computation: ", Versus(Number(a.parameter_count()), Number(b.parameter_count()))));
  }
  const int64_t parameters = std::min(a.parameter_count(), b.parameter_count());
  for (int64_t i = 0; i < parameters; ++i) {
    const Instruction pa = a.parameter(i), pb = b.parameter(i);
    if (pa.valid() && pb.valid() && Of(pa) != Of(pb)) return take(FingerprintStep::Via::kParameter, i, pa, pb);
  }
  if (a.parameter_count() != b.parameter_count()) return false;
  const Instruction ra = a.root(), rb = b.root();
  if (ra.valid() && rb.valid() && Of(ra) != Of(rb)) return take(FingerprintStep::Via::kRoot, 0, ra, rb);
  const std::vector<Instruction> sinks_a = SinksOf(a), sinks_b = SinksOf(b);
  const std::vector<Instruction> only_a = Unmatched(sinks_a, sinks_b), only_b = Unmatched(sinks_b, sinks_a);
  if (!only_a.empty() || !only_b.empty()) {
    const Instruction sa = only_a.empty() ? Instruction() : only_a[0];
    const Instruction sb = only_b.empty() ? Instruction() : only_b[0];
    if (take(FingerprintStep::Via::kSink, 0, sa, sb)) return true;
    Report(sa.valid() ? "only in the first: unused, but part of the fingerprint"
                      : "only in the second: unused, but part of the fingerprint");
    return false;
  }
  Report(StrCat("order of the instructions of ", step.caller, " computation"));
  return false;
}

bool Comparison::StepIntoUncalled() {
  const std::vector<ComputationId>& ids_a = a_.table->uncalled();
  const std::vector<ComputationId>& ids_b = b_.table->uncalled();
  const auto unmatched = [](const FingerprintedModule& from, const FingerprintedModule& others) {
    absl::flat_hash_set<Digest> digests;
    for (ComputationId id : others.table->uncalled()) digests.insert(others.table->of(id));
    std::vector<Computation> result;
    for (ComputationId id : from.table->uncalled()) {
      if (!digests.contains(from.table->of(id))) result.push_back(from.module->computation(id));
    }
    return result;
  };
  const std::vector<Computation> only_a = unmatched(a_, b_), only_b = unmatched(b_, a_);
  if (!only_a.empty() && !only_b.empty()) return StepIntoComputation(only_a[0], only_b[0], "uncalled");
  if (!only_a.empty() || !only_b.empty()) {
    Report(only_a.empty() ? StrCat("uncalled computation only in the second: ", only_b[0].name())
                          : StrCat("uncalled computation only in the first: ", only_a[0].name()));
  } else if (ids_a.size() != ids_b.size()) {
    Report(StrCat("uncalled computations: ", ids_a.size(), " vs ", ids_b.size()));
  }
  return false;
}

bool Comparison::StepToControl(Instruction a, Instruction b) {
  const std::vector<Instruction> control_a = a.control_predecessors(), control_b = b.control_predecessors();
  if (control_a.size() != control_b.size()) return false;
  const std::vector<Instruction> only_a = Unmatched(control_a, control_b), only_b = Unmatched(control_b, control_a);
  if (only_a.empty() || only_b.empty()) return false;
  diff_.path.push_back({FingerprintStep::Via::kControl, 0, {}, {}, "", only_a[0], only_b[0]});
  return true;
}

bool Comparison::StepToCallee(Instruction a, Instruction b) {
  for (const AttrValue& value : a.attrs()) {
    if (!NamesComputations(value.attr)) continue;
    const std::optional<uint32_t> other = b.payload(value.attr);
    if (!other.has_value()) return false;
    std::vector<ComputationId> callees_a, callees_b;
    a.module().ForEachCallee(value, [&](ComputationId callee) { callees_a.push_back(callee); });
    b.module().ForEachCallee({value.attr, *other}, [&](ComputationId callee) { callees_b.push_back(callee); });
    if (callees_a.size() != callees_b.size()) return false;
    for (size_t i = 0; i < callees_a.size(); ++i) {
      const Computation ca = a.module().computation(callees_a[i]), cb = b.module().computation(callees_b[i]);
      if (Of(ca) == Of(cb)) continue;
      const std::string_view attr = ToString(value.attr);
      return StepIntoComputation(ca, cb,
                                 HoldsList(InfoOf(value.attr).type) ? StrCat(attr, "[", i, "]") : std::string(attr));
    }
  }
  return false;
}

bool Comparison::StepFromPair(Instruction a, Instruction b) {
  // Operands of different operations do not correspond, so the path ends here.
  if (a.opcode() != b.opcode() || a.operand_count() != b.operand_count()) {
    DescribePair(a, b);
    return false;
  }
  for (int64_t i = 0; i < a.operand_count(); ++i) {
    if (Of(a.operand(i)) == Of(b.operand(i))) continue;
    diff_.path.push_back({FingerprintStep::Via::kOperand, i, {}, {}, "", a.operand(i), b.operand(i)});
    return true;
  }
  if (StepToControl(a, b)) return true;
  const size_t reported = diff_.differences.size();
  if (StepToCallee(a, b)) return true;
  // A difference of the called computation ends the path, unless one of its parameters continues it.
  if (diff_.differences.size() == reported) DescribePair(a, b);
  return false;
}

// ---- differences ----

std::string Comparison::AttrToString(Instruction i, const AttrValue& value) const {
  PrintOptions print = print_;
  // Lists of shapes exist for their layouts.
  if (InfoOf(value.attr).type == AttrType::kShapeList) print.include_layout_in_shapes = true;
  std::string text;
  TextWriter out(&text);
  PrintAttrValue(out, i.module(), value, print);
  out.Flush();
  return text;
}

void Comparison::DescribeAttrs(Instruction a, Instruction b) {
  const auto compare = [&](const AttrValue& value, Instruction at, Instruction other, bool both) {
    if (!options_.Includes(InfoOf(value.attr).category)) return;
    const AttrType type = InfoOf(value.attr).type;
    const std::optional<uint32_t> payload = other.payload(value.attr);
    const bool first = at == a;
    if (!payload.has_value()) {
      const std::string text = Shorten(AttrToString(at, value), kMaxValue);
      Report(
          StrCat("attribute ", ToString(value.attr), ": ", first ? text : "absent", " vs ", first ? "absent" : text));
    } else if (!both) {
      return;
    } else if (type == AttrType::kLiteral) {
      DescribeLiterals("literal", LiteralId(value.payload), LiteralId(*payload));
    } else if (type == AttrType::kInstructionList) {
      if (a.control_predecessors().size() != b.control_predecessors().size()) {
        Report(
            StrCat("control predecessors: ", a.control_predecessors().size(), " vs ", b.control_predecessors().size()));
      }
    } else if (NamesComputations(value.attr)) {
      if (!HoldsList(type)) return;
      const size_t size_a = at.module().context().list(ListId(value.payload)).size();
      const size_t size_b = other.module().context().list(ListId(*payload)).size();
      if (size_a != size_b)
        Report(StrCat("attribute ", ToString(value.attr), ": ", size_a, " computations vs ", size_b));
    } else {
      const std::string text_a = AttrToString(at, value), text_b = AttrToString(other, {value.attr, *payload});
      if (text_a != text_b) Report(StrCat("attribute ", ToString(value.attr), ": ", Versus(text_a, text_b)));
    }
  };
  for (const AttrValue& value : a.attrs()) compare(value, a, b, true);
  for (const AttrValue& value : b.attrs()) compare(value, b, a, false);
}

void Comparison::DescribeLiterals(std::string_view what, LiteralId a, LiteralId b) {
  struct Pair {
    LiteralId a, b;
    std::string index;
  };
  // Visits both tuples in parallel, depth first, up to the first leaf that differs.
  std::vector<Pair> stack{{a, b, ""}};
  while (!stack.empty()) {
    const Pair at = std::move(stack.back());
    stack.pop_back();
    const LiteralRecord& la = a_.module->context().literals[at.a];
    const LiteralRecord& lb = b_.module->context().literals[at.b];
    const std::string where = at.index.empty() ? std::string(what) : StrCat(what, " at tuple index ", at.index);
    if (!SameShape(la.shape, lb.shape, /*ignore_layout=*/true)) {
      Report(StrCat(where, ": ", Versus(ShapeText(la.shape), ShapeText(lb.shape))));
      return;
    }
    if (la.elided != lb.elided) {
      Report(StrCat(where, ": ", la.elided ? "elided vs known" : "known vs elided"));
      return;
    }
    if (la.elided) continue;
    if (la.shape.IsTuple()) {
      for (int64_t i = la.shape.tuple_size(); i-- > 0;) {
        stack.push_back({la.elements[i], lb.elements[i], StrCat(Shorten(at.index, kMaxValue), "{", i, "}")});
      }
      continue;
    }
    const size_t width = std::max<size_t>(1, static_cast<size_t>(BytesOf(la.shape.element_type())));
    const size_t count = std::min(la.size_bytes, lb.size_bytes) / width;
    size_t different = 0, first = 0;
    for (size_t i = count; i-- > 0;) {
      if (std::equal(la.data + i * width, la.data + (i + 1) * width, lb.data + i * width)) continue;
      first = i;
      ++different;
    }
    if (different == 0) continue;
    Report(StrCat(where, ": ", different, " of ", count, " elements differ, first at ", first, ": ",
                  ElementsToString(la.shape.element_type(), la.data + first * width, lb.data + first * width)));
    return;
  }
}

// If one side is an operand of the other, an operation was inserted in between.
void Comparison::DescribeInsertion(Instruction a, Instruction b) {
  for (int64_t i = 0; i < b.operand_count(); ++i) {
    if (Of(b.operand(i)) == Of(a))
      return Report(StrCat("the second applies ", b.opcode_text(), " to the first's value"));
  }
  for (int64_t i = 0; i < a.operand_count(); ++i) {
    if (Of(a.operand(i)) == Of(b))
      return Report(StrCat("the first applies ", a.opcode_text(), " to the second's value"));
  }
}

void Comparison::DescribePair(Instruction a, Instruction b) {
  const size_t before = diff_.differences.size();
  if (a.opcode() != b.opcode() || a.opcode_text() != b.opcode_text()) {
    Report(StrCat("opcode: ", Versus(a.opcode_text(), b.opcode_text())));
  }
  const std::string shape_a = ShapeText(a.shape()), shape_b = ShapeText(b.shape());
  if (shape_a != shape_b) Report(StrCat("shape: ", Versus(shape_a, shape_b)));
  if (a.opcode() != b.opcode()) {
    DescribeInsertion(a, b);
    return;
  }
  if (a.operand_count() != b.operand_count()) {
    Report(StrCat("operands: ", a.operand_count(), " vs ", b.operand_count()));
  }
  DescribeAttrs(a, b);
  if (a.opcode() == Opcode::kConstant) DescribeLiterals("value", a.literal_id(), b.literal_id());
  if (a.opcode() == Opcode::kParameter && a.parameter_number() != b.parameter_number()) {
    Report(StrCat("parameter number: ", a.parameter_number(), " vs ", b.parameter_number()));
  }
  if (options_.metadata) {
    const std::string text_a = MetadataToString(a), text_b = MetadataToString(b);
    if (text_a != text_b) Report(StrCat("metadata: ", Versus(text_a, text_b)));
  }
  if (diff_.differences.size() == before) {
    Report("position among identical instructions with side effects");
  }
}

// ---- equal fingerprints ----

void Comparison::ListWhatIsLeftOut() {
  const Module& a = *a_.module;
  const Module& b = *b_.module;
  const auto differs_with = [&](bool FingerprintOptions::*option) {
    if (options_.*option) return false;
    FingerprintOptions options = options_;
    options.*option = true;
    return Fingerprint(a, options) != Fingerprint(b, options);
  };
  const std::pair<std::string_view, bool FingerprintOptions::*> options[] = {
      {"layout", &FingerprintOptions::layout},
      {"sharding", &FingerprintOptions::sharding},
      {"metadata", &FingerprintOptions::metadata},
      {"frontend attributes", &FingerprintOptions::frontend_attributes},
      {"schedule", &FingerprintOptions::schedule}};
  for (const auto& [name, option] : options) {
    if (differs_with(option)) diff_.ignored_differences.emplace_back(name);
  }

  const auto names = [](const Module& module) {
    std::vector<std::string_view> all{module.name()};
    for (Computation c : module.computations()) {
      all.push_back(c.name());
      for (Instruction i : c.instructions()) all.push_back(i.name());
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  if (names(a) != names(b)) diff_.ignored_differences.emplace_back("names");
  const auto order = [](const FingerprintedModule& m) {
    std::vector<Digest> all;
    for (Computation c : m.module->computations()) {
      all.push_back(m.table->of(c.id()));
      for (Instruction i : c.instructions()) all.push_back(m.table->of(i.id()));
    }
    return all;
  };
  std::vector<Digest> order_a = order(a_), order_b = order(b_);
  if (order_a == order_b) return;
  std::sort(order_a.begin(), order_a.end());
  std::sort(order_b.begin(), order_b.end());
  diff_.ignored_differences.emplace_back(order_a == order_b ? "order" : "duplicates");
}

FingerprintDiff Comparison::Run() {
  diff_.same = a_.table->module() == b_.table->module();
  if (diff_.same) {
    ListWhatIsLeftOut();
    return std::move(diff_);
  }
  CompareHeaders();
  const Computation entry_a = a_.module->entry(), entry_b = b_.module->entry();
  bool found = false;
  if (entry_a.valid() != entry_b.valid()) {
    Report(entry_a.valid() ? "only the first has an entry computation" : "only the second has an entry computation");
  } else if (entry_a.valid() && Of(entry_a) != Of(entry_b)) {
    found = StepIntoComputation(entry_a, entry_b, "entry");
  } else {
    found = StepIntoUncalled();
  }
  // Digests depend on the digests of operands, so the path goes down. Only a cycle, in an invalid module, could return
  // to a visited pair.
  absl::flat_hash_set<uint32_t> visited;
  while (found) {
    const Instruction a = diff_.path.back().a, b = diff_.path.back().b;
    if (!visited.insert(a.id().value).second) {
      Report("cycle among operands or calls");
      break;
    }
    found = StepFromPair(a, b);
  }
  if (diff_.header.empty() && diff_.path.empty() && diff_.differences.empty()) {
    diff_.header.emplace_back("origin recovery table or debug attributes");
  }
  return std::move(diff_);
}

}  // namespace

FingerprintDiff CompareFingerprints(const FingerprintedModule& a, const FingerprintedModule& b) {
  return Comparison(a, b).Run();
}

}  // namespace hlokit
