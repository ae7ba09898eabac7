// SPDX-License-Identifier: Apache-2.0
// What XLA's reader of a HloModuleProtoWithConfig requires of a compiled program, and what frameworks read from it.
#include <optional>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

// The fields of a message that have a number: the varint or the bytes of each. This program has no messages of its own.
struct Field {
  uint64_t number = 0;
  uint64_t varint = 0;
  std::string bytes;
};

std::vector<Field> FieldsOf(const std::string& message) {
  std::vector<Field> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; at < message.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(message[at++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < message.size()) {
    const uint64_t tag = varint();
    Field field;
    field.number = tag >> 3;
    if ((tag & 7) == 0) {
      field.varint = varint();
    } else if ((tag & 7) == 2) {
      const size_t size = varint();
      field.bytes = message.substr(at, size);
      at += size;
    } else {
      at += (tag & 7) == 1 ? 8 : 4;
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

std::vector<std::string> Messages(const std::string& message, uint64_t number) {
  std::vector<std::string> found;
  for (const Field& field : FieldsOf(message)) {
    if (field.number == number) found.push_back(field.bytes);
  }
  return found;
}

std::optional<uint64_t> Number(const std::string& message, uint64_t number) {
  for (const Field& field : FieldsOf(message)) {
    if (field.number == number) return field.varint;
  }
  return std::nullopt;
}

// The numbers of a packed field.
std::vector<int> Packed(const std::string& message, uint64_t number) {
  std::vector<int> values;
  for (const std::string& bytes : Messages(message, number)) {
    for (const char c : bytes) values.push_back(c);  // each below 128
  }
  return values;
}

// Returns the module and the configuration of the program that callers see.
std::pair<std::string, std::string> OptimizedProgram(PJRT_LoadedExecutable* loaded) {
  const auto get = Query(Api().PJRT_LoadedExecutable_GetExecutable,
                         &PJRT_LoadedExecutable_GetExecutable_Args::loaded_executable, loaded);
  auto program = Zeroed<PJRT_Program>();
  auto args = Garbage<PJRT_Executable_OptimizedProgram_Args>();
  args.executable = get.executable;
  args.program = &program;
  EXPECT_CALL_OK(Api().PJRT_Executable_OptimizedProgram(&args));
  EXPECT_EQ(std::string(program.format, program.format_size), "hlo_with_config");
  std::string bytes(program.code_size, '\0');
  program.code = bytes.data();
  EXPECT_CALL_OK(Api().PJRT_Executable_OptimizedProgram(&args));
  Query(Api().PJRT_Executable_Destroy, &PJRT_Executable_Destroy_Args::executable, get.executable);
  return {Messages(bytes, 1).at(0), Messages(bytes, 2).at(0)};
}

// Dimensions of the parameters and of the results of a ProgramShapeProto.
std::vector<std::vector<int>> ParameterDims(const std::string& program_shape) {
  std::vector<std::vector<int>> dims;
  for (const std::string& parameter : Messages(program_shape, 1)) dims.push_back(Packed(parameter, 3));
  return dims;
}
std::vector<std::vector<int>> ResultDims(const std::string& program_shape) {
  const std::string result = Messages(program_shape, 2).at(0);
  std::vector<std::vector<int>> dims;
  for (const std::string& element : Messages(result, 4)) dims.push_back(Packed(element, 3));
  if (dims.empty()) dims.push_back(Packed(result, 3));
  return dims;
}

TEST(OptimizedProgramTest, HasTheLayoutOfTheEntry) {
  const ClientScope client(1);
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_TRUE(Compile(client.get(),
                      R"(module @pair { func.func @main(%x: tensor<4x3xf32>, %y: tensor<3xi32>)
                          -> (tensor<3x4xf32>, tensor<3xi32>) {
                          %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
                          %z = stablehlo.add %y, %y : tensor<3xi32>
                          return %t, %z : tensor<3x4xf32>, tensor<3xi32> } })",
                      "mlir", CompileOptionsOf(1, 1), &executable)
                  .ok());
  const auto [module, config] = OptimizedProgram(executable);
  const std::vector<std::string> layouts = Messages(config, 1);
  ASSERT_EQ(layouts.size(), 1U);
  EXPECT_EQ(ParameterDims(layouts[0]), (std::vector<std::vector<int>>{{4, 3}, {3}}));
  EXPECT_EQ(ResultDims(layouts[0]), (std::vector<std::vector<int>>{{3, 4}, {3}}));
  // XLA requires the module's too.
  EXPECT_EQ(Messages(module, 4), layouts);
  // XLA takes an absent count for 0.
  EXPECT_EQ(Number(config, 4), 1U);
  EXPECT_EQ(Number(config, 5), 1U);
  EXPECT_TRUE(Messages(module, 12).empty());
  EXPECT_TRUE(Messages(module, 14).empty());
  Destroy(executable);
}

// Type (3: OTHER, which has tiles; absent: replicated) and dimensions of tiles of an OpSharding.
std::pair<uint64_t, std::vector<int>> ShardingOf(const std::string& sharding) {
  return {Number(sharding, 1).value_or(0), Packed(sharding, 3)};
}

TEST(OptimizedProgramTest, HasTheShardingsOfAPartitionedProgram) {
  const ClientScope client(4);
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client.get(),
                                  R"(HloModule two, num_partitions=4
ENTRY e {
  x = f32[8,6] parameter(0), sharding={devices=[4,1]<=[4]}
  w = f32[6] parameter(1), sharding={replicated}
  b = f32[8,6] broadcast(w), dimensions={1}
  y = f32[8,6] add(x, b), sharding={devices=[4,1]<=[4]}
  n = f32[6] negate(w), sharding={replicated}
  ROOT r = (f32[8,6], f32[6]) tuple(y, n), sharding={{devices=[4,1]<=[4]}, {replicated}}
})",
                                  "hlo", CompileOptionsOf(1, 4, /*spmd=*/true), &executable);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  const auto [module, config] = OptimizedProgram(executable);
  // Shapes are those of one partition; the shardings say what they are parts of.
  const std::string layout = Messages(config, 1).at(0);
  EXPECT_EQ(ParameterDims(layout), (std::vector<std::vector<int>>{{2, 6}, {6}}));
  EXPECT_EQ(ResultDims(layout), (std::vector<std::vector<int>>{{2, 6}, {6}}));
  const std::vector<std::string> parameters = Messages(module, 14);
  ASSERT_EQ(parameters.size(), 2U);
  EXPECT_EQ(ShardingOf(parameters[0]), std::make_pair(uint64_t{3}, std::vector<int>{4, 1}));
  EXPECT_EQ(ShardingOf(parameters[1]), std::make_pair(uint64_t{0}, std::vector<int>{}));
  const std::vector<std::string> results = Messages(module, 12);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(Number(results[0], 1), 2U);  // TUPLE
  const std::vector<std::string> elements = Messages(results[0], 5);
  ASSERT_EQ(elements.size(), 2U);
  EXPECT_EQ(ShardingOf(elements[0]), std::make_pair(uint64_t{3}, std::vector<int>{4, 1}));
  EXPECT_EQ(ShardingOf(elements[1]), std::make_pair(uint64_t{0}, std::vector<int>{}));
  EXPECT_EQ(Number(config, 5), 4U);
  // The devices of the partitions.
  std::vector<int> devices;
  for (const std::string& partition : Messages(Messages(config, 15).at(0), 3)) {
    for (const int id : Packed(partition, 1)) devices.push_back(id);
  }
  EXPECT_EQ(devices, (std::vector<int>{0, 1, 2, 3}));
  Destroy(executable);
}

