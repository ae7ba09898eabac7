// SPDX-License-Identifier: Apache-2.0
// Buffers: types, strides, layouts, borrowed arrays, copies, transfers, events.
#include <atomic>
#include <thread>

#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

class BufferTest : public testing::Test {
 protected:
  PJRT_Device* device(size_t i = 0) const { return client_.devices()[i]; }
  PJRT_Memory* memory(size_t i = 0) const {
    auto args = Garbage<PJRT_Device_DefaultMemory_Args>();
    args.device = device(i);
    EXPECT_CALL_OK(Api().PJRT_Device_DefaultMemory(&args));
    return args.memory;
  }
  // Arguments of a transfer that is as simple as can be.
  PJRT_Client_BufferFromHostBuffer_Args HostArgs(const void* data, int type, const std::vector<int64_t>& dims) const {
    auto args = Garbage<PJRT_Client_BufferFromHostBuffer_Args>();
    args.client = client_.get();
    args.data = data;
    args.type = static_cast<PJRT_Buffer_Type>(type);
    args.dims = dims.data();
    args.num_dims = dims.size();
    args.byte_strides = nullptr;
    args.num_byte_strides = 0;
    args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
    args.device = nullptr;
    args.memory = memory();
    args.device_layout = nullptr;
    return args;
  }
  ClientScope client_{2};
};

TEST_F(BufferTest, HoldsEveryType) {
  for (int type = 1; type <= 31; ++type) {
    if (type == 23) continue;  // tokens have no host arrays
    std::vector<char> zeros(16 * 6, 0);
    PJRT_Buffer* const buffer = MakeRawBuffer(client_.get(), device(), type, zeros.data(), {2, 3});
    auto of = Garbage<PJRT_Buffer_ElementType_Args>();
    of.buffer = buffer;
    EXPECT_CALL_OK(Api().PJRT_Buffer_ElementType(&of));
    EXPECT_EQ(of.type, type);
    auto size = Garbage<PJRT_Buffer_OnDeviceSizeInBytes_Args>();
    size.buffer = buffer;
    EXPECT_CALL_OK(Api().PJRT_Buffer_OnDeviceSizeInBytes(&size));
    EXPECT_GE(size.on_device_size_in_bytes, 6U);
    std::string bytes;
    EXPECT_TRUE(ReadRawBuffer(buffer, &bytes).ok());
    EXPECT_EQ(bytes, std::string(size.on_device_size_in_bytes, '\0'));
    Destroy(buffer);
  }
  const std::vector<int64_t> dims = {1};
  float value = 0;
  auto six_bits = HostArgs(&value, kF6, dims);
  EXPECT_EQ(Take(Api().PJRT_Client_BufferFromHostBuffer(&six_bits)).code, kUnimplemented);
  for (const int type : {0, 34, -1, 1000}) {
    auto args = HostArgs(&value, type, dims);
    EXPECT_EQ(Take(Api().PJRT_Client_BufferFromHostBuffer(&args)).code, kInvalidArgument) << type;
  }
}

TEST_F(BufferTest, PredAndNarrowIntegersAreNormalized) {
  PJRT_Buffer* const pred = MakeBuffer<uint8_t>(client_.get(), device(), kPred, {0, 1, 2, 255}, {4});
  std::vector<uint8_t> bits;
  EXPECT_TRUE(ReadBuffer(pred, &bits).ok());
  EXPECT_EQ(bits, (std::vector<uint8_t>{0, 1, 1, 1}));
  PJRT_Buffer* const s4 = MakeBuffer<int8_t>(client_.get(), device(), kS4, {-8, 7, 0x1f, 0x0f}, {4});
  std::vector<int8_t> values;
  EXPECT_TRUE(ReadBuffer(s4, &values).ok());
  EXPECT_EQ(values, (std::vector<int8_t>{-8, 7, -1, -1}));
  Destroy(pred);
  Destroy(s4);
}

