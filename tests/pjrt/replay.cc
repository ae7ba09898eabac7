// SPDX-License-Identifier: Apache-2.0
#include "tests/pjrt/replay.h"

#include <algorithm>
#include <chrono>

#include "ir/digest/digest.h"

namespace hlokit::pjrt_test {
namespace {

// Makes the call of a line with the arguments of one function.
template <typename Args, typename Function>
void Call(ReplayedCall& call, const JsonValue& line, Function* function,
          const std::function<void(PJRT_Error*)>& after) {
  Args args = {};
  args.struct_size = sizeof(args);
  if (const JsonValue* size = line.Find("size")) args.struct_size = std::strtoull(size->text.c_str(), nullptr, 10);
  pjrt::VisitFields(call, args);
  if (call.skipped() || function == nullptr) return;
  PJRT_Error* error = nullptr;
  if constexpr (std::is_void_v<decltype(function(&args))>) {
    function(&args);
  } else {
    error = function(&args);
  }
  call.BeginResults();
  if (error == nullptr) pjrt::VisitFields(call, args);
  after(error);
  call.End();
}

// Returns the extension of a type, or null.
template <typename Extension>
const Extension* FindExtension(const PJRT_Api* api, PJRT_Extension_Type type) {
  for (const PJRT_Extension_Base* e = api->extension_start; e != nullptr; e = e->next) {
    if (e->type == type) return reinterpret_cast<const Extension*>(e);
  }
  return nullptr;
}

using Caller = std::function<void(const PJRT_Api*, ReplayedCall&, const JsonValue&,
                                  const std::function<void(PJRT_Error*)>& after)>;

const std::map<std::string, Caller, std::less<>>& Callers() {
  static const auto* const callers = [] {
    auto* const map = new std::map<std::string, Caller, std::less<>>();
#define PJRT_FUNCTION(kind, name, size, last_field, handle)                                  \
  (*map)["PJRT_" #name] = [](const PJRT_Api* api, ReplayedCall& call, const JsonValue& line, \
                             const std::function<void(PJRT_Error*)>& after) {                \
    Call<PJRT_##name##_Args>(call, line, api->PJRT_##name, after);                           \
  };
#include "pjrt/c_api/functions.def"
#define HLOKIT_EXTENSION_FUNCTION(extension, name)                                                               \
  (*map)["PJRT_" #name] = [](const PJRT_Api* api, ReplayedCall& call, const JsonValue& line,                     \
                             const std::function<void(PJRT_Error*)>& after) {                                    \
    const auto* const found = FindExtension<PJRT_##extension##_Extension>(api, PJRT_Extension_Type_##extension); \
    if (found != nullptr) Call<PJRT_##name##_Args>(call, line, found->PJRT_##name, after);                       \
  };
    HLOKIT_EXTENSION_FUNCTION(Layouts, Layouts_MemoryLayout_Destroy)
    HLOKIT_EXTENSION_FUNCTION(Layouts, Layouts_MemoryLayout_Serialize)
    HLOKIT_EXTENSION_FUNCTION(Layouts, Layouts_PJRT_Client_GetDefaultLayout)
    HLOKIT_EXTENSION_FUNCTION(Layouts, Layouts_PJRT_Buffer_MemoryLayout)
    HLOKIT_EXTENSION_FUNCTION(Layouts, Layouts_PJRT_Topology_GetDefaultLayout)
    HLOKIT_EXTENSION_FUNCTION(Layouts, Layouts_PJRT_Executable_GetOutputLayouts)
    HLOKIT_EXTENSION_FUNCTION(Layouts, Layouts_PJRT_Executable_GetParameterLayouts)
    HLOKIT_EXTENSION_FUNCTION(Shardings, Shardings_PJRT_Executable_ParameterShardings)
    HLOKIT_EXTENSION_FUNCTION(Shardings, Shardings_PJRT_Executable_OutputShardings)
    HLOKIT_EXTENSION_FUNCTION(MemoryDescriptions, DeviceDescription_MemoryDescriptions)
    HLOKIT_EXTENSION_FUNCTION(MemoryDescriptions, MemoryDescription_Kind)
#undef HLOKIT_EXTENSION_FUNCTION
    return map;
  }();
  return *callers;
}

// Returns true for functions whose arguments are functions of the caller's program, or what they are given.
bool NeedsCallback(std::string_view name) {
  return name.starts_with("PJRT_CopyToDeviceStream_") || name.starts_with("PJRT_Callback_") ||
         name.starts_with("PJRT_FFI_");
}

// Adds the handles of a value, "event:7", to the set, and other texts, which are no handles.
void NoteHandles(const JsonValue& value, std::set<std::string>* handles) {
  std::vector<const JsonValue*> left = {&value};
  while (!left.empty()) {
    const JsonValue* const next = left.back();
    left.pop_back();
    if (next->kind == JsonValue::Kind::kString) handles->insert(next->text);
    for (const JsonValue& element : next->elements) left.push_back(&element);
  }
}

}  // namespace

bool Replay::Line(std::string_view text) {
  ++line_;
  const std::optional<JsonValue> line = ParseJson(text);
  if (!line || line->kind != JsonValue::Kind::kObject) return false;
  if (line->Find("callback") != nullptr) {  // of the caller's program
    NoteHandles(*line, &unmade_);
    return true;
  }
  if (const JsonValue* transfer = line->Find("transfer")) {
    const JsonValue* const data = line->Find("data");
    if (data != nullptr && !CompareTransfer(transfer->text, *data, false)) pending_[transfer->text] = *data;
    return true;
  }
  const JsonValue* const name = line->Find("call");
  if (name == nullptr) return false;
  if (name->text == "PJRT_Event_Await" && Await(*line)) return true;
  if (name->text == "PJRT_FFI_Register_Handler") {
    const JsonValue* const in = line->Find("in");
    const JsonValue* const target = in == nullptr ? nullptr : in->Find("target_name");
    if (target != nullptr && !target->text.empty()) targets_.push_back(target->text);
  }
  // Programs with custom calls of the caller.
  const auto named = [&](const std::string& target) { return text.find(target) != text.npos; };
  const bool has_handler = name->text.ends_with("Compile") && std::any_of(targets_.begin(), targets_.end(), named);
  if (has_handler || line->Find("in_callback") != nullptr || NeedsCallback(name->text)) {
    LeaveOut(name->text, *line);
    return true;
  }
  const auto caller = Callers().find(name->text);
  if (caller == Callers().end()) {
    differences_.push_back("line " + std::to_string(line_) + ": " + name->text + ": the function is not known");
    return true;
  }
  ReplayedCall call(this, *line);
  const JsonValue* const error = line->Find("error");
  bool called = false;
  caller->second(api_, call, *line, [&](PJRT_Error* found) {
    called = true;
    std::string message;
    if (found != nullptr) {
      PJRT_Error_Message_Args args = {};
      args.struct_size = sizeof(args);
      args.error = found;
      api_->PJRT_Error_Message(&args);
      message = std::string(args.message, args.message_size);
      if (const JsonValue* handle = error == nullptr ? nullptr : error->Find("handle")) {
        handles_[handle->text] = found;
      }
    }
    if (line->Find("out") == nullptr && error == nullptr) return;  // written before the call
    const JsonValue* const expected = error == nullptr ? nullptr : error->Find("message");
    if ((expected == nullptr) != (found == nullptr)) {
      differences_.push_back("line " + std::to_string(line_) + ": " + name->text + ": expected " +
                             (expected == nullptr ? "success" : "the error `" + expected->text + "`") + ", found " +
                             (found == nullptr ? "success" : "the error `" + message + "`"));
    } else if (expected != nullptr && expected->text != message) {
      differences_.push_back("line " + std::to_string(line_) + ": " + name->text + ": expected the error `" +
                             expected->text + "`, found `" + message + "`");
    }
  });
  if (called) {
    ++calls_;
    return true;
  }
  if (!call.skipped()) {
    differences_.push_back("line " + std::to_string(line_) + ": " + name->text + ": the plugin has no such function");
  } else if (!call.unknown_handle().empty()) {
    differences_.push_back("line " + std::to_string(line_) + ": " + name->text + ": no call has returned " +
                           call.unknown_handle());
  }
  LeaveOut(name->text, *line);
  return true;
}

void Replay::LeaveOut(const std::string& name, const JsonValue& line) {
  ++skipped_[name];
  for (const char* const part : {"out", "error"}) {
    if (const JsonValue* returned = line.Find(part)) NoteHandles(*returned, &unmade_);
  }
}

void Replay::Transfer::WaitFor(std::shared_ptr<Transfer> transfer, PJRT_Event* event) {
  const PJRT_Api* const api = transfer->api;
  PJRT_Event_OnReady_Args ready = {};
  ready.struct_size = sizeof(ready);
  ready.event = event;
  ready.user_arg = new std::shared_ptr<Transfer>(std::move(transfer));
  ready.callback = [](PJRT_Error* error, void* arg) {
    const std::unique_ptr<std::shared_ptr<Transfer>> held(static_cast<std::shared_ptr<Transfer>*>(arg));
    Transfer& ended = **held;
    const std::lock_guard<std::mutex> lock(ended.mutex);
    if (error != nullptr) {
      PJRT_Error_Message_Args message = {};
      message.struct_size = sizeof(message);
      message.error = error;
      ended.api->PJRT_Error_Message(&message);
      ended.error = std::string(message.message, message.message_size);
      PJRT_Error_Destroy_Args destroy = {};
      destroy.struct_size = sizeof(destroy);
      destroy.error = error;
      ended.api->PJRT_Error_Destroy(&destroy);
    }
    ended.done = true;
    ended.changed.notify_all();
  };
  api->PJRT_Event_OnReady(&ready);
}

bool Replay::Await(const JsonValue& line) {
  const JsonValue *in = line.Find("in"), *error = line.Find("error");
  const JsonValue* const event = in == nullptr ? nullptr : in->Find("event");
  const auto handle = event == nullptr ? handles_.end() : handles_.find(event->text);
  if (handle == handles_.end()) return false;
  ++calls_;
  Awaited awaited = {line_, "", std::make_shared<Transfer>()};
  awaited.end->api = api_;
  if (const JsonValue* message = error == nullptr ? nullptr : error->Find("message")) awaited.expected = message->text;
  Transfer::WaitFor(awaited.end, static_cast<PJRT_Event*>(handle->second));
  if (!CompareAwaited(awaited, false)) awaited_.push_back(std::move(awaited));
  return true;
}

bool Replay::CompareAwaited(const Awaited& awaited, bool wait) {
  constexpr std::chrono::seconds kPatience(60);
  constexpr std::chrono::milliseconds kLittle(50);
  std::unique_lock<std::mutex> lock(awaited.end->mutex);
  const auto time = wait ? std::chrono::milliseconds(kPatience) : kLittle;
  if (!awaited.end->changed.wait_for(lock, time, [&] { return awaited.end->done; })) return false;
  if (awaited.expected != awaited.end->error) {
    differences_.push_back("line " + std::to_string(awaited.line) + ": PJRT_Event_Await: expected the error `" +
                           awaited.expected + "`, found `" + awaited.end->error + "`");
  }
  return true;
}

void Replay::Finish() {
  for (const Awaited& awaited : awaited_) {
    if (!CompareAwaited(awaited, true)) {
      differences_.push_back("line " + std::to_string(awaited.line) + ": PJRT_Event_Await: the event does not happen");
    }
  }
  awaited_.clear();
  for (const auto& [number, data] : pending_) {
    const auto it = transfers_.find(number);
    if (it == transfers_.end()) continue;  // the call was left out
    if (!CompareTransfer(number, data, true)) {
      differences_.push_back("transfer " + number + ": nothing was written");
    }
  }
  pending_.clear();
}

bool Replay::CompareTransfer(const std::string& number, const JsonValue& data, bool wait) {
  const auto it = transfers_.find(number);
  if (it == transfers_.end()) return false;  // its line follows
  if (!it->second->started) return true;     // the call has failed, which is a difference already
  Transfer& transfer = *it->second;
  std::unique_lock<std::mutex> lock(transfer.mutex);
  constexpr std::chrono::seconds kPatience(60);
  if (!transfer.changed.wait_for(lock, wait ? kPatience : std::chrono::seconds(0), [&] { return transfer.done; })) {
    return false;
  }
  ++arrays_;
  const std::string_view bytes(transfer.bytes.data(), transfer.bytes.size() - 1);
  const JsonValue *hex = data.Find("hex"), *digest = data.Find("digest");
  std::string found;
  constexpr char kDigits[] = "0123456789abcdef";
  for (const char c : bytes) {
    found += kDigits[static_cast<unsigned char>(c) >> 4];
    found += kDigits[static_cast<unsigned char>(c) & 15];
  }
  const bool equal =
      hex != nullptr ? found == hex->text : digest != nullptr && ToString(DigestOf(bytes)) == digest->text;
  if (!equal && !data_missing_) {
    differences_.push_back("line " + std::to_string(line_) + ": transfer " + number + ": the " +
                           std::to_string(bytes.size()) + " bytes differ" +
                           (hex != nullptr ? ": expected " + hex->text + ", found " + found : std::string()));
  }
  lock.unlock();
  transfers_.erase(it);
  return true;
}

}  // namespace hlokit::pjrt_test
