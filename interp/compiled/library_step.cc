// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/library_step.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "interp/exact/kernels/emit.h"
#include "interp/exact/program_builder.h"

namespace hlokit::interp::compiled {

bool IsLibraryType(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kBF16 || type == ElementType::kF16;
}

std::optional<View> OperandCopies::ToF32(const View& view) const {
  if (view.type() == ElementType::kF32) return view;
  const Shape shape = builder_.program_shapes().Array(ElementType::kF32, view.dims());
  if (planned_) return View{shape, kNoSlot, nullptr, 0};
  return EmitElementwise(builder_, Opcode::kConvert, builder_.instruction(), {&view, 1}, shape);
}

View OperandCopies::MakeDense(const View& view) const {
  if (view.dense()) return view;
  return planned_ ? View{view.shape, kNoSlot, nullptr, 0} : builder_.MakeDense(view);
}

void SetF32Result(CompiledComputationBuilder& b, const View& view) {
  if (b.shape().element_type() == ElementType::kF32) return b.SetResult(view);
  const Shape shape = b.program_shapes().Array(b.shape().element_type(), view.dims());
  const std::optional<View> converted = EmitElementwise(b, Opcode::kConvert, b.instruction(), {&view, 1}, shape);
  if (converted) b.SetResult(*converted);
}

int64_t MaxThreadScratch(CompiledComputationBuilder& b) {
  const PrepareOptions& options = b.program().options();
  return options.limits.max_bytes / std::max(options.num_threads, 1);
}

bool HasThreadScratch(CompiledComputationBuilder& b, int64_t bytes) { return bytes <= MaxThreadScratch(b); }

std::byte* ThreadScratch(int64_t bytes) {
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  thread_local std::unique_ptr<std::byte, Free> memory;
  thread_local int64_t size = 0;
  if (bytes > size || memory == nullptr) {
    const int64_t wanted = AlignedBytes(bytes > 0 ? bytes : 64);
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>(wanted))));
    size = memory == nullptr ? 0 : wanted;
  }
  return memory.get();
}

}  // namespace hlokit::interp::compiled
