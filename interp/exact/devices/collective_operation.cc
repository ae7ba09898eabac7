// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/devices/collective_operation.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "interp/exact/builder/scalar_function.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

// Below it all processes get all operands: one exchange instead of two.
constexpr int64_t kMaxGatheredBytes = int64_t{1} << 14;

std::optional<Transport::Integer> IntegerOf(ElementType type) {
  if (type == ElementType::kPred) return Transport::Integer::kU8;
  if (!IsInteger(type)) return std::nullopt;
  switch (BitsOf(type)) {
    case 8:
      return IsSigned(type) ? Transport::Integer::kS8 : Transport::Integer::kU8;
    case 16:
      return IsSigned(type) ? Transport::Integer::kS16 : Transport::Integer::kU16;
    case 32:
      return IsSigned(type) ? Transport::Integer::kS32 : Transport::Integer::kU32;
    case 64:
      return IsSigned(type) ? Transport::Integer::kS64 : Transport::Integer::kU64;
    default:
      return std::nullopt;
  }
}

// Returns the function of integers; none if its result depends on the order, or MPI lacks it.
std::optional<Transport::Reduction> ReductionOf(const CollectiveReduction& reduction) {
  if (!IntegerOf(reduction.type)) return std::nullopt;
  const bool is_pred = reduction.type == ElementType::kPred;
  switch (reduction.function->recognized_op()) {
    case ScalarFunction::RecognizedOp::kAdd:
      if (is_pred) return std::nullopt;
      return Transport::Reduction::kAdd;
    case ScalarFunction::RecognizedOp::kMultiply:
      if (is_pred) return std::nullopt;
      return Transport::Reduction::kMultiply;
    case ScalarFunction::RecognizedOp::kMinimum:
      return Transport::Reduction::kMinimum;
    case ScalarFunction::RecognizedOp::kMaximum:
      return Transport::Reduction::kMaximum;
    case ScalarFunction::RecognizedOp::kAnd:
      return Transport::Reduction::kAnd;
    case ScalarFunction::RecognizedOp::kOr:
      return Transport::Reduction::kOr;
    case ScalarFunction::RecognizedOp::kXor:
      return Transport::Reduction::kXor;
    case ScalarFunction::RecognizedOp::kNone:
    case ScalarFunction::RecognizedOp::kFirst:
    case ScalarFunction::RecognizedOp::kSecond:
      break;
  }
  return std::nullopt;
}

}  // namespace

CollectiveOperation::~CollectiveOperation() { End(); }

void CollectiveOperation::Begin(const CollectiveParams& params, int64_t result_bytes, uint64_t tag,
                                ProcessGroup& processes) {
  params_ = &params;
  reduction_ = params.reduction();
  processes_ = &processes;
  result_bytes_ = result_bytes;
  tag_ = tag;
  phase_ = Phase::kBegin;
  method_ = Method::kMove;
  counts_.clear();
  flat_elements_ = 0;
  element_bytes_ = 1;
  if (reduction_ == nullptr) return;
  for (const CollectiveReduction::Part& part : reduction_->parts) {
    flat_elements_ += part.count;
    element_bytes_ = part.bytes;
  }
  method_ = ChooseMethod();
}

void CollectiveOperation::End() {
  for (PoolBlock* block : blocks_) context_.pool.Release(block);
  blocks_.clear();
}

CollectiveOperation::Method CollectiveOperation::ChooseMethod() const {
  // The choice depends on what all processes know.
  size_t most = 0;
  for (const std::vector<size_t>& members : processes_->members_of) most = std::max(most, members.size());
  if (flat_bytes() * static_cast<int64_t>(most) <= static_cast<int64_t>(sizeof(Envelope::data))) return Method::kInline;
  if (flat_bytes() * static_cast<int64_t>(members_.size()) <= kMaxGatheredBytes) return Method::kGatherAll;
  if (ReductionOf(*reduction_) && (!reduction_->scatters || flat_bytes() <= INT32_MAX)) return Method::kUnordered;
  return reduction_->scatters ? Method::kScatter : Method::kChunks;
}

