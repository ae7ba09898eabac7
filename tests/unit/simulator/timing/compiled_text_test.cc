// SPDX-License-Identifier: Apache-2.0
// Times of what compilers of TPUs write: numbers in quotes, collectives and gathers in fusions, prefetches of the run
// before, memories of the chip; and programs that were compiled for something else.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ir/core/str_cat.h"
#include "passes/analysis/trip_count.h"
#include "simulator/timing/compile.h"
#include "tests/unit/simulator/simulated.h"

namespace hlokit::tpu {
namespace {

double MicrosecondsOf(const std::string& text, const SimulationOptions& options, Simulation* simulation = nullptr) {
  const std::unique_ptr<Module> module = Read(text);
  const Simulation result = RunOn(*module, options);
  if (simulation != nullptr) *simulation = result;
  return result.device_seconds * 1e6;
}

std::string Kernel(std::string_view flops) {
  return StrCat(R"(HloModule k, is_scheduled=true
ENTRY e {
  x = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(0)
  ROOT r = bf16[4096,4096]{1,0:T(8,128)(2,1)} custom-call(x), custom_call_target="tpu_custom_call", backend_config={"custom_call_config":{"cost_estimate":{"flops":)",
                flops, R"(,"transcendentals":"0"}}}
})");
}

TEST(CompiledTextTest, NumbersInQuotesAreNumbers) {
  const SimulationOptions v5e = OptionsOf("v5e", "1");
  const double plain = MicrosecondsOf(Kernel("34561064960"), v5e);
  EXPECT_GT(plain, 170);
  EXPECT_EQ(MicrosecondsOf(Kernel("\"34561064960\""), v5e), plain);
  EXPECT_EQ(MicrosecondsOf(Kernel("3.456106496e10"), v5e), plain);
}

TEST(CompiledTextTest, AnEstimateThatIsNoNumberIsUnknown) {
  for (const char* flops : {"\"many\"", "\"nan\"", "null", "[1]"}) {
    Simulation simulation;
    MicrosecondsOf(Kernel(flops), OptionsOf("v5e", "1"), &simulation);
    EXPECT_EQ(simulation.unmodeled.size(), 1U) << flops;
  }
}

TEST(CompiledTextTest, TripCountsAreNumbersWithOrWithoutQuotes) {
  for (const char* n : {"\"7\"", "7"}) {
    const std::unique_ptr<Module> module = Read(StrCat(R"(HloModule l
c { p = (s32[], pred[]) parameter(0)
  ROOT q = pred[] get-tuple-element(p), index=1 }
b { ROOT p = (s32[], pred[]) parameter(0) }
ENTRY e { p = (s32[], pred[]) parameter(0)
  ROOT w = (s32[], pred[]) while(p), condition=c, body=b, backend_config={"known_trip_count":{"n":)",
                                                       n, "}} }"));
    EXPECT_EQ(TripCount(module->entry().root()), 7) << n;
  }
}

// ---- collectives in fusions ----

constexpr char kSum[] = R"(
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
)";

std::string Scattered(bool fused) {
  const std::string body = R"(  r = f32[4096,4096]{1,0:T(8,128)} all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=sum
  i = u32[] partition-id()
  n = u32[] constant(1024)
  at = u32[] multiply(i, n)
  z = u32[] constant(0)
  ROOT d = f32[1024,4096]{1,0:T(8,128)} dynamic-slice(r, at, z), dynamic_slice_sizes={1024,4096}
)";
  const std::string x = "  x = f32[4096,4096]{1,0:T(8,128)} parameter(0)\n";
  const std::string header = "HloModule s, is_scheduled=true, num_partitions=4\n";
  if (!fused) return StrCat(header, kSum, "ENTRY e {\n", x, body, "}");
  return StrCat(header, kSum, "all-reduce-scatter {\n", x, body, "}\nENTRY e {\n", x,
                "  ROOT f = f32[1024,4096]{1,0:T(8,128)} fusion(x), kind=kCustom, calls=all-reduce-scatter\n}");
}

TEST(CompiledTextTest, AnAllReduceOfWhichADeviceKeepsItsPartIsAReduceScatter) {
  const SimulationOptions v5e = OptionsOf("v5e", "2x2");
  Simulation open, fused, scatter;
  MicrosecondsOf(Scattered(false), v5e, &open);
  MicrosecondsOf(Scattered(true), v5e, &fused);
  MicrosecondsOf(StrCat("HloModule s, is_scheduled=true, num_partitions=4\n", kSum, R"(ENTRY e {
  x = f32[4096,4096]{1,0:T(8,128)} parameter(0)
  ROOT r = f32[1024,4096]{1,0:T(8,128)} reduce-scatter(x), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=sum
})"),
                 v5e, &scatter);
  ASSERT_EQ(fused.devices.collectives.size(), 1U);
  EXPECT_EQ(fused.devices.collectives[0].kind, "reduce-scatter");
  EXPECT_EQ(open.devices.collectives[0].kind, "all-reduce");
  EXPECT_NEAR(fused.device_seconds, scatter.device_seconds, 0.02 * scatter.device_seconds);
  EXPECT_GT(fused.busy[static_cast<size_t>(Resource::kIci)], 0.9 * fused.device_seconds);
  EXPECT_LT(fused.device_seconds, 0.6 * open.device_seconds);
}

TEST(CompiledTextTest, ACollectiveAndAProductInAFusionRunAtTheSameTime) {
  const auto program = [](std::string_view product, bool gather) {
    return StrCat(R"(HloModule g, is_scheduled=true, num_partitions=4
f {
  x = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(0)
  w = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(1)
  s = bf16[1024,4096]{1,0:T(8,128)(2,1)} parameter(2)
  c = bf16[] constant(1)
  y = bf16[4096,4096]{1,0:T(8,128)(2,1)} )",
                  product, "\n  g = bf16[4096,4096]{1,0:T(8,128)(2,1)} ",
                  gather ? "all-gather(s), replica_groups={{0,1,2,3}}, dimensions={0}" : "broadcast(c), dimensions={}",
                  R"(
  ROOT t = (bf16[4096,4096]{1,0:T(8,128)(2,1)}, bf16[4096,4096]{1,0:T(8,128)(2,1)}) tuple(y, g)
}
ENTRY e {
  x = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(0)
  w = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(1)
  s = bf16[1024,4096]{1,0:T(8,128)(2,1)} parameter(2)
  ROOT r = (bf16[4096,4096]{1,0:T(8,128)(2,1)}, bf16[4096,4096]{1,0:T(8,128)(2,1)}) fusion(x, w, s), kind=kOutput, calls=f
})");
  };
  const std::string dot = "dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
  const SimulationOptions v5e = OptionsOf("v5e", "2x2");
  Simulation both;
  const double seconds = MicrosecondsOf(program(dot, true), v5e, &both);
  const double product = MicrosecondsOf(program(dot, false), v5e);
  ASSERT_EQ(both.devices.collectives.size(), 1U);
  EXPECT_EQ(both.devices.collectives[0].kind, "all-gather");
  EXPECT_GE(seconds, 0.99 * product);
  EXPECT_LT(seconds, 1.1 * product);
  EXPECT_NEAR(both.core_busy + both.stall, both.device_seconds, 1e-9);
}

// An all-gather that starts before two products of other arrays and is done after them.
constexpr char kOverlapped[] = R"(HloModule o, is_scheduled=true, num_partitions=4
start {
  s = bf16[1024,4096]{1,0:T(8,128)(2,1)} parameter(0)
  g = bf16[4096,4096]{1,0:T(8,128)(2,1)} all-gather(s), replica_groups={{0,1,2,3}}, dimensions={0}
  f = u32[] constant(0)
  ROOT t = (bf16[4096,4096]{1,0:T(8,128)(2,1)}, u32[]) tuple(g, f)
}
async_collective_fusion {
  x = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(0)
  w = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(1)
  g = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(2)
  y = bf16[4096,4096]{1,0:T(8,128)(2,1)} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (bf16[4096,4096]{1,0:T(8,128)(2,1)}, bf16[4096,4096]{1,0:T(8,128)(2,1)}) tuple(y, g)
}
done {
  g = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(0)
  ROOT b = bf16[4096,4096]{1,0:T(8,128)(2,1)} bitcast(g)
}
ENTRY e {
  x = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(0)
  w = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(1)
  s = bf16[1024,4096]{1,0:T(8,128)(2,1)} parameter(2)
  NAME-start = (bf16[4096,4096]{1,0:T(8,128)(2,1)}, u32[]) fusion(s), kind=kCustom, calls=start
  g0 = bf16[4096,4096]{1,0:T(8,128)(2,1)} get-tuple-element(NAME-start), index=0
  f = (bf16[4096,4096]{1,0:T(8,128)(2,1)}, bf16[4096,4096]{1,0:T(8,128)(2,1)}) fusion(x, w, g0), kind=kOutput, calls=async_collective_fusion
  y = bf16[4096,4096]{1,0:T(8,128)(2,1)} get-tuple-element(f), index=0
  g1 = bf16[4096,4096]{1,0:T(8,128)(2,1)} get-tuple-element(f), index=1
  NAME-done = bf16[4096,4096]{1,0:T(8,128)(2,1)} fusion(g1), kind=kCustom, calls=done
  ROOT t = (bf16[4096,4096]{1,0:T(8,128)(2,1)}, bf16[4096,4096]{1,0:T(8,128)(2,1)}) tuple(y, NAME-done)
})";

std::string Named(std::string text, std::string_view name) {
  for (size_t at = text.find("NAME"); at != std::string::npos; at = text.find("NAME")) text.replace(at, 4, name);
  return text;
}

TEST(CompiledTextTest, AnAsynchronousCollectiveOfFusionsOverlapsThoseBetween) {
  const SimulationOptions v5e = OptionsOf("v5e", "2x2");
  Simulation overlapped, blocking;
  MicrosecondsOf(Named(kOverlapped, "async-collective"), v5e, &overlapped);
  MicrosecondsOf(Named(kOverlapped, "other"), v5e, &blocking);
  for (const Simulation* s : {&overlapped, &blocking}) {
    ASSERT_EQ(s->devices.collectives.size(), 1U);
    EXPECT_EQ(s->devices.collectives[0].kind, "all-gather");
  }
  const double gather = overlapped.devices.collectives[0].seconds;
  EXPECT_GT(gather, 100e-6);
  EXPECT_LT(overlapped.device_seconds, blocking.device_seconds - 0.5 * gather);
  EXPECT_LT(overlapped.stall, 0.1 * gather);
  EXPECT_GT(blocking.stall, 0.9 * gather);
}

// ---- gathers and updates in fusions ----

TEST(CompiledTextTest, AGatherInAFusionReadsTheRowsThatItTakes) {
  const std::string gather =
      R"(gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,1024}
)";
  const std::string parameters = R"(  t = f32[100000,1024]{1,0:T(8,128)} parameter(0)
  i = s32[2048,1]{0,1:T(1,128)} parameter(1)
)";
  const std::string shape = "f32[2048,1024]{1,0:T(8,128)} ";
  const std::string open =
      StrCat("HloModule g, is_scheduled=true\nENTRY e {\n", parameters, "  ROOT r = ", shape, gather, "}");
  const std::string fused =
      StrCat("HloModule g, is_scheduled=true\nf {\n", parameters, "  ROOT r = ", shape, gather, "}\nENTRY e {\n",
             parameters, "  ROOT f = ", shape, "fusion(t, i), kind=kCustom, calls=f\n}");
  Simulation in_the_open, in_a_fusion;
  MicrosecondsOf(open, OptionsOf("v5e", "1"), &in_the_open);
  MicrosecondsOf(fused, OptionsOf("v5e", "1"), &in_a_fusion);
  EXPECT_NEAR(in_a_fusion.device_seconds, in_the_open.device_seconds, 0.02 * in_the_open.device_seconds);
  EXPECT_NEAR(in_a_fusion.hbm_bytes, in_the_open.hbm_bytes, 0.02 * in_the_open.hbm_bytes);
}

