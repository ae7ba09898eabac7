// SPDX-License-Identifier: Apache-2.0
// The computations and instructions of a module that is read, and the numbers that they go by. Internal to this
// directory.
#ifndef HLOKIT_PARSER_PROTO_MODULE_SOURCE_H_
#define HLOKIT_PARSER_PROTO_MODULE_SOURCE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "parser/proto/hlo.pb.h"
#include "parser/proto/wire_format.h"

namespace hlokit {

// The computations of a module, from a message, or from its bytes: then one instruction after another is parsed, into
// the same message, which takes half the time.
class ModuleSource {
 public:
  explicit ModuleSource(const xla::HloModuleProto& module) : module_(module) {}
  // `header`: receives the fields of the module without its computations. Check ok() before anything else.
  ModuleSource(std::string_view bytes, xla::HloModuleProto* header) : module_(*header), lazy_(true) {
    std::string fields;
    WireReader in(bytes);
    WireField field;
    while (ok_ && in.Next(&field)) {
      if (field.number == xla::HloModuleProto::kComputationsFieldNumber && field.kind == WireField::kBytes) {
        ok_ = AddComputation(field.bytes);
      } else {
        fields.append(field.whole);
      }
    }
    ok_ = ok_ && in.ok() && header->ParseFromString(fields);
  }

  bool ok() const { return ok_; }
  const xla::HloModuleProto& module() const { return module_; }  // its computations are those below
  int computation_count() const { return lazy_ ? static_cast<int>(heads_.size()) : module_.computations_size(); }
  // Without its instructions.
  const xla::HloComputationProto& computation(int c) const {
    return lazy_ ? heads_[static_cast<size_t>(c)] : module_.computations(c);
  }
  int instruction_count(int c) const {
    return lazy_ ? static_cast<int>(instructions_[static_cast<size_t>(c)].size())
                 : module_.computations(c).instructions_size();
  }
  // Valid until the next call. Null if the bytes are no instruction.
  const xla::HloInstructionProto* instruction(int c, int k) {
    if (!lazy_) return &module_.computations(c).instructions(k);
    buffer_.clear();
    shape_ = metadata_ = {};
    std::string_view kept;  // fields that follow each other
    WireReader in(instructions_[static_cast<size_t>(c)][static_cast<size_t>(k)]);
    WireField field;
    while (in.Next(&field)) {
      const bool bytes = field.kind == WireField::kBytes;
      if (bytes && field.number == xla::HloInstructionProto::kShapeFieldNumber && shape_.data() == nullptr) {
        shape_ = field.bytes;
      } else if (bytes && field.number == xla::HloInstructionProto::kMetadataFieldNumber &&
                 metadata_.data() == nullptr) {
        metadata_ = field.bytes;
      } else if (bytes && field.bytes.empty() && IsAttached(field.number)) {
        // XLA writes them for every instruction, mostly empty.
      } else if (kept.data() + kept.size() == field.whole.data()) {
        kept = {kept.data(), kept.size() + field.whole.size()};
      } else {
        buffer_.append(kept);
        kept = field.whole;
      }
    }
    buffer_.append(kept);
    return in.ok() && buffer_.size() < INT32_MAX && scratch_.ParseFromString(buffer_) ? &scratch_ : nullptr;
  }
  // The bytes of its shape and of its metadata, which recur; without data if they are in the message.
  std::string_view shape_bytes() const { return shape_; }
  std::string_view metadata_bytes() const { return metadata_; }

  // The numbers of an instruction and of its operands and control predecessors. Returns false for bytes that are none.
  bool ReadIds(int c, int k, int64_t* id, std::vector<int64_t>* operands) const {
    *id = 0;
    if (!lazy_) {
      const xla::HloInstructionProto& i = module_.computations(c).instructions(k);
      *id = i.id();
      operands->insert(operands->end(), i.operand_ids().begin(), i.operand_ids().end());
      operands->insert(operands->end(), i.control_predecessor_ids().begin(), i.control_predecessor_ids().end());
      return true;
    }
    WireReader in(instructions_[static_cast<size_t>(c)][static_cast<size_t>(k)]);
    WireField field;
    while (in.Next(&field)) {
      if (field.number == xla::HloInstructionProto::kIdFieldNumber && field.kind == WireField::kVarint) {
        *id = static_cast<int64_t>(field.varint);
      } else if (field.number == xla::HloInstructionProto::kOperandIdsFieldNumber ||
                 field.number == xla::HloInstructionProto::kControlPredecessorIdsFieldNumber) {
        if (field.kind == WireField::kVarint) operands->push_back(static_cast<int64_t>(field.varint));
        if (field.kind != WireField::kBytes) continue;
        const char* const end = field.bytes.data() + field.bytes.size();
        for (const char* p = field.bytes.data(); p != end;) {
          uint64_t value;
          if (!ReadVarint(&p, end, &value)) return false;
          operands->push_back(static_cast<int64_t>(value));
        }
      }
    }
    return in.ok();
  }

 private:
  static bool IsAttached(int number) {
    return number == xla::HloInstructionProto::kFrontendAttributesFieldNumber ||
           number == xla::HloInstructionProto::kStatisticsVizFieldNumber;
  }
  bool AddComputation(std::string_view bytes) {
    std::string fields;
    std::vector<std::string_view>& instructions = instructions_.emplace_back();
    WireReader in(bytes);
    WireField field;
    while (in.Next(&field)) {
      if (field.number == xla::HloComputationProto::kInstructionsFieldNumber && field.kind == WireField::kBytes) {
        instructions.push_back(field.bytes);
      } else if (field.number != xla::HloComputationProto::kProgramShapeFieldNumber) {  // not read
        fields.append(field.whole);
      }
    }
    return in.ok() && heads_.emplace_back().ParseFromString(fields);
  }

  const xla::HloModuleProto& module_;
  bool lazy_ = false;
  bool ok_ = true;
  std::deque<xla::HloComputationProto> heads_;
  std::vector<std::vector<std::string_view>> instructions_;
  xla::HloInstructionProto scratch_;
  std::string buffer_;
  std::string_view shape_, metadata_;
};

// Finds the instructions of a computation by their number, of which the lower half counts.
class InstructionIndex {
 public:
  static constexpr int kNone = -1;

  // Returns false if two instructions have the same number.
  bool Build(absl::Span<const int64_t> ids) {
    const int count = static_cast<int>(ids.size());
    direct_.assign(ids.size() * 2 + 64, kNone);
    others_.clear();
    for (int k = 0; k < count; ++k) {
      const uint32_t low = Low(ids[static_cast<size_t>(k)]);
      if (low < direct_.size()) {
        if (direct_[low] != kNone) return false;
        direct_[low] = k;
      } else if (!others_.insert({low, k}).second) {
        return false;
      }
    }
    return true;
  }
  int Find(int64_t id) const {
    const uint32_t low = Low(id);
    if (low < direct_.size()) return direct_[low];
    const auto found = others_.find(low);
    return found == others_.end() ? kNone : found->second;
  }

 private:
  static uint32_t Low(int64_t id) { return static_cast<uint32_t>(static_cast<uint64_t>(id)); }

  std::vector<int> direct_;
  absl::flat_hash_map<uint32_t, int> others_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_MODULE_SOURCE_H_
