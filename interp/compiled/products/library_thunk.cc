// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/products/library_thunk.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <utility>

#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/programs/loop_layout.h"
#include "interp/exact/builder/emit.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/machine/run_context.h"
#include "interp/processor/instruction_set.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp::compiled {
namespace {

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using AlignedMemory = std::unique_ptr<std::byte, FreeMemory>;

AlignedMemory AllocateAligned(int64_t bytes) {
  const size_t size = static_cast<size_t>(AlignedBytes(std::max<int64_t>(bytes, 1)));
  return AlignedMemory(static_cast<std::byte*>(std::aligned_alloc(64, size)));
}

struct PackParams : ThunkParams {
  std::vector<PackedWeights::Part> parts;
  // Of the primitives' own parts, one after another: the part, and the number in it.
  std::vector<std::pair<uint32_t, int64_t>> items;
  int64_t scratch = 0;
};

bool PackItem(const PackParams& p, int64_t item, const std::byte* from, std::byte* to, std::byte* scratch) {
  const auto [part, number] = p.items[static_cast<size_t>(item)];
  const PackedWeights::Part& at = p.parts[part];
  return at.primitive->PackWeights(number, from + at.from, to + at.to, scratch);
}

void RunPack(const PackParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  std::atomic<bool> ok = true;
  const int64_t count = static_cast<int64_t>(p.items.size());
  const double bytes = static_cast<double>(p.parts.back().to + p.parts.back().packed);
  context.ParallelFor(count, 0.1 * bytes / static_cast<double>(count), [&](int64_t begin, int64_t end) {
    std::byte* const scratch = ThreadScratch(context, p.scratch, "weights");
    if (scratch == nullptr) return;
    for (int64_t i = begin; i < end; ++i) {
      if (!PackItem(p, i, in[0], out[0], scratch)) ok = false;
    }
  });
  if (!ok) context.Fail("oneDNN cannot convert weights");
}

}  // namespace

bool PackedWeights::Fits(CompiledComputationBuilder& b, const std::vector<Part>& parts) {
  const int64_t limit = b.program().options().limits.max_bytes;
  return std::all_of(parts.begin(), parts.end(),
                     [&](const Part& part) { return part.packed <= limit && part.to <= limit - part.packed; });
}

View PackedWeights::Pack(CompiledComputationBuilder& b, const View& weights, std::vector<Part> parts) {
  auto params = std::make_unique<PackParams>();
  std::string layout;
  int64_t bytes = 0;
  for (const Part& part : parts) {
    layout += part.primitive->weights_layout() + '@' + std::to_string(part.from) + ';';
    params->scratch = std::max(params->scratch, part.primitive->scratch_bytes());
    bytes = std::max(bytes, part.to + part.packed);
  }
  Key key(b.computation().id().value, weights.slot, weights.strides, weights.offset, weights.shape.record(),
          std::move(layout));
  if (const auto it = packed_.find(key); it != packed_.end()) return it->second;
  params->parts = std::move(parts);
  for (uint32_t part = 0; part < params->parts.size(); ++part) {
    for (int64_t i = 0; i < params->parts[part].primitive->weights_parts(); ++i) params->items.emplace_back(part, i);
  }
  const Shape shape = b.program_shapes().Array(ElementType::kU8, {bytes});
  View result;
  const std::byte* const constant = b.ConstantData(weights);
  const bool in_program = constant != nullptr && bytes <= b.program().options().limits.max_bytes - constant_bytes_;
  AlignedMemory memory = in_program ? AllocateAligned(bytes) : nullptr;
  std::byte* const scratch = in_program ? ThreadScratch(params->scratch) : nullptr;
  bool packed = memory != nullptr && scratch != nullptr;
  for (size_t i = 0; packed && i < params->items.size(); ++i) {
    packed = PackItem(*params, static_cast<int64_t>(i), constant, memory.get(), scratch);
  }
  if (packed) {
    result = b.Constant(shape, memory.get());
    b.Own(std::shared_ptr<void>(std::move(memory)));
    constant_bytes_ += bytes;
  } else {
    result = b.EmitTo(kKernel<RunPack>, std::move(params), {&weights, 1}, {&shape, 1})[0];
    b.LeaveLoops();
  }
  packed_.emplace(std::move(key), result);
  return result;
}

int64_t BytesOf(LibraryType type) {
  switch (type) {
    case LibraryType::kF32:
    case LibraryType::kS32:
      return 4;
    case LibraryType::kBF16:
      return 2;
    case LibraryType::kS8:
    case LibraryType::kU8:
      return 1;
  }
  return 0;
}

bool IsLibraryType(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kBF16 || type == ElementType::kF16;
}

bool HasFastBf16() {
  const absl::StatusOr<Library*>& library = ProductLibrary();
  return library.ok() && (*library)->IsFast(LibraryType::kBF16) && HostInstructionSet() == InstructionSet::kAvx512;
}

std::optional<View> OperandCopies::To(ElementType type, const View& view) const {
  std::optional<View> converted = view;
  const ElementType result = builder_.shape().element_type();
  const bool rounds = IsFloat(view.type()) && IsFloat(result) && result != ElementType::kF32;
  for (ElementType next : {rounds ? result : view.type(), type}) {
    if (converted->type() == next) continue;
    const Shape shape = builder_.program_shapes().Array(next, view.dims());
    if (planned_) {
      converted = View{shape, kNoSlot, nullptr, 0};
      continue;
    }
    const View from = *converted;
    converted = EmitElementwise(builder_, Opcode::kConvert, builder_.instruction(), {&from, 1}, shape);
    if (!converted) return converted;
  }
  return converted;
}

View OperandCopies::MakeDense(const View& view) const {
  if (view.dense()) return view;
  return planned_ ? View{view.shape, kNoSlot, nullptr, 0} : builder_.MakeDense(view);
}

void SetConvertedResult(CompiledComputationBuilder& b, const View& view, absl::Span<const int64_t> order) {
  std::optional<View> result = OperandCopies(b, /*planned=*/false).To(b.shape().element_type(), view);
  if (!result) return;
  if (!order.empty()) result = PermutedBack(b, *result, order);
  result->shape = b.shape();
  b.SetResult(*result);
}

int64_t MaxThreadScratch(CompiledComputationBuilder& b) {
  const PrepareOptions& options = b.program().options();
  return options.limits.max_bytes / std::max(options.num_threads, 1);
}

bool HasThreadScratch(CompiledComputationBuilder& b, int64_t bytes) { return bytes <= MaxThreadScratch(b); }

int64_t MaxSharedScratch(CompiledComputationBuilder& b) {
  constexpr int64_t kShare = 16;
  return b.program().options().limits.max_bytes / kShare;
}

std::byte* ThreadScratch(int64_t bytes) {
  thread_local AlignedMemory memory;
  thread_local int64_t size = 0;
  if (bytes > size || memory == nullptr) {
    memory = AllocateAligned(bytes);
    size = memory == nullptr ? 0 : AlignedBytes(bytes);
  }
  return memory.get();
}

std::byte* ThreadScratch(RunContext& context, int64_t bytes, std::string_view user) {
  std::byte* const memory = ThreadScratch(bytes);
  if (memory == nullptr) {
    context.Fail(StrCat("out of memory: no scratch memory for ", user), DiagnosticKind::kTooLarge);
  }
  return memory;
}

}  // namespace hlokit::interp::compiled
