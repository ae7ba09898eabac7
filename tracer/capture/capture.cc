// SPDX-License-Identifier: Apache-2.0
#include "tracer/capture/capture.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/dispatch.h"

namespace hlokit::lazy {
namespace {

// Sets a variable for the duration of a C++ scope.
template <typename T>
class Replaced {
 public:
  Replaced(T* variable, T value) : variable_(variable), previous_(std::exchange(*variable, std::move(value))) {}
  ~Replaced() { *variable_ = std::move(previous_); }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  T* variable_;
  T previous_;
};

bool SameValue(const runtime::DeviceBuffer& a, const runtime::DeviceBuffer& b) {
  if (&a == &b) return true;
  if (!a.Wait().ok() || !b.Wait().ok() || a.literal().size_bytes() != b.literal().size_bytes()) return false;
  return std::memcmp(a.literal().data(), b.literal().data(), a.literal().size_bytes()) == 0;
}

// Returns the first node of the subgraph that uses input `number`: "aten::mul (step@train.py:3)".
std::string UseOf(DeviceState& device, const PendingSubgraph& slice, size_t number) {
  const Graph& graph = device.graph();
  for (NodeId id : slice.order) {
    for (const NodeOutput& operand : graph.operands(id)) {
      if (graph.node(operand.node).op != Op::device_data || graph.leaf(operand.node)->parameter_number != number)
        continue;
      return std::string(SymbolOf(graph.node(id).op));
    }
  }
  return "a result";
}

TensorData* DataOf(const Tensor& t) { return t.impl()->data.get(); }

// Returns true if a gradient can reach a leaf from the result of a call: its graph is not released.
bool CanBeDifferentiated(const Tensor& t) {
  return ComputeRequiresGrad(t) && !t.is_leaf() && !t.impl()->grad_fn->released;
}

}  // namespace

// A call of the function that records its graph, and finds out whether later calls can replay that: whether the sources
// of its inputs and the targets of its outputs are known for any call.
class CapturedFunction::Recording {
 public:
  Recording(CapturedFunction* function, DeviceState* device, const Tensors& arguments, const Guard& guard);

  absl::StatusOr<Tensors> Run();

 private:
  absl::Status CallFunction();
  // Each says why the graph cannot be replayed, if it finds a reason and there is none yet.
  void CheckExecutions();
  void FindSources(PendingSubgraph* slice);
  void FindOutputBindings();
  void CheckViews();
  void CheckLifetimes();
  void CompareNumbers();

  Source SourceOf(const PendingSubgraph& slice, size_t input);
  void FindResults();
  absl::Status LaunchGraph(PendingSubgraph* slice, const SubgraphOptions& options);
  // Adds the graph to those that are replayed.
  void Keep();
  void Because(std::string reason) {
    if (why_.empty()) why_ = std::move(reason);
  }

  CapturedFunction& function_;
  DeviceState& device_;
  const Tensors& arguments_;

  // State at the start.
  absl::flat_hash_map<const TensorData*, size_t> argument_of_;
  absl::flat_hash_map<const runtime::DeviceBuffer*, size_t> argument_buffers_;  // numbers of arguments by value
  absl::flat_hash_map<const runtime::DeviceBuffer*, uint64_t> owners_;          // ids of other tensors by value
  absl::flat_hash_set<uint64_t> live_at_start_;                                 // ids, without arguments
  uint64_t first_new_ = 0;                                                      // id

  // Of the call.
  std::vector<ExecutionRecord> executions_;
  Tensors results_;
  std::vector<bool> keeps_history_;  // by result
  std::vector<TensorData*> pending_;
  absl::flat_hash_set<const TensorData*> is_result_;
  absl::flat_hash_map<const TensorData*, size_t> root_of_;
  absl::flat_hash_map<uint64_t, TensorData*> live_;  // by id

