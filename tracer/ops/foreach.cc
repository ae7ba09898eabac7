// SPDX-License-Identifier: Apache-2.0
// Ops on lists of tensors, as optimizers call them: one op for each tensor.
#include <cstdint>
#include <string_view>

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/schema.h"

namespace hlokit::lazy::kernel {
namespace {

struct ForeachOp {
  std::string_view name;
  Op with_tensor;
  Op with_number;
};
constexpr ForeachOp kForeachOps[] = {{"add", Op::add_Tensor, Op::add_Scalar},
                                     {"sub", Op::sub_Tensor, Op::sub_Scalar},
                                     {"mul", Op::mul_Tensor, Op::mul_Scalar},
                                     {"div", Op::div_Tensor, Op::div_Scalar},
                                     {"addcmul", Op::addcmul, Op::addcmul},
                                     {"addcdiv", Op::addcdiv, Op::addcdiv},
                                     {"sqrt", Op::sqrt, Op::sqrt},
                                     {"neg", Op::neg, Op::neg},
                                     {"exp", Op::exp, Op::exp},
                                     {"abs", Op::abs, Op::abs},
                                     {"reciprocal", Op::reciprocal, Op::reciprocal}};

// Checks that all lists have as many members as the first one, which has some.
bool ListsFit(OpKernelContext& c) {
  const size_t count = c.list(0).size();
  if (count == 0) {
    c.Fail("Tensor list must have at least one tensor.");
    return false;
  }
  for (size_t i = 1; i < c.args().size(); ++i) {
    if (const Tensors* list = c.args()[i].get<Tensors>(); list != nullptr && list->size() != count) {
      c.Fail(StrCat("Tensor lists must have the same number of tensors, got ", count, " and ", list->size()));
      return false;
    }
    if (const auto* numbers = c.args()[i].get<std::vector<double>>(); numbers != nullptr && numbers->size() != count) {
      c.Fail(StrCat("Tensor list must have same number of elements as scalar list, got ", count, " and ",
                    numbers->size()));
      return false;
    }
  }
  return true;
}

// A number of a list is an integer where it is whole: the type of integer tensors does not change.
Scalar WholeIfExact(double v) {
  return v == static_cast<double>(static_cast<int64_t>(v)) ? Scalar(static_cast<int64_t>(v)) : Scalar(v);
}

}  // namespace

// The op is that of the name after `_foreach_`; a name that ends with `_` writes in place.
void Foreach(OpKernelContext& c) {
  if (!ListsFit(c)) return;
  constexpr std::string_view kPrefix = "aten::_foreach_";
  std::string_view name = std::string_view(SchemaOf(c.op()).name).substr(kPrefix.size());
  const bool in_place = name.back() == '_';
  if (in_place) name.remove_suffix(1);
  for (const ForeachOp& each : kForeachOps) {
    if (each.name != name) continue;
    Outputs results;
    for (size_t i = 0; i < c.list(0).size(); ++i) {
      Args args;
      Op op = each.with_tensor;
      for (size_t k = 0; k < c.args().size(); ++k) {
        const IValue& arg = c.args()[k];
        if (const Tensors* list = arg.get<Tensors>()) {
          args.push_back((*list)[i]);
        } else if (const auto* numbers = arg.get<std::vector<double>>()) {
          args.push_back(WholeIfExact((*numbers)[i]));
          if (k == 1) op = each.with_number;
        } else {
          args.push_back(arg);
          if (k == 1) op = each.with_number;
        }
      }
      Outputs result = Dispatch(op, std::move(args));
      if (result.empty() || !result[0].defined()) return c.Return(Tensor());
      if (in_place) {
        WriteInPlace(c.list(0)[i], result[0]);
      } else {
        results.push_back(result[0]);
      }
    }
    return c.Return(std::move(results));
  }
  c.Fail("has no op for one tensor");
}

// ---- gradient scaling ----

// self list, found_inf, inv_scale: multiplies all, and reports if one had an element that is not finite.
void AmpUnscale(OpKernelContext& c) {
  const Tensor &found = c.tensor(1), &scale = c.tensor(2);
  if (scale.numel() != 1) return c.Fail("inv_scale must be a 1-element tensor.");
  if (found.numel() != 1) return c.Fail("found_inf must be a 1-element tensor.");
  if (found.dtype() != ElementType::kF32) return c.Fail("found_inf must be a float tensor.");
  const NoGradGuard no_grad;
  Tensor hit = found;
  for (const Tensor& t : c.list(0)) {
    if (!IsFloat(t.dtype())) return c.Fail("scaled_grads must be floating point tensors");
    const Tensor bad = InvokeOp(Op::any, lazy::Not(InvokeOp(Op::isfinite, t)));
    hit = lazy::Where(bad, lazy::FullLike(hit, 1), hit);
    WriteInPlace(t, lazy::To(t * lazy::Reshape(scale, {}), t.dtype()));
  }
  WriteInPlace(found, hit);
}
// scale, growth_tracker, found_inf, growth factor, backoff factor, growth interval
void AmpUpdateScale(OpKernelContext& c) {
  const Tensor &scale = c.tensor(0), &tracker = c.tensor(1), &found = c.tensor(2);
  if (scale.numel() != 1) return c.Fail("current_scale must be a 1-element tensor.");
  if (tracker.numel() != 1) return c.Fail("growth_tracker must be a 1-element tensor.");
  if (found.numel() != 1) return c.Fail("found_inf must be a 1-element tensor.");
  if (tracker.dtype() != ElementType::kS32) return c.Fail("growth_tracker must be an int tensor.");
  const NoGradGuard no_grad;
  const Tensor bad = lazy::Reshape(lazy::Ne(found, 0), {}), next = lazy::Add(tracker, 1);
  const Tensor grows = lazy::Eq(next, c.int_arg(5));
  const Tensor larger = scale * Scalar(c.float_arg(3));
  // A scale that would be infinite does not grow.
  const Tensor grown =
      lazy::Where(lazy::And(lazy::Reshape(grows, Sizes(scale)), InvokeOp(Op::isfinite, larger)), larger, scale);
  WriteInPlace(scale, lazy::Where(bad, scale * Scalar(c.float_arg(4)), grown));
  WriteInPlace(tracker, lazy::Where(lazy::Or(grows, bad), lazy::ZerosLike(tracker), next));
  c.Return(scale);
}

}  // namespace hlokit::lazy::kernel
