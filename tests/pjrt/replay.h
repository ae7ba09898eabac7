// SPDX-License-Identifier: Apache-2.0
// Makes the calls of a record (pjrt/trace/recorder.h) again, one after the other, and compares what they return.
#ifndef HLOKIT_TESTS_PJRT_REPLAY_H_
#define HLOKIT_TESTS_PJRT_REPLAY_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pjrt/trace/fields.h"
#include "tests/pjrt/json_value.h"

namespace hlokit::pjrt_test {

// A plugin's functions and what calls have returned so far.
class Replay {
 public:
  explicit Replay(const PJRT_Api* api) : api_(api) {}

  // Makes the call of a line, or compares what an earlier call has written. Returns false if the line is malformed.
  bool Line(std::string_view line);

  // Compares what the calls of the last lines have written.
  void Finish();

  // What differed, or could not be done: one line each.
  const std::vector<std::string>& differences() const { return differences_; }
  int64_t calls() const { return calls_; }
  // Calls left out, by name, which cannot be made again: those of callbacks, of functions that take callbacks or what
  // they are given, and those on results of such calls. Others that cannot be made are differences.
  const std::map<std::string, int64_t>& skipped() const { return skipped_; }
  // Arrays compared by their bytes or digests, and those whose digests cannot agree: data before them were not kept.
  int64_t arrays() const { return arrays_; }

 private:
  friend class ReplayedCall;

  // Memory of the host that a call fills.
  struct Transfer {
    std::mutex mutex;
    std::condition_variable changed;
    const PJRT_Api* api = nullptr;
    bool started = false;  // the call has succeeded
    bool done = false;
    std::string bytes;
    std::string error;  // its message

    // Sets `done` when the event happens.
    static void WaitFor(std::shared_ptr<Transfer> transfer, PJRT_Event* event);
  };

  // What an event that the record waits for ends with.
  struct Awaited {
    int64_t line = 0;
    std::string expected;  // the message of the error; "": none
    std::shared_ptr<Transfer> end;
  };

  // Calls lines of which may precede that of the call that they wait for: the replay waits a little, and later again.
  bool Await(const JsonValue& line);
  // Counts a call that is left out, and notes the handles that it has returned.
  void LeaveOut(const std::string& name, const JsonValue& line);
  bool CompareAwaited(const Awaited& awaited, bool wait);
  // Compares what a transfer has written with the record. Returns false if it has not ended, within a minute if `wait`.
  bool CompareTransfer(const std::string& number, const JsonValue& data, bool wait);

  const PJRT_Api* const api_;
  std::map<std::string, void*, std::less<>> handles_;
  std::deque<std::string> kept_;              // arrays that a plugin may borrow
  std::map<std::string, std::string> texts_;  // serialized objects of the record, and those of this run
  std::map<std::string, std::shared_ptr<Transfer>> transfers_;
  std::map<std::string, JsonValue> pending_;  // what transfers that have not ended here have written in the record
  bool data_missing_ = false;                 // an array of the record is only a digest: what depends on it differs
  std::vector<Awaited> awaited_;
  std::vector<std::string> differences_;
  int64_t line_ = 0;
  int64_t calls_ = 0;
  std::map<std::string, int64_t> skipped_;
  std::vector<std::string> targets_;  // of handlers of custom calls, which are the caller's functions
  std::set<std::string> unmade_;  // handles that calls that are left out have returned, or callbacks have been given
  int64_t arrays_ = 0;
};

// The visitor that fills the struct of one call from its line, and compares what it returns.
class ReplayedCall {
 public:
  ReplayedCall(Replay* replay, const JsonValue& line);

  void BeginResults() { results_ = true; }
  bool skipped() const { return skip_; }
  // Returns the handle for which the call cannot be made though the record should have it; "" if there is none.
  const std::string& unknown_handle() const { return unknown_handle_; }
  // Calls what frees serialized objects.
  void End();