  std::string why_;
  Candidate found_;
  CacheEntry variant_;
};

CapturedFunction Compile(Tracer* tracer, CapturedFunction::Function function, GraphCaptureOptions options) {
  return CapturedFunction(tracer, std::move(function), std::move(options));
}

CapturedFunction::CapturedFunction(Tracer* tracer, Function function, GraphCaptureOptions options)
    : tracer_(tracer), function_(std::move(function)), options_(std::move(options)) {}

void CapturedFunction::RecordReason(std::string why) {
  for (auto& [text, times] : reasons_) {
    if (text == why) {
      ++times;
      return;
    }
  }
  reasons_.emplace_back(std::move(why), 1);
}

std::string CapturedFunction::Report() const {
  std::string out =
      StrCat("captured function ", options_.name, ": ", calls_, " calls, ", calls_ - replays_, " traced, ", replays_,
             " replayed, ", static_cast<int64_t>(cache_entries_.size()), " graphs\n");
  for (const CacheEntry& v : cache_entries_) {
    int64_t from[4] = {0, 0, 0, 0};
    for (const Source& s : v.sources) ++from[static_cast<size_t>(s.kind)];
    StrAppend(&out, "  graph ", ToString(v.program->hash), ": ", v.program->nodes, " nodes, ", from[0], " arguments, ",
              from[1], " other tensors, ", from[2], " seeds, ", from[3], " numbers, ", v.program->outputs,
              " results\n");
  }
  for (const auto& [why, times] : reasons_)
    StrAppend(&out, "  traced ", Counted(times, "time: ", "times: "), why, "\n");
  return out;
}

CapturedFunction::Guard CapturedFunction::GuardOf(const Tensors& arguments) const {
  Guard guard;
  for (size_t i = 0; i < arguments.size(); ++i) {
    guard.shapes.push_back(arguments[i].shape());
    size_t first = 0;
    while (DataOf(arguments[first])->buffer != DataOf(arguments[i])->buffer) ++first;
    guard.same_as.push_back(first);
    guard.requires_grad.push_back(arguments[i].requires_grad());
  }
  guard.grad_enabled = GradEnabled();
  if (options_.guarded_scalars) {
    for (double number : options_.guarded_scalars()) guard.guarded_scalars.push_back(std::bit_cast<uint64_t>(number));
  }
  return guard;
}

int64_t CapturedFunction::HeldByCacheEntries(const TensorData* data) const {
  int64_t held = 0;
  for (const CacheEntry& v : cache_entries_) {
    for (const Ref<TensorData>& state : v.state) held += state.get() == data;
  }
  return held;
}

bool CapturedFunction::InUse(const CacheEntry& variant) const {
  return std::all_of(variant.made.begin(), variant.made.end(),
                     [&](const TensorData* data) { return data->refs() > HeldByCacheEntries(data); });
}

absl::StatusOr<Tensors> CapturedFunction::operator()(const Tensors& arguments, const std::source_location& location) {
  const ScopedSourceLocation site(location);
  DeviceState& device = CurrentDevice() != nullptr ? *CurrentDevice() : *tracer_->device();
  for (const Tensor& t : arguments) {
    if (!t.defined()) return absl::InvalidArgumentError("expected defined tensors as arguments of a captured function");
    if (t.device() != &device) return absl::InvalidArgumentError("arguments of a captured function on another device");
    RefreshView(t);
  }
  DeviceLock lock(device.mutex());
  ++calls_;
  const Replaced<std::string> name(&device.graph_name, options_.name);
  // Nodes pending now are not part of the function.
  if (!PendingTensors(device).empty()) {
    tracer_->metrics().Add("DynamoSyncInputExecuteTime");
    if (absl::Status s = SyncLiveTensors(device, SyncReason::kCaptureInputs, /*wait=*/false); !s.ok()) return s;
  }
  const Guard guard = GuardOf(arguments);
  std::erase_if(cache_entries_, [&](const CacheEntry& v) { return v.guard == guard && !InUse(v); });
  absl::StatusOr<Tensors> results = Tensors();
  const auto known =
      std::find_if(cache_entries_.begin(), cache_entries_.end(), [&](const CacheEntry& v) { return v.guard == guard; });
  if (known != cache_entries_.end()) {
    ++replays_;
    results = Replay(device, *known, arguments);
  } else {
    replayable_ = false;
    results = Recording(this, &device, arguments, guard).Run();
  }
  device.NextStepSeed();
  device.ClearGraphIfUnused();
  return results;
}

CapturedFunction::Recording::Recording(CapturedFunction* function, DeviceState* device, const Tensors& arguments,
                                       const Guard& guard)
    : function_(*function), device_(*device), arguments_(arguments) {
  found_.guard = variant_.guard = guard;
  for (size_t i = arguments.size(); i-- > 0;) {
    argument_of_[DataOf(arguments[i])] = i;
    argument_buffers_[DataOf(arguments[i])->buffer.get()] = i;
  }
  for (TensorData* data : device->LiveTensors()) {
    if (argument_of_.contains(data) || data->buffer == nullptr || data->refs() == function->HeldByCacheEntries(data)) {
      continue;
    }
    owners_.emplace(data->buffer.get(), data->id);
    live_at_start_.insert(data->id);
  }
  first_new_ = device->next_id();
}

absl::StatusOr<Tensors> CapturedFunction::Recording::Run() {
  if (absl::Status status = CallFunction(); !status.ok()) return status;
  pending_ = PendingTensors(device_);
  if (pending_.empty()) {
    function_.RecordReason("it computes nothing");
    return std::move(results_);
  }
  for (const Tensor& t : results_) is_result_.insert(DataOf(t));
  for (size_t i = 0; i < pending_.size(); ++i) root_of_[pending_[i]] = i;
  const SubgraphOptions options{true, function_.tracer_->options().donate};
  PendingSubgraph slice = CollectSubgraph(device_, pending_, options);
  for (TensorData* data : device_.LiveTensors()) live_.emplace(data->id, data);
  CheckExecutions();
  FindSources(&slice);
  FindOutputBindings();
  CheckViews();
  CheckLifetimes();
  FindResults();
  if (absl::Status status = LaunchGraph(&slice, options); !status.ok()) return status;
  CompareNumbers();
  if (why_.empty()) {
    Keep();
    function_.replayable_ = true;
    why_ = "its graph was not known";
  }
  function_.RecordReason(std::move(why_));
  return std::move(results_);
}

absl::Status CapturedFunction::Recording::CallFunction() {
  absl::StatusOr<Tensors> traced = Tensors();
  {
    const Replaced<std::vector<ExecutionRecord>*> listener(&device_.listener, &executions_);
    const Replaced<bool> forbid(&device_.forbid_execution, function_.options_.full_graph);
    const ReplacedSourceLocation program;
    traced = function_.function_(arguments_);
  }
  Tracer& tracer = *function_.tracer_;
  if (absl::Status s = tracer.status(); !s.ok()) return s;
  results_ = *std::move(traced);
  for (const Tensor& t : results_) {
    if (!t.defined()) return absl::InvalidArgumentError("a captured function gave an undefined tensor");
    RefreshView(t);
  }
  for (const Tensor& t : results_) {
    keeps_history_.push_back(function_.options_.differentiable && CanBeDifferentiated(t));
  }
  tracer.metrics().Add("DynamoExtractCompiledGraph");
  device_.SetCollectiveToken(Tensor());  // not a result
  return absl::OkStatus();
}

void CapturedFunction::Recording::CheckExecutions() {
  if (!executions_.empty()) {
    const ExecutionRecord& first = executions_[0];
    const std::string place = LocationOf(first.frames);
    Because(StrCat("it runs ", static_cast<int64_t>(executions_.size()) + 1, " graphs, the first for the ",
                   ToString(first.cause), " of ", first.root, place.empty() ? "" : StrCat(" at ", place)));
  }
  if (std::find(keeps_history_.begin(), keeps_history_.end(), true) != keeps_history_.end()) {
    Because("a result requires a gradient, and the program differentiates outside of it");
  }
}

void CapturedFunction::Recording::FindSources(PendingSubgraph* slice) {
  const runtime::TimedSection timed(&function_.tracer_->metrics(), "RunCachedGraphInputData");
  for (size_t i = 0; i < slice->inputs.size(); ++i) found_.sources.push_back(SourceOf(*slice, i));
  // Every replay needs the numbers again.
  std::erase_if(slice->donated,
                [&](int64_t i) { return found_.sources[static_cast<size_t>(i)].kind == Source::Kind::kNumber; });
}

CapturedFunction::Source CapturedFunction::Recording::SourceOf(const PendingSubgraph& slice, size_t input) {
  const std::shared_ptr<runtime::DeviceBuffer>& buffer = slice.inputs[input];
  Source source{Source::Kind::kNumber, 0, nullptr, nullptr, ""};
  if (const auto a = argument_buffers_.find(buffer.get()); a != argument_buffers_.end()) {
    source.kind = Source::Kind::kArgument;
    source.argument = a->second;
  } else if (buffer == device_.UsedSeedBuffer()) {
    source.kind = Source::Kind::kSeed;
  } else if (const auto o = owners_.find(buffer.get()); o != owners_.end() && !buffer->read_only) {
    source.kind = Source::Kind::kState;
    const auto owner = live_.find(o->second);
    if (owner == live_.end()) {
      Because(StrCat("it replaces a tensor that it reads, with ", UseOf(device_, slice, input)));
      return source;
    }
    source.state = owner->second;
    if (source.state->follows_base && !function_.options_.views_are_current) {
      Because(StrCat("it reads a view that was made outside of it, with ", UseOf(device_, slice, input)));
    }
  } else {
    source.number = buffer;
    source.use = UseOf(device_, slice, input);
  }
  return source;
}

// Tensors that were created and are not results replace the same number of destroyed ones.
void CapturedFunction::Recording::FindOutputBindings() {
  for (TensorData* data : pending_) {
    OutputBinding binding;
    if (const auto a = argument_of_.find(data); a != argument_of_.end()) {
      binding.argument = a->second;
    } else if (data->id < first_new_) {
      binding.state = data;
    } else if (!is_result_.contains(data)) {
      binding.state = data;
      binding.made = true;
      variant_.made.push_back(data);
    }
    variant_.output_bindings.push_back(binding);
  }
}

void CapturedFunction::Recording::CheckViews() {
  // Another tensor in the argument's position may be a view of another base.
  for (const Tensor& t : arguments_) {
    for (const TensorImpl* at = t.impl(); at->view != nullptr && why_.empty();) {
      at = at->view->parent.impl();
      if (at->data.get() != DataOf(t) && root_of_.contains(at->data.get())) {
        Because("it writes to what an argument is a view of");
      }
    }
  }
}

void CapturedFunction::Recording::CheckLifetimes() {
  const std::shared_ptr<runtime::DeviceBuffer> seed = device_.UsedSeedBuffer();
  for (const auto& [id, data] : live_) {
    if (id >= first_new_ && data->buffer != nullptr && !is_result_.contains(data) && data->buffer != seed) {
      Because("it keeps a tensor that it uploads");
    }
  }
  size_t released = 0;
  for (uint64_t id : live_at_start_) {
    const auto it = live_.find(id);
    if (it == live_.end() || it->second->refs() == function_.HeldByCacheEntries(it->second)) ++released;
  }
  if (variant_.made.size() != released) {
    Because(variant_.made.size() > released ? "it makes tensors that stay, as the first step of an optimizer does"
                                            : "it drops tensors and makes none in their place");
  }
}

void CapturedFunction::Recording::FindResults() {
  for (const Tensor& t : results_) {
    Result result;
    if (const auto r = root_of_.find(DataOf(t)); r != root_of_.end()) result.root = r->second;
    if (const auto a = argument_of_.find(DataOf(t)); a != argument_of_.end()) {
      result.argument = a->second;
    } else if (!result.root || DataOf(t)->id < first_new_) {
      result.same = t;
    }
    variant_.results.push_back(std::move(result));
  }
}

absl::Status CapturedFunction::Recording::LaunchGraph(PendingSubgraph* slice, const SubgraphOptions& options) {
  absl::StatusOr<LaunchResult> launched = Launch(device_, *slice, options, SyncReason::kCapture);
  if (!launched.ok()) return launched.status();
  found_.program = launched->program;
  const runtime::TimedSection timed(&function_.tracer_->metrics(), "RunCachedGraphOutputData");
  for (size_t i = 0; i < pending_.size(); ++i) Materialize(pending_[i], std::move(launched->results[i]));
  for (size_t i = 0; i < results_.size(); ++i) {
    if (keeps_history_[i]) continue;
    if (!variant_.results[i].argument && !variant_.results[i].same.defined()) results_[i] = results_[i].Detach();
  }
  return absl::OkStatus();
}

void CapturedFunction::Recording::CompareNumbers() {
  std::vector<Candidate>& candidates = function_.candidates_;
  const auto candidate =
      std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) { return c.guard == found_.guard; });
  const bool has_numbers = std::any_of(found_.sources.begin(), found_.sources.end(),
                                       [](const Source& s) { return s.kind == Source::Kind::kNumber; });
  if (has_numbers && (candidate == candidates.end() || candidate->program != found_.program)) {
    Because("it holds numbers of the host, and a second trace has to give the same");
  }
  for (size_t i = 0; has_numbers && i < found_.sources.size() && why_.empty(); ++i) {
    const Source& now = found_.sources[i];
    const Source& before = candidate->sources[i];
    if (now.kind != before.kind || (now.number != nullptr && !SameValue(*now.number, *before.number))) {
      Because(StrCat("a number changes from call to call, that of ", now.use));
    }
  }
  if (candidate != candidates.end()) candidates.erase(candidate);
  // Keeps numbers only, for a later trace to be compared with: a reference to a tensor would keep it alive.
  if (has_numbers) {
    if (candidates.size() >= kMaxCandidates) candidates.erase(candidates.begin());
    candidates.push_back(found_);
    for (Source& s : candidates.back().sources) s.state = nullptr;
  }
}

