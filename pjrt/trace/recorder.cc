// SPDX-License-Identifier: Apache-2.0
#include "pjrt/trace/recorder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "ir/core/printable_text.h"
#include "ir/core/str_cat.h"
#include "ir/digest/digest.h"
#include "pjrt/client/buffer.h"
#include "pjrt/execution/executable.h"
#include "pjrt/execution/host_callbacks.h"
#include "pjrt/values/error.h"
#include "pjrt/values/host_array.h"

namespace hlokit::pjrt {
namespace {

// Threads are numbered as they make their first calls.
int64_t ThreadNumber() {
  static std::atomic<int64_t> threads{0};
  thread_local const int64_t number = ++threads;
  return number;
}

thread_local int64_t transfer_of_call = 0;

// Writes {"bytes": N, "hex": "..."}, or a digest.
void WriteData(JsonWriter& json, size_t max_bytes, const void* data, size_t size) {
  const std::string_view bytes(static_cast<const char*>(data), data == nullptr ? 0 : size);
  json.BeginObject().Member("bytes", bytes.size());
  if (bytes.size() <= max_bytes) {
    json.Member("hex", absl::BytesToHexString({bytes.data(), bytes.size()}));
  } else {
    json.Member("digest", ToString(DigestOf(bytes)));
  }
  json.EndObject();
}

}  // namespace

Recorder* Recorder::Get() {
  static Recorder* const recorder = []() -> Recorder* {
    const char* const path = std::getenv("HLOKIT_PJRT_TRACE");
    if (path == nullptr || *path == '\0') return nullptr;
    std::FILE* const file = std::fopen(path, "we");
    if (file == nullptr) {
      std::fprintf(stderr, "hlokit: warning: HLOKIT_PJRT_TRACE: cannot write %s: %s; calls are not recorded\n",
                   Printable(path).c_str(), std::strerror(errno));
      return nullptr;
    }
    constexpr size_t kDefaultBytes = 1024;
    size_t max_bytes = kDefaultBytes;
    if (const char* const limit = std::getenv("HLOKIT_PJRT_TRACE_DATA"); limit != nullptr) {
      if (std::string_view(limit) == "all") {
        max_bytes = SIZE_MAX;
      } else if (!absl::SimpleAtoi(limit, &max_bytes)) {
        max_bytes = kDefaultBytes;
        std::fprintf(stderr,
                     "hlokit: warning: HLOKIT_PJRT_TRACE_DATA: expected a number of bytes or `all`, found `%s`; data "
                     "of at most %zu bytes are recorded\n",
                     Printable(limit).c_str(), kDefaultBytes);
      }
    }
    return new Recorder(file, max_bytes);
  }();
  return recorder;
}

void Recorder::WriteLine(const std::string& line) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), file_);
  std::fputc('\n', file_);
  std::fflush(file_);  // what a process that ends in a crash has done
}

int64_t Recorder::NumberOf(const void* handle) {
  if (handle == nullptr) return 0;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [it, added] = numbers_.try_emplace(handle, last_number_ + 1);
  if (added) ++last_number_;
  return it->second;
}

int64_t Recorder::Forget(const void* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = numbers_.find(handle);
  if (it == numbers_.end()) return handle == nullptr ? 0 : ++last_number_;
  const int64_t number = it->second;
  numbers_.erase(it);
  return number;
}

int64_t Recorder::NewTransfer() {
  Recorder* const recorder = Get();
  if (recorder == nullptr) return 0;
  std::lock_guard<std::mutex> lock(recorder->mutex_);
  return transfer_of_call = ++recorder->last_transfer_;
}

int64_t Recorder::TakeTransfer() { return std::exchange(transfer_of_call, 0); }

void Recorder::EndTransfer(int64_t transfer, const void* data, size_t size) {
  if (transfer == 0) return;
  std::string line;
  {
    TextWriter out(&line);
    JsonWriter json(&out, JsonLayout::kSpaced);
    json.BeginObject().Member("transfer", transfer).Key("data");
    WriteData(json, Get()->max_bytes(), data, size);
    json.EndObject();
  }
  Get()->WriteLine(line);
}

CallRecord::CallRecord(Recorder* recorder, std::string_view name, const void* args, size_t struct_size)
    : recorder_(recorder), args_(static_cast<const char*>(args)), struct_size_(struct_size) {
  json_.BeginObject().Member("call", name).Member("thread", ThreadNumber()).Member("size", struct_size);
  if (HostCallbacks::IsInCallback()) json_.Member("in_callback", true);
  json_.Key("in").BeginObject();
}