// ---- memories ----

TEST(CompiledTextTest, TheRunBeforeStartsCrossProgramPrefetches) {
  const auto program = [](std::string_view attribute) {
    return StrCat(R"(HloModule p, is_scheduled=true
ENTRY e {
  w = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(0)
  x = bf16[8,4096]{1,0:T(8,128)(2,1)} parameter(1)
  s = (bf16[4096,4096]{1,0:T(8,128)(2,1)S(1)}, bf16[4096,4096]{1,0:T(8,128)(2,1)}, u32[]) copy-start(w))",
                  attribute, R"(
  d = bf16[4096,4096]{1,0:T(8,128)(2,1)S(1)} copy-done(s)
  ROOT y = bf16[8,4096]{1,0:T(8,128)(2,1)} dot(x, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})");
  };
  const SimulationOptions v5e = OptionsOf("v5e", "1");
  Simulation plain, prefetched;
  MicrosecondsOf(program(""), v5e, &plain);
  MicrosecondsOf(program(", cross_program_prefetch_index=0"), v5e, &prefetched);
  EXPECT_EQ(plain.prefetches, 0);
  EXPECT_EQ(prefetched.prefetches, 1);
  const double copy = 4096 * 4096 * 2 / v5e.machine.HbmRate();
  EXPECT_LT(prefetched.device_seconds, plain.device_seconds - 0.9 * copy);
  EXPECT_EQ(prefetched.first_run_seconds, plain.device_seconds);
  EXPECT_EQ(prefetched.hbm_bytes, plain.hbm_bytes);
}

