// SPDX-License-Identifier: Apache-2.0
#include "interp/processes/network_transport.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

// Channels beside those of communicators, whose names are digests.
constexpr uint64_t kProgramChannel = 1, kErrorChannel = 2, kMessageChannels = 16;
// How long an error may take to reach a process that does not read.
constexpr double kErrorSeconds = 5;

template <typename T>
void Combine(Transport::Reduction reduction, const std::byte* in, std::byte* out, size_t bytes) {
  using Unsigned = std::make_unsigned_t<T>;
  for (size_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, out + at, sizeof(T));
    std::memcpy(&b, in + at, sizeof(T));
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    switch (reduction) {
      case Transport::Reduction::kAdd:
        a = static_cast<T>(static_cast<Unsigned>(x + y));
        break;
      case Transport::Reduction::kMultiply:
        a = static_cast<T>(static_cast<Unsigned>(x * y));
        break;
      case Transport::Reduction::kMinimum:
        a = std::min(a, b);
        break;
      case Transport::Reduction::kMaximum:
        a = std::max(a, b);
        break;
      case Transport::Reduction::kAnd:
        a = static_cast<T>(x & y);
        break;
      case Transport::Reduction::kOr:
        a = static_cast<T>(x | y);
        break;
      case Transport::Reduction::kXor:
        a = static_cast<T>(x ^ y);
        break;
    }
    std::memcpy(out + at, &a, sizeof(T));
  }
}

void Combine(Transport::Integer type, Transport::Reduction reduction, const std::string& in, std::byte* out) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(in.data());
  switch (type) {
    case Transport::Integer::kS8:
      return Combine<int8_t>(reduction, bytes, out, in.size());
    case Transport::Integer::kU8:
      return Combine<uint8_t>(reduction, bytes, out, in.size());
    case Transport::Integer::kS16:
      return Combine<int16_t>(reduction, bytes, out, in.size());
    case Transport::Integer::kU16:
      return Combine<uint16_t>(reduction, bytes, out, in.size());
    case Transport::Integer::kS32:
      return Combine<int32_t>(reduction, bytes, out, in.size());
    case Transport::Integer::kU32:
      return Combine<uint32_t>(reduction, bytes, out, in.size());
    case Transport::Integer::kS64:
      return Combine<int64_t>(reduction, bytes, out, in.size());
    case Transport::Integer::kU64:
      return Combine<uint64_t>(reduction, bytes, out, in.size());
  }
}

int64_t BytesOf(Transport::Integer type) {
  switch (type) {
    case Transport::Integer::kS8:
    case Transport::Integer::kU8:
      return 1;
    case Transport::Integer::kS16:
    case Transport::Integer::kU16:
      return 2;
    case Transport::Integer::kS32:
    case Transport::Integer::kU32:
      return 4;
    case Transport::Integer::kS64:
    case Transport::Integer::kU64:
      return 8;
  }
  return 0;
}

}  // namespace

NetworkTransport::NetworkTransport(ProcessNetwork* network, std::vector<int> processes, uint64_t world,
                                   double timeout_seconds)
    : network_(*network), processes_(std::move(processes)), world_(world), timeout_seconds_(timeout_seconds) {
  const auto self = std::find(processes_.begin(), processes_.end(), network_.self());
  rank_ = static_cast<int>(self - processes_.begin());
  std::vector<int> all;
  for (int r = 0; r < size(); ++r) all.push_back(r);
  communicators_.push_back({kMessageChannels - 1, std::move(all), static_cast<size_t>(rank_), 0});
}

bool NetworkTransport::Fail(std::string text) {
  if (error_.empty()) error_ = std::move(text);
  return false;
}

void NetworkTransport::BeginRun(uint64_t program, std::string_view name) {
  ++run_;
  error_.clear();
  error_is_of_others_ = others_ended_ = false;
  heard_ = Clock::now();
  for (Communicator& c : communicators_) c.operations = 0;
  operations_.clear();
  sent_.clear();
  received_.clear();
  program_.assign(reinterpret_cast<const char*>(&program), sizeof(program));
  program_ += name;
  if (program == 0) return;  // it will not run
  for (int r = 0; r < size(); ++r) {
    if (r != rank_) (void)SendTo(r, kProgramChannel, 0, program_.data(), static_cast<int64_t>(program_.size()));
  }
}

void NetworkTransport::EndRun(const absl::Status& status) {
  if (!status.ok()) {
    const std::string text =
        error_is_of_others_ ? error_ : StrCat("process ", process(rank_), " failed: ", std::string(status.message()));
    for (int r = 0; r < size(); ++r) {
      if (r == rank_ || network_.HasEnded(process(r))) continue;
      (void)network_.Send(process(r), LabelOf(kErrorChannel, 0), text.data(), text.size(), kErrorSeconds);
    }
  }
  network_.EndRun(world_, run_);
}

