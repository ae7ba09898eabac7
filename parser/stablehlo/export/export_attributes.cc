// SPDX-License-Identifier: Apache-2.0
// What surrounds operations: shardings, frontend attributes, locations, attributes of arguments and of the module.
#include <algorithm>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/text/attribute_text.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/printer.h"
#include "ir/text/shape_text.h"
#include "parser/mlir/node_parser.h"
#include "parser/stablehlo/export/exporter.h"
#include "parser/stablehlo/kept_attributes.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

absl::Span<const int64_t> Exporter::OrderOf(Shape shape) { return shape.layout()->minor_to_major; }

// ---- attributes of MLIR, kept as text ----

NodeId Exporter::ParseAttribute(std::string_view text, NodeKind kind) {
  const std::string stored(text);
  DiagnosticSink sink;
  mlir::Cursor in(stored, &sink);
  mlir::NodeLimits limits;
  limits.max_nesting = 1 << 10;
  limits.max_literal_bytes = int64_t{1} << 20;
  const NodeId value = mlir::NodeParser(&in, &n(), limits).ParseAttribute();
  return value.valid() && in.AtEnd() && n().kind(value) == kind ? value : NodeId();
}

bool Exporter::AddParsed(std::string_view text, Attributes* attributes) {
  const NodeId dictionary = ParseAttribute(text, NodeKind::kDictionary);
  if (!dictionary.valid()) return false;
  for (size_t i = 0; i < n().child_count(dictionary); ++i) {
    const std::string_view name = n().str(StringId(static_cast<uint32_t>(n().ints(dictionary)[i])));
    const auto same = [&](const NamedAttribute& other) { return other.name == name; };
    if (std::any_of(attributes->begin(), attributes->end(), same)) continue;
    attributes->push_back({name, n().child(dictionary, i)});
  }
  return true;
}

std::optional<std::string_view> Exporter::FrontendAttributeOf(std::optional<uint32_t> list,
                                                              std::string_view name) const {
  if (!list || !ListId(*list).valid()) return std::nullopt;
  const Context& context = module_.context();
  for (const FrontendAttribute& entry : DecodeFrontendAttributes(context, ListId(*list))) {
    if (context.str(entry.first) == name) return context.str(entry.second);
  }
  return std::nullopt;
}

// Of main.
void Exporter::AddFunctionAttributes(Computation computation, size_t results, Attributes* attributes,
                                     Attributes* discardable) {
  const bool entry = computation.is_entry();
  if (!entry && options_.as_xla) return;
  const std::optional<uint32_t> list =
      entry ? module_.header().frontend_attributes.value : computation.root().payload(Attr::kFrontendAttributes);
  if (const auto text = FrontendAttributeOf(list, kMlirFunctionAttributes)) AddParsed(*text, discardable);
  const Instruction root = computation.root();
  if (options_.as_xla && root.has(Attr::kSharding) && !root.shape().IsTuple()) {
    for (const NamedAttribute& attribute : Discardable(root)) {
      if (attribute.name != "mhlo.sharding") continue;
      const NodeId one = Dictionary({attribute});
      attributes->push_back({"res_attrs", n().Make(NodeKind::kArray, "", {}, {&one, 1})});
    }
    return;
  }
  std::vector<NodeId> of_results(results);
  if (const auto text = FrontendAttributeOf(list, kMlirResultAttributes)) {
    const NodeId array = ParseAttribute(*text, NodeKind::kArray);
    if (array.valid() && n().child_count(array) == results) of_results = n().children(array);
    for (NodeId each : of_results) {
      if (!each.valid() || n().kind(each) != NodeKind::kDictionary) of_results.assign(results, NodeId());
    }
  }
  // The tuple of the results is no operation that could have its sharding.
  if (!options_.as_xla && root.opcode() == Opcode::kTuple && root.has(Attr::kSharding)) {
    AddResultShardings(ShardingText(AttrReader(root).list_id(Attr::kSharding)), &of_results);
  }
  if (std::none_of(of_results.begin(), of_results.end(), [](NodeId each) { return each.valid(); })) return;
  for (NodeId& each : of_results) {
    if (!each.valid()) each = n().Make(NodeKind::kDictionary);
  }
  attributes->push_back({"res_attrs", n().Make(NodeKind::kArray, "", {}, of_results)});
}