std::byte* CollectiveOperation::Allocate(int64_t bytes) {
  PoolBlock* const block = context_.pool.Allocate(std::max<int64_t>(bytes, 1));
  if (block == nullptr) {
    context_.Fail(Scratch::OutOfMemory(context_, bytes), DiagnosticKind::kTooLarge);
    return nullptr;
  }
  blocks_.push_back(block);
  return block->data();
}

bool CollectiveOperation::Post(Transport::Request request) {
  request_ = request;
  if (request < 0) context_.Fail(world_.ErrorText());
  return request >= 0;
}

bool CollectiveOperation::Advance() {
  while (phase_ != Phase::kDone && !context_.failed()) {
    if (phase_ == Phase::kBegin) {
      BeginEnvelope();
      continue;
    }
    // Others are mostly about to do the same.
    constexpr int kSpins = 32;
    int tested = 0;
    for (int i = 0; i < kSpins && tested == 0; ++i) tested = world_.transport().Test(request_);
    if (tested < 0) context_.Fail(world_.ErrorText());
    if (tested <= 0) return context_.failed();
    switch (phase_) {
      case Phase::kEnvelope:
        if (!ReadEnvelopes()) break;
        if (!params_->shared_operands.empty()) {
          BeginShared();
        } else {
          BeginData();
        }
        break;
      case Phase::kShared:
        ReadShared();
        BeginData();
        break;
      case Phase::kMove:
        FinishMove();
        phase_ = Phase::kDone;
        break;
      case Phase::kReduce:
        if (method_ == Method::kChunks) {
          ReduceChunks();
          break;
        }
        if (method_ == Method::kScatter) FinishScatter();
        if (method_ == Method::kUnordered) FinishUnordered();
        if (method_ == Method::kGatherAll) {
          ReduceAll([&](size_t p) { return in_ + from_[p].begin; });
        }
        phase_ = Phase::kDone;
        break;
      case Phase::kGather:
        StoreFlat(in_);
        phase_ = Phase::kDone;
        break;
      case Phase::kBegin:
      case Phase::kDone:
        break;
    }
  }
  return true;
}

void CollectiveOperation::BeginEnvelope() {
  own_.tag = tag_;
  own_.number = processes_->operations++;
  if (method_ == Method::kInline) {
    std::byte* at = own_.data;
    for (size_t m : local_members()) {
      PackFlat(m, 0, flat_elements_, at);
      at += flat_bytes();
    }
  }
  envelopes_.resize(process_count());
  phase_ = Phase::kEnvelope;
  Post(world_.transport().Allgather(processes_->communicator, &own_, sizeof(Envelope), envelopes_.data()));
}

bool CollectiveOperation::ReadEnvelopes() {
  for (size_t p = 0; p < process_count(); ++p) {
    if (envelopes_[p].tag == own_.tag && envelopes_[p].number == own_.number) continue;
    mismatches_.push_back({processes_->ranks[p], envelopes_[p].tag});
  }
  if (mismatches_.empty()) return true;
  context_.Fail("processes are at different collectives");
  return false;
}

void CollectiveOperation::BeginShared() {
  int64_t each = 0;
  for (const CollectiveParams::SharedOperand& shared : params_->shared_operands) each += shared.bytes;
  out_ = Allocate(each * static_cast<int64_t>(local_members().size()));
  in_ = Allocate(each * static_cast<int64_t>(members_.size()));
  if (out_ == nullptr || in_ == nullptr) return;
  std::byte* at = out_;
  for (size_t m : local_members()) {
    for (const CollectiveParams::SharedOperand& shared : params_->shared_operands) {
      std::memcpy(at, members_[m].operands[shared.operand], static_cast<size_t>(shared.bytes));
      at += shared.bytes;
    }
  }
  from_.assign(process_count(), {});
  int64_t total = 0;
  for (size_t p = 0; p < process_count(); ++p) {
    from_[p] = {total, each * static_cast<int64_t>(processes_->members_of[p].size())};
    total += from_[p].bytes;
  }
  phase_ = Phase::kShared;
  Post(world_.transport().Allgatherv(processes_->communicator, out_, in_, from_.data(), total));
}

