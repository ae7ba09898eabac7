// SPDX-License-Identifier: Apache-2.0
#include "parser/bytecode/reader.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "ir/core/str_cat.h"
#include "parser/bytecode/node_reader.h"
#include "parser/bytecode/vhlo_operation.h"

namespace hlokit::bytecode {
namespace {

using mlir::BlockId;
using mlir::NodeId;
using mlir::NodeKind;
using mlir::OperationId;
using mlir::RegionId;
using mlir::ValueId;

// Bits of the byte that says which parts an operation has.
enum Part : uint8_t {
  kAttributes = 0x01,
  kResults = 0x02,
  kOperands = 0x04,
  kSuccessors = 0x08,
  kRegions = 0x10,
  kUseLists = 0x20,
  kPropertyIndex = 0x40,
};

// The version in "StableHLO_v1.20.0".
std::optional<StablehloVersion> VersionOf(std::string_view producer) {
  constexpr std::string_view kPrefix = "StableHLO_v";
  if (!producer.starts_with(kPrefix)) return std::nullopt;
  const char* const end = producer.data() + producer.size();
  StablehloVersion version;
  const auto major = std::from_chars(producer.data() + kPrefix.size(), end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  if (std::from_chars(major.ptr + 1, end, version.minor).ec != std::errc()) return std::nullopt;
  return version;
}

class ArtifactReader {
 public:
  ArtifactReader(const Container& file, const mlir::MlirOptions& options, mlir::Module* module)
      : file_(file),
        options_(options),
        m_(*module),
        nodes_(file, &module->nodes, options.max_literal_bytes),
        top_(file.ir) {}

  absl::Status Run();

 private:
  struct OpenOperation {
    mlir::Operation made;
    const VhloOperation* row = nullptr;  // null: builtin.module, or of the dialect sdy
    size_t offset = 0;
    std::vector<ValueId> operands;
    std::vector<mlir::Attribute> attributes;
    std::vector<NodeId> result_types;
    uint32_t first_result = 0;  // on values_
    size_t regions = 0;         // to be read
    std::vector<RegionId> done;
    bool isolated = false;
    bool own_section = false;  // of its regions, that is
    bool is_cast = false;      // between the types of two dialects, which are the same here
    ByteCursor in;             // of its regions; those without a section are in that of the operation

    explicit OpenOperation(const ByteCursor& cursor) : in(cursor) {}
  };
  // A region that is being read; its operation is at the same place of operations_.
  struct OpenRegion {
    RegionId region;
    BlockId block;
    uint64_t operations = 0;  // to be read
    size_t first_value = 0;   // on values_
    size_t scope = 0;         // values_ of the region that is isolated around it begin there
    size_t next_value = 0;
  };

  // Of the innermost operation with regions.
  ByteCursor& cursor() { return operations_.empty() ? top_ : operations_.back().in; }
  absl::Status StartRegion(ByteCursor* in);
  void ReadBlockHeader(ByteCursor* in);
  absl::Status StartOperation(ByteCursor* in);
  // Finds what an operation is.
  absl::Status NameOperation(uint64_t index, OpenOperation* op);
  // The results of a cast are its operands.
  absl::Status FinishCast(const OpenOperation& op);
  absl::Status FinishOperation();
  void FinishRegion();
  void ReadAttributes(ByteCursor* in, OpenOperation* op);
  void ReadProperties(ByteCursor* in, OpenOperation* op);
  // Use lists say in which order the uses of a value are enumerated, which has no meaning here.
  void SkipUseLists(ByteCursor* in, size_t values);
  NodeId Attribute(ByteCursor* in) { return Checked(in, in->VarInt(), false); }
  NodeId Type(ByteCursor* in) { return Checked(in, in->VarInt(), true); }
  NodeId Location(ByteCursor* in);
  // The direction that a number means to sdy.propagation_barrier.
  NodeId Direction(ByteCursor* in, NodeId number) {
    constexpr std::string_view kDirections[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
    const int64_t value = m_.nodes.IntegerValue(number).value_or(-1);
    if (value >= 0 && value < static_cast<int64_t>(std::size(kDirections))) {
      return m_.nodes.Enum("sdy.propagation_direction", kDirections[value]);
    }
    in->Fail("a direction of propagation that is unknown");
    return {};
  }
  NodeId Checked(ByteCursor* in, uint64_t index, bool is_type) {
    if (!in->ok()) return {};
    absl::StatusOr<NodeId> node = is_type ? nodes_.Type(index) : nodes_.Attribute(index);
    if (node.ok()) return *node;
    in->FailWith(node.status());
    return {};
  }
  void Add(OpenOperation* op, std::string_view name, NodeId value, bool inherent) {
    if (value.valid()) op->attributes.push_back({m_.nodes.strings().Intern(name), value, inherent});
  }

  const Container& file_;
  const mlir::MlirOptions options_;
  mlir::Module& m_;
  NodeReader nodes_;
  ByteCursor top_;
  std::vector<OpenOperation> operations_;
  std::vector<OpenRegion> regions_;
  std::vector<ValueId> values_;  // by number; invalid: not defined yet
  size_t announced_ = 0;         // values of all regions so far
};

absl::Status ArtifactReader::Run() {
  // The operations of the file are in a block without a header of a region.
  m_.top = RegionId(0);
  m_.regions.push_back({});
  OpenRegion top;
  top.region = m_.top;
  regions_.push_back(top);
  ReadBlockHeader(&top_);
  if (!top_.ok()) return top_.status();
  for (;;) {
    absl::Status status;
    if (regions_.size() > operations_.size()) {
      OpenRegion& region = regions_.back();
      if (region.operations != 0) {
        --region.operations;
        status = StartOperation(&cursor());
      } else {
        if (operations_.empty()) break;
        FinishRegion();
      }
    } else if (operations_.back().regions != 0) {
      --operations_.back().regions;
      status = StartRegion(&cursor());
    } else {
      status = FinishOperation();
    }
    if (!status.ok()) return status;
  }
  if (!top_.AtEnd()) return ErrorAt(top_.offset(), "data after the last operation");
  return absl::OkStatus();
}

absl::Status ArtifactReader::StartRegion(ByteCursor* in) {
  OpenOperation& op = operations_.back();
  OpenRegion region;
  region.region = RegionId(static_cast<uint32_t>(m_.regions.size()));
  m_.regions.push_back({});
  m_.regions.back().value_begin = m_.regions.back().value_end = static_cast<uint32_t>(m_.values.size());
  m_.regions.back().operation_begin = m_.regions.back().operation_end = static_cast<uint32_t>(m_.operations.size());
  op.done.push_back(region.region);
  region.first_value = region.next_value = values_.size();
  region.scope = op.isolated ? values_.size() : regions_.back().scope;
  const uint64_t blocks = in->VarInt();
  if (!in->ok()) return in->status();
  if (blocks > 1) return ErrorAt(in->offset(), StrCat("a region of ", blocks, " blocks, where StableHLO has one"));
  regions_.push_back(region);
  if (blocks == 0) return absl::OkStatus();
  // Each value is an argument or a result, which take a byte, so all regions together have no more than bytes.
  const size_t values = in->Count();
  if (values > file_.ir.bytes.size() - announced_) return ErrorAt(in->offset(), "more values than the data have");
  announced_ += values;
  values_.resize(values_.size() + values);
  ReadBlockHeader(in);
  return in->status();
}

void ArtifactReader::ReadBlockHeader(ByteCursor* in) {
  OpenRegion& region = regions_.back();
  region.block = BlockId(static_cast<uint32_t>(m_.blocks.size()));
  m_.blocks.push_back({});
  m_.blocks.back().region = region.region;
  m_.regions[region.region.value].first = m_.regions[region.region.value].last = region.block;
  bool has_arguments = false;
  region.operations = in->VarIntWithFlag(&has_arguments);
  if (region.operations > in->remaining()) in->Fail("more operations than the data have");
  const size_t arguments = has_arguments ? in->Count() : 0;
  m_.blocks.back().argument_begin = static_cast<uint32_t>(m_.values.size());
  m_.blocks.back().argument_count = static_cast<uint32_t>(arguments);
  for (size_t i = 0; i < arguments && in->ok(); ++i) {
    bool has_location = true;
    const uint64_t type = file_.version < kElidedLocations ? in->VarInt() : in->VarIntWithFlag(&has_location);
    const NodeId type_node = Checked(in, type, true);
    const NodeId location = has_location ? Location(in) : NodeId();
    if (region.next_value >= values_.size()) return in->Fail("more values than the region announces");
    values_[region.next_value++] = ValueId(static_cast<uint32_t>(m_.values.size()));
    m_.values.push_back({type_node, location, OperationId(), region.block, static_cast<uint32_t>(i)});
  }
  if (file_.version >= kUseListOrders && has_arguments && in->Byte() != 0) SkipUseLists(in, arguments);
}

NodeId ArtifactReader::Location(ByteCursor* in) {
  const NodeId location = Attribute(in);
  if (!in->ok()) return {};
  if (!m_.nodes.IsLocation(location)) in->Fail("expected a location");
  return m_.nodes.kind(location) == NodeKind::kUnknownLocation ? NodeId() : location;
}

void ArtifactReader::SkipUseLists(ByteCursor* in, size_t values) {
  const size_t count = values > 1 ? in->Count() : 1;
  for (size_t i = 0; i < count && in->ok(); ++i) {
    if (values > 1) in->VarInt();  // which value
    bool pairs = false;
    const uint64_t uses = in->VarIntWithFlag(&pairs);
    for (uint64_t use = 0; use < uses && in->ok(); ++use) in->VarInt();
  }
}

absl::Status ArtifactReader::NameOperation(uint64_t index, OpenOperation* op) {
  const OperationName& name = file_.operations[static_cast<size_t>(index)];
  op->made.offset = SourceRange::kNoOffset;
  op->is_cast = name.dialect == "builtin" && name.name == "unrealized_conversion_cast";
  if (op->is_cast) return absl::OkStatus();
  if (name.dialect == "vhlo") op->row = FindVhloOperation(name.name);
  const bool in_function =
      !operations_.empty() && operations_.back().row != nullptr && operations_.back().row->name.starts_with("func_");
  const std::string text =
      op->row != nullptr ? StablehloName(*op->row, in_function) : StrCat(name.dialect, ".", name.name);
  op->made.name = m_.nodes.strings().Intern(text);
  op->made.definition = mlir::FindDefinition(text);
  const bool known = op->row != nullptr || op->made.kind() == mlir::OpKind::kBuiltinModule || name.dialect == "sdy";
  if (!known || op->made.definition == nullptr) {
    return ErrorAt(op->offset, StrCat("the operation ", name.dialect, ".", name.name, " is unknown in artifacts"));
  }
  return absl::OkStatus();
}

absl::Status ArtifactReader::FinishCast(const OpenOperation& op) {
  if (op.result_types.size() != op.operands.size() || op.regions != 0) {
    return ErrorAt(op.offset, "a cast of several values to one, which StableHLO has not");
  }
  for (size_t i = 0; i < op.operands.size(); ++i) values_[op.first_result + i] = op.operands[i];
  return absl::OkStatus();
}

absl::Status ArtifactReader::StartOperation(ByteCursor* in) {
  if (static_cast<int64_t>(operations_.size()) >= options_.max_nesting ||
      static_cast<int64_t>(m_.operations.size()) >= options_.max_operations) {
    return ErrorAt(in->offset(), mlir::LimitMessage(operations_.size(), options_));
  }
  OpenOperation op(*in);
  op.offset = in->offset();
  const uint64_t index = in->VarInt();
  if (in->ok() && index >= file_.operations.size()) in->Fail(StrCat("there is no name of an operation ", index));
  if (!in->ok()) return in->status();
  if (absl::Status status = NameOperation(index, &op); !status.ok()) return status;
  const uint8_t parts = in->Byte();
  op.made.location = Location(in);
  if ((parts & kAttributes) != 0) ReadAttributes(in, &op);
  if ((parts & kPropertyIndex) != 0) ReadProperties(in, &op);
  if ((parts & kResults) != 0) {
    const size_t count = in->Count();
    for (size_t i = 0; i < count && in->ok(); ++i) op.result_types.push_back(Type(in));
  }
  OpenRegion& region = regions_.back();
  if ((parts & kOperands) != 0) {
    const size_t count = in->Count();
    for (size_t i = 0; i < count && in->ok(); ++i) {
      const size_t start = in->offset();
      const uint64_t number = in->VarInt();
      const bool known = number < values_.size() - region.scope;
      const ValueId value = known ? values_[region.scope + static_cast<size_t>(number)] : ValueId();
      if (!value.valid()) in->FailAt(start, StrCat("the value ", number, " is not defined here"));
      op.operands.push_back(value);
    }
  }
  if ((parts & kSuccessors) != 0) in->Fail("an operation with successors, which StableHLO has not");
  if ((parts & kUseLists) != 0) SkipUseLists(in, op.result_types.size());
  if ((parts & kRegions) != 0) {
    op.regions = static_cast<size_t>(in->VarIntWithFlag(&op.isolated));
    if (op.regions > in->remaining()) in->Fail("more regions than the data have");
  }
  if (!in->ok()) return in->status();
  op.first_result = static_cast<uint32_t>(region.next_value);
  region.next_value += op.result_types.size();
  if (region.next_value > values_.size()) return ErrorAt(op.offset, "more values than the region announces");
  if (op.is_cast) return FinishCast(op);
  if (op.row != nullptr) {
    const absl::Status status = ConvertAttributes(*op.row, *op.made.definition, &m_.nodes, &op.attributes);
    if (!status.ok()) {
      return ErrorAt(op.offset, StrCat("the operation vhlo.", op.row->name, ": ", std::string(status.message())));
    }
  }
  // The cursor of the regions: this one, or one of their own section.
  if (op.regions != 0 && op.isolated && file_.version >= kIsolatedRegionSections) {
    int kind = 0;
    const size_t start = in->offset();
    const ByteSpan section = ReadSection(in, &kind);
    if (in->ok() && kind != kIrSection) in->FailAt(start, "expected a section of operations");
    if (!in->ok()) return in->status();
    op.in = ByteCursor(section);
    op.own_section = true;
  } else {
    op.in = *in;
  }
  operations_.push_back(std::move(op));
  return absl::OkStatus();
}

void ArtifactReader::ReadAttributes(ByteCursor* in, OpenOperation* op) {
  const NodeId dictionary = Attribute(in);
  if (!in->ok()) return;
  if (m_.nodes.kind(dictionary) != NodeKind::kDictionary) return in->Fail("expected a dictionary of attributes");
  for (size_t i = 0; i < m_.nodes.child_count(dictionary); ++i) {
    const StringId name(static_cast<uint32_t>(m_.nodes.ints(dictionary)[i]));
    const bool inherent = op->row != nullptr
                              ? op->row->HasAttribute(m_.nodes.str(name))
                              : !op->is_cast && op->made.definition->FindAttribute(m_.nodes.str(name)) != nullptr;
    op->attributes.push_back({name, m_.nodes.child(dictionary, i), inherent});
  }
}

void ArtifactReader::ReadProperties(ByteCursor* in, OpenOperation* op) {
  const uint64_t index = in->VarInt();
  if (in->ok() && index >= file_.properties.size()) in->Fail(StrCat("there are no properties ", index));
  if (!in->ok()) return;
  ByteCursor data(file_.properties[static_cast<size_t>(index)]);
  if (op->row != nullptr) {
    for (std::string_view name : op->row->attributes) Add(op, name, Attribute(&data), true);
  } else if (!op->is_cast) {
    // In the order of their names.
    std::vector<mlir::AttributeDefinition> attributes = op->made.definition->attributes;
    std::sort(attributes.begin(), attributes.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const mlir::AttributeDefinition& attribute : attributes) {
      bool present = true;
      const uint64_t value = attribute.optional ? data.VarIntWithFlag(&present) : data.VarInt();
      if (!present) continue;
      NodeId node = Checked(&data, value, false);
      if (attribute.name == "allowed_direction" && data.ok()) node = Direction(&data, node);
      Add(op, attribute.name, node, true);
    }
  }
  if (data.ok() && !data.AtEnd()) data.Fail("data after the last property");
  if (!data.ok()) in->FailWith(data.status());
}

void ArtifactReader::FinishRegion() {
  const OpenRegion& region = regions_.back();
  mlir::Region& made = m_.regions[region.region.value];
  made.value_end = static_cast<uint32_t>(m_.values.size());
  made.operation_end = static_cast<uint32_t>(m_.operations.size());
  values_.resize(region.first_value);
  regions_.pop_back();
}

absl::Status ArtifactReader::FinishOperation() {
  OpenOperation& op = operations_.back();
  mlir::Operation made = op.made;
  const OperationId id(static_cast<uint32_t>(m_.operations.size()));
  made.operand_begin = static_cast<uint32_t>(m_.operands.size());
  made.operand_count = static_cast<uint32_t>(op.operands.size());
  m_.operands.insert(m_.operands.end(), op.operands.begin(), op.operands.end());
  std::sort(op.attributes.begin(), op.attributes.end(), [&](const mlir::Attribute& a, const mlir::Attribute& b) {
    return m_.nodes.str(a.name) < m_.nodes.str(b.name);
  });
  for (size_t i = 1; i < op.attributes.size(); ++i) {
    if (op.attributes[i].name == op.attributes[i - 1].name) {
      return ErrorAt(op.offset, StrCat("the attribute `", m_.nodes.str(op.attributes[i].name), "` occurs twice"));
    }
  }
  made.attribute_begin = static_cast<uint32_t>(m_.attributes.size());
  made.attribute_count = static_cast<uint32_t>(op.attributes.size());
  m_.attributes.insert(m_.attributes.end(), op.attributes.begin(), op.attributes.end());
  made.region_begin = static_cast<uint32_t>(m_.region_lists.size());
  made.region_count = static_cast<uint32_t>(op.done.size());
  for (RegionId region : op.done) {
    m_.region_lists.push_back(region);
    m_.regions[region.value].parent = id;
  }
  made.result_begin = static_cast<uint32_t>(m_.values.size());
  made.result_count = static_cast<uint32_t>(op.result_types.size());
  for (uint32_t i = 0; i < made.result_count; ++i) {
    values_[op.first_result + i] = ValueId(static_cast<uint32_t>(m_.values.size()));
    m_.values.push_back({op.result_types[i], NodeId(), id, BlockId(), i});
  }
  made.block = regions_.back().block;
  mlir::Block& block = m_.blocks[made.block.value];
  if (block.last.valid()) {
    m_.operations[block.last.value].next = id;
  } else {
    block.first = id;
  }
  block.last = id;
  m_.operations.push_back(made);
  const bool own_section = op.own_section;
  const ByteCursor in = op.in;
  operations_.pop_back();
  if (!own_section) {
    cursor() = in;
  } else if (!in.AtEnd()) {
    return ErrorAt(in.offset(), "data after the last operation of a region");
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<mlir::Module> ReadArtifact(std::shared_ptr<const SourceBuffer> source, std::string_view bytes,
                                           const mlir::MlirOptions& options, DiagnosticSink* sink) {
  const auto fail = [&](const absl::Status& status, std::string hint) {
    sink->Error(DiagnosticKind::kUnexpectedToken, {},
                StrCat("portable artifact: ", std::string_view(status.message().data(), status.message().size())),
                std::move(hint));
    return nullptr;
  };
  if (bytes.size() >= SourceRange::kNoOffset) {
    sink->Error(DiagnosticKind::kTooLarge, {}, "the input is too large: artifacts of 4 GiB and more are not supported");
    return nullptr;
  }
  const absl::StatusOr<Container> file = ReadContainer(bytes);
  if (!file.ok()) return fail(file.status(), "");
  const std::optional<StablehloVersion> version = VersionOf(file->producer);
  if (!version) {
    return fail(absl::InvalidArgumentError(StrCat("the file is MLIR bytecode by `", file->producer,
                                                  "`, not a portable artifact of StableHLO")),
                "make one with `stablehlo-translate --serialize --target=current`, or give the program as text");
  }
  const auto [newest_major, newest_minor] = kNewestStablehlo;
  const bool newer = version->major > newest_major || (version->major == newest_major && version->minor > newest_minor);
  std::string hint = StrCat("the artifact is by ", file->producer, "; known is what StableHLO has up to v",
                            newest_major, ".", newest_minor, ".0");
  if (newer) StrAppend(&hint, ": write it with `--target=", newest_major, ".", newest_minor, ".0`");
  if (version->major > newest_major) {
    return fail(absl::InvalidArgumentError(StrCat("the version of ", file->producer, " is too new")), hint);
  }
  auto module = std::make_unique<mlir::Module>();
  module->source = std::move(source);
  const absl::Status status = ArtifactReader(*file, options, module.get()).Run();
  // Of an older artifact damage is no question of versions.
  const bool unknown = status.message().find("unknown") != absl::string_view::npos;
  if (!status.ok()) return fail(status, newer || unknown ? hint : "");
  return module;
}

}  // namespace hlokit::bytecode
