// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/mesh.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hlokit {
namespace {

class MeshTest : public ::testing::Test {
 protected:
  Mesh Make(std::vector<std::string_view> names, std::vector<int64_t> sizes) {
    Mesh mesh;
    for (std::string_view name : names) mesh.names.push_back(context_.strings.Intern(name));
    mesh.devices.dims = std::move(sizes);
    mesh.devices.iota = {{DeviceCount(mesh.devices.dims).value_or(0)}, {0}};
    return mesh;
  }
  std::string Text(const Mesh& mesh) {
    std::string text;
    TextWriter out(&text);
    PrintMesh(out, context_, mesh);
    out.Flush();
    return text;
  }
  std::string Check(Mesh mesh) { return CheckMesh(context_, &mesh).value_or("ok"); }

  Context context_;
};

TEST_F(MeshTest, Check) {
  EXPECT_EQ(Check(Make({"x", "y"}, {2, 4})), "ok");
  EXPECT_EQ(Check(Make({"x", "x"}, {2, 4})), "duplicate axis `x` in mesh");
  EXPECT_EQ(Check(Make({"x", "12"}, {2, 4})), "mesh axis name `12` is a number");
  EXPECT_EQ(Check(Make({""}, {2})), "missing name of a mesh axis");
  EXPECT_NE(Check(Make({"x", "y"}, {2, 0})), "ok");
  EXPECT_NE(Check(Make({"x", "y"}, {int64_t{1} << 40, int64_t{1} << 40})), "ok");
  Mesh maximal;
  maximal.devices.devices = {3};
  EXPECT_EQ(Check(maximal), "ok");
  maximal.devices.devices = {-3};
  EXPECT_NE(Check(maximal), "ok");
}

TEST_F(MeshTest, DevicesAreAPermutation) {
  Mesh mesh = Make({"x", "y"}, {2, 2});
  mesh.devices.iota = {};
  mesh.devices.devices = {3, 2, 1, 0};
  EXPECT_EQ(CheckMesh(context_, &mesh), std::nullopt);
  EXPECT_EQ(Text(mesh), "mesh['x'=2,'y'=2], device_ids=(3,2,1,0)");
  mesh.devices.devices = {0, 1, 2, 3};
  EXPECT_EQ(CheckMesh(context_, &mesh), std::nullopt);
  EXPECT_EQ(mesh, Make({"x", "y"}, {2, 2}));
  EXPECT_EQ(Text(mesh), "mesh['x'=2,'y'=2]");
  for (const std::vector<int64_t>& bad :
       {std::vector<int64_t>{0, 1, 2}, {0, 1, 2, 2}, {0, 1, 1, 2}, {1, 2, 3, 4}, {-1, 0, 1, 2}}) {
    mesh.devices.iota = {};
    mesh.devices.devices = bad;
    EXPECT_NE(CheckMesh(context_, &mesh), std::nullopt);
  }
  mesh = Make({"x", "y"}, {2, 4});
  mesh.devices.iota = {{4, 1, 2}, {2, 1, 0}};
  EXPECT_EQ(CheckMesh(context_, &mesh), std::nullopt);
  EXPECT_EQ(Text(mesh), "mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0))");
  mesh.devices.iota = {{4, 4}, {1, 0}};
  EXPECT_NE(CheckMesh(context_, &mesh), std::nullopt);
}

TEST_F(MeshTest, AxisUses) {
  const Mesh mesh = Make({"x", "y"}, {8, 12});
  const auto add = [&](std::vector<std::vector<AxisRef>> lists) {
    AxisUses uses(context_, mesh);
    for (const std::vector<AxisRef>& list : lists) {
      if (std::optional<std::string> error = uses.Add(list)) return *error;
    }
    return std::string("ok");
  };
  EXPECT_EQ(add({{{0}, {1}}}), "ok");
  EXPECT_EQ(add({{{1}}, {{0, 1, 2}}, {{0, 2, 2}}}), "ok");
  EXPECT_EQ(add({{{0, 1, 2}, {0, 4, 2}}, {{0, 2, 2}}}), "ok");
  EXPECT_EQ(add({{{2}}}), "axis number 2 is out of range: the mesh has 2 axes");
  EXPECT_EQ(add({{{0}}, {{0}}}), "'x' and 'x' cannot be used together");
  EXPECT_EQ(add({{{0}}, {{0, 1, 2}}}), "'x':(1)2 and 'x' cannot be used together");
  EXPECT_EQ(add({{{0, 1, 4}}, {{0, 2, 2}}}), "'x':(2)2 and 'x':(1)4 cannot be used together");
  EXPECT_EQ(add({{{1, 1, 2}}, {{1, 3, 2}}}), "'y':(3)2 and 'y':(1)2 cannot be used together");
  EXPECT_EQ(add({{{0, 1, 2}, {0, 2, 2}}}), "'x':(1)2, 'x':(2)2 is one sub-axis; expected it in merged form");
  EXPECT_EQ(add({{{0, 1, 8}}}), "'x':(1)8 is not a proper sub-axis of an axis of size 8");
  EXPECT_EQ(add({{{0, 3, 2}}}), "'x':(3)2 is not a proper sub-axis of an axis of size 8");
  EXPECT_NE(add({{{0, int64_t{1} << 62, 4}}}), "ok");

  AxisUses uses(context_, mesh);
  EXPECT_EQ(uses.AddSorted({{1}, {0}}, "manual"), "the manual axes are not in the order of the mesh");
}

TEST_F(MeshTest, Covers) {
  const Mesh mesh = Make({"x", "one", "y"}, {8, 1, 12});
  EXPECT_TRUE(CoversMesh(mesh, {{0}, {1}, {2}}));
  EXPECT_TRUE(CoversMesh(mesh, {{0}, {2}}));
  EXPECT_FALSE(CoversMesh(mesh, {{2}, {0}}));
  EXPECT_FALSE(CoversMesh(mesh, {{0}, {2, 1, 6}}));
  EXPECT_FALSE(CoversMesh(mesh, {{0}}));
  EXPECT_EQ(AxesSize(mesh, {{0, 2, 2}, {2}}), 24);
}

TEST_F(MeshTest, EncodeDecode) {
  std::vector<Mesh> meshes = {Mesh(), Make({"x", "y"}, {2, 4}), Make({"x", "y"}, {2, 4}), Make({"x"}, {3}), Mesh()};
  meshes[2].devices.iota = {{4, 2}, {1, 0}};
  meshes[3].devices.iota = {};
  meshes[3].devices.devices = {2, 0, 1};
  meshes[4].devices.devices = {5};
  std::vector<int64_t> list;
  for (const Mesh& mesh : meshes) EncodeMesh(mesh, &list);
  EncodeAxes({{0}, {1, 2, 4}}, &list);
  size_t at = 0;
  for (const Mesh& mesh : meshes) EXPECT_EQ(DecodeMesh(list, &at), mesh);
  EXPECT_EQ(DecodeAxes(list, &at), (std::vector<AxisRef>{{0}, {1, 2, 4}}));
  EXPECT_EQ(at, list.size());
}

TEST_F(MeshTest, NamesThatNeedEscapes) {
  EXPECT_EQ(Text(Make({"a.b", "<axis> def", "z/w", "it's"}, {2, 4, 2, 3})),
            R"(mesh['a.b'=2,'<axis> def'=4,'z/w'=2,'it\'s'=3])");
}

}  // namespace
}  // namespace hlokit
