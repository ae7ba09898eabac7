// SPDX-License-Identifier: Apache-2.0
#include "parser/bytecode/writer.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/core/str_cat.h"
#include "parser/bytecode/byte_writer.h"
#include "parser/bytecode/container.h"
#include "parser/bytecode/node_writer.h"
#include "parser/bytecode/vhlo_defaults.h"

namespace hlokit::bytecode {
namespace {

using mlir::NodeId;
using mlir::OperationId;
using mlir::RegionId;

class ArtifactWriter {
 public:
  ArtifactWriter(mlir::Module* program, int64_t minor)
      : m_(*program), minor_(minor), nodes_(program->nodes, minor), numbers_(program->values.size(), 0) {
    unknown_ = nodes_.Attribute(program->nodes.Make(mlir::NodeKind::kUnknownLocation), kBuiltin);
  }

  absl::StatusOr<std::string> Run();
  // Where the operation is that Run returned an error for.
  SourceRange rejected() const { return rejected_; }

 private:
  // A region that is being written.
  struct OpenRegion {
    OperationId next;
    uint64_t first_value = 0;
  };
  // An operation whose regions are being written.
  struct OpenOperation {
    OperationId id;
    uint32_t region = 0;
    bool open = false;  // its last region
  };

  absl::Status StartOperation(OperationId id);
  absl::Status StartRegion(RegionId region);
  absl::Status ModuleProperties(const mlir::Operation& op, uint64_t* dictionary, bool* has_dictionary);
  // Values that operations of a region, without those within them, and its arguments define.
  uint64_t ValuesIn(RegionId region) const;
  uint64_t Location(NodeId location) { return location.valid() ? nodes_.Attribute(location, kBuiltin) : unknown_; }
  uint64_t NameIndex(Dialect dialect, std::string_view name);
  absl::Status Error(const mlir::Operation& op, std::string_view message) {
    rejected_ = m_.range(op);
    const std::string of = minor_ == kNewestMinor ? "" : StrCat(" for StableHLO 1.", minor_, ".0");
    return absl::InvalidArgumentError(
        StrCat("'", m_.nodes.str(op.name), "' op cannot be in an artifact", of, ": ", message));
  }
  // Returns the form of an operation that the target has; an error if it has none that says all.
  absl::StatusOr<const VhloOperation*> FormOf(const mlir::Operation& op, const VhloOperation& newest);