TEST_F(BufferTest, StridesOfTheHostArrayMayBeAny) {
  const std::vector<int32_t> values = {0, 1, 2, 3, 4, 5};
  const std::vector<int64_t> dims = {2, 3};
  struct Case {
    size_t first;
    std::vector<int64_t> strides;
    std::vector<int32_t> expected;
  };
  const Case cases[] = {
      {0, {12, 4}, {0, 1, 2, 3, 4, 5}},   {0, {4, 8}, {0, 2, 4, 1, 3, 5}},  // column-major
      {5, {-12, -4}, {5, 4, 3, 2, 1, 0}},                                   // backward
      {1, {0, 4}, {1, 2, 3, 1, 2, 3}},                                      // broadcast
      {3, {0, 0}, {3, 3, 3, 3, 3, 3}},
  };
  for (const Case& c : cases) {
    auto args = HostArgs(values.data() + c.first, kS32, dims);
    args.byte_strides = c.strides.data();
    args.num_byte_strides = c.strides.size();
    ASSERT_CALL_OK(Api().PJRT_Client_BufferFromHostBuffer(&args));
    EXPECT_TRUE(Await(args.done_with_host_buffer).ok());
    std::vector<int32_t> read;
    EXPECT_TRUE(ReadBuffer(args.buffer, &read).ok());
    EXPECT_EQ(read, c.expected);
    Destroy(args.buffer);
  }
}

TEST_F(BufferTest, IsReadInTheOrderOfTheHostLayout) {
  PJRT_Buffer* const buffer = MakeBuffer<int32_t>(client_.get(), device(), kS32, {0, 1, 2, 3, 4, 5}, {2, 3});
  const int64_t order[] = {0, 1};
  auto layout = Zeroed<PJRT_Buffer_MemoryLayout>();
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.minor_to_major = order;
  layout.tiled.minor_to_major_size = 2;
  std::vector<int32_t> read(6);
  auto args = Garbage<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = buffer;
  args.host_layout = &layout;
  args.dst = read.data();
  args.dst_size = 24;
  ASSERT_CALL_OK(Api().PJRT_Buffer_ToHostBuffer(&args));
  EXPECT_TRUE(Await(args.event).ok());
  EXPECT_EQ(read, (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
  args.dst_size = 23;
  EXPECT_EQ(Take(Api().PJRT_Buffer_ToHostBuffer(&args)).code, kInvalidArgument);
  const int64_t twice[] = {0, 0};
  layout.tiled.minor_to_major = twice;
  args.dst_size = 24;
  EXPECT_EQ(Take(Api().PJRT_Buffer_ToHostBuffer(&args)).code, kInvalidArgument);
  layout.type = PJRT_Buffer_MemoryLayout_Type_Strides;
  EXPECT_EQ(Take(Api().PJRT_Buffer_ToHostBuffer(&args)).code, kInvalidArgument);
  Destroy(buffer);
}

TEST_F(BufferTest, EmptyArraysAndScalars) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{0}, {3, 0, 2}}) {
    PJRT_Buffer* const buffer = MakeRawBuffer(client_.get(), device(), kF32, nullptr, dims);
    char nothing = 0;
    auto args = Garbage<PJRT_Buffer_ToHostBuffer_Args>();
    args.src = buffer;
    args.host_layout = nullptr;
    args.dst = &nothing;
    args.dst_size = 0;
    ASSERT_CALL_OK(Api().PJRT_Buffer_ToHostBuffer(&args));
    EXPECT_TRUE(Await(args.event).ok());
    Destroy(buffer);
  }
  PJRT_Buffer* const scalar = MakeBuffer<float>(client_.get(), device(), kF32, {2.5F}, {});
  std::vector<float> read;
  EXPECT_TRUE(ReadBuffer(scalar, &read).ok());
  EXPECT_EQ(read, std::vector<float>{2.5F});
  Destroy(scalar);
}

TEST_F(BufferTest, BorrowedArrayIsReadInPlaceUntilTheBufferEnds) {
  std::vector<float> values(1 << 16, 1.5F);
  const std::vector<int64_t> dims = {1 << 16};
  auto args = HostArgs(values.data(), kF32, dims);
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
  ASSERT_CALL_OK(Api().PJRT_Client_BufferFromHostBuffer(&args));
  auto ready = Garbage<PJRT_Event_IsReady_Args>();
  ready.event = args.done_with_host_buffer;
  EXPECT_CALL_OK(Api().PJRT_Event_IsReady(&ready));
  EXPECT_FALSE(ready.is_ready);
  auto pointer = Garbage<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>();
  pointer.buffer = args.buffer;
  EXPECT_CALL_OK(Api().PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&pointer));
  EXPECT_EQ(pointer.device_memory_ptr, static_cast<void*>(values.data()));
  Destroy(args.buffer);
  EXPECT_TRUE(Await(args.done_with_host_buffer).ok());
}