void CollectiveOperation::ReadShared() {
  const std::byte* at = in_;
  shared_operands_.resize(members_.size());
  for (const std::vector<size_t>& members : processes_->members_of) {
    for (size_t m : members) {
      std::vector<const std::byte*>& operands = shared_operands_[m];
      for (const CollectiveParams::SharedOperand& shared : params_->shared_operands) {
        if (operands.size() <= shared.operand) operands.resize(shared.operand + 1);
        operands[shared.operand] = at;
        at += shared.bytes;
      }
      if (!IsLocal(m)) members_[m].operands = operands.data();
    }
  }
}

void CollectiveOperation::BeginData() {
  switch (method_) {
    case Method::kMove:
      return BeginMove();
    case Method::kInline:
      ReduceAll([&](size_t p) { return envelopes_[p].data; });
      phase_ = Phase::kDone;
      return;
    case Method::kGatherAll:
      return BeginGatherAll();
    case Method::kUnordered:
      return BeginUnordered();
    case Method::kChunks:
      return BeginChunks();
    case Method::kScatter:
      return BeginScatter();
  }
}

void CollectiveOperation::BeginMove() {
  if (!params_->Check(members_, context_)) return;
  for (size_t m : local_members()) params_->FillResults(members_[m]);
  to_.assign(process_count(), {});
  from_.assign(process_count(), {});
  ForEachTransfer([&](size_t source, size_t target, const CollectivePiece& piece) {
    if (IsLocal(source)) to_[processes_->process_of[target]].bytes += piece.bytes;
    if (IsLocal(target)) from_[processes_->process_of[source]].bytes += piece.bytes;
  });
  int64_t sent = 0, received = 0;
  for (size_t p = 0; p < process_count(); ++p) {
    to_[p].begin = sent;
    from_[p].begin = received;
    sent += params_->same_for_all ? 0 : to_[p].bytes;
    received += from_[p].bytes;
  }
  if (params_->same_for_all) sent = from_[processes_->self].bytes;
  out_ = Allocate(sent);
  in_ = Allocate(received);
  if (out_ == nullptr || in_ == nullptr) return;
  std::vector<int64_t> at(process_count());
  ForEachTransfer([&](size_t source, size_t target, const CollectivePiece& piece) {
    if (!IsLocal(source) || (params_->same_for_all && !IsLocal(target))) return;
    const size_t p = processes_->process_of[target];
    std::memcpy(out_ + to_[p].begin + at[p], members_[source].operands[piece.operand] + piece.from,
                static_cast<size_t>(piece.bytes));
    at[p] += piece.bytes;
  });
  phase_ = Phase::kMove;
  Transport& transport = world_.transport();
  if (params_->same_for_all) {
    Post(transport.Allgatherv(processes_->communicator, out_, in_, from_.data(), received));
    return;
  }
  Post(transport.Exchange(processes_->communicator, out_, to_.data(), in_, from_.data(),
                          static_cast<int64_t>(members_.size()) * result_bytes_, !params_->neighbors.empty()));
}

// Where all members get the same bytes, one target stands for all: the first of this process.
void CollectiveOperation::ForEachTransfer(
    absl::FunctionRef<void(size_t source, size_t target, const CollectivePiece&)> transfer) const {
  const auto n = static_cast<int64_t>(members_.size());
  for (const std::vector<size_t>& sources : processes_->members_of) {
    for (size_t source : sources) {
      params_->ForEachTarget(static_cast<int64_t>(source), n, [&](int64_t t) {
        const auto target = static_cast<size_t>(t);
        if (params_->same_for_all ? target != local_members()[0] : !IsLocal(source) && !IsLocal(target)) return;
        params_->ForEachPiece(members_, static_cast<int64_t>(source), t,
                              [&](const CollectivePiece& piece) { transfer(source, target, piece); });
      });
    }
  }
}

