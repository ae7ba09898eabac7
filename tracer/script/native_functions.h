// SPDX-License-Identifier: Apache-2.0
// Functions of the script language that are not ops: modules (nn::), optimizers (optim::), learning rates
// (lr_scheduler::), devices (xm::), shardings (xs::), and those without a prefix.
#ifndef HLOKIT_TRACER_SCRIPT_NATIVE_FUNCTIONS_H_
#define HLOKIT_TRACER_SCRIPT_NATIVE_FUNCTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tracer/nn/parameter_registry.h"
#include "tracer/script/script_inputs.h"
#include "tracer/script/script_value.h"
#include "tracer/script/signature.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy::script {

// What functions need of the device that runs the script.
struct RunContext {
  Tracer* tracer = nullptr;
  DeviceState* device = nullptr;
  std::unique_lock<std::mutex>* turn = nullptr;  // of the devices of a script; null: there is one
  size_t parameters = 0;                         // made so far: each has other initial values
  const ScriptInputs* inputs = nullptr;          // null: none
  int64_t max_input_bytes = 0;                   // of a value of these

  // Returns a registry for the parameters of one module.
  std::unique_ptr<nn::ParameterRegistry> NewRegistry(ElementType type);
};

// Lets the other devices of a script run while this one waits.
class OthersRun {
 public:
  explicit OthersRun(const RunContext& context) : turn_(context.turn) {
    if (turn_ != nullptr) turn_->unlock();
  }
  ~OthersRun() {
    if (turn_ != nullptr) turn_->lock();
  }
  OthersRun(const OthersRun&) = delete;
  OthersRun& operator=(const OthersRun&) = delete;

 private:
  std::unique_lock<std::mutex>* turn_;
};

struct NativeFunction {
  Signature signature;
  std::function<absl::StatusOr<Value>(RunContext& context, const Arguments& arguments)> call;
  // Waits for other devices or runs graphs: cannot be part of a captured graph.
  bool host = false;
};

// Returns null if there is none of this name.
const NativeFunction* FindNative(std::string_view name);
const std::vector<NativeFunction>& NativeFunctions();
// Returns true for the prefix of functions of this table, such as "nn".
bool IsNativePrefix(std::string_view prefix);

// One row of a table of functions.
struct NativeRow {
  std::string_view signature;
  absl::StatusOr<Value> (*call)(RunContext& context, const Arguments& arguments);
  bool host = false;
};
// Adds the functions of a family.
void AddModules(std::vector<NativeFunction>* functions);
void AddOptimizers(std::vector<NativeFunction>* functions);
void AddCollectives(std::vector<NativeFunction>* functions);
void AddBuiltins(std::vector<NativeFunction>* functions);
NativeFunction& AddRow(const NativeRow& row, std::vector<NativeFunction>* functions);

}  // namespace hlokit::lazy::script

#endif  // HLOKIT_TRACER_SCRIPT_NATIVE_FUNCTIONS_H_
