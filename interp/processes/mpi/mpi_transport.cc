// SPDX-License-Identifier: Apache-2.0
// The transport over MPI (https://www.mpi-forum.org, version 3): each operation is the non-blocking one of MPI. Sizes
// of MPI are ints; what is larger goes in pieces from process to process. Processes of one host exchange a few bytes
// through memory that they share (MPI_Win_allocate_shared), in a third of the time of messages. The C interface only:
// that of C++ is deprecated.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "interp/processes/transport.h"

namespace hlokit::interp {
namespace {

constexpr int64_t kMaxPiece = int64_t{1} << 30;
constexpr int kExchangeTag = 1;  // of operations; messages have communicators of their own
constexpr size_t kMaxWindows = 64;

// What a process gives to the others of its communicator: in turn one of two, so that it can write the next while
// others still read the last. `number` is written last. A pair of cache lines, which are fetched together.
struct alignas(128) Slot {
  static constexpr int64_t kBytes = 112;
  std::atomic<uint64_t> number;
  std::byte data[kBytes];
};
static_assert(sizeof(Slot) == 128 && std::atomic<uint64_t>::is_always_lock_free);

MPI_Datatype TypeOf(Transport::Integer type) {
  switch (type) {
    case Transport::Integer::kS8:
      return MPI_INT8_T;
    case Transport::Integer::kU8:
      return MPI_UINT8_T;
    case Transport::Integer::kS16:
      return MPI_INT16_T;
    case Transport::Integer::kU16:
      return MPI_UINT16_T;
    case Transport::Integer::kS32:
      return MPI_INT32_T;
    case Transport::Integer::kU32:
      return MPI_UINT32_T;
    case Transport::Integer::kS64:
      return MPI_INT64_T;
    case Transport::Integer::kU64:
      return MPI_UINT64_T;
  }
  return MPI_BYTE;
}

MPI_Op OpOf(Transport::Reduction op) {
  switch (op) {
    case Transport::Reduction::kAdd:
      return MPI_SUM;
    case Transport::Reduction::kMultiply:
      return MPI_PROD;
    case Transport::Reduction::kMinimum:
      return MPI_MIN;
    case Transport::Reduction::kMaximum:
      return MPI_MAX;
    case Transport::Reduction::kAnd:
      return MPI_BAND;
    case Transport::Reduction::kOr:
      return MPI_BOR;
    case Transport::Reduction::kXor:
      return MPI_BXOR;
  }
  return MPI_OP_NULL;
}

class MpiTransport : public Transport {
 public:
  bool Open() {
    int provided = 0, initialized = 0;
    // The thread that runs a program is not always the one that started.
    if (!Check(MPI_Initialized(&initialized)) || initialized != 0 ||
        !Check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided))) {
      return false;
    }
    if (provided < MPI_THREAD_SERIALIZED) {
      error_ = "the MPI library does not support calls from several threads in turn";
      return false;
    }
    MPI_Comm all = MPI_COMM_NULL, messages = MPI_COMM_NULL, host = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!Check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_)) || !Check(MPI_Comm_size(MPI_COMM_WORLD, &size_)) ||
        !Check(MPI_Comm_dup(MPI_COMM_WORLD, &all)) || !Check(MPI_Comm_dup(MPI_COMM_WORLD, &messages)) ||
        !Check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host)) ||
        !Check(MPI_Comm_size(host, &on_host_))) {
      return false;
    }
    MPI_Comm_free(&host);
    communicators_.emplace_back();
    communicators_[0].handle = all;
    communicators_[0].size = size_;
    communicators_[0].rank = rank_;
    messages_ = messages;
    return true;
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool is_one_host() const override { return on_host_ == size_; }
  const char* error() const override { return error_.c_str(); }

  int CreateCommunicator(const int* ranks, int count, uint64_t) override {
    MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
    Communicator made;
    const bool ok = Check(MPI_Comm_group(MPI_COMM_WORLD, &all)) && Check(MPI_Group_incl(all, count, ranks, &members)) &&
                    Check(MPI_Comm_create_group(MPI_COMM_WORLD, members, 0, &made.handle)) &&
                    Check(MPI_Comm_rank(made.handle, &made.rank)) && Check(MPI_Comm_size(made.handle, &made.size));
    if (members != MPI_GROUP_NULL) MPI_Group_free(&members);
    if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
    if (!ok || !ShareMemory(&made)) return -1;
    communicators_.push_back(std::move(made));
    return static_cast<int>(communicators_.size()) - 1;
  }

  bool Broadcast(void* data, int64_t bytes) override {
    for (int64_t at = 0; at < bytes; at += kMaxPiece) {
      const int piece = static_cast<int>(std::min(bytes - at, kMaxPiece));
      if (!Check(MPI_Bcast(static_cast<char*>(data) + at, piece, MPI_BYTE, 0, communicators_[0].handle))) return false;
    }
    return true;
  }

  Request Allgather(int communicator, const void* in, int64_t bytes, void* out) override {
    Communicator& c = communicators_[static_cast<size_t>(communicator)];
    const Request request = New();
    if (!c.slots.empty() && bytes <= Slot::kBytes) {
      Operation& operation = requests_[static_cast<size_t>(request)];
      operation.shared = {communicator, ++c.gathers, 0, bytes, static_cast<std::byte*>(out)};
      Slot& own = c.slots[static_cast<size_t>(c.rank)][c.gathers % 2];
      std::memcpy(own.data, in, static_cast<size_t>(bytes));
      own.number.store(c.gathers, std::memory_order_release);
      return request;
    }
    // Among few processes one exchange of messages takes less time than the rounds of the library's schedule.
    constexpr int kMaxDirect = 16;
    bool ok = true;
    if (c.size <= kMaxDirect) {
      char* to = static_cast<char*>(out);
      std::memcpy(to + c.rank * bytes, in, static_cast<size_t>(bytes));
      for (int k = 1; k < c.size && ok; ++k) {
        const int from = (c.rank + k) % c.size;
        ok = Check(MPI_Irecv(to + from * bytes, static_cast<int>(bytes), MPI_BYTE, from, kExchangeTag, c.handle,
                             Next(request)));
      }
      for (int k = 1; k < c.size && ok; ++k) {
        ok = Check(MPI_Isend(in, static_cast<int>(bytes), MPI_BYTE, (c.rank + k) % c.size, kExchangeTag, c.handle,
                             Next(request)));
      }
    } else {
      ok = Check(MPI_Iallgather(in, static_cast<int>(bytes), MPI_BYTE, out, static_cast<int>(bytes), MPI_BYTE, c.handle,
                                Next(request)));
    }
    return ok ? request : kFailed;
  }

  Request Allgatherv(int communicator, const void* in, void* out, const Range* from, int64_t total) override {
    const Communicator& c = communicators_[static_cast<size_t>(communicator)];
    if (total > INT_MAX) {
      const std::vector<Range> to(static_cast<size_t>(c.size), {0, from[c.rank].bytes});
      return Pairwise(c, in, to.data(), out, from);
    }
    const Request request = New();
    Sizes& sizes = *requests_[static_cast<size_t>(request)].sizes;
    sizes.Set(nullptr, from, c.size);
    const bool ok =
        Check(MPI_Iallgatherv(in, static_cast<int>(from[c.rank].bytes), MPI_BYTE, out, sizes.from_counts.data(),
                              sizes.from_begins.data(), MPI_BYTE, c.handle, Next(request)));
    return ok ? request : kFailed;
  }

  Request Exchange(int communicator, const void* in, const Range* to, void* out, const Range* from, int64_t total,
                   bool neighbors) override {
    const Communicator& c = communicators_[static_cast<size_t>(communicator)];
    if (neighbors || total > INT_MAX) return Pairwise(c, in, to, out, from);
    const Request request = New();
    Sizes& sizes = *requests_[static_cast<size_t>(request)].sizes;
    sizes.Set(to, from, c.size);
    const bool ok =
        Check(MPI_Ialltoallv(in, sizes.to_counts.data(), sizes.to_begins.data(), MPI_BYTE, out,
                             sizes.from_counts.data(), sizes.from_begins.data(), MPI_BYTE, c.handle, Next(request)));
    return ok ? request : kFailed;
  }

  Request Allreduce(int communicator, const void* in, void* out, int64_t count, Integer type, Reduction op) override {
    const Communicator& c = communicators_[static_cast<size_t>(communicator)];
    int bytes = 1;
    MPI_Type_size(TypeOf(type), &bytes);
    const Request request = New();
    for (int64_t at = 0; at < count; at += kMaxPiece) {
      const int piece = static_cast<int>(std::min(count - at, kMaxPiece));
      if (!Check(MPI_Iallreduce(static_cast<const char*>(in) + at * bytes, static_cast<char*>(out) + at * bytes, piece,
                                TypeOf(type), OpOf(op), c.handle, Next(request)))) {
        return kFailed;
      }
    }
    return request;
  }

  Request ReduceScatter(int communicator, const void* in, void* out, const int64_t* counts, Integer type,
                        Reduction op) override {
    const Communicator& c = communicators_[static_cast<size_t>(communicator)];
    const Request request = New();
    Sizes& sizes = *requests_[static_cast<size_t>(request)].sizes;
    for (int i = 0; i < c.size; ++i) {
      if (counts[i] > INT_MAX) {
        error_ = "a reduce-scatter of more than 2^31 integers for one process";
        return kFailed;
      }
      sizes.to_counts.push_back(static_cast<int>(counts[i]));
    }
    const bool ok =
        Check(MPI_Ireduce_scatter(in, out, sizes.to_counts.data(), TypeOf(type), OpOf(op), c.handle, Next(request)));
    return ok ? request : kFailed;
  }

  int Test(Request request) override {
    Operation& operation = requests_[static_cast<size_t>(request)];
    if (operation.shared.communicator >= 0) return TestShared(request);
    int done = 0;
    // Many MPI libraries poll the network once in a call.
    if (!Check(MPI_Testall(static_cast<int>(operation.parts.size()), operation.parts.data(), &done,
                           MPI_STATUSES_IGNORE))) {
      return -1;
    }
    if (done == 0) return 0;
    free_.push_back(request);
    return 1;
  }

  bool Send(int rank, int tag, const void* data, int64_t bytes) override {
    DropSent();
    auto message = std::make_unique<char[]>(static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    if (bytes > 0) std::memcpy(message.get(), data, static_cast<size_t>(bytes));
    // The size first: a probe sees only up to 2 GB of a message.
    sent_.push_back({std::move(message), {bytes}, {}});
    Sent& sent = sent_.back();
    sent.parts.reserve(2 + static_cast<size_t>(bytes / kMaxPiece));
    sent.parts.emplace_back();
    if (!Check(MPI_Isend(sent.size, sizeof(int64_t), MPI_BYTE, rank, tag, messages_, &sent.parts.back()))) return false;
    for (int64_t at = 0; at < bytes; at += kMaxPiece) {
      sent.parts.emplace_back();
      if (!Check(MPI_Isend(sent.data.get() + at, static_cast<int>(std::min(bytes - at, kMaxPiece)), MPI_BYTE, rank, tag,
                           messages_, &sent.parts.back()))) {
        return false;
      }
    }
    return true;
  }

  int64_t Probe(int rank, int tag, int* source) override {
    int found = 0;
    MPI_Status status;
    if (!Check(MPI_Iprobe(rank == kAnySource ? MPI_ANY_SOURCE : rank, tag, messages_, &found, &status)) || found == 0) {
      return -1;
    }
    *source = status.MPI_SOURCE;
    int64_t bytes = 0;
    if (!Check(MPI_Recv(&bytes, sizeof(bytes), MPI_BYTE, *source, tag, messages_, MPI_STATUS_IGNORE))) return -1;
    return bytes;
  }

  Request Receive(int rank, int tag, void* data, int64_t bytes) override {
    const Request request = New();
    for (int64_t at = 0; at < bytes; at += kMaxPiece) {
      if (!Check(MPI_Irecv(static_cast<char*>(data) + at, static_cast<int>(std::min(bytes - at, kMaxPiece)), MPI_BYTE,
                           rank, tag, messages_, Next(request)))) {
        return kFailed;
      }
    }
    return request;
  }

  int TestSent() override {
    if (!DropSent()) return -1;
    return sent_.empty() ? 1 : 0;
  }

  void Finalize() override {
    // All members of a communicator free its window; each made those it has in the order of the program.
    for (Communicator& c : communicators_) {
      if (c.window != MPI_WIN_NULL) MPI_Win_free(&c.window);
    }
    MPI_Finalize();
  }

  const std::string& message() const { return error_; }

 private:
  struct Communicator {
    MPI_Comm handle = MPI_COMM_NULL;
    int size = 0;
    int rank = 0;
    MPI_Win window = MPI_WIN_NULL;
    std::vector<Slot*> slots;  // two of each member, if all are on one host
    uint64_t gathers = 0;      // that went through them
  };
  // An Allgather through shared memory.
  struct SharedGather {
    int communicator = -1;
    uint64_t number = 0;
    int next = 0;  // member whose bytes are missing
    int64_t bytes = 0;
    std::byte* out = nullptr;
  };
  // Arrays that MPI reads until an operation is complete.
  struct Sizes {
    std::vector<int> to_counts, to_begins, from_counts, from_begins;

    void Set(const Range* to, const Range* from, int count) {
      for (int i = 0; i < count; ++i) {
        if (to != nullptr) to_counts.push_back(static_cast<int>(to[i].bytes));
        if (to != nullptr) to_begins.push_back(static_cast<int>(to[i].begin));
        from_counts.push_back(static_cast<int>(from[i].bytes));
        from_begins.push_back(static_cast<int>(from[i].begin));
      }
    }
  };
  struct Operation {
    std::vector<MPI_Request> parts;
    std::unique_ptr<Sizes> sizes;
    SharedGather shared;
  };
  struct Sent {
    std::unique_ptr<char[]> data;
    int64_t size[1];
    std::vector<MPI_Request> parts;
  };

  bool Check(int code) {
    if (code == MPI_SUCCESS) return true;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
    error_.assign(text, static_cast<size_t>(length));
    return false;
  }

  Request New() {
    if (free_.empty()) {
      requests_.emplace_back();
      requests_.back().sizes = std::make_unique<Sizes>();
      return static_cast<Request>(requests_.size()) - 1;
    }
    const Request request = free_.back();
    free_.pop_back();
    Operation& operation = requests_[static_cast<size_t>(request)];
    operation.parts.clear();
    operation.shared.communicator = -1;
    for (std::vector<int>* list : {&operation.sizes->to_counts, &operation.sizes->to_begins,
                                   &operation.sizes->from_counts, &operation.sizes->from_begins}) {
      list->clear();
    }
    return request;
  }

  // Returns the place of one more request of MPI, valid until the next call.
  MPI_Request* Next(Request request) {
    std::vector<MPI_Request>& parts = requests_[static_cast<size_t>(request)].parts;
    parts.push_back(MPI_REQUEST_NULL);
    return &parts.back();
  }

  Request Pairwise(const Communicator& c, const void* in, const Range* to, void* out, const Range* from) {
    const Request request = New();
    for (int k = 0; k < c.size; ++k) {
      const int peer = (c.rank + k) % c.size;
      if (peer == c.rank) {
        if (from[peer].bytes > 0) {
          std::memmove(static_cast<char*>(out) + from[peer].begin, static_cast<const char*>(in) + to[peer].begin,
                       static_cast<size_t>(from[peer].bytes));
        }
        continue;
      }
      for (int64_t at = 0; at < from[peer].bytes; at += kMaxPiece) {
        const int piece = static_cast<int>(std::min(from[peer].bytes - at, kMaxPiece));
        if (!Check(MPI_Irecv(static_cast<char*>(out) + from[peer].begin + at, piece, MPI_BYTE, peer, kExchangeTag,
                             c.handle, Next(request)))) {
          return kFailed;
        }
      }
      for (int64_t at = 0; at < to[peer].bytes; at += kMaxPiece) {
        const int piece = static_cast<int>(std::min(to[peer].bytes - at, kMaxPiece));
        if (!Check(MPI_Isend(static_cast<const char*>(in) + to[peer].begin + at, piece, MPI_BYTE, peer, kExchangeTag,
                             c.handle, Next(request)))) {
          return kFailed;
        }
      }
    }
    return request;
  }

  // Drops messages that are gone. Returns false after an error.
  bool DropSent() {
    while (!sent_.empty()) {
      int done = 0;
      Sent& first = sent_.front();
      if (!Check(MPI_Testall(static_cast<int>(first.parts.size()), first.parts.data(), &done, MPI_STATUSES_IGNORE))) {
        return false;
      }
      if (done == 0) return true;
      sent_.pop_front();
    }
    return true;
  }

  // Gives a communicator whose members are all on one host the memory for Allgather. Returns false after an error.
  bool ShareMemory(Communicator* c) {
    MPI_Comm host = MPI_COMM_NULL;
    int on_host = 0;
    if (!Check(MPI_Comm_split_type(c->handle, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host)) ||
        !Check(MPI_Comm_size(host, &on_host))) {
      return false;
    }
    MPI_Comm_free(&host);
    int wanted = on_host == c->size && windows_ < kMaxWindows ? 1 : 0, all = 0;
    if (!Check(MPI_Allreduce(&wanted, &all, 1, MPI_INT, MPI_MIN, c->handle))) return false;
    if (all == 0) return true;
    Slot* own = nullptr;
    if (!Check(MPI_Win_allocate_shared(2 * sizeof(Slot), 1, MPI_INFO_NULL, c->handle, &own, &c->window))) return false;
    ++windows_;
    bool aligned = true;
    for (int r = 0; r < c->size; ++r) {
      MPI_Aint bytes = 0;
      int unit = 0;
      Slot* slots = nullptr;
      if (!Check(MPI_Win_shared_query(c->window, r, &bytes, &unit, &slots))) return false;
      aligned = aligned && reinterpret_cast<uintptr_t>(slots) % alignof(Slot) == 0;
      c->slots.push_back(slots);
    }
    for (int i = 0; i < 2 && aligned; ++i) new (&own[i]) Slot{};
    wanted = aligned ? 1 : 0;
    if (!Check(MPI_Allreduce(&wanted, &all, 1, MPI_INT, MPI_MIN, c->handle))) return false;
    if (all == 0) c->slots.clear();
    return true;
  }

  int TestShared(Request request) {
    SharedGather& gather = requests_[static_cast<size_t>(request)].shared;
    Communicator& c = communicators_[static_cast<size_t>(gather.communicator)];
    for (; gather.next < c.size; ++gather.next) {
      const Slot& from = c.slots[static_cast<size_t>(gather.next)][gather.number % 2];
      if (from.number.load(std::memory_order_acquire) != gather.number) {
        // Messages and other operations need calls of the library.
        constexpr uint64_t kTestsPerCall = 64;
        int ignored = 0;
        if (++tests_ % kTestsPerCall == 0 &&
            !Check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, messages_, &ignored, MPI_STATUS_IGNORE))) {
          return -1;
        }
        return 0;
      }
      std::memcpy(gather.out + gather.next * gather.bytes, from.data, static_cast<size_t>(gather.bytes));
    }
    free_.push_back(request);
    return 1;
  }

  int rank_ = 0;
  int size_ = 1;
  int on_host_ = 1;
  std::string error_;
  std::vector<Communicator> communicators_;
  MPI_Comm messages_ = MPI_COMM_NULL;
  std::deque<Operation> requests_;  // by Request
  std::vector<Request> free_;
  std::deque<Sent> sent_;
  size_t windows_ = 0;
  uint64_t tests_ = 0;
};

}  // namespace
}  // namespace hlokit::interp

extern "C" __attribute__((visibility("default"))) hlokit::interp::Transport* HlokitOpenTransport(char* error,
                                                                                                 size_t size) {
  static hlokit::interp::MpiTransport transport;
  if (transport.Open()) return &transport;
  std::snprintf(error, size, "%s", transport.message().c_str());
  return nullptr;
}
