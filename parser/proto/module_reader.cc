// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/module_reader.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/core/name_uniquer.h"
#include "ir/core/str_cat.h"
#include "ir/graph/call_walk.h"
#include "ir/graph/traversal.h"
#include "parser/proto/annotation_proto.h"
#include "parser/proto/attribute_reader.h"
#include "parser/proto/header_proto.h"
#include "parser/proto/literal_proto.h"
#include "parser/proto/module_source.h"
#include "parser/proto/shape_proto.h"
#include "parser/proto/unknown_fields.h"
#include "parser/text/instruction_rules.h"
#include "parser/text/scan.h"
#include "parser/text/stack_frame_numbering.h"

namespace hlokit {
namespace {

// Returns the name with other characters than those of HLO names replaced, as XLA does.
std::string SanitizedName(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (!char_class::IsName(c)) c = '_';
  }
  if (!out.empty() && !char_class::Is(out[0], char_class::kNameStart)) out.insert(out.begin(), '_');
  return out;
}

class ProtoModuleReader {
 public:
  ProtoModuleReader(ModuleSource* source, const ParseOptions& options, DiagnosticSink* sink,
                    std::shared_ptr<Context> context)
      : source_(*source),
        proto_(source->module()),
        options_(options),
        sink_(sink),
        context_(std::move(context)),
        module_(std::make_unique<Module>(context_)),
        literal_bytes_(options.max_literal_bytes),
        rules_(module_.get(), &local_),
        unknown_fields_(sink, [this] { return Place(); }),
        frame_numbering_(ReadStackFrames(proto_.stack_frame_index(), context_.get()), options.as_dumped),
        attributes_(module_.get(), {&proto_, [this](int64_t id) { return FindComputation(id); },
                                    [this](const xla::OpMetadata& m) { return Metadata(m); }, &literal_bytes_}) {}

  std::unique_ptr<Module> Run(const xla::HloModuleConfigProto* config, ModuleReadMap* map);

 private:
  bool DefineComputations();
  bool ReadComputation(int index);
  // Returns the order in which operands and control predecessors come first; empty if the list has it.
  bool DefinitionOrder(int index, std::vector<int>* order);
  bool ReadIds(int index);
  bool OrderAsDumped();
  bool ReadInstruction(const xla::HloInstructionProto& proto, ComputationId computation, InstructionId* id);
  absl::StatusOr<Shape> ShapeOf(const xla::HloInstructionProto& proto);
  bool SetMetadata(const xla::HloInstructionProto& proto, InstructionId id);
  bool ReadConstantValue(const xla::HloInstructionProto& proto, InstructionDraft* draft);
  bool ApplySchedule(int index);
  bool CheckCalls();
  void UniquifyNames();

  absl::StatusOr<ComputationId> FindComputation(int64_t id) {
    const auto found = computations_.find(id);
    if (found != computations_.end()) return found->second;
    return absl::NotFoundError(StrCat("there is no computation with id ", id));
  }
  MetadataId Metadata(const xla::OpMetadata& proto);
  // Reports an error of the instruction or computation at hand.
  bool Error(DiagnosticKind kind, std::string_view message, std::string hint = "");
  bool Error(const absl::Status& status);
  bool Forward();
  void SetComputationOrder();
  std::string Place() const {
    return instruction_ == nullptr ? place_ : StrCat("instruction `", instruction_->name(), "`");
  }

  ModuleSource& source_;
  const xla::HloModuleProto& proto_;  // without its computations
  const ParseOptions& options_;
  DiagnosticSink* sink_;
  DiagnosticSink local_;  // of rules_
  std::shared_ptr<Context> context_;
  std::unique_ptr<Module> module_;
  ByteLimit literal_bytes_;
  InstructionRules rules_;
  UnknownFields unknown_fields_;
  StackFrameNumbering frame_numbering_;
  AttributeReader attributes_;
  ModuleReadMap map_;

