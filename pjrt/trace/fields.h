// SPDX-License-Identifier: Apache-2.0
// The arguments of the functions as fields, for records of calls and their replay. VisitFields calls a visitor for each
// field of a struct; fields.def has the fields. A visitor goes over a struct twice: before the call, when it handles
// what the caller gives, and after it, when it handles what the function returns. It leaves out fields that the
// caller's struct does not have.
#ifndef HLOKIT_PJRT_TRACE_FIELDS_H_
#define HLOKIT_PJRT_TRACE_FIELDS_H_

#include <type_traits>

#include "pjrt/c_api/api.h"
#include "pjrt/c_api/cross_host_args.h"
#include "pjrt/c_api/extension_args.h"
#include "pjrt/c_api/ffi_args.h"
#include "pjrt/c_api/partitioner_args.h"

namespace hlokit::pjrt {

// The word before the number of a handle, "buffer:12".
template <typename T>
constexpr const char* kHandleName = nullptr;
#define HLOKIT_HANDLE(type, name) \
  template <>                     \
  inline constexpr const char* kHandleName<type> = name
HLOKIT_HANDLE(PJRT_AsyncHostToDeviceTransferManager, "transfer_manager");
HLOKIT_HANDLE(PJRT_AsyncTrackingEvent, "tracking_event");
HLOKIT_HANDLE(PJRT_Buffer, "buffer");
HLOKIT_HANDLE(PJRT_Client, "client");
HLOKIT_HANDLE(PJRT_CopyToDeviceStream, "stream");
HLOKIT_HANDLE(PJRT_Device, "device");
HLOKIT_HANDLE(PJRT_DeviceDescription, "description");
HLOKIT_HANDLE(PJRT_Error, "error");
HLOKIT_HANDLE(PJRT_Event, "event");
HLOKIT_HANDLE(PJRT_Executable, "executable");
HLOKIT_HANDLE(PJRT_ExecuteContext, "context");
HLOKIT_HANDLE(PJRT_FulfillAliasBufferCallback, "alias");
HLOKIT_HANDLE(PJRT_LoadedExecutable, "loaded");
HLOKIT_HANDLE(PJRT_Memory, "memory");
HLOKIT_HANDLE(PJRT_TopologyDescription, "topology");
HLOKIT_HANDLE(PJRT_Layouts_MemoryLayout, "layout");
HLOKIT_HANDLE(PJRT_MemoryDescription, "memory_description");
#undef HLOKIT_HANDLE

#define IN(field) v.In(#field, a.field);
#define OUT(field) v.Out(#field, a.field);
#define LAST(field) v.Last(#field, a.field);
#define IN_TEXT(field) v.InText(#field, a.field, a.field##_size);
#define OUT_TEXT(field) v.OutText(#field, a.field, a.field##_size);
#define IN_LIST(field, count) v.InList(#field, a.field, a.count);
#define OUT_LIST(field, count) v.OutList(#field, a.field, a.count);
#define IN_NAMED(field, count) v.InNamed(#field, a.field, a.count);
#define OUT_NAMED(field, count) v.OutNamed(#field, a.field, a.count);
#define IN_LAYOUT(field) v.InLayout(#field, a.field);
#define IN_PROGRAM(field) v.InProgram(#field, a.field);
#define IN_BYTES(field, size) v.InBytes(#field, a.field, a.size);
#define OUT_STRINGS(field, sizes, count) v.OutStrings(#field, a.field, a.sizes, a.count);
#define HELD(field, holder, deleter) v.Held(#field, a.field, a.field##_size, a.holder, a.deleter);
#define NOTED(field) v.Noted(#field, a.field);
#define NOTED_TEXT(field) v.NotedText(#field, a.field, a.field##_size);
#define NOTED_NAMED(field, count) v.NotedNamed(#field, a.field, a.count);
#define ADDRESS(field) v.Address(#field, a.field);
#define ADDRESS_IN(field) v.AddressIn(#field, a.field);
#define NOTHING(field) v.Nothing(a.field);
#define NOTHING_OF(field, count) v.Nothing(a.field), v.Nothing(a.count);
#define PJRT_FIELDS(name, fields)                                        \
  template <typename Visitor>                                            \
  void VisitFields(Visitor& v, [[maybe_unused]] PJRT_##name##_Args& a) { \
    static_cast<void>(v);                                                \
    fields                                                               \
  }
#define PJRT_SPECIAL_FIELDS(name)
#include "pjrt/trace/fields.def"

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_Event_OnReady_Args& a) {
  IN(event)
  v.Callback(a);
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_Client_DefaultDeviceAssignment_Args& a) {
  IN(client)
  IN(num_replicas)
  IN(num_partitions)
  IN(default_assignment_size)
  v.OutInto("default_assignment", a.default_assignment, a.default_assignment_size);
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_Client_BufferFromHostBuffer_Args& a) {
  IN(client)
  IN(type)
  IN_LIST(dims, num_dims)
  IN_LIST(byte_strides, num_byte_strides)
  v.InArray("data", a.data, {a.type, a.dims, a.num_dims, a.byte_strides, a.num_byte_strides});
  IN(host_buffer_semantics)
  IN(device)
  IN(memory)
  IN_LAYOUT(device_layout)
  OUT(done_with_host_buffer)
  OUT(buffer)
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_Executable_OptimizedProgram_Args& a) {
  IN(executable)
  v.OutProgram("program", a.program);
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_LoadedExecutable_Execute_Args& a) {
  IN(executable)
  v.InExecuteOptions("options", a.options);
  IN(num_devices)
  IN(num_args)
  v.InHandleLists("argument_lists", a.argument_lists, a.num_devices, a.num_args);
  IN(execute_device)
  v.OutRun(a);
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_Buffer_ToHostBuffer_Args& a) {
  IN(src)
  IN_LAYOUT(host_layout)
  v.OutHostMemory("dst", a.dst, a.dst_size, a.event);
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_Buffer_CopyRawToHost_Args& a) {
  IN(buffer)
  IN(offset)
  IN(transfer_size)
  v.OutHostMemory("dst", a.dst, a.transfer_size, a.event);
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_CopyToDeviceStream_AddChunk_Args& a) {
  IN(stream)
  v.InChunk("chunk", a.chunk);
  OUT(transfer_complete)
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_Executable_OutputDimensions_Args& a) {
  IN(executable)
  OUT_LIST(dim_sizes, num_outputs)
  v.OutDims("dims", a.dims, a.dim_sizes, a.num_outputs);
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_Client_CreateViewOfDeviceBuffer_Args& a) {
  IN(client)
  IN(element_type)
  IN_LIST(dims, num_dims)
  v.InView("device_buffer_ptr", a);
  IN_LAYOUT(layout)
  IN(device)
  IN(memory)
  OUT(buffer)
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_Client_CreateBuffersForAsyncHostToDevice_Args& a) {
  IN(client)
  v.InShapes("shape_specs", a.shape_specs, a.num_shape_specs);
  v.Nothing(a.device_layouts);
  v.Nothing(a.num_device_layouts);
  IN(memory)
  OUT(transfer_manager)
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args& a) {
  IN(transfer_manager)
  IN(buffer_index)
  IN(shape_element_type)
  IN_LIST(shape_dims, shape_num_dims)
  v.InArray("data", a.data, {a.shape_element_type, a.shape_dims, a.shape_num_dims, nullptr, 0});
  IN_LAYOUT(shape_layout)
  OUT(done_with_h2d_transfer)
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_Device_GetAttributes_Args& a) {
  IN(device)
  OUT_NAMED(attributes, num_attributes)
  v.Release(a.device_attributes, a.attributes_deleter);
}

template <typename Visitor>
void VisitFields(Visitor& v, PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args& a) {
  IN(executable)
  v.OutLogicalIds("addressable_device_logical_ids", a.addressable_device_logical_ids,
                  a.num_addressable_device_logical_ids);
}

#undef IN
#undef OUT
#undef LAST
#undef IN_TEXT
#undef OUT_TEXT
#undef IN_LIST
#undef OUT_LIST
#undef IN_NAMED
#undef OUT_NAMED
#undef IN_LAYOUT
#undef IN_PROGRAM
#undef IN_BYTES
#undef OUT_STRINGS
#undef HELD
#undef NOTED
#undef NOTED_TEXT
#undef NOTED_NAMED
#undef ADDRESS
#undef ADDRESS_IN
#undef NOTHING
#undef NOTHING_OF

// An array in a caller's memory.
struct HostArrayFields {
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  const int64_t* byte_strides;  // null: dense
  size_t num_byte_strides;
};

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_TRACE_FIELDS_H_