void Exporter::AddResultShardings(std::string_view tuple, std::vector<NodeId>* of_results) {
  // {{replicated}, {devices=[2]<=[2] metadata={op_name="x"}}}
  if (!tuple.starts_with("{{")) return;
  std::vector<std::string_view> leaves;
  int64_t depth = 0;
  size_t begin = 0;
  for (size_t i = 1; i + 1 < tuple.size(); ++i) {
    if (tuple[i] == '"') {
      for (++i; i + 1 < tuple.size() && tuple[i] != '"'; ++i) i += tuple[i] == '\\' ? 1 : 0;
    } else if (tuple[i] == '{' && depth++ == 0) {
      begin = i;
    } else if (tuple[i] == '}' && --depth == 0) {
      leaves.push_back(tuple.substr(begin, i + 1 - begin));
    }
  }
  if (leaves.size() != of_results->size()) return;
  for (size_t i = 0; i < leaves.size(); ++i) {
    Attributes entries = {{"mhlo.sharding", n().String(leaves[i])}};
    NodeId& each = (*of_results)[i];
    for (size_t k = 0; each.valid() && k < n().child_count(each); ++k) {
      entries.push_back({n().str(StringId(static_cast<uint32_t>(n().ints(each)[k]))), n().child(each, k)});
    }
    each = Dictionary(entries);
  }
}

namespace {

// Returns true for a shape with another layout than the default one.
bool HasLayout(Shape root) {
  std::vector<Shape> pending = {root};
  while (!pending.empty()) {
    const Shape shape = pending.back();
    pending.pop_back();
    if (shape.IsTuple()) {
      for (Shape element : shape.elements()) pending.push_back(element);
    } else if (shape.IsArray() && shape.layout() != nullptr && !shape.layout()->is_default) {
      return true;
    }
  }
  return false;
}

}  // namespace

namespace {

bool HasReversal(Instruction instruction) {
  const WindowView window = WindowView::Of(instruction);
  for (int64_t d = 0; d < window.rank(); ++d) {
    if (window[d].reversal) return true;
  }
  return false;
}

}  // namespace

// Returns true for replica groups that are not written as lists.
bool Exporter::HasIotaGroups(Instruction instruction) const {
  const std::optional<uint32_t> payload = instruction.payload(Attr::kReplicaGroups);
  if (!payload) return false;
  std::string text;
  {
    TextWriter out(&text);
    PrintAttrValue(out, module_, {Attr::kReplicaGroups, *payload});
  }
  return !text.starts_with("{{");
}