// An UNKNOWN sharding asks the compiler for one; callers that divide arguments by what it found take none of that type.
TEST(OptimizedProgramTest, ValuesForWhichNoShardingIsFoundAreReplicated) {
  const ClientScope client(4);
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client.get(),
                                  R"(HloModule open, num_partitions=4
ENTRY e {
  x = f32[8,6] parameter(0), sharding={unknown}
  y = f32[6] parameter(1), sharding={unknown}
  b = f32[8,6] broadcast(y), dimensions={1}
  z = f32[8,6] add(x, b)
  ROOT r = (f32[8,6], f32[6]) tuple(z, y), sharding={{unknown}, {unknown}}
})",
                                  "hlo", CompileOptionsOf(1, 4, /*spmd=*/true), &executable);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  const auto [module, config] = OptimizedProgram(executable);
  EXPECT_EQ(ParameterDims(Messages(config, 1).at(0)), (std::vector<std::vector<int>>{{8, 6}, {6}}));
  const auto replicated = std::make_pair(uint64_t{0}, std::vector<int>{});
  const std::vector<std::string> parameters = Messages(module, 14);
  ASSERT_EQ(parameters.size(), 2U);
  for (const std::string& parameter : parameters) EXPECT_EQ(ShardingOf(parameter), replicated);
  const std::vector<std::string> results = Messages(Messages(module, 12).at(0), 5);
  ASSERT_EQ(results.size(), 2U);
  for (const std::string& result : results) EXPECT_EQ(ShardingOf(result), replicated);
  Destroy(executable);
}

}  // namespace
}  // namespace hlokit::pjrt_test