void CollectiveOperation::FinishMove() {
  const std::byte* at = in_;
  const std::vector<size_t>& local = local_members();
  ForEachTransfer([&](size_t, size_t target, const CollectivePiece& piece) {
    if (!IsLocal(target)) return;
    for (size_t m : local) {
      if (m != target && !params_->same_for_all) continue;
      std::memcpy(members_[m].results[piece.result] + piece.to, at, static_cast<size_t>(piece.bytes));
    }
    at += piece.bytes;
  });
}

void CollectiveOperation::PackFlat(size_t member, int64_t begin, int64_t end, std::byte* out) const {
  int64_t first = 0;
  for (size_t k = 0; k < reduction_->parts.size(); ++k) {
    const int64_t count = reduction_->parts[k].count;
    const int64_t from = std::max(begin, first), to = std::min(end, first + count);
    if (from < to) {
      std::memcpy(out, members_[member].operands[k] + (from - first) * element_bytes_,
                  static_cast<size_t>((to - from) * element_bytes_));
      out += (to - from) * element_bytes_;
    }
    first += count;
  }
}

void CollectiveOperation::PackPiece(const std::byte* flat, size_t member, size_t target, std::byte* out) const {
  const auto n = static_cast<int64_t>(members_.size());
  for (size_t k = 0; k < reduction_->parts.size(); ++k) {
    const CollectiveReduction::Part& part = reduction_->parts[k];
    const std::byte* from = flat != nullptr ? flat : members_[member].operands[k];
    const int64_t bytes = part.count * element_bytes_ / (part.outer * n);
    for (int64_t row = 0; row < part.outer; ++row) {
      std::memcpy(out, from + (row * n + static_cast<int64_t>(target)) * bytes, static_cast<size_t>(bytes));
      out += bytes;
    }
    if (flat != nullptr) flat += part.count * element_bytes_;
  }
}

void CollectiveOperation::StorePiece(const std::byte* piece, size_t member) const {
  for (size_t k = 0; k < reduction_->parts.size(); ++k) {
    const int64_t bytes = reduction_->parts[k].count * element_bytes_ / static_cast<int64_t>(members_.size());
    std::memcpy(members_[member].results[k], piece, static_cast<size_t>(bytes));
    piece += bytes;
  }
}

void CollectiveOperation::StoreFlat(const std::byte* flat) {
  std::byte* piece = nullptr;
  if (reduction_->scatters) {
    piece = Allocate(piece_elements() * element_bytes_);
    if (piece == nullptr) return;
  }
  for (size_t m : local_members()) {
    if (reduction_->scatters) {
      PackPiece(flat, m, m, piece);
      StorePiece(piece, m);
      continue;
    }
    const std::byte* from = flat;
    for (size_t k = 0; k < reduction_->parts.size(); ++k) {
      const int64_t bytes = reduction_->parts[k].count * element_bytes_;
      if (members_[m].results[k] != from) std::memcpy(members_[m].results[k], from, static_cast<size_t>(bytes));
      from += bytes;
    }
  }
}

void CollectiveOperation::ReduceAll(absl::FunctionRef<const std::byte*(size_t process)> lists_of) {
  SetLists(flat_bytes(), lists_of);
  const bool in_place = IsFlat() && !reduction_->scatters;
  std::byte* const total = in_place ? members_[local_members()[0]].results[0] : Allocate(flat_bytes());
  if (total == nullptr) return;
  reduction_->Reduce(lists_, flat_elements_, total, context_);
  StoreFlat(total);
}

void CollectiveOperation::SetLists(int64_t bytes, absl::FunctionRef<const std::byte*(size_t process)> lists_of) {
  lists_.resize(members_.size());
  for (size_t p = 0; p < process_count(); ++p) {
    const std::byte* at = lists_of(p);
    for (size_t m : processes_->members_of[p]) {
      lists_[m] = at;
      at += bytes;
    }
  }
}

