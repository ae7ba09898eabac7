#include "tools/cli/inspect_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ir/module_statistics.h"
#include "passes/analysis/memory.h"

namespace hlokit::cli {
namespace {

struct MemoryFlags : InspectFlags {
  size_t top = 20;
  bool timeline = false;
};

std::string_view NameOf(BufferKind kind) {
  switch (kind) {
    case BufferKind::kArgument:
      return "argument";
    case BufferKind::kConstant:
      return "constant";
    case BufferKind::kTemporary:
      return "temporary";
    case BufferKind::kResult:
      return "result";
  }
  return "";
}

// Alive at the peak, largest first.
std::vector<const LiveBuffer*> BuffersAtPeak(const MemoryUse& use) {
  std::vector<const LiveBuffer*> buffers;
  for (const LiveBuffer& buffer : use.buffers) {
    if (buffer.kind == BufferKind::kConstant || buffer.bytes == 0) continue;
    if (buffer.begin <= use.peak_place && use.peak_place <= buffer.end) buffers.push_back(&buffer);
  }
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const LiveBuffer* a, const LiveBuffer* b) { return a->bytes > b->bytes; });
  return buffers;
}

std::string_view PeakInstruction(const Module& module, const MemoryUse& use) {
  return use.order.empty() ? "" : module.instruction(use.order[static_cast<size_t>(use.peak_place)]).name();
}

void WriteJson(const MemoryFlags& flags, const InputPart& part, const Module& module, const MemoryAnalysis& memory,
               JsonWriter* json) {
  const MemoryUse& use = memory.OfModule();
  json->BeginObject();
  json->Member("file", part.source->name());
  if (part.count > 1) json->Member("group", part.index + 1);
  json->Member("module", module.name()).Member("scheduled", module.header().is_scheduled);
  json->Member("peak_bytes", use.peak_bytes).Member("peak_instruction", PeakInstruction(module, use));
  json->Member("argument_bytes", use.argument_bytes).Member("result_bytes", use.result_bytes);
  json->Member("constant_bytes", use.constant_bytes);
  json->Key("computations").BeginArray();
  for (Computation c : module.computations()) {
    const MemoryUse& own = memory.Of(c);
    if (own.order.empty()) continue;
    json->BeginObject().Member("name", c.name()).Member("bytes_beyond_arguments", own.own_peak_bytes);
    json->Member("peak_instruction", PeakInstruction(module, own)).EndObject();
  }
  json->EndArray();
  json->Key("live_at_peak").BeginArray();
  for (const LiveBuffer* buffer : BuffersAtPeak(use)) {
    json->BeginObject().Member("instruction", module.instruction(buffer->maker).name());
    json->Member("leaf", buffer->leaf).Member("bytes", buffer->bytes).Member("kind", NameOf(buffer->kind));
    json->Member("begin", buffer->begin).Member("end", buffer->end).EndObject();
  }
  json->EndArray();
  if (flags.timeline) {
    json->Key("timeline").BeginArray();
    for (size_t place = 0; place < use.order.size(); ++place) {
      json->BeginObject().Member("instruction", module.instruction(use.order[place]).name());
      json->Member("bytes", use.live_bytes[place]).EndObject();
    }
    json->EndArray();
  }
  json->EndObject();
}

void WriteText(const MemoryFlags& flags, const Module& module, const MemoryAnalysis& memory, TextWriter* out) {
  const MemoryUse& use = memory.OfModule();
  const auto line = [out](std::string_view what, int64_t bytes, std::string_view more = "") {
    *out << "  " << what;
    for (size_t n = what.size(); n < 11; ++n) *out << ' ';
    *out << HumanBytes(bytes) << more << "\n";
  };
  *out << "module " << module.name() << (module.header().is_scheduled ? "" : "  (not scheduled: in post-order)")
       << "\n";
  line("peak", use.peak_bytes, "  at " + std::string(PeakInstruction(module, use)));
  line("arguments", use.argument_bytes);
  line("results", use.result_bytes, "  beyond those in the memory of arguments");
  line("constants", use.constant_bytes, "  not in the peak");
  const auto cell = [out](std::string_view text, size_t width) {
    for (size_t n = text.size(); n < width; ++n) *out << ' ';
    *out << text << "  ";
  };
  *out << "\n";
  for (std::string_view head : {"live at peak", "kind"}) cell(head, 14);
  *out << "instruction\n";
  const std::vector<const LiveBuffer*> buffers = BuffersAtPeak(use);
  for (size_t k = 0; k < std::min(buffers.size(), flags.top); ++k) {
    cell(std::to_string(buffers[k]->bytes), 14);
    cell(NameOf(buffers[k]->kind), 14);
    const Instruction maker = module.instruction(buffers[k]->maker);
    *out << maker.name();
    if (maker.shape().IsTuple()) *out << "  leaf " << buffers[k]->leaf;
    *out << "\n";
  }
  if (buffers.size() > flags.top) *out << "... " << static_cast<int64_t>(buffers.size() - flags.top) << " more\n";
  if (!flags.timeline) return;
  *out << "\n";
  cell("live", 14);
  *out << "at\n";
  for (size_t place = 0; place < use.order.size(); ++place) {
    cell(std::to_string(use.live_bytes[place]), 14);
    *out << module.instruction(use.order[place]).name() << "\n";
  }
}

int Run(const MemoryFlags& flags) {
  Diagnostics diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    bool first = true;
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      const absl::StatusOr<MemoryAnalysis> memory = MemoryAnalysis::Make(module);
      if (!memory.ok()) {
        diagnostics.ShowError(part.label(), std::string(memory.status().message()), kRejected);
        return;
      }
      if (flags.json) {
        WriteJson(flags, part, module, *memory, &json);
      } else {
        out << (std::exchange(first, false) ? "" : "\n");
        WriteText(flags, module, *memory, &out);
      }
    });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddMemoryCommand(CLI::App* app) {
  auto flags = std::make_shared<MemoryFlags>();
  CLI::App* command = app->add_subcommand(
      "memory",
      "Estimates the memory that buffers take when the instructions run in order, and what is alive at the peak");
  flags->AddTo(command);
  command->add_option("--top", flags->top, "Buffers that the text shows; the JSON has all")->default_str("20");
  command->add_flag("--timeline", flags->timeline, "Also the bytes alive at each instruction of the entry computation");
  command->footer(
      "The order is that of the text of a scheduled module, else post-order. Bytes are without padding.\n"
      "Examples:\n"
      "  hlo-inspect memory module.hlo\n"
      "  hlo-opt --passes=default,schedule module.hlo | hlo-inspect memory\n"
      "  hlo-inspect memory --json --timeline module.hlo | jq '.[0].timeline[].bytes'");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
