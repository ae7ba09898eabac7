// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <numeric>

#include "tests/pjrt/replay.h"

namespace hlokit::pjrt_test {
namespace {

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::strtol(std::string(hex.substr(i, 2)).c_str(), nullptr, 16)));
  }
  return bytes;
}

int64_t NumberOf(const JsonValue* value) {
  return value == nullptr ? 0 : std::strtoll(value->text.c_str(), nullptr, 10);
}

void DestroyError(const PJRT_Api* api, PJRT_Error* error) {
  PJRT_Error_Destroy_Args destroy = {};
  destroy.struct_size = sizeof(destroy);
  destroy.error = error;
  api->PJRT_Error_Destroy(&destroy);
}

// An object of `T` that lives until the call has ended.
template <typename T>
std::shared_ptr<T> Hold(std::vector<std::function<void()>>* at_end) {
  auto held = std::make_shared<T>();
  at_end->push_back([held] {});
  return held;
}

}  // namespace

ReplayedCall::ReplayedCall(Replay* replay, const JsonValue& line)
    : replay_(replay), line_(line), in_(line.Find("in")), out_(line.Find("out")) {}

void ReplayedCall::End() {
  for (const std::function<void()>& work : at_end_) work();
}

void* ReplayedCall::Handle(const JsonValue& value) {
  if (value.IsNull()) return nullptr;
  const auto it = replay_->handles_.find(value.text);
  if (it != replay_->handles_.end()) return it->second;
  skip_ = true;
  // Of an error the record may not say which call has returned it, and those of events that are awaited are not kept.
  const bool is_error = value.text.starts_with("error:");
  if (!is_error && !replay_->unmade_.contains(value.text)) unknown_handle_ = value.text;
  return nullptr;
}

void ReplayedCall::CompareTexts(const char* name, std::string_view expected, std::string_view found) {
  if (expected == found) return;
  replay_->differences_.push_back("line " + std::to_string(replay_->line_) + ": " + line_.Find("call")->text + ": " +
                                  name + ": expected `" + std::string(expected) + "`, found `" + std::string(found) +
                                  "`");
}

bool ReplayedCall::CompareSize(const char* name, const JsonValue& expected, size_t found) {
  CompareTexts(name, std::to_string(expected.elements.size()) + " elements", std::to_string(found) + " elements");
  return expected.elements.size() == found;
}

void ReplayedCall::CompareHandle(const char* name, const JsonValue& expected, void* found) {
  if (expected.IsNull() || found == nullptr) {
    CompareTexts(name, expected.IsNull() ? "null" : "a handle", found == nullptr ? "null" : "a handle");
    return;
  }
  const auto [it, added] = replay_->handles_.try_emplace(expected.text, found);
  if (!added && it->second != found) CompareTexts(name, expected.text, "another handle");
}

void ReplayedCall::InText(const char* name, const char*& text, size_t& size) {
  const JsonValue* const value = Given(name);
  if (value == nullptr || value->IsNull()) return;
  const auto again = replay_->texts_.find(value->text);
  const std::string& given = again != replay_->texts_.end() ? again->second : value->text;
  text = given.data();
  size = given.size();
}

void ReplayedCall::OutText(const char* name, const char*& text, size_t& size) {
  if (const JsonValue* value = Expected(name)) CompareTexts(name, value->text, std::string_view(text, size));
}

void ReplayedCall::OutInto(const char* name, int*& list, size_t& size) {
  if (!results_) {
    auto memory = Hold<std::vector<int>>(&at_end_);
    memory->resize(size);
    list = memory->data();
    return;
  }
  OutList(name, list, size);
}

void ReplayedCall::InNamed(const char* name, const PJRT_NamedValue*& values, size_t& size) {
  const JsonValue* const list = Given(name);
  if (list == nullptr) return;
  auto made = Hold<std::vector<PJRT_NamedValue>>(&at_end_);
  for (const JsonValue& element : list->elements) {
    PJRT_NamedValue& value = made->emplace_back();
    value.struct_size = sizeof(value);
    const JsonValue *key = element.Find("name"), *given = element.Find("value");
    if (key == nullptr || given == nullptr) continue;
    value.name = key->text.data();
    value.name_size = key->text.size();
    value.type = static_cast<PJRT_NamedValue_Type>(NumberOf(element.Find("type")));
    value.value_size = 1;
    switch (value.type) {
      case PJRT_NamedValue_kString:
        value.string_value = given->text.data();
        value.value_size = given->text.size();
        break;
      case PJRT_NamedValue_kInt64:
        value.int64_value = NumberOf(given);
        break;
      case PJRT_NamedValue_kInt64List: {
        auto numbers = Hold<std::vector<int64_t>>(&at_end_);
        for (const JsonValue& number : given->elements) numbers->push_back(NumberOf(&number));
        value.int64_array_value = numbers->data();
        value.value_size = numbers->size();
        break;
      }
      case PJRT_NamedValue_kFloat:
        value.float_value = std::strtof(given->text.c_str(), nullptr);
        break;
      case PJRT_NamedValue_kBool:
        value.bool_value = given->text == "true";
        break;
    }
  }
  values = made->data();
  size = made->size();
}

