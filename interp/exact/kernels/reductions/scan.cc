// SPDX-License-Identifier: Apache-2.0
// Scan: applies a computation along one dimension of its inputs, slice by slice, with loop-carried values. It takes a
// slice of each input and the carries, and returns a slice of each output and new carries.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/machine/strided_copy.h"

namespace hlokit::interp {
namespace {

struct ScanParams : ThunkParams {
  struct Array {
    StridedCopy slice;  // between the array and a dense slice
    int64_t slice_bytes;
    int64_t step;  // in the array, between slices, in bytes
  };
  CompiledComputation* body = nullptr;
  int64_t length = 0;
  bool reverse = false;
  std::vector<Array> inputs;
  std::vector<Array> outputs;
  std::vector<int64_t> carry_bytes;
};

void RunScan(const ScanParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const size_t inputs = p.inputs.size();
  const size_t outputs = p.outputs.size();
  const size_t carries = p.carry_bytes.size();
  std::vector<SlotValue> arguments(inputs + carries);
  std::vector<SlotValue> results(outputs + carries);
  // The first carries are the operands, which are not overwritten since they have no owner.
  std::vector<SlotValue> carried;
  for (size_t k = 0; k < carries; ++k) carried.push_back({nullptr, const_cast<std::byte*>(in[inputs + k])});
  for (int64_t i = 0; i < p.length; ++i) {
    const int64_t at = p.reverse ? p.length - 1 - i : i;
    for (size_t k = 0; k < inputs; ++k) {
      PoolBlock* slice = context.pool.Allocate(p.inputs[k].slice_bytes);
      if (slice == nullptr) {
        for (size_t j = 0; j < k; ++j) context.pool.Release(arguments[j].owner);
        for (SlotValue& v : carried) context.pool.Release(v.owner);
        return context.Fail(Scratch::OutOfMemory(context, p.inputs[k].slice_bytes), DiagnosticKind::kTooLarge);
      }
      p.inputs[k].slice.RunSerial(slice->data(), in[k] + at * p.inputs[k].step);
      arguments[k] = {slice, slice->data()};
    }
    std::copy(carried.begin(), carried.end(), arguments.begin() + static_cast<int64_t>(inputs));
    if (!context.Call(p.body, arguments, absl::MakeSpan(results))) return;
    for (size_t k = 0; k < outputs; ++k) {
      p.outputs[k].slice.RunSerial(out[k] + at * p.outputs[k].step, results[k].data);
      context.pool.Release(results[k].owner);
    }
    carried.assign(results.begin() + static_cast<int64_t>(outputs), results.end());
  }
  for (size_t k = 0; k < carries; ++k) {
    std::memcpy(out[outputs + k], carried[k].data, static_cast<size_t>(p.carry_bytes[k]));
    context.pool.Release(carried[k].owner);
  }
}

}  // namespace

void PrepareScan(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const int64_t carries = instruction.int_attr(Attr::kNumCarries);
  const int64_t inputs = instruction.operand_count() - carries;
  const absl::Span<const int64_t> dimensions = instruction.list_attr(Attr::kDimensions);
  auto params = std::make_unique<ScanParams>();
  params->body = b.program().CompiledComputationOf(instruction.computation_attr(Attr::kToApply));
  params->reverse = instruction.bool_attr(Attr::kIsReverse);
  std::vector<Shape> results;
  AppendLeaves(b.shape(), &results);
  const int64_t outputs = static_cast<int64_t>(results.size()) - carries;
  const auto fail = [&] { b.FailMismatch("a scanned computation of slices of the inputs and of the carries"); };
  if (params->body == nullptr || carries < 0 || inputs < 1 || outputs < 0 || dimensions.size() != 1 ||
      params->body->parameters.size() != static_cast<size_t>(inputs + carries) ||
      params->body->results.size() != results.size()) {
    return fail();
  }
  const int64_t dim = dimensions[0];
  // Strides of an array without the scanned dimension, and of a dense slice.
  const auto make = [&](Shape shape, const Dims& strides, bool to_slice, ScanParams::Array* array) {
    if (!shape.IsArray() || dim < 0 || dim >= shape.rank()) return false;
    Dims sizes, kept;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (d == dim) continue;
      sizes.push_back(shape.dim(d));
      kept.push_back(strides[d]);
    }
    const int64_t bytes = BytesOf(shape.element_type());
    const Dims dense = DenseStrides(sizes);
    array->slice = to_slice ? StridedCopy(sizes, dense, kept, bytes) : StridedCopy(sizes, kept, dense, bytes);
    array->slice_bytes = ElementCount(sizes) * bytes;
    array->step = strides[dim] * bytes;
    return true;
  };
  std::vector<View> views;
  const Computation body = params->body->computation;
  for (int64_t i = 0; i < inputs; ++i) {
    views.push_back(b.operand(i));
    ScanParams::Array array;
    if (!make(views.back().shape, StridesOf(views.back()), /*to_slice=*/true, &array)) return fail();
    if (i == 0) params->length = views[0].shape.dim(dim);
    const Shape slice = body.parameter(i).shape();
    if (views.back().shape.dim(dim) != params->length || slice.element_type() != views.back().type() ||
        slice.element_count() * BytesOf(slice.element_type()) != array.slice_bytes) {
      return fail();
    }
    params->inputs.push_back(array);
  }
  for (int64_t i = 0; i < carries; ++i) {
    views.push_back(b.MakeDense(b.operand(inputs + i)));
    params->carry_bytes.push_back(views.back().count() * BytesOf(views.back().type()));
  }
  for (int64_t i = 0; i < outputs; ++i) {
    ScanParams::Array array;
    const Shape shape = results[static_cast<size_t>(i)];
    if (!shape.IsArray() || !make(shape, DenseStrides(shape.dims()), /*to_slice=*/false, &array) ||
        shape.dim(dim) != params->length) {
      return fail();
    }
    params->outputs.push_back(array);
  }
  b.Emit(kKernel<RunScan>, std::move(params), views);
}

}  // namespace hlokit::interp
