// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/llvm/loop_emitter.h"

#include <algorithm>
#include <cstddef>

namespace hlokit::interp::compiled {

LoopEmitter::LoopEmitter(const LoopProgram& program, InstructionSet set, llvm::Module* module)
    : program_(program),
      set_(set),
      module_(module),
      b_(module->getContext()),
      values_(b_, set),
      passes_(PlanPasses(program)) {}

llvm::Value* LoopEmitter::Field(unsigned index, llvm::Type* type) {
  // All fields of LoopArguments have 8 bytes.
  static_assert(sizeof(LoopArguments) == 11 * 8);
  return b_.CreateAlignedLoad(type, b_.CreateConstGEP1_64(b_.getInt64Ty(), arguments_, index), llvm::Align(8));
}

llvm::Value* LoopEmitter::Element(llvm::Value* array, llvm::Type* type, size_t index) {
  return b_.CreateAlignedLoad(type, b_.CreateConstGEP1_64(b_.getInt64Ty(), array, index), llvm::Align(8));
}

llvm::Value* LoopEmitter::PointerAt(llvm::Value* base, ElementType type, llvm::Value* index) {
  return b_.CreateGEP(values_.StorageType(type), base, index);
}

llvm::Value* LoopEmitter::Load(ElementType type, llvm::Value* pointer, llvm::Value* mask) {
  llvm::Type* const vector = values_.VectorType(values_.StorageType(type));
  const llvm::Align align(static_cast<uint64_t>(BytesOf(type)));
  llvm::Value* const stored =
      mask == nullptr ? static_cast<llvm::Value*>(b_.CreateAlignedLoad(vector, pointer, align))
                      : b_.CreateMaskedLoad(vector, pointer, align, mask, llvm::Constant::getNullValue(vector));
  return values_.FromStorage(stored, type);
}

void LoopEmitter::Store(ElementType type, llvm::Value* value, llvm::Value* pointer, llvm::Value* mask) {
  const llvm::Align align(static_cast<uint64_t>(BytesOf(type)));
  llvm::Value* const stored = values_.ToStorage(value, type);
  if (mask == nullptr) {
    b_.CreateAlignedStore(stored, pointer, align);
  } else {
    b_.CreateMaskedStore(stored, pointer, align, mask);
  }
}

llvm::Value* LoopEmitter::Loop(llvm::Value* begin, llvm::Value* end, int64_t step, Values* carried,
                               const std::function<void(llvm::Value*, Values*)>& body) {
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  llvm::BasicBlock* const head = llvm::BasicBlock::Create(b_.getContext(), "head", function_);
  llvm::BasicBlock* const inside = llvm::BasicBlock::Create(b_.getContext(), "body", function_);
  llvm::BasicBlock* const after = llvm::BasicBlock::Create(b_.getContext(), "after", function_);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* const at = b_.CreatePHI(b_.getInt64Ty(), 2);
  at->addIncoming(begin, before);
  std::vector<llvm::PHINode*> phis;
  for (llvm::Value* v : *carried) {
    phis.push_back(b_.CreatePHI(v->getType(), 2));
    phis.back()->addIncoming(v, before);
  }
  llvm::Value* const next = b_.CreateAdd(at, b_.getInt64(static_cast<uint64_t>(step)));
  b_.CreateCondBr(b_.CreateICmpSLE(next, end), inside, after);
  b_.SetInsertPoint(inside);
  Values values(phis.begin(), phis.end());
  body(at, &values);
  llvm::BasicBlock* const last = b_.GetInsertBlock();
  at->addIncoming(next, last);
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(values[i], last);
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
  for (size_t i = 0; i < phis.size(); ++i) (*carried)[i] = phis[i];
  return at;
}

llvm::Value* LoopEmitter::MaskAt(llvm::Value* at) {
  // As bits of an integer: of all lanes, or of the last vector's.
  const unsigned lanes = static_cast<unsigned>(LanesOf(set_));
  llvm::Value* const rest = b_.CreateSub(columns_, at);
  llvm::Value* const is_whole = b_.CreateICmpSGE(rest, b_.getInt64(lanes));
  llvm::Value* const bits = b_.CreateSelect(is_whole, b_.getIntN(lanes, (uint64_t{1} << lanes) - 1), last_mask_);
  return b_.CreateBitCast(bits, llvm::FixedVectorType::get(b_.getInt1Ty(), lanes));
}

void LoopEmitter::ForVectors(llvm::Value* columns, Values* carried, const std::function<Values(const Values&)>& widen,
                             const std::function<Values(const Values&)>& fold,
                             const std::function<void(llvm::Value*, llvm::Value*, Values*)>& body) {
  const int lanes = LanesOf(set_);
  values_.set_lanes(lanes);
  Values wide = widen(*carried);
  if (set_ == InstructionSet::kAvx512) {
    // Only the last vector has a mask: loads and stores with one take half as long again on some processors, and three
    // times as long of narrow elements (Zen 5).
    llvm::Value* const rounded = b_.CreateAdd(columns, b_.getInt64(static_cast<uint64_t>(lanes - 1)));
    llvm::Value* const first =
        Loop(b_.getInt64(0), columns, lanes, &wide, [&](llvm::Value* at, Values* inner) { body(at, nullptr, inner); });
    Loop(first, rounded, lanes, &wide, [&](llvm::Value* at, Values* inner) {
      llvm::Value* const mask = MaskAt(at);
      body(at, mask, inner);
    });
    *carried = fold(wide);
    return;
  }
  llvm::Value* const done =
      Loop(b_.getInt64(0), columns, lanes, &wide, [&](llvm::Value* at, Values* inner) { body(at, nullptr, inner); });
  *carried = fold(wide);
  values_.set_lanes(1);
  Loop(done, columns, 1, carried, [&](llvm::Value* at, Values* inner) { body(at, nullptr, inner); });
  values_.set_lanes(lanes);
}

llvm::Value* LoopEmitter::Call(const LoopNode& node, const Values& values) {
  llvm::PointerType* const pointer = llvm::PointerType::getUnqual(b_.getContext());
  Values arguments = {Element(functions_, pointer, node.param), call_memory_[0]};
  for (int k = 0; k < 3; ++k) {
    if (k >= node.operand_count) {
      arguments.push_back(llvm::ConstantPointerNull::get(pointer));
      continue;
    }
    const ElementType type = program_.nodes[node.operands[k]].type;
    llvm::Value* const memory = call_memory_[static_cast<size_t>(k) + 1];
    Store(type, values[node.operands[k]], memory, nullptr);
    arguments.push_back(memory);
  }
  arguments.push_back(b_.getInt64(static_cast<uint64_t>(values_.lanes())));
  llvm::FunctionType* const type =
      llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, pointer, pointer, pointer, b_.getInt64Ty()}, false);
  b_.CreateCall(type, call_, arguments);
  return Load(node.type, call_memory_[0], nullptr);
}

