// SPDX-License-Identifier: Apache-2.0
#include "interp/dynamic/sized_program.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "interp/dynamic/explicit_sizes.h"
#include "ir/core/str_cat.h"
#include "ir/graph/name_range.h"
#include "ir/types/sized_shape.h"
#include "passes/simplify/dce.h"
#include "passes/simplify/dynamic/dynamic_padder.h"

namespace hlokit::interp {
namespace {

std::vector<Shape> ParameterLeaves(const Module& module) {
  std::vector<Shape> shapes;
  const Computation entry = module.entry();
  for (int64_t i = 0; i < entry.parameter_count(); ++i) {
    const std::vector<Shape> leaves = Leaves(entry.parameter(i).shape());
    shapes.insert(shapes.end(), leaves.begin(), leaves.end());
  }
  return shapes;
}

int64_t DynamicDimensions(absl::Span<const Shape> leaves) {
  int64_t count = 0;
  for (const Shape leaf : leaves) {
    for (int64_t d = 0; d < leaf.rank(); ++d) count += leaf.is_dynamic(d) ? 1 : 0;
  }
  return count;
}

// Reports what cannot be made static, at the instruction.
void ReportUnsupported(const Module& module, const absl::Status& status, DiagnosticSink* sink) {
  SourceRange range;
  if (const auto payload = status.GetPayload(kPaddedInstruction)) {
    const std::string text(*payload);
    uint32_t id = 0;
    std::from_chars(text.data(), text.data() + text.size(), id);
    if (id < module.instruction_id_bound() && module.record(InstructionId(id)).parent.valid()) {
      range = NameRange(module.instruction(InstructionId(id)));
    }
  }
  sink->Error(DiagnosticKind::kUnsupported, range,
              StrCat("cannot compute with dynamic dimensions: ", std::string(status.message())));
}

}  // namespace

SizedProgram::SizedProgram(const Module& module)
    : module_(module.Clone()),
      argument_shapes_(ParameterLeaves(module)),
      result_shapes_(Leaves(module.entry().root().shape())) {}

bool SizedProgram::Make(const Module& module, DiagnosticSink* sink, std::unique_ptr<SizedProgram>* out) {
  if (!module.entry().valid() || !HasDynamicArrays(module)) return true;
  std::unique_ptr<SizedProgram> program(new SizedProgram(module));
  if (const absl::StatusOr<bool> made = MakeSizesExplicit(&program->module_); !made.ok()) {
    // Instructions that nothing uses need no meaning.
    program.reset(new SizedProgram(module));
    if (!Dce().Run(program->module_).value_or(false) || !MakeSizesExplicit(&program->module_).ok()) {
      ReportUnsupported(module, made.status(), sink);
      return false;
    }
  }
  *out = std::move(program);
  return true;
}

absl::StatusOr<std::vector<Literal>> SizedProgram::Arguments(absl::Span<const Literal* const> arguments,
                                                             int64_t max_bytes) const {
  const size_t each = argument_shapes_.size();
  std::vector<Literal> all;
  if (each == 0) return all;
  const Shape scalar = module_.context().shapes.Scalar(ElementType::kS32);
  const std::vector<Shape> static_shapes = ParameterLeaves(module_);
  int64_t bytes = 0;  // of arguments that are padded
  for (size_t begin = 0; begin + each <= arguments.size(); begin += each) {
    std::vector<Literal> sizes;
    for (size_t k = 0; k < each; ++k) {
      const Literal& given = *arguments[begin + k];
      const Shape declared = argument_shapes_[k], shape = given.shape();
      if (!FitsWithin(shape, declared)) {
        return absl::InvalidArgumentError(StrCat("argument ", begin + k, " has shape ",
                                                 ToString(shape, /*with_layout=*/false), ", expected ",
                                                 ToString(declared, /*with_layout=*/false)));
      }
      if (!declared.IsArray() || shape.dims() == declared.dims()) {
        all.push_back(Literal::Borrowed(static_shapes[k], const_cast<std::byte*>(given.data())));
      } else {
        const int64_t padded = LiteralBytes(static_shapes[k]);
        if (padded < 0 || padded > max_bytes - bytes) {
          return absl::ResourceExhaustedError(StrCat("argument ", begin + k, ": an array of the bounds of ",
                                                     ToString(declared, /*with_layout=*/false),
                                                     " needs more memory than allowed"));
        }
        bytes += padded;
        all.push_back(Literal::Zeros(static_shapes[k]));
        CopyCommonElements(given, &all.back());
      }
      for (int64_t d = 0; d < declared.rank(); ++d) {
        if (!declared.is_dynamic(d)) continue;
        sizes.push_back(Literal::Zeros(scalar));
        sizes.back().values<int32_t>()[0] = static_cast<int32_t>(shape.dim(d));
      }
    }
    std::move(sizes.begin(), sizes.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<Literal> SizedProgram::Results(std::vector<Literal> results) const {
  const size_t leaves = result_shapes_.size();
  const size_t each = leaves + static_cast<size_t>(DynamicDimensions(result_shapes_));
  if (each == leaves) return results;
  std::vector<Literal> all;
  for (size_t begin = 0; begin + each <= results.size(); begin += each) {
    size_t next = begin + leaves;  // of the sizes
    for (size_t k = 0; k < leaves; ++k) {
      const Shape declared = result_shapes_[k];
      Literal& padded = results[begin + k];
      if (!declared.IsArray() || !declared.has_dynamic_dims()) {
        all.push_back(std::move(padded));
        continue;
      }
      std::vector<int64_t> dims(declared.dims().begin(), declared.dims().end());
      for (int64_t d = 0; d < declared.rank(); ++d) {
        if (!declared.is_dynamic(d)) continue;
        const int64_t size = results[next++].values<int32_t>()[0];
        dims[static_cast<size_t>(d)] = std::clamp<int64_t>(size, 0, declared.dim(d));
      }
      all.push_back(Literal::Zeros(SizedShape(&module_.context().shapes, declared, dims)));
      CopyCommonElements(padded, &all.back());
    }
  }
  return all;
}

}  // namespace hlokit::interp