void CallRecord::BeginResults() {
  json_.EndObject();
  json_.Key("out").BeginObject();
  results_ = true;
}

void CallRecord::FinishBefore() {
  json_.EndObject();
  json_.EndObject();
  out_.Flush();
  recorder_->WriteLine(line_);
}

void CallRecord::Finish(const PJRT_Error* error) {
  json_.EndObject();
  if (error != nullptr) {
    json_.Key("error").BeginObject();
    WriteHandle("handle", "error", recorder_->NumberOf(error));
    json_.Member("code", static_cast<int64_t>(error->code)).Member("message", error->message).EndObject();
  }
  json_.EndObject();
  out_.Flush();
  recorder_->WriteLine(line_);
}

void CallRecord::ForgetParts(const PJRT_Client* client) {
  if (client == nullptr) return;
  for (const PJRT_Device* device : client->device_pointers) recorder_->Forget(device);
  for (const PJRT_Memory* memory : client->memory_pointers) recorder_->Forget(memory);
  ForgetParts(client->topology.get());
  recorder_->Forget(client->topology.get());
}

void CallRecord::ForgetParts(const PJRT_TopologyDescription* topology) {
  if (topology == nullptr) return;
  for (const PJRT_DeviceDescription& description : topology->descriptions) recorder_->Forget(&description);
}

void CallRecord::AppendHandle(const char* kind, int64_t number) {
  if (number == 0) {
    json_.Null();
  } else {
    json_.Value(StrCat(kind, ":", number));
  }
}

void CallRecord::WriteHandle(const char* name, const char* kind, int64_t number) {
  json_.Key(name);
  AppendHandle(kind, number);
}

void CallRecord::WriteText(const char* name, const char* text, size_t size) {
  json_.Key(name);
  if (text == nullptr) {
    json_.Null();
  } else {
    json_.Value(std::string_view(text, size));
  }
}

void CallRecord::WriteNamed(const char* name, const PJRT_NamedValue* values, size_t size) {
  json_.Key(name).BeginArray();
  for (size_t i = 0; values != nullptr && i < size; ++i) {
    const PJRT_NamedValue& value = values[i];
    json_.BeginObject().Member("name", std::string_view(value.name, value.name_size));
    json_.Member("type", static_cast<int64_t>(value.type)).Key("value");
    switch (value.type) {
      case PJRT_NamedValue_kString:
        json_.Value(std::string_view(value.string_value, value.value_size));
        break;
      case PJRT_NamedValue_kInt64:
        json_.Value(value.int64_value);
        break;
      case PJRT_NamedValue_kInt64List:
        json_.BeginArray();
        for (size_t k = 0; k < value.value_size; ++k) json_.Value(value.int64_array_value[k]);
        json_.EndArray();
        break;
      case PJRT_NamedValue_kFloat:
        json_.Value(StrCat(static_cast<double>(value.float_value)));
        break;
      case PJRT_NamedValue_kBool:
        json_.Value(value.bool_value);
        break;
    }
    json_.EndObject();
  }
  json_.EndArray();
}

void CallRecord::WriteLayout(const char* name, const PJRT_Buffer_MemoryLayout* layout) {
  json_.Key(name);
  if (layout == nullptr) {
    json_.Null();
    return;
  }
  json_.BeginObject();
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Strides) {
    WriteList("byte_strides", layout->strides.byte_strides, layout->strides.num_byte_strides);
  } else {
    WriteList("minor_to_major", layout->tiled.minor_to_major, layout->tiled.minor_to_major_size);
    json_.Member("tiles", layout->tiled.num_tiles);
  }
  json_.EndObject();
}

void CallRecord::WriteBytes(const char* name, const void* data, size_t size) {
  json_.Key(name);
  if (data == nullptr) {
    json_.Null();
  } else {
    WriteData(json_, recorder_->max_bytes(), data, size);
  }
}

void CallRecord::InProgram(const char* name, const PJRT_Program*& program) {
  if (results_ || !Has(program)) return;
  json_.Key(name);
  if (program == nullptr) {
    json_.Null();
    return;
  }
  json_.BeginObject();
  WriteText("format", program->format, program->format_size);
  WriteText("code", program->code, program->code_size);
  json_.EndObject();
}

