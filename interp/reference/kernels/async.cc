// Asynchronous operations. A start runs what it starts at once; updates and dones only hand its results on.
#include <memory>
#include <utility>
#include <vector>

#include "interp/reference/kernels.h"
#include "interp/reference/program_builder.h"
#include "interp/reference/routine_builder.h"

namespace hlokit::interp {
namespace {

constexpr std::byte kZeros[64] = {};

// Leaves [begin, end) of `all` are what a run-time would use to keep track; they are zeros here.
void AppendContext(RoutineBuilder& b, absl::Span<const Shape> all, size_t begin, std::vector<View>* views) {
  for (size_t i = begin; i < all.size(); ++i) {
    const bool small = !all[i].IsArray() || all[i].element_count() <= 4;
    if (small) {
      views->push_back(b.Constant(all[i], kZeros));
    } else {
      b.Fail("the context of an asynchronous operation is no scalar");
      views->push_back(View{all[i]});
    }
  }
}

}  // namespace

// The value is ((operands), result, contexts...).
void PrepareAsyncStart(RoutineBuilder& b) {
  const Instruction instruction = b.instruction();
  Routine* callee = b.program().RoutineOf(instruction.computation_attr(Attr::kCalls));
  std::vector<View> views;
  for (Instruction operand : instruction.operands()) {
    const std::vector<View> leaves(b.leaves(operand).begin(), b.leaves(operand).end());
    for (const View& v : leaves) views.push_back(b.Dense(v));
  }
  std::vector<Shape> all;
  AppendLeaves(b.shape(), &all);
  const size_t arguments = views.size();
  const Shape shape = b.shape();
  if (callee == nullptr || callee->parameters.size() != arguments || !shape.IsTuple() || shape.tuple_size() < 2 ||
      all.size() < arguments + callee->results.size() ||
      shape.element(1).leaf_count() != static_cast<int64_t>(callee->results.size()) ||
      shape.element(0).leaf_count() != static_cast<int64_t>(arguments)) {
    b.Fail("the called computation does not fit the operation");
    return;
  }
  const std::vector<Shape> result_shapes(all.begin() + static_cast<int64_t>(arguments),
                                         all.begin() + static_cast<int64_t>(arguments + callee->results.size()));
  const std::vector<View> results = b.EmitCall(callee, views, result_shapes);
  views.insert(views.end(), results.begin(), results.end());
  AppendContext(b, all, views.size(), &views);
  b.SetResults(views);
}

void PrepareAsyncUpdate(RoutineBuilder& b) { PrepareFirstOperand(b); }

void PrepareAsyncDone(RoutineBuilder& b) {
  const Instruction start = b.instruction().operand(0);
  if (!start.shape().IsTuple() || start.shape().tuple_size() < 2) {
    b.Fail("the operand is no asynchronous operation");
    return;
  }
  b.AliasResult(start, 1);
}

// (destination, source, context)
void PrepareCopyStart(RoutineBuilder& b) {
  std::vector<Shape> all;
  AppendLeaves(b.shape(), &all);
  const absl::Span<const View> source = b.leaves(b.instruction().operand(0));
  std::vector<View> views(source.begin(), source.end());
  views.insert(views.end(), source.begin(), source.end());
  if (views.size() > all.size()) {
    b.Fail("the result does not fit the operand");
    return;
  }
  AppendContext(b, all, views.size(), &views);
  b.SetResults(views);
}

void PrepareCopyDone(RoutineBuilder& b) {
  const Instruction start = b.instruction().operand(0);
  if (!start.shape().IsTuple() || start.shape().tuple_size() < 1) {
    b.Fail("the operand is no copy-start");
    return;
  }
  b.AliasResult(start, 0);
}

}  // namespace hlokit::interp
