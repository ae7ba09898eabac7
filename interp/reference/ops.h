// SPDX-License-Identifier: Apache-2.0
// Functions that evaluate instructions, one for each name in the kernel column of ir/ops/opcodes.def; those that fill
// arrays are declared from the table. The paragraph of
// an opcode in docs/ops.md (`hlo-inspect ops NAME`) defines its semantics, and docs/interpreter.md the rest; the
// comment of each function names the paragraphs it implements.
#ifndef HLOKIT_INTERP_REFERENCE_OPS_H_
#define HLOKIT_INTERP_REFERENCE_OPS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "interp/reference/run.h"
#include "interp/reference/value.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/module.h"

namespace hlokit::reference {

// The values of an instruction's operands: those that the computation holds, or converted ones.
class OperandValues {
 public:
  explicit OperandValues(std::vector<const SlotValue*> values) : values_(std::move(values)) {}

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  const SlotValue& operator[](size_t i) const { return *values_[i]; }
  void Replace(size_t i, SlotValue value) { values_[i] = &replaced_.emplace_back(std::move(value)); }

 private:
  std::vector<const SlotValue*> values_;
  std::deque<SlotValue> replaced_;
};

// One instruction during its evaluation.
struct Op {
  Run& run;
  Instruction instruction;
  Shape shape;  // of the result
  OperandValues operands;
  std::vector<std::shared_ptr<Array>> results;  // zeros, for each leaf of the result

  const Array& in(size_t i) const { return *operands[i][0]; }
  Array& out(size_t i = 0) const { return *results[i]; }
  void Fail(std::string message) const { run.Fail(std::move(message)); }
  // Reports an error and returns false unless `condition` holds.
  bool Require(bool condition, std::string_view message) const {
    if (!condition) Fail(std::string(message));
    return condition;
  }
  // Returns all leaves of all operands.
  SlotValue OperandLeaves() const;

  // Calls body(i) for i < count, or body(index) for the indices of an array in row-major order; stops when the run
  // fails.
  template <typename Body>
  void ForEach(int64_t count, Body body) const {
    for (int64_t i = 0; i < count && run.Tick(); ++i) body(i);
  }
  template <typename Body>
  void ForEachIndex(Dims dims, Body body) const {
    for (int64_t d : dims) {
      if (d <= 0) return;
    }
    Index index(dims.size(), 0);
    do {
      if (!run.Tick()) return;
      body(index);
    } while (NextIndex(dims, &index));
  }
};

// The devices of a collective, and the operands of each. A received message is a collective of one device.
struct Group {
  Run& run;
  Instruction instruction;
  std::vector<int64_t> devices;
  std::vector<SlotValue> operands;                                // of each device, all leaves
  std::vector<std::vector<std::shared_ptr<Array>>> results = {};  // of each device, for each leaf that it computes
};

// Evaluation method of an instruction: a function that fills result arrays, one that returns leaves (mostly of
// operands), one that runs when the devices of a group have arrived, or control flow in the virtual machine.
enum class Control : uint8_t { kCall, kWhile, kConditional, kAsync };
struct Evaluate {
  enum class Kind : uint8_t { kFill, kReturn, kCollective, kControl } kind;
  void (*fill)(Op&) = nullptr;
  SlotValue (*returned)(Op&) = nullptr;
  void (*collective)(Group&) = nullptr;
  Control control = Control::kCall;

  constexpr Evaluate(void (*f)(Op&)) : kind(Kind::kFill), fill(f) {}                 // NOLINT: a row
  constexpr Evaluate(SlotValue (*f)(Op&)) : kind(Kind::kReturn), returned(f) {}      // NOLINT
  constexpr Evaluate(void (*f)(Group&)) : kind(Kind::kCollective), collective(f) {}  // NOLINT
  constexpr Evaluate(Control c) : kind(Kind::kControl), control(c) {}                // NOLINT
};
// Returns the opcode's row; null for Opcode::kUnknown.
const Evaluate* EvaluateOf(Opcode opcode);

// Every kernel as a function that fills arrays, unless `ops` has another function of its name.
namespace fill_ops {
#define OPCODE(name, text, min, max, rule, types, traits, elements, kernel, ...) void kernel(Op& op);
#include "ir/ops/opcode_columns.inc"
}  // namespace fill_ops

// Kernels by name: what is declared here is found before what `fill_ops` declares.
namespace ops {
using namespace fill_ops;  // NOLINT(google-build-using-namespace)

inline constexpr Control Call = Control::kCall;  // call, fusion
inline constexpr Control While = Control::kWhile;
inline constexpr Control Conditional = Control::kConditional;
inline constexpr Control AsyncStart = Control::kAsync;
inline constexpr Control AsyncUpdate = Control::kAsync;
inline constexpr Control AsyncDone = Control::kAsync;

// tuples.cc
SlotValue Parameter(Op& op);  // never called: parameters are set before the first instruction
SlotValue Constant(Op& op);
SlotValue FirstOperand(Op& op);
SlotValue AllReduceDone(Op& op);
SlotValue Token(Op& op);
SlotValue Tuple(Op& op);
SlotValue GetTupleElement(Op& op);
SlotValue CollectiveDone(Op& op);
SlotValue CopyStart(Op& op);
SlotValue CopyDone(Op& op);
SlotValue CustomCall(Op& op);
SlotValue SetDimensionSize(Op& op);

// data_movement.cc
SlotValue Bitcast(Op& op);

// collectives.cc
void AllGather(Group& group);
void AllReduce(Group& group);
void AllToAll(Group& group);
void CollectiveBroadcast(Group& group);
void CollectivePermute(Group& group);
void CollectiveReduce(Group& group);
void RaggedAllToAll(Group& group);
void ReduceScatter(Group& group);

// transfers.cc
SlotValue Infeed(Op& op);
SlotValue Outfeed(Op& op);
SlotValue Recv(Op& op);
void RecvDone(Group& group);
SlotValue Send(Op& op);
SlotValue SendDone(Op& op);

}  // namespace ops

// ---- functions used in several files ----

// Converts elements like `convert`, into an array of the same size.
void ConvertElements(Run& run, const Array& from, Array* to);
// Returns a converted copy, or the leaf itself if it has the type; null after an error.
Leaf Converted(Run& run, const Leaf& leaf, ElementType type);
// Returns the sort key of a float in IEEE 754 totalOrder, ascending.
int64_t TotalOrderKey(double v);

// Returns the element, in a dimension of size `size`, at offset `at` of the window in position `position`; -1 in
// padding and between dilated elements.
int64_t ElementUnder(const WindowDim& window, int64_t size, int64_t position, int64_t at);

// Returns the devices of `device`'s group at a collective, or an error if the instruction's groups do not match the
// run.
absl::StatusOr<std::vector<int64_t>> GroupOf(Run& run, Instruction collective, int64_t device);
// Returns true if a complete group can proceed. Only a recv-done may wait further, for its message.
bool IsReady(Run& run, Instruction collective, int64_t device);
// Returns the value of a collective from its computed leaves: a start's value begins with the operands.
SlotValue CollectiveValue(Run& run, Instruction collective, const SlotValue& operands, const SlotValue& results);

// FitOperands converts the operands and `op->shape` of a mixed-precision instruction (PreparedProgram::mixed) to the
// types in which it computes; FitResults converts its results to the declared shape. Both return false after an error.
bool FitOperands(Op* op);
bool FitResults(Run& run, Shape declared, SlotValue* value);

}  // namespace hlokit::reference

#endif  // HLOKIT_INTERP_REFERENCE_OPS_H_