void CallRecord::OutProgram(const char* name, PJRT_Program*& program) {
  if (!Has(program) || program == nullptr) return;
  // The first of the two calls asks for the size, and has no code.
  if (!results_) {
    Write("fills", program->code != nullptr);
    return;
  }
  json_.Key(name).BeginObject();
  WriteText("format", program->format, program->format_size);
  json_.Member("code_size", program->code_size);
  if (program->code != nullptr) json_.Member("digest", ToString(DigestOf(program->code, program->code_size)));
  json_.EndObject();
}

void CallRecord::InArray(const char* name, const void*& data, const HostArrayFields& array) {
  if (results_ || !Has(data)) return;
  const absl::StatusOr<BufferSpec> spec = ReadBufferSpec(array.type, array.dims, array.num_dims);
  if (data == nullptr || !spec.ok()) return WriteBytes(name, nullptr, 0);
  const std::vector<int64_t> dense = DenseStrides(spec->type, spec->dims);
  const bool strided = array.byte_strides != nullptr && array.num_byte_strides == spec->dims.size();
  if (!strided || std::equal(dense.begin(), dense.end(), array.byte_strides)) {
    return WriteBytes(name, data, static_cast<size_t>(spec->bytes));
  }
  std::string copy(static_cast<size_t>(spec->bytes), '\0');
  CopyStrided(static_cast<const std::byte*>(data), absl::MakeConstSpan(array.byte_strides, array.num_byte_strides),
              reinterpret_cast<std::byte*>(copy.data()), dense, spec->dims, BytesOf(spec->type));
  WriteBytes(name, copy.data(), copy.size());
}

void CallRecord::InView(const char* name, PJRT_Client_CreateViewOfDeviceBuffer_Args& args) {
  const void* data = args.device_buffer_ptr;
  if (results_ || !Has(args.device_buffer_ptr)) return;
  const absl::StatusOr<BufferSpec> spec = ReadBufferSpec(args.element_type, args.dims, args.num_dims);
  WriteBytes(name, spec.ok() ? data : nullptr, spec.ok() ? static_cast<size_t>(spec->bytes) : 0);
}

void CallRecord::InChunk(const char* name, PJRT_Chunk*& chunk) {
  if (results_ || !Has(chunk)) return;
  WriteBytes(name, chunk == nullptr ? nullptr : chunk->data, chunk == nullptr ? 0 : chunk->size);
}

void CallRecord::InShapes(const char* name, PJRT_ShapeSpec*& shapes, size_t& size) {
  if (results_ || !Has(shapes) || !Has(size)) return;
  json_.Key(name).BeginArray();
  for (size_t i = 0; shapes != nullptr && i < size; ++i) {
    json_.BeginObject().Member("element_type", static_cast<int64_t>(shapes[i].element_type));
    WriteList("dims", shapes[i].dims, shapes[i].num_dims);
    json_.EndObject();
  }
  json_.EndArray();
}

void CallRecord::InExecuteOptions(const char* name, PJRT_ExecuteOptions*& options) {
  if (results_ || !Has(options)) return;
  json_.Key(name);
  if (options == nullptr) {
    json_.Null();
    return;
  }
  // A struct of its own, with its own size.
  const auto has = [&](const auto& field) {
    const auto begin =
        static_cast<size_t>(reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(options));
    return begin + sizeof(field) <= options->struct_size;
  };
  json_.BeginObject().Member("size", options->struct_size);
  if (has(options->num_send_ops)) json_.Member("num_send_ops", options->num_send_ops);
  if (has(options->num_recv_ops)) json_.Member("num_recv_ops", options->num_recv_ops);
  if (has(options->launch_id)) json_.Member("launch_id", options->launch_id);
  if (has(options->num_non_donatable_input_indices)) {
    WriteList("non_donatable_input_indices", options->non_donatable_input_indices,
              options->num_non_donatable_input_indices);
  }
  if (has(options->call_location) && options->call_location != nullptr) {
    json_.Member("call_location", std::string_view(options->call_location));
  }
  json_.EndObject();
}

void CallRecord::InHandleLists(const char* name, PJRT_Buffer* const* const*& lists, size_t& devices, size_t& size) {
  if (results_ || !Has(lists)) return;
  json_.Key(name);
  if (lists == nullptr) {
    json_.Null();
    return;
  }
  json_.BeginArray();
  for (size_t d = 0; d < devices; ++d) {
    json_.BeginArray();
    for (size_t i = 0; lists[d] != nullptr && i < size; ++i) WriteValue(lists[d][i]);
    json_.EndArray();
  }
  json_.EndArray();
}