Exporter::Attributes Exporter::Discardable(Instruction instruction) {
  Attributes attributes;
  const Context& context = module_.context();
  if (instruction.opcode() != Opcode::kCustomCall && instruction.has(Attr::kBackendConfig)) {
    attributes.push_back({kBackendConfig, n().String(instruction.string_attr(Attr::kBackendConfig))});
  }
  if (const std::optional<uint32_t> list = instruction.payload(Attr::kFrontendAttributes)) {
    Ints names;
    std::vector<NodeId> values;
    const Opcode opcode = instruction.opcode();
    const bool transfer = HasTrait(opcode, kTransfers) && HasTrait(opcode, kStartsAsync);
    const bool composite = instruction.bool_attr(Attr::kIsComposite);
    const Computation parent = instruction.parent();
    const bool of_function = !options_.as_xla && !parent.is_entry() && parent.root().id() == instruction.id();
    std::string_view kept;
    for (const FrontendAttribute& entry : DecodeFrontendAttributes(context, ListId(*list))) {
      if (transfer && context.str(entry.first) == kSourceTargetPairs) continue;  // the operation's own
      if (of_function &&
          (context.str(entry.first) == kMlirFunctionAttributes || context.str(entry.first) == kMlirResultAttributes)) {
        continue;
      }
      if (composite && context.str(entry.first).starts_with("composite.")) continue;
      if (context.str(entry.first) == kMlirAttributes) {
        kept = context.str(entry.second);
        if (ParseAttribute(kept, NodeKind::kDictionary).valid()) continue;
        kept = {};
      }
      names.push_back(n().strings().Intern(context.str(entry.first)).value);
      values.push_back(n().String(context.str(entry.second)));
    }
    if (!names.empty()) {
      attributes.push_back({"mhlo.frontend_attributes", n().Make(NodeKind::kDictionary, "", names, values)});
    }
    if (!kept.empty()) AddParsed(kept, &attributes);
  }
  const bool sends = instruction.opcode() == Opcode::kSend;
  const bool as_xla = options_.as_xla && instruction.opcode() != Opcode::kParameter;
  if (as_xla && (instruction.shape().IsToken() || sends)) {
    attributes.push_back({"xla_shape", n().String("token[]")});
  } else if (HasLayout(instruction.shape()) || (as_xla && instruction.shape().IsTuple() && !IsSplit(instruction))) {
    std::string text;
    {
      TextWriter out(&text);
      hlokit::PrintShape(out, instruction.shape());
    }
    attributes.push_back({instruction.opcode() == Opcode::kParameter ? kShape : "xla_shape", n().String(text)});
  }
  std::vector<Attr> texts;
  for (const AttrValue& value : instruction.attrs()) {
    if (FormOf(value.attr) == AttributeForm::kText) texts.push_back(value.attr);
  }
  if (instruction.opcode() == Opcode::kConvolution) texts.push_back(Attr::kDotAlgorithm);
  if (instruction.opcode() == Opcode::kReduceWindow && HasReversal(instruction)) texts.push_back(Attr::kWindow);
  if (!AccuracyOf(instruction).valid()) texts.push_back(Attr::kResultAccuracy);
  if (HasIotaGroups(instruction)) texts.push_back(Attr::kReplicaGroups);
  if (instruction.int_attr(Attr::kChannelId, 1) == 0) texts.push_back(Attr::kChannelId);
  if (std::any_of(texts.begin(), texts.end(), [&](Attr attr) { return instruction.has(attr); })) {
    AddKept(instruction, texts, &attributes, false);
  }
  if (instruction.opcode() == Opcode::kSelect && instruction.operand(0).shape().IsScalar() &&
      !instruction.shape().IsScalar()) {
    AddKept(instruction, {}, &attributes);
  }
  if (const std::optional<uint32_t> sharding = instruction.payload(Attr::kSharding)) {
    attributes.push_back({"mhlo.sharding", n().String(ShardingText(ListId(*sharding)))});
  }
  AddControlDependencies(instruction, &attributes);
  return attributes;
}

Exporter::Attributes Exporter::WithoutRepeats(Attributes attributes) {
  std::stable_sort(attributes.begin(), attributes.end(),
                   [](const NamedAttribute& a, const NamedAttribute& b) { return a.name < b.name; });
  Attributes once;
  for (const NamedAttribute& attribute : attributes) {
    if (once.empty() || once.back().name != attribute.name) {
      once.push_back(attribute);
      continue;
    }
    NodeId& value = once.back().value;
    const bool dictionaries =
        n().kind(value) == NodeKind::kDictionary && n().kind(attribute.value) == NodeKind::kDictionary;
    if (attribute.name != kAttributes || !dictionaries) {
      value = attribute.value;
      continue;
    }
    Ints names(n().ints(value).begin(), n().ints(value).end());
    std::vector<NodeId> values = n().children(value);
    for (size_t i = 0; i < n().child_count(attribute.value); ++i) {
      const int64_t name = n().ints(attribute.value)[i];
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      names.push_back(name);
      values.push_back(n().child(attribute.value, i));
    }
    value = n().Make(NodeKind::kDictionary, "", names, values);
  }
  return once;
}

std::string Exporter::ShardingText(ListId sharding) const {
  std::string text;
  {
    TextWriter out(&text);
    PrintAttrValue(out, module_, {Attr::kSharding, sharding.value});
  }
  return text;
}

NodeId Exporter::Dictionary(const Attributes& attributes) {
  Ints names;
  std::vector<NodeId> values;
  for (const NamedAttribute& attribute : WithoutRepeats(attributes)) {
    names.push_back(n().strings().Intern(attribute.name).value);
    values.push_back(attribute.value);
  }
  return n().Make(NodeKind::kDictionary, "", names, values);
}

