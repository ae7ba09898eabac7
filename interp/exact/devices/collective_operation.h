// SPDX-License-Identifier: Apache-2.0
// One collective of a group whose devices are in several processes, or several in turn, for which it keeps its lists.
// It advances in phases, between which the process can do other work.
//
// Values are those of one process, bit by bit. Bytes that move are packed for each process and exchanged once. A
// reduction of floats has a fixed order, that of the group: of a large one each process gets a chunk of the operands of
// all members, reduces it in that order, and sends it to all, which is as many bytes as any all-reduce needs where each
// process has one member; of a small one each process gets all operands. Reductions of integers, and, or, xor of any
// type with the bits of an integer have no order: members of one process are combined first, and MPI does the rest.
#ifndef HLOKIT_INTERP_EXACT_DEVICES_COLLECTIVE_OPERATION_H_
#define HLOKIT_INTERP_EXACT_DEVICES_COLLECTIVE_OPERATION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "interp/exact/builder/collective.h"
#include "interp/exact/machine/run_context.h"
#include "interp/processes/world.h"

namespace hlokit::interp {

class CollectiveOperation {
 public:
  CollectiveOperation(World& world, RunContext& context) : world_(world), context_(context) {}
  CollectiveOperation(const CollectiveOperation&) = delete;
  CollectiveOperation& operator=(const CollectiveOperation&) = delete;
  ~CollectiveOperation();

  // Of the next operation, to be set before Begin, in the order of the group; those of other processes have no
  // operands.
  std::vector<CollectiveMember>& members() { return members_; }
  // Prepares an operation, the first one or the next. `tag`: the same in all processes that run the same instruction.
  // `result_bytes`: of one member.
  void Begin(const CollectiveParams& params, int64_t result_bytes, uint64_t tag, ProcessGroup& processes);
  // Returns its memory.
  void End();

  // Proceeds as far as possible without waiting. Returns true at the end, which is an error if the context has one.
  bool Advance();

  // Returns true once all processes of the group have begun it: then only data are on their way.
  bool all_arrived() const { return phase_ > Phase::kEnvelope; }
  // Returns the bytes that it moves, at most.
  int64_t bytes() const { return (flat_bytes() + result_bytes_) * static_cast<int64_t>(members_.size()); }

  // Members of the group in another process, with the tag of the collective that it has reached instead of this one.
  struct Mismatch {
    int rank;
    uint64_t tag;
  };
  const std::vector<Mismatch>& mismatches() const { return mismatches_; }

 private:
  enum class Phase : uint8_t { kBegin, kEnvelope, kShared, kMove, kReduce, kGather, kDone };
  // The first message of an operation: what it is, and its data if they are few.
  struct Envelope {
    uint64_t tag = 0;
    uint64_t number = 0;
    std::byte data[48] = {};
  };
  enum class Method : uint8_t { kMove, kInline, kGatherAll, kUnordered, kChunks, kScatter };

  size_t process_count() const { return processes_->ranks.size(); }
  const std::vector<size_t>& local_members() const { return processes_->members_of[processes_->self]; }
  bool IsLocal(size_t member) const { return processes_->process_of[member] == processes_->self; }
  Method ChooseMethod() const;
  // Memory until the end of the operation; null after an error.
  std::byte* Allocate(int64_t bytes);
  bool Post(Transport::Request request);

  void BeginEnvelope();
  bool ReadEnvelopes();
  void BeginShared();
  void ReadShared();
  void BeginData();
  void BeginMove();
  void FinishMove();
  // Calls `transfer` for each piece that this process sends or receives, in the order of processes and sources.
  void ForEachTransfer(absl::FunctionRef<void(size_t source, size_t target, const CollectivePiece&)> transfer) const;
  void BeginGatherAll();
  void BeginUnordered();
  void FinishUnordered();
  void BeginChunks();
  void ReduceChunks();
  void BeginScatter();
  void FinishScatter();

  // Operands of a reduction are, together, one list of elements: `flat`.
  int64_t flat_bytes() const { return flat_elements_ * element_bytes_; }
  // Returns true if the list of a member is its only operand, and its results its only result.
  bool IsFlat() const { return reduction_->parts.size() == 1; }
  // Copies elements [begin, end) of the operands of a local member.
  void PackFlat(size_t member, int64_t begin, int64_t end, std::byte* out) const;
  // Sets the lists of members, each of `bytes`; those of a process follow each other.
  void SetLists(int64_t bytes, absl::FunctionRef<const std::byte*(size_t process)> lists_of);
  // Reduces all elements of such lists, and stores the results of the local members.
  void ReduceAll(absl::FunctionRef<const std::byte*(size_t process)> lists_of);
  // Stores the reduced list as the results of local members: whole, or the piece of each.
  void StoreFlat(const std::byte* flat);
  // Elements of a reduce-scatter for one member.
  int64_t piece_elements() const { return flat_elements_ / static_cast<int64_t>(members_.size()); }
  // Copies the elements for member `target` from a list, or, if it is null, from the operands of `member`.
  void PackPiece(const std::byte* flat, size_t member, size_t target, std::byte* out) const;
  void StorePiece(const std::byte* piece, size_t member) const;
  // First element of the chunk of a process.
  int64_t ChunkBegin(size_t process) const {
    return flat_elements_ / count() * static_cast<int64_t>(process) +
           flat_elements_ % count() * static_cast<int64_t>(process) / count();
  }
  int64_t count() const { return static_cast<int64_t>(process_count()); }

  World& world_;
  RunContext& context_;
  const CollectiveParams* params_ = nullptr;
  const CollectiveReduction* reduction_ = nullptr;
  ProcessGroup* processes_ = nullptr;
  std::vector<CollectiveMember> members_;
  int64_t result_bytes_ = 0;
  uint64_t tag_ = 0;
  Method method_ = Method::kMove;
  Phase phase_ = Phase::kBegin;
  Transport::Request request_ = Transport::kFailed;
  std::vector<Mismatch> mismatches_;

  Envelope own_;
  std::vector<Envelope> envelopes_;
  std::vector<PoolBlock*> blocks_;
  std::vector<const std::byte*> lists_;                         // of a reduction, by member
  std::vector<std::vector<const std::byte*>> shared_operands_;  // by member of another process
  std::vector<Transport::Range> to_, from_;
  std::vector<int64_t> counts_;
  std::byte* out_ = nullptr;  // what this process sends
  std::byte* in_ = nullptr;   // what it receives
  int64_t flat_elements_ = 0;
  int64_t element_bytes_ = 1;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_DEVICES_COLLECTIVE_OPERATION_H_
