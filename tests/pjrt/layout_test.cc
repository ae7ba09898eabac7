// SPDX-License-Identifier: Apache-2.0
// Layouts: of buffers, in what order their bytes are where a caller asks for them, and of programs.
#include <string>
#include <vector>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

const PJRT_Layouts_Extension* Layouts() {
  for (const PJRT_Extension_Base* e = Api().extension_start; e != nullptr; e = e->next) {
    if (e->type == PJRT_Extension_Type_Layouts) return reinterpret_cast<const PJRT_Layouts_Extension*>(e);
  }
  return nullptr;
}

std::string TextOf(PJRT_Layouts_MemoryLayout* layout) {
  const auto args =
      Query(Layouts()->PJRT_Layouts_MemoryLayout_Serialize, &PJRT_Layouts_MemoryLayout_Serialize_Args::layout, layout);
  const std::string text(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_layout_deleter(args.serialized_layout);
  return text;
}

std::string LayoutOf(PJRT_Buffer* buffer) {
  const auto args = Query(Layouts()->PJRT_Layouts_PJRT_Buffer_MemoryLayout,
                          &PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args::buffer, buffer);
  const std::string text = TextOf(args.layout);
  auto destroy = Garbage<PJRT_Layouts_MemoryLayout_Destroy_Args>();
  destroy.layout = args.layout;
  EXPECT_CALL_OK(Layouts()->PJRT_Layouts_MemoryLayout_Destroy(&destroy));
  return text;
}

PJRT_Buffer_MemoryLayout Tiled(const std::vector<int64_t>& minor_to_major) {
  auto layout = Zeroed<PJRT_Buffer_MemoryLayout>();
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = sizeof(layout.tiled);
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.minor_to_major_size = minor_to_major.size();
  return layout;
}

class LayoutTest : public testing::Test {
 protected:
  // A buffer of the layout, of row-major elements.
  Result Make(const std::vector<float>& values, const std::vector<int64_t>& dims, PJRT_Buffer_MemoryLayout* layout,
              PJRT_Buffer** buffer) const {
    auto args = Zeroed<PJRT_Client_BufferFromHostBuffer_Args>();
    args.client = client_.get();
    args.data = values.data();
    args.type = static_cast<PJRT_Buffer_Type>(kF32);
    args.dims = dims.data();
    args.num_dims = dims.size();
    args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    args.device = client_.devices()[0];
    args.device_layout = layout;
    Result result = Take(Api().PJRT_Client_BufferFromHostBuffer(&args));
    if (!result.ok()) return result;
    *buffer = args.buffer;
    return Await(args.done_with_host_buffer);
  }
  static std::vector<float> Read(PJRT_Buffer* buffer, PJRT_Buffer_MemoryLayout* layout) {
    std::vector<float> values(6);
    auto args = Zeroed<PJRT_Buffer_ToHostBuffer_Args>();
    args.src = buffer;
    args.host_layout = layout;
    args.dst = values.data();
    args.dst_size = sizeof(float) * values.size();
    EXPECT_CALL_OK(Api().PJRT_Buffer_ToHostBuffer(&args));
    EXPECT_TRUE(Await(args.event).ok());
    return values;
  }
  ClientScope client_{1};
};

const std::vector<float> kRows = {1, 2, 3, 4, 5, 6}, kColumns = {1, 4, 2, 5, 3, 6};

TEST_F(LayoutTest, BytesAreInTheOrderOfTheBuffer) {
  const std::vector<int64_t> by_columns = {0, 1}, by_rows = {1, 0};
  PJRT_Buffer_MemoryLayout layout = Tiled(by_columns), rows = Tiled(by_rows);
  PJRT_Buffer* buffer = nullptr;
  ASSERT_TRUE(Make(kRows, {2, 3}, &layout, &buffer).ok());
  EXPECT_EQ(LayoutOf(buffer), "{0,1}");
  const auto old_way = Query(Api().PJRT_Buffer_GetMemoryLayout, &PJRT_Buffer_GetMemoryLayout_Args::buffer, buffer);
  EXPECT_EQ(old_way.layout.tiled.minor_to_major[0], 0);
  EXPECT_EQ(Read(buffer, nullptr), kColumns);
  EXPECT_EQ(Read(buffer, &rows), kRows);
  EXPECT_EQ(Read(buffer, &layout), kColumns);
  const auto memory = Query(Api().PJRT_Buffer_OpaqueDeviceMemoryDataPointer,
                            &PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args::buffer, buffer);
  const auto* const data = static_cast<const float*>(memory.device_memory_ptr);
  EXPECT_EQ(std::vector<float>(data, data + 6), kColumns);
  std::vector<float> part(2);
  auto raw = Zeroed<PJRT_Buffer_CopyRawToHost_Args>();
  raw.buffer = buffer;
  raw.dst = part.data();
  raw.offset = sizeof(float);
  raw.transfer_size = 2 * sizeof(float);
  ASSERT_CALL_OK(Api().PJRT_Buffer_CopyRawToHost(&raw));
  EXPECT_TRUE(Await(raw.event).ok());
  EXPECT_EQ(part, (std::vector<float>{4, 2}));
  Destroy(buffer);
}

TEST_F(LayoutTest, TheRowMajorOneIsTheDefault) {
  const std::vector<int64_t> by_rows = {1, 0}, twice = {0, 0};
  PJRT_Buffer_MemoryLayout layout = Tiled(by_rows), wrong = Tiled(twice);
  PJRT_Buffer* buffer = nullptr;
  ASSERT_TRUE(Make(kRows, {2, 3}, &layout, &buffer).ok());
  EXPECT_EQ(LayoutOf(buffer), "{1,0}");
  EXPECT_EQ(Read(buffer, nullptr), kRows);
  Destroy(buffer);
  EXPECT_EQ(Make(kRows, {2, 3}, &wrong, &buffer).code, kInvalidArgument);
}

TEST_F(LayoutTest, ProgramsTakeAndGiveLayouts) {
  const std::string program = R"(module { func.func @main(
      %x: tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"}, %y: tensor<3x2xf32> {mhlo.layout_mode = "default"})
      -> (tensor<2x3xf32> {mhlo.layout_mode = "auto"}, tensor<3x2xf32> {mhlo.layout_mode = "{0,1}"},
          tensor<3x2xf32> {mhlo.layout_mode = "auto"}, tensor<3x2xf32>) {
    %a = stablehlo.add %x, %x : tensor<2x3xf32>
    %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %a, %y, %t, %t : tensor<2x3xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32> } })";
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client_.get(), program, "mlir", CompileOptionsOf(1, 1), &executable);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  const auto unloaded = Query(Api().PJRT_LoadedExecutable_GetExecutable,
                              &PJRT_LoadedExecutable_GetExecutable_Args::loaded_executable, executable);
  const auto parameters =
      Query(Layouts()->PJRT_Layouts_PJRT_Executable_GetParameterLayouts,
            &PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args::executable, unloaded.executable);
  ASSERT_EQ(parameters.num_parameters, 2U);
  EXPECT_EQ(TextOf(parameters.layouts[0]), "{0,1}");
  EXPECT_EQ(TextOf(parameters.layouts[1]), "{1,0}");
  const auto results = Query(Layouts()->PJRT_Layouts_PJRT_Executable_GetOutputLayouts,
                             &PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args::executable, unloaded.executable);
  ASSERT_EQ(results.num_outputs, 4U);
  // A sum in the order of its operands; a transpose without moving elements.
  const std::vector<std::string> expected = {"{0,1}", "{0,1}", "{1,0}", "{1,0}"};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(TextOf(results.layouts[i]), expected[i]) << i;

  const std::vector<int64_t> by_columns = {0, 1};
  PJRT_Buffer_MemoryLayout layout = Tiled(by_columns);
  PJRT_Buffer* x = nullptr;
  ASSERT_TRUE(Make(kRows, {2, 3}, &layout, &x).ok());
  PJRT_Buffer* const y = MakeBuffer<float>(client_.get(), client_.devices()[0], kF32, kRows, {3, 2});
  std::vector<std::vector<PJRT_Buffer*>> outputs;
  const Result ran = Execute(executable, {{x, y}}, &outputs);
  ASSERT_TRUE(ran.ok()) << ran.message;
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(LayoutOf(outputs[0][i]), expected[i]) << i;
  EXPECT_EQ(Read(outputs[0][0], nullptr), (std::vector<float>{2, 8, 4, 10, 6, 12}));
  EXPECT_EQ(Read(outputs[0][1], nullptr), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(Read(outputs[0][2], nullptr), kColumns);
  EXPECT_EQ(Read(outputs[0][3], nullptr), kColumns);
  for (PJRT_Buffer* const output : outputs[0]) Destroy(output);
  Destroy(x);
  Destroy(y);
  auto destroy = Garbage<PJRT_Executable_Destroy_Args>();
  destroy.executable = unloaded.executable;
  EXPECT_CALL_OK(Api().PJRT_Executable_Destroy(&destroy));
  Destroy(executable);
}

