// SPDX-License-Identifier: Apache-2.0
#include "passes/dumps/buffer_assignment.h"

#include <gtest/gtest.h>

#include "parser/proto/hlo.pb.h"

namespace hlokit::dump {
namespace {

TEST(BufferAssignmentTest, SumsBlocksOfTexts) {
  const AssignmentSummary summary = SummarizeAssignmentText(R"(BufferAssignment:
allocation 0: size 16, parameter 0, shape |f32[4]| at ShapeIndex {}:
 value: <0 x @0> (size=16,offset=0): f32[4]{0}
allocation 1: size 400, color 1, preallocated-temp:
 value: <1 a @0> (size=300,offset=0): f32[75]{0}
 value: <2 b @0> (size=200,offset=0): f32[50]{0}
allocation 2: size 8, thread-local:
allocation 3: size 24, maybe-live-out:

Total bytes used: 448
allocation 9: size 1:
)");
  ASSERT_EQ(summary.blocks.size(), 4u);
  EXPECT_EQ(summary.blocks[0].index, 1);
  EXPECT_EQ(summary.blocks[0].kind, "temporary");
  EXPECT_EQ(summary.blocks[0].color, 1);
  EXPECT_EQ(summary.blocks[0].values, 2);
  EXPECT_EQ(summary.blocks[0].value_bytes, 500);
  EXPECT_EQ(summary.total_bytes, 440);  // thread-local blocks are on stacks
  EXPECT_EQ(summary.parameter_bytes, 16);
  EXPECT_EQ(summary.result_bytes, 24);
  EXPECT_EQ(summary.temporary_peak_bytes, -1);
}

TEST(BufferAssignmentTest, ThePeakOfABlockIsThatOfItsHeap) {
  xla::BufferAssignmentProto proto;
  for (const auto& [id, size] : {std::pair(1, 30), {2, 20}, {3, 25}}) {
    xla::LogicalBufferProto* buffer = proto.add_logical_buffers();
    buffer->set_id(id);
    buffer->set_size(size);
  }
  xla::BufferAllocationProto* block = proto.add_buffer_allocations();
  block->set_index(7);
  block->set_size(60);
  for (const int id : {1, 2, 3}) block->add_assigned()->set_logical_buffer_id(id);
  xla::HeapSimulatorTrace* trace = proto.add_heap_simulator_traces();
  using Event = xla::HeapSimulatorTrace::Event;
  for (const auto& [kind, id] : {std::pair(Event::ALLOC, 1), {Event::ALLOC, 2}, {Event::FREE, 1}, {Event::ALLOC, 3}}) {
    Event* event = trace->add_events();
    event->set_kind(kind);
    event->set_buffer_id(id);
  }
  const AssignmentSummary summary = SummarizeAssignment(proto);
  ASSERT_EQ(summary.blocks.size(), 1u);
  EXPECT_EQ(summary.blocks[0].peak_bytes, 50);
  EXPECT_EQ(summary.temporary_peak_bytes, 50);
}

}  // namespace
}  // namespace hlokit::dump
