// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/llvm/loop_emitter.h"

#include <algorithm>
#include <cstddef>

namespace hlokit::interp::compiled {
namespace {

constexpr int64_t kCacheLine = 64;             // bytes
constexpr int64_t kPrefetchedElements = 2048;  // how far ahead
constexpr int kManyVectors = 4;  // at a time: so much work that processors do not look ahead to the next ones

int LaneCount(const llvm::Value* vector) {
  return static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
}

// Operations of many instructions.
bool IsFunction(LoopOp op) { return AccuracyOf(op) == LoopAccuracy::kApproximate; }

}  // namespace

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

int LoopEmitter::VectorsAtATime() const {
  if (program_.calls > 0) return 1;
  // The most functions of which each needs the result of the one before.
  std::vector<int> depth(program_.nodes.size(), 0);
  for (size_t i = 0; i < program_.nodes.size(); ++i) {
    const LoopNode& node = program_.nodes[i];
    if (node.row_value) continue;
    for (int k = 0; k < node.operand_count; ++k) depth[i] = std::max(depth[i], depth[node.operands[k]]);
    depth[i] += IsFunction(node.op) ? 1 : 0;
  }
  const int deepest = depth.empty() ? 0 : *std::max_element(depth.begin(), depth.end());
  if (deepest == 0 || set_ != InstructionSet::kAvx512) return 2;
  return deepest < 3 ? 4 : 8;
}

void LoopEmitter::ForVectors(llvm::Value* columns, Values* carried, const std::function<Values()>& widen,
                             const std::function<Values(const Values&, int)>& fold,
                             const std::function<void(llvm::Value*, llvm::Value*, Values*)>& body) {
  const int lanes = LanesOf(set_);
  const int vectors = VectorsAtATime();
  values_.set_lanes(vectors * lanes);
  Values wide = widen();
  const auto whole = [&](llvm::Value* at, Values* inner) { body(at, nullptr, inner); };
  llvm::Value* done = Loop(b_.getInt64(0), columns, vectors * lanes, &wide, whole);
  values_.set_lanes(lanes);
  if (vectors > 1) wide = fold(wide, lanes);
  if (set_ == InstructionSet::kAvx512) {
    // Only the last vectors have a mask: loads and stores with one take half as long again on some processors, and
    // three times as long of narrow elements (Zen 5).
    llvm::Value* const rounded = b_.CreateAdd(columns, b_.getInt64(static_cast<uint64_t>(lanes - 1)));
    Loop(done, rounded, lanes, &wide, [&](llvm::Value* at, Values* inner) {
      llvm::Value* const mask = MaskAt(at);
      body(at, mask, inner);
    });
    *carried = fold(wide, 1);
    return;
  }
  if (vectors > 1) done = Loop(done, columns, lanes, &wide, whole);
  *carried = fold(wide, 1);
  values_.set_lanes(1);
  Loop(done, columns, 1, carried, whole);
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

llvm::Value* LoopEmitter::SavedAt(uint16_t node, size_t row, llvm::Value* index) {
  const size_t number = row * static_cast<size_t>(passes_.saved_count) + static_cast<size_t>(passes_.saved_index[node]);
  llvm::Value* const offset = b_.CreateMul(pitch_, b_.getInt64(number));
  return PointerAt(b_.CreateGEP(b_.getInt8Ty(), scratch_, offset), program_.nodes[node].type, index);
}

void LoopEmitter::EmitElements(const std::vector<uint16_t>& nodes, const Row& row, llvm::Value* at, llvm::Value* mask,
                               Values* values) {
  const int lanes = values_.lanes(), vector = LanesOf(set_);
  for (size_t i = 0; i < row.all.size(); ++i) {
    if (row.all[i] == nullptr) continue;
    if (lanes < vector) {
      (*values)[i] = b_.CreateShuffleVector(row.one[i], std::vector<int>(static_cast<size_t>(lanes), 0));
    } else if (lanes == vector) {
      (*values)[i] = row.all[i];
    } else {
      std::vector<int> repeated;
      for (int k = 0; k < lanes; ++k) repeated.push_back(k % vector);
      (*values)[i] = b_.CreateShuffleVector(row.all[i], repeated);
    }
  }
  for (uint16_t i : nodes) {
    if ((*values)[i] != nullptr) continue;
    const LoopNode& node = program_.nodes[i];
    (*values)[i] = node.op == LoopOp::kInput ? Load(node.type, PointerAt(row.in[node.param], node.type, at), mask)
                                             : Compute(i, *values);
  }
}

ElementType LoopEmitter::AccumulatorOf(uint16_t reduce) const {
  return AccumulatorType(static_cast<LoopOp>(program_.nodes[reduce].param), program_.nodes[reduce].type);
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

llvm::Value* LoopEmitter::Fold(llvm::Value* vector, int to, const CombineFunction& combine) {
  for (int lanes = LaneCount(vector); lanes > to; lanes /= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < lanes / 2; ++i) {
      low.push_back(i);
      high.push_back(i + lanes / 2);
    }
    vector = combine(b_.CreateShuffleVector(vector, low), b_.CreateShuffleVector(vector, high));
  }
  return vector;
}

llvm::Value* LoopEmitter::FoldLanes(LoopOp op, ElementType type, llvm::Value* vector, int to) {
  if (IsOrderOfFloats(op, type) && to == 1) return FoldOrdered(op, vector, b_.CreateFCmpUNO(vector, vector));
  return Fold(vector, to, [&](llvm::Value* a, llvm::Value* b) { return values_.Combine(op, type, a, b); });
}

llvm::Value* LoopEmitter::FoldOrdered(LoopOp op, llvm::Value* vector, llvm::Value* nan) {
  llvm::Value* const number =
      Fold(vector, 1, [&](llvm::Value* a, llvm::Value* b) { return values_.CombineNumbers(op, a, b); });
  return b_.CreateSelect(b_.CreateOrReduce(nan), llvm::ConstantFP::getNaN(number->getType()), number);
}

void LoopEmitter::EmitRowValue(uint16_t i, llvm::Value* reduced, Row* row) {
  const LoopNode& node = program_.nodes[i];
  values_.set_lanes(1);
  llvm::Value* value = nullptr;
  if (node.op == LoopOp::kInput) {
    value = Load(node.type, row->in[node.param], nullptr);
  } else if (node.op != LoopOp::kReduce) {
    value = Compute(i, row->one);
  } else {
    const LoopOp op = static_cast<LoopOp>(node.param);
    const ElementType accumulator = AccumulatorType(op, node.type);
    value = reduced;
    if (node.operand_count > 1) {
      llvm::Value* const init = values_.ConvertValue(row->one[node.operands[1]], node.type, accumulator);
      value = values_.Combine(op, accumulator, init, value);
    }
    if (accumulator == ElementType::kF64 && BitsOf(node.type) < 64) {
      value = values_.ConvertValue(value, ElementType::kF64, ElementType::kF32);
    }
    if (BitsOf(node.type) < 32 && IsFloat(node.type)) {
      value = values_.ConvertValue(value, ElementType::kF32, node.type);
    }
  }
  row->one[i] = value;
  const int lanes = LanesOf(set_);
  row->all[i] = b_.CreateVectorSplat(static_cast<unsigned>(lanes), b_.CreateExtractElement(value, uint64_t{0}));
  values_.set_lanes(lanes);
}

LoopEmitter::Row LoopEmitter::RowAt(llvm::Value* number) {
  Row row;
  for (size_t i = 0; i < in_.size(); ++i) {
    row.in.push_back(PointerAt(in_[i], program_.inputs[i].type, b_.CreateMul(number, in_stride_[i])));
  }
  for (size_t o = 0; o < out_.size(); ++o) {
    row.out.push_back(
        PointerAt(out_[o], program_.nodes[program_.outputs[o]].type, b_.CreateMul(number, out_stride_[o])));
  }
  row.one.assign(program_.nodes.size(), nullptr);
  row.all.assign(program_.nodes.size(), nullptr);
  return row;
}

void LoopEmitter::PrefetchLater(const Row& row, llvm::Value* at) {
  for (size_t i = 0; i < in_.size(); ++i) {
    if (program_.inputs[i].row_value) continue;
    const ElementType type = program_.inputs[i].type;
    llvm::Value* const next = PointerAt(row.in[i], type, b_.CreateAdd(at, in_prefetch_[i]));
    for (int64_t byte = 0; byte < values_.lanes() * BytesOf(type); byte += kCacheLine) {
      llvm::Value* const line = b_.CreateConstGEP1_64(b_.getInt8Ty(), next, static_cast<uint64_t>(byte));
      // For reading, into all levels, of data.
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {line->getType()},
                         {line, b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
    }
  }
}

std::vector<LoopEmitter::Row> LoopEmitter::RowsFrom(llvm::Value* first, llvm::Value* rows) {
  std::vector<Row> group;
  llvm::Value* const last = b_.CreateSub(rows, b_.getInt64(1));
  for (int q = 0; q < rows_together_; ++q) {
    llvm::Value* const number = b_.CreateAdd(first, b_.getInt64(static_cast<uint64_t>(q)));
    group.push_back(RowAt(q == 0 ? first : b_.CreateSelect(b_.CreateICmpSLT(number, last), number, last)));
    for (uint16_t i : passes_.first_row_values) EmitRowValue(i, nullptr, &group.back());
  }
  return group;
}

void LoopEmitter::EmitPass(const RowPasses::Pass& pass, std::vector<Row>* group) {
  std::vector<uint16_t> reduces;
  for (uint16_t i : pass.row_values) {
    if (program_.nodes[i].op == LoopOp::kReduce) reduces.push_back(i);
  }
  const size_t count = reduces.size(), rows = group->size();
  Values carried(count * rows, nullptr);  // by row
  if (!reduces.empty() || !pass.stores.empty() || !pass.saves.empty()) {
    const auto widen = [&] {
      Values wide;
      for (size_t k = 0; k < count * rows; ++k) {
        const uint16_t i = reduces[k % count];
        llvm::Constant* const neutral = Neutral(static_cast<LoopOp>(program_.nodes[i].param), AccumulatorOf(i));
        wide.push_back(b_.CreateVectorSplat(static_cast<unsigned>(values_.lanes()), neutral));
      }
      return wide;
    };
    const auto fold = [&](const Values& wide, int lanes) {
      Values folded;
      for (size_t k = 0; k < wide.size(); ++k) {
        const uint16_t i = reduces[k % count];
        folded.push_back(FoldLanes(static_cast<LoopOp>(program_.nodes[i].param), AccumulatorOf(i), wide[k], lanes));
      }
      return folded;
    };
    // Of rows not in the first pass, which waits for memory as it is.
    const bool prefetches = program_.form == LoopForm::kRows ? passes_.passes.size() > 1 && &pass == &passes_.passes[1]
                                                             : VectorsAtATime() >= kManyVectors;
    ForVectors(columns_, &carried, widen, fold, [&](llvm::Value* at, llvm::Value* mask, Values* sums) {
      std::vector<Values> values(rows, Values(program_.nodes.size(), nullptr));
      for (size_t q = 0; q < rows; ++q) {
        for (uint16_t i : pass.elements) {
          const bool saved_before =
              passes_.saved_index[i] >= 0 && std::find(pass.saves.begin(), pass.saves.end(), i) == pass.saves.end();
          if (saved_before) values[q][i] = Load(program_.nodes[i].type, SavedAt(i, q, at), mask);
        }
        EmitElements(pass.elements, (*group)[q], at, mask, &values[q]);
      }
      for (size_t q = 0; q < rows; ++q) {
        const Row& row = (*group)[q];
        for (uint16_t i : pass.saves) Store(program_.nodes[i].type, values[q][i], SavedAt(i, q, at), mask);
        for (uint16_t o : pass.stores) {
          const uint16_t node = program_.outputs[o];
          Store(program_.nodes[node].type, values[q][node], PointerAt(row.out[o], program_.nodes[node].type, at), mask);
        }
        if (mask == nullptr && prefetches) PrefetchLater(row, at);
        for (size_t k = 0; k < count; ++k) {
          const LoopNode& node = program_.nodes[reduces[k]];
          const ElementType type = AccumulatorOf(reduces[k]);
          llvm::Value*& sum = (*sums)[q * count + k];
          llvm::Value* const combined = Accumulate(node, type, sum, values[q]);
          sum = mask == nullptr ? combined : b_.CreateSelect(mask, combined, sum);
        }
      }
    });
  }
  for (size_t q = 0; q < rows; ++q) {
    size_t next = q * count;
    for (uint16_t i : pass.row_values) {
      EmitRowValue(i, program_.nodes[i].op == LoopOp::kReduce ? carried[next++] : nullptr, &(*group)[q]);
    }
  }
}

void LoopEmitter::EmitRows(llvm::Value* rows) {
  Values none;
  llvm::Value* const end = b_.CreateAdd(rows, b_.getInt64(static_cast<uint64_t>(rows_together_ - 1)));
  Loop(b_.getInt64(0), end, rows_together_, &none, [&](llvm::Value* first, Values*) {
    std::vector<Row> group = RowsFrom(first, rows);
    for (const RowPasses::Pass& pass : passes_.passes) EmitPass(pass, &group);
    for (const Row& row : group) EmitRowResults(row);
  });
}

void LoopEmitter::EmitRowResults(const Row& row) {
  values_.set_lanes(1);
  for (size_t o = 0; o < program_.outputs.size(); ++o) {
    const uint16_t node = program_.outputs[o];
    if (program_.nodes[node].row_value) Store(program_.nodes[node].type, row.one[node], row.out[o], nullptr);
  }
  values_.set_lanes(LanesOf(set_));
}

llvm::Error LoopEmitter::Emit() {
  llvm::PointerType* const pointer = llvm::PointerType::getUnqual(b_.getContext());
  function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {pointer}, false),
                                     llvm::Function::ExternalLinkage, "kernel", module_);
  function_->addFnAttr("prefer-vector-width", "512");
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  // Vectors that do not fit in registers are not to cross lines of the cache on the stack.
  const uint64_t vector_bytes = static_cast<uint64_t>(LanesOf(set_)) * sizeof(float);
  function_->addFnAttr(llvm::Attribute::getWithStackAlignment(b_.getContext(), llvm::Align(vector_bytes)));
  function_->addFnAttr("stackrealign");
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
  if (program_.form == LoopForm::kRows) {
    // Of short rows some later one, else later elements of the row.
    llvm::Value* const ahead = b_.getInt64(kPrefetchedElements);
    llvm::Value* const divisor = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, columns_, b_.getInt64(1));
    llvm::Value* const later = b_.CreateUDiv(ahead, divisor);
    llvm::Value* const is_short = b_.CreateICmpSLE(columns_, ahead);
    for (llvm::Value* stride : in_stride_) {
      in_prefetch_.push_back(b_.CreateSelect(is_short, b_.CreateMul(stride, later), ahead));
    }
  } else {
    in_prefetch_.assign(in_.size(), b_.getInt64(kPrefetchedElements / 2));
  }
  if (program_.calls > 0) {
    for (int k = 0; k < 4; ++k) {
      llvm::AllocaInst* const memory =
          b_.CreateAlloca(llvm::ArrayType::get(b_.getInt64Ty(), static_cast<uint64_t>(LanesOf(set_))));
      memory->setAlignment(llvm::Align(64));
      call_memory_.push_back(memory);
    }
  }
  values_.set_lanes(LanesOf(set_));
  if (program_.form == LoopForm::kWhile) {
    EmitWhile(rows);
  } else if (program_.form == LoopForm::kColumns) {
    EmitColumns(rows, Field(10, b_.getInt64Ty()));
  } else if (program_.columns > 0) {
    EmitRegisterRows(rows);
  } else {
    EmitRows(rows);
  }
  b_.CreateRetVoid();
  if (!error_.empty()) return llvm::createStringError(llvm::inconvertibleErrorCode(), error_);
  return llvm::Error::success();
}

}  // namespace hlokit::interp::compiled