void CapturedFunction::Recording::Keep() {
  variant_.program = std::move(found_.program);
  variant_.sources = std::move(found_.sources);
  absl::flat_hash_set<const TensorData*> kept;
  const auto keep = [&](TensorData* data) {
    if (data != nullptr && kept.insert(data).second) variant_.state.emplace_back(data);
  };
  for (const Source& s : variant_.sources) keep(s.state);
  for (const OutputBinding& s : variant_.output_bindings) keep(s.state);
  std::vector<CacheEntry>& entries = function_.cache_entries_;
  if (entries.size() >= kMaxCacheEntries) entries.erase(entries.begin());
  entries.push_back(std::move(variant_));
}

absl::StatusOr<Tensors> CapturedFunction::Replay(DeviceState& device, const CacheEntry& variant,
                                                 const Tensors& arguments) {
  std::vector<std::shared_ptr<runtime::DeviceBuffer>> inputs;
  {
    const runtime::TimedSection timed(&tracer_->metrics(), "RunCachedGraphInputData");
    inputs.reserve(variant.sources.size());
    for (const Source& s : variant.sources) {
      switch (s.kind) {
        case Source::Kind::kArgument:
          inputs.push_back(DataOf(arguments[s.argument])->buffer);
          break;
        case Source::Kind::kState:
          inputs.push_back(s.state->buffer);
          break;
        case Source::Kind::kSeed:
          inputs.push_back(device.SeedBuffer());
          break;
        case Source::Kind::kNumber:
          inputs.push_back(s.number);
          break;
      }
    }
  }
  absl::StatusOr<std::vector<std::shared_ptr<runtime::DeviceBuffer>>> roots =
      lazy::Replay(device, variant.program, std::move(inputs), SyncReason::kReplay);
  if (!roots.ok()) return roots.status();
  const runtime::TimedSection timed(&tracer_->metrics(), "RunCachedGraphOutputData");
  for (size_t i = 0; i < variant.output_bindings.size(); ++i) {
    const OutputBinding& binding = variant.output_bindings[i];
    TensorData* data = binding.argument ? DataOf(arguments[*binding.argument]) : binding.state;
    if (data == nullptr) continue;
    Materialize(data, (*roots)[i]);
    if (!binding.made) ++data->version;  // otherwise it stands for a new tensor
  }
  Tensors results;
  for (const Result& r : variant.results) {
    if (r.argument) {
      results.push_back(arguments[*r.argument]);
    } else if (r.same.defined()) {
      results.push_back(r.same);
    } else {
      const Shape shape = variant.program->result_shapes[*r.root];
      const std::shared_ptr<runtime::DeviceBuffer>& root = (*roots)[*r.root];
      const auto shows = [&](const Result& other) { return other.root == r.root; };
      if (std::count_if(variant.results.begin(), variant.results.end(), shows) > 1) root->read_only = true;
      results.push_back(device.NewTensor(root, shape));
    }
  }
  return results;
}

}  // namespace hlokit::lazy