TEST_F(BufferTest, ExternalReferencesAreCounted) {
  PJRT_Buffer* const buffer = MakeBuffer<float>(client_.get(), device(), kF32, {1}, {1});
  auto up = Garbage<PJRT_Buffer_IncreaseExternalReferenceCount_Args>();
  auto down = Garbage<PJRT_Buffer_DecreaseExternalReferenceCount_Args>();
  up.buffer = down.buffer = buffer;
  EXPECT_EQ(Take(Api().PJRT_Buffer_DecreaseExternalReferenceCount(&down)).code, kInvalidArgument);
  EXPECT_CALL_OK(Api().PJRT_Buffer_IncreaseExternalReferenceCount(&up));
  EXPECT_CALL_OK(Api().PJRT_Buffer_DecreaseExternalReferenceCount(&down));
  EXPECT_EQ(Take(Api().PJRT_Buffer_DecreaseExternalReferenceCount(&down)).code, kInvalidArgument);
  Destroy(buffer);
}

// What DLPack hands over: an array of someone else, who is told when it is free.
TEST_F(BufferTest, AViewIsTheArrayOrACopyInTheOrderAndAlignmentOfPrograms) {
  alignas(64) float values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int released = 0;
  const std::vector<int64_t> dims = {2, 3};
  const auto view = [&](float* data, std::vector<int64_t> minor_to_major) {
    auto layout = Zeroed<PJRT_Buffer_MemoryLayout>();
    layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
    layout.tiled.struct_size = sizeof(layout.tiled);
    layout.tiled.minor_to_major = minor_to_major.data();
    layout.tiled.minor_to_major_size = minor_to_major.size();
    auto args = Garbage<PJRT_Client_CreateViewOfDeviceBuffer_Args>();
    args.client = client_.get();
    args.device_buffer_ptr = data;
    args.dims = dims.data();
    args.num_dims = dims.size();
    args.element_type = static_cast<PJRT_Buffer_Type>(kF32);
    args.layout = &layout;
    args.device = device();
    args.memory = nullptr;
    args.stream = 0;
    args.on_delete_callback = [](void*, void* count) { ++*static_cast<int*>(count); };
    args.on_delete_callback_arg = &released;
    EXPECT_CALL_OK(Api().PJRT_Client_CreateViewOfDeviceBuffer(&args));
    return args.buffer;
  };
  std::vector<float> read;
  PJRT_Buffer* const in_place = view(values, {1, 0});
  EXPECT_TRUE(ReadBuffer(in_place, &read).ok());
  EXPECT_EQ(read, (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(released, 0);
  auto pointer = Garbage<PJRT_Buffer_UnsafePointer_Args>();
  pointer.buffer = in_place;
  EXPECT_CALL_OK(Api().PJRT_Buffer_UnsafePointer(&pointer));
  EXPECT_EQ(pointer.buffer_pointer, reinterpret_cast<uintptr_t>(values));
  Destroy(in_place);
  EXPECT_EQ(released, 1);
  PJRT_Buffer* const by_columns = view(values, {0, 1});
  EXPECT_EQ(released, 2);
  // Read in the layout of the buffer.
  EXPECT_TRUE(ReadBuffer(by_columns, &read).ok());
  EXPECT_EQ(read, (std::vector<float>{0, 1, 2, 3, 4, 5}));
  Destroy(by_columns);
  PJRT_Buffer* const unaligned = view(values + 1, {1, 0});
  EXPECT_EQ(released, 3);
  EXPECT_TRUE(ReadBuffer(unaligned, &read).ok());
  EXPECT_EQ(read, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  Destroy(unaligned);
  EXPECT_EQ(released, 3);
}

TEST_F(BufferTest, DeletedBufferAnswersWithErrors) {
  PJRT_Buffer* const buffer = MakeBuffer<float>(client_.get(), device(), kF32, {1}, {1});
  auto args = Garbage<PJRT_Buffer_Delete_Args>();
  args.buffer = buffer;
  EXPECT_CALL_OK(Api().PJRT_Buffer_Delete(&args));
  EXPECT_CALL_OK(Api().PJRT_Buffer_Delete(&args));
  EXPECT_TRUE(IsDeleted(buffer));
  std::string bytes;
  EXPECT_EQ(ReadRawBuffer(buffer, &bytes).code, kInvalidArgument);
  auto ready = Garbage<PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = buffer;
  ASSERT_CALL_OK(Api().PJRT_Buffer_ReadyEvent(&ready));
  EXPECT_EQ(Await(ready.event).code, kInvalidArgument);
  Destroy(buffer);
}

TEST_F(BufferTest, CopiesGoToOtherDevicesAndMemories) {
  PJRT_Buffer* const buffer = MakeBuffer<float>(client_.get(), device(), kF32, {1, 2}, {2});
  auto to_device = Garbage<PJRT_Buffer_CopyToDevice_Args>();
  to_device.buffer = buffer;
  to_device.dst_device = device();
  EXPECT_EQ(Take(Api().PJRT_Buffer_CopyToDevice(&to_device)).code, kInvalidArgument);
  to_device.dst_device = device(1);
  ASSERT_CALL_OK(Api().PJRT_Buffer_CopyToDevice(&to_device));
  auto to_memory = Garbage<PJRT_Buffer_CopyToMemory_Args>();
  to_memory.buffer = to_device.dst_buffer;
  auto memories = Garbage<PJRT_Device_AddressableMemories_Args>();
  memories.device = device(1);
  EXPECT_CALL_OK(Api().PJRT_Device_AddressableMemories(&memories));
  ASSERT_EQ(memories.num_memories, 3U);
  to_memory.dst_memory = memories.memories[1];
  ASSERT_CALL_OK(Api().PJRT_Buffer_CopyToMemory(&to_memory));
  auto where = Garbage<PJRT_Buffer_Memory_Args>();
  where.buffer = to_memory.dst_buffer;
  EXPECT_CALL_OK(Api().PJRT_Buffer_Memory(&where));
  EXPECT_EQ(where.memory, memories.memories[1]);
  std::vector<float> read;
  EXPECT_TRUE(ReadBuffer(to_memory.dst_buffer, &read).ok());
  EXPECT_EQ(read, (std::vector<float>{1, 2}));
  for (PJRT_Buffer* b : {buffer, to_device.dst_buffer, to_memory.dst_buffer}) Destroy(b);
}

TEST_F(BufferTest, RawCopiesHaveBounds) {
  PJRT_Buffer* const buffer = MakeBuffer<int32_t>(client_.get(), device(), kS32, {1, 2, 3}, {3});
  int32_t two = 0;
  auto args = Garbage<PJRT_Buffer_CopyRawToHost_Args>();
  args.buffer = buffer;
  args.dst = &two;
  args.offset = 4;
  args.transfer_size = 4;
  ASSERT_CALL_OK(Api().PJRT_Buffer_CopyRawToHost(&args));
  EXPECT_TRUE(Await(args.event).ok());
  EXPECT_EQ(two, 2);
  for (const auto& [offset, size] : {std::pair<int64_t, int64_t>{-1, 4}, {12, 1}, {0, 13}, {INT64_MAX, INT64_MAX}}) {
    args.offset = offset;
    args.transfer_size = size;
    EXPECT_EQ(Take(Api().PJRT_Buffer_CopyRawToHost(&args)).code, kInvalidArgument);
  }
  Destroy(buffer);
}

TEST_F(BufferTest, AsynchronousTransferInPieces) {
  const int64_t dims[] = {4};
  PJRT_ShapeSpec specs[2] = {Zeroed<PJRT_ShapeSpec>(), Zeroed<PJRT_ShapeSpec>()};
  for (PJRT_ShapeSpec& spec : specs) {
    spec.dims = dims;
    spec.num_dims = 1;
    spec.element_type = static_cast<PJRT_Buffer_Type>(kS32);
  }
  auto create = Garbage<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>();
  create.client = client_.get();
  create.shape_specs = specs;
  create.num_shape_specs = 2;
  create.device_layouts = nullptr;
  create.num_device_layouts = 0;
  create.memory = memory();
  ASSERT_CALL_OK(Api().PJRT_Client_CreateBuffersForAsyncHostToDevice(&create));
  auto retrieve = Garbage<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>();
  retrieve.transfer_manager = create.transfer_manager;
  retrieve.buffer_index = 0;
  ASSERT_CALL_OK(Api().PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve));
  PJRT_Buffer* const first = retrieve.buffer_out;
  EXPECT_EQ(Take(Api().PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve)).code, kFailedPrecondition);
  retrieve.buffer_index = 2;
  EXPECT_EQ(Take(Api().PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve)).code, kInvalidArgument);
  retrieve.buffer_index = 1;
  ASSERT_CALL_OK(Api().PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve));
  PJRT_Buffer* const second = retrieve.buffer_out;

  const int32_t values[] = {1, 2, 3, 4};
  auto transfer = Garbage<PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>();
  transfer.transfer_manager = create.transfer_manager;
  transfer.buffer_index = 0;
  transfer.data = values + 2;
  transfer.offset = 8;
  transfer.transfer_size = 8;
  transfer.is_last_transfer = false;
  ASSERT_CALL_OK(Api().PJRT_AsyncHostToDeviceTransferManager_TransferData(&transfer));
  Destroy(transfer.done_with_h2d_transfer);
  transfer.data = values;
  transfer.offset = 0;
  transfer.is_last_transfer = true;
  ASSERT_CALL_OK(Api().PJRT_AsyncHostToDeviceTransferManager_TransferData(&transfer));
  Destroy(transfer.done_with_h2d_transfer);
  std::vector<int32_t> read;
  EXPECT_TRUE(ReadBuffer(first, &read).ok());
  EXPECT_EQ(read, (std::vector<int32_t>{1, 2, 3, 4}));

  // The second never arrives.
  auto destroy = Garbage<PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>();
  destroy.transfer_manager = create.transfer_manager;
  EXPECT_CALL_OK(Api().PJRT_AsyncHostToDeviceTransferManager_Destroy(&destroy));
  EXPECT_EQ(ReadBuffer(second, &read).code, kAborted);
  Destroy(first);
  Destroy(second);
}