llvm::Value* LoopEmitter::Compute(uint16_t i, const Values& values) {
  const LoopNode& node = program_.nodes[i];
  if (node.op == LoopOp::kCall) return Call(node, values);
  llvm::Value* operands[3] = {};
  ElementType types[3] = {};
  for (int k = 0; k < node.operand_count; ++k) {
    operands[k] = values[node.operands[k]];
    types[k] = program_.nodes[node.operands[k]].type;
  }
  llvm::Value* const value = values_.Emit(node, operands, types);
  if (value != nullptr) return value;
  if (error_.empty()) error_ = "operation " + std::to_string(static_cast<int>(node.op)) + " is not defined";
  return llvm::Constant::getNullValue(values_.VectorType(values_.ScalarType(node.type)));
}

llvm::Value* LoopEmitter::SavedAt(uint16_t node, llvm::Value* index) {
  llvm::Value* const offset = b_.CreateMul(pitch_, b_.getInt64(static_cast<uint64_t>(passes_.saved_index[node])));
  return PointerAt(b_.CreateGEP(b_.getInt8Ty(), scratch_, offset), program_.nodes[node].type, index);
}

void LoopEmitter::EmitElementsWith(const std::vector<uint16_t>& nodes, llvm::Value* at, llvm::Value* mask,
                                   const Values& loaded, Values* values) {
  *values = loaded;
  for (size_t i = 0; i < row_values_.size(); ++i) {
    if (row_values_[i] == nullptr) continue;
    (*values)[i] = row_values_[i];
    if (values_.lanes() != LanesOf(set_)) {
      llvm::Value* const one = b_.CreateExtractElement(row_values_[i], uint64_t{0});
      (*values)[i] = b_.CreateVectorSplat(static_cast<unsigned>(values_.lanes()), one);
    }
  }
  for (uint16_t i : nodes) {
    const LoopNode& node = program_.nodes[i];
    (*values)[i] = node.op == LoopOp::kInput ? Load(node.type, PointerAt(in_row_[node.param], node.type, at), mask)
                                             : Compute(i, *values);
  }
}

