// SPDX-License-Identifier: Apache-2.0
// A record of the calls of a client, for reports of defects and for tests: HLOKIT_PJRT_TRACE names the file. It has all
// calls of functions of the table, and of its extensions but the profiler's and that for estimates, one JSON object a
// line, in the order in which the calls return:
//
//   {"call": "PJRT_Buffer_ReadyEvent", "thread": 1, "size": 32, "in": {"buffer": "buffer:7"}, "out": {"event":
//   "event:9"}}
//
// "size" is the size of the struct that the caller gives; handles are numbered as they appear; a call that fails has an
// "error". Lines of PJRT_Event_OnReady and PJRT_Event_Set, which run callbacks, are written before the call and do not
// say how it ended. Arrays are {"bytes": N, "hex": "..."}, or with a digest in place of the bytes if they are
// larger than HLOKIT_PJRT_TRACE_DATA says (1024; "all": no limit). What a call writes to the host later has a line of
// its own, {"transfer": 3, "data": ...}, and so has a callback of PJRT_Event_OnReady.
//
// Calls of a caller's other functions have no lines. Of the send and receive callbacks of a run there are the counts,
// in the line of PJRT_LoadedExecutable_Execute, and the calls that they make: those of PJRT_CopyToDeviceStream_AddChunk
// have the values that the program receives, and calls on the thread of the device say "in_callback": true. The values
// that it sends are not recorded. tests/pjrt/pjrt_replay.cc makes the calls of a record again, without those.
#ifndef HLOKIT_PJRT_TRACE_RECORDER_H_
#define HLOKIT_PJRT_TRACE_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/types/span.h"
#include "ir/core/json_writer.h"
#include "ir/core/text_writer.h"
#include "pjrt/trace/fields.h"

namespace hlokit::pjrt {

class Recorder {
 public:
  // Returns the recorder of this process; null if the environment names no file, or it cannot be written.
  static Recorder* Get();

  void WriteLine(const std::string& line);
  // Returns the number of a handle, a new one for one that is not known; 0 for null.
  int64_t NumberOf(const void* handle);
  // Returns the number of a handle, and forgets the handle: another one may get its address.
  int64_t Forget(const void* handle);
  // Largest array whose bytes are written.
  size_t max_bytes() const { return max_bytes_; }

  // What a call writes to the host when it is available. NewTransfer is called within the call, and returns 0 if calls
  // are not recorded.
  static int64_t NewTransfer();
  static void EndTransfer(int64_t transfer, const void* data, size_t size);
  // Returns the transfer of the call of this thread, and forgets it; 0: none.
  static int64_t TakeTransfer();

 private:
  Recorder(std::FILE* file, size_t max_bytes) : file_(file), max_bytes_(max_bytes) {}

  std::FILE* const file_;
  const size_t max_bytes_;
  std::mutex mutex_;
  std::map<const void*, int64_t> numbers_;
  int64_t last_number_ = 0;
  int64_t last_transfer_ = 0;
};

// The visitor that writes the fields of one call.
class CallRecord {
 public:
  CallRecord(Recorder* recorder, std::string_view name, const void* args, size_t struct_size);
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

  // Begins the second visit.
  void BeginResults();
  // Writes the line, before the call or after it.
  void FinishBefore();
  void Finish(const PJRT_Error* error);

  template <typename T>
  void In(const char* name, T& field) {
    if (!results_ && Has(field)) Write(name, field);
  }
  template <typename T>
  void Out(const char* name, T& field) {
    if (results_ && Has(field)) Write(name, field);
  }
  template <typename T>
  void Last(const char* name, T*& field) {
    if (results_ || !Has(field)) return;
    ForgetParts(field);
    WriteHandle(name, kHandleName<std::remove_const_t<T>>, recorder_->Forget(field));
  }
  template <typename T>
  void Noted(const char* name, T& field) {
    Out(name, field);
  }
  void InText(const char* name, const char*& text, size_t& size) {
    if (!results_ && Has(text) && Has(size)) WriteText(name, text, size);
  }
  void OutText(const char* name, const char*& text, size_t& size) {
    if (results_ && Has(text) && Has(size)) WriteText(name, text, size);
  }
  void NotedText(const char* name, const char*& text, size_t& size) { OutText(name, text, size); }
  void NotedNamed(const char* name, const PJRT_NamedValue*& values, size_t& size) { OutNamed(name, values, size); }
  template <typename Holder>
  void Held(const char* name, const char*& text, size_t& size, Holder*&, void (*&)(Holder*)) {
    OutText(name, text, size);
  }
  template <typename Holder>
  void Release(Holder*&, void (*&)(Holder*)) {}
  template <typename T>
  void InList(const char* name, T*& list, size_t& size) {
    if (!results_ && Has(list) && Has(size)) WriteList(name, list, size);
  }
  template <typename T>
  void OutList(const char* name, T*& list, size_t& size) {
    if (results_ && Has(list) && Has(size)) WriteList(name, list, size);
  }
  void OutInto(const char* name, int*& list, size_t& size) { OutList(name, list, size); }
  void InNamed(const char* name, const PJRT_NamedValue*& values, size_t& size) {
    if (!results_ && Has(values) && Has(size)) WriteNamed(name, values, size);
  }
  void OutNamed(const char* name, const PJRT_NamedValue*& values, size_t& size) {
    if (results_ && Has(values) && Has(size)) WriteNamed(name, values, size);
  }
  template <typename Layout>
  void InLayout(const char* name, Layout*& layout) {
    if (!results_ && Has(layout)) WriteLayout(name, layout);
  }
  void InProgram(const char* name, const PJRT_Program*& program);
  void OutProgram(const char* name, PJRT_Program*& program);
  template <typename Size>
  void InBytes(const char* name, const void*& data, Size& size) {
    // The function rejects a negative size, which is signed in some structures.
    if (!results_ && Has(data) && Has(size))
      WriteBytes(name, size < Size{0} ? nullptr : data, static_cast<size_t>(size));
  }
  void InArray(const char* name, const void*& data, const HostArrayFields& array);
  void InView(const char* name, PJRT_Client_CreateViewOfDeviceBuffer_Args& args);
  void InChunk(const char* name, PJRT_Chunk*& chunk);
  void InShapes(const char* name, PJRT_ShapeSpec*& shapes, size_t& size);
  void InExecuteOptions(const char* name, PJRT_ExecuteOptions*& options);
  void InHandleLists(const char* name, PJRT_Buffer* const* const*& lists, size_t& devices, size_t& size);
  void OutRun(PJRT_LoadedExecutable_Execute_Args& args);
  template <typename Size>
  void OutHostMemory(const char* name, void*& memory, Size& size, PJRT_Event*& event) {
    WriteHostMemory(name, memory, static_cast<int64_t>(size), event);
  }
  void OutStrings(const char* name, const char* const*& texts, const size_t*& sizes, size_t& count);
  void OutDims(const char* name, const int64_t*& dims, const size_t*& ranks, size_t& count);
  void OutLogicalIds(const char* name, PJRT_LogicalDeviceIds*& ids, size_t& count);
  // Replaces the callback by one that is recorded, until RestoreCallback.
  void Callback(PJRT_Event_OnReady_Args& args);
  // Gives the caller its own back. `failed`: the event does not call it.
  void RestoreCallback(PJRT_Event_OnReady_Args& args, bool failed);
  template <typename T>
  void Address(const char*, T&) {}
  template <typename T>
  void AddressIn(const char*, T&) {}
  template <typename T>
  void Nothing(T&) {}

