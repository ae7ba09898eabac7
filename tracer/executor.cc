#include "tracer/executor.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "interp/runtime/profiler.h"
#include "ir/str_cat.h"
#include "tracer/autograd/function.h"
#include "tracer/explain.h"
#include "tracer/lowering/node_lowering.h"
#include "tracer/save_graphs.h"
#include "tracer/schema.h"
#include "tracer/tracer.h"

namespace hlokit::lazy {
namespace {

std::atomic<uint64_t> next_mark{1};

// To be raised when lowerings or the stored form of programs change.
constexpr std::string_view kProgramVersion = "1";

bool Pending(DeviceState& device, const TensorData& data) {
  return data.buffer == nullptr && data.ir.valid() && data.ir_epoch == device.graph().epoch();
}

std::string ScopedName(std::string_view s) {
  std::string out(s);
  std::replace(out.begin(), out.end(), ':', '_');
  return out;
}

MetadataId MetadataOf(DeviceState& device, const NodeRecord& node, Context& context) {
  Metadata m;
  const std::string type = ScopedName(SymbolOf(node.op));
  m.op_type = context.strings.Intern(type);
  const std::string_view scope = device.context().str(StringId(node.scope));
  m.op_name = context.strings.Intern(scope.empty() ? type : StrCat(ScopedName(scope), "/", type));
  if (node.frame != 0) {
    const Frame& frame = device.frames()[node.frame - 1];
    m.source_file = context.strings.Intern(frame.file);
    m.source_line = frame.line;
  }
  return context.metadata.Intern(m);
}

}  // namespace

GraphSlice SliceOf(DeviceState& device, absl::Span<TensorData* const> tensors, const SliceOptions& options) {
  const runtime::Trace trace("RunPostOrder");
  GraphSlice slice;
  Graph& graph = device.graph();
  for (TensorData* data : tensors) slice.roots.push_back(device.ValueOf(data));
  slice.order = graph.PostOrder(slice.roots);
  const uint64_t mark = next_mark.fetch_add(1, std::memory_order_relaxed);
  for (NodeId id : slice.order) {
    if (graph.node(id).op != Op::device_data) continue;
    const std::shared_ptr<runtime::Buffer>& buffer = graph.leaf(id);
    if (buffer->mark == mark) continue;
    buffer->mark = mark;
    buffer->number = static_cast<uint32_t>(slice.inputs.size());
    slice.inputs.push_back(buffer);
    slice.input_nodes.push_back(id);
  }
  if (options.donate) {
    for (TensorData* data : tensors) {
      // Still an input of this graph, and nobody else's value.
      const std::shared_ptr<runtime::Buffer>& old = data->overwritten;
      if (old == nullptr || old->read_only || old->mark != mark) continue;
      slice.donated.push_back(old->number);
    }
    std::sort(slice.donated.begin(), slice.donated.end());
    slice.donated.erase(std::unique(slice.donated.begin(), slice.donated.end()), slice.donated.end());
  }
  return slice;
}

std::vector<uint32_t> KeyOf(DeviceState& device, const GraphSlice& slice, const SliceOptions& options) {
  const Graph& graph = device.graph();
  std::vector<uint32_t> words;
  words.reserve(slice.order.size() * 5 + 16);
  words.push_back(options.force);
  for (NodeId id : slice.order) {
    const NodeRecord& node = graph.node(id);
    words.push_back(static_cast<uint32_t>(node.op) | static_cast<uint32_t>(node.operand_count) << 16);
    words.push_back(node.attrs.value);
    if (node.op == Op::device_data) {
      words.push_back(node.shape.value);
      words.push_back(graph.leaf(id)->number);
      continue;
    }
    if (node.op == Op::constant) words.push_back(node.shape.value);
    for (const IrRef& operand : graph.operands(id)) {
      words.push_back(graph.Position(operand.node));
      words.push_back(operand.output);
    }
  }
  words.push_back(0xffffffffu);
  for (const IrRef& root : slice.roots) {
    words.push_back(graph.Position(root.node));
    words.push_back(root.output);
  }
  words.push_back(0xffffffffu);
  for (int64_t i : slice.donated) words.push_back(static_cast<uint32_t>(i));
  if (device.tracer()->options().debug) {
    // Metadata is part of the program then.
    words.push_back(0xffffffffu);
    for (NodeId id : slice.order) {
      words.push_back(graph.node(id).scope);
      words.push_back(graph.node(id).frame);
    }
  }
  return words;
}

std::string ContentsOf(DeviceState& device, const GraphSlice& slice, const SliceOptions& options) {
  const Graph& graph = device.graph();
  std::string bytes;
  const auto number = [&](uint64_t v) { bytes.append(reinterpret_cast<const char*>(&v), sizeof(v)); };
  const auto text = [&](std::string_view s) {
    number(s.size());
    bytes.append(s);
  };
  number(options.force);
  for (NodeId id : slice.order) {
    const NodeRecord& node = graph.node(id);
    text(SchemaOf(node.op).full_name());
    const absl::Span<const int64_t> attrs = device.context().list(node.attrs);
    number(attrs.size());
    for (int64_t v : attrs) number(static_cast<uint64_t>(v));
    if (node.op == Op::device_data) number(graph.leaf(id)->number);
    if (node.op == Op::device_data || node.op == Op::constant) text(ToString(device.context().shape(node.shape)));
    number(node.operand_count);
    for (const IrRef& operand : graph.operands(id)) {
      number(graph.Position(operand.node));
      number(operand.output);
    }
  }
  number(slice.roots.size());
  for (const IrRef& root : slice.roots) {
    number(graph.Position(root.node));
    number(root.output);
  }
  number(slice.donated.size());
  for (int64_t i : slice.donated) number(static_cast<uint64_t>(i));
  if (device.tracer()->options().debug) {
    for (NodeId id : slice.order) {
      const NodeRecord& node = graph.node(id);
      text(device.context().str(StringId(node.scope)));
      if (node.frame == 0) continue;
      const Frame& frame = device.frames()[node.frame - 1];
      text(frame.file);
      number(static_cast<uint64_t>(frame.line));
    }
  }
  return bytes;
}

Digest HashOf(DeviceState& device, const GraphSlice& slice, const SliceOptions& options) {
  return DigestOf(ContentsOf(device, slice, options));
}

absl::StatusOr<std::unique_ptr<Module>> LowerSlice(DeviceState& device, const GraphSlice& slice,
                                                   std::string_view name) {
  auto module = std::make_unique<Module>();
  Context& context = module->context();
  const Graph& graph = device.graph();
  const bool debug = device.tracer()->options().debug;
  module->header().name = context.strings.Intern(name);
  const ComputationId entry = module->AddComputation(module->UniqueComputationName(name));
  module->SetEntry(entry);
  Emitter e(module.get(), entry);
  // Values by place in the post-order and output.
  std::vector<uint32_t> first(slice.order.size() + 1);
  std::vector<InstructionId> values;
  std::vector<InstructionId> operands;
  std::vector<InstructionId> parameters(slice.inputs.size());
  for (size_t at = 0; at < slice.order.size(); ++at) {
    const NodeId id = slice.order[at];
    const NodeRecord& node = graph.node(id);
    first[at] = static_cast<uint32_t>(values.size());
    const MetadataScope metadata(&e.builder(), debug ? MetadataOf(device, node, context) : MetadataId());
    const Shape shape = device.context().shape(node.shape);
    if (node.op == Op::device_data) {
      const uint32_t number = graph.leaf(id)->number;
      if (!parameters[number].valid()) {
        const Hlo p = e.Take(
            e.builder().Parameter(number, e.ArrayShape(shape.element_type(), shape.dims()), StrCat("p", number)));
        parameters[number] = p.id();
      }
      values.push_back(parameters[number]);
      continue;
    }
    operands.clear();
    for (const IrRef& operand : graph.operands(id)) {
      operands.push_back(values[first[graph.Position(operand.node)] + operand.output]);
    }
    const EncodedArgs args = DecodeArgs(device.context().list(node.attrs));
    if (node.op == Op::constant) {
      values.push_back(Constant(e, shape.element_type(), args[0].scalar()).id());
      continue;
    }
    NodeLowering n(&e, node.op, args, operands);
    const OpInfo& info = InfoOf(node.op);
    (info.lower == nullptr ? &lower::None : info.lower)(n);
    if (!e.status().ok()) {
      return absl::Status(e.status().code(),
                          absl::string_view(StrCat(SymbolOf(node.op), ": ", std::string(e.status().message()))));
    }
    for (const Hlo& result : n.results()) values.push_back(result.id());
  }
  std::vector<InstructionId> roots;
  for (const IrRef& root : slice.roots) roots.push_back(values[first[graph.Position(root.node)] + root.output]);
  const Hlo tuple = e.Take(e.builder().Tuple(roots));
  if (!e.status().ok()) return e.status();
  e.builder().SetRoot(tuple.id());
  EntryLayout layout;
  for (const InstructionId p : parameters) layout.parameters.push_back(e.builder().shape_of(p));
  layout.result = tuple.shape();
  module->header().entry_layout = std::move(layout);
  for (int64_t i : slice.donated) module->header().buffer_donor.push_back({i, context.lists.Intern({})});
  return module;
}

namespace {

// The compiled program of the slice, from the cache or new.
absl::StatusOr<std::shared_ptr<CompiledGraph>> ProgramFor(DeviceState& device, const GraphSlice& slice,
                                                          const SliceOptions& options) {
  Tracer& tracer = *device.tracer();
  runtime::Metrics& metrics = tracer.metrics();
  metrics.AddSample("TensorsGraphSize", runtime::MetricKind::kValue, static_cast<double>(slice.order.size()));
  std::vector<uint32_t> words = KeyOf(device, slice, options);
  if (std::shared_ptr<CompiledGraph> found = device.cache().Find(words)) {
    metrics.Add("CachedCompile");
    return found;
  }
  metrics.Add("UncachedCompile");
  const runtime::Trace trace("XLAGraphExecutor::Compile");
  auto compiled = std::make_shared<CompiledGraph>();
  std::string contents = ContentsOf(device, slice, options);
  compiled->hash = DigestOf(contents);
  runtime::PersistentCache* const disk = tracer.persistent_cache();
  if (disk != nullptr) {
    // What else decides the program.
    StrAppend(&contents, "|", kProgramVersion, "|", tracer.client().options().platform, "|",
              tracer.client().options().pipeline);
    if (std::optional<std::string> program = disk->Get(DigestOf(contents), contents)) {
      absl::StatusOr<std::shared_ptr<runtime::Executable>> loaded = tracer.client().Load(*program);
      if (loaded.ok()) compiled->executable = *std::move(loaded);
    }
  }
  if (compiled->executable == nullptr) {
    static std::atomic<int64_t> serial{0};
    absl::StatusOr<std::unique_ptr<Module>> module =
        LowerSlice(device, slice, StrCat("SyncTensorsGraph.", serial.fetch_add(1) + 1));
    if (!module.ok()) return module.status();
    absl::StatusOr<std::shared_ptr<runtime::Executable>> executable = tracer.client().Compile(*std::move(module));
    if (!executable.ok()) return executable.status();
    compiled->executable = *std::move(executable);
    if (disk != nullptr) disk->Put(DigestOf(contents), contents, tracer.client().Serialize(*compiled->executable));
  }
  compiled->words = std::move(words);
  compiled->nodes = static_cast<int64_t>(slice.order.size());
  compiled->inputs = static_cast<int64_t>(slice.inputs.size());
  compiled->outputs = static_cast<int64_t>(slice.roots.size());
  compiled->donated = static_cast<int64_t>(slice.donated.size());
  metrics.AddSample("InputOutputAliasCount", runtime::MetricKind::kValue, static_cast<double>(slice.donated.size()));
  if (tracer.options().explain_recompiles) ExplainCompilation(device, slice, options, compiled.get());
  device.cache().Insert(compiled);
  return compiled;
}

absl::StatusOr<std::vector<std::shared_ptr<runtime::Buffer>>> Launch(DeviceState& device, const GraphSlice& slice,
                                                                     const SliceOptions& options) {
  const TracerOptions& tracer_options = device.tracer()->options();
  if (!tracer_options.save_graphs_file.empty()) {
    absl::Status saved =
        SaveGraph(device, slice, options, tracer_options.save_graphs_file, tracer_options.save_graphs_format);
    if (!saved.ok()) return saved;
  }
  absl::StatusOr<std::shared_ptr<CompiledGraph>> program = ProgramFor(device, slice, options);
  if (!program.ok()) return program.status();
  const runtime::Trace trace("ScheduleSyncTensorsGraph");
  std::vector<std::shared_ptr<runtime::Buffer>> results;
  for (size_t i = 0; i < slice.roots.size(); ++i) results.push_back(std::make_shared<runtime::Buffer>());
  device.tracer()->client().Execute(device.device(), (*program)->executable, slice.inputs, results);
  return results;
}

void Materialize(TensorData* data, std::shared_ptr<runtime::Buffer> buffer) {
  data->buffer = std::move(buffer);
  data->overwritten = nullptr;
  data->ir = IrRef();
}

// Computes those of `tensors` that are pending, under the device's mutex.
absl::Status Compute(DeviceState& device, absl::Span<TensorData* const> tensors, const SliceOptions& options) {
  std::vector<TensorData*> pending;
  for (TensorData* data : tensors) {
    if (Pending(device, *data)) pending.push_back(data);
  }
  if (pending.empty()) return absl::OkStatus();
  const GraphSlice slice = SliceOf(device, pending, options);
  absl::StatusOr<std::vector<std::shared_ptr<runtime::Buffer>>> results = Launch(device, slice, options);
  if (!results.ok()) return results.status();
  for (size_t i = 0; i < pending.size(); ++i) Materialize(pending[i], std::move((*results)[i]));
  return absl::OkStatus();
}

}  // namespace

absl::Status SyncLiveTensors(DeviceState& device, bool wait) {
  const runtime::Trace trace("SyncLiveTensorsGraph");
  {
    std::lock_guard<std::recursive_mutex> lock(device.mutex());
    const SliceOptions options{true, device.tracer()->options().donate};
    if (absl::Status status = Compute(device, device.LiveTensors(), options); !status.ok()) return status;
    device.TrimGraph();
  }
  return wait ? device.device()->Synchronize() : absl::OkStatus();
}

absl::Status SyncTensors(DeviceState& device, absl::Span<const Tensor> tensors, bool wait) {
  {
    std::lock_guard<std::recursive_mutex> lock(device.mutex());
    std::vector<TensorData*> chosen;
    absl::flat_hash_set<const TensorData*> seen;
    for (const Tensor& t : tensors) {
      TensorData* const data = t.impl()->data.get();
      if (seen.insert(data).second) chosen.push_back(data);
    }
    if (absl::Status status = Compute(device, chosen, {true, false}); !status.ok()) return status;
  }
  return wait ? device.device()->Synchronize() : absl::OkStatus();
}

absl::StatusOr<Literal> FetchTensor(const Tensor& t) {
  DeviceState& device = *t.device();
  std::shared_ptr<runtime::Buffer> buffer;
  {
    std::lock_guard<std::recursive_mutex> lock(device.mutex());
    TensorData* data = t.impl()->data.get();
    if (data->buffer == nullptr) {
      const SliceOptions options{true, false};
      const GraphSlice slice = SliceOf(device, {data}, options);
      absl::StatusOr<std::vector<std::shared_ptr<runtime::Buffer>>> results = Launch(device, slice, options);
      if (!results.ok()) return results.status();
      Materialize(data, (*results)[0]);
    }
    buffer = data->buffer;
  }
  return device.tracer()->client().TransferFromDevice(*buffer);
}

absl::StatusOr<Literal> FetchKeepingGraph(const Tensor& t) {
  DeviceState& device = *t.device();
  std::shared_ptr<runtime::Buffer> buffer;
  {
    std::lock_guard<std::recursive_mutex> lock(device.mutex());
    TensorData* data = t.impl()->data.get();
    buffer = data->buffer;
    if (buffer == nullptr) {
      const SliceOptions options{false, false};
      const GraphSlice slice = SliceOf(device, {data}, options);
      absl::StatusOr<std::vector<std::shared_ptr<runtime::Buffer>>> results = Launch(device, slice, options);
      if (!results.ok()) return results.status();
      buffer = (*results)[0];
    }
  }
  return device.tracer()->client().TransferFromDevice(*buffer);
}

}  // namespace hlokit::lazy
