// SPDX-License-Identifier: Apache-2.0
// The codes that encodings of attributes and types begin with. They never change: stablehlo/dialect/VhloBytecode.cpp,
// and the lists at the end of mlir/IR/BuiltinDialectBytecode.td.
#ifndef HLOKIT_PARSER_BYTECODE_VHLO_CODES_H_
#define HLOKIT_PARSER_BYTECODE_VHLO_CODES_H_

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"

namespace hlokit::bytecode {

namespace builtin {

enum AttributeCode : uint64_t {
  kArray = 0,
  kDictionary = 1,
  kString = 2,
  kFlatSymbol = 4,
  kType = 6,
  kUnit = 7,
  kInteger = 8,
  kFloat = 9,
  kCallSiteLocation = 10,
  kFileLocation = 11,
  kFusedLocation = 12,
  kFusedLocationWithMetadata = 13,
  kNameLocation = 14,
  kUnknownLocation = 15,
  kDense = 18,
  kFileRange = 22,
};
enum TypeCode : uint64_t {
  kIntegerType = 0,
  kIndexType = 1,
  kFunctionType = 2,
  kFirstFloat = 3,
  kComplexType = 9,
  kNoneType = 12,
  kTensorType = 13,
  kFirstSmallFloat = 22,
};
inline constexpr std::string_view kFloatTypes[] = {"bf16", "f16", "f32", "f64"};  // from kFirstFloat on
inline constexpr std::string_view kSmallFloatTypes[] = {                          // from kFirstSmallFloat on
    "f8E5M2", "f8E4M3",   "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E4M3B11FNUZ",
    "f8E3M4", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN",   "f8E8M0FNU"};

}  // namespace builtin

namespace vhlo {

enum AttributeCode : uint64_t {
  kArray = 1,
  kBool = 2,
  kComparisonDirection = 3,
  kComparisonType = 4,
  kApiVersion = 5,
  kDictionary = 6,
  kFftType = 7,
  kFloat = 8,
  kInteger = 9,
  kOutputOperandAlias = 10,
  kPrecision = 11,
  kRngAlgorithm = 12,
  kRngDistribution = 13,
  kString = 14,
  kTensor = 15,
  kTranspose = 16,
  kType = 17,
  kTypeExtensions = 18,
  kAccuracyMode = 19,
  kAccuracy = 20,
  kSubAxis = 21,
  kAxis = 22,
  kMeshAxes = 23,
};
enum TypeCode : uint64_t {
  kBoolType = 0,
  kComplexType = 1,
  kFunctionType = 8,
  kIndexType = 9,
  kFirstSigned = 10,  // of 4, 8, 16, 32, 64 bits
  kFirstUnsigned = 15,
  kTensorType = 20,
  kTensorWithEncodingType = 21,
  kTokenType = 22,
  kTupleType = 23,
  kQuantizedType = 24,
  kUnrankedTensorType = 25,
  kWitnessType = 26,
  kQuantizedPerAxisType = 30,
  kSigned2Type = 31,
  kUnsigned2Type = 32,
  kNoneType = 33,
  kBufferType = 41,
  kFutureType = 42,
};
inline constexpr uint64_t kIntegerWidths = kFirstUnsigned - kFirstSigned;
inline constexpr uint64_t kApiVersions = 5;

// By code; "": another type.
inline constexpr std::string_view kFloatTypes[] = {
    "",         "", "bf16", "f16", "f32",  "f64",    "f8E4M3FN", "f8E5M2",     "",           "",
    "",         "", "",     "",    "",     "",       "",         "",           "",           "",
    "",         "", "",     "",    "",     "",       "",         "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ",
    "",         "", "",     "",    "tf32", "f8E4M3", "f8E3M4",   "f4E2M1FN",   "f6E2M3FN",   "f6E3M2FN",
    "f8E8M0FNU"};

// Enumerations of StableHLO: the code of the attribute and the values from 0 on; "": no value.
struct Enumeration {
  AttributeCode code;
  std::string_view name;
  absl::Span<const std::string_view> values;
};
inline constexpr std::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
inline constexpr std::string_view kCompareTypes[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
inline constexpr std::string_view kFftTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
inline constexpr std::string_view kPrecisions[] = {"DEFAULT", "HIGH", "HIGHEST"};
inline constexpr std::string_view kRngAlgorithms[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
inline constexpr std::string_view kRngDistributions[] = {"", "UNIFORM", "NORMAL"};
inline constexpr std::string_view kTransposes[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
inline constexpr std::string_view kApiVersionTexts[] = {"0", "1", "2", "3", "4"};
inline constexpr std::string_view kAccuracyModes[] = {"DEFAULT", "HIGHEST", "TOLERANCE"};
inline constexpr Enumeration kEnumerations[] = {
    {kComparisonDirection, "comparison_direction", kDirections},
    {kComparisonType, "comparison_type", kCompareTypes},
    {kFftType, "fft_type", kFftTypes},
    {kPrecision, "precision", kPrecisions},
    {kRngAlgorithm, "rng_algorithm", kRngAlgorithms},
    {kRngDistribution, "rng_distribution", kRngDistributions},
    {kTranspose, "transpose", kTransposes},
    {kAccuracyMode, "result_accuracy_mode", kAccuracyModes},
    {kApiVersion, "api_version", kApiVersionTexts},  // a number in StableHLO
};

}  // namespace vhlo

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_VHLO_CODES_H_