TEST_F(BufferTest, AliasBufferGetsTheValueOfAnother) {
  PJRT_Buffer* const buffer = MakeBuffer<float>(client_.get(), device(), kF32, {1, 2}, {2});
  const int64_t dims[] = {2};
  auto create = Garbage<PJRT_Client_CreateAliasBuffer_Args>();
  create.client = client_.get();
  create.memory = memory();
  create.shape_dims = dims;
  create.shape_num_dims = 1;
  create.shape_element_type = static_cast<PJRT_Buffer_Type>(kF32);
  create.shape_layout = nullptr;
  ASSERT_CALL_OK(Api().PJRT_Client_CreateAliasBuffer(&create));
  auto fulfill = Zeroed<PJRT_Client_FulfillAliasBuffer_Args>();
  fulfill.buffer = buffer;
  fulfill.fulfill_alias_buffer_cb = create.fulfill_alias_buffer_cb;
  ASSERT_CALL_OK(Api().PJRT_Client_FulfillAliasBuffer(&fulfill));
  std::vector<float> read;
  EXPECT_TRUE(ReadBuffer(create.alias_buffer, &read).ok());
  EXPECT_EQ(read, (std::vector<float>{1, 2}));
  Destroy(create.alias_buffer);
  Destroy(buffer);
}