llvm::Constant* LoopEmitter::Neutral(LoopOp op, ElementType type) const {
  llvm::Type* const scalar = values_.ScalarType(type);
  const bool floats = IsFloat(type);
  const NeutralElement neutral = NeutralOf(op);
  switch (neutral) {
    case NeutralElement::kOne:
      return floats ? llvm::ConstantFP::get(scalar, 1.0) : llvm::ConstantInt::get(scalar, 1);
    case NeutralElement::kAllOnes:
      return llvm::Constant::getAllOnesValue(scalar);
    case NeutralElement::kLowest:
    case NeutralElement::kHighest: {
      const bool low = neutral == NeutralElement::kLowest;
      if (floats) return llvm::ConstantFP::getInfinity(scalar, low);
      const unsigned bits = scalar->getScalarSizeInBits();
      const llvm::APInt value = IsSigned(type)
                                    ? low ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits)
                                : low ? llvm::APInt::getMinValue(bits)
                                      : llvm::APInt::getMaxValue(bits);
      return llvm::ConstantInt::get(scalar, value);
    }
    case NeutralElement::kZero:
      // A sum of nothing is -0, which leaves any number as it is.
      return floats ? llvm::ConstantFP::get(scalar, -0.0) : llvm::Constant::getNullValue(scalar);
    case NeutralElement::kNone:
      break;  // RowCombiner returns none of these
  }
  return llvm::Constant::getNullValue(scalar);
}

llvm::Value* LoopEmitter::Accumulate(const LoopNode& node, ElementType accumulator, llvm::Value* sum,
                                     const Values& values) {
  const LoopOp op = static_cast<LoopOp>(node.param);
  const LoopNode& element = program_.nodes[node.operands[0]];
  if (op == LoopOp::kAdd && element.op == LoopOp::kMultiply && element.type == ElementType::kF64 &&
      accumulator == ElementType::kF64 && values[element.operands[0]] != nullptr &&
      values[element.operands[1]] != nullptr) {
    return values_.Fma(values[element.operands[0]], values[element.operands[1]], sum);
  }
  return values_.Combine(op, accumulator, sum, values_.ConvertValue(values[node.operands[0]], node.type, accumulator));
}

llvm::Value* LoopEmitter::FoldLanes(LoopOp op, ElementType type, llvm::Value* vector) {
  unsigned lanes = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  for (; lanes > 1; lanes /= 2) {
    std::vector<int> low, high;
    for (unsigned i = 0; i < lanes / 2; ++i) {
      low.push_back(static_cast<int>(i));
      high.push_back(static_cast<int>(i + lanes / 2));
    }
    vector = values_.Combine(op, type, b_.CreateShuffleVector(vector, low), b_.CreateShuffleVector(vector, high));
  }
  return vector;
}

