// SPDX-License-Identifier: Apache-2.0
#include "tests/random/dimension_numbers.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "tests/random/dimension_numbers_generator.h"

namespace hlokit::random_test {
namespace {

// Appends the elements in nested braces, up to a dimension of size 0.
std::string Nested(const Dims& dims, const std::vector<std::string>& elements) {
  if (dims.empty()) return elements.empty() ? "" : elements[0];
  std::string text;
  Dims at(dims.size(), 0);
  // Braces that close and open between one element, or empty innermost list, and the next.
  size_t depth = 0;
  while (depth < dims.size() && dims[depth] != 0) ++depth;
  const bool empty = depth < dims.size();
  const size_t levels = empty ? depth + 1 : depth;
  const Dims walked(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(depth));
  const int64_t count = std::accumulate(walked.begin(), walked.end(), int64_t{1}, std::multiplies<>());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    size_t begins = 0;  // of how many innermost levels this is the first
    for (size_t d = walked.size(); d-- > 0 && rest % walked[d] == 0; rest /= walked[d]) ++begins;
    if (i > 0) {
      text.append(begins, '}');
      text += ",";
    }
    text.append(i == 0 ? walked.size() : begins, '{');
    text += empty ? "{}" : elements[static_cast<size_t>(i)];
  }
  text.append(walked.size(), '}');
  return levels == 1 && empty ? "{}" : text;
}

}  // namespace

std::string DimensionNumbersCase::Text(bool constants) const {
  std::string text = "HloModule m";
  if (replicas > 1) StrAppend(&text, ", replica_count=", replicas);
  if (partitions > 1) StrAppend(&text, ", num_partitions=", partitions);
  StrAppend(&text, "\n\n", computations, "ENTRY e {\n");
  std::string names;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string value = constants ? StrCat("constant(", operands[i].value, ")") : StrCat("parameter(", i, ")");
    StrAppend(&text, "  a", i, " = ", operands[i].shape, " ", value, "\n");
    StrAppend(&names, i == 0 ? "" : ", ", i == 0 && !moved.empty() ? std::string("m") : StrCat("a", i));
  }
  StrAppend(&text, moved);
  StrAppend(&text, "  ROOT r = ", shape, shape.empty() ? "" : " ", ToString(opcode), "(", names, ")",
            attributes.empty() ? "" : ", ", attributes, "\n}\n");
  return text;
}

const std::vector<Opcode>& OpcodesWithDimensionNumbers() {
  using enum Opcode;
  static const std::vector<Opcode> opcodes = {kGather,
                                              kScatter,
                                              kDynamicSlice,
                                              kDynamicUpdateSlice,
                                              kDot,
                                              kRaggedDot,
                                              kScatter,
                                              kConvolution,
                                              kReduceWindow,
                                              kSelectAndScatter,
                                              kReduce,
                                              kSort,
                                              kFft,
                                              kCholesky,
                                              kTriangularSolve,
                                              kAllGather,
                                              kAllReduce,
                                              kReduceScatter,
                                              kAllToAll,
                                              kGather,
                                              kDot,
                                              kCollectiveBroadcast,
                                              kPad,
                                              kCollectivePermute,
                                              kTranspose,
                                              kRaggedAllToAll,
                                              kBroadcast,
                                              kReverse,
                                              kConcatenate,
                                              kSlice,
                                              kIota,
                                              kBitcast,
                                              kSlice,
                                              kPad,
                                              kCollectiveReduce};
  return opcodes;
}

DimensionNumbersCase MakeDimensionNumbersCase(Opcode opcode, uint64_t seed) {
  return DimensionNumbersGenerator(opcode, seed).Make();
}

DimensionNumbersGenerator::DimensionNumbersGenerator(Opcode opcode, uint64_t seed) : random_(seed) {
  case_.opcode = opcode;
}

DimensionNumbersCase DimensionNumbersGenerator::Make() {
  if (!MakeIndexed() && !MakeProduct() && !MakeWindowed() && !MakeMovement() && !MakeAlgebra()) MakeCollective();
  return case_;
}

