// SPDX-License-Identifier: Apache-2.0
// What is known of the name, opcode, attribute, pass or parameter under the cursor.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/graph/source_line.h"
#include "ir/ops/op_reference.h"
#include "ir/ops/opcode.h"
#include "ir/text/shape_text.h"
#include "parser/text/scan.h"
#include "passes/core/registry.h"
#include "passes/target/device_description.h"
#include "tools/hlo_lsp_server/features.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {
namespace {

std::string SecondsText(double seconds) {
  for (const auto& [unit, factor] : {std::pair("s", 1.0), std::pair("ms", 1e-3), std::pair("µs", 1e-6)}) {
    if (seconds >= factor) {
      char buffer[32];
      std::snprintf(buffer, sizeof(buffer), "%.3g %s", seconds / factor, unit);
      return buffer;
    }
  }
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.3g ns", seconds / 1e-9);
  return buffer;
}

// Returns the time on the device that the operations and bytes take at its peaks, and which of both it is.
std::string RooflineText(const Cost& cost, const std::string& device) {
  const std::optional<tpu::DeviceDescription> machine = tpu::BuiltinDeviceDescription(device);
  if (!machine || (cost.flops <= 0 && cost.bytes() <= 0)) return "";
  const double compute = static_cast<double>(cost.flops) / machine->PeakFlops();
  const double memory = static_cast<double>(cost.bytes()) / machine->HbmRate();
  return StrCat("roofline on ", device, ": ", SecondsText(std::max(compute, memory)), ", bound by ",
                compute > memory ? "compute" : "memory");
}

// Returns the text as code of Markdown, in which it is no markup.
std::string Code(std::string_view text) {
  std::string code(text.substr(0, 2000));
  std::replace(code.begin(), code.end(), '`', '\'');
  std::replace_if(
      code.begin(), code.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return StrCat("`", code, "`");
}

// Returns a link to the line of the user's program, "" if the metadata has none.
std::string SourceLink(Instruction instruction) {
  const std::string line = SourceLineOf(instruction);
  const size_t colon = line.rfind(':');
  if (line.empty() || colon == std::string::npos) return "";
  const std::string path = line.substr(0, colon);
  if (path[0] != '/') return Code(line);
  return StrCat("[", Code(line), "](", UriOfPath(path), "#L", line.substr(colon + 1), ")");
}

std::string AboutInstruction(const Request& request, const Symbol& symbol) {
  Document& document = request.document;
  const SymbolIndex& index = document.index();
  std::string text = StrCat("**", index.NameOf(symbol), "**");
  const Instruction i = document.InstructionOf(symbol);
  if (symbol.opcode.size > 0) StrAppend(&text, " — ", Code(index.TextOf(symbol.opcode)));
  StrAppend(&text, "\n\n");
  if (i.valid()) {
    std::string shape;
    {
      TextWriter out(&shape);
      PrintShape(out, i.shape());
    }
    StrAppend(&text, Code(shape));
  } else if (symbol.shape.size > 0) {
    StrAppend(&text, Code(index.TextOf(symbol.shape)));
  }
  StrAppend(&text, ", ", Counted(symbol.users, "use"), "\n\n");
  if (i.valid()) {
    const std::string cost = CostText(document.analysis(), i);
    if (!cost.empty()) StrAppend(&text, cost, "\n\n");
    const std::string time = RooflineText(document.analysis().CostsOf(i.module()).Of(i), request.settings.device);
    if (!time.empty()) StrAppend(&text, time, "\n\n");
    if (const std::string_view scope = OpNameOf(i); !scope.empty()) StrAppend(&text, "scope ", Code(scope), "\n\n");
    if (const std::string link = SourceLink(i); !link.empty()) StrAppend(&text, "from ", link, "\n\n");
  }
  if (const auto opcode = OpcodeFromText(index.TextOf(symbol.opcode))) StrAppend(&text, MeaningOf(*opcode), "\n");
  return text;
}

std::string AboutComputation(const Request& request, uint32_t id) {
  Document& document = request.document;
  const SymbolIndex& index = document.index();
  const Symbol& symbol = index.symbol(id);
  std::string text = StrCat(symbol.entry ? "entry computation **" : "computation **", index.NameOf(symbol), "**\n\n");
  if (symbol.shape.size > 0 && symbol.shape.size < 2000) StrAppend(&text, Code(index.TextOf(symbol.shape)), "\n\n");
  size_t count = 0;
  for (uint32_t k = id + 1; k < index.symbols().size() && index.symbol(k).begin < symbol.end; ++k) {
    if (index.symbol(k).parent == id) ++count;
  }
  StrAppend(&text, Counted(count, "instruction"), ", ", Counted(symbol.users, "caller"), "\n\n");
  for (const auto& module : document.analysis().modules()) {
    for (const Computation c : module->computations()) {
      if (c.name() != index.NameOf(symbol)) continue;
      const Cost& cost = document.analysis().CostsOf(*module).Of(c);
      StrAppend(&text, Scaled(static_cast<double>(cost.flops)), "FLOP, ", BytesText(static_cast<double>(cost.bytes())),
                " read and written\n\n", RooflineText(cost, request.settings.device), "\n");
      return text;
    }
  }
  return text;
}

// Returns the word around the offset, of names with dashes and dots.
std::string_view WordAt(std::string_view text, uint32_t offset, uint32_t* begin) {
  uint32_t from = offset, to = offset;
  while (from > 0 && char_class::IsName(text[from - 1])) --from;
  while (to < text.size() && char_class::IsName(text[to])) ++to;
  *begin = from;
  return text.substr(from, to - from);
}

std::string AboutWord(const Request& request, std::string_view word, uint32_t begin) {
  const std::string_view text = request.document.text().text();
  if (request.document.language() == Language::kPipeline) {
    if (const PassInfo* pass = PassRegistry::Get().Find(word)) return StrCat("**", pass->name, "**\n\n", pass->summary);
    const NamedPipeline* pipeline = PassRegistry::Get().FindPipeline(word);
    if (pipeline == nullptr) return "";
    return StrCat("**", pipeline->name, "**\n\n", pipeline->summary, "\n\n`", pipeline->text, "`");
  }
  if (request.document.language() == Language::kMachine) {
    const tpu::DeviceDescriptionField* field = tpu::FindDeviceDescriptionField(word);
    return field == nullptr ? "" : StrCat("**", field->name, "**\n\n", field->meaning);
  }
  if (request.document.language() == Language::kStablehlo) {
    // An operation of StableHLO has the name of the opcode, with underscores.
    constexpr std::string_view kDialect = "stablehlo.";
    if (!word.starts_with(kDialect)) return "";
    std::string name(word.substr(kDialect.size()));
    std::replace(name.begin(), name.end(), '_', '-');
    const std::optional<Opcode> opcode = OpcodeFromText(name);
    return opcode ? StrCat("**", word, "**\n\n", MeaningOf(*opcode)) : "";
  }
  const uint32_t id = request.document.index().Enclosing(begin, SymbolKind::kInstruction);
  if (id == kNoSymbol) return "";
  const Symbol& instruction = request.document.index().symbol(id);
  const std::optional<Opcode> opcode = OpcodeFromText(request.document.index().TextOf(instruction.opcode));
  if (begin == instruction.opcode.offset && opcode) {
    std::string section;
    TextWriter out(&section);
    WriteOpSection(out, *opcode);
    out.Flush();
    return section;
  }
  const size_t end = begin + word.size();
  if (end < text.size() && text[end] == '=') {
    for (const Attr attr : AttrsFromText(word)) {
      if (opcode && FindAttrSpec(*opcode, attr) == nullptr) continue;
      return StrCat("attribute **", word, "**\n\n", DescribeAttrType(InfoOf(attr).type));
    }
  }
  return "";
}

}  // namespace

std::string Scaled(double value) {
  constexpr std::string_view kPrefixes[] = {" ", " K", " M", " G", " T", " P", " E"};
  size_t k = 0;
  while (value >= 1000 && k + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++k;
  }
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.3g", value);
  return StrCat(buffer, kPrefixes[k]);
}

std::string BytesText(double bytes) { return StrCat(Scaled(bytes), "B"); }

std::string CostText(const Analysis& analysis, Instruction instruction) {
  const Cost& cost = analysis.CostsOf(instruction.module()).Of(instruction);
  std::string text;
  if (cost.flops > 0) StrAppend(&text, Scaled(static_cast<double>(cost.flops)), "FLOP");
  if (cost.transcendentals > 0) {
    StrAppend(&text, text.empty() ? "" : ", ", Scaled(static_cast<double>(cost.transcendentals)), "transcendentals");
  }
  if (cost.bytes() > 0) {
    StrAppend(&text, text.empty() ? "" : ", ", BytesText(static_cast<double>(cost.bytes_read)), " read, ",
              BytesText(static_cast<double>(cost.bytes_written)), " written");
  }
  return text;
}

absl::Status Hover(const Request& request, JsonWriter* result) {
  const Json none;
  const Json* const position = Find(request.params, {"position"});
  const TextDocument& text = request.document.text();
  const SymbolIndex& index = request.document.index();
  const uint32_t offset = OffsetAt(text, position == nullptr ? none : *position);
  const Occurrence* const o = index.At(offset);
  std::string about;
  uint32_t begin = 0, end = 0;
  if (o != nullptr && o->symbol != kNoSymbol) {
    begin = o->offset;
    end = o->offset + o->size;
    switch (index.symbol(o->symbol).kind) {
      case SymbolKind::kModule:
        break;
      case SymbolKind::kComputation:
        about = AboutComputation(request, o->symbol);
        break;
      case SymbolKind::kInstruction:
        about = AboutInstruction(request, index.symbol(o->symbol));
        break;
    }
  } else {
    const std::string_view word = WordAt(text.text(), offset, &begin);
    end = begin + static_cast<uint32_t>(word.size());
    if (!word.empty()) about = AboutWord(request, word, begin);
  }
  if (about.empty()) {
    result->Null();
    return absl::OkStatus();
  }
  result->BeginObject().Key("contents");
  WriteMarkdown(about, result);
  result->Key("range");
  WriteRange(text, begin, end, result);
  result->EndObject();
  return absl::OkStatus();
}

}  // namespace hlokit::lsp