TEST(CompiledTextTest, TheCommonMemoryOfV4IsOnTheChip) {
  const auto chain = [](std::string_view space) {
    const std::string x = StrCat("f32[2048,2048]{1,0:T(8,128)", space, "} ");
    return StrCat("HloModule c, is_scheduled=true\nENTRY e {\n  p = f32[2048,2048]{1,0:T(8,128)} parameter(0)\n  a = ",
                  x, "negate(p)\n  b = ", x, "negate(a)\n  c = ", x,
                  "negate(b)\n  ROOT d = ", "f32[2048,2048]{1,0:T(8,128)} negate(c)\n}");
  };
  const SimulationOptions v4 = OptionsOf("v4", "1"), v5e = OptionsOf("v5e", "1");
  EXPECT_EQ(MicrosecondsOf(chain("S(3)"), v4), MicrosecondsOf(chain("S(1)"), v4));
  EXPECT_LT(MicrosecondsOf(chain("S(3)"), v4), 0.5 * MicrosecondsOf(chain(""), v4));
  EXPECT_EQ(MicrosecondsOf(chain("S(3)"), v5e), MicrosecondsOf(chain(""), v5e));
}

TEST(CompiledTextTest, ArraysOfSlicesAndNotesOnIndicesTakeNoTime) {
  const auto program = [](std::string_view call) {
    return StrCat(R"(HloModule c, is_scheduled=true
ENTRY e {
  p = f32[1024,1024]{1,0:T(8,128)} parameter(0)
  i = s32[1024]{0:T(1024)} parameter(1)
  a = f32[512,1024]{1,0:T(8,128)S(1)} slice(p), slice={[0:512], [0:1024]}
  b = f32[512,1024]{1,0:T(8,128)S(1)} slice(p), slice={[512:1024], [0:1024]}
)",
                  call, "}");
  };
  const SimulationOptions v5e = OptionsOf("v5e", "1");
  Simulation slices, used;
  MicrosecondsOf(program("  ROOT r = (f32[512,1024]{1,0:T(8,128)S(1)}, f32[512,1024]{1,0:T(8,128)S(1)}, "
                         "s32[1024]{0:T(1024)}) tuple(a, b, i)\n"),
                 v5e, &slices);
  MicrosecondsOf(
      program("  w = f32[1024,1024]{1,0:T(8,128)S(1)} custom-call(a, b), "
              "custom_call_target=\"ConcatBitcast\"\n"
              "  j = s32[1024]{0:T(1024)} custom-call(i), custom_call_target=\"AssumeGatherIndicesInBound\"\n"
              "  k = s32[1024]{0:T(1024)} custom-call(j), "
              "custom_call_target=\"GatherScatterIndicesBitpacked\"\n"
              "  ROOT r = (f32[1024,1024]{1,0:T(8,128)S(1)}, s32[1024]{0:T(1024)}) tuple(w, k)\n"),
      v5e, &used);
  EXPECT_EQ(used.device_seconds, slices.device_seconds);
  EXPECT_TRUE(used.unmodeled.empty());
}

