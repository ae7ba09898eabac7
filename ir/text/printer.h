// SPDX-License-Identifier: Apache-2.0
// Module -> HLO text, byte for byte as XLA prints it. PrintOptions has a toggle for each of XLA's, and constructors for
// its named combinations.
#ifndef HLOKIT_IR_TEXT_PRINTER_H_
#define HLOKIT_IR_TEXT_PRINTER_H_

#include <cstdint>
#include <string>

#include "ir/core/text_writer.h"
#include "ir/graph/module.h"

namespace hlokit {

struct PrintOptions {
  enum class Subcomputations : uint8_t {
    kNameOnly,             // to_apply=%add
    kFullBodies,           // the computation inline, in braces
    kNonSequentialBodies,  // inline, except those of while, call and conditional
    kOff,
  };

  // Constants with more elements than this, and tuples, are large.
  static constexpr int64_t kLargeConstantElements = 10;
  bool print_large_constants = false;           // large constants in full, otherwise {...}
  bool print_only_essential_constants = false;  // only constants that the shape of the program depends on
  Subcomputations subcomputations = Subcomputations::kNameOnly;
  bool print_metadata = true;
  bool print_metadata_only_op_name = false;
  bool print_stack_frames = true;  // the FileNames ... StackFrames tables
  bool print_original_value = true;
  bool print_backend_config = true;
  bool compact_operands = false;  // long operand lists shortened
  bool print_operand_shape = false;
  bool print_operand_index_annotation_interval_set = true;  // /*index=5*/
  bool include_layout_in_shapes = true;
  bool print_result_shape = true;
  bool print_percent = true;
  bool print_control_dependencies = true;
  bool print_program_shape = true;  // (params) -> result in a computation's header
  bool print_infeed_outfeed_config = true;
  bool print_extra_attributes = true;
  bool print_ids = true;  // false: "add.5" is printed "add"
  bool print_parameter_number = true;
  bool print_header = true;
  bool canonicalize_instruction_names = false;  // tmp_0, tmp_1, ...
  bool canonicalize_computations = false;       // computations in a canonical order
  bool stable_computation_order = false;        // in an order that is stable under parsing and printing
  bool syntax_sugar_async_ops = true;
  bool print_frontend_attributes = true;
  bool print_sharding = true;
  bool print_full_replica_groups = false;  // iota and mesh forms expanded to lists
  bool compact_tuple_elements = false;     // %t#1 for the operand get-tuple-element(%t), index=1
  bool listed_order = false;            // computations and instructions as the module lists them, if that is an order
  bool sort_backend_config = false;     // the members of JSON in backend_config, as XLA's dumps have them
  bool print_comparison_order = false;  // order=TOTAL, as XLA has it since 2026, for type=TOTALORDER
  int indent_amount = 0;

  // XLA's named combinations.
  static PrintOptions Default() { return {}; }
  static PrintOptions ShortParsable();
  static PrintOptions Canonical();
  static PrintOptions Fingerprint();
  // As the XLA of 2026 writes dumps: a dump that is read and printed is the same text.
  static PrintOptions Dump();
  // Ours: the default form without its omissions and abbreviations. Parsing it yields the same module.
  static PrintOptions Lossless();
};

void PrintModule(TextWriter& out, const Module& module, const PrintOptions& options = {});
void PrintComputation(TextWriter& out, Computation computation, const PrintOptions& options = {});
// Prints one instruction, without indentation or newline.
void PrintInstruction(TextWriter& out, Instruction instruction, const PrintOptions& options = {});
std::string ToString(const Module& module, const PrintOptions& options = {});
std::string ToString(Computation computation, const PrintOptions& options = {});
std::string ToString(Instruction instruction, const PrintOptions& options = {});

// Returns true if these options print {...} for this constant although the module has its value. False for forms that
// keep only essential constants, which are for hashing.
bool IsElidedBy(const PrintOptions& options, Instruction constant);

// Prints the value of one attribute, as after `name=`. Computations and instructions are printed by name.
void PrintAttrValue(TextWriter& out, const Module& module, AttrValue value, const PrintOptions& options = {});

// Prints `metadata={...}` without the name.
void PrintMetadata(TextWriter& out, const Context& context, MetadataId metadata, bool only_op_name = false);
// Prints a quoted string with C escapes.
void PrintQuoted(TextWriter& out, std::string_view s);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_PRINTER_H_