namespace {

// Aliases that an attribute of an argument can say: of a whole parameter with a whole result.
bool IsPlain(const Context& context, const InputOutputAlias& alias, bool several_results) {
  return !alias.must_alias && context.list(alias.parameter_index).empty() &&
         context.list(alias.output_index).size() == (several_results ? 1u : 0u);
}

}  // namespace

NodeId Exporter::ArgumentAttributes(Computation computation) {
  const Context& context = module_.context();
  const ModuleHeader& header = module_.header();
  const bool entry = computation.is_entry(), several = IsUnpacked(computation.root().shape());
  std::vector<NodeId> all;
  bool any = false;
  for (int64_t i = 0; i < computation.parameter_count(); ++i) {
    const Instruction parameter = computation.parameter(i);
    Attributes attributes = Discardable(parameter);
    const absl::Span<const int64_t> replicated = parameter.list_attr(Attr::kParameterReplication);
    if (!replicated.empty()) {
      std::vector<NodeId> flags;
      for (int64_t flag : replicated) flags.push_back(n().Bool(flag != 0));
      attributes.push_back({"mhlo.parameter_replication", n().Make(NodeKind::kArray, "", {}, flags)});
    }
    for (const InputOutputAlias& alias : header.input_output_alias) {
      if (!entry || alias.parameter != i || !IsPlain(context, alias, several)) continue;
      attributes.push_back({"tf.aliasing_output", I32(several ? context.list(alias.output_index)[0] : 0)});
      break;
    }
    for (const BufferDonor& donor : header.buffer_donor) {
      if (!entry || donor.parameter != i || !context.list(donor.parameter_index).empty()) continue;
      attributes.push_back({"jax.buffer_donor", n().Bool(true)});
      break;
    }
    any = any || !attributes.empty();
    all.push_back(Dictionary(attributes));
  }
  return any ? n().Make(NodeKind::kArray, "", {}, all) : NodeId();
}

NodeId Exporter::NestedLayout(Shape root, bool tiles) {
  const auto dense = [&](absl::Span<const int64_t> values) {
    const int64_t sizes[] = {static_cast<int64_t>(values.size())};
    const NodeId type = n().Tensor(sizes, n().Make(NodeKind::kIndexType));
    const auto* data = reinterpret_cast<const std::byte*>(n().arena().CopyArray(values.data(), values.size()));
    return n().MakeBlob(type, data, values.size() * sizeof(int64_t), values.size() == 1);
  };
  // Lists of tuples are made after their elements.
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
      made.push_back(n().Make(NodeKind::kArray, "", {}, elements));
      continue;
    }
    const LayoutRecord* layout = shape.IsArray() ? shape.layout() : nullptr;
    if (!tiles) {
      made.push_back(dense(layout == nullptr ? absl::Span<const int64_t>() : layout->minor_to_major));
      continue;
    }
    std::vector<NodeId> list;
    if (layout != nullptr && layout->extras != nullptr) {
      for (const std::vector<int64_t>& tile : layout->extras->tiles) list.push_back(dense(tile));
    }
    made.push_back(n().Make(NodeKind::kArray, "", {}, list));
  }
  return made.back();
}

namespace {

enum class LayoutContent : uint8_t { kOther, kTiles, kMore };  // than the default order: tiles, or more than these

LayoutContent ContentOf(Shape root) {
  LayoutContent content = LayoutContent::kOther;
  std::vector<Shape> pending = {root};
  while (!pending.empty()) {
    const Shape shape = pending.back();
    pending.pop_back();
    if (shape.IsTuple()) pending.insert(pending.end(), shape.elements().begin(), shape.elements().end());
    if (!shape.IsArray() || shape.layout() == nullptr || shape.layout()->extras == nullptr) continue;
    LayoutExtras others = *shape.layout()->extras;
    if (!others.tiles.empty()) content = std::max(content, LayoutContent::kTiles);
    others.tiles.clear();
    if (!(others == LayoutExtras())) content = LayoutContent::kMore;
  }
  return content;
}

}  // namespace