  mlir::Module& m_;
  const int64_t minor_;  // of the target
  NodeWriter nodes_;
  uint64_t unknown_ = 0;
  ByteWriter ir_;
  std::vector<OpenRegion> regions_;
  std::vector<OpenOperation> operations_;
  std::vector<uint64_t> numbers_;  // by ValueId
  uint64_t next_value_ = 0;
  std::vector<std::pair<Dialect, std::string>> names_;
  absl::flat_hash_map<std::string, uint64_t> name_index_;
  std::vector<std::string> properties_;
  SourceRange rejected_;
};

uint64_t ArtifactWriter::NameIndex(Dialect dialect, std::string_view name) {
  const auto [found, added] = name_index_.emplace(std::string(name), names_.size());
  if (added) names_.emplace_back(dialect, std::string(name));
  return found->second;
}

uint64_t ArtifactWriter::ValuesIn(RegionId region) const {
  const mlir::BlockId block = m_.block(region);
  if (!block.valid()) return 0;
  uint64_t count = m_.blocks[block.value].argument_count;
  for (OperationId id = m_.blocks[block.value].first; id.valid(); id = m_.op(id).next) count += m_.op(id).result_count;
  return count;
}

absl::Status ArtifactWriter::StartRegion(RegionId region) {
  const mlir::BlockId id = m_.block(region);
  if (!id.valid()) {
    ir_.VarInt(0);
    regions_.push_back({OperationId(), next_value_});
    return absl::OkStatus();
  }
  const mlir::Block& block = m_.blocks[id.value];
  if (block.next.valid()) return absl::InvalidArgumentError("a region of several blocks cannot be in an artifact");
  uint64_t operations = 0;
  for (OperationId op = block.first; op.valid(); op = m_.op(op).next) ++operations;
  const uint64_t values = ValuesIn(region);
  regions_.push_back({block.first, next_value_});
  // The values of regions within it come after all of its own.
  uint64_t number = next_value_;
  for (uint32_t i = 0; i < block.argument_count; ++i) numbers_[m_.argument(block, i).value] = number++;
  for (OperationId op = block.first; op.valid(); op = m_.op(op).next) {
    for (uint32_t i = 0; i < m_.op(op).result_count; ++i) numbers_[m_.result(m_.op(op), i).value] = number++;
  }
  next_value_ += values;
  ir_.VarInt(1);
  ir_.VarInt(values);
  ir_.VarIntWithFlag(operations, block.argument_count != 0);
  if (block.argument_count == 0) return absl::OkStatus();
  ir_.VarInt(block.argument_count);
  for (uint32_t i = 0; i < block.argument_count; ++i) {
    const mlir::Value& value = m_.values[m_.argument(block, i).value];
    ir_.VarIntWithFlag(nodes_.Type(value.type), value.location.valid());
    if (value.location.valid()) ir_.VarInt(Location(value.location));
  }
  ir_.Byte(0);  // no order of uses
  return absl::OkStatus();
}

absl::StatusOr<const VhloOperation*> ArtifactWriter::FormOf(const mlir::Operation& op, const VhloOperation& newest) {
  const std::string_view name = m_.nodes.str(op.name);
  const VhloOperation* const row = VhloOperationFor(name, minor_);
  const VhloOperation* first = row;
  for (int64_t minor = minor_; first == nullptr && minor <= kNewestMinor; ++minor) {
    first = VhloOperationFor(name, minor);
  }
  if (row == nullptr) return Error(op, StrCat("it is in StableHLO since 1.", first->since, ".0"));
  if (row != &newest) {
    if (const std::string lost = LostInOlder(op, newest, *row, &m_); !lost.empty()) return Error(op, lost);
  }
  if (op.kind() != mlir::OpKind::kStablehloCustomCall) return row;
  // The same attribute and types as before, of other kinds.
  constexpr int64_t kDictionaries = 3, kFutures = 17;
  const NodeId config = m_.attribute(op, "backend_config");
  if (minor_ < kDictionaries && config.valid() && m_.nodes.kind(config) == mlir::NodeKind::kDictionary) {
    return Error(op, StrCat("a dictionary as `backend_config` is in StableHLO since 1.", kDictionaries, ".0"));
  }
  bool futures = false;
  for (mlir::ValueId value : m_.operands_of(op)) {
    futures = futures || m_.nodes.kind(m_.type(value)) == mlir::NodeKind::kFutureType;
  }
  if (minor_ < kFutures && futures) return Error(op, StrCat("its futures are in StableHLO since 1.", kFutures, ".0"));
  return row;
}

absl::Status ArtifactWriter::StartOperation(OperationId id) {
  const mlir::Operation& op = m_.op(id);
  const std::string_view name = m_.nodes.str(op.name);
  const bool is_module = op.kind() == mlir::OpKind::kBuiltinModule;
  const VhloOperation* const newest = is_module ? nullptr : VhloOperationFor(name, kNewestMinor);
  if (newest == nullptr && !is_module) return Error(op, "VHLO has no such operation");
  const VhloOperation* row = nullptr;
  if (!is_module) {
    const absl::StatusOr<const VhloOperation*> form = FormOf(op, *newest);
    if (!form.ok()) return form.status();
    row = *form;
  }
  if (op.successor_count != 0) return Error(op, "it has successors");
  const Dialect dialect = is_module ? kBuiltin : kVhlo;
  std::vector<std::pair<std::string_view, uint64_t>> discardable;
  for (const mlir::Attribute& a : m_.attributes_of(op)) {
    if (!a.inherent) discardable.emplace_back(m_.nodes.str(a.name), nodes_.Attribute(a.value, dialect));
  }
  ByteWriter properties;
  if (is_module) {
    for (std::string_view property : {"sym_name", "sym_visibility"}) {
      const NodeId value = m_.attribute(op, property);
      properties.VarIntWithFlag(value.valid() ? nodes_.Attribute(value, kBuiltin) : 0, value.valid());
    }
  } else {
    absl::StatusOr<std::vector<NodeId>> values = VhloAttributes(op, *newest, *row, &m_);
    if (!values.ok()) return Error(op, {values.status().message().data(), values.status().message().size()});
    for (NodeId value : *values) properties.VarInt(nodes_.Attribute(value, kVhlo));
  }
  const bool has_properties = is_module || !row->attributes.empty();
  ir_.VarInt(NameIndex(dialect, is_module ? std::string_view("module") : row->name));
  constexpr int kAttributes = 1, kResults = 2, kOperands = 4, kRegions = 16, kProperties = 64;
  ir_.Byte(static_cast<uint8_t>((discardable.empty() ? 0 : kAttributes) | (op.result_count != 0 ? kResults : 0) |
                                (op.operand_count != 0 ? kOperands : 0) | (op.region_count != 0 ? kRegions : 0) |
                                (has_properties ? kProperties : 0)));
  ir_.VarInt(Location(op.location));
  if (!discardable.empty()) ir_.VarInt(nodes_.Dictionary(discardable));
  if (has_properties) {
    ir_.VarInt(properties_.size());
    properties_.push_back(properties.bytes());
  }
  if (op.result_count != 0) {
    ir_.VarInt(op.result_count);
    for (uint32_t i = 0; i < op.result_count; ++i) ir_.VarInt(nodes_.Type(m_.type(m_.result(op, i))));
  }
  if (op.operand_count != 0) {
    ir_.VarInt(op.operand_count);
    for (mlir::ValueId value : m_.operands_of(op)) {
      if (!value.valid()) return Error(op, "an operand has no value");
      ir_.VarInt(numbers_[value.value]);
    }
  }
  if (!nodes_.status().ok()) return Error(op, {nodes_.status().message().data(), nodes_.status().message().size()});
  if (op.region_count != 0) {
    // Only modules are isolated, and a module is the whole file: its regions are in a section, which Run adds.
    ir_.VarIntWithFlag(op.region_count, is_module);
    operations_.push_back({id});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ArtifactWriter::Run() {
  // The operations of the file, in a module of their own if there is none.
  const mlir::BlockId top = m_.block(m_.top);
  const OperationId first = top.valid() ? m_.blocks[top.value].first : OperationId();
  const bool has_module = first.valid() && !m_.op(first).next.valid() && m_.kind(first) == mlir::OpKind::kBuiltinModule;
  ByteWriter head;
  RegionId region = m_.top;
  if (has_module) {
    if (absl::Status status = StartOperation(first); !status.ok()) return status;
    if (m_.op(first).region_count != 1) return Error(m_.op(first), "a module has one region");
    operations_.clear();
    region = m_.regions_of(m_.op(first))[0];
    head = ir_;
  } else {
    ByteWriter none;
    none.VarInt(0);
    none.VarInt(0);
    properties_.push_back(none.bytes());
    head.VarInt(NameIndex(kBuiltin, "module"));
    head.Byte(0x50);
    head.VarInt(unknown_);
    head.VarInt(0);
    head.VarIntWithFlag(1, true);
  }
  ir_ = ByteWriter();
  if (absl::Status status = StartRegion(region); !status.ok()) return status;
  while (!regions_.empty()) {
    // Either an operation waits for its regions, or the innermost region goes on.
    if (operations_.size() == regions_.size()) {
      OpenOperation& op = operations_.back();
      const absl::Span<const RegionId> list = m_.regions_of(m_.op(op.id));
      if (op.region == list.size()) {
        operations_.pop_back();
        continue;
      }
      const RegionId next = list[op.region++];
      if (absl::Status status = StartRegion(next); !status.ok()) return status;
      continue;
    }
    OpenRegion& open = regions_.back();
    if (!open.next.valid()) {
      next_value_ = open.first_value;
      regions_.pop_back();
      continue;
    }
    const OperationId id = open.next;
    open.next = m_.op(id).next;
    if (m_.kind(id) == mlir::OpKind::kBuiltinModule) return Error(m_.op(id), "modules in modules are isolated");
    if (absl::Status status = StartOperation(id); !status.ok()) return status;
  }
  ByteWriter all;
  all.VarIntWithFlag(1, false);
  all.Bytes(head.bytes());
  all.Section(kIrSection, ir_.bytes());

  ByteWriter dialects;
  dialects.VarInt(2);
  for (std::string_view name : {"builtin", "vhlo"}) dialects.VarIntWithFlag(nodes_.String(name), false);
  dialects.VarInt(names_.size());
  for (size_t i = 0; i < names_.size();) {
    size_t last = i;
    while (last < names_.size() && names_[last].first == names_[i].first) ++last;
    dialects.VarInt(names_[i].first);
    dialects.VarInt(last - i);
    for (; i < last; ++i) dialects.VarIntWithFlag(nodes_.String(names_[i].second), true);
  }
  ByteWriter properties;
  properties.VarInt(properties_.size());
  for (const std::string& p : properties_) {
    properties.VarInt(p.size());
    properties.Bytes(p);
  }
  ByteWriter file;
  file.Bytes("ML\xefR");
  file.VarInt(kNewestFormat);
  file.Bytes(StrCat("StableHLO_v1.", minor_, ".0"));
  file.Byte(0);
  // Strings are complete only now.
  file.Section(1, dialects.bytes());
  file.Section(2, nodes_.Encodings());
  file.Section(3, nodes_.Sizes());
  file.Section(kIrSection, all.bytes());
  file.Section(8, properties.bytes());
  file.Section(0, nodes_.Strings());
  return file.bytes();
}

}  // namespace

std::optional<std::string> WriteArtifact(mlir::Module* program, DiagnosticSink* sink, int64_t minor) {
  ArtifactWriter writer(program, minor);
  absl::StatusOr<std::string> bytes = writer.Run();
  if (bytes.ok()) return *std::move(bytes);
  sink->Error(DiagnosticKind::kUnknownOpcode, writer.rejected(),
              std::string(bytes.status().message().data(), bytes.status().message().size()));
  return std::nullopt;
}

std::optional<int64_t> MinorOfTarget(std::string_view version) {
  constexpr std::string_view kMajor = "1.";
  if (version.starts_with('v')) version.remove_prefix(1);
  if (!version.starts_with(kMajor)) return std::nullopt;
  const char* const end = version.data() + version.size();
  int64_t minor = 0, patch = 0;
  const auto read = std::from_chars(version.data() + kMajor.size(), end, minor);
  if (read.ec != std::errc() || minor < 0 || minor > kNewestMinor || read.ptr == end || *read.ptr != '.') {
    return std::nullopt;
  }
  const auto rest = std::from_chars(read.ptr + 1, end, patch);
  return rest.ec == std::errc() && rest.ptr == end && patch >= 0 ? std::optional(minor) : std::nullopt;
}

}  // namespace hlokit::bytecode
