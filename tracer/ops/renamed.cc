// SPDX-License-Identifier: Apache-2.0
// Ops that are other names for ops with the same arguments.
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/schema.h"

namespace hlokit::lazy::kernel {
namespace {

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"aten::clip", "aten::clamp"},       {"aten::true_divide", "aten::div"}, {"aten::divide", "aten::div"},
    {"aten::multiply", "aten::mul"},     {"aten::subtract", "aten::sub"},    {"aten::greater", "aten::gt"},
    {"aten::greater_equal", "aten::ge"}, {"aten::less", "aten::lt"},         {"aten::less_equal", "aten::le"},
    {"aten::not_equal", "aten::ne"},     {"aten::concat", "aten::cat"},      {"aten::concatenate", "aten::cat"},
};

}  // namespace

void Renamed(OpKernelContext& c) {
  const Schema& schema = SchemaOf(c.op());
  for (const auto& [name, other] : kNames) {
    if (name != schema.name) continue;
    if (const std::optional<Op> op = FindOp(StrCat(other, schema.overload.empty() ? "" : ".", schema.overload))) {
      return c.Return(Dispatch(*op, Args(c.args())));
    }
  }
  c.Fail("has no other name");
}

}  // namespace hlokit::lazy::kernel
