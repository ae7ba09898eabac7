// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/executor.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "runtime/observe/profiler.h"
#include "tracer/graph/grad_function.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/tiling.h"
#include "tracer/lowering/lowering_context.h"
#include "tracer/observe/explain.h"
#include "tracer/observe/save_graphs.h"
#include "tracer/step/debug_analysis.h"
#include "tracer/step/graph_key.h"
#include "tracer/step/graph_key_components.h"
#include "tracer/step/partitioning.h"
#include "tracer/step/shared_programs.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

std::atomic<uint64_t> next_mark{1};

// Larger graphs are not compared for profiles.
constexpr int64_t kMaxExplainedNodes = 20000;

bool IsVirtual(DeviceState& device) { return device.tracer()->options().client.platform == kSpmdPlatform; }

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
    const SourceFrame& frame = device.frames()[node.frame - 1];
    m.source_file = context.strings.Intern(frame.file);
    m.source_line = frame.line;
  }
  return context.metadata.Intern(m);
}

}  // namespace

PendingSubgraph CollectSubgraph(DeviceState& device, absl::Span<TensorData* const> tensors,
                                const SubgraphOptions& options) {
  const runtime::TraceMe trace("RunPostOrder");
  PendingSubgraph slice;
  Graph& graph = device.graph();
  for (TensorData* data : tensors) slice.roots.push_back(device.ValueOf(data));
  slice.order = graph.PostOrder(slice.roots);
  runtime::host_work.visited += static_cast<uint32_t>(slice.order.size());
  const uint64_t mark = next_mark.fetch_add(1, std::memory_order_relaxed);
  for (NodeId id : slice.order) {
    if (graph.node(id).op != Op::device_data) continue;
    const std::shared_ptr<runtime::DeviceBuffer>& buffer = graph.leaf(id);
    if (buffer->numbering_epoch == mark) continue;
    buffer->numbering_epoch = mark;
    buffer->parameter_number = static_cast<uint32_t>(slice.inputs.size());
    slice.inputs.push_back(buffer);
    slice.input_nodes.push_back(id);
  }
  if (options.donate) {
    for (TensorData* data : tensors) {
      // Donate only buffers that are inputs of this graph and that no other tensor references.
      const std::shared_ptr<runtime::DeviceBuffer>& old = data->overwritten;
      if (old == nullptr || old->read_only || old->numbering_epoch != mark) continue;
      slice.donated.push_back(old->parameter_number);
    }
    std::sort(slice.donated.begin(), slice.donated.end());
    slice.donated.erase(std::unique(slice.donated.begin(), slice.donated.end()), slice.donated.end());
  }
  return slice;
}