void CollectiveOperation::BeginGatherAll() {
  from_.assign(process_count(), {});
  int64_t total = 0;
  for (size_t p = 0; p < process_count(); ++p) {
    from_[p] = {total, flat_bytes() * static_cast<int64_t>(processes_->members_of[p].size())};
    total += from_[p].bytes;
  }
  out_ = Allocate(from_[processes_->self].bytes);
  in_ = Allocate(total);
  if (out_ == nullptr || in_ == nullptr) return;
  std::byte* at = out_;
  for (size_t m : local_members()) {
    PackFlat(m, 0, flat_elements_, at);
    at += flat_bytes();
  }
  phase_ = Phase::kReduce;
  Post(world_.transport().Allgatherv(processes_->communicator, out_, in_, from_.data(), total));
}

void CollectiveOperation::BeginUnordered() {
  const std::vector<size_t>& local = local_members();
  out_ = Allocate(flat_bytes());
  std::byte* const packed = IsFlat() ? nullptr : Allocate(flat_bytes() * static_cast<int64_t>(local.size()));
  if (out_ == nullptr || (!IsFlat() && packed == nullptr)) return;
  lists_.clear();
  for (size_t i = 0; i < local.size(); ++i) {
    if (IsFlat()) {
      lists_.push_back(members_[local[i]].operands[0]);
      continue;
    }
    std::byte* const list = packed + static_cast<int64_t>(i) * flat_bytes();
    PackFlat(local[i], 0, flat_elements_, list);
    lists_.push_back(list);
  }
  reduction_->Reduce(lists_, flat_elements_, out_, context_);
  if (context_.failed()) return;
  const Transport::Integer type = *IntegerOf(reduction_->type);
  const Transport::Reduction op = *ReductionOf(*reduction_);
  phase_ = Phase::kReduce;
  if (!reduction_->scatters) {
    in_ = IsFlat() ? members_[local[0]].results[0] : Allocate(flat_bytes());
    if (in_ == nullptr) return;
    Post(world_.transport().Allreduce(processes_->communicator, out_, in_, flat_elements_, type, op));
    return;
  }
  // The pieces of each process together.
  std::byte* const pieces = Allocate(flat_bytes());
  in_ = Allocate(piece_elements() * element_bytes_ * static_cast<int64_t>(local.size()));
  if (pieces == nullptr || in_ == nullptr) return;
  std::byte* at = pieces;
  for (const std::vector<size_t>& members : processes_->members_of) {
    counts_.push_back(piece_elements() * static_cast<int64_t>(members.size()));
    for (size_t m : members) {
      PackPiece(out_, 0, m, at);
      at += piece_elements() * element_bytes_;
    }
  }
  Post(world_.transport().ReduceScatter(processes_->communicator, pieces, in_, counts_.data(), type, op));
}

void CollectiveOperation::FinishUnordered() {
  if (!reduction_->scatters) {
    StoreFlat(in_);
    return;
  }
  const std::byte* at = in_;
  for (size_t m : local_members()) {
    StorePiece(at, m);
    at += piece_elements() * element_bytes_;
  }
}