// ---- programs for other devices ----

constexpr char kOfGpu[] =
    R"(HloModule gpu, is_scheduled=true, entry_computation_layout={(f32[512,2048]{1,0}, f32[2048,2048]{0,1})->f32[2048,512]{1,0}}
gemm {
  a = f32[512,2048]{1,0} parameter(0)
  b = f32[2048,2048]{0,1} parameter(1)
  ROOT d = f32[512,2048]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
wrapped_tanh {
  p = f32[512,2048]{1,0} parameter(0)
  ROOT t = f32[512,2048]{1,0} tanh(p)
}
wrapped_tanh.1 {
  p = f32[512,2048]{1,0} parameter(0)
  ROOT t = f32[512,2048]{1,0} tanh(p)
}
ENTRY e {
  x = f32[512,2048]{1,0} parameter(0)
  w = f32[2048,2048]{0,1} parameter(1)
  d = f32[512,2048]{1,0} fusion(x, w), kind=kCustom, calls=gemm
  t0 = f32[512,2048]{1,0} fusion(d), kind=kLoop, calls=wrapped_tanh
  t1 = f32[512,2048]{1,0} fusion(t0), kind=kLoop, calls=wrapped_tanh.1, control-predecessors={d}
  b = f32[2048,512]{0,1} bitcast(t1)
  ROOT c = f32[2048,512]{1,0} copy(b)
})";