absl::StatusOr<std::unique_ptr<Module>> LowerSubgraph(DeviceState& device, const PendingSubgraph& slice,
                                                      std::string_view name) {
  auto module = std::make_unique<Module>();
  Context& context = module->context();
  const Graph& graph = device.graph();
  const bool debug = device.tracer()->options().debug;
  module->header().name = context.strings.Intern(name);
  const ComputationId entry = module->AddComputation(module->UniqueComputationName(name));
  module->SetEntry(entry);
  XlaEmitter e(module.get(), entry);
  // Values by position in the post-order and output.
  std::vector<uint32_t> first(slice.order.size() + 1);
  std::vector<InstructionId> values;
  std::vector<InstructionId> operands;
  std::vector<InstructionId> parameters(slice.inputs.size());
  const bool wrapped =
      static_cast<int64_t>(slice.inputs.size()) >= device.tracer()->options().parameter_wrapping_threshold;
  XlaOp all_parameters(&e, InstructionId());
  if (wrapped) {
    std::vector<Shape> shapes;
    for (NodeId id : slice.input_nodes) {
      const Shape shape = device.context().shape(graph.node(id).shape);
      shapes.push_back(e.ArrayShape(shape.element_type(), shape.dims()));
    }
    all_parameters = e.Take(e.builder().Parameter(0, context.shapes.Tuple(shapes), "p0"));
  }
  for (size_t at = 0; at < slice.order.size(); ++at) {
    const NodeId id = slice.order[at];
    const NodeRecord& node = graph.node(id);
    first[at] = static_cast<uint32_t>(values.size());
    const MetadataScope metadata(&e.builder(), debug ? MetadataOf(device, node, context) : MetadataId());
    const Shape shape = device.context().shape(node.shape);
    if (node.op == Op::device_data) {
      const uint32_t number = graph.leaf(id)->parameter_number;
      if (!parameters[number].valid()) {
        const XlaOp p = wrapped ? e.Take(e.builder().GetTupleElement(all_parameters.id(), number))
                                : e.Take(e.builder().Parameter(number, e.ArrayShape(shape.element_type(), shape.dims()),
                                                               StrCat("p", number)));
        const EncodedArgs args = DecodeArgs(device.context().list(node.attrs));
        if (p.ok() && args.size() > 0) {
          module->SetAttr(p.id(), Attr::kSharding, Tiling::FromArgs(args, 0).Encode(&context).value);
        }
        parameters[number] = p.id();
      }
      values.push_back(parameters[number]);
      continue;
    }
    operands.clear();
    for (const NodeOutput& operand : graph.operands(id)) {
      operands.push_back(values[first[graph.Position(operand.node)] + operand.output]);
    }
    const EncodedArgs args = DecodeArgs(device.context().list(node.attrs));
    if (node.op == Op::constant) {
      values.push_back(Constant(e, shape.element_type(), args[0].scalar()).id());
      continue;
    }
    LoweringContext n(&e, node.op, args, operands);
    const OpInfo& info = InfoOf(node.op);
    (info.lower == nullptr ? &lower::None : info.lower)(n);
    if (!e.status().ok()) {
      return absl::Status(e.status().code(),
                          absl::string_view(StrCat(SymbolOf(node.op), ": ", std::string(e.status().message()))));
    }
    for (const XlaOp& result : n.results()) values.push_back(result.id());
  }
  std::vector<InstructionId> roots;
  for (const NodeOutput& root : slice.roots) roots.push_back(values[first[graph.Position(root.node)] + root.output]);
  const XlaOp tuple = e.Take(e.builder().Tuple(roots));
  if (!e.status().ok()) return e.status();
  e.builder().SetRoot(tuple.id());
  EntryLayout layout;
  if (wrapped) {
    layout.parameters.push_back(all_parameters.shape());
  } else {
    for (const InstructionId p : parameters) layout.parameters.push_back(e.builder().shape_of(p));
  }
  layout.result = tuple.shape();
  module->header().entry_layout = std::move(layout);
  for (int64_t i : slice.donated) {
    module->header().buffer_donor.push_back(wrapped ? BufferDonor{0, context.lists.Intern({i})}
                                                    : BufferDonor{i, context.lists.Intern({})});
  }
  return module;
}