void Exporter::AddEntryLayout(Attributes* attributes) {
  if (!module_.header().entry_layout) return;
  const EntryLayout& layout = *module_.header().entry_layout;
  if (!layout.result.valid() || static_cast<int64_t>(layout.parameters.size()) != module_.entry().parameter_count()) {
    return;
  }
  const auto list = [&](absl::Span<const Shape> shapes, bool tiles) {
    std::vector<NodeId> each;
    for (Shape shape : shapes) each.push_back(NestedLayout(shape, tiles));
    return n().Make(NodeKind::kArray, "", {}, each);
  };
  // A list of one result has its layout; of several the list is that of the tuple.
  std::vector<Shape> results = {layout.result};
  if (IsUnpacked(layout.result)) results.assign(layout.result.elements().begin(), layout.result.elements().end());
  bool more = false;
  const auto add = [&](std::string_view orders, std::string_view tiles, absl::Span<const Shape> shapes) {
    if (std::none_of(shapes.begin(), shapes.end(), HasLayout)) return;
    LayoutContent content = LayoutContent::kOther;
    for (Shape shape : shapes) content = std::max(content, ContentOf(shape));
    attributes->push_back({orders, list(shapes, false)});
    if (content == LayoutContent::kTiles || options_.as_xla) attributes->push_back({tiles, list(shapes, true)});
    more = more || content == LayoutContent::kMore;
  };
  add("mhlo.xla_entry_computation_parameter_layouts", "mhlo.xla_entry_computation_parameter_tiles", layout.parameters);
  add("mhlo.xla_entry_computation_result_layout", "mhlo.xla_entry_computation_result_tiles", results);
  if (!more || options_.as_xla) return;
  std::vector<NodeId> texts;
  for (Shape shape : layout.parameters) texts.push_back(n().String(ToString(shape)));
  texts.push_back(n().String(ToString(layout.result)));
  attributes->push_back({kEntryLayout, n().Make(NodeKind::kArray, "", {}, texts)});
}

Exporter::Attributes Exporter::HeaderAttributes() {
  const Context& context = module_.context();
  const ModuleHeader& header = module_.header();
  Attributes attributes;
  if (header.num_partitions != 1 || header.replica_count != 1) {
    attributes = {{"mhlo.num_partitions", I32(header.num_partitions)},
                  {"mhlo.num_replicas", I32(header.replica_count)}};
  }
  if (header.frontend_attributes.valid()) {
    Ints names;
    std::vector<NodeId> values;
    std::string_view kept;
    for (const FrontendAttribute& entry : DecodeFrontendAttributes(context, header.frontend_attributes)) {
      const std::string_view key = context.str(entry.first);
      if (key == kMlirResultAttributes || key == kMlirFunctionAttributes) continue;
      if (key == kMlirModuleAttributes) {
        kept = context.str(entry.second);
        continue;
      }
      names.push_back(n().strings().Intern(context.str(entry.first)).value);
      values.push_back(n().String(context.str(entry.second)));
    }
    if (!names.empty()) {
      attributes.push_back({"mhlo.frontend_attributes", n().Make(NodeKind::kDictionary, "", names, values)});
    }
    if (!kept.empty()) AddParsed(kept, &attributes);
  }
  const bool several = IsUnpacked(module_.entry().root().shape());
  std::vector<NodeId> aliases;
  for (const InputOutputAlias& alias : header.input_output_alias) {
    if (IsPlain(context, alias, several)) continue;
    const NodeId inner = Dictionary({{"kind", n().String(alias.must_alias ? "must_alias" : "may_alias")},
                                     {"parameter_index", Dims(context.list(alias.parameter_index))},
                                     {"parameter_number", I64(alias.parameter)}});
    aliases.push_back(Dictionary({{"alias", inner}, {"output_index", Dims(context.list(alias.output_index))}}));
  }
  AddEntryLayout(&attributes);
  std::vector<NodeId> donors;
  for (const BufferDonor& donor : header.buffer_donor) {
    if (context.list(donor.parameter_index).empty()) continue;  // of an argument
    Ints part = {donor.parameter};
    part.insert(part.end(), context.list(donor.parameter_index).begin(), context.list(donor.parameter_index).end());
    donors.push_back(Dims(part));
  }
  if (!donors.empty() && !options_.as_xla) {
    attributes.push_back({kBufferDonors, n().Make(NodeKind::kArray, "", {}, donors)});
  }
  if (options_.as_xla) {
    attributes.push_back({"mhlo.cross_program_prefetches", n().Make(NodeKind::kArray, "", {}, {})});
    attributes.push_back({"mhlo.is_dynamic", n().Bool(false)});
    attributes.push_back({"mhlo.use_auto_spmd_partitioning", n().Bool(false)});
  }
  if (!aliases.empty() || options_.as_xla)
    attributes.push_back({"mhlo.input_output_alias", n().Make(NodeKind::kArray, "", {}, aliases)});
  return attributes;
}