TEST(CompiledTextTest, AProgramWithoutTilesIsCompiledAgain) {
  const SimulationOptions v5e = OptionsOf("v5e", "1");
  const std::unique_ptr<Module> gpu = Read(kOfGpu);
  EXPECT_TRUE(IsCompiledForOtherDevice(*gpu));
  ASSERT_TRUE(Compile(v5e, "tpu", gpu.get()).ok());
  EXPECT_FALSE(IsCompiledForOtherDevice(*gpu));
  const std::unique_ptr<Module> source = Read(R"(HloModule source
ENTRY e {
  x = f32[512,2048]{1,0} parameter(0)
  w = f32[2048,2048]{0,1} parameter(1)
  d = f32[512,2048]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t0 = f32[512,2048]{1,0} tanh(d)
  t1 = f32[512,2048]{1,0} tanh(t0)
  ROOT b = f32[2048,512]{1,0} transpose(t1), dimensions={1,0}
})");
  ASSERT_TRUE(Compile(v5e, "tpu", source.get()).ok());
  const double seconds = RunOn(*source, v5e).device_seconds;
  EXPECT_NEAR(RunOn(*gpu, v5e).device_seconds, seconds, 0.05 * seconds);
}

TEST(CompiledTextTest, ScheduleFusionsControlEdgesAndBitcastsAreRemoved) {
  const std::unique_ptr<Module> gpu = Read(kOfGpu);
  ASSERT_TRUE(RemoveCompilation(gpu.get()).ok());
  EXPECT_FALSE(gpu->header().is_scheduled);
  int64_t transposes = 0;
  for (Computation c : gpu->computations()) {
    for (Instruction i : c.instructions()) {
      EXPECT_NE(i.opcode(), Opcode::kFusion);
      EXPECT_NE(i.opcode(), Opcode::kBitcast);
      EXPECT_FALSE(i.has(Attr::kControlPredecessors));
      if (i.opcode() != Opcode::kTranspose) continue;
      // f32[512,2048]{1,0} -> f32[2048,512]{0,1}: the last of three steps swaps the dimensions.
      transposes += i.list_attr(Attr::kDimensions) == absl::Span<const int64_t>({1, 0});
    }
  }
  EXPECT_EQ(transposes, 1);
}

