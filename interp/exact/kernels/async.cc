// SPDX-License-Identifier: Apache-2.0
// Asynchronous operations. The computation runs at its start, or when its last operand is bound; the rest of the chain
// only forwards the results.
#include <memory>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"

namespace hlokit::interp {
namespace {

// Appends zeros for leaves [begin, end) of `all`, the run-time context.
void AppendContext(CompiledComputationBuilder& b, absl::Span<const Shape> all, size_t begin, std::vector<View>* views) {
  for (size_t i = begin; i < all.size(); ++i) {
    views->push_back(b.Zeros(all[i]));
  }
}

}  // namespace

namespace {

// Binds operands [first, ...) of the instruction, and emits the call once all are bound.
void BindOperands(CompiledComputationBuilder& b, AsyncChain* chain, int64_t first) {
  for (int64_t i = first; i < b.instruction().operand_count(); ++i) {
    const absl::Span<const View> leaves = b.leaves(b.instruction().operand(i));
    const std::vector<View> copy(leaves.begin(), leaves.end());
    for (const View& v : copy) chain->arguments.push_back(b.MakeDense(v));
  }
  if (chain->results || chain->arguments.size() < chain->callee->parameters.size()) return;
  std::vector<Shape> parameters;
  for (int64_t i = 0; i < chain->callee->computation.parameter_count(); ++i) {
    AppendLeaves(chain->callee->computation.parameter(i).shape(), &parameters);
  }
  bool fits = chain->arguments.size() == parameters.size();
  for (size_t i = 0; fits && i < parameters.size(); ++i) {
    fits = SameShape(chain->arguments[i].shape, parameters[i], /*ignore_layout=*/true);
  }
  if (!fits) {
    b.FailMismatch("operands of the shapes of the parameters of the called computation");
    return;
  }
  std::vector<Shape> results;
  AppendLeaves(chain->callee->computation.root().shape(), &results);
  chain->results = b.EmitCall(chain->callee, chain->arguments, results);
}

// Sets the value of a start or update: ((operands), result, contexts...). Operands may be bound later, by updates and
// the done; the result's shape may be () until then.
void SetChainValue(CompiledComputationBuilder& b, const AsyncChain& chain) {
  const Shape shape = b.shape();
  std::vector<Shape> all;
  AppendLeaves(shape, &all);
  if (!shape.IsTuple() || shape.tuple_size() < 2 ||
      b.program().LeafCount(shape.element(0)) != static_cast<int64_t>(chain.arguments.size())) {
    b.FailMismatch("a result ((operands), result, contexts...)");
    return;
  }
  std::vector<View> views = chain.arguments;
  const size_t results_end = views.size() + static_cast<size_t>(b.program().LeafCount(shape.element(1)));
  if (chain.results && results_end - views.size() == chain.results->size()) {
    views.insert(views.end(), chain.results->begin(), chain.results->end());
  } else {
    for (size_t i = views.size(); i < results_end; ++i) views.push_back(b.Zeros(all[i]));
  }
  AppendContext(b, all, results_end, &views);
  b.SetResults(views);
}

}  // namespace

void PrepareAsyncStart(CompiledComputationBuilder& b) {
  AsyncChain chain;
  chain.callee = b.program().CompiledComputationOf(b.instruction().computation_attr(Attr::kCalls));
  if (chain.callee == nullptr) {
    b.Fail("missing called computation");
    return;
  }
  BindOperands(b, &chain, 0);
  SetChainValue(b, chain);
  b.async_chains()[b.instruction().id().value] = std::move(chain);
}

void PrepareAsyncUpdate(CompiledComputationBuilder& b) {
  const auto it = b.async_chains().find(b.instruction().operand(0).id().value);
  if (it == b.async_chains().end()) {
    // The chain began in another iteration of a loop: its value is complete.
    if (b.instruction().operand_count() != 1) {
      b.Fail("operands are bound to an asynchronous operation that started outside of this computation");
      return;
    }
    PrepareFirstOperand(b);
    return;
  }
  AsyncChain chain = it->second;
  BindOperands(b, &chain, 1);
  SetChainValue(b, chain);
  b.async_chains()[b.instruction().id().value] = std::move(chain);
}

void PrepareAsyncDone(CompiledComputationBuilder& b) {
  const Instruction start = b.instruction().operand(0);
  if (!start.shape().IsTuple() || start.shape().tuple_size() < 2) {
    b.Fail("expected an asynchronous operation as the operand");
    return;
  }
  const auto it = b.async_chains().find(start.id().value);
  if (it == b.async_chains().end()) {
    if (!SameShape(start.shape().element(1), b.shape(), /*ignore_layout=*/true)) {
      b.Fail("the asynchronous operation started outside of this computation and has no result of this shape");
      return;
    }
    b.AliasResult(start, 1);
    return;
  }
  AsyncChain chain = it->second;
  BindOperands(b, &chain, 1);
  if (!chain.results || static_cast<int64_t>(chain.results->size()) != b.program().LeafCount(b.shape())) {
    b.Fail(chain.results ? "the result of the called computation has another shape"
                         : "operands of the asynchronous operation are missing");
    return;
  }
  b.SetResults(*chain.results);
}

// Sets the result (destination, source, context).
void PrepareCopyStart(CompiledComputationBuilder& b) {
  std::vector<Shape> all;
  AppendLeaves(b.shape(), &all);
  const absl::Span<const View> source = b.leaves(b.instruction().operand(0));
  std::vector<View> views(source.begin(), source.end());
  views.insert(views.end(), source.begin(), source.end());
  if (views.size() > all.size()) {
    b.FailMismatch("a result that begins with destination and source");
    return;
  }
  AppendContext(b, all, views.size(), &views);
  b.SetResults(views);
}

void PrepareCopyDone(CompiledComputationBuilder& b) {
  const Instruction start = b.instruction().operand(0);
  if (!start.shape().IsTuple() || start.shape().tuple_size() < 1) {
    b.Fail("expected a copy-start operand");
    return;
  }
  b.AliasResult(start, 0);
}

}  // namespace hlokit::interp