  absl::flat_hash_map<int64_t, ComputationId> computations_;  // by number
  // The instruction at hand, or what is in its place, for errors.
  const xla::HloInstructionProto* instruction_ = nullptr;
  std::string place_;
  InstructionIndex index_;
  // Of the computation at hand, by place: instructions, their numbers, and the numbers of what comes before them.
  std::vector<InstructionId> ids_;
  std::vector<int64_t> numbers_;
  std::vector<int64_t> edges_;
  std::vector<size_t> edges_begin_;
  std::vector<InstructionId> operands_;
  std::vector<AttrValue> attrs_;
  std::vector<int64_t> list_;
  std::vector<uint8_t> taken_names_;  // by StringId
  bool duplicate_names_ = false;
  // By their bytes, which are those of the file.
  absl::flat_hash_map<std::string_view, Shape> shapes_;
  absl::flat_hash_map<std::string_view, MetadataId> metadata_;
  xla::OpMetadata metadata_message_;
};

bool ProtoModuleReader::Error(DiagnosticKind kind, std::string_view message, std::string hint) {
  const std::string place = Place();
  sink_->Error(kind, {}, StrCat(place, place.empty() ? "" : ": ", message), std::move(hint));
  return false;
}

bool ProtoModuleReader::Error(const absl::Status& status) {
  const DiagnosticKind kind = status.code() == absl::StatusCode::kResourceExhausted ? DiagnosticKind::kTooLarge
                              : status.code() == absl::StatusCode::kNotFound ? DiagnosticKind::kUndefinedComputation
                                                                             : DiagnosticKind::kBadAttribute;
  return Error(kind, std::string(status.message()));
}

// Reports the errors of rules_. Returns false if there are any.
bool ProtoModuleReader::Forward() {
  if (local_.diagnostics().empty()) return true;
  const bool failed = local_.has_errors();
  for (const Diagnostic& d : local_.diagnostics()) {
    sink_->Report({d.kind, d.severity, {}, StrCat(Place(), ": ", d.message), d.hint});
  }
  local_ = DiagnosticSink();
  return !failed;
}

MetadataId ProtoModuleReader::Metadata(const xla::OpMetadata& proto) {
  hlokit::Metadata m = ReadMetadata(proto, proto_, context_.get());
  const int64_t frame = m.stack_frame_id;
  m.stack_frame_id = frame_numbering_.Number(frame);
  if (m.stack_frame_id > 0) {
    const auto place = static_cast<size_t>(m.stack_frame_id);
    if (map_.frame_ids.size() < place) map_.frame_ids.resize(place, 0);
    map_.frame_ids[place - 1] = static_cast<int32_t>(frame);
  }
  return context_->metadata.Intern(m);
}

bool ProtoModuleReader::DefineComputations() {
  size_t instructions = 0;
  absl::flat_hash_set<uint32_t> names;
  for (int c = 0; c < source_.computation_count(); ++c) {
    const xla::HloComputationProto& proto = source_.computation(c);
    unknown_fields_.Check(proto);
    instructions += static_cast<size_t>(source_.instruction_count(c));
    std::string name = SanitizedName(proto.name());
    if (name.empty()) name = "computation";
    const StringId id = context_->strings.Intern(name);
    if (!names.insert(id.value).second) duplicate_names_ = true;
    const ComputationId computation = module_->AddComputation(id);
    map_.computations.push_back(computation);
    place_ = StrCat("computation `", name, "`");
    if (!computations_.insert({proto.id(), computation}).second) {
      return Error(DiagnosticKind::kDuplicateName, StrCat("another computation has the id ", proto.id(), " too"));
    }
    if (!proto.execution_thread().empty() && proto.execution_thread() != "main") {
      module_->SetExecutionThread(computation, context_->strings.Intern(proto.execution_thread()));
    }
  }
  place_.clear();
  if (instructions > static_cast<size_t>(options_.max_instructions)) {
    return Error(DiagnosticKind::kTooLarge, StrCat("the module has more instructions than the limit of ",
                                                   options_.max_instructions, " (--max-instructions)"));
  }
  module_->Reserve(instructions, instructions * 2, instructions * 2);
  context_->strings.Reserve(context_->strings.size() + instructions + instructions / 4);
  if (!map_.computations.empty()) return true;
  return Error(DiagnosticKind::kUnexpectedToken, "expected at least one computation in the module");
}

bool ProtoModuleReader::ReadIds(int index) {
  numbers_.clear();
  edges_.clear();
  edges_begin_.assign(1, 0);
  for (int k = 0; k < source_.instruction_count(index); ++k) {
    if (!source_.ReadIds(index, k, &numbers_.emplace_back(), &edges_)) {
      return Error(DiagnosticKind::kUnexpectedToken, "damaged instruction");
    }
    edges_begin_.push_back(edges_.size());
  }
  return index_.Build(numbers_) || Error(DiagnosticKind::kDuplicateName, "two instructions have the same id");
}

bool ProtoModuleReader::DefinitionOrder(int index, std::vector<int>* order) {
  const auto edge = [&](int at, int k) -> std::optional<int64_t> {
    const size_t place = edges_begin_[static_cast<size_t>(at)] + static_cast<size_t>(k);
    return place < edges_begin_[static_cast<size_t>(at) + 1] ? std::optional<int64_t>(edges_[place]) : std::nullopt;
  };
  const int count = source_.instruction_count(index);
  const auto set_place = [&](int at) {
    const xla::HloInstructionProto* i = source_.instruction(index, at);
    place_ = StrCat("instruction `", i == nullptr ? "" : i->name(), "` of computation `",
                    source_.computation(index).name(), "`");
  };
  bool in_order = true;
  for (int at = 0; at < count; ++at) {
    for (int k = 0;; ++k) {
      const std::optional<int64_t> id = edge(at, k);
      if (!id) break;
      const int from = index_.Find(*id);
      if (from == InstructionIndex::kNone) {
        set_place(at);
        return Error(DiagnosticKind::kUndefinedOperand, StrCat("there is no instruction with id ", *id));
      }
      in_order = in_order && from < at;
    }
  }
  order->clear();
  if (in_order) return true;
  enum State : uint8_t { kNew, kOpen, kDone };
  struct Frame {
    int at;
    int next = 0;
  };
  std::vector<uint8_t> state(static_cast<size_t>(count), kNew);
  std::vector<Frame> stack;
  for (int root = 0; root < count; ++root) {
    if (state[static_cast<size_t>(root)] != kNew) continue;
    stack.push_back({root});
    state[static_cast<size_t>(root)] = kOpen;
    while (!stack.empty()) {
      Frame& top = stack.back();
      const std::optional<int64_t> id = edge(top.at, top.next++);
      if (!id) {
        state[static_cast<size_t>(top.at)] = kDone;
        order->push_back(top.at);
        stack.pop_back();
        continue;
      }
      const int from = index_.Find(*id);
      uint8_t& from_state = state[static_cast<size_t>(from)];
      if (from_state == kOpen) {
        set_place(from);
        return Error(DiagnosticKind::kCyclicOperands, "it depends on itself");
      }
      if (from_state == kDone) continue;
      from_state = kOpen;
      stack.push_back({from});
    }
  }
  return true;
}

bool ProtoModuleReader::ReadConstantValue(const xla::HloInstructionProto& proto, InstructionDraft* draft) {
  if (!proto.has_literal()) {
    draft->payload = context_->literals.AddElided(draft->shape).value;
    return true;
  }
  const absl::StatusOr<LiteralId> literal =
      ReadConstant(proto.literal(), draft->shape, context_.get(), &literal_bytes_);
  if (!literal.ok()) {
    return Error(literal.status().code() == absl::StatusCode::kResourceExhausted ? DiagnosticKind::kTooLarge
                                                                                 : DiagnosticKind::kBadLiteral,
                 std::string(literal.status().message()));
  }
  draft->payload = literal->value;
  return true;
}

// Returns an invalid shape if there is none.
absl::StatusOr<Shape> ProtoModuleReader::ShapeOf(const xla::HloInstructionProto& proto) {
  const std::string_view bytes = source_.shape_bytes();
  if (bytes.data() == nullptr || proto.has_shape()) {  // a second part is merged with the first
    if (bytes.data() != nullptr) return absl::InvalidArgumentError("two shapes of one instruction");
    return proto.has_shape() ? ReadShape(proto.shape(), context_.get()) : Shape();
  }
  const auto known = shapes_.find(bytes);
  if (known != shapes_.end()) return known->second;
  xla::ShapeProto message;
  if (!message.ParseFromString(std::string(bytes))) return absl::InvalidArgumentError("damaged shape");
  unknown_fields_.CheckWithin(message);
  absl::StatusOr<Shape> shape = ReadShape(message, context_.get());
  if (shape.ok()) shapes_.emplace(bytes, *shape);
  return shape;
}

bool ProtoModuleReader::SetMetadata(const xla::HloInstructionProto& proto, InstructionId id) {
  const std::string_view bytes = source_.metadata_bytes();
  if (bytes.empty()) {
    if (proto.has_metadata() && proto.metadata().ByteSizeLong() != 0)
      module_->SetMetadata(id, Metadata(proto.metadata()));
    return true;
  }
  const auto [known, added] = metadata_.try_emplace(bytes);
  if (added) {
    metadata_message_.Clear();
    if (!metadata_message_.ParseFromString(std::string(bytes))) {
      return Error(DiagnosticKind::kUnexpectedToken, "damaged metadata");
    }
    unknown_fields_.Check(metadata_message_);
    known->second = Metadata(metadata_message_);
  }
  module_->SetMetadata(id, known->second);
  return true;
}

bool ProtoModuleReader::ReadInstruction(const xla::HloInstructionProto& proto, ComputationId computation,
                                        InstructionId* id) {
  InstructionDraft draft;
  draft.computation = computation;
  attrs_.clear();
  std::string_view direction;
  if (const std::optional<Opcode> opcode = ProtoOpcode(proto.opcode(), &direction)) {
    draft.opcode = *opcode;
  } else if (options_.allow_unknown) {
    sink_->Warning(DiagnosticKind::kUnknownOpcode, {},
                   StrCat(Place(), ": unknown opcode `", proto.opcode(), "`; preserved"));
    attrs_.push_back({Attr::kUnknownOpcode, context_->strings.Intern(SanitizedName(proto.opcode())).value});
  } else {
    return Error(DiagnosticKind::kUnknownOpcode, StrCat("unknown opcode `", proto.opcode(), "`"),
                 UnknownOpcodeHint(""));
  }
  const absl::StatusOr<Shape> shape = ShapeOf(proto);
  if (shape.ok() && !shape->valid()) return Error(DiagnosticKind::kMissingShape, "missing shape");
  if (!shape.ok()) return Error(DiagnosticKind::kBadShape, std::string(shape.status().message()));
  draft.shape = *shape;
  if (draft.opcode == Opcode::kParameter) {
    if (proto.parameter_number() < 0 || proto.parameter_number() > INT32_MAX) {
      return Error(DiagnosticKind::kBadParameter,
                   StrCat("parameter number ", proto.parameter_number(), " is out of range"));
    }
    draft.payload = static_cast<uint32_t>(proto.parameter_number());
  } else if (draft.opcode == Opcode::kConstant) {
    if (!ReadConstantValue(proto, &draft)) return false;
  }
  operands_.clear();
  for (int64_t operand : proto.operand_ids()) operands_.push_back(ids_[static_cast<size_t>(index_.Find(operand))]);
  if (absl::Status status = attributes_.Read(proto, draft.opcode, operands_, &attrs_); !status.ok()) {
    return Error(status);
  }
  if (proto.control_predecessor_ids_size() != 0) {
    list_.clear();
    for (int64_t before : proto.control_predecessor_ids()) {
      list_.push_back(ids_[static_cast<size_t>(index_.Find(before))].value);
    }
    attrs_.push_back({Attr::kControlPredecessors, module_->ListPayload(list_)});
  }
  AttrTail attrs(&attrs_, 0);
  const bool ok = rules_.CheckOperandCount(draft, operands_) && rules_.NormalizeAttributes(draft, operands_, &attrs) &&
                  rules_.CompleteAttributes(draft, draft.opcode, &attrs) &&
                  rules_.AdjustAttributesToShape(draft, &attrs);
  if (!Forward() || !ok) return false;
  rules_.DropLegacyAttributes(draft, &attrs);
  const bool plain_name =
      !proto.name().empty() && char_class::Is(proto.name()[0], char_class::kNameStart) &&
      std::all_of(proto.name().begin(), proto.name().end(), [](char c) { return char_class::IsName(c); });
  std::string changed;
  if (!plain_name) changed = proto.name().empty() ? SanitizedName(proto.opcode()) : SanitizedName(proto.name());
  const StringId name = context_->strings.Intern(plain_name ? proto.name() : changed);
  if (name.value >= taken_names_.size()) taken_names_.resize(std::max<size_t>(context_->strings.size(), 64) * 2, 0);
  if (taken_names_[name.value]++ != 0) duplicate_names_ = true;
  taken_names_[name.value] = 1;
  *id = module_->AddInstruction(computation, draft.opcode, draft.shape, name, operands_, attrs_, draft.payload);
  return SetMetadata(proto, *id);
}

bool ProtoModuleReader::ReadComputation(int index) {
  const xla::HloComputationProto& proto = source_.computation(index);
  const int count = source_.instruction_count(index);
  const ComputationId computation = map_.computations[static_cast<size_t>(index)];
  place_ = StrCat("computation `", proto.name(), "`");
  if (count == 0) return Error(DiagnosticKind::kUnexpectedToken, "expected at least one instruction");
  std::vector<int> order;
  if (!ReadIds(index) || !DefinitionOrder(index, &order)) return false;
  ids_.assign(static_cast<size_t>(count), InstructionId());
  for (int k = 0; k < count; ++k) {
    const int at = order.empty() ? k : order[static_cast<size_t>(k)];
    const xla::HloInstructionProto* instruction = source_.instruction(index, at);
    if (instruction == nullptr) return Error(DiagnosticKind::kUnexpectedToken, "damaged instruction");
    instruction_ = instruction;
    unknown_fields_.CheckInstruction(*instruction);
    if (!ReadInstruction(*instruction, computation, &ids_[static_cast<size_t>(at)])) return false;
  }
  instruction_ = nullptr;
  // As XLA, in the order of their ids.
  std::vector<size_t> by_number(ids_.size());
  std::iota(by_number.begin(), by_number.end(), size_t{0});
  std::sort(by_number.begin(), by_number.end(), [&](size_t a, size_t b) { return numbers_[a] < numbers_[b]; });
  if (!order.empty() || !std::is_sorted(by_number.begin(), by_number.end())) {
    for (size_t k : by_number) module_->MoveBefore(ids_[k], InstructionId());
  }
  place_ = StrCat("computation `", proto.name(), "`");
  const int root = index_.Find(proto.root_id());
  if (root == InstructionIndex::kNone) {
    return Error(DiagnosticKind::kUndefinedOperand,
                 StrCat("there is no instruction with id ", proto.root_id(), ", which root_id names"));
  }
  rules_.FinishComputation(computation, ids_[static_cast<size_t>(root)]);
  map_.instructions.push_back(ids_);
  return Forward() && (options_.as_dumped || ApplySchedule(index));
}

// Lists computations and instructions as XLA has printed them, by traversals in the order of ids, then applies the
// schedule.
bool ProtoModuleReader::OrderAsDumped() {
  module_->SetComputationOrder(ComputationTextOrder(*module_, /*stable_computation_order=*/false));
  for (Computation c : module_->computations()) {
    for (InstructionId id : PostOrder(c)) module_->MoveBefore(id, InstructionId());
  }
  for (int k = 0; k < source_.computation_count() && proto_.has_schedule(); ++k) {
    ids_ = map_.instructions[static_cast<size_t>(k)];
    if (!ReadIds(k) || !ApplySchedule(k)) return false;
  }
  return true;
}

// Orders the instructions of a scheduled computation as in its sequence.
bool ProtoModuleReader::ApplySchedule(int index) {
  const xla::HloComputationProto& proto = source_.computation(index);
  const auto found = proto_.schedule().sequences().find(proto.id());
  if (found == proto_.schedule().sequences().end()) return true;
  const auto& sequence = found->second.instruction_ids();
  place_ = StrCat("schedule of computation `", proto.name(), "`");
  std::vector<uint8_t> seen(ids_.size(), 0);
  for (int k = 0; k < sequence.size(); ++k) {
    const int at = index_.Find(sequence[k]);
    if (at == InstructionIndex::kNone) {
      return Error(DiagnosticKind::kSchedule, StrCat("there is no instruction with id ", sequence[k]));
    }
    if (seen[static_cast<size_t>(at)]++ != 0) {
      return Error(DiagnosticKind::kSchedule, StrCat("the instruction with id ", sequence[k], " is listed twice"));
    }
  }
  if (static_cast<size_t>(sequence.size()) != ids_.size()) {
    return Error(DiagnosticKind::kSchedule, StrCat("it has ", sequence.size(), " of ", ids_.size(), " instructions"));
  }
  for (int64_t id : sequence) {
    module_->MoveBefore(ids_[static_cast<size_t>(index_.Find(id))], InstructionId());
  }
  return true;
}

// Other code relies on calls without cycles, which HLO text cannot express.
bool ProtoModuleReader::CheckCalls() {
  std::vector<std::vector<ComputationId>> callees(module_->computation_id_bound());
  for (ComputationId caller : map_.computations) {
    for (Instruction i : module_->computation(caller).instructions()) {
      i.ForEachCallee([&](Computation callee) { callees[caller.value].push_back(callee.id()); });
    }
  }
  CallWalk walk(callees.size(), [&](ComputationId id, uint32_t k) {
    const std::vector<ComputationId>& all = callees[id.value];
    return k < all.size() ? all[k] : ComputationId();
  });
  const auto report = [&](ComputationId callee) {
    place_ = StrCat("computation `", module_->computation(walk.path().back().id).name(), "`");
    return Error(DiagnosticKind::kCyclicCalls,
                 StrCat("recursive calls: it calls `", module_->computation(callee).name(), "`, which calls it"));
  };
  return std::all_of(map_.computations.begin(), map_.computations.end(), [&](ComputationId root) {
    return walk.From(
        root, [](ComputationId) {}, report);
  });
}

void ProtoModuleReader::UniquifyNames() {
  NameUniquer computations(&context_->strings), names(&context_->strings);
  for (ComputationId c : map_.computations) {
    module_->SetName(c, computations.GetUniqueName(module_->record(c).name));
    for (InstructionId i = module_->record(c).first; i.valid(); i = module_->record(i).next) {
      module_->SetName(i, names.GetUniqueName(module_->record(i).name));
    }
  }
}

// As XLA, in the order of their ids.
void ProtoModuleReader::SetComputationOrder() {
  std::vector<std::pair<int64_t, ComputationId>> by_number;
  for (const auto& [number, id] : computations_) by_number.emplace_back(number, id);
  std::sort(by_number.begin(), by_number.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ComputationId> order;
  for (const auto& [number, id] : by_number) order.push_back(id);
  module_->SetComputationOrder(std::move(order));
}

// Fields of a newer XLA have no place in a module, so their meaning is unknown.
std::unique_ptr<Module> ProtoModuleReader::Run(const xla::HloModuleConfigProto* config, ModuleReadMap* map) {
  if (!DefineComputations()) return nullptr;
  module_->header().is_scheduled = proto_.has_schedule();
  for (int k = 0; k < source_.computation_count(); ++k) {
    if (!ReadComputation(k)) return nullptr;
  }
  place_.clear();
  unknown_fields_.CheckWithin(proto_);
  if (!CheckCalls()) return nullptr;
  place_.clear();
  if (duplicate_names_) UniquifyNames();

  ComputationId entry = map_.computations.back();
  const auto by_id = computations_.find(proto_.entry_computation_id());
  if (by_id != computations_.end()) {
    entry = by_id->second;
  } else if (!proto_.entry_computation_name().empty()) {
    for (int k = 0; k < source_.computation_count(); ++k) {
      if (source_.computation(k).name() == proto_.entry_computation_name()) {
        entry = map_.computations[static_cast<size_t>(k)];
      }
    }
  }
  module_->SetEntry(entry);
  SetComputationOrder();
  if (options_.as_dumped && !OrderAsDumped()) return nullptr;
  if (absl::Status status = ReadHeaderProto(proto_, config, options_, module_.get()); !status.ok()) {
    Error(DiagnosticKind::kBadHeader, std::string(status.message()));
    return nullptr;
  }
  std::string name = SanitizedName(proto_.name());
  if (name.empty()) name = StrCat("module_", module_->entry().name());
  module_->header().name = context_->strings.Intern(name);
  module_->header().stack_frames = frame_numbering_.Take();
  module_->ShrinkToFit();
  if (map != nullptr) *map = std::move(map_);
  return std::move(module_);
}

}  // namespace

std::unique_ptr<Module> ReadModuleProto(const xla::HloModuleProto& proto, const xla::HloModuleConfigProto* config,
                                        const ParseOptions& options, DiagnosticSink* sink,
                                        std::shared_ptr<Context> context, ModuleReadMap* map) {
  if (context == nullptr) context = std::make_shared<Context>();
  ModuleSource source(proto);
  return ProtoModuleReader(&source, options, sink, std::move(context)).Run(config, map);
}

std::unique_ptr<Module> ReadModuleBytes(std::string_view bytes, const xla::HloModuleConfigProto* config,
                                        const ParseOptions& options, DiagnosticSink* sink,
                                        std::shared_ptr<Context> context) {
  if (context == nullptr) context = std::make_shared<Context>();
  xla::HloModuleProto header;
  ModuleSource source(bytes, &header);
  if (!source.ok()) {
    sink->Error(DiagnosticKind::kUnexpectedToken, {}, "expected a serialized HloModuleProto, found something else");
    return nullptr;
  }
  return ProtoModuleReader(&source, options, sink, std::move(context)).Run(config, nullptr);
}

}  // namespace hlokit