absl::Status NetworkTransport::Check() {
  if (!error_.empty()) return absl::UnavailableError(error_);
  const auto fail = [&](std::string text) {
    error_is_of_others_ = true;
    Fail(std::move(text));
    return absl::UnavailableError(error_);
  };
  std::string ended, absent;
  for (int r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    // Before what it sent is looked at, so that nothing comes between.
    const bool has_ended = network_.HasEnded(process(r));
    if (const auto error = network_.Read(process(r), LabelOf(kErrorChannel, 0))) return fail(*error);
    const auto program = network_.Read(process(r), LabelOf(kProgramChannel, 0));
    if (!program && !has_ended) StrAppend(&absent, absent.empty() ? "" : ", ", process(r));
    if (program && program->compare(0, sizeof(uint64_t), program_, 0, sizeof(uint64_t)) != 0) {
      return fail(StrCat("process ", process(r), " runs ", program->substr(sizeof(uint64_t)), " where process ",
                         process(rank_), " runs ", program_.substr(sizeof(uint64_t)),
                         ", whose collectives are not the same"));
    }
    if (has_ended) StrAppend(&ended, ended.empty() ? "" : ", ", process(r));
  }
  // What a process sent before it ended may have come since it was last looked for.
  if (!ended.empty() && std::exchange(others_ended_, true)) {
    return fail(StrCat("process ", ended, " has ended, and this program waits for it"));
  }
  if (std::chrono::duration<double>(Clock::now() - heard_).count() < timeout_seconds_) return absl::OkStatus();
  return fail(
      absent.empty()
          ? StrCat("the other processes of this program have sent nothing for ", FormatDouble(timeout_seconds_), " s")
          : StrCat("a program with collectives waited ", FormatDouble(timeout_seconds_), " s for process ", absent));
}

int NetworkTransport::CreateCommunicator(const int* ranks, int count, uint64_t name) {
  Communicator made;
  made.name = name;
  made.ranks.assign(ranks, ranks + count);
  const auto self = std::find(made.ranks.begin(), made.ranks.end(), rank_);
  made.self = static_cast<size_t>(self - made.ranks.begin());
  communicators_.push_back(std::move(made));
  return static_cast<int>(communicators_.size()) - 1;
}

bool NetworkTransport::Broadcast(void*, int64_t) { return Fail("broadcasts are not implemented"); }

bool NetworkTransport::SendTo(int rank, uint64_t channel, uint64_t number, const void* data, int64_t bytes) {
  const absl::Status sent =
      network_.Send(process(rank), LabelOf(channel, number), data, static_cast<size_t>(bytes), timeout_seconds_);
  if (sent.ok()) return true;
  // It may have told its error before it ended.
  if (const absl::Status known = Check(); !known.ok()) return false;
  error_is_of_others_ = true;
  return Fail(std::string(sent.message()));
}

Transport::Request NetworkTransport::Start(int communicator, const void* in, absl::Span<const Range> to,
                                           Operation operation) {
  Communicator& c = communicators_[static_cast<size_t>(communicator)];
  operation.communicator = communicator;
  operation.number = c.operations++;
  operation.in_use = true;
  const size_t members = c.ranks.size();
  operation.here.assign(members, false);
  operation.operands.resize(operation.reduces ? members : 0);
  const auto* const bytes = static_cast<const std::byte*>(in);
  for (size_t m = 0; m < members; ++m) {
    const std::byte* const begin = bytes + to[m].begin;
    if (m == c.self) {
      operation.here[m] = true;
      if (operation.reduces) {
        operation.operands[m].assign(reinterpret_cast<const char*>(begin), static_cast<size_t>(to[m].bytes));
      } else if (to[m].bytes > 0) {
        std::memmove(operation.out + operation.from[m].begin, begin, static_cast<size_t>(to[m].bytes));
      }
      continue;
    }
    operation.here[m] = operation.from[m].bytes == 0;
    if (to[m].bytes > 0 && !SendTo(c.ranks[m], c.name, operation.number, begin, to[m].bytes)) return kFailed;
  }
  const auto unused =
      std::find_if(operations_.begin(), operations_.end(), [](const Operation& o) { return !o.in_use; });
  const auto request = static_cast<Request>(unused - operations_.begin());
  if (unused == operations_.end()) {
    operations_.push_back(std::move(operation));
  } else {
    *unused = std::move(operation);
  }
  return request;
}

Transport::Request NetworkTransport::Allgather(int communicator, const void* in, int64_t bytes, void* out) {
  std::vector<Range> from;
  for (size_t m = 0; m < communicators_[static_cast<size_t>(communicator)].ranks.size(); ++m) {
    from.push_back({static_cast<int64_t>(m) * bytes, bytes});
  }
  return Allgatherv(communicator, in, out, from.data(), 0);
}

Transport::Request NetworkTransport::Allgatherv(int communicator, const void* in, void* out, const Range* from,
                                                int64_t) {
  const Communicator& c = communicators_[static_cast<size_t>(communicator)];
  Operation operation;
  operation.from.assign(from, from + c.ranks.size());
  operation.out = static_cast<std::byte*>(out);
  const std::vector<Range> to(c.ranks.size(), {0, from[c.self].bytes});
  return Start(communicator, in, to, std::move(operation));
}