// type:(op_name(frames, or a file position))
NodeId Exporter::LocationOf(Instruction instruction) {
  if (!instruction.record().metadata.valid()) return {};
  const Context& context = module_.context();
  const Metadata metadata = context.metadata[instruction.record().metadata];
  const StackFrames& tables = module_.header().stack_frames;
  const auto file = [&](std::string_view name, int64_t line, int64_t column, int64_t end_line, int64_t end_column) {
    const int64_t position[] = {line, column, end_line == 0 ? line : end_line, end_column == 0 ? column : end_column};
    return n().Make(NodeKind::kFileLocation, name, position, {});
  };
  // The frame and its callers, the innermost first.
  std::vector<NodeId> frames;
  constexpr size_t kMaxFrames = 256;
  for (int64_t id = metadata.stack_frame_id;
       id > 0 && id <= static_cast<int64_t>(tables.stack_frames.size()) && frames.size() < kMaxFrames;) {
    const StackFrame& frame = tables.stack_frames[static_cast<size_t>(id - 1)];
    const int64_t parent = int64_t{frame.parent_frame_id} - 1;
    id = parent < id ? parent : 0;
    if (frame.file_location_id < 1 || frame.file_location_id > static_cast<int32_t>(tables.file_locations.size()))
      break;
    const FileLocation& place = tables.file_locations[static_cast<size_t>(frame.file_location_id - 1)];
    const auto text = [&](const std::vector<StringId>& names, int32_t i) {
      return i >= 1 && i <= static_cast<int32_t>(names.size()) ? context.str(names[static_cast<size_t>(i - 1)])
                                                               : std::string_view();
    };
    const NodeId position =
        file(text(tables.file_names, place.file_name_id), place.line, place.column, place.end_line, place.end_column);
    const std::string_view function = text(tables.function_names, place.function_name_id);
    frames.push_back(function.empty() ? position : n().Make(NodeKind::kNameLocation, function, {}, {&position, 1}));
  }
  NodeId location;
  for (size_t i = frames.size(); i-- > 0;) {
    const NodeId pair[] = {frames[i], location};
    location = location.valid() ? n().Make(NodeKind::kCallSiteLocation, "", {}, pair) : frames[i];
  }
  NodeId source;
  if (metadata.source_file.valid()) {
    source = file(context.str(metadata.source_file), metadata.source_line, metadata.source_column,
                  metadata.source_end_line, metadata.source_end_column);
  }
  const bool has_names = metadata.op_name.valid() || metadata.op_type.valid();
  if (!location.valid() && (!has_names || options_.as_xla)) location = std::exchange(source, NodeId());
  const auto named = [&](std::string_view name) {
    location = n().Make(NodeKind::kNameLocation, name, {},
                        location.valid() ? absl::Span<const NodeId>(&location, 1) : absl::Span<const NodeId>());
  };
  if (metadata.op_name.valid()) named(context.str(metadata.op_name));
  if (metadata.op_type.valid()) named(StrCat(context.str(metadata.op_type), ":"));
  if (!source.valid() || !location.valid() || options_.as_xla) return location;
  // A position within a name would be a stack frame.
  const int64_t without_metadata[] = {0};
  const NodeId parts[] = {location, source};
  return n().Make(NodeKind::kFusedLocation, "", without_metadata, parts);
}

}  // namespace hlokit::stablehlo
