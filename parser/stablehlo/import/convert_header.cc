// SPDX-License-Identifier: Apache-2.0
// The header of the module, attributes of the arguments of main, and metadata from locations.
#include <algorithm>
#include <tuple>

#include "ir/core/str_cat.h"
#include "ir/sharding/sharding.h"
#include "ir/text/frontend_attributes.h"
#include "parser/stablehlo/import/converter.h"
#include "parser/stablehlo/kept_attributes.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

absl::Status Converter::ConvertHeader() {
  ModuleHeader& header = module_->header();
  std::string_view name = root_.valid() ? StringOf(program_.op(root_), "sym_name") : "";
  header.name = context().strings.Intern(name.empty() ? "main" : name);
  if (root_.valid()) {
    KeptAttributes kept;
    for (const mlir::Attribute& attribute : program_.attributes_of(program_.op(root_))) {
      absl::Status status = HeaderAttribute(nodes().str(attribute.name), attribute.value, &kept);
      if (!status.ok())
        return Error(program_.op(root_), StrCat(nodes().str(attribute.name), " ", std::string(status.message())));
    }
    AddModuleFrontend(kMlirModuleAttributes, TextOf(kept));
  }
  SetEntryLayout(program_.op(main_));
  return absl::OkStatus();
}

absl::Status Converter::HeaderAttribute(std::string_view key, NodeId value, KeptAttributes* kept) {
  ModuleHeader& header = module_->header();
  const std::optional<int64_t> number = nodes().IntegerValue(value);
  const NodeKind kind = nodes().kind(value);
  if (key == "mhlo.num_partitions" && number) {
    header.num_partitions = *number;
  } else if (key == "mhlo.num_replicas" && number) {
    header.replica_count = *number;
  } else if (key == "mhlo.frontend_attributes" && kind == NodeKind::kDictionary) {
    absl::StatusOr<ListId> list = FrontendAttributes(value);
    if (!list.ok()) return list.status();
    // Beside the meshes that the program has.
    std::vector<FrontendAttribute> all = DecodeFrontendAttributes(context(), *list);
    if (header.frontend_attributes.valid()) {
      for (const FrontendAttribute& entry : DecodeFrontendAttributes(context(), header.frontend_attributes)) {
        const auto same = [&](const FrontendAttribute& other) { return other.first == entry.first; };
        if (std::none_of(all.begin(), all.end(), same)) all.push_back(entry);
      }
    }
    header.frontend_attributes = EncodeFrontendAttributes(&context(), std::move(all));
  } else if (key == "mhlo.input_output_alias" && kind == NodeKind::kArray) {
    for (NodeId entry : nodes().children(value)) {
      const NodeId alias = nodes().kind(entry) == NodeKind::kDictionary ? nodes().Entry(entry, "alias") : NodeId();
      if (!alias.valid() || nodes().kind(alias) != NodeKind::kDictionary) continue;
      InputOutputAlias made;
      made.output_index = context().lists.Intern(FieldInts(entry, "output_index"));
      made.parameter = nodes().IntegerValue(nodes().Entry(alias, "parameter_number")).value_or(0);
      made.parameter_index = context().lists.Intern(FieldInts(alias, "parameter_index"));
      const NodeId must = nodes().Entry(alias, "kind");
      made.must_alias = must.valid() && nodes().kind(must) == NodeKind::kString && nodes().text(must) == "must_alias";
      header.input_output_alias.push_back(made);
    }
    SortAliases();
  } else if (key == kBufferDonors && kind == NodeKind::kArray) {
    for (NodeId donor : nodes().children(value)) {
      const Ints part = nodes().Integers(donor).value_or(Ints());
      if (part.empty()) continue;
      header.buffer_donor.push_back({part[0], context().lists.Intern(absl::MakeConstSpan(part).subspan(1))});
    }
    std::sort(header.buffer_donor.begin(), header.buffer_donor.end(), [&](const BufferDonor& a, const BufferDonor& c) {
      const absl::Span<const int64_t> x = context().list(a.parameter_index), y = context().list(c.parameter_index);
      if (a.parameter != c.parameter) return a.parameter < c.parameter;
      return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
    });
  } else if (kind == NodeKind::kArray && nodes().child_count(value) == 0 && key == "mhlo.cross_program_prefetches") {
    // XLA writes these attributes for every module.
  } else if ((key == "mhlo.is_dynamic" || key == "mhlo.use_auto_spmd_partitioning") && number.value_or(1) == 0) {
    // Likewise.
  } else if (!key.starts_with("mhlo.xla_entry_computation_") && key != kEntryLayout) {
    Keep(key, value, kept);
  }
  return absl::OkStatus();
}

