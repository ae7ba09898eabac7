// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>

#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/digest/fingerprint_diff.h"
#include "ir/digest/fingerprint_internal.h"
#include "ir/text/printer.h"

namespace hlokit {
namespace {

// Maximum bytes of a line, and number of steps at either end of a path.
constexpr size_t kMaxLine = 1000;
constexpr size_t kMaxSteps = 16;

std::string LineOf(Instruction instruction) {
  std::string text;
  {
    TextWriter out(&text);
    PrintInstruction(out, instruction);
  }
  return Shorten(text, kMaxLine);
}

}  // namespace

std::string Shorten(std::string_view s, size_t limit, size_t focus) {
  if (s.size() <= limit) return std::string(s);
  const auto inside_character = [&](size_t i) { return i < s.size() && (static_cast<uint8_t>(s[i]) & 0xc0) == 0x80; };
  size_t begin = focus > limit / 2 ? std::min(focus - limit / 2, s.size() - limit) : 0;
  size_t end = begin + limit;
  while (begin > 0 && inside_character(begin)) --begin;
  while (inside_character(end)) ++end;
  return StrCat(begin > 0 ? "..." : "", s.substr(begin, end - begin), end < s.size() ? "..." : "");
}

std::string Versus(std::string_view a, std::string_view b) {
  const size_t common = static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  return StrCat(Shorten(a, kMaxValue, common), " vs ", Shorten(b, kMaxValue, common));
}

std::string LocationOf(const FingerprintedModule& module, Instruction instruction) {
  const uint32_t offset = instruction.record().source_offset;
  if (module.source == nullptr) return std::string(module.module->name());
  if (offset == InstructionRecord::kNoSourceOffset) return module.source->name();
  return StrCat(module.source->name(), ":", LineColumnAt(module.source->text(), offset).line);
}

std::string RenderStep(const FingerprintStep& step) {
  const auto name = [](auto thing) { return thing.valid() ? thing.name() : std::string_view("nothing"); };
  std::string text;
  switch (step.via) {
    case FingerprintStep::Via::kOperand:
      StrAppend(&text, "operand ", step.index);
      break;
    case FingerprintStep::Via::kControl:
      text = "control predecessor";
      break;
    case FingerprintStep::Via::kRoot:
      text = "root of ";
      break;
    case FingerprintStep::Via::kParameter:
      StrAppend(&text, "parameter ", step.index, " of ");
      break;
    case FingerprintStep::Via::kSink:
      text = "unused instruction of ";
      break;
  }
  if (step.computation_a.valid()) {
    StrAppend(&text, step.caller, " ", name(step.computation_a));
    if (name(step.computation_a) != name(step.computation_b)) StrAppend(&text, " vs ", name(step.computation_b));
  }
  StrAppend(&text, ": ", name(step.a));
  if (name(step.a) != name(step.b)) StrAppend(&text, " vs ", name(step.b));
  return text;
}

std::string RenderText(const FingerprintDiff& diff, const FingerprintedModule& a, const FingerprintedModule& b) {
  std::string out;
  if (diff.same) {
    if (diff.ignored_differences.empty()) return "same program, no differences\n";
    out = "same program; ignored differences: ";
    for (size_t i = 0; i < diff.ignored_differences.size(); ++i)
      StrAppend(&out, i > 0 ? ", " : "", diff.ignored_differences[i]);
    return out + "\n";
  }
  for (const std::string& field : diff.header) StrAppend(&out, "header: ", field, "\n");
  if (!diff.path.empty()) StrAppend(&out, "first difference at, from the entry root:\n");
  for (size_t i = 0; i < diff.path.size(); ++i) {
    if (diff.path.size() > 2 * kMaxSteps && i == kMaxSteps) {
      StrAppend(&out, "  ... ", diff.path.size() - 2 * kMaxSteps, " more ...\n");
      i = diff.path.size() - kMaxSteps;
    }
    StrAppend(&out, "  ", RenderStep(diff.path[i]), "\n");
  }
  if (!diff.path.empty()) {
    const FingerprintStep& last = diff.path.back();
    if (last.a.valid()) StrAppend(&out, "- ", LocationOf(a, last.a), ": ", LineOf(last.a), "\n");
    if (last.b.valid()) StrAppend(&out, "+ ", LocationOf(b, last.b), ": ", LineOf(last.b), "\n");
  }
  for (const std::string& difference : diff.differences) StrAppend(&out, "  ", difference, "\n");
  return out;
}

}  // namespace hlokit
