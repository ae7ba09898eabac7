// SPDX-License-Identifier: Apache-2.0
// How a module is read, whatever its format.
#ifndef HLOKIT_PARSER_TEXT_PARSE_OPTIONS_H_
#define HLOKIT_PARSER_TEXT_PARSE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hlokit {

struct ParseOptions {
  // Keep unrecognized opcodes and attributes, with a warning each, instead of rejecting them.
  bool allow_unknown = false;
  // After errors, report shapes too that are not those that inference finds, where the errors have no influence on
  // them: a part of what the verifier would report. For HLO text.
  bool check_shapes_after_errors = false;
  // A StableHLO program is verified as one before it becomes HLO.
  bool verify_stablehlo = true;
  // For printing a dump again: the tables of stack frames stay as they are, where XLA renumbers them when it reads a
  // module, and computations of a message are listed in the order in which XLA has printed them.
  bool as_dumped = false;
  // The text is a module quoted in the header of another.
  bool quoted_module = false;
  // The function of a StableHLO program that becomes the entry computation; "": main. Others are read with a warning.
  std::string entry;
  // What the dimensions of a StableHLO program are that it leaves open, "b=8" of a dimension variable or "arg0=8x4" of
  // an argument: it becomes a program of these sizes (parser/stablehlo/refine/refine.h). Others are read with a
  // warning.
  std::vector<std::string> sizes;
  // Limits. Exceeding one is a diagnostic.
  int64_t max_nesting = 1 << 20;
  int64_t max_instructions = int64_t{1} << 28;
  int64_t max_literal_bytes = int64_t{1} << 32;  // of all constants in total
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_TEXT_PARSE_OPTIONS_H_
