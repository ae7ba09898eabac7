// SPDX-License-Identifier: Apache-2.0
#include "runtime/client/combined_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/digest/fingerprint.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "runtime/client/first_error.h"

namespace hlokit::runtime {
namespace {

absl::Status Different(const std::string& why) {
  return absl::FailedPreconditionError(StrCat("devices entered a collective with different programs: ", why));
}

// A collective as devices must agree on it, and as errors name it.
struct CollectiveKey {
  std::string key, text;
};

// Leaves out what programs may have differently: names, layouts, annotations, the number of the channel.
CollectiveKey KeyOf(Instruction collective, const FingerprintTable& digests) {
  CollectiveKey result;
  result.text = StrCat(collective.opcode_text(), " of");
  for (const Instruction operand : collective.operands()) {
    StrAppend(&result.text, " ", ToString(operand.shape(), /*with_layout=*/false));
  }
  result.key = StrCat(result.text, " to ", ToString(collective.shape(), /*with_layout=*/false));
  for (const AttrValue& value : collective.attrs()) {
    const AttrInfo& info = InfoOf(value.attr);
    if (info.category != AttrCategory::kSemantic || value.attr == Attr::kConstrainLayout) continue;
    StrAppend(&result.key, ", ", std::string(info.text));
    if (value.attr == Attr::kChannelId || NamesComputations(value.attr)) continue;
    TextWriter out(&result.key);
    out << "=";
    PrintAttrValue(out, collective.module(), value);
  }
  collective.ForEachCallee(
      [&](Computation called) { StrAppend(&result.key, ", ", ToString(digests.of(called.id()))); });
  return result;
}

// Returns the collectives in the order of the text.
absl::StatusOr<std::vector<CollectiveKey>> CollectivesOf(const Module& module) {
  const FingerprintTable digests(module);
  std::vector<CollectiveKey> collectives;
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (!HasTrait(i.opcode(), kCollective)) continue;
      if (HasTrait(i.opcode(), kStartsAsync)) {
        return Different(StrCat("an ", std::string(i.opcode_text()), " takes the same program on all devices"));
      }
      collectives.push_back(KeyOf(i, digests));
    }
  }
  return collectives;
}

absl::Status CheckSame(absl::Span<const CollectiveKey> first, size_t first_device,
                       absl::Span<const CollectiveKey> other, size_t other_device) {
  const auto name = [](absl::Span<const CollectiveKey> list, size_t n) {
    return n < list.size() ? list[n].text : std::string("missing");
  };
  for (size_t n = 0; n < std::max(first.size(), other.size()); ++n) {
    if (n < first.size() && n < other.size() && first[n].key == other[n].key) continue;
    const std::string at = name(first, n), there = name(other, n);
    return Different(StrCat("collective ", n + 1, " of device ", first_device, " is ", at, ", that of device ",
                            other_device, " is ", there, at == there ? " with other attributes" : ""));
  }
  return absl::OkStatus();
}

// Returns the shapes of parameters or results as text; nothing if some are tuples.
bool AppendShapes(Shape shape, std::vector<std::string>* shapes) {
  if (shape.IsTuple()) return false;
  shapes->push_back(ToString(shape));
  return true;
}

// The shapes that all programs together have: for each, as often as one of them has it.
class UnitedShapes {
 public:
  // Returns the position of each shape of a program.
  std::vector<size_t> Place(absl::Span<const std::string> shapes) {
    std::map<std::string, size_t> used;
    std::vector<size_t> places;
    for (const std::string& shape : shapes) {
      std::vector<size_t>& at = places_[shape];
      const size_t n = used[shape]++;
      if (n == at.size()) {
        at.push_back(shapes_.size());
        shapes_.push_back(shape);
      }
      places.push_back(at[n]);
    }
    return places;
  }
  const std::vector<std::string>& shapes() const { return shapes_; }
  std::string TupleText() const {
    std::string text = "(";
    for (const std::string& shape : shapes_) StrAppend(&text, text.size() == 1 ? "" : ", ", shape);
    return text + ")";
  }

 private:
  std::map<std::string, std::vector<size_t>> places_;
  std::vector<std::string> shapes_;
};

// One program as text that others do not collide with.
struct PartText {
  std::string computations, entry;
  std::vector<std::string> parameter_shapes, result_shapes;
  bool returns_tuple = false;
  std::vector<CollectiveKey> collectives;
};

