// SPDX-License-Identifier: Apache-2.0
// Files that programs are written to, by options of the client and of a program.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

constexpr std::string_view kPartitioned = R"(HloModule halves, num_partitions=2
ENTRY e {
  x = f32[8,6] parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT y = f32[8,6] negate(x), sharding={devices=[2,1]<=[2]}
})";

// A field of bytes in wire format.
std::string Field(char number, const std::string& bytes) {
  EXPECT_LT(bytes.size(), 128U);
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

// Flags of the compiler, as fields of the options of a program.
std::string Flag(const std::string& name, const std::string& text) {
  return Field(7, Field(1, name) + Field(2, Field(1, text)));
}
std::string Flag(const std::string& name) { return Field(7, Field(1, name) + Field(2, {2 << 3, 1})); }

class DumpTest : public testing::Test {
 protected:
  DumpTest() : folder_(testing::TempDir() + "hlokit_dump_" + std::to_string(getpid())) {}
  ~DumpTest() override { std::filesystem::remove_all(folder_); }

  // The files, by what follows the name of the program.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      files[name.substr(name.find(".halves.") + 8)] = text.str();
    }
    return files;
  }

  const std::string folder_;
};

void CompileAndDestroy(PJRT_Client* client, const std::string& options) {
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client, kPartitioned, "hlo", options, &executable);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  Destroy(executable);
}

// What was received has whole arrays; what follows has those of a partition.
void ExpectStages(const std::map<std::string, std::string>& files, const std::string& kind) {
  ASSERT_TRUE(files.contains("before_optimizations" + kind));
  ASSERT_TRUE(files.contains("after_partitioning" + kind));
  ASSERT_TRUE(files.contains("after_optimizations" + kind));
  if (kind != ".txt") return;
  EXPECT_NE(files.at("before_optimizations.txt").find("f32[8,6]"), std::string::npos);
  EXPECT_EQ(files.at("before_optimizations.txt").find("f32[4,6]"), std::string::npos);
  EXPECT_NE(files.at("after_partitioning.txt").find("f32[4,6]"), std::string::npos);
  EXPECT_NE(files.at("after_optimizations.txt").find("f32[4,6]"), std::string::npos);
}

TEST_F(DumpTest, ClientWritesProgramsAsReceivedAndPartitioned) {
  const ClientScope client(2, {.texts = {{"dump_to", folder_}}});
  CompileAndDestroy(client.get(), CompileOptionsOf(1, 2, /*spmd=*/true));
  ExpectStages(Files(), ".txt");
}

TEST_F(DumpTest, OptionsOfAProgramWriteItAsReceivedAndPartitioned) {
  const ClientScope client(2);
  CompileAndDestroy(client.get(), CompileOptionsOf(1, 2, /*spmd=*/true) + Flag("xla_dump_to", folder_) +
                                      Flag("xla_dump_hlo_as_text") + Flag("xla_dump_hlo_as_proto"));
  const std::map<std::string, std::string> files = Files();
  ExpectStages(files, ".txt");
  ExpectStages(files, ".hlo.pb");
  const auto has_dims = [&](const std::string& file, const std::string& dims) {
    return files.at(file).find(dims) != std::string::npos;
  };
  // Dimensions of a shape in wire format: of the whole array, and of a partition's.
  const std::string whole{3 << 3 | 2, 2, 8, 6}, part{3 << 3 | 2, 2, 4, 6};
  EXPECT_TRUE(has_dims("before_optimizations.hlo.pb", whole));
  EXPECT_FALSE(has_dims("before_optimizations.hlo.pb", part));
  EXPECT_TRUE(has_dims("after_partitioning.hlo.pb", part));
}

}  // namespace
}  // namespace hlokit::pjrt_test