void CollectiveOperation::BeginChunks() {
  const std::vector<size_t>& local = local_members();
  const int64_t own = ChunkBegin(processes_->self + 1) - ChunkBegin(processes_->self);
  to_.assign(process_count(), {});
  from_.assign(process_count(), {});
  const bool direct = IsFlat() && local.size() == 1;
  int64_t sent = 0, received = 0;
  for (size_t p = 0; p < process_count(); ++p) {
    const int64_t bytes = (ChunkBegin(p + 1) - ChunkBegin(p)) * element_bytes_;
    to_[p] = {sent, bytes * static_cast<int64_t>(local.size())};
    from_[p] = {received, own * element_bytes_ * static_cast<int64_t>(processes_->members_of[p].size())};
    sent += to_[p].bytes;
    received += from_[p].bytes;
  }
  std::byte* const packed = direct ? nullptr : Allocate(sent);
  in_ = Allocate(received);
  if (in_ == nullptr || (!direct && packed == nullptr)) return;
  for (size_t p = 0; p < process_count() && !direct; ++p) {
    std::byte* at = packed + to_[p].begin;
    for (size_t m : local) {
      PackFlat(m, ChunkBegin(p), ChunkBegin(p + 1), at);
      at += (ChunkBegin(p + 1) - ChunkBegin(p)) * element_bytes_;
    }
  }
  phase_ = Phase::kReduce;
  Post(world_.transport().Exchange(processes_->communicator, direct ? members_[local[0]].operands[0] : packed,
                                   to_.data(), in_, from_.data(), flat_bytes() * static_cast<int64_t>(members_.size()),
                                   /*neighbors=*/false));
}

void CollectiveOperation::ReduceChunks() {
  const int64_t own = ChunkBegin(processes_->self + 1) - ChunkBegin(processes_->self);
  SetLists(own * element_bytes_, [&](size_t p) { return in_ + from_[p].begin; });
  out_ = Allocate(own * element_bytes_);
  if (out_ == nullptr) return;
  reduction_->Reduce(lists_, own, out_, context_);
  if (context_.failed()) return;
  in_ = IsFlat() ? members_[local_members()[0]].results[0] : Allocate(flat_bytes());
  if (in_ == nullptr) return;
  for (size_t p = 0; p < process_count(); ++p) {
    from_[p] = {ChunkBegin(p) * element_bytes_, (ChunkBegin(p + 1) - ChunkBegin(p)) * element_bytes_};
  }
  phase_ = Phase::kGather;
  Post(world_.transport().Allgatherv(processes_->communicator, out_, in_, from_.data(), flat_bytes()));
}

void CollectiveOperation::BeginScatter() {
  const std::vector<size_t>& local = local_members();
  const int64_t piece = piece_elements() * element_bytes_;
  to_.assign(process_count(), {});
  from_.assign(process_count(), {});
  int64_t sent = 0, received = 0;
  for (size_t p = 0; p < process_count(); ++p) {
    const int64_t bytes = piece * static_cast<int64_t>(local.size() * processes_->members_of[p].size());
    to_[p] = {sent, bytes};
    from_[p] = {received, bytes};
    sent += bytes;
    received += bytes;
  }
  out_ = Allocate(sent);
  in_ = Allocate(received);
  if (out_ == nullptr || in_ == nullptr) return;
  std::byte* at = out_;
  for (const std::vector<size_t>& targets : processes_->members_of) {
    for (size_t target : targets) {
      for (size_t source : local) {
        PackPiece(nullptr, source, target, at);
        at += piece;
      }
    }
  }
  phase_ = Phase::kReduce;
  Post(world_.transport().Exchange(processes_->communicator, out_, to_.data(), in_, from_.data(),
                                   flat_bytes() * static_cast<int64_t>(members_.size()), /*neighbors=*/false));
}

void CollectiveOperation::FinishScatter() {
  const std::vector<size_t>& local = local_members();
  const int64_t piece = piece_elements() * element_bytes_;
  std::byte* const total = Allocate(piece);
  if (total == nullptr) return;
  lists_.resize(members_.size());
  for (size_t i = 0; i < local.size(); ++i) {
    for (size_t p = 0; p < process_count(); ++p) {
      const std::vector<size_t>& sources = processes_->members_of[p];
      for (size_t s = 0; s < sources.size(); ++s) {
        lists_[sources[s]] = in_ + from_[p].begin + static_cast<int64_t>(i * sources.size() + s) * piece;
      }
    }
    reduction_->Reduce(lists_, piece_elements(), total, context_);
    if (context_.failed()) return;
    StorePiece(total, local[i]);
  }
}

}  // namespace hlokit::interp