absl::StatusOr<PartText> TextOf(const Module& program, size_t number) {
  PrintOptions options = PrintOptions::Lossless();
  options.print_metadata = false;
  options.print_stack_frames = false;
  // Another thread may be reading the program, whose context a copy would share.
  const absl::StatusOr<std::unique_ptr<Module>> own = ParseModuleText(ToString(program, options));
  if (!own.ok()) return own.status();
  Module& module = **own;
  PartText part;
  absl::StatusOr<std::vector<CollectiveKey>> collectives = CollectivesOf(module);
  if (!collectives.ok()) return collectives.status();
  part.collectives = *std::move(collectives);
  const Computation entry = module.entry();
  for (int64_t i = 0; i < entry.parameter_count(); ++i) {
    if (!AppendShapes(entry.parameter(i).shape(), &part.parameter_shapes)) return Different("one of them takes tuples");
  }
  const Shape result = entry.root().shape();
  part.returns_tuple = result.IsTuple();
  if (!part.returns_tuple) AppendShapes(result, &part.result_shapes);
  for (const Shape element : part.returns_tuple ? result.elements() : absl::Span<const Shape>()) {
    if (!AppendShapes(element, &part.result_shapes)) return Different("one of them returns tuples of tuples");
  }
  for (const Computation c : module.computations()) {
    module.SetName(c.id(), module.context().strings.Intern(StrCat("program", number, ".", std::string(c.name()))));
  }
  part.entry = std::string(entry.name());
  for (const Computation c : module.computations()) StrAppend(&part.computations, ToString(c, options), "\n\n");
  return part;
}

// Returns the computation that calls a program: from and to all parameters and results of the whole.
std::string BranchText(size_t number, const PartText& part, const UnitedShapes& parameters,
                       absl::Span<const size_t> parameter_places, const UnitedShapes& results,
                       absl::Span<const size_t> result_places) {
  std::string operands, elements;
  std::string text = StrCat("branch", number, " {\n  all = ", parameters.TupleText(), " parameter(0)\n");
  for (size_t i = 0; i < parameter_places.size(); ++i) {
    StrAppend(&text, "  p", i, " = ", part.parameter_shapes[i], " get-tuple-element(all), index=", parameter_places[i],
              "\n");
    StrAppend(&operands, i == 0 ? "p" : ", p", i);
  }
  std::string called = "(";
  for (const std::string& shape : part.result_shapes) StrAppend(&called, called.size() == 1 ? "" : ", ", shape);
  StrAppend(&text, "  value = ", part.returns_tuple ? called + ")" : part.result_shapes[0], " call(", operands,
            "), to_apply=", part.entry, "\n");
  std::vector<std::string> names(results.shapes().size());
  for (size_t i = 0; i < result_places.size(); ++i) {
    names[result_places[i]] = part.returns_tuple ? StrCat("r", i) : "value";
    if (!part.returns_tuple) continue;
    StrAppend(&text, "  r", i, " = ", part.result_shapes[i], " get-tuple-element(value), index=", i, "\n");
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& shape = results.shapes()[i];
    if (names[i].empty()) {
      names[i] = StrCat("absent", i);
      if (shape.starts_with("token")) {
        StrAppend(&text, "  ", names[i], " = token[] after-all()\n");
      } else {
        const size_t dims = shape.find('['), end = shape.find(']');
        StrAppend(&text, "  zero", i, " = u8[] constant(0)\n  zeros", i, " = u8", shape.substr(dims, end + 1 - dims),
                  " broadcast(zero", i, "), dimensions={}\n  ", names[i], " = ", shape, " convert(zeros", i, ")\n");
      }
    }
    StrAppend(&elements, i == 0 ? "" : ", ", names[i]);
  }
  StrAppend(&text, "  ROOT results = ", results.TupleText(), " tuple(", elements, ")\n}\n\n");
  return text;
}

// Returns the entry, which runs the program of each device.
std::string EntryText(const UnitedShapes& parameters, const UnitedShapes& results, absl::Span<const size_t> part_of,
                      size_t parts, int64_t num_partitions) {
  std::string text = "ENTRY combined {\n", operands, table, branches;
  for (size_t i = 0; i < parameters.shapes().size(); ++i) {
    StrAppend(&text, "  p", i, " = ", parameters.shapes()[i], " parameter(", i, ")\n");
    StrAppend(&operands, i == 0 ? "p" : ", p", i);
  }
  for (const size_t part : part_of) StrAppend(&table, table.empty() ? "" : ", ", part);
  StrAppend(&text, "  all = ", parameters.TupleText(), " tuple(", operands, ")\n  replica = u32[] replica-id()\n",
            "  partition = u32[] partition-id()\n  partitions = u32[] constant(", num_partitions, ")\n",
            "  first = u32[] multiply(replica, partitions)\n  device = u32[] add(first, partition)\n",
            "  programs = s32[", part_of.size(), "] constant({", table, "})\n",
            "  slice = s32[1] dynamic-slice(programs, device), dynamic_slice_sizes={1}\n",
            "  program = s32[] reshape(slice)\n  ROOT results = ", results.TupleText(), " conditional(program");
  for (size_t i = 0; i < parts; ++i) {
    StrAppend(&text, ", all");
    StrAppend(&branches, i == 0 ? "branch" : ", branch", i);
  }
  StrAppend(&text, "), branch_computations={", branches, "}\n}\n");
  return text;
}

}  // namespace