TEST(CompiledTextTest, AProgramWithTilesOrMemoriesIsLeftAsItIs) {
  for (const char* layout : {"{1,0:T(8,128)}", "{1,0:S(1)}", "{1,0:S(3)}"}) {
    const std::unique_ptr<Module> module =
        Read(StrCat("HloModule m, is_scheduled=true\nENTRY e {\n  p = f32[8,128]", layout,
                    " parameter(0)\n  ROOT n = f32[8,128]", layout, " negate(p)\n}"));
    EXPECT_FALSE(IsCompiledForOtherDevice(*module)) << layout;
  }
  EXPECT_FALSE(IsCompiledForOtherDevice(
      *Read("HloModule m, is_scheduled=true\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT n = f32[] negate(p)\n}")));
  EXPECT_FALSE(IsCompiledForOtherDevice(*Read("HloModule m\nENTRY e {\n  ROOT p = f32[8,128]{1,0} parameter(0)\n}")));
}

// ---- arguments ----

Simulation CompiledAndRun(const std::string& text) {
  const SimulationOptions v5e = OptionsOf("v5e", "1");
  const std::unique_ptr<Module> module = Read(text);
  EXPECT_TRUE(Compile(v5e, "tpu", module.get()).ok());
  return RunOn(*module, v5e);
}

TEST(CompiledTextTest, AnArgumentThatIsReturnedIsCopied) {
  constexpr double kBytes = 4.0 * 4096 * 4096;
  for (const char* text : {R"(HloModule t, entry_computation_layout={(f32[4096,4096]{1,0})->f32[4096,4096]{0,1}}
ENTRY e {
  p = f32[4096,4096]{1,0} parameter(0)
  ROOT t = f32[4096,4096]{0,1} transpose(p), dimensions={1,0}
})",
                           R"(HloModule i
ENTRY e {
  ROOT p = f32[4096,4096]{1,0} parameter(0)
})",
                           R"(HloModule p
ENTRY e {
  p = f32[4096,4096]{1,0} parameter(0)
  s = f32[] parameter(1)
  ROOT t = (f32[4096,4096]{1,0}, f32[]) tuple(p, s)
})"}) {
    EXPECT_EQ(CompiledAndRun(text).hbm_bytes, 2 * kBytes) << text;
  }
  EXPECT_EQ(CompiledAndRun(R"(HloModule d, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  ROOT p = f32[4096,4096]{1,0} parameter(0)
})")
                .hbm_bytes,
            0);
}

TEST(CompiledTextTest, AnArgumentThatIsNotDonatedIsCopiedBeforeItIsUpdated) {
  const auto update = [](std::string_view header) {
    return StrCat("HloModule u", header, R"(
ENTRY e {
  p = f32[4096,4096] parameter(0)
  u = f32[8,4096] parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  ROOT d = f32[4096,4096] dynamic-update-slice(p, u, i, z)
})");
  };
  const auto scatter = [](std::string_view header) {
    return StrCat("HloModule s", header, R"(
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[4096,4096] parameter(0)
  u = f32[8,4096] parameter(1)
  i = s32[8,1] parameter(2)
  ROOT d = f32[4096,4096] scatter(p, i, u), to_apply=sum, update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1
})");
  };
  constexpr double kBytes = 4.0 * 4096 * 4096;
  for (const auto& text : {std::function<std::string(std::string_view)>(update), {scatter}}) {
    const Simulation kept = CompiledAndRun(text(""));
    const Simulation donated = CompiledAndRun(text(", input_output_alias={ {}: (0, {}, may-alias) }"));
    EXPECT_GE(kept.hbm_bytes, donated.hbm_bytes + 2 * kBytes);
    EXPECT_LT(donated.hbm_bytes, 0.1 * kBytes);
  }
}

}  // namespace
}  // namespace hlokit::tpu