void ReplayedCall::OutNamed(const char* name, const PJRT_NamedValue*& values, size_t& size) {
  const JsonValue* const list = Expected(name);
  if (list == nullptr || !CompareSize(name, *list, size)) return;
  for (size_t i = 0; i < size; ++i) {
    const JsonValue *key = list->elements[i].Find("name"), *expected = list->elements[i].Find("value");
    if (key == nullptr || expected == nullptr) continue;
    CompareTexts(name, key->text, std::string_view(values[i].name, values[i].name_size));
    if (values[i].type == PJRT_NamedValue_kString) {
      CompareTexts(name, expected->text, std::string_view(values[i].string_value, values[i].value_size));
    } else if (values[i].type == PJRT_NamedValue_kInt64) {
      CompareTexts(name, expected->text, std::to_string(values[i].int64_value));
    }
  }
}

PJRT_Buffer_MemoryLayout* ReplayedCall::MakeLayout(const char* name) {
  const JsonValue* const value = Given(name);
  if (value == nullptr || value->IsNull()) return nullptr;
  auto layout = Hold<PJRT_Buffer_MemoryLayout>(&at_end_);
  auto numbers = Hold<std::vector<int64_t>>(&at_end_);
  layout->struct_size = offsetof(PJRT_Buffer_MemoryLayout, type) + sizeof(layout->type);
  const JsonValue* const strides = value->Find("byte_strides");
  const JsonValue* const order = strides != nullptr ? strides : value->Find("minor_to_major");
  for (size_t i = 0; order != nullptr && i < order->elements.size(); ++i) {
    numbers->push_back(NumberOf(&order->elements[i]));
  }
  if (strides != nullptr) {
    layout->type = PJRT_Buffer_MemoryLayout_Type_Strides;
    layout->strides = {sizeof(layout->strides), nullptr, numbers->data(), numbers->size()};
  } else {
    layout->type = PJRT_Buffer_MemoryLayout_Type_Tiled;
    layout->tiled = {sizeof(layout->tiled), nullptr, numbers->data(), numbers->size(), nullptr, nullptr, 0};
  }
  return layout.get();
}

void ReplayedCall::InProgram(const char* name, const PJRT_Program*& program) {
  const JsonValue* const value = Given(name);
  if (value == nullptr || value->IsNull()) return;
  const JsonValue *format = value->Find("format"), *code = value->Find("code");
  if (format == nullptr || code == nullptr) return;
  auto made = Hold<PJRT_Program>(&at_end_);
  *made = {sizeof(PJRT_Program), nullptr, const_cast<char*>(code->text.data()), code->text.size(), format->text.data(),
           format->text.size()};
  program = made.get();
}

void ReplayedCall::OutProgram(const char* name, PJRT_Program*& program) {
  if (!results_) {
    auto made = Hold<PJRT_Program>(&at_end_);
    made->struct_size = sizeof(PJRT_Program);
    if (const JsonValue* fills = Given("fills"); fills != nullptr && fills->text == "true") {
      constexpr size_t kEnough = size_t{1} << 26;
      auto code = Hold<std::string>(&at_end_);
      code->resize(kEnough);
      made->code = code->data();
      made->code_size = code->size();
    }
    program = made.get();
    return;
  }
  const JsonValue* const value = Expected(name);
  const JsonValue* const format = value == nullptr ? nullptr : value->Find("format");
  if (format != nullptr) {
    CompareTexts(name, format->text, std::string_view(program->format, program->format_size));
  }
}

