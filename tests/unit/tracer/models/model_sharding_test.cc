// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/model_sharding.h"

#include <gtest/gtest.h>

#include <vector>

namespace hlokit::lazy::models {
namespace {

PartitionSpec SpecOf(const Mesh& mesh, std::string_view name, std::vector<int64_t> sizes) {
  return ParameterSpecOf(mesh, name, sizes);
}

TEST(ModelSharding, LayersAreDividedAsInMegatron) {
  const Mesh mesh = *ParseMesh("data:4,model:2");
  EXPECT_EQ(SpecOf(mesh, "layers.0.attn.q.weight", {64, 32}), (PartitionSpec{{1}, {}}));
  EXPECT_EQ(SpecOf(mesh, "layers.0.attn.o.weight", {64, 32}), (PartitionSpec{{}, {1}}));
  EXPECT_EQ(SpecOf(mesh, "layers.0.norm.weight", {64}), (PartitionSpec{{}}));
}

TEST(ModelSharding, LargeVocabulariesAreDividedUnequally) {
  const Mesh mesh = *ParseMesh("fsdp:4,model:2");
  EXPECT_EQ(SpecOf(mesh, "tok.weight", {50257, 768}), (PartitionSpec{{1}, {0}}));
  // Fewer than 64 rows a device are not worth the padding.
  EXPECT_EQ(SpecOf(mesh, "tok.weight", {101, 768}), (PartitionSpec{{}, {0}}));
  // Inputs are contracted: padding would have to be masked.
  EXPECT_EQ(SpecOf(mesh, "layers.0.mlp.down.weight", {768, 50257}), (PartitionSpec{{0}, {}}));
}

}  // namespace
}  // namespace hlokit::lazy::models
