// SPDX-License-Identifier: Apache-2.0
// Loops of scalars: the state is in registers.
#include "interp/compiled/llvm/loop_emitter.h"

namespace hlokit::interp::compiled {

void LoopEmitter::EmitWhile(llvm::Value* max_iterations) {
  values_.set_lanes(1);
  llvm::BasicBlock* const head = llvm::BasicBlock::Create(b_.getContext(), "head", function_);
  llvm::BasicBlock* const test = llvm::BasicBlock::Create(b_.getContext(), "test", function_);
  llvm::BasicBlock* const body = llvm::BasicBlock::Create(b_.getContext(), "body", function_);
  llvm::BasicBlock* const after = llvm::BasicBlock::Create(b_.getContext(), "after", function_);
  Values values(program_.nodes.size());
  for (size_t i = 0; i < program_.nodes.size(); ++i) {
    const LoopNode& node = program_.nodes[i];
    if (node.op == LoopOp::kInput) values[i] = Load(node.type, in_[node.param], nullptr);
  }
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* const iterations = b_.CreatePHI(b_.getInt64Ty(), 2);
  iterations->addIncoming(b_.getInt64(0), before);
  // The nodes of the first inputs are the first nodes.
  std::vector<llvm::PHINode*> state;
  for (size_t k = 0; k < program_.outputs.size(); ++k) {
    state.push_back(b_.CreatePHI(values[k]->getType(), 2));
    state.back()->addIncoming(values[k], before);
    values[k] = state.back();
  }
  const auto compute = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (values[i] == nullptr) values[i] = Compute(static_cast<uint16_t>(i), values);
    }
  };
  const size_t body_begin = static_cast<size_t>(program_.condition) + 1;
  compute(0, body_begin);
  llvm::Value* const again = b_.CreateExtractElement(values[program_.condition], uint64_t{0});
  b_.CreateCondBr(again, test, after);
  b_.SetInsertPoint(test);
  b_.CreateCondBr(b_.CreateICmpSLT(iterations, max_iterations), body, after);
  b_.SetInsertPoint(body);
  compute(body_begin, values.size());
  llvm::BasicBlock* const last = b_.GetInsertBlock();
  for (size_t k = 0; k < state.size(); ++k) state[k]->addIncoming(values[program_.outputs[k]], last);
  iterations->addIncoming(b_.CreateAdd(iterations, b_.getInt64(1)), last);
  b_.CreateBr(head);

  b_.SetInsertPoint(after);
  llvm::PHINode* const ended = b_.CreatePHI(b_.getInt64Ty(), 2);
  ended->addIncoming(b_.getInt64(1), head);
  ended->addIncoming(b_.getInt64(0), test);
  for (size_t k = 0; k < state.size(); ++k) Store(program_.nodes[k].type, state[k], out_[k], nullptr);
  b_.CreateAlignedStore(iterations, scratch_, llvm::Align(8));
  b_.CreateAlignedStore(ended, b_.CreateConstGEP1_64(b_.getInt64Ty(), scratch_, 1), llvm::Align(8));
}

}  // namespace hlokit::interp::compiled
