// SPDX-License-Identifier: Apache-2.0
// Memory of values: the arena of large blocks, what a program holds, and that later runs take nothing from the system.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interp/exact/builder/block_placement.h"
#include "interp/exact/builder/kernel_provider.h"
#include "interp/exact/evaluator.h"
#include "interp/exact/memory/buffer_pool.h"
#include "interp/exact/memory/memory_arena.h"
#include "ir/core/str_cat.h"
#include "tests/unit/interp/exact/run_text.h"

namespace hlokit::interp {
namespace {

TEST(MemoryArenaTest, BlocksDoNotOverlapAndFreeOnesJoin) {
  const auto arena = MemoryArena::Create(int64_t{64} << 20);
  ASSERT_NE(arena, nullptr);
  struct Block {
    std::byte* data;
    int64_t bytes;
    int mark;
  };
  std::vector<Block> blocks;
  uint64_t random = 1;
  const auto next = [&](uint64_t n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % n;
  };
  std::byte* const first = arena->Allocate(1);
  arena->Free(first, 1);
  for (int i = 0; i < 4000; ++i) {
    if (blocks.size() < 40 && next(3) != 0) {
      const int64_t bytes = 1 + static_cast<int64_t>(next(300000));
      std::byte* const data = arena->Allocate(bytes);
      ASSERT_NE(data, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
      EXPECT_TRUE(arena->Contains(data) && arena->Contains(data + bytes - 1));
      std::memset(data, i & 0xff, static_cast<size_t>(bytes));
      blocks.push_back({data, bytes, i & 0xff});
    } else if (!blocks.empty()) {
      std::swap(blocks[next(blocks.size())], blocks.back());
      const Block block = blocks.back();
      blocks.pop_back();
      ASSERT_EQ(static_cast<int>(block.data[0]), block.mark);
      ASSERT_EQ(std::memcmp(block.data, block.data + 1, static_cast<size_t>(block.bytes - 1)), 0);
      arena->Free(block.data, block.bytes);
    }
    if (i == 2000) arena->ReleasePages();
  }
  for (const Block& block : blocks) arena->Free(block.data, block.bytes);
  // All is one extent again.
  std::byte* const all = arena->Allocate(int64_t{64} << 20);
  EXPECT_EQ(all, first);
  arena->Free(all, int64_t{64} << 20);
  EXPECT_EQ(arena->Allocate(int64_t{1} << 40), nullptr);
}

TEST(MemoryArenaTest, TheSmallestExtentThatFitsIsTaken) {
  const auto arena = MemoryArena::Create(1 << 20);
  ASSERT_NE(arena, nullptr);
  std::byte* const large = arena->Allocate(8192);
  arena->Allocate(64);
  std::byte* const small = arena->Allocate(4096);
  arena->Allocate(64);
  arena->Free(large, 8192);
  arena->Free(small, 4096);
  EXPECT_EQ(arena->Allocate(4000), small);
  EXPECT_EQ(arena->Allocate(4097), large);
}

TEST(BlockPlacementTest, ValuesOfOneTimeLieSideBySide) {
  std::vector<PlacedValue> values;
  uint64_t random = 7;
  const auto next = [&](uint64_t n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((random >> 33) % n);
  };
  for (int i = 0; i < 300; ++i) {
    const uint32_t begin = next(100);
    values.push_back({64 * (1 + next(50)), begin, begin + next(12), 0});
  }
  const Placement placement = PlaceValues(&values, {}, 112);
  int64_t most = 0;
  for (uint32_t t = 0; t < 112; ++t) {
    int64_t live = 0;
    for (const PlacedValue& value : values) live += value.begin <= t && t <= value.end ? value.bytes : 0;
    most = std::max(most, live);
  }
  EXPECT_EQ(placement.live_bytes, most);
  EXPECT_LE(placement.planned_bytes, most * 11 / 10);
  for (const PlacedValue& value : values) EXPECT_LE(value.offset + value.bytes, placement.planned_bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t k = i + 1; k < values.size(); ++k) {
      const PlacedValue &a = values[i], &b = values[k];
      if (a.end < b.begin || b.end < a.begin) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
    }
  }
}

// Activations that grow and shrink, as in training, while results begin: the arena shrinks with them.
TEST(BlockPlacementTest, TheArenaGivesBackWhatResultsTake) {
  constexpr uint32_t kLayers = 20;
  constexpr int64_t kBytes = int64_t{8} << 20;
  std::vector<PlacedValue> values;
  std::vector<OutsideValue> results;
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    values.push_back({kBytes * (1 + layer % 3), layer, 2 * kLayers - 1 - layer, 0});
    results.push_back({kBytes * (1 + layer % 3), kLayers + layer});
  }
  const Placement placement = PlaceValues(&values, results, 2 * kLayers);
  EXPECT_TRUE(placement.releases);
  EXPECT_LE(placement.planned_bytes, placement.live_bytes * 11 / 10);
  for (const PlacedValue& value : values) EXPECT_LE(value.offset + value.bytes, placement.needed[value.end]);
}

// Sizes and lives that no system has memory for.
TEST(BlockPlacementTest, SumsOfLargeValuesDoNotOverflow) {
  std::vector<PlacedValue> values;
  std::vector<OutsideValue> results;
  for (uint32_t i = 0; i < 100; ++i) {
    values.push_back({INT64_MAX - i, i, 2000000 - i, 0});
    results.push_back({INT64_MAX, 1000000 + i});
  }
  const Placement placement = PlaceValues(&values, results, 2000000);
  EXPECT_EQ(placement.live_bytes, int64_t{200} << 40);
  EXPECT_GE(placement.planned_bytes, placement.live_bytes);
  for (const PlacedValue& value : values) EXPECT_GE(value.offset, 0);
}

TEST(MemoryArenaTest, ABlockLiesWhereItShouldIfThatIsFree) {
  const auto arena = MemoryArena::Create(1 << 20);
  ASSERT_NE(arena, nullptr);
  std::byte* const far = arena->AllocateAt(4096, 1000);
  ASSERT_NE(far, nullptr);
  EXPECT_EQ(arena->AllocateAt(4096 + 512, 64), nullptr);
  EXPECT_EQ(arena->AllocateAt(4096 - 64, 128), nullptr);
  std::byte* const middle = arena->AllocateAt(1024, 1024);
  EXPECT_EQ(middle, far - 3072);
  EXPECT_EQ(arena->Allocate(1024), far - 4096);  // the smaller extent
  EXPECT_EQ(arena->Allocate(2048), far - 2048);
  arena->Free(middle, 1024);
  EXPECT_EQ(arena->AllocateAt(1088, 64), middle + 64);
  EXPECT_EQ(arena->AllocateAt(int64_t{1} << 50, 64), nullptr);
}

// Keeps memory between runs, as a provider of compiled kernels does.
class NoKernels : public KernelProvider {
 public:
  std::vector<InstructionGroup> Group(Computation, const std::function<bool(Instruction)>&) override { return {}; }
  bool PrepareGroup(CompiledComputationBuilder&, const InstructionGroup&) override { return false; }
  bool Prepare(CompiledComputationBuilder&) override { return false; }
};

// Blocks of many sizes with lives that overlap: each layer widens and narrows an array.
std::string Layers() {
  std::string text = "HloModule m\nENTRY e {\n  x0 = f32[64,512] parameter(0)\n";
  for (int i = 0; i < 12; ++i) {
    const int n = 512 + 96 * (i % 5), m = 512 + 96 * ((i + 1) % 5);
    const std::string wide = StrCat("f32[64,", n, ",3]"), shape = StrCat("f32[64,", n, "]"),
                      next = StrCat("f32[64,", m, "]");
    StrAppend(&text, "  w", i, " = ", wide, " broadcast(x", i, "), dimensions={0,1}\n");
    StrAppend(&text, "  t", i, " = ", wide, " tanh(w", i, ")\n");
    StrAppend(&text, "  r", i, " = ", shape, " slice(x", i, "), slice={[0:64],[0:", n, "]}\n");
    StrAppend(&text, "  y", i, " = ", wide, " transpose(t", i, "), dimensions={0,1,2}\n");
    StrAppend(&text, "  z", i, " = f32[64,", 3 * n, "] reshape(y", i, ")\n");
    StrAppend(&text, "  k", i, " = ", next, " slice(z", i, "), slice={[0:64],[", 3 * n - m, ":", 3 * n, "]}\n");
    StrAppend(&text, "  x", i + 1, " = ", next, " negate(k", i, ")\n");
  }
  StrAppend(&text, "  ROOT o = (f32[64,", 512 + 96 * (12 % 5), "], f32[64,512]) tuple(x12, r0)\n}\n");
  return text;
}

TEST(ProgramMemoryTest, LaterRunsTakeNothingFromTheSystem) {
  DiagnosticSink sink;
  const auto module = ParseModule(std::make_shared<const SourceBuffer>("m.hlo", Layers()), ParseOptions(), &sink);
  ASSERT_FALSE(sink.has_errors()) << sink.diagnostics()[0].message;
  EvaluatorOptions options;
  const auto plain = Evaluator::Prepare(*module, options, &sink);
  const auto kept = Evaluator::Prepare(*module, options, &sink, std::make_shared<NoKernels>());
  ASSERT_TRUE(plain != nullptr && kept != nullptr);
  const std::vector<Literal> arguments = MakeFakeArguments(kept->argument_shapes(), 1);
  const auto expected = plain->Run(arguments, &sink);
  ASSERT_TRUE(expected);
  std::optional<std::vector<Literal>> before;
  for (int run = 0; run < 4; ++run) {
    auto results = kept->Run(arguments, &sink);
    ASSERT_TRUE(results);
    // Results of an earlier run are not those of a later one.
    for (const auto& values : {&*results, before ? &*before : &*results}) {
      const auto difference = CompareValues(*values, *expected, ErrorSpec());
      EXPECT_TRUE(difference.ok() && difference->equal());
    }
    before = std::move(results);
    const RunStatistics& statistics = kept->statistics();
    if (run > 0) {
      EXPECT_EQ(statistics.system_allocations, 0);
    }
    EXPECT_GT(statistics.peak_live_bytes, 0);
#if !defined(__SANITIZE_ADDRESS__)
    EXPECT_LE(statistics.peak_held_bytes, statistics.peak_live_bytes * 5 / 4);
#endif
  }
}

// What is computed in the memory of a donated argument takes no memory beside it.
TEST(ProgramMemoryTest, ResultsInDonatedArgumentsFitBesideThem) {
  constexpr int64_t kBytes = int64_t{4} << 20;
  DiagnosticSink sink;
  const std::string text = R"(HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[1048576] parameter(0)
  y = f32[1048576] add(x, x)
  z = f32[1048576] negate(y)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(z, zero), dimensions={0}, to_apply=add
}
)";
  const auto module = ParseModule(std::make_shared<const SourceBuffer>("m.hlo", text), ParseOptions(), &sink);
  ASSERT_FALSE(sink.has_errors()) << sink.diagnostics()[0].message;
  EvaluatorOptions options;
  options.limits.max_bytes = kBytes * 3 / 2;
  const auto evaluator = Evaluator::Prepare(*module, options, &sink);
  ASSERT_NE(evaluator, nullptr) << sink.diagnostics()[0].message;
  std::vector<Literal> arguments = MakeFakeArguments(evaluator->argument_shapes(), 1);
  const Literal* const pointers[] = {&arguments[0]};
  DiagnosticSink failed;
  EXPECT_FALSE(evaluator->RunPointers(pointers, &failed));  // y has memory of its own
  DonatedArguments donation;
  donation.donated = {&arguments[0]};
  const auto results = evaluator->RunPointers(pointers, &sink, &donation);
  EXPECT_TRUE(results) << sink.diagnostics()[0].message;
}

}  // namespace
}  // namespace hlokit::interp
