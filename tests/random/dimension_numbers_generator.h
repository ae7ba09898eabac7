// SPDX-License-Identifier: Apache-2.0
// Generates the instruction of a module with dimension numbers. One file for each family.
#ifndef HLOKIT_TESTS_RANDOM_DIMENSION_NUMBERS_GENERATOR_H_
#define HLOKIT_TESTS_RANDOM_DIMENSION_NUMBERS_GENERATOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/random/dimension_numbers.h"
#include "tests/random/text_builder.h"

namespace hlokit::random_test {

class DimensionNumbersGenerator {
 public:
  DimensionNumbersGenerator(Opcode opcode, uint64_t seed);
  DimensionNumbersCase Make();

 private:
  using enum ElementType;

  // ---- numbers ----

  // Returns a dimension: mostly small, seldom 0, sometimes one that fills vectors.
  int64_t Size();
  Dims SomeDims(int64_t min_rank, int64_t max_rank);
  // Returns `usual`, or seldom an extreme number.
  int64_t Number(int64_t usual) { return random_.OneIn(60) ? random_.Of(Extremes()) : usual; }
  static const std::vector<int64_t>& Extremes();
  // Seldom makes two numbers large and their sum small.
  void Cancel(int64_t* low, int64_t* high);
  // Returns `count` of the numbers below `bound` in random order, or fewer.
  Dims Distinct(int64_t bound, int64_t count);
  Dims Sorted(Dims list) const;
  // Seldom changes a list of dimensions: repeats, swaps, drops, adds or replaces one.
  Dims Odd(Dims list, int64_t rank);
  std::string Braces(const Dims& list) const { return StrCat("{", List(list), "}"); }

  // ---- types ----

  ElementType AnyType();
  ElementType RealType();
  ElementType FloatType();
  ElementType IndexType();
  // Returns the type, or seldom another float in place of a float.
  ElementType Near(ElementType type) { return IsFloat(type) && random_.OneIn(8) ? FloatType() : type; }

  // ---- text ----

  // Adds an operand with small numbers and some extremes; of floats, numbers whose sums are exact.
  void AddOperand(const Array& given, std::string_view layout = "");
  // Adds an operand with numbers around [0, size], and some extremes.
  void AddIndices(const Array& given, int64_t size);
  void AddValues(const Array& array, std::string_view layout, const std::vector<std::string>& elements);
  std::string Element(ElementType type);
  std::string Integer(ElementType type, int64_t low, int64_t high);
  void Attribute(std::string_view name, std::string_view value) {
    StrAppend(&case_.attributes, case_.attributes.empty() ? "" : ", ", name, "=", value);
  }
  void ListAttribute(std::string_view name, const Dims& list) { Attribute(name, Braces(list)); }
  // Adds a computation of accumulators and elements to new accumulators.
  std::string Reducer(const std::vector<ElementType>& accumulators, const std::vector<ElementType>& elements);
  // Adds a comparison of the first pair.
  std::string Comparison(const std::vector<ElementType>& types, bool any_direction);
  // Sets `window` for an array of these dimensions, and returns the dimensions of its positions, clamped at 0.
  Dims Window(const Dims& dims, const Dims& sizes, bool dilated);

  // ---- families; each returns false for opcodes of others ----

  bool MakeIndexed();     // dimension_numbers_indexed.cc
  bool MakeProduct();     // dimension_numbers_products.cc
  bool MakeWindowed();    // dimension_numbers_windows.cc
  bool MakeMovement();    // dimension_numbers_movement.cc
  bool MakeAlgebra();     // dimension_numbers_products.cc
  bool MakeCollective();  // dimension_numbers_devices.cc

  void MakeGatherOrScatter();
  void MakeDynamicSlice();
  void MakeDot();
  void MakeRaggedDot();
  void MakeConvolution();
  void MakeReduction();
  void MakeSelectAndScatter();
  void MakeSort();
  void MakeBitcast();
  // Adds operand 0, or sometimes another array and an instruction that moves its elements to this one.
  void AddMovedOperand(const Array& array);
  std::string Groups(int64_t ids, int64_t* size);

  DimensionNumbersCase case_;
  Random random_;
  int computations_ = 0;
};

}  // namespace hlokit::random_test

#endif  // HLOKIT_TESTS_RANDOM_DIMENSION_NUMBERS_GENERATOR_H_
