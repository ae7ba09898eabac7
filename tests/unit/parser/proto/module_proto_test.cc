// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "parser/proto/module_reader.h"
#include "parser/proto/module_writer.h"
#include "parser/proto/proto_file.h"

namespace hlokit {
namespace {

std::unique_ptr<Module> ModuleOf(std::string_view text) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? *std::move(module) : nullptr;
}

// The module, through the bytes of a message.
std::unique_ptr<Module> ThroughBytes(const Module& module) {
  xla::HloModuleProto proto;
  EXPECT_TRUE(WriteModuleProto(module, {}, &proto).ok());
  DiagnosticSink sink;
  std::unique_ptr<Module> again = ReadModuleBytes(proto.SerializeAsString(), nullptr, {}, &sink, nullptr);
  EXPECT_FALSE(sink.has_errors()) << (sink.diagnostics().empty() ? "" : sink.diagnostics()[0].message);
  return again;
}

void ExpectKept(std::string_view text) {
  const std::unique_ptr<Module> module = ModuleOf(text);
  ASSERT_NE(module, nullptr);
  const std::unique_ptr<Module> again = ThroughBytes(*module);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(ToString(*again), ToString(*module));
}

// Maps of messages have no order of their own: each copy may hash its keys differently.
TEST(ModuleProto, JsonHasAnOrder) {
  const std::unique_ptr<Module> module = ModuleOf(
      "HloModule m\nENTRY e { ROOT p = f32[] parameter(0), "
      "frontend_attributes={a=\"1\",b=\"2\",c=\"3\",d=\"4\",e=\"5\",f=\"6\",g=\"7\",h=\"8\"} }\n");
  ASSERT_NE(module, nullptr);
  std::string first;
  for (int i = 0; i < 20; ++i) {
    xla::HloModuleProto proto;
    ASSERT_TRUE(WriteModuleProto(*module, {}, &proto).ok());
    const absl::StatusOr<std::string> text = FormatMessage(proto, ProtoEncoding::kJson);
    ASSERT_TRUE(text.ok()) << text.status();
    if (i == 0) first = *text;
    EXPECT_EQ(*text, first);
  }
  EXPECT_LT(first.find("\"a\""), first.find("\"b\""));
}

TEST(ModuleProto, KeepsChannelZero) {
  ExpectKept(
      "HloModule m\nsum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
      "ENTRY e { p = f32[4] parameter(0) ROOT r = f32[4] all-reduce(p), channel_id=0, replica_groups={}, "
      "to_apply=sum }\n");
}

TEST(ModuleProto, KeepsMetadata) {
  ExpectKept(
      "HloModule m\nENTRY e { p = f32[4] parameter(0)\n ROOT r = f32[4] negate(p), metadata={op_type=\"neg\" "
      "op_name=\"jit(f)/neg\" source_file=\"f.py\" source_line=3 preserve_layout=true} }\n");
}

TEST(ModuleProto, KeepsShardingsOfEveryForm) {
  ExpectKept(
      "HloModule m\nENTRY e { p = f32[8,8] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}\n"
      " q = f32[8,8] parameter(1), sharding={devices=[2,2]3,2,1,0}\n s = f32[8,8] add(p, q), sharding={replicated}\n"
      " ROOT t = (f32[8,8], f32[8,8]) tuple(s, q), sharding={{maximal device=1}, {manual}} }\n");
}

TEST(ModuleProto, KeepsLiteralsOfManyTypes) {
  ExpectKept(
      "HloModule m\nENTRY e { a = pred[2] constant({true, false}) b = s4[3] constant({-8, 0, 7}) c = bf16[2] "
      "constant({1.5, -inf}) d = c64[1] constant({(1, -2)}) f = u64[1] constant({18446744073709551615})\n ROOT t = "
      "(pred[2], s4[3], bf16[2], c64[1], u64[1]) tuple(a, b, c, d, f) }\n");
}

TEST(ModuleProto, KeepsTheScheduleAndAliases) {
  ExpectKept(
      "HloModule m, is_scheduled=true, input_output_alias={ {0}: (1, {}, must-alias) }\nENTRY e { p = f32[4] "
      "parameter(0) q = f32[4] parameter(1) b = f32[4] negate(q) a = f32[4] negate(p) ROOT t = (f32[4], f32[4]) "
      "tuple(a, b) }\n");
}

TEST(ModuleProto, NoChannelOfAMessageIsNone) {
  const std::unique_ptr<Module> module = ModuleOf(
      "HloModule m\nENTRY e { p = f32[4] parameter(0) ROOT r = f32[4] collective-permute(p), channel_id=7, "
      "source_target_pairs={{0,1}} }\n");
  ASSERT_NE(module, nullptr);
  xla::HloModuleProto proto;
  ASSERT_TRUE(WriteModuleProto(*module, {}, &proto).ok());
  for (auto& instruction : *proto.mutable_computations(0)->mutable_instructions()) instruction.clear_channel_id();
  DiagnosticSink sink;
  const std::unique_ptr<Module> again = ReadModuleProto(proto, nullptr, {}, &sink, nullptr, nullptr);
  ASSERT_NE(again, nullptr);
  EXPECT_FALSE(again->entry().root().has(Attr::kChannelId));
}

TEST(ModuleProto, BytesThatAreNoModuleAreAnError) {
  DiagnosticSink sink;
  EXPECT_EQ(ReadModuleBytes("\xff\xff\xff", nullptr, {}, &sink, nullptr), nullptr);
  EXPECT_TRUE(sink.has_errors());
}

TEST(ModuleProto, RecursiveCallsAreAnError) {
  const std::unique_ptr<Module> module = ModuleOf(
      "HloModule m\nf { p = f32[] parameter(0) ROOT n = f32[] negate(p) }\n"
      "g { p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=f }\n"
      "ENTRY e { p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=g }\n");
  ASSERT_NE(module, nullptr);
  xla::HloModuleProto proto;
  ASSERT_TRUE(WriteModuleProto(*module, {}, &proto).ok());
  // `g` calls itself.
  for (auto& computation : *proto.mutable_computations()) {
    if (computation.name() != "g") continue;
    for (auto& instruction : *computation.mutable_instructions()) {
      if (instruction.opcode() == "call") instruction.set_called_computation_ids(0, computation.id());
    }
  }
  DiagnosticSink sink;
  EXPECT_EQ(ReadModuleProto(proto, nullptr, {}, &sink, nullptr, nullptr), nullptr);
  ASSERT_TRUE(sink.has_errors());
  EXPECT_NE(sink.diagnostics()[0].message.find("recursive calls"), std::string::npos);
}

// Of a module whose entry layout is not that of the shapes in its entry.
constexpr std::string_view kWithLayout =
    "HloModule m, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}, replica_count=2\n"
    "ENTRY e { p = f32[2,3] parameter(0) ROOT r = f32[2,3] negate(p) }\n";

xla::HloModuleProtoWithConfig ConfiguredOf(const Module& module, const ProtoFileParts* parts = nullptr) {
  const absl::StatusOr<std::string> bytes =
      WriteModuleAs(module, {ProtoMessage::kModuleWithConfig, ProtoEncoding::kBinary}, parts);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  xla::HloModuleProtoWithConfig proto;
  EXPECT_TRUE(proto.ParseFromString(*bytes));
  return proto;
}

TEST(ModuleProto, AConfigurationHasTheLayoutOfTheEntryAndBothCounts) {
  const std::unique_ptr<Module> module = ModuleOf(kWithLayout);
  ASSERT_NE(module, nullptr);
  const xla::HloModuleConfigProto config = ConfiguredOf(*module).config();
  ASSERT_TRUE(config.has_entry_computation_layout());
  ASSERT_EQ(config.entry_computation_layout().parameters_size(), 1);
  EXPECT_EQ(config.entry_computation_layout().parameters(0).layout().minor_to_major(0), 0);
  EXPECT_EQ(config.entry_computation_layout().result().dimensions(1), 3);
  EXPECT_EQ(config.replica_count(), 2);
  EXPECT_EQ(config.num_partitions(), 1);
  // XLA's defaults, which are no attributes of the text.
  ASSERT_EQ(config.allow_spmd_sharding_propagation_to_output_size(), 1);
  EXPECT_FALSE(config.allow_spmd_sharding_propagation_to_output(0));
  const absl::StatusOr<std::unique_ptr<Module>> again = ParseModuleText(ConfiguredOf(*module).SerializeAsString());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToString(**again), ToString(*module));
}

TEST(ModuleProto, TheLayoutOfAConfigurationGoesBeforeTheModules) {
  const std::unique_ptr<Module> module = ModuleOf(kWithLayout);
  ASSERT_NE(module, nullptr);
  xla::HloModuleProtoWithConfig proto = ConfiguredOf(*module);
  xla::ShapeProto* result = proto.mutable_config()->mutable_entry_computation_layout()->mutable_result();
  result->mutable_layout()->set_minor_to_major(0, 1);
  result->mutable_layout()->set_minor_to_major(1, 0);
  const absl::StatusOr<std::unique_ptr<Module>> again = ParseModuleText(proto.SerializeAsString());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToString((*again)->header().entry_layout->result, /*layout=*/true), "f32[2,3]{1,0}");
  EXPECT_EQ(ToString((*again)->header().entry_layout->parameters[0], /*layout=*/true), "f32[2,3]{0,1}");
}

}  // namespace
}  // namespace hlokit
