// SPDX-License-Identifier: Apache-2.0
// Codes of the attributes of the dialect sdy, which never change.
#ifndef HLOKIT_PARSER_BYTECODE_SDY_CODES_H_
#define HLOKIT_PARSER_BYTECODE_SDY_CODES_H_

namespace hlokit::bytecode::sdy {

enum AttributeCode {
  kManualAxes = 0,
  kMeshAxis,
  kMesh,
  kSubAxis,
  kAxis,
  kDimension,
  kSharding,
  kShardings,  // of several values
  kDimensionMapping,
  kTensorMapping,
  kRule,
  kAxes,
  kAxesByDimension,
  kAllToAll,
  kAllToAlls,
  kShardingUnreduced,
  kShardingsUnreduced,
  kShardingReduction,  // unreduced with another operation than addition
};
inline constexpr int kLastAttribute = kShardingReduction;

}  // namespace hlokit::bytecode::sdy

#endif  // HLOKIT_PARSER_BYTECODE_SDY_CODES_H_