void LoopEmitter::EmitRowValue(uint16_t i, const Values& reduced) {
  const LoopNode& node = program_.nodes[i];
  values_.set_lanes(LanesOf(set_));
  if (node.op == LoopOp::kInput) {
    values_.set_lanes(1);
    llvm::Value* const one = Load(node.type, in_row_[node.param], nullptr);
    values_.set_lanes(LanesOf(set_));
    row_values_[i] =
        b_.CreateVectorSplat(static_cast<unsigned>(LanesOf(set_)), b_.CreateExtractElement(one, uint64_t{0}));
    return;
  }
  if (node.op != LoopOp::kReduce) {
    row_values_[i] = Compute(i, row_values_);
    return;
  }
  const LoopOp op = static_cast<LoopOp>(node.param);
  const ElementType accumulator = AccumulatorType(op, node.type);
  llvm::Value* const splat =
      b_.CreateVectorSplat(static_cast<unsigned>(LanesOf(set_)), b_.CreateExtractElement(reduced[i], uint64_t{0}));
  llvm::Value* value = splat;
  if (node.operand_count > 1) {
    llvm::Value* const init = values_.ConvertValue(row_values_[node.operands[1]], node.type, accumulator);
    value = values_.Combine(op, accumulator, init, splat);
  }
  if (accumulator == ElementType::kF64 && BitsOf(node.type) < 64) {
    value = values_.ConvertValue(value, ElementType::kF64, ElementType::kF32);
  }
  if (BitsOf(node.type) < 32 && IsFloat(node.type)) {
    value = values_.ConvertValue(value, ElementType::kF32, node.type);
  }
  row_values_[i] = value;
}

void LoopEmitter::BeginRow(llvm::Value* row) {
  for (size_t i = 0; i < in_.size(); ++i) {
    in_row_[i] = PointerAt(in_[i], program_.inputs[i].type, b_.CreateMul(row, in_stride_[i]));
  }
  for (size_t o = 0; o < out_.size(); ++o) {
    out_row_[o] = PointerAt(out_[o], program_.nodes[program_.outputs[o]].type, b_.CreateMul(row, out_stride_[o]));
  }
  row_values_.assign(program_.nodes.size(), nullptr);
}

void LoopEmitter::EmitRow(llvm::Value* row) {
  BeginRow(row);
  for (uint16_t i : passes_.first_row_values) EmitRowValue(i, {});
  for (const RowPasses::Pass& pass : passes_.passes) {
    std::vector<uint16_t> reduces;
    for (uint16_t i : pass.row_values) {
      if (program_.nodes[i].op == LoopOp::kReduce) reduces.push_back(i);
    }
    const auto accumulator = [&](uint16_t i) {
      return AccumulatorType(static_cast<LoopOp>(program_.nodes[i].param), program_.nodes[i].type);
    };
    Values carried(reduces.size(), nullptr);
    if (!reduces.empty() || !pass.stores.empty() || !pass.saves.empty()) {
      const auto widen = [&](const Values&) {
        Values wide;
        for (uint16_t i : reduces) {
          llvm::Constant* const neutral = Neutral(static_cast<LoopOp>(program_.nodes[i].param), accumulator(i));
          wide.push_back(b_.CreateVectorSplat(static_cast<unsigned>(values_.lanes()), neutral));
        }
        return wide;
      };
      const auto fold = [&](const Values& wide) {
        Values one;
        for (size_t k = 0; k < wide.size(); ++k) {
          one.push_back(
              FoldLanes(static_cast<LoopOp>(program_.nodes[reduces[k]].param), accumulator(reduces[k]), wide[k]));
        }
        return one;
      };
      ForVectors(columns_, &carried, widen, fold, [&](llvm::Value* at, llvm::Value* mask, Values* sums) {
        Values values;
        std::vector<uint16_t> computed;
        Values loaded(program_.nodes.size(), nullptr);
        for (uint16_t i : pass.elements) {
          const bool saved_before =
              passes_.saved_index[i] >= 0 && std::find(pass.saves.begin(), pass.saves.end(), i) == pass.saves.end();
          if (saved_before) {
            loaded[i] = Load(program_.nodes[i].type, SavedAt(i, at), mask);
          } else {
            computed.push_back(i);
          }
        }
        EmitElementsWith(computed, at, mask, loaded, &values);
        for (uint16_t i : pass.saves) Store(program_.nodes[i].type, values[i], SavedAt(i, at), mask);
        for (uint16_t o : pass.stores) {
          const uint16_t node = program_.outputs[o];
          Store(program_.nodes[node].type, values[node], PointerAt(out_row_[o], program_.nodes[node].type, at), mask);
        }
        for (size_t k = 0; k < reduces.size(); ++k) {
          const LoopNode& node = program_.nodes[reduces[k]];
          llvm::Value* const combined = Accumulate(node, accumulator(reduces[k]), (*sums)[k], values);
          (*sums)[k] = mask == nullptr ? combined : b_.CreateSelect(mask, combined, (*sums)[k]);
        }
      });
    }
    Values reduced(program_.nodes.size(), nullptr);
    for (size_t k = 0; k < reduces.size(); ++k) reduced[reduces[k]] = carried[k];
    for (uint16_t i : pass.row_values) EmitRowValue(i, reduced);
  }
  // Results with one element in each row.
  for (size_t o = 0; o < program_.outputs.size(); ++o) {
    const uint16_t node = program_.outputs[o];
    if (!program_.nodes[node].row_value) continue;
    llvm::Value* const one = b_.CreateExtractElement(row_values_[node], uint64_t{0});
    values_.set_lanes(1);
    Store(program_.nodes[node].type, b_.CreateVectorSplat(1, one), out_row_[o], nullptr);
    values_.set_lanes(LanesOf(set_));
  }
}