void CallRecord::OutRun(PJRT_LoadedExecutable_Execute_Args& args) {
  if (!Has(args.device_complete_events)) return;
  if (!results_) {
    Write("events", args.device_complete_events != nullptr);
    return;
  }
  const size_t count = args.executable->compiled->program.results.size();
  json_.Key("output_lists").BeginArray();
  for (size_t d = 0; d < args.num_devices; ++d) {
    json_.BeginArray();
    for (size_t i = 0; i < count; ++i) WriteValue(args.output_lists[d][i]);
    json_.EndArray();
  }
  json_.EndArray();
  if (args.device_complete_events != nullptr) {
    WriteList("device_complete_events", args.device_complete_events, args.num_devices);
  }
}

void CallRecord::WriteHostMemory(const char* name, const void* memory, int64_t size, PJRT_Event*& event) {
  if (!Has(event)) return;
  if (!results_) {
    Recorder::TakeTransfer();
    json_.Key(name);
    if (memory == nullptr) {
      json_.Null();
    } else {
      json_.Value(size);
    }
    return;
  }
  if (const int64_t transfer = Recorder::TakeTransfer(); transfer != 0) {
    json_.Member("transfer", transfer);
    Write("event", event);
  } else {
    json_.Member("size", size);
  }
}

void CallRecord::OutStrings(const char* name, const char* const*& texts, const size_t*& sizes, size_t& count) {
  if (!results_ || !Has(sizes)) return;
  json_.Key(name).BeginArray();
  for (size_t i = 0; i < count; ++i) json_.Value(std::string_view(texts[i], sizes[i]));
  json_.EndArray();
}

void CallRecord::OutDims(const char* name, const int64_t*& dims, const size_t*& ranks, size_t& count) {
  if (!results_ || !Has(ranks)) return;
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) size += ranks[i];
  WriteList(name, dims, size);
}

void CallRecord::OutLogicalIds(const char* name, PJRT_LogicalDeviceIds*& ids, size_t& count) {
  if (!results_ || !Has(count)) return;
  json_.Key(name).BeginArray();
  for (size_t i = 0; i < count; ++i) json_.BeginArray().Value(ids[i].replica).Value(ids[i].partition).EndArray();
  json_.EndArray();
}

// A caller's callback, called with a line of its own in the record.
struct CallRecord::RecordedCallback {
  PJRT_Event_OnReadyCallback callback;
  void* user_arg;
  int64_t event;

  static void Call(PJRT_Error* error, void* user_arg) {
    const std::unique_ptr<RecordedCallback> self(static_cast<RecordedCallback*>(user_arg));
    std::string line;
    {
      TextWriter out(&line);
      JsonWriter json(&out, JsonLayout::kSpaced, JsonInvalidUtf8::kEscape);
      json.BeginObject().Member("callback", "PJRT_Event_OnReady").Member("thread", ThreadNumber());
      json.Member("event", StrCat("event:", self->event));
      if (error != nullptr) {
        json.Key("error").BeginObject().Member("handle", StrCat("error:", Recorder::Get()->NumberOf(error)));
        json.Member("code", static_cast<int64_t>(error->code)).Member("message", error->message).EndObject();
      }
      json.EndObject();
    }
    Recorder::Get()->WriteLine(line);
    self->callback(error, self->user_arg);
  }
};

void CallRecord::Callback(PJRT_Event_OnReady_Args& args) {
  if (results_ || !Has(args.user_arg)) return;
  Write("callback", args.callback != nullptr);
  if (args.callback == nullptr || args.event == nullptr) return;
  caller_callback_ = args.callback;
  caller_user_arg_ = args.user_arg;
  callback_ = new RecordedCallback{args.callback, args.user_arg, recorder_->NumberOf(args.event)};
  args.callback = RecordedCallback::Call;
  args.user_arg = callback_;
}

void CallRecord::RestoreCallback(PJRT_Event_OnReady_Args& args, bool failed) {
  if (callback_ == nullptr) return;
  args.callback = caller_callback_;
  args.user_arg = caller_user_arg_;
  if (failed) delete callback_;
}

}  // namespace hlokit::pjrt