void* ReplayedCall::MakeArray(const JsonValue& value, const pjrt::HostArrayFields& array) {
  if (value.IsNull()) return nullptr;
  const JsonValue* const hex = value.Find("hex");
  const auto bytes = static_cast<size_t>(NumberOf(value.Find("bytes")));
  std::string dense = hex != nullptr ? FromHex(hex->text) : std::string(bytes, '\0');
  if (hex == nullptr) replay_->data_missing_ = true;
  const size_t rank = array.num_dims;
  if (array.byte_strides == nullptr || array.num_byte_strides != rank || bytes == 0) {
    dense.resize(bytes + 1);  // a pointer for an array without elements too
    return replay_->kept_.emplace_back(std::move(dense)).data();
  }
  int64_t count = 1, low = 0, high = 0;
  for (size_t i = 0; i < rank; ++i) {
    count *= array.dims[i];
    const int64_t reach = array.byte_strides[i] * (array.dims[i] - 1);
    (reach < 0 ? low : high) += reach;
  }
  const auto element = static_cast<int64_t>(bytes) / count;
  std::string& memory = replay_->kept_.emplace_back(std::string(static_cast<size_t>(high - low + element), '\0'));
  std::vector<int64_t> index(rank, 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = -low;
    for (size_t d = 0; d < rank; ++d) at += index[d] * array.byte_strides[d];
    std::memcpy(memory.data() + at, dense.data() + i * element, static_cast<size_t>(element));
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < array.dims[d]) break;
      index[d] = 0;
    }
  }
  return memory.data() - low;
}

void ReplayedCall::InArray(const char* name, const void*& data, const pjrt::HostArrayFields& array) {
  if (const JsonValue* value = Given(name)) data = MakeArray(*value, array);
}

void ReplayedCall::InView(const char* name, PJRT_Client_CreateViewOfDeviceBuffer_Args& args) {
  if (const JsonValue* value = Given(name)) args.device_buffer_ptr = MakeArray(*value, {});
}

// Streams belong to callbacks, which are not made again.
void ReplayedCall::InChunk(const char*, PJRT_Chunk*&) { skip_ = true; }

void ReplayedCall::InShapes(const char* name, PJRT_ShapeSpec*& shapes, size_t& size) {
  const JsonValue* const list = Given(name);
  if (list == nullptr) return;
  auto made = Hold<std::vector<PJRT_ShapeSpec>>(&at_end_);
  for (const JsonValue& element : list->elements) {
    auto dims = Hold<std::vector<int64_t>>(&at_end_);
    if (const JsonValue* given = element.Find("dims")) {
      for (const JsonValue& dim : given->elements) dims->push_back(NumberOf(&dim));
    }
    made->push_back({sizeof(PJRT_ShapeSpec), nullptr, dims->data(), dims->size(),
                     static_cast<PJRT_Buffer_Type>(NumberOf(element.Find("element_type")))});
  }
  shapes = made->data();
  size = made->size();
}

void ReplayedCall::InExecuteOptions(const char* name, PJRT_ExecuteOptions*& options) {
  const JsonValue* const value = Given(name);
  if (value == nullptr || value->IsNull()) return;
  if (NumberOf(value->Find("num_send_ops")) != 0 || NumberOf(value->Find("num_recv_ops")) != 0) skip_ = true;
  auto made = Hold<PJRT_ExecuteOptions>(&at_end_);
  made->struct_size = static_cast<size_t>(NumberOf(value->Find("size")));
  made->launch_id = static_cast<int>(NumberOf(value->Find("launch_id")));
  if (const JsonValue* list = value->Find("non_donatable_input_indices")) {
    auto indices = Hold<std::vector<int64_t>>(&at_end_);
    for (const JsonValue& index : list->elements) indices->push_back(NumberOf(&index));
    made->non_donatable_input_indices = indices->data();
    made->num_non_donatable_input_indices = indices->size();
  }
  if (const JsonValue* location = value->Find("call_location")) made->call_location = location->text.c_str();
  options = made.get();
}

void ReplayedCall::InHandleLists(const char* name, PJRT_Buffer* const* const*& lists, size_t&, size_t&) {
  const JsonValue* const value = Given(name);
  if (value == nullptr || value->IsNull()) return;
  auto pointers = Hold<std::vector<PJRT_Buffer* const*>>(&at_end_);
  for (const JsonValue& of_device : value->elements) {
    auto buffers = Hold<std::vector<PJRT_Buffer*>>(&at_end_);
    for (const JsonValue& handle : of_device.elements) buffers->push_back(static_cast<PJRT_Buffer*>(Handle(handle)));
    pointers->push_back(buffers->data());
  }
  lists = pointers->data();
}