void Converter::KeepFunctionAttributes(const Op& function, InstructionId root) {
  const auto add = [&](std::string_view key, std::string_view text) {
    if (!root.valid()) {
      AddModuleFrontend(key, text);
    } else if (!text.empty()) {
      AddFrontend(root, key, text);
    }
  };
  KeptAttributes own;
  for (const mlir::Attribute& attribute : program_.attributes_of(function)) {
    if (attribute.inherent || nodes().str(attribute.name).starts_with("hlokit.")) continue;
    Keep(nodes().str(attribute.name), attribute.value, &own);
  }
  add(kMlirFunctionAttributes, TextOf(own));
  const NodeId list = Attribute(function, "res_attrs");
  if (!list.valid() || nodes().kind(list) != NodeKind::kArray) return;
  std::string text;
  bool any = false;
  for (NodeId attributes : nodes().children(list)) {
    if (nodes().kind(attributes) != NodeKind::kDictionary) return;
    KeptAttributes kept;
    for (size_t i = 0; i < nodes().child_count(attributes); ++i) {
      const std::string name(nodes().str(StringId(static_cast<uint32_t>(nodes().ints(attributes)[i]))));
      const bool taken = !root.valid() && (name == "mhlo.sharding" || name == "sdy.sharding");
      if (!taken) Keep(name, nodes().child(attributes, i), &kept);
    }
    any = any || !kept.names.empty();
    StrAppend(&text, text.empty() ? "[" : ", ", kept.names.empty() ? "{}" : TextOf(kept));
  }
  if (any) add(kMlirResultAttributes, text + "]");
}

void Converter::SortAliases() {
  std::sort(module_->header().input_output_alias.begin(), module_->header().input_output_alias.end(),
            [&](const InputOutputAlias& a, const InputOutputAlias& c) {
              const absl::Span<const int64_t> x = context().list(a.output_index), y = context().list(c.output_index);
              return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
            });
}

// Shardings of the results of a function, onto its root.
absl::Status Converter::ResultShardings(const Op& function, ComputationId computation) {
  const NodeId list = Attribute(function, "res_attrs");
  if (!list.valid() || nodes().kind(list) != NodeKind::kArray) return absl::OkStatus();
  std::vector<ListId> leaves;
  bool any = false, open = false;
  for (NodeId attributes : nodes().children(list)) {
    const bool dictionary = nodes().kind(attributes) == NodeKind::kDictionary;
    NodeId value = dictionary ? nodes().Entry(attributes, "mhlo.sharding") : NodeId();
    if (dictionary && !value.valid()) value = nodes().Entry(attributes, "sdy.sharding");
    leaves.push_back(ListId());
    if (!value.valid() || (nodes().kind(value) != NodeKind::kString && nodes().kind(value) != NodeKind::kVerbatim)) {
      continue;
    }
    absl::StatusOr<ListId> sharding = ReadShardingText(nodes().text(value));
    if (!sharding.ok()) return Error(function, StrCat("result ", std::string(sharding.status().message())));
    leaves.back() = *sharding;
    any = true;
    open = open || HasOpenDimension(nodes().text(value));
  }
  if (!any) return absl::OkStatus();
  const Instruction instruction = module_->computation(computation).root();
  const InstructionId root = instruction.id();
  const bool tuple = leaves.size() != 1 || (options_.return_tuple && computation == module_->entry().id());
  if (tuple) {
    if (instruction.opcode() == Opcode::kTuple && !ShardingOf(root).valid()) ShardTuple(root, leaves);
  } else {
    frames_.push_back({FrameKind::kFunction, computation, {}, {}, {}, {}, {}, {}, true});
    // Of other functions the shardings of values prevail.
    open = open || computation != module_->entry().id();
    module_->SetRoot(computation, ResultWithSharding(root, leaves[0], open));
    frames_.pop_back();
  }
  return absl::OkStatus();
}

