// SPDX-License-Identifier: Apache-2.0
// The source of an instruction: XLA's OpMetadata. Interned: in a dump most instructions have only an op_name and a
// stack frame, so a record is small and further fields are in a list.
//
// A record may have several sources: it has the fields of one of them, the main one, and refers to the records it was
// merged from. An instruction that a transformation created from others thus carries all their sources in the four
// bytes of its MetadataId.
#ifndef HLOKIT_IR_GRAPH_METADATA_H_
#define HLOKIT_IR_GRAPH_METADATA_H_

#include <cstdint>
#include <vector>

#include "ir/core/hashing.h"
#include "ir/core/ids.h"
#include "ir/core/intern_index.h"
#include "ir/core/list_pool.h"

namespace hlokit {

struct Metadata {
  StringId op_type;
  StringId op_name;
  StringId source_file;
  int64_t source_line = 0;
  int64_t source_end_line = 0;
  int64_t source_column = 0;
  int64_t source_end_column = 0;
  int64_t stack_frame_id = 0;  // index into the module's StackFrames table, from 1; 0: none
  ListId profile_types;
  StringId deduplicated_name;
  StringId scheduling_name;
  StringId payload;
  bool preserve_layout = false;
};

class MetadataPool {
 public:
  explicit MetadataPool(ListPool* lists) : lists_(lists) {}

  MetadataId Intern(const Metadata& m) {
    Record r{m.op_name, static_cast<uint32_t>(m.stack_frame_id), ListId(), MetadataId(), MetadataId()};
    const bool plain = !m.op_type && !m.source_file && m.source_line == 0 && m.source_end_line == 0 &&
                       m.source_column == 0 && m.source_end_column == 0 && !m.profile_types && !m.deduplicated_name &&
                       !m.scheduling_name && !m.payload && !m.preserve_layout && m.stack_frame_id >= 0 &&
                       m.stack_frame_id < INT32_MAX;
    if (!plain) {
      const int64_t rest[] = {m.op_type.value,         m.source_file.value,   m.source_line,
                              m.source_end_line,       m.source_column,       m.source_end_column,
                              m.stack_frame_id,        m.profile_types.value, m.deduplicated_name.value,
                              m.scheduling_name.value, m.payload.value,       m.preserve_layout};
      r.rest = lists_->Intern(rest);
    }
    return Intern(r);
  }

  // Returns a record with the fields of `main` and the sources of `main` and `other`. Either may be invalid. Constant
  // time and space, so that sets grow without copies.
  MetadataId Merge(MetadataId main, MetadataId other) {
    if (!main.valid() || main == other) return other;
    if (!other.valid()) return main;
    const Record m = records_[main.value];
    if (m.merged_main == other || m.merged_other == other) return main;
    if (const Record& o = records_[other.value]; o.merged_main == main && o.SameFields(m)) return other;
    return Intern(Record{m.op_name, m.stack_frame_id, m.rest, main, other});
  }
  bool IsMerged(MetadataId id) const { return id.valid() && records_[id.value].merged_main.valid(); }
  // Returns the single-source records that `id` was merged from, distinct, the main one first.
  std::vector<MetadataId> Sources(MetadataId id) const;

  Metadata operator[](MetadataId id) const {
    Metadata m;
    if (!id.valid()) return m;
    const Record& r = records_[id.value];
    m.op_name = r.op_name;
    m.stack_frame_id = r.stack_frame_id;
    if (!r.rest.valid()) return m;
    const absl::Span<const int64_t> rest = (*lists_)[r.rest];
    const auto id32 = [&rest](size_t i) { return static_cast<uint32_t>(rest[i]); };
    m.op_type = StringId(id32(0));
    m.source_file = StringId(id32(1));
    m.source_line = rest[2];
    m.source_end_line = rest[3];
    m.source_column = rest[4];
    m.source_end_column = rest[5];
    m.stack_frame_id = rest[6];
    m.profile_types = ListId(id32(7));
    m.deduplicated_name = StringId(id32(8));
    m.scheduling_name = StringId(id32(9));
    m.payload = StringId(id32(10));
    m.preserve_layout = rest[11] != 0;
    return m;
  }

  size_t size() const { return records_.size(); }

 private:
  struct Record {
    StringId op_name;
    uint32_t stack_frame_id;
    ListId rest;             // all fields, if there are others
    MetadataId merged_main;  // invalid: one source
    MetadataId merged_other;

    bool SameFields(const Record& o) const {
      return op_name == o.op_name && stack_frame_id == o.stack_frame_id && rest == o.rest;
    }
  };

  MetadataId Intern(const Record& r) {
    uint64_t hash = MixHash(MixHash(r.op_name.value, r.stack_frame_id), r.rest.value);
    hash = MixHash(hash, uint64_t{r.merged_main.value} << 32 | r.merged_other.value);
    return MetadataId(index_.FindOrInsert(
        hash,
        [&](uint32_t id) {
          const Record& o = records_[id];
          return o.SameFields(r) && o.merged_main == r.merged_main && o.merged_other == r.merged_other;
        },
        [&] {
          records_.push_back(r);
          return static_cast<uint32_t>(records_.size() - 1);
        }));
  }

  ListPool* lists_;
  std::vector<Record> records_;
  InternIndex index_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_METADATA_H_