 private:
  // Returns true if the caller's struct has the field.
  template <typename T>
  bool Has(const T& field) const {
    return static_cast<size_t>(reinterpret_cast<const char*>(&field) - args_) + sizeof(T) <= struct_size_;
  }
  template <typename T>
  void WriteValue(const T& value) {
    if constexpr (std::is_pointer_v<T>) {
      AppendHandle(kHandleName<std::remove_const_t<std::remove_pointer_t<T>>>, recorder_->NumberOf(value));
    } else if constexpr (std::is_enum_v<T>) {
      json_.Value(static_cast<int64_t>(value));
    } else {
      json_.Value(value);
    }
  }
  template <typename T>
  void Write(const char* name, const T& value) {
    json_.Key(name);
    WriteValue(value);
  }
  template <typename T>
  void WriteList(const char* name, T* list, size_t size) {
    json_.Key(name);
    if (list == nullptr) {
      json_.Null();
      return;
    }
    json_.BeginArray();
    for (size_t i = 0; i < size; ++i) WriteValue(list[i]);
    json_.EndArray();
  }
  // Forgets what belongs to an object that a call ends.
  void ForgetParts(const PJRT_Client* client);
  void ForgetParts(const PJRT_TopologyDescription* topology);
  void ForgetParts(const void*) {}
  void AppendHandle(const char* kind, int64_t number);
  void WriteHandle(const char* name, const char* kind, int64_t number);
  void WriteText(const char* name, const char* text, size_t size);
  void WriteNamed(const char* name, const PJRT_NamedValue* values, size_t size);
  void WriteLayout(const char* name, const PJRT_Buffer_MemoryLayout* layout);
  void WriteBytes(const char* name, const void* data, size_t size);
  void WriteHostMemory(const char* name, const void* memory, int64_t size, PJRT_Event*& event);

  Recorder* const recorder_;
  const char* const args_;
  const size_t struct_size_;
  bool results_ = false;
  struct RecordedCallback;
  RecordedCallback* callback_ = nullptr;  // in place of those of the caller
  PJRT_Event_OnReadyCallback caller_callback_ = nullptr;
  void* caller_user_arg_ = nullptr;
  std::string line_;
  TextWriter out_{&line_};
  JsonWriter json_{&out_, JsonLayout::kSpaced, JsonInvalidUtf8::kEscape};
};

// Calls a function of the table, and records the call if calls are recorded.
template <typename Args, typename Function>
auto CallRecorded(std::string_view name, Args* args, Function* function) -> decltype(function(args)) {
  Recorder* const recorder = Recorder::Get();
  if (recorder == nullptr || args == nullptr) return function(args);
  CallRecord record(recorder, name, args, args->struct_size);
  VisitFields(record, *args);
  // Callbacks make calls, whose lines follow, within these two, which return nothing.
  if constexpr (std::is_same_v<Args, PJRT_Event_OnReady_Args>) {
    record.FinishBefore();
    PJRT_Error* const error = function(args);
    record.RestoreCallback(*args, error != nullptr);
    return error;
  } else if constexpr (std::is_same_v<Args, PJRT_Event_Set_Args>) {
    record.FinishBefore();
    return function(args);
  } else if constexpr (std::is_void_v<decltype(function(args))>) {
    function(args);
    record.BeginResults();
    VisitFields(record, *args);
    record.Finish(nullptr);
  } else {
    PJRT_Error* const error = function(args);
    record.BeginResults();
    if (error == nullptr) VisitFields(record, *args);
    record.Finish(error);
    return error;
  }
}

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_TRACE_RECORDER_H_