// Names as XLA gives them: the last part of the name of the location, or the opcode, and a number that is unique for
// it.
void Converter::NameInstructions() {
  StringPool& strings = context().strings;
  const auto base_of = [](std::string_view name) {
    const size_t dot = name.rfind('.');
    const bool numbered = dot != std::string_view::npos && dot + 1 < name.size() &&
                          name.find_first_not_of("0123456789", dot + 1) == std::string_view::npos;
    return numbered ? name.substr(0, dot) : name;
  };
  std::vector<int64_t> counts;  // by StringId of the base
  std::string text;
  const auto numbered = [&](StringId base) {
    if (base.value >= counts.size()) counts.resize(std::max<size_t>(base.value + 1, counts.size() * 2), 0);
    text.assign(context().str(base));
    StrAppend(&text, ".", ++counts[base.value]);
    return strings.Intern(text);
  };
  absl::flat_hash_map<uint32_t, std::string_view> functions;  // names of functions, by computation
  for (const auto& [name, id] : functions_) {
    if (const auto found = computations_.find(id.value); found != computations_.end()) {
      functions.emplace(found->second.value, name);
    }
  }
  for (Computation computation : module_->computations()) {
    const auto found = functions.find(computation.id().value);
    const std::string base(found == functions.end() ? base_of(computation.name()) : found->second);
    module_->SetName(computation.id(), numbered(strings.Intern(base)));
  }
  counts.clear();
  strings.Reserve(strings.size() + module_->instruction_count());
  // Bases by the names that instructions have so far, and by metadata; invalid: not known yet.
  std::vector<StringId> by_name, by_metadata;
  const auto slot = [](std::vector<StringId>* list, uint32_t i) -> StringId& {
    if (i >= list->size()) list->resize(std::max<size_t>(i + 1, list->size() * 2));
    return (*list)[i];
  };
  const StringId none = strings.Intern("");
  for (Computation computation : module_->computations()) {
    for (Instruction instruction : computation.instructions()) {
      const InstructionRecord& record = instruction.record();
      StringId base = none;
      if (record.opcode != Opcode::kParameter && record.metadata.valid()) {
        StringId& known = slot(&by_metadata, record.metadata.value);
        if (!known.valid()) {
          const StringId op_name = context().metadata[record.metadata].op_name;
          known = op_name.valid() ? strings.Intern(CleanName(context().str(op_name))) : none;
        }
        base = known;
      }
      if (base == none) {
        StringId& known = slot(&by_name, record.name.value);
        if (!known.valid()) known = strings.Intern(std::string(base_of(context().str(record.name))));
        base = known;
      }
      module_->SetName(instruction.id(), numbered(base));
    }
  }
  module_->ForgetUniqueNames();
}

