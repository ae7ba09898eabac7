// SPDX-License-Identifier: Apache-2.0
// A client of the PJRT plugin that knows only its header: loads the library, and calls its functions as frameworks do.
#ifndef HLOKIT_TESTS_PJRT_PLUGIN_H_
#define HLOKIT_TESTS_PJRT_PLUGIN_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pjrt/c_api/api.h"
#include "pjrt/c_api/extension_args.h"

namespace hlokit::pjrt_test {

// The table of the library, loaded once.
const PJRT_Api& Api();

// An error as a value; code 0 is none.
struct Result {
  int code = 0;
  std::string message;
  bool ok() const { return code == 0; }
};
// Takes the error and destroys it.
Result Take(PJRT_Error* error);

#define EXPECT_CALL_OK(call)                      \
  do {                                            \
    const Result result_ = Take(call);            \
    EXPECT_TRUE(result_.ok()) << result_.message; \
  } while (false)
#define ASSERT_CALL_OK(call)                      \
  do {                                            \
    const Result result_ = Take(call);            \
    ASSERT_TRUE(result_.ok()) << result_.message; \
  } while (false)

// absl's codes.
inline constexpr int kInvalidArgument = 3, kDeadlineExceeded = 4, kResourceExhausted = 8, kFailedPrecondition = 9,
                     kAborted = 10, kUnimplemented = 12;

// Arguments as callers leave them: nothing is initialized but the size.
template <typename Args>
Args Garbage() {
  Args args;
  std::memset(static_cast<void*>(&args), 0xcd, sizeof(args));
  args.struct_size = sizeof(args);
  args.extension_start = nullptr;
  return args;
}
template <typename Args>
Args Zeroed() {
  Args args = {};
  args.struct_size = sizeof(args);
  return args;
}

// Calls a function of which one argument is given, and returns its arguments.
template <typename Args, typename Handle>
Args Query(PJRT_Error* (*function)(Args*), Handle Args::*field, std::type_identity_t<Handle> handle) {
  auto args = Garbage<Args>();
  args.*field = handle;
  EXPECT_CALL_OK(function(&args));
  return args;
}

struct Options {
  std::vector<std::pair<std::string, std::string>> texts = {};
  std::vector<std::pair<std::string, int64_t>> numbers = {};
};
// Creates a client; the caller destroys it.
Result CreateClient(const Options& options, PJRT_Client** client);

// Owns a client of some devices.
class ClientScope {
 public:
  explicit ClientScope(int64_t devices = 1, Options options = {});
  ~ClientScope();
  PJRT_Client* get() const { return client_; }
  std::vector<PJRT_Device*> devices() const;

 private:
  PJRT_Client* client_ = nullptr;
};

// Serialized CompileOptionsProto for replicas of partitions, on devices 0, 1, ...
std::string CompileOptionsOf(int64_t replicas, int64_t partitions, bool spmd = false, bool portable = false);

Result Compile(PJRT_Client* client, std::string_view code, std::string_view format, const std::string& options,
               PJRT_LoadedExecutable** executable);
void Destroy(PJRT_LoadedExecutable* executable);
void Destroy(PJRT_Buffer* buffer);
void Destroy(PJRT_Event* event);

// Waits for the event, destroys it, and returns its error.
Result Await(PJRT_Event* event);

// Creates a buffer of row-major elements, which are copied.
template <typename T>
PJRT_Buffer* MakeBuffer(PJRT_Client* client, PJRT_Device* device, int type, const std::vector<T>& values,
                        const std::vector<int64_t>& dims);
// Reads the elements of a buffer.
template <typename T>
Result ReadBuffer(PJRT_Buffer* buffer, std::vector<T>* values);

// Runs a program on all its devices: arguments[device][parameter]. Results are the caller's.
Result Execute(PJRT_LoadedExecutable* executable, const std::vector<std::vector<PJRT_Buffer*>>& arguments,
               std::vector<std::vector<PJRT_Buffer*>>* results, const std::vector<int64_t>& fixed = {},
               PJRT_Device* device = nullptr);
bool IsDeleted(PJRT_Buffer* buffer);

// Numbers of types in the interface.
inline constexpr int kPred = 1, kS32 = 4, kS4 = 21, kF32 = 11, kF64 = 12, kBf16 = 13, kF6 = 32;

// ---- Implementation ----

PJRT_Buffer* MakeRawBuffer(PJRT_Client* client, PJRT_Device* device, int type, const void* data,
                           const std::vector<int64_t>& dims);
Result ReadRawBuffer(PJRT_Buffer* buffer, std::string* bytes);

template <typename T>
PJRT_Buffer* MakeBuffer(PJRT_Client* client, PJRT_Device* device, int type, const std::vector<T>& values,
                        const std::vector<int64_t>& dims) {
  return MakeRawBuffer(client, device, type, values.data(), dims);
}

template <typename T>
Result ReadBuffer(PJRT_Buffer* buffer, std::vector<T>* values) {
  std::string bytes;
  Result result = ReadRawBuffer(buffer, &bytes);
  values->resize(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values->data(), bytes.data(), bytes.size());
  return result;
}

}  // namespace hlokit::pjrt_test

#endif  // HLOKIT_TESTS_PJRT_PLUGIN_H_