  template <typename T>
  void In(const char* name, T& field) {
    if (const JsonValue* value = Given(name)) Read(*value, &field);
  }
  template <typename T>
  void Out(const char* name, T& field) {
    if (const JsonValue* value = Expected(name)) Compare(name, *value, field);
  }
  template <typename T>
  void Last(const char* name, T*& field) {
    In(name, field);
    if (const JsonValue* value = Given(name)) replay_->handles_.erase(value->text);
  }
  template <typename T>
  void Noted(const char*, T&) {}
  void NotedText(const char*, const char*&, size_t&) {}
  void NotedNamed(const char*, const PJRT_NamedValue*&, size_t&) {}
  void InText(const char* name, const char*& text, size_t& size);
  void OutText(const char* name, const char*& text, size_t& size);
  template <typename Holder>
  void Held(const char* name, const char*& text, size_t& size, Holder*& holder, void (*&deleter)(Holder*)) {
    if (const JsonValue* value = Expected(name)) replay_->texts_[value->text] = std::string(text, size);
    Release(holder, deleter);
  }
  template <typename Holder>
  void Release(Holder*& holder, void (*&deleter)(Holder*)) {
    if (results_) at_end_.push_back([held = holder, free = deleter] { free(held); });
  }
  template <typename T>
  void InList(const char* name, T*& list, size_t& size) {
    const JsonValue* const value = Given(name);
    if (value == nullptr || value->IsNull()) return;
    auto items = std::make_shared<std::vector<std::remove_const_t<T>>>(value->elements.size());
    for (size_t i = 0; i < items->size(); ++i) Read(value->elements[i], &(*items)[i]);
    list = items->data();
    size = items->size();
    at_end_.push_back([items] {});
  }
  template <typename T>
  void OutList(const char* name, T*& list, size_t& size) {
    const JsonValue* const value = Expected(name);
    if (value == nullptr || !CompareSize(name, *value, size)) return;
    for (size_t i = 0; i < size; ++i) Compare(name, value->elements[i], list[i]);
  }
  void OutInto(const char* name, int*& list, size_t& size);
  void InNamed(const char* name, const PJRT_NamedValue*& values, size_t& size);
  void OutNamed(const char* name, const PJRT_NamedValue*& values, size_t& size);
  template <typename Layout>
  void InLayout(const char* name, Layout*& layout) {
    layout = MakeLayout(name);
  }
  void InProgram(const char* name, const PJRT_Program*& program);
  void OutProgram(const char* name, PJRT_Program*& program);
  template <typename Size>
  void InBytes(const char* name, const void*& data, Size&) {
    if (const JsonValue* value = Given(name)) data = MakeArray(*value, {});
  }
  void InArray(const char* name, const void*& data, const pjrt::HostArrayFields& array);
  void InView(const char* name, PJRT_Client_CreateViewOfDeviceBuffer_Args& args);
  void InChunk(const char* name, PJRT_Chunk*& chunk);
  void InShapes(const char* name, PJRT_ShapeSpec*& shapes, size_t& size);
  void InExecuteOptions(const char* name, PJRT_ExecuteOptions*& options);
  void InHandleLists(const char* name, PJRT_Buffer* const* const*& lists, size_t& devices, size_t& size);
  void OutRun(PJRT_LoadedExecutable_Execute_Args& args);
  template <typename Size>
  void OutHostMemory(const char* name, void*& memory, Size& size, PJRT_Event*& event) {
    auto bytes = static_cast<int64_t>(size);
    HostMemory(name, &memory, &bytes, event);
    if (!results_) size = static_cast<Size>(bytes);
  }
  void OutStrings(const char* name, const char* const*& texts, const size_t*& sizes, size_t& count);
  void OutDims(const char* name, const int64_t*& dims, const size_t*& ranks, size_t& count);
  void OutLogicalIds(const char* name, PJRT_LogicalDeviceIds*& ids, size_t& count);
  void Callback(PJRT_Event_OnReady_Args& args);
  template <typename T>
  void Address(const char*, T&) {}
  template <typename T>
  void AddressIn(const char*, T&) {}
  template <typename T>
  void Nothing(T&) {}

 private:
  // The value of a field that the call is given, in the first visit; that it returns, in the second. Null: none.
  const JsonValue* Given(std::string_view name) const { return results_ || in_ == nullptr ? nullptr : in_->Find(name); }
  const JsonValue* Expected(std::string_view name) const {
    return !results_ || out_ == nullptr ? nullptr : out_->Find(name);
  }
  template <typename T>
  void Read(const JsonValue& value, T* field) {
    if constexpr (std::is_pointer_v<T>) {
      *field = static_cast<T>(Handle(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      *field = value.text == "true";
    } else {
      *field = static_cast<T>(std::strtoll(value.text.c_str(), nullptr, 10));
    }
  }
  template <typename T>
  void Compare(const char* name, const JsonValue& expected, T found) {
    if constexpr (std::is_pointer_v<T>) {
      CompareHandle(name, expected, const_cast<void*>(static_cast<const void*>(found)));
    } else if constexpr (std::is_same_v<T, bool>) {
      CompareTexts(name, expected.text, found ? "true" : "false");
    } else if constexpr (std::is_enum_v<T>) {
      CompareTexts(name, expected.text, std::to_string(static_cast<int64_t>(found)));
    } else {
      CompareTexts(name, expected.text, std::to_string(found));
    }
  }
  void* Handle(const JsonValue& value);
  void CompareHandle(const char* name, const JsonValue& expected, void* found);
  void CompareTexts(const char* name, std::string_view expected, std::string_view found);
  bool CompareSize(const char* name, const JsonValue& expected, size_t found);
  PJRT_Buffer_MemoryLayout* MakeLayout(const char* name);
  // Returns memory that holds the array of the record, with strides if there are some.
  void* MakeArray(const JsonValue& value, const pjrt::HostArrayFields& array);
  void HostMemory(const char* name, void** memory, int64_t* size, PJRT_Event*& event);

  Replay* const replay_;
  const JsonValue& line_;
  const JsonValue* const in_;
  const JsonValue* const out_;
  bool results_ = false;
  bool skip_ = false;
  std::string unknown_handle_;
  std::vector<std::function<void()>> at_end_;
};

}  // namespace hlokit::pjrt_test

#endif  // HLOKIT_TESTS_PJRT_REPLAY_H_