std::string Converter::CleanName(std::string_view text) {
  text = text.substr(text.rfind('/') == std::string_view::npos ? 0 : text.rfind('/') + 1);
  std::string cleaned;
  for (char c : text) {
    const bool keep =
        (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '.' || c == '-';
    cleaned.push_back(keep ? c : '_');
  }
  if (!cleaned.empty() && cleaned[0] >= '0' && cleaned[0] <= '9') cleaned.clear();
  return cleaned;
}

void Converter::AddAlias(int64_t parameter, absl::Span<const int64_t> index, int64_t output, size_t results) {
  const int64_t element[] = {output};
  InputOutputAlias alias;
  alias.output_index = context().lists.Intern(results > 1 || options_.return_tuple ? absl::Span<const int64_t>(element)
                                                                                   : absl::Span<const int64_t>());
  alias.parameter = parameter;
  alias.parameter_index = context().lists.Intern(index);
  module_->header().input_output_alias.push_back(alias);
}

// A flag for each array of a parameter, if the attribute says them.
std::optional<Converter::Ints> Converter::ReplicationOf(std::string_view key, NodeId value, Shape shape) const {
  if (key == "mhlo.parameter_replication" && nodes().kind(value) == NodeKind::kArray) {
    return nodes().Integers(value);
  }
  const bool same = key == "mhlo.is_same_data_across_replicas";
  if (!same || nodes().IntegerValue(value).value_or(0) == 0 || shape.leaf_count() > kMaxLeaves) return std::nullopt;
  return Ints(static_cast<size_t>(shape.leaf_count()), 1);
}

size_t Converter::ResultCount(const Op& function) const {
  const NodeId type = Attribute(function, "function_type");
  if (!type.valid() || nodes().kind(type) != NodeKind::kFunctionType) return 0;
  return nodes().child_count(type) - static_cast<size_t>(nodes().ints(type)[0]);
}

// Of main, whose arguments are the elements of one parameter.
absl::Status Converter::TupledArgumentAttributes(const Op& function, NodeId list) {
  const InstructionId parameter = module_->computation(frame().computation).parameter(0).id();
  const Shape tuple = shape_of(parameter);
  const size_t results = ResultCount(function);
  std::vector<ListId> leaves;
  Ints replication;
  bool any_replication = false, any_sharding = false;
  for (int64_t i = 0; i < tuple.tuple_size(); ++i) {
    const NodeId attributes =
        static_cast<size_t>(i) < nodes().child_count(list) ? nodes().child(list, static_cast<size_t>(i)) : NodeId();
    std::optional<Ints> flags;
    leaves.emplace_back();
    if (attributes.valid() && nodes().kind(attributes) == NodeKind::kDictionary) {
      const Ints names(nodes().ints(attributes).begin(), nodes().ints(attributes).end());
      for (size_t k = 0; k < names.size(); ++k) {
        const std::string_view key = nodes().str(StringId(static_cast<uint32_t>(names[k])));
        const NodeId value = nodes().child(attributes, k);
        if (key == "mhlo.sharding" || key == "sdy.sharding") {
          absl::StatusOr<ListId> sharding = ReadShardingText(nodes().text(value));
          if (!sharding.ok())
            return Error(function, StrCat("argument ", i, " ", std::string(sharding.status().message())));
          leaves.back() = *sharding;
          any_sharding = true;
        } else if (key == "tf.aliasing_output" && nodes().IntegerValue(value)) {
          const int64_t index[] = {i};
          AddAlias(0, index, *nodes().IntegerValue(value), results);
        } else if (key == "jax.buffer_donor" && nodes().IntegerValue(value).value_or(0) != 0) {
          const int64_t index[] = {i};
          module_->header().buffer_donor.push_back({0, context().lists.Intern(index)});
        } else if (!flags) {
          flags = ReplicationOf(key, value, tuple.element(i));
        }
      }
    }
    const int64_t arrays = std::min(tuple.element(i).leaf_count(), kMaxLeaves);
    any_replication = any_replication || flags;
    const Ints found = flags.value_or(Ints(static_cast<size_t>(arrays), 0));
    replication.insert(replication.end(), found.begin(), found.end());
  }
  if (any_replication) module_->SetAttr(parameter, Attr::kParameterReplication, module_->ListPayload(replication));
  if (any_sharding) ShardTuple(parameter, leaves);
  SortAliases();
  return absl::OkStatus();
}

absl::Status Converter::ArgumentAttributes(const Op& function) {
  const NodeId list = Attribute(function, "arg_attrs");
  if (!list.valid() || nodes().kind(list) != NodeKind::kArray) return absl::OkStatus();
  const bool main = frame().function == main_;
  if (main && options_.use_tuple_args) return TupledArgumentAttributes(function, list);
  const size_t results = ResultCount(function);
  for (size_t i = 0; i < nodes().child_count(list); ++i) {
    const NodeId attributes = nodes().child(list, i);
    if (nodes().kind(attributes) != NodeKind::kDictionary) {
      return Error(function, StrCat("argument ", i, " has attributes that are no dictionary"));
    }
    if (static_cast<int64_t>(i) >= module_->computation(frame().computation).parameter_count()) break;
    const InstructionId parameter = module_->computation(frame().computation).parameter(static_cast<int64_t>(i)).id();
    const Ints names(nodes().ints(attributes).begin(), nodes().ints(attributes).end());
    KeptAttributes kept;
    for (size_t k = 0; k < names.size(); ++k) {
      const std::string_view key = nodes().str(StringId(static_cast<uint32_t>(names[k])));
      const NodeId value = nodes().child(attributes, k);
      absl::Status status;
      if (key == "mhlo.sharding" && nodes().kind(value) == NodeKind::kString) {
        status = SetSharding(parameter, nodes().text(value));
      } else if (key == "sdy.sharding" && nodes().kind(value) == NodeKind::kVerbatim) {
        status = SetSdySharding(parameter, nodes().text(value));
      } else if (key == "mhlo.frontend_attributes" && nodes().kind(value) == NodeKind::kDictionary) {
        status = SetFrontend(parameter, value);
      } else if (main && key == "tf.aliasing_output" && nodes().IntegerValue(value)) {
        AddAlias(static_cast<int64_t>(i), {}, *nodes().IntegerValue(value), results);
      } else if (main && key == "jax.buffer_donor" && nodes().IntegerValue(value).value_or(0) != 0) {
        module_->header().buffer_donor.push_back({static_cast<int64_t>(i), context().lists.Intern({})});
      } else if (const std::optional<Ints> flags = ReplicationOf(key, value, shape_of(parameter))) {
        module_->SetAttr(parameter, Attr::kParameterReplication, module_->ListPayload(*flags));
      } else if (key == kShape && nodes().kind(value) == NodeKind::kString) {
        // Taken for the parameter.
      } else if (key == kControlId || key == kControlPredecessors) {
        RememberControl(key, value, parameter);
      } else {
        Keep(key, value, &kept);
      }
      if (!status.ok()) return Error(function, StrCat("argument ", i, " ", std::string(status.message())));
    }
    if (!kept.names.empty()) AddFrontend(parameter, kMlirAttributes, TextOf(kept));
  }
  SortAliases();
  return absl::OkStatus();
}

// A frame is a name around a file position, or a file position of a call site; those of callers are the parents of
// those of callees.
int64_t Converter::StackFrameOf(NodeId location) {
  StackFrames& tables = module_->header().stack_frames;
  const auto index = [](std::vector<StringId>* list, absl::flat_hash_map<uint32_t, int32_t>* known, StringId name) {
    const auto [found, added] = known->try_emplace(name.value, static_cast<int32_t>(list->size() + 1));
    if (added) list->push_back(name);
    return found->second;
  };
  int64_t parent = 0;
  std::vector<std::pair<NodeId, bool>> pending = {{location, false}};  // true: of a call site
  constexpr size_t kMaxParts = 256;
  for (size_t parts = 0; !pending.empty() && parts < kMaxParts; ++parts) {
    const auto [at, of_call] = pending.back();
    pending.pop_back();
    const NodeKind kind = nodes().kind(at);
    const bool bare = of_call && kind == NodeKind::kFileLocation;
    if (kind == NodeKind::kFusedLocation && nodes().ints(at)[0] == 0 && nodes().child_count(at) == 2 &&
        nodes().kind(nodes().child(at, 1)) == NodeKind::kFileLocation) {
      pending.push_back({nodes().child(at, 0), of_call});  // names and frames beside the source
    } else if (kind == NodeKind::kCallSiteLocation) {
      pending.push_back({nodes().child(at, 0), true});
      pending.push_back({nodes().child(at, 1), true});  // the caller first
    } else if (bare || (kind == NodeKind::kNameLocation && nodes().child_count(at) != 0)) {
      const NodeId child = bare ? at : nodes().child(at, 0);
      if (nodes().kind(child) != NodeKind::kFileLocation) {
        pending.push_back({child, of_call});
        continue;
      }
      const absl::Span<const int64_t> position = nodes().ints(child);
      if (std::any_of(position.begin(), position.end(), [](int64_t n) { return n < 0 || n > INT32_MAX; })) continue;
      const StringId file = context().strings.Intern(nodes().text(child)),
                     function = context().strings.Intern(bare ? std::string_view() : nodes().text(at));
      FileLocation place;
      place.file_name_id = index(&tables.file_names, &file_names_, file);
      place.function_name_id = index(&tables.function_names, &function_names_, function);
      place.line = static_cast<int32_t>(position[0]);
      place.column = static_cast<int32_t>(position[1]);
      place.end_line = static_cast<int32_t>(position[2]);
      place.end_column = static_cast<int32_t>(position[3]);
      StackFrame frame;
      const auto key = std::tuple(place.file_name_id, place.function_name_id, place.line, place.column, place.end_line,
                                  place.end_column);
      if (const auto found = file_locations_.find(key); found != file_locations_.end()) {
        frame.file_location_id = found->second;
      } else {
        tables.file_locations.push_back(place);
        frame.file_location_id = static_cast<int32_t>(tables.file_locations.size());
        file_locations_.emplace(key, frame.file_location_id);
      }
      frame.parent_frame_id = static_cast<int32_t>(parent + 1);  // 1: none
      const auto pair = std::pair(frame.file_location_id, frame.parent_frame_id);
      if (const auto found = frames_by_caller_.find(pair); found != frames_by_caller_.end()) {
        parent = found->second;
      } else {
        tables.stack_frames.push_back(frame);
        parent = static_cast<int64_t>(tables.stack_frames.size());
        frames_by_caller_.emplace(pair, static_cast<int32_t>(parent));
      }
    }
  }
  return parent;
}

MetadataId Converter::MetadataOfPlace(const Op& op) {
  if (program_.source == nullptr || op.offset > program_.source->text().size()) return {};
  const std::string_view text = program_.source->text();
  // Operations come in the order of the text, but for those of functions.
  if (op.offset < place_.first) place_ = {0, 1};
  for (; place_.first < op.offset; ++place_.first) place_.second += text[place_.first] == '\n' ? 1 : 0;
  const size_t newline = op.offset == 0 ? std::string_view::npos : text.rfind('\n', op.offset - 1);
  Metadata metadata;
  metadata.source_file = context().strings.Intern(program_.source->name());
  metadata.source_line = place_.second;
  metadata.source_column = static_cast<int64_t>(op.offset - (newline == std::string_view::npos ? 0 : newline + 1)) + 1;
  metadata.source_end_line = metadata.source_line;
  metadata.source_end_column = metadata.source_column + static_cast<int64_t>(op.name_size);
  return context().metadata.Intern(metadata);
}

// The outermost names become the op_name, a file position without a name around it the source; frames the stack frame.
MetadataId Converter::MetadataOf(NodeId location) {
  if (!location.valid()) return {};
  if (const auto found = metadata_of_.find(location.value); found != metadata_of_.end()) return found->second;
  Metadata metadata;
  std::string op_name;
  std::vector<NodeId> pending = {location};
  constexpr size_t kMaxParts = 64;
  for (size_t parts = 0; !pending.empty() && parts < kMaxParts; ++parts) {
    const NodeId at = pending.back();
    pending.pop_back();
    switch (nodes().kind(at)) {
      case NodeKind::kNameLocation: {
        const std::string_view text = nodes().text(at).substr(0, nodes().text(at).find('@'));
        if (text.ends_with(':')) {
          metadata.op_type = context().strings.Intern(text.substr(0, text.size() - 1));
          if (nodes().child_count(at) != 0) pending.push_back(nodes().child(at, 0));
        } else if (!text.empty()) {
          StrAppend(&op_name, op_name.empty() ? "" : ";", text);
        }
        break;
      }
      case NodeKind::kFileLocation: {
        const absl::Span<const int64_t> position = nodes().ints(at);
        metadata.source_file = context().strings.Intern(nodes().text(at));
        metadata.source_line = position[0];
        metadata.source_column = position[1];
        metadata.source_end_line = position[2];
        metadata.source_end_column = position[3];
        break;
      }
      case NodeKind::kCallSiteLocation:
        pending.push_back(nodes().child(at, 0));
        break;
      case NodeKind::kFusedLocation: {
        const size_t first = nodes().ints(at)[0] != 0 ? 1 : 0;
        for (size_t i = nodes().child_count(at); i-- > first;) pending.push_back(nodes().child(at, i));
        break;
      }
      default:
        break;
    }
  }
  metadata.stack_frame_id = StackFrameOf(location);
  const bool any =
      !op_name.empty() || metadata.op_type.valid() || metadata.source_file.valid() || metadata.stack_frame_id != 0;
  if (!op_name.empty()) metadata.op_name = context().strings.Intern(op_name);
  const MetadataId made = any ? context().metadata.Intern(metadata) : MetadataId();
  metadata_of_.emplace(location.value, made);
  return made;
}

}  // namespace hlokit::stablehlo