// ---- numbers ----

int64_t DimensionNumbersGenerator::Size() {
  const int64_t n = random_.In(1, 40);
  if (n <= 2) return 0;
  if (n <= 12) return 1;
  if (n <= 38) return random_.In(2, 5);
  return random_.In(8, 40);
}

Dims DimensionNumbersGenerator::SomeDims(int64_t min_rank, int64_t max_rank) {
  Dims dims(static_cast<size_t>(random_.In(min_rank, max_rank)));
  for (int64_t& d : dims) d = Size();
  return dims;
}

const std::vector<int64_t>& DimensionNumbersGenerator::Extremes() {
  static const std::vector<int64_t> extremes = {-1,
                                                0,
                                                7,
                                                -100,
                                                int64_t{1} << 20,
                                                std::numeric_limits<int32_t>::max(),
                                                int64_t{1} << 32,
                                                int64_t{1} << 62,
                                                std::numeric_limits<int64_t>::max(),
                                                std::numeric_limits<int64_t>::min()};
  return extremes;
}

void DimensionNumbersGenerator::Cancel(int64_t* low, int64_t* high) {
  if (!random_.OneIn(80)) return;
  const int64_t n = random_.OneIn(4) ? std::numeric_limits<int64_t>::max() : int64_t{1} << random_.In(3, 62);
  *low = random_.OneIn(2) ? n : -n;
  *high = -*low + random_.In(-1, 2);
}

Dims DimensionNumbersGenerator::Distinct(int64_t bound, int64_t count) {
  Dims all(static_cast<size_t>(std::max<int64_t>(bound, 0)));
  std::iota(all.begin(), all.end(), 0);
  for (size_t i = all.size(); i > 1; --i) {
    std::swap(all[i - 1], all[static_cast<size_t>(random_.In(0, static_cast<int64_t>(i) - 1))]);
  }
  all.resize(std::min(all.size(), static_cast<size_t>(std::max<int64_t>(count, 0))));
  return all;
}

Dims DimensionNumbersGenerator::Sorted(Dims list) const {
  std::sort(list.begin(), list.end());
  return list;
}

Dims DimensionNumbersGenerator::Odd(Dims list, int64_t rank) {
  if (!random_.OneIn(25)) return list;
  const auto any = [&] { return static_cast<size_t>(random_.In(0, static_cast<int64_t>(list.size()) - 1)); };
  const int64_t kind = random_.In(0, 4);
  if (list.empty() || kind == 0) {
    list.push_back(random_.In(-1, rank));
  } else if (kind == 1) {
    list[any()] = random_.OneIn(4) ? random_.Of(Extremes()) : random_.In(-1, rank);
  } else if (kind == 2) {
    std::swap(list[any()], list[any()]);
  } else if (kind == 3) {
    list.erase(list.begin() + static_cast<ptrdiff_t>(any()));
  } else {
    list.push_back(list[any()]);
  }
  return list;
}

// ---- types ----

ElementType DimensionNumbersGenerator::AnyType() {
  static const std::vector<ElementType> types = {kPred, kS2,  kS4,     kS8,       kS16,    kS32,      kS64,  kU2,
                                                 kU4,   kU8,  kU16,    kU32,      kU64,    kF16,      kBF16, kF32,
                                                 kF32,  kF64, kF8E5M2, kF8E4M3FN, kF8E3M4, kF4E2M1FN, kC64,  kC128};
  return random_.Of(types);
}

ElementType DimensionNumbersGenerator::RealType() {
  static const std::vector<ElementType> types = {kS4,  kS8,  kS16,  kS32, kS64, kU8,     kU32,
                                                 kU64, kF16, kBF16, kF32, kF32, kF8E5M2, kF64};
  return random_.Of(types);
}

ElementType DimensionNumbersGenerator::FloatType() {
  static const std::vector<ElementType> types = {kF16, kBF16, kF32, kF64, kF32, kF8E4M3FN};
  return random_.Of(types);
}

