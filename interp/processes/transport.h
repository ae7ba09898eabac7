// SPDX-License-Identifier: Apache-2.0
// How the processes of a run move bytes. The implementation, over MPI, is a module that is loaded when a program asks
// for it, so that no other program needs an MPI library; the interface has only types that cross such a border well.
//
// Calls come from one thread at a time. Operations that start something return a request, to be passed to Test until it
// is complete; their buffers belong to the operation until then. All members of a communicator start the same
// operations in the same order.
#ifndef HLOKIT_INTERP_PROCESSES_TRANSPORT_H_
#define HLOKIT_INTERP_PROCESSES_TRANSPORT_H_

#include <cstddef>
#include <cstdint>

namespace hlokit::interp {

class Transport {
 public:
  // Types and functions of reductions whose result is the same in any order.
  enum class Integer : uint8_t { kS8, kU8, kS16, kU16, kS32, kU32, kS64, kU64 };
  enum class Reduction : uint8_t { kAdd, kMultiply, kMinimum, kMaximum, kAnd, kOr, kXor };
  // Bytes of a buffer that one member of a communicator sends or receives.
  struct Range {
    int64_t begin = 0;
    int64_t bytes = 0;
  };
  using Request = int64_t;
  static constexpr Request kFailed = -1;
  static constexpr int kAll = 0;         // the communicator of all processes
  static constexpr int kAnySource = -1;  // of Probe

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Returns true if all processes are on one host.
  virtual bool is_one_host() const = 0;
  // Returns the last error, and what errors begin with.
  virtual const char* error() const = 0;
  virtual const char* error_prefix() const { return "MPI: "; }

  // Returns a communicator of these ranks, which include this one, after all of them called it, for which it waits;
  // negative after an error. `name`: the same in all of them, and of no other communicator.
  virtual int CreateCommunicator(const int* ranks, int count, uint64_t name) = 0;
  // Sends `bytes` of the first process to all, for which it waits. Returns false after an error.
  virtual bool Broadcast(void* data, int64_t bytes) = 0;

  // Each member gets `bytes` of each in the order of ranks. A communicator has one at a time.
  virtual Request Allgather(int communicator, const void* in, int64_t bytes, void* out) = 0;
  // As Allgather; the bytes of member i come to out[i]. `total`: of all members.
  virtual Request Allgatherv(int communicator, const void* in, void* out, const Range* from, int64_t total) = 0;
  // Member i gets the bytes to[i] of `in`, and from[i] of `out` come from it. `total`: of all members, an upper bound
  // that is the same for each. `neighbors`: most ranges are empty.
  virtual Request Exchange(int communicator, const void* in, const Range* to, void* out, const Range* from,
                           int64_t total, bool neighbors) = 0;
  // Reduces `count` integers.
  virtual Request Allreduce(int communicator, const void* in, void* out, int64_t count, Integer type, Reduction op) = 0;
  // Reduces integers, of which member i gets the next counts[i].
  virtual Request ReduceScatter(int communicator, const void* in, void* out, const int64_t* counts, Integer type,
                                Reduction op) = 0;
  // Returns 1 once the request is complete, which ends it; 0 before; negative after an error.
  virtual int Test(Request request) = 0;

  // Sends a message, of which the transport keeps a copy until it is received. Returns false after an error.
  virtual bool Send(int rank, int tag, const void* data, int64_t bytes) = 0;
  // Returns the size of the next message with this tag, negative if there is none, and its source.
  virtual int64_t Probe(int rank, int tag, int* source) = 0;
  // Receives the message that Probe found.
  virtual Request Receive(int rank, int tag, void* data, int64_t bytes) = 0;
  // Returns 1 once others have, or can get without this process, all that Send was given; 0 before; negative after an
  // error.
  virtual int TestSent() = 0;

  // Ends the use of the library, which all processes do, and waits for them.
  virtual void Finalize() = 0;
};

// Exported by the module: starts the library. Returns null after an error, which is written to `error`.
using OpenTransportFunction = Transport* (*)(char* error, size_t size);
inline constexpr char kOpenTransportName[] = "HlokitOpenTransport";

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROCESSES_TRANSPORT_H_