namespace {

struct Found {
  std::shared_ptr<CompiledGraph> graph;
  ExecutionRecord::ProgramOrigin how;
};

// Sets what a program keeps of its graph.
void Describe(DeviceState& device, const PendingSubgraph& slice, CompiledGraph* compiled) {
  compiled->nodes = static_cast<int64_t>(slice.order.size());
  compiled->inputs = static_cast<int64_t>(slice.inputs.size());
  compiled->outputs = static_cast<int64_t>(slice.roots.size());
  compiled->donated_parameters = slice.donated;
  for (const NodeOutput& root : slice.roots) compiled->result_shapes.push_back(device.ShapeOf(root));
  compiled->root = slice.roots.empty() ? "" : SymbolOf(device.graph().node(slice.roots[0].node).op);
}

// Adds the reason of a compilation to the profile. Returns the explanation, "" if there is none.
std::string ExplainInProfile(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options,
                             const std::string& other_setting, CompiledGraph* compiled) {
  if (!device.tracer()->options().explain_recompiles && compiled->nodes > kMaxExplainedNodes) return "";
  const runtime::TraceMe tool(runtime::kToolSpan);
  Explanation explanation = ExplainCompilation(device, slice, options, other_setting, compiled);
  runtime::Profiler::ExplainCompilation(compiled->executable.get(), explanation.difference);
  return std::move(explanation.text);
}

// Returns the executable of a stored program, if it is one of this subgraph by its shapes.
absl::StatusOr<std::shared_ptr<runtime::Executable>> LoadProgram(DeviceState& device, const PendingSubgraph& slice,
                                                                 std::string_view program) {
  std::vector<Shape> parameters, results;
  for (const NodeId id : slice.input_nodes) {
    parameters.push_back(device.context().shape(device.graph().node(id).shape));
  }
  for (const NodeOutput& root : slice.roots) results.push_back(device.ShapeOf(root));
  return device.tracer()->client().LoadExecutable(program, parameters, results);
}

// Returns an error for a graph with a value that no machine computes in a bearable time, even if its elements are all
// one and it need not be kept: an expansion by mistake.
absl::Status CheckSizes(DeviceState& device, const PendingSubgraph& slice) {
  constexpr int64_t kMaxValueBytes = int64_t{1} << 40;
  if (device.tracer()->options().client.defer_executions || IsVirtual(device)) return absl::OkStatus();
  for (const NodeId id : slice.order) {
    const Shape shape = device.context().shape(device.graph().node(id).shape);
    if (shape.IsTuple() || ByteSize(shape) <= kMaxValueBytes) continue;
    return absl::ResourceExhaustedError(StrCat("cannot run the program: a value of shape ", ToString(shape, false),
                                               " has ", ByteSize(shape), " bytes; the limit for values of any kind is ",
                                               kMaxValueBytes, " bytes"));
  }
  return absl::OkStatus();
}

// Returns the compiled program of the subgraph, cached or new.
absl::StatusOr<Found> ProgramFor(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options) {
  Tracer& tracer = *device.tracer();
  runtime::Metrics& metrics = tracer.metrics();
  ++runtime::host_work.syncs;
  metrics.AddSample("TensorsGraphSize", runtime::MetricKind::kValue, static_cast<double>(slice.order.size()));
  const absl::Span<const uint32_t> words = KeyOf(device, slice, options);
  if (std::shared_ptr<CompiledGraph> found = device.cache().Find(words)) {
    metrics.Add("CachedCompile");
    return Found{std::move(found), ExecutionRecord::ProgramOrigin::kCached};
  }
  Found result{std::make_shared<CompiledGraph>(), ExecutionRecord::ProgramOrigin::kCompiled};
  CompiledGraph& compiled = *result.graph;
  compiled.words.assign(words.begin(), words.end());
  runtime::CompilationCacheKey key = CompilationCacheKeyOf(device, slice, options);
  compiled.hash = DigestOf(key.contents);
  // Another device of the process may have compiled it, or be compiling it.
  std::optional<SharedPrograms::Claim> claim;
  if (tracer.device_count() > 1) claim.emplace(tracer.shared_programs().FindOrClaim(key.contents));
  if (claim && claim->program() != nullptr) {
    metrics.Add("CachedCompile");
    result.how = ExecutionRecord::ProgramOrigin::kCached;
    // In profiles each device compiles its program, as processes of PyTorch/XLA do: which of them really compiled it
    // differs between runs.
    const runtime::TraceMe trace("XLAGraphExecutor::Compile");
    runtime::host_work.lowered += static_cast<uint32_t>(slice.order.size());
    {
      const runtime::TraceMe compile("PjRtComputationClient::Compile");
      compiled.executable =
          tracer.client().DeserializeExecutable(runtime::SerializedExecutable(claim->program()->text));
      compiled.executable->set_lowered(claim->program()->lowered);
      runtime::Profiler::RecordCompilation(compiled.executable);
    }
    Describe(device, slice, &compiled);
    if (runtime::Profiler::active()) ExplainInProfile(device, slice, options, "", &compiled);
    device.cache().Insert(result.graph);
    return result;
  }
  metrics.Add("UncachedCompile");
  const runtime::TraceMe trace("XLAGraphExecutor::Compile");
  // A partitioned program has other shapes than the graph, by which stored ones are checked.
  runtime::PersistentCache* const disk = IsVirtual(device) ? nullptr : tracer.persistent_cache();
  std::string other_setting;
  if (disk != nullptr) {
    std::shared_ptr<runtime::Executable> loaded;
    const auto load = [&](std::string_view program) {
      auto executable = LoadProgram(device, slice, program);
      if (executable.ok()) loaded = *std::move(executable);
      return executable.status();
    };
    if (std::optional<runtime::SerializedExecutable> program = disk->Get(key, load)) {
      std::string text = claim ? std::string(program->text()) : std::string();
      compiled.executable = std::move(loaded);
      // The stored program has no metadata.
      if (tracer.options().client.keep_lowered) {
        const runtime::TraceMe tool(runtime::kToolSpan);
        absl::StatusOr<std::unique_ptr<Module>> module = LowerSubgraph(device, slice, "SyncTensorsGraph");
        if (!module.ok()) return module.status();
        compiled.executable->set_lowered(*std::move(module));
      }
      if (claim) claim->Publish({std::move(text), compiled.executable->lowered()});
      result.how = ExecutionRecord::ProgramOrigin::kLoaded;
    } else {
      key.components = GraphKeyComponentsOf(device, slice, options);
      if (tracer.options().explain_recompiles) other_setting = disk->ExplainMiss(key);
    }
  }
  if (compiled.executable == nullptr) {
    if (absl::Status s = CheckSizes(device, slice); !s.ok()) return s;
    static std::atomic<int64_t> serial{0};
    const std::string name =
        device.graph_name.empty() ? StrCat("SyncTensorsGraph.", serial.fetch_add(1) + 1) : device.graph_name;
    absl::StatusOr<std::unique_ptr<Module>> module = LowerSubgraph(device, slice, name);
    if (!module.ok()) return module.status();
    if (IsVirtual(device)) {
      if (absl::Status s = SetPartitions(module->get()); !s.ok()) return s;
    }
    runtime::host_work.lowered += static_cast<uint32_t>(slice.order.size());
    absl::StatusOr<std::shared_ptr<runtime::Executable>> executable = tracer.client().Compile(*std::move(module));
    if (!executable.ok()) return executable.status();
    compiled.executable = *std::move(executable);
    if (disk != nullptr || claim) {
      std::string program = tracer.client().Serialize(*compiled.executable);
      if (disk != nullptr) disk->Put(key, program);
      if (claim) claim->Publish({std::move(program), compiled.executable->lowered()});
    }
  }
  Describe(device, slice, &compiled);
  metrics.AddSample("InputOutputAliasCount", runtime::MetricKind::kValue, static_cast<double>(slice.donated.size()));
  if (tracer.options().explain_recompiles || runtime::Profiler::active()) {
    std::string text = ExplainInProfile(device, slice, options, other_setting, &compiled);
    if (tracer.options().explain_recompiles && !text.empty()) tracer.AddExplanation(std::move(text));
  }
  device.cache().Insert(result.graph);
  return result;
}

// Reports and records an execution. Returns an error if executions are forbidden.
absl::Status Announce(DeviceState& device, const Found& found, SyncReason cause) {
  Tracer& tracer = *device.tracer();
  const TracerOptions& options = tracer.options();
  const bool report = options.debug_level >= 1;
  const bool keep = options.log_executions || options.auto_analysis;
  if (!report && !keep && device.listener == nullptr && !device.forbid_execution) return absl::OkStatus();
  const CompiledGraph& graph = *found.graph;
  ExecutionRecord e{device.steps + 1, cause,         device.graph_name,
                    graph.hash,       found.how,     device.device()->ordinal(),
                    device.name(),    graph.root,    graph.nodes,
                    graph.inputs,     graph.outputs, static_cast<int64_t>(graph.donated_parameters.size()),
                    CurrentFrames()};
  if (device.forbid_execution) {
    tracer.Warn(AnalysisBlock(AnalysisKind::kUnexpectedExecution, e, options.debug_max_frames));
    return absl::FailedPreconditionError("Unexpected execution happens inside the compiled function, exiting");
  }
  if (report && found.how == ExecutionRecord::ProgramOrigin::kCompiled) {
    tracer.Warn(AnalysisBlock(AnalysisKind::kCompilation, e, options.debug_max_frames));
    tracer.Warn(PostCompilationBlock(graph.executable->module()));
  }
  if (options.debug_level >= 2) tracer.Warn(AnalysisBlock(AnalysisKind::kExecution, e, options.debug_max_frames));
  if (device.listener != nullptr) device.listener->push_back(e);
  if (keep) tracer.execution_log().Add(std::move(e));
  return absl::OkStatus();
}

std::vector<std::shared_ptr<runtime::DeviceBuffer>> Start(DeviceState& device, const CompiledGraph& graph,
                                                          std::vector<std::shared_ptr<runtime::DeviceBuffer>> inputs) {
  const runtime::TraceMe trace("ScheduleSyncTensorsGraph");
  // A captured program may find values that have become shared since the trace.
  std::vector<int64_t> donated = graph.donated_parameters;
  std::erase_if(donated, [&](int64_t i) { return inputs[static_cast<size_t>(i)]->read_only; });
  std::vector<std::shared_ptr<runtime::DeviceBuffer>> results;
  {
    const runtime::TimedSection timed(&device.tracer()->metrics(), "WrapXlaData");
    results.reserve(static_cast<size_t>(graph.outputs));
    for (int64_t i = 0; i < graph.outputs; ++i) results.push_back(device.device()->CreatePendingBuffer());
  }
  device.device()->Enqueue([dropped = device.TakeDeadBuffers()]() mutable {
    dropped.clear();
    return absl::OkStatus();
  });
  device.tracer()->client().Execute(device.device(), graph.executable, std::move(inputs), results, donated);
  return results;
}

}  // namespace