ElementType DimensionNumbersGenerator::IndexType() {
  static const std::vector<ElementType> types = {kS8, kS16, kS32, kS32, kS64, kU8, kU16, kU32, kU64};
  static const std::vector<ElementType> narrow = {kS4, kU4, kS2, kU2};
  return random_.Of(random_.OneIn(20) ? narrow : types);
}

// ---- text ----

std::string DimensionNumbersGenerator::Integer(ElementType type, int64_t low, int64_t high) {
  const int bits = BitsOf(type);
  const bool is_signed = IsSigned(type);
  const int64_t max =
      bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  const int64_t min = !is_signed ? 0 : bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1));
  if (random_.OneIn(16)) {
    if (!is_signed && bits == 64) return "18446744073709551615";
    return StrCat(random_.OneIn(2) ? max : min);
  }
  return StrCat(std::clamp(random_.In(low, high), min, max));
}

std::string DimensionNumbersGenerator::Element(ElementType type) {
  if (type == kPred) return random_.OneIn(2) ? "true" : "false";
  if (IsInteger(type)) return Integer(type, -3, 5);
  static const std::vector<std::string> special = {"nan", "inf", "-inf", "-0", "0.5", "100"};
  const bool has_all = type == kF16 || type == kBF16 || type == kF32 || type == kF64;
  const auto number = [&]() -> std::string {
    if (!random_.OneIn(40) || !has_all) return StrCat(random_.In(-3, 3));
    const std::string& one = random_.Of(special);
    // The order that < makes has no place for a NaN, also that of an infinity in a type that has none: each way of
    // sorting gives it another.
    return case_.opcode == Opcode::kSort && (one == "nan" || one.ends_with("inf")) ? "0.5" : one;
  };
  if (!IsComplex(type)) return number();
  return StrCat("(", random_.In(-3, 3), ", ", random_.In(-3, 3), ")");
}

void DimensionNumbersGenerator::AddValues(const Array& array, std::string_view layout,
                                          const std::vector<std::string>& elements) {
  std::vector<std::string> texts = elements;
  if (array.type == kPred && !array.dims.empty()) {
    for (std::string& text : texts) text = text == "true" ? "1" : "0";
  }
  case_.operands.push_back({StrCat(random_test::Text(array), layout), Nested(array.dims, texts)});
}

namespace {

// Returns an array whose values can be written: sizes of windows may be any number, of which there would be gigabytes.
Array Writable(Array array) {
  constexpr double kMaxElements = 1 << 17;
  double count = 1;
  for (int64_t d : array.dims) count *= static_cast<double>(d);
  if (count <= kMaxElements) return array;
  for (int64_t& d : array.dims) d = std::min<int64_t>(d, 5);
  return array;
}

}  // namespace

void DimensionNumbersGenerator::AddOperand(const Array& given, std::string_view layout) {
  const Array array = Writable(given);
  int64_t count = 1;
  for (int64_t d : array.dims) count *= d;
  std::vector<std::string> elements;
  for (int64_t i = 0; i < count; ++i) elements.push_back(Element(array.type));
  AddValues(array, layout, elements);
}

void DimensionNumbersGenerator::AddIndices(const Array& given, int64_t size) {
  const Array array = Writable(given);
  int64_t count = 1;
  for (int64_t d : array.dims) count *= d;
  std::vector<std::string> elements;
  for (int64_t i = 0; i < count; ++i) elements.push_back(Integer(array.type, random_.OneIn(6) ? -2 : 0, size));
  AddValues(array, "", elements);
}

