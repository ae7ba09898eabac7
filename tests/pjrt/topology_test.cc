// SPDX-License-Identifier: Apache-2.0
// Topologies without a client: slices, hosts, and what serialization keeps of them.
#include <string>
#include <vector>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

Result CreateTopology(const std::string& name, int64_t slices, const std::vector<int64_t>& bounds,
                      PJRT_TopologyDescription** topology, const std::string& first_option = "num_slices") {
  auto number = Zeroed<PJRT_NamedValue>();
  number.name = first_option.data();
  number.name_size = first_option.size();
  number.type = PJRT_NamedValue_kInt64;
  number.int64_value = slices;
  number.value_size = 1;
  auto list = Zeroed<PJRT_NamedValue>();
  const std::string second_option = "chips_per_host_bounds";
  list.name = second_option.data();
  list.name_size = second_option.size();
  list.type = PJRT_NamedValue_kInt64List;
  list.int64_array_value = bounds.data();
  list.value_size = bounds.size();
  const PJRT_NamedValue options[] = {number, list};
  auto args = Zeroed<PJRT_TopologyDescription_Create_Args>();
  args.topology_name = name.data();
  args.topology_name_size = name.size();
  args.create_options = options;
  args.num_options = bounds.empty() ? 1 : 2;
  Result result = Take(Api().PJRT_TopologyDescription_Create(&args));
  if (result.ok()) *topology = args.topology;
  return result;
}

std::vector<int> ProcessesOf(PJRT_TopologyDescription* topology) {
  const auto all = Query(Api().PJRT_TopologyDescription_GetDeviceDescriptions,
                         &PJRT_TopologyDescription_GetDeviceDescriptions_Args::topology, topology);
  std::vector<int> processes;
  for (size_t d = 0; d < all.num_descriptions; ++d) {
    processes.push_back(Query(Api().PJRT_DeviceDescription_ProcessIndex,
                              &PJRT_DeviceDescription_ProcessIndex_Args::device_description, all.descriptions[d])
                            .process_index);
  }
  return processes;
}

void Destroy(PJRT_TopologyDescription* topology) {
  Query(Api().PJRT_TopologyDescription_Destroy, &PJRT_TopologyDescription_Destroy_Args::topology, topology);
}

TEST(TopologyTest, HostsHaveTheChipsOfTheirBounds) {
  PJRT_TopologyDescription* topology = nullptr;
  const Result created = CreateTopology("v5e:4x2", 2, {2, 2, 1}, &topology);
  ASSERT_TRUE(created.ok()) << created.message;
  const std::vector<int> expected = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};
  EXPECT_EQ(ProcessesOf(topology), expected);

  auto serialize = Zeroed<PJRT_TopologyDescription_Serialize_Args>();
  serialize.topology = topology;
  ASSERT_CALL_OK(Api().PJRT_TopologyDescription_Serialize(&serialize));
  auto read = Zeroed<PJRT_TopologyDescription_Deserialize_Args>();
  read.serialized_topology = serialize.serialized_bytes;
  read.serialized_topology_size = serialize.serialized_bytes_size;
  ASSERT_CALL_OK(Api().PJRT_TopologyDescription_Deserialize(&read));
  EXPECT_EQ(ProcessesOf(read.topology), expected);
  serialize.serialized_topology_deleter(serialize.serialized_topology);
  Destroy(read.topology);
  Destroy(topology);
}

TEST(TopologyTest, BadOptionsAreErrors) {
  PJRT_TopologyDescription* topology = nullptr;
  EXPECT_EQ(CreateTopology("v5e:4x2", 1, {3, 1, 1}, &topology).code, kInvalidArgument);
  EXPECT_EQ(CreateTopology("v5e:4x2", 0, {}, &topology).code, kInvalidArgument);
  EXPECT_EQ(CreateTopology("cpu:8", 2, {}, &topology).code, kInvalidArgument);
  EXPECT_EQ(CreateTopology("v5p:2*2x2x1", 2, {}, &topology).code, kInvalidArgument);
  const Result unknown = CreateTopology("v5e:4x2", 1, {}, &topology, "wrap");
  EXPECT_EQ(unknown.code, kInvalidArgument);
  EXPECT_NE(unknown.message.find("chips_per_host_bounds, num_slices"), std::string::npos) << unknown.message;
}

}  // namespace
}  // namespace hlokit::pjrt_test