absl::StatusOr<LaunchResult> Launch(DeviceState& device, PendingSubgraph slice, const SubgraphOptions& options,
                                    SyncReason cause) {
  const TracerOptions& tracer_options = device.tracer()->options();
  if (!tracer_options.save_graphs_file.empty()) {
    absl::Status saved =
        SaveGraph(device, slice, options, tracer_options.save_graphs_file, tracer_options.save_graphs_format);
    if (!saved.ok()) return saved;
  }
  absl::StatusOr<Found> found = ProgramFor(device, slice, options);
  if (!found.ok()) return found.status();
  if (absl::Status s = Announce(device, *found, cause); !s.ok()) return s;
  LaunchResult launched{std::move(found->graph), {}};
  launched.results = Start(device, *launched.program, std::move(slice.inputs));
  return launched;
}

absl::StatusOr<std::vector<std::shared_ptr<runtime::DeviceBuffer>>> Replay(
    DeviceState& device, const std::shared_ptr<CompiledGraph>& program,
    std::vector<std::shared_ptr<runtime::DeviceBuffer>> inputs, SyncReason cause) {
  if (absl::Status s = Announce(device, {program, ExecutionRecord::ProgramOrigin::kCached}, cause); !s.ok()) return s;
  return Start(device, *program, std::move(inputs));
}

