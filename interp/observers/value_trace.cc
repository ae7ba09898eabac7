// SPDX-License-Identifier: Apache-2.0
#include "interp/observers/value_trace.h"

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/observers/value_summary.h"

namespace hlokit::interp {

absl::Status ValueTrace::OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                                 absl::Span<const std::byte* const> /*operands*/) {
  if (id.value >= instructions_.size() || !instructions_[id.value]) return absl::OkStatus();
  const int64_t run = ++runs_[id.value];
  if (shown_ > options_.max_values) return absl::OkStatus();
  const Instruction instruction = module_.instruction(id);
  std::vector<Shape> leaves;
  AppendLeaves(instruction.shape(), &leaves);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (++shown_ > options_.max_values) {
      out_ << options_.prefix << "(more values are not shown)\n";
      break;
    }
    out_ << options_.prefix << instruction.name();
    if (instruction.shape().IsTuple()) out_ << '.' << static_cast<int64_t>(i);
    if (run != 1) out_ << '#' << run;
    out_ << " = " << ToString(leaves[i], /*with_layout=*/false);
    if (leaves[i].IsArray()) out_ << ' ' << ValueToString(leaves[i], values[i], options_.max_elements);
    out_ << '\n';
  }
  out_.Flush();
  return absl::OkStatus();
}

}  // namespace hlokit::interp
