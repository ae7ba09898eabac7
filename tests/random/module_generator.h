// SPDX-License-Identifier: Apache-2.0
// Generates the text of random modules instruction by instruction, driven by the opcode table: the shape rule of an
// opcode determines its operands and attributes. One file for each family of rules.
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

  // Returns HLO text.
  std::string Make();

 private:
  // ---- text ----

  static std::string Join(const std::vector<std::string>& list);
  static std::string TupleText(const std::vector<Array>& arrays);
  std::string NewName(std::string_view base) { return StrCat(base, ".", ++names_); }
  // Appends a line whose result is not an array for other instructions. Returns its name.
  std::string Line(std::string_view shape, std::string_view opcode, const std::vector<std::string>& operands,
                   std::string_view attributes = "");
  Value Add(const Array& result, std::string_view opcode, const std::vector<std::string>& operands,
            std::string_view attributes = "");
  void TakeElement(const std::string& tuple, int64_t index, const Array& array);
  // Adds an instruction with a tuple result (a, b, ...) of arrays, whose elements become values.
  void AddTuple(const std::vector<Array>& results, std::string_view opcode, const std::vector<std::string>& operands,
                std::string_view attributes);

  // ---- values ----

  Dims RandomDims(int64_t min_rank = 0, int64_t max_rank = 3);
  // Returns a dimension that is not 0: a small one, or sometimes one that fills vectors.
  int64_t Size(int64_t seldom) { return random_.OneIn(seldom) ? random_.In(8, 40) : random_.In(1, 4); }
  // Returns dimensions of which none is 0.
  Dims FullDims(int64_t min_rank, int64_t max_rank);
  std::string Constant(ElementType type);
  // Returns an array of this shape: an existing one, a parameter, or a new one.
  std::string Need(const Array& array);
  // Returns one of floats whose elements at an index of a dimension are sometimes NaN. Requires: a rank that is not 0.
  std::string NeedWithNans(const Array& array);
  std::string Scalar(ElementType type) { return Need({type, {}}); }

  // ---- computations ----

  // Adds a computation (type, type) -> type.
  std::string Function(ElementType type);
  std::string Comparison(const std::vector<ElementType>& types);
  // Adds a computation that keeps the greater or less of two values with its index, as JAX writes argmax and argmin.
  std::string ExtremeWithIndex(ElementType value, ElementType index);
  // Adds a computation with parameters of these arrays and a root of `result`, with random instructions in between.
  std::string Body(const std::vector<Array>& parameters, const Array& result);

  // ---- instructions: each function handles the shape rules of one family, and returns false for others ----

  void Emit(Opcode opcode);
  // Adds elementwise instructions on an array that instructions moved, which a loop may read where it was.
  void UseMoved(const Value& moved);
  bool EmitElementwise(Opcode opcode);    // elementwise.cc
  bool EmitMovement(Opcode opcode);       // movement.cc
  bool EmitCombination(Opcode opcode);    // combination.cc
  bool EmitWindows(Opcode opcode);        // windows.cc
  bool EmitLinearAlgebra(Opcode opcode);  // linear_algebra.cc
  bool EmitControl(Opcode opcode);        // control.cc
  bool EmitDevices(Opcode opcode);        // devices.cc

  // Returns true if an elementwise opcode accepts these types.
  bool Accepts(Opcode opcode, const std::vector<ElementType>& types, ElementType result);
  // Returns a type for `count` operands and the result, or nullopt.
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
  bool draws_ = false;  // an instruction takes the next random number
};

}  // namespace hlokit::random_test

#endif  // HLOKIT_TESTS_RANDOM_MODULE_GENERATOR_H_
