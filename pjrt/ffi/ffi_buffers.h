// SPDX-License-Identifier: Apache-2.0
// The arguments or results of a typed custom call, as its handler reads and writes them: in the order of the layout
// that the call states, types of less than a byte packed, the first element in the lowest bits.
#ifndef HLOKIT_PJRT_FFI_FFI_BUFFERS_H_
#define HLOKIT_PJRT_FFI_FFI_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "interp/interface/custom_call_registry.h"
#include "pjrt/c_api/xla_ffi.h"

namespace hlokit::pjrt {

class FfiBuffers {
 public:
  // The values must outlive this. Return UNIMPLEMENTED for types that handlers do not have.
  absl::Status Add(const interp::CustomCallOperand& operand);
  // `operands`: a result that one of them is, is in its memory.
  absl::Status Add(const interp::CustomCallResult& result, const FfiBuffers& operands);
  // Stores the results that a handler has written in another form than ours.
  void Store();

  void** pointers() { return pointers_.data(); }
  int64_t size() const { return static_cast<int64_t>(pointers_.size()); }

 private:
  // A result that its handler writes elsewhere.
  struct Result {
    Shape shape;
    std::vector<std::byte>* from;
    std::byte* to;
  };
  absl::Status AddBuffer(Shape shape, std::byte* data);

  std::deque<std::vector<int64_t>> dims_;
  std::deque<std::vector<std::byte>> copies_;
  std::map<const std::byte*, std::vector<std::byte>*> copy_of_;  // operands in another form
  std::vector<Result> results_;
  std::deque<XLA_FFI_Buffer> buffers_;
  std::vector<void*> pointers_;
};

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_FFI_FFI_BUFFERS_H_