void Materialize(TensorData* data, std::shared_ptr<runtime::DeviceBuffer> buffer) {
  data->buffer = std::move(buffer);
  data->overwritten = nullptr;
  data->ir = NodeOutput();
}

namespace {

// Sets the values of tensors that a program computed, and, of those that have none yet, their distributions.
void MaterializeAll(DeviceState& device, absl::Span<TensorData* const> tensors, LaunchResult launched) {
  for (size_t i = 0; i < tensors.size(); ++i) Materialize(tensors[i], std::move(launched.results[i]));
  if (!IsVirtual(device) || launched.program->executable->lowered() == nullptr) return;
  const std::vector<std::optional<Tiling>> shardings = ResultShardings(*launched.program->executable->lowered());
  for (size_t i = 0; i < std::min(tensors.size(), shardings.size()); ++i) {
    if (!shardings[i] || tensors[i]->sharding.valid()) continue;
    ArgEncoder encoder;
    shardings[i]->AppendTo(&encoder);
    tensors[i]->sharding = device.context().lists.Intern(encoder.words());
  }
}

}  // namespace

std::vector<TensorData*> PendingTensors(DeviceState& device) {
  std::vector<TensorData*> pending = device.LiveTensors();
  std::erase_if(pending, [&](const TensorData* data) { return !Pending(device, *data); });
  return pending;
}

namespace {

// Locks the device for an execution, and records the time that it waits for other threads.
std::unique_lock<ReentrantMutex> LockToRun(DeviceState& device) {
  const runtime::TimedSection waiting(&device.tracer()->metrics(), "DeviceLockWait");
  return std::unique_lock<ReentrantMutex>(device.mutex());
}

// A span that sets what a tool does for itself apart from the program.
class ToolSpan {
 public:
  ToolSpan() {
    if (CurrentSyncReason(SyncReason::kValue) == SyncReason::kTool) span_.emplace(runtime::kToolSpan);
  }