TEST_F(LayoutTest, OfAnotherRankOrWithTilesIsAnError) {
  for (const auto& [layout, code] : {std::pair("{0}", kInvalidArgument), std::pair("{1,1}", kInvalidArgument),
                                     std::pair("{0,1:T(8,128)}", kUnimplemented), std::pair("0,1", kInvalidArgument)}) {
    const std::string program = std::string("module { func.func @main(%x: tensor<2x3xf32> {mhlo.layout_mode = \"") +
                                layout + "\"}) -> tensor<2x3xf32> { return %x : tensor<2x3xf32> } }";
    PJRT_LoadedExecutable* executable = nullptr;
    const Result compiled = Compile(client_.get(), program, "mlir", CompileOptionsOf(1, 1), &executable);
    EXPECT_EQ(compiled.code, code) << layout << ": " << compiled.message;
  }
}

TEST_F(LayoutTest, HloHasThemInItsSignature) {
  const std::string program = R"(HloModule m, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}

ENTRY e {
  x = f32[2,3]{0,1} parameter(0)
  ROOT n = f32[2,3]{0,1} negate(x)
})";
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client_.get(), program, "hlo", CompileOptionsOf(1, 1), &executable);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  PJRT_Buffer* const x = MakeBuffer<float>(client_.get(), client_.devices()[0], kF32, kRows, {2, 3});
  std::vector<std::vector<PJRT_Buffer*>> outputs;
  const Result ran = Execute(executable, {{x}}, &outputs);
  ASSERT_TRUE(ran.ok()) << ran.message;
  EXPECT_EQ(LayoutOf(outputs[0][0]), "{0,1}");
  EXPECT_EQ(Read(outputs[0][0], nullptr), (std::vector<float>{-1, -4, -2, -5, -3, -6}));
  Destroy(outputs[0][0]);
  Destroy(x);
  Destroy(executable);
}

}  // namespace
}  // namespace hlokit::pjrt_test