void ReplayedCall::OutRun(PJRT_LoadedExecutable_Execute_Args& args) {
  if (results_) {
    const JsonValue *lists = Expected("output_lists"), *events = Expected("device_complete_events");
    for (size_t d = 0; lists != nullptr && d < lists->elements.size(); ++d) {
      const std::vector<JsonValue>& of_device = lists->elements[d].elements;
      for (size_t i = 0; i < of_device.size(); ++i) Compare("output_lists", of_device[i], args.output_lists[d][i]);
    }
    for (size_t d = 0; events != nullptr && d < events->elements.size(); ++d) {
      Compare("device_complete_events", events->elements[d], args.device_complete_events[d]);
    }
    return;
  }
  // More than any program has, where the record does not say how many.
  size_t results = 1 << 12;
  const JsonValue* const recorded = out_ == nullptr ? nullptr : out_->Find("output_lists");
  if (recorded != nullptr && !recorded->elements.empty()) results = recorded->elements[0].elements.size();
  auto pointers = Hold<std::vector<PJRT_Buffer**>>(&at_end_);
  for (size_t d = 0; d < args.num_devices; ++d) {
    auto buffers = Hold<std::vector<PJRT_Buffer*>>(&at_end_);
    buffers->resize(results);
    pointers->push_back(buffers->data());
  }
  args.output_lists = pointers->data();
  if (const JsonValue* events = Given("events"); events != nullptr && events->text == "true") {
    auto made = Hold<std::vector<PJRT_Event*>>(&at_end_);
    made->resize(args.num_devices);
    args.device_complete_events = made->data();
  }
}

void ReplayedCall::HostMemory(const char* name, void** memory, int64_t* size, PJRT_Event*& event) {
  if (!results_) {
    const JsonValue* const value = Given(name);
    if (value == nullptr || value->IsNull()) return;
    auto transfer = std::make_shared<Replay::Transfer>();
    transfer->api = replay_->api_;
    *size = NumberOf(value);
    // A size that no array has makes the call fail before it writes.
    constexpr int64_t kMaxBytes = int64_t{1} << 36;
    transfer->bytes.assign(*size < 0 || *size > kMaxBytes ? 1 : static_cast<size_t>(*size) + 1, '\0');
    *memory = transfer->bytes.data();
    const JsonValue* const number = out_ == nullptr ? nullptr : out_->Find("transfer");
    // Memory for the case that the call fails in the record, but not here.
    replay_->transfers_[number != nullptr ? number->text : "line " + std::to_string(replay_->line_)] = transfer;
    return;
  }
  if (const JsonValue* expected = Expected("size")) CompareTexts(name, expected->text, std::to_string(*size));
  const JsonValue* const number = Expected("transfer");
  if (number == nullptr) return;
  if (const JsonValue* handle = Expected("event")) CompareHandle("event", *handle, event);
  const std::shared_ptr<Replay::Transfer>& transfer = replay_->transfers_[number->text];
  transfer->started = true;
  Replay::Transfer::WaitFor(transfer, event);
}

void ReplayedCall::OutStrings(const char* name, const char* const*& texts, const size_t*& sizes, size_t& count) {
  const JsonValue* const list = Expected(name);
  if (list == nullptr || !CompareSize(name, *list, count)) return;
  for (size_t i = 0; i < count; ++i) CompareTexts(name, list->elements[i].text, std::string_view(texts[i], sizes[i]));
}

void ReplayedCall::OutDims(const char* name, const int64_t*& dims, const size_t*& ranks, size_t& count) {
  size_t size = results_ ? std::accumulate(ranks, ranks + count, size_t{0}) : 0;
  OutList(name, dims, size);
}

void ReplayedCall::OutLogicalIds(const char* name, PJRT_LogicalDeviceIds*& ids, size_t& count) {
  const JsonValue* const list = Expected(name);
  if (list == nullptr || !CompareSize(name, *list, count)) return;
  for (size_t i = 0; i < count; ++i) {
    if (list->elements[i].elements.size() != 2) continue;
    Compare(name, list->elements[i].elements[0], ids[i].replica);
    Compare(name, list->elements[i].elements[1], ids[i].partition);
  }
}

// A callback that frees its error.
void ReplayedCall::Callback(PJRT_Event_OnReady_Args& args) {
  const JsonValue* const given = Given("callback");
  if (given == nullptr || given->text != "true") return;
  args.user_arg = const_cast<PJRT_Api*>(replay_->api_);
  args.callback = [](PJRT_Error* error, void* api) { DestroyError(static_cast<const PJRT_Api*>(api), error); };
}

}  // namespace hlokit::pjrt_test