 private:
  std::optional<runtime::TraceMe> span_;
};

// Copies a value to the host, for the program or for a tool.
absl::StatusOr<Literal> ReadValue(DeviceState& device, const runtime::BufferUse& use) {
  if (CurrentSyncReason(SyncReason::kValue) == SyncReason::kTool) return runtime::Client::ReadBuffer(use);
  return device.tracer()->client().TransferFromDevice(use);
}

// Computes these pending tensors. Requires: the device's mutex.
absl::Status Compute(DeviceState& device, absl::Span<TensorData* const> pending, const SubgraphOptions& options,
                     SyncReason cause) {
  if (pending.empty()) return absl::OkStatus();
  absl::StatusOr<LaunchResult> launched = Launch(device, CollectSubgraph(device, pending, options), options, cause);
  if (!launched.ok()) return launched.status();
  MaterializeAll(device, pending, *std::move(launched));
  return absl::OkStatus();
}

}  // namespace

absl::Status SyncLiveTensors(DeviceState& device, SyncReason cause, bool wait) {
  const runtime::TraceMe trace("SyncLiveTensorsGraph");
  {
    const std::unique_lock<ReentrantMutex> lock = LockToRun(device);
    const SubgraphOptions options{true, device.tracer()->options().donate};
    if (absl::Status s = Compute(device, PendingTensors(device), options, cause); !s.ok()) return s;
    device.ClearGraphIfUnused();
  }
  return wait ? device.device()->Synchronize() : absl::OkStatus();
}

absl::Status SyncTensors(DeviceState& device, absl::Span<const Tensor> tensors, bool wait) {
  const ToolSpan tool;
  {
    const std::unique_lock<ReentrantMutex> lock = LockToRun(device);
    std::vector<TensorData*> chosen;
    absl::flat_hash_set<const TensorData*> seen;
    for (const Tensor& t : tensors) {
      TensorData* const data = t.impl()->data.get();
      if (Pending(device, *data) && seen.insert(data).second) chosen.push_back(data);
    }
    const SyncReason cause = CurrentSyncReason(SyncReason::kValue);
    if (absl::Status s = Compute(device, chosen, {true, false}, cause); !s.ok()) return s;
  }
  return wait ? device.device()->Synchronize() : absl::OkStatus();
}

absl::Status ComputeTensor(const Tensor& t) {
  const ToolSpan tool;
  DeviceState& device = *t.device();
  DeviceLock lock(device.mutex());
  TensorData* data = t.impl()->data.get();
  if (data->buffer != nullptr) return absl::OkStatus();
  const SubgraphOptions options{true, false};
  absl::StatusOr<LaunchResult> launched =
      Launch(device, CollectSubgraph(device, {data}, options), options, CurrentSyncReason(SyncReason::kValue));
  if (!launched.ok()) return launched.status();
  MaterializeAll(device, {data}, *std::move(launched));
  return absl::OkStatus();
}

absl::StatusOr<Literal> FetchTensor(const Tensor& t) {
  const ToolSpan tool;
  DeviceState& device = *t.device();
  std::optional<runtime::BufferUse> use;  // begins before another thread can donate the buffer
  {
    const std::unique_lock<ReentrantMutex> lock = LockToRun(device);
    if (absl::Status s = ComputeTensor(t); !s.ok()) return s;
    use.emplace(t.impl()->data->buffer);
  }
  return ReadValue(device, *use);
}

absl::StatusOr<Literal> FetchWithoutMaterializing(const Tensor& t) {
  const ToolSpan tool;
  DeviceState& device = *t.device();
  std::optional<runtime::BufferUse> use;
  {
    const std::unique_lock<ReentrantMutex> lock = LockToRun(device);
    TensorData* data = t.impl()->data.get();
    std::shared_ptr<runtime::DeviceBuffer> buffer = data->buffer;
    if (buffer == nullptr) {
      const SubgraphOptions options{false, false};
      absl::StatusOr<LaunchResult> launched =
          Launch(device, CollectSubgraph(device, {data}, options), options, CurrentSyncReason(SyncReason::kItem));
      if (!launched.ok()) return launched.status();
      buffer = std::move(launched->results[0]);
    }
    use.emplace(std::move(buffer));
  }
  return ReadValue(device, *use);
}

}  // namespace hlokit::lazy
