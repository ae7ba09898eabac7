// SPDX-License-Identifier: Apache-2.0
// Artifacts are written byte by byte here, by the description of the format.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parser/bytecode/byte_cursor.h"
#include "parser/bytecode/reader.h"
#include "parser/bytecode/vhlo_operation.h"
#include "parser/bytecode/writer.h"
#include "parser/mlir/parser.h"
#include "parser/mlir/printer.h"

namespace hlokit::bytecode {
namespace {

std::string Bytes(const std::vector<int>& values) {
  std::string bytes;
  for (int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

// A number below 2^14.
std::string VarInt(size_t value) {
  if (value < 128) return Bytes({static_cast<int>(value << 1 | 1)});
  return Bytes({static_cast<int>((value << 2 | 2) & 0xff), static_cast<int>(value >> 6)});
}

std::string Section(int kind, const std::string& data) { return Bytes({kind}) + VarInt(data.size()) + data; }

struct Artifact {
  std::string producer = "StableHLO_v1.20.0";
  size_t version = 6;
  std::vector<std::string> strings = {"builtin", "vhlo", "module", "func_v1", "add_v1", "return_v1", "main"};
  // Each with its dialect: 0 builtin, 1 vhlo. In the order of dialects.
  std::vector<std::pair<int, std::string>> attributes;
  std::vector<std::pair<int, std::string>> types;
  std::vector<std::string> properties;
  std::string ir;

  std::string Text() const {
    std::string lengths, characters;
    for (size_t i = strings.size(); i-- > 0;) lengths += VarInt(strings[i].size() + 1);
    for (const std::string& string : strings) characters += string + std::string(1, '\0');
    std::string dialects = VarInt(2) + VarInt(0) + VarInt(2) + VarInt(4);
    dialects += VarInt(0) + VarInt(1) + VarInt(2 * 2 + 1);
    dialects += VarInt(1) + VarInt(3) + VarInt(3 * 2 + 1) + VarInt(4 * 2 + 1) + VarInt(5 * 2 + 1);
    std::string entries, sizes = VarInt(attributes.size()) + VarInt(types.size());
    for (const auto* list : {&attributes, &types}) {
      for (const auto& [dialect, entry] : *list) {
        entries += entry;
        sizes += VarInt(static_cast<size_t>(dialect)) + VarInt(1) + VarInt(entry.size() * 2 + 1);
      }
    }
    std::string all_properties = VarInt(properties.size());
    for (const std::string& p : properties) all_properties += VarInt(p.size()) + p;
    return "ML\xefR" + VarInt(version) + producer + std::string(1, '\0') +
           Section(0, VarInt(strings.size()) + lengths + characters) + Section(1, dialects) + Section(2, entries) +
           Section(3, sizes) + Section(4, ir) + Section(8, all_properties);
  }
};

// func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return add(a, a) }
Artifact AddProgram() {
  Artifact a;
  // 0: location; 1: "main"; 2: ""; 3: []; 4: function type
  a.strings.push_back("");
  a.attributes = {{0, VarInt(15)},
                  {1, VarInt(14) + VarInt(6)},
                  {1, VarInt(14) + VarInt(7)},
                  {1, VarInt(1) + VarInt(0)},
                  {1, VarInt(17) + VarInt(2)}};
  // 0: f32; 1: tensor<2xf32>; 2: (1) -> 1
  a.types = {{1, VarInt(4)},
             {1, VarInt(20) + VarInt(1) + VarInt(4) + VarInt(0)},
             {1, VarInt(8) + VarInt(1) + VarInt(1) + VarInt(1) + VarInt(1)}};
  a.properties = {VarInt(0) + VarInt(0), VarInt(3) + VarInt(4) + VarInt(3) + VarInt(1) + VarInt(2)};
  const std::string add =
      VarInt(2) + Bytes({0x06}) + VarInt(0) + VarInt(1) + VarInt(1) + VarInt(2) + VarInt(0) + VarInt(0);
  const std::string ret = VarInt(3) + Bytes({0x04}) + VarInt(0) + VarInt(1) + VarInt(1);
  const std::string body =
      VarInt(1) + VarInt(2) + VarInt(2 * 2 + 1) + VarInt(1) + VarInt(1 * 2) + Bytes({0}) + add + ret;
  const std::string func = VarInt(1) + Bytes({0x50}) + VarInt(0) + VarInt(1) + VarInt(1 * 2) + body;
  const std::string module_body = VarInt(1) + VarInt(0) + VarInt(1 * 2) + func;
  a.ir =
      VarInt(1 * 2) + VarInt(0) + Bytes({0x50}) + VarInt(0) + VarInt(0) + VarInt(1 * 2 + 1) + Section(4, module_body);
  return a;
}

// Returns the program as it is printed, or the error and its hint.
std::string ReadText(const std::string& bytes) {
  auto source = std::make_shared<const SourceBuffer>("test", bytes);
  DiagnosticSink sink;
  const std::unique_ptr<mlir::Module> module = ReadArtifact(source, source->text(), {}, &sink);
  if (module != nullptr) return mlir::PrintMlir(*module, {});
  return sink.diagnostics().empty() ? "no diagnostic"
                                    : sink.diagnostics()[0].message + "|" + sink.diagnostics()[0].hint;
}

bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(ByteCursor, ReadsNumbersOfOneToNineBytes) {
  const std::string bytes =
      Bytes({0xff, 0x02, 0x02, 0x04, 0x00, 0x01, 0x00, 1, 2, 3, 4, 5, 6, 7, 8, 0x80, 1, 2, 3, 4, 5, 6, 7});
  ByteCursor in({bytes, 0});
  EXPECT_EQ(in.VarInt(), 127u);
  EXPECT_EQ(in.VarInt(), 2u << 6);
  EXPECT_EQ(in.VarInt(), 1u << 13);
  EXPECT_EQ(in.VarInt(), 0x0807060504030201u);
  EXPECT_EQ(in.VarInt(), 0x07060504030201u);
  EXPECT_TRUE(in.ok() && in.AtEnd());
  EXPECT_EQ(in.VarInt(), 0u);
  EXPECT_FALSE(in.ok());
}

TEST(ByteCursor, ZeroBitsOfSignedNumbersAlternateSigns) {
  const std::string bytes = Bytes({0x01, 0x03, 0x05, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  ByteCursor in({bytes, 0});
  EXPECT_EQ(in.SignedVarInt(), 0);
  EXPECT_EQ(in.SignedVarInt(), -1);
  EXPECT_EQ(in.SignedVarInt(), 1);
  EXPECT_EQ(in.SignedVarInt(), std::numeric_limits<int64_t>::min());
}

TEST(ByteCursor, ListsAreNotLongerThanTheData) {
  const std::string bytes = Bytes({0x0b, 1, 1, 1});
  ByteCursor in({bytes, 100});
  EXPECT_EQ(in.Count(), 0u);
  EXPECT_EQ(in.status().message(), "at byte 100: a list of 5 elements, for which the data are too short");
}

TEST(VhloOperations, RowsAreOfOperationsOfStablehlo) {
  for (std::string_view name : {"func_v1", "call_v1", "add_v1", "custom_call_v2", "cross-replica-sum_v1"}) {
    const VhloOperation* const row = FindVhloOperation(name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_NE(mlir::FindDefinition(StablehloName(*row, true)), nullptr) << name;
  }
  EXPECT_EQ(FindVhloOperation("add_v2"), nullptr);
  EXPECT_EQ(StablehloName(*FindVhloOperation("return_v1"), true), "func.return");
  EXPECT_EQ(StablehloName(*FindVhloOperation("return_v1"), false), "stablehlo.return");
}

TEST(Artifact, GivesTheProgram) {
  EXPECT_EQ(
      ReadText(AddProgram().Text()),
      "module {\n  func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {\n    %0 = stablehlo.add %arg0, %arg0 : "
      "tensor<2xf32>\n    return %0 : tensor<2xf32>\n  }\n}\n");
}

TEST(Artifact, EveryBeginningIsAnErrorWithAPlace) {
  const std::string bytes = AddProgram().Text();
  for (size_t size = 4; size < bytes.size(); ++size) {
    EXPECT_TRUE(Contains(ReadText(bytes.substr(0, size)), "portable artifact: at byte ")) << size;
  }
}

TEST(Artifact, ChangedBytesNeverEndTheProgram) {
  const std::string bytes = AddProgram().Text();
  for (size_t at = 4; at < bytes.size(); ++at) {
    for (int value : {0x00, 0x01, 0x02, 0x03, 0x7f, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(value);
      ReadText(changed);
    }
  }
}

TEST(Artifact, ErrorsNameWhatIsUnknown) {
  Artifact a = AddProgram();
  a.strings[4] = "add_v9";
  EXPECT_TRUE(Contains(ReadText(a.Text()), "the operation vhlo.add_v9 is unknown in artifacts"));
  a = AddProgram();
  a.attributes[3].second = VarInt(99);
  EXPECT_TRUE(Contains(ReadText(a.Text()), "the attribute 99 of VHLO is unknown"));
  a = AddProgram();
  a.types[0].second = VarInt(99);
  EXPECT_TRUE(Contains(ReadText(a.Text()), "the type 99 of VHLO is unknown"));
}

TEST(Artifact, NewerVersionsAreNamedWithWhatIsUnknown) {
  Artifact a = AddProgram();
  a.producer = "StableHLO_v1.99.0";
  EXPECT_TRUE(Contains(ReadText(a.Text()), "stablehlo.add")) << "operations never change";
  a.strings[4] = "add_v9";
  EXPECT_TRUE(
      Contains(ReadText(a.Text()), "|the artifact is by StableHLO_v1.99.0; known is what StableHLO has up to v1.20"));
  a.producer = "StableHLO_v2.0.0";
  EXPECT_TRUE(Contains(ReadText(a.Text()), "the version of StableHLO_v2.0.0 is too new"));
  a.producer = "MLIR19.1.7";
  EXPECT_TRUE(Contains(ReadText(a.Text()), "MLIR bytecode by `MLIR19.1.7`, not a portable artifact"));
  a.version = 7;
  EXPECT_TRUE(Contains(ReadText(a.Text()), "version 7 of the bytecode format is newer than 6"));
}

TEST(Artifact, ATypeThatContainsItselfIsAnError) {
  Artifact a = AddProgram();
  a.types[0].second = VarInt(1) + VarInt(0);
  EXPECT_TRUE(Contains(ReadText(a.Text()), "contains itself"));
}

TEST(Artifact, TreesThatGrowExponentiallyAreAnError) {
  Artifact a = AddProgram();
  // Each array holds the one before it twice.
  const size_t first = a.attributes.size();
  for (size_t i = 0; i < 40; ++i) {
    const size_t previous = i == 0 ? 3 : first + i - 1;
    a.attributes.push_back({1, VarInt(1) + VarInt(2) + VarInt(previous) + VarInt(previous)});
  }
  a.properties[1] = VarInt(first + 39) + VarInt(4) + VarInt(3) + VarInt(1) + VarInt(2);
  EXPECT_TRUE(Contains(ReadText(a.Text()), "too many parts"));
}

TEST(Artifact, QuantizedTypesExpressNumbers) {
  Artifact a = AddProgram();
  const std::string numbers = VarInt(0) + VarInt(0) + VarInt(0) + VarInt(2);  // scale, zero point, range
  a.types[1].second = VarInt(20) + VarInt(1) + VarInt(4) + VarInt(4);
  a.types.push_back({1, VarInt(11)});  // i8
  a.types.push_back({1, VarInt(24) + VarInt(1) + VarInt(3) + VarInt(0) + numbers});
  EXPECT_TRUE(Contains(ReadText(a.Text()), "quant.uniform<i8<0:1>:f32"));
  a.types[4].second = VarInt(24) + VarInt(1) + VarInt(3) + VarInt(3) + numbers;
  EXPECT_TRUE(Contains(ReadText(a.Text()), "expressed type is no floating-point type"));
}

TEST(Artifact, NumbersHaveAtMost64Bits) {
  Artifact a = AddProgram();
  a.types.push_back({0, VarInt(0) + VarInt(100 << 2)});
  a.attributes[3].second = VarInt(9) + VarInt(3);
  EXPECT_TRUE(Contains(ReadText(a.Text()), "a number of 100 bits"));
}

// Each region may announce as many values as bytes follow, but all of them together no more than the file has.
TEST(Artifact, NestedRegionsShareABudgetOfValues) {
  Artifact a = AddProgram();
  std::string op = VarInt(0) + Bytes({0}) + VarInt(0);
  for (int depth = 0; depth < 200; ++depth) {
    op = VarInt(0) + Bytes({0x10}) + VarInt(0) + VarInt(1 * 2) + VarInt(1) + VarInt(op.size()) + VarInt(1 * 2) + op;
  }
  a.ir = VarInt(1 * 2) + op;
  EXPECT_TRUE(Contains(ReadText(a.Text()), "more values than the data have"));
}

TEST(Artifact, ValuesAreUsedAfterTheirDefinition) {
  Artifact a = AddProgram();
  const size_t use = a.ir.rfind(Bytes({0x06}) + VarInt(0)) + 5;
  a.ir[use] = static_cast<char>(1 << 1 | 1);
  EXPECT_TRUE(Contains(ReadText(a.Text()), "the value 1 is not defined here")) << ReadText(a.Text());
}

// ---- writing ----

// Returns what a program in text prints as after it was an artifact, or the error.
std::string ThroughArtifact(const std::string& text) {
  auto source = std::make_shared<const SourceBuffer>("test", text);
  DiagnosticSink sink;
  const std::unique_ptr<mlir::Module> program = mlir::ParseMlir(source, source->text(), {}, &sink);
  if (program == nullptr) return "text: " + sink.diagnostics()[0].message;
  const std::optional<std::string> bytes = WriteArtifact(program.get(), &sink);
  if (!bytes) return sink.diagnostics()[0].message;
  auto written = std::make_shared<const SourceBuffer>("artifact", *bytes);
  const std::unique_ptr<mlir::Module> again = ReadArtifact(written, written->text(), {}, &sink);
  return again == nullptr ? "artifact: " + sink.diagnostics()[0].message : mlir::PrintMlir(*again, {false, true});
}

TEST(WrittenArtifact, ReadsAsTheSameProgram) {
  const std::string text = R"(module @m attributes {mhlo.num_partitions = 2 : i32} {
  func.func private @f(%arg0: tensor<2xf32> {mhlo.sharding = "{replicated}"}) -> tensor<2xf32> {
    return %arg0 : tensor<2xf32> loc("g"(callsite("a.py":1:2 at "b.py":3:4)))
  } loc(unknown)
  func.func public @main(%arg0: tensor<1x4x4x2xf32> loc("x"), %arg1: tensor<3x3x2x8xf32>, %arg2: tensor<i1>, %arg3: tensor<2xf32>) -> (tensor<1x2x2x8xf32>, tensor<2xf32>) {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xf32>, tensor<3x3x2x8xf32>) -> tensor<1x2x2x8xf32> loc("name")
    %c = stablehlo.constant dense<[true, false, true, true, false, false, false, false, true]> : tensor<9xi1> loc(unknown)
    %c_0 = stablehlo.constant dense<true> : tensor<3xi1> loc(unknown)
    %cst = stablehlo.constant dense<[-1.000000e+00, 2.500000e+00]> : tensor<2xbf16> loc(unknown)
    %1:2 = stablehlo.while(%iterArg = %arg2, %iterArg_1 = %arg3) : tensor<i1>, tensor<2xf32>
    cond {
      stablehlo.return %iterArg : tensor<i1> loc(unknown)
    } do {
      %3 = stablehlo.exponential %iterArg_1 : tensor<2xf32> loc(unknown)
      stablehlo.return %iterArg, %3 : tensor<i1>, tensor<2xf32> loc(unknown)
    } loc(unknown)
    %2 = call @f(%1#1) : (tensor<2xf32>) -> tensor<2xf32> loc(unknown)
    %4 = stablehlo.custom_call @target(%2) {api_version = 4 : i32, backend_config = {a = 1 : i64, b = [2.000000e+00 : f32, "s"]}, has_side_effect = true} : (tensor<2xf32>) -> tensor<2xf32> loc(fused["a.py":1:2, unknown])
    return %0, %2 : tensor<1x2x2x8xf32>, tensor<2xf32> loc(unknown)
  } loc(unknown)
} loc(unknown)
)";
  auto source = std::make_shared<const SourceBuffer>("test", text);
  DiagnosticSink sink;
  const std::unique_ptr<mlir::Module> program = mlir::ParseMlir(source, source->text(), {}, &sink);
  ASSERT_NE(program, nullptr) << sink.diagnostics()[0].message;
  EXPECT_EQ(ThroughArtifact(text), mlir::PrintMlir(*program, {false, true}));
}

TEST(WrittenArtifact, ErrorsNameWhatVhloHasNot) {
  EXPECT_TRUE(
      Contains(ThroughArtifact(
                   "func.func @f(%a: tensor<4xf32>) {\n%0 = chlo.erf %a : tensor<4xf32> -> tensor<4xf32>\nreturn\n}\n"),
               "'chlo.erf' op cannot be in an artifact: VHLO has no such operation"));
  EXPECT_TRUE(Contains(ThroughArtifact("func.func @f(%a: tensor<4x!quant.uniform<i8:f32, 0.5>>) {\nreturn\n}\n"),
                       "VHLO has no place for"));
}

}  // namespace
}  // namespace hlokit::bytecode
