// SPDX-License-Identifier: Apache-2.0
// The kernels of thunks with windows: pooling, and the gradient of pooling that selects.
#ifndef HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_RUN_H_
#define HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_RUN_H_

#include <cstddef>
#include <cstdint>

#include "interp/compiled/windows/window_kernels.h"
#include "interp/compiled/windows/window_layout.h"
#include "interp/exact/program/program.h"

namespace hlokit::interp::compiled {

// Of both: each line is computed by itself from lines of the operand, so that any thread may compute any of them.
struct WindowParams : ThunkParams {
  WindowLayout layout;
  WindowType type = WindowType::kF32;
  const WindowKernels* kernels = nullptr;
  // Pooling. Elements of the operand and of the result are scaled by the last operands of the thunk.
  PoolOp op = PoolOp::kMaximum;
  WindowScale::Op before = WindowScale::Op::kNone, after = WindowScale::Op::kNone;
  // The gradient.
  bool greater = true, equal = true;

  int64_t element_bytes() const { return type == WindowType::kF32 ? 4 : 2; }
  // Returns the scratch memory of a thread in bytes.
  int64_t PoolScratch() const;
  int64_t GradientScratch() const;
};

// Operands: array, initial value, scales of the operand and the result, if there are such.
void RunPool(const WindowParams& params, const std::byte* const* in, std::byte* const* out, RunContext& context);
// Operands: array, gradients of the results, initial value.
void RunPoolGradient(const WindowParams& params, const std::byte* const* in, std::byte* const* out,
                     RunContext& context);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_WINDOWS_WINDOW_RUN_H_