std::string DimensionNumbersGenerator::Reducer(const std::vector<ElementType>& accumulators,
                                               const std::vector<ElementType>& elements) {
  static const std::vector<std::string> of_numbers = {"add", "add", "maximum", "minimum", "multiply", "subtract"};
  static const std::vector<std::string> of_complex = {"add", "multiply", "subtract"};
  static const std::vector<std::string> of_pred = {"and", "or", "xor"};
  const std::string name = StrCat("f", computations_++);
  std::string body, results;
  for (size_t k = 0; k < accumulators.size(); ++k) {
    const std::string a = StrCat(ToString(accumulators[k]), "[]");
    StrAppend(&body, "  a", k, " = ", a, " parameter(", k, ")\n");
    StrAppend(&body, "  b", k, " = ", ToString(elements[k]), "[] parameter(", accumulators.size() + k, ")\n");
    std::string b = StrCat("b", k);
    if (accumulators[k] != elements[k]) {
      StrAppend(&body, "  c", k, " = ", a, " convert(", b, ")\n");
      b = StrCat("c", k);
    }
    const bool first = k == 0 && accumulators.size() == 1;
    const std::string left = random_.OneIn(8) ? b : StrCat("a", k), right = random_.OneIn(8) ? left : b;
    StrAppend(&body, "  ", first ? "ROOT " : "", "r", k, " = ", a, " ",
              random_.Of(accumulators[k] == kPred     ? of_pred
                         : IsComplex(accumulators[k]) ? of_complex
                                                      : of_numbers),
              "(", left, ", ", right, ")\n");
    StrAppend(&results, k == 0 ? "" : ", ", "r", k);
  }
  if (accumulators.size() > 1) StrAppend(&body, "  ROOT t = tuple(", results, ")\n");
  StrAppend(&case_.computations, name, " {\n", body, "}\n\n");
  return name;
}

std::string DimensionNumbersGenerator::Comparison(const std::vector<ElementType>& types, bool any_direction) {
  static const std::vector<std::string> directions = {"LT", "GT", "LE", "GE", "EQ", "NE"};
  const std::string name = StrCat("f", computations_++);
  StrAppend(&case_.computations, name, " {\n");
  for (size_t i = 0; i < 2 * types.size(); ++i) {
    StrAppend(&case_.computations, "  p", i, " = ", ToString(types[i / 2]), "[] parameter(", i, ")\n");
  }
  const int64_t last = any_direction ? 3 : 1;
  StrAppend(&case_.computations,
            "  ROOT r = pred[] compare(p0, p1), direction=", directions[static_cast<size_t>(random_.In(0, last))],
            IsFloat(types[0]) && random_.OneIn(2) ? ", type=TOTALORDER" : "", "\n}\n\n");
  return name;
}

Dims DimensionNumbersGenerator::Window(const Dims& dims, const Dims& sizes, bool dilated) {
  std::string size, stride, pad, base, window, reversal;
  Dims positions;
  for (size_t d = 0; d < dims.size(); ++d) {
    const char* const x = d == 0 ? "" : "x";
    const int64_t s = Number(sizes[d]), step = Number(random_.In(1, 3));
    int64_t low = Number(random_.OneIn(3) ? random_.In(-2, 2) : 0);
    int64_t high = Number(random_.OneIn(3) ? random_.In(-2, 3) : 0);
    Cancel(&low, &high);
    const int64_t b = dilated && random_.OneIn(4) ? Number(random_.In(1, 3)) : 1;
    const int64_t w = dilated && random_.OneIn(4) ? Number(random_.In(1, 4)) : 1;
    StrAppend(&size, x, s);
    StrAppend(&stride, x, step);
    StrAppend(&pad, x, low, "_", high);
    StrAppend(&base, x, b);
    StrAppend(&window, x, w);
    StrAppend(&reversal, x, random_.In(0, 1));
    using Wide = __int128;
    const Wide padded = (dims[d] == 0 ? Wide{0} : Wide{dims[d] - 1} * b + 1) + low + high;
    const Wide extent = Wide{s - 1} * w + 1;
    positions.push_back(
        step <= 0 || padded < extent || padded <= 0 ? 0 : static_cast<int64_t>((padded - extent) / step + 1));
  }
  Attribute("window", dims.empty()
                          ? "{}"
                          : StrCat("{size=", size, " stride=", stride, " pad=", pad,
                                   dilated ? StrCat(" lhs_dilate=", base, " rhs_dilate=", window) : "",
                                   dilated && random_.OneIn(3) ? StrCat(" rhs_reversal=", reversal) : "", "}"));
  return positions;
}

}  // namespace hlokit::random_test