bool LoopEmitter::Emit() {
  llvm::PointerType* const pointer = llvm::PointerType::getUnqual(b_.getContext());
  function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {pointer}, false),
                                     llvm::Function::ExternalLinkage, "kernel", module_);
  function_->addFnAttr("prefer-vector-width", "512");
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  arguments_ = function_->getArg(0);
  b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", function_));
  llvm::Value* const in = Field(0, pointer);
  llvm::Value* const out = Field(1, pointer);
  llvm::Value* const in_strides = Field(2, pointer);
  llvm::Value* const out_strides = Field(3, pointer);
  llvm::Value* const rows = Field(4, b_.getInt64Ty());
  columns_ = Field(5, b_.getInt64Ty());
  if (set_ == InstructionSet::kAvx512) {
    const unsigned lanes = static_cast<unsigned>(LanesOf(set_));
    llvm::Value* const rest = b_.CreateAnd(columns_, b_.getInt64(lanes - 1));
    llvm::Value* const ones = b_.CreateSub(b_.CreateShl(b_.getInt64(1), rest), b_.getInt64(1));
    last_mask_ = b_.CreateTrunc(ones, b_.getIntNTy(lanes));
  }
  scratch_ = Field(6, pointer);
  pitch_ = Field(7, b_.getInt64Ty());
  call_ = Field(8, pointer);
  functions_ = Field(9, pointer);
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    in_.push_back(Element(in, pointer, i));
    in_stride_.push_back(Element(in_strides, b_.getInt64Ty(), i));
  }
  for (size_t o = 0; o < program_.outputs.size(); ++o) {
    out_.push_back(Element(out, pointer, o));
    out_stride_.push_back(Element(out_strides, b_.getInt64Ty(), o));
  }
  in_row_.resize(in_.size());
  out_row_.resize(out_.size());
  if (program_.calls > 0) {
    for (int k = 0; k < 4; ++k) {
      llvm::AllocaInst* const memory =
          b_.CreateAlloca(llvm::ArrayType::get(b_.getInt64Ty(), static_cast<uint64_t>(LanesOf(set_))));
      memory->setAlignment(llvm::Align(64));
      call_memory_.push_back(memory);
    }
  }
  Values none;
  values_.set_lanes(LanesOf(set_));
  if (program_.form == LoopForm::kColumns) {
    EmitColumns(rows, Field(10, b_.getInt64Ty()));
  } else {
    Loop(b_.getInt64(0), rows, 1, &none, [&](llvm::Value* row, Values*) { EmitRow(row); });
  }
  b_.CreateRetVoid();
  return error_.empty();
}

}  // namespace hlokit::interp::compiled
