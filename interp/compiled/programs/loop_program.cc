// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/programs/loop_program.h"

#include "ir/core/str_cat.h"

namespace hlokit::interp::compiled {
namespace {

constexpr std::string_view kLoopOpNames[] = {
#define LOOP_OP(name, neutral, accuracy) #name,
#include "interp/compiled/programs/loop_ops.def"
};

}  // namespace

std::string_view NameOf(LoopOp op) { return kLoopOpNames[static_cast<size_t>(op)]; }

std::string CanonicalText(const LoopProgram& program) {
  std::string text = StrCat("form ", static_cast<int>(program.form), "\n");
  if (program.columns > 0) StrAppend(&text, "columns ", program.columns, "\n");
  for (const LoopInput& input : program.inputs) {
    StrAppend(&text, "input ", ToString(input.type), input.row_value ? " row" : "",
              input.column_value ? " column\n" : "\n");
  }
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const LoopNode& node = program.nodes[i];
    StrAppend(&text, "%", i, " = ", ToString(node.type), node.row_value ? " row" : "",
              node.column_value ? " column " : " ", kLoopOpNames[static_cast<size_t>(node.op)], " ", node.param);
    for (int k = 0; k < node.operand_count; ++k) StrAppend(&text, " %", node.operands[k]);
    text += '\n';
  }
  if (program.form == LoopForm::kWhile) StrAppend(&text, "while %", program.condition, "\n");
  for (uint16_t output : program.outputs) StrAppend(&text, "output %", output, "\n");
  return text;
}

bool FitsInRegisters(const LoopProgram& program, int64_t columns, int lanes) {
  constexpr int64_t kMaxVectors = 16, kMaxOperations = 256;
  const int64_t vectors = (columns + lanes - 1) / lanes;
  int64_t operations = 0;  // of a vector
  for (const LoopNode& node : program.nodes) operations += node.row_value ? 0 : 1;
  return program.form == LoopForm::kRows && program.calls == 0 && vectors <= kMaxVectors &&
         vectors * operations <= kMaxOperations;
}

}  // namespace hlokit::interp::compiled