absl::StatusOr<std::shared_ptr<CombinedProgram>> CombinedProgram::Create(absl::Span<const Module* const> programs,
                                                                         interp::EngineKind kind,
                                                                         const interp::EvaluatorOptions& options) {
  if (static_cast<int64_t>(programs.size()) != options.num_replicas * options.num_partitions) {
    return Different("they have other numbers of replicas and partitions");
  }
  std::shared_ptr<CombinedProgram> whole(new CombinedProgram());
  std::map<const Module*, size_t> numbers;
  std::vector<PartText> texts;
  std::vector<size_t> first_device;
  for (size_t d = 0; d < programs.size(); ++d) {
    const auto [at, added] = numbers.emplace(programs[d], texts.size());
    whole->part_of_.push_back(at->second);
    if (!added) continue;
    absl::StatusOr<PartText> text = TextOf(*programs[d], at->second);
    if (!text.ok()) return text.status();
    texts.push_back(*std::move(text));
    first_device.push_back(d);
    const absl::Status same = CheckSame(texts[0].collectives, 0, texts.back().collectives, d);
    if (!same.ok()) return same;
  }
  UnitedShapes parameters, results;
  for (const PartText& text : texts) {
    whole->parts_.push_back({parameters.Place(text.parameter_shapes), results.Place(text.result_shapes)});
  }
  std::string text = "HloModule combined\n\n";
  for (const PartText& part : texts) text += part.computations;
  for (size_t i = 0; i < texts.size(); ++i) {
    text += BranchText(i, texts[i], parameters, whole->parts_[i].parameters, results, whole->parts_[i].results);
  }
  text += EntryText(parameters, results, whole->part_of_, texts.size(), options.num_partitions);
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
  if (!module.ok()) return module.status();
  whole->module_ = *std::move(module);
  // The programs follow each other in the text.
  interp::EvaluatorOptions own = options;
  own.host_io = nullptr;
  own.collective_numbers.assign(whole->module_->instruction_id_bound(), 0);
  size_t seen = 0;
  const size_t each = texts[0].collectives.size();
  for (const Computation c : whole->module_->computations()) {
    for (const Instruction i : c.instructions()) {
      if (HasTrait(i.opcode(), kCollective)) {
        own.collective_numbers[i.id().value] = static_cast<int64_t>(seen++ % each) + 1;
      }
    }
  }
  DiagnosticSink sink;
  whole->engine_ = interp::PrepareEngine(kind, *whole->module_, own, &sink);
  if (whole->engine_ == nullptr) return FirstError(sink, "cannot run different programs together");
  for (const Shape shape : whole->engine_->argument_shapes()) whole->zeros_.push_back(Literal::Zeros(shape));
  return whole;
}

absl::StatusOr<std::vector<std::vector<Literal>>> CombinedProgram::Run(absl::Span<const Arguments> arguments) {
  std::vector<const Literal*> given;
  for (size_t d = 0; d < arguments.size(); ++d) {
    const size_t begin = given.size();
    for (const Literal& zero : zeros_) given.push_back(&zero);
    const std::vector<size_t>& places = parts_[part_of_[d]].parameters;
    if (places.size() != arguments[d].size()) return absl::InternalError("unexpected number of arguments");
    for (size_t i = 0; i < places.size(); ++i) given[begin + places[i]] = arguments[d][i];
  }
  DiagnosticSink sink;
  std::optional<std::vector<Literal>> computed = engine_->RunPointers(given, &sink);
  if (!computed) return FirstError(sink, "execution failed");
  const size_t each = computed->size() / arguments.size();
  std::vector<std::vector<Literal>> results(arguments.size());
  for (size_t d = 0; d < arguments.size(); ++d) {
    for (const size_t place : parts_[part_of_[d]].results) {
      results[d].push_back(std::move((*computed)[d * each + place]));
    }
  }
  return results;
}

}  // namespace hlokit::runtime