// A callback that counts, and destroys the event that it is called for.
struct Counted {
  PJRT_Event* event;
  std::atomic<int> calls{0};
  int code = -1;
};
void Count(PJRT_Error* error, void* user_arg) {
  auto* const counted = static_cast<Counted*>(user_arg);
  counted->code = Take(error).code;
  Destroy(counted->event);
  ++counted->calls;
}

TEST(EventTest, CallbackMayDestroyItsEvent) {
  for (const bool set_first : {false, true}) {
    auto create = Garbage<PJRT_Event_Create_Args>();
    ASSERT_CALL_OK(Api().PJRT_Event_Create(&create));
    auto another = Garbage<PJRT_Event_Create_Args>();
    ASSERT_CALL_OK(Api().PJRT_Event_Create(&another));
    Destroy(another.event);
    auto set = Zeroed<PJRT_Event_Set_Args>();
    set.event = create.event;
    set.error_code = static_cast<PJRT_Error_Code>(kAborted);
    Counted counted{create.event};
    auto on_ready = Garbage<PJRT_Event_OnReady_Args>();
    on_ready.event = create.event;
    on_ready.callback = Count;
    on_ready.user_arg = &counted;
    if (set_first) {
      EXPECT_CALL_OK(Api().PJRT_Event_Set(&set));
    }
    EXPECT_CALL_OK(Api().PJRT_Event_OnReady(&on_ready));
    if (!set_first) {
      EXPECT_EQ(counted.calls, 0);
      std::thread([&] { EXPECT_CALL_OK(Api().PJRT_Event_Set(&set)); }).join();
    }
    EXPECT_EQ(counted.calls, 1);
    EXPECT_EQ(counted.code, kAborted);
  }
}

}  // namespace
}  // namespace hlokit::pjrt_test