Transport::Request NetworkTransport::Exchange(int communicator, const void* in, const Range* to, void* out,
                                              const Range* from, int64_t, bool) {
  const size_t members = communicators_[static_cast<size_t>(communicator)].ranks.size();
  Operation operation;
  operation.from.assign(from, from + members);
  operation.out = static_cast<std::byte*>(out);
  return Start(communicator, in, absl::MakeConstSpan(to, members), std::move(operation));
}

Transport::Request NetworkTransport::Allreduce(int communicator, const void* in, void* out, int64_t count, Integer type,
                                               Reduction op) {
  const size_t members = communicators_[static_cast<size_t>(communicator)].ranks.size();
  Operation operation;
  operation.from.assign(members, {0, count * BytesOf(type)});
  operation.out = static_cast<std::byte*>(out);
  operation.reduces = true;
  operation.type = type;
  operation.reduction = op;
  const std::vector<Range> to = operation.from;
  return Start(communicator, in, to, std::move(operation));
}

Transport::Request NetworkTransport::ReduceScatter(int communicator, const void* in, void* out, const int64_t* counts,
                                                   Integer type, Reduction op) {
  const Communicator& c = communicators_[static_cast<size_t>(communicator)];
  Operation operation;
  std::vector<Range> to;
  int64_t first = 0;
  for (size_t m = 0; m < c.ranks.size(); ++m) {
    to.push_back({first, counts[m] * BytesOf(type)});
    first += to.back().bytes;
  }
  operation.from.assign(c.ranks.size(), {0, to[c.self].bytes});
  operation.out = static_cast<std::byte*>(out);
  operation.reduces = true;
  operation.type = type;
  operation.reduction = op;
  return Start(communicator, in, to, std::move(operation));
}

int NetworkTransport::Test(Request request) {
  if (!error_.empty()) return -1;
  constexpr int64_t kPollsPerCheck = 64;
  Operation& operation = operations_[static_cast<size_t>(request)];
  const Communicator& c = communicators_[static_cast<size_t>(operation.communicator)];
  bool complete = true;
  for (size_t m = 0; m < c.ranks.size(); ++m) {
    if (operation.here[m]) continue;
    std::optional<std::string> message = network_.Take(process(c.ranks[m]), LabelOf(c.name, operation.number));
    if (!message) {
      complete = false;
      continue;
    }
    heard_ = Clock::now();
    if (static_cast<int64_t>(message->size()) != operation.from[m].bytes) {
      Fail(StrCat("process ", process(c.ranks[m]), " sent ", static_cast<int64_t>(message->size()),
                  " bytes to a collective that takes ", operation.from[m].bytes));
      return -1;
    }
    operation.here[m] = true;
    if (operation.reduces) {
      operation.operands[m] = *std::move(message);
    } else {
      std::memcpy(operation.out + operation.from[m].begin, message->data(), message->size());
    }
  }
  if (!complete) return ++polls_ % kPollsPerCheck == 0 && !Check().ok() ? -1 : 0;
  if (operation.reduces && !operation.operands[0].empty()) {
    std::memcpy(operation.out, operation.operands[0].data(), operation.operands[0].size());
    for (size_t m = 1; m < operation.operands.size(); ++m) {
      Combine(operation.type, operation.reduction, operation.operands[m], operation.out);
    }
  }
  operation = Operation();
  return 1;
}

bool NetworkTransport::Send(int rank, int tag, const void* data, int64_t bytes) {
  return SendTo(rank, kMessageChannels + static_cast<uint64_t>(tag), sent_[{rank, tag}]++, data, bytes);
}

int64_t NetworkTransport::Probe(int rank, int tag, int* source) {
  for (int r = 0; r < size(); ++r) {
    if (r == rank_ || (rank != kAnySource && rank != r)) continue;
    const ProcessNetwork::Label label = LabelOf(kMessageChannels + static_cast<uint64_t>(tag), received_[{r, tag}]);
    const int64_t bytes = network_.SizeOf(process(r), label);
    if (bytes < 0) continue;
    *source = r;
    return bytes;
  }
  return -1;
}

Transport::Request NetworkTransport::Receive(int rank, int tag, void* data, int64_t bytes) {
  const ProcessNetwork::Label label = LabelOf(kMessageChannels + static_cast<uint64_t>(tag), received_[{rank, tag}]++);
  const std::optional<std::string> message = network_.Take(process(rank), label);
  if (!message || static_cast<int64_t>(message->size()) != bytes) {
    Fail("a message that has not come");
    return kFailed;
  }
  heard_ = Clock::now();
  if (bytes > 0) std::memcpy(data, message->data(), message->size());
  Operation operation;
  operation.in_use = true;
  operation.here.assign(communicators_[0].ranks.size(), true);
  operations_.push_back(std::move(operation));
  return static_cast<Request>(operations_.size()) - 1;
}

}  // namespace hlokit::interp
