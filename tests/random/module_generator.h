// SPDX-License-Identifier: Apache-2.0
// Makes the text of random modules instruction by instruction. What each opcode needs is found from its row in the
// opcode table: its shape rule says what operands and attributes an instruction of it has. One file for each family of
// rules.
#ifndef HLOKIT_TESTS_RANDOM_MODULE_GENERATOR_H_
#define HLOKIT_TESTS_RANDOM_MODULE_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/context.h"
#include "ir/graph/module.h"
#include "ir/ops/opcode.h"
#include "ir/types/element_type.h"
#include "tests/random/random_module.h"
#include "tests/random/text_builder.h"

namespace hlokit::random_test {

using enum ElementType;

inline const std::vector<ElementType> kTypes = {kPred, kS4,  kS8,   kS16, kS32, kS64,    kU4,       kU8,  kU16, kU32,
                                                kU64,  kF16, kBF16, kF32, kF64, kF8E5M2, kF8E4M3FN, kC64, kC128};
inline const std::vector<ElementType> kReals = {kF16, kBF16, kF32, kF64};
inline const std::vector<ElementType> kNumbers = {kS8, kS32, kS64, kU8, kU32, kF16, kBF16, kF32, kF64};
inline const std::vector<ElementType> kIndices = {kS8, kS32, kS64, kU8, kU16, kU32, kU64};

class ModuleGenerator {
 public:
  explicit ModuleGenerator(const RandomModuleOptions& options);

  // HLO text.
  std::string Make();

 private:
  // ---- text ----

  static std::string Join(const std::vector<std::string>& list);
  static std::string TupleText(const std::vector<Array>& arrays);
  std::string NewName(std::string_view base) { return StrCat(base, ".", ++names_); }
  // A line whose result is no array that others use; its name.
  std::string Line(std::string_view shape, std::string_view opcode, const std::vector<std::string>& operands,
                   std::string_view attributes = "");
  Value Add(const Array& result, std::string_view opcode, const std::vector<std::string>& operands,
            std::string_view attributes = "");
  void TakeElement(const std::string& tuple, int64_t index, const Array& array);
  // (a, b, ...) of arrays: its elements become values.
  void AddTuple(const std::vector<Array>& results, std::string_view opcode, const std::vector<std::string>& operands,
                std::string_view attributes);

  // ---- values ----

  Dims RandomDims(int64_t min_rank = 0, int64_t max_rank = 3);
  // None of them 0.
  Dims FullDims(int64_t min_rank, int64_t max_rank);
  std::string Constant(ElementType type);
  // An array of this shape: one that is there, a parameter, or one made for it.
  std::string Need(const Array& array);
  std::string Scalar(ElementType type) { return Need({type, {}}); }

  // ---- computations ----

  // (type, type) -> type.
  std::string Function(ElementType type);
  std::string Comparison(const std::vector<ElementType>& types);
  // Fills a computation with parameters of these arrays and a root of `result`, in between random instructions.
  std::string Body(const std::vector<Array>& parameters, const Array& result);

  // ---- instructions: each function knows the shape rules of one family, and says false to others ----

  void Emit(Opcode opcode);
  bool EmitElementwise(Opcode opcode);    // elementwise.cc
  bool EmitMovement(Opcode opcode);       // movement.cc
  bool EmitCombination(Opcode opcode);    // combination.cc
  bool EmitLinearAlgebra(Opcode opcode);  // linear_algebra.cc
  bool EmitControl(Opcode opcode);        // control.cc
  bool EmitDevices(Opcode opcode);        // devices.cc

  // Whether an elementwise opcode takes these types.
  bool Accepts(Opcode opcode, const std::vector<ElementType>& types, ElementType result);
  // A type that `count` operands and the result may have; null if there is none.
  std::optional<ElementType> TypeFor(Opcode opcode, size_t count);

  const RandomModuleOptions options_;
  Random random_;
  std::shared_ptr<Context> context_;
  std::unique_ptr<Module> scratch_;
  std::string computations_;
  std::vector<Value> parameters_;  // of the entry
  Region* region_ = nullptr;
  int nesting_ = 0;
  int names_ = 0;
  bool draws_ = false;  // there is an instruction that takes the next random number
};

}  // namespace hlokit::random_test

#endif  // HLOKIT_TESTS_RANDOM_MODULE_GENERATOR_H_
