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

// Live state at the start of a trace.
struct CapturedFunction::Entry {
  absl::flat_hash_map<const runtime::DeviceBuffer*, size_t> arguments;  // by value
  absl::flat_hash_map<const runtime::DeviceBuffer*, uint64_t> owners;   // ids of other tensors by value
  absl::flat_hash_set<uint64_t> live;                                   // ids, without arguments
  uint64_t first_new = 0;
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
    StrAppend(&out, "  traced ", times, times == 1 ? " time: " : " times: ", why, "\n");
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
    results = Trace(device, arguments, guard);
  }
  device.NextStepSeed();
  device.ClearGraphIfUnused();
  return results;
}

absl::StatusOr<Tensors> CapturedFunction::Trace(DeviceState& device, const Tensors& arguments, const Guard& guard) {
  Entry entry;
  absl::flat_hash_map<const TensorData*, size_t> argument_of;
  for (size_t i = arguments.size(); i-- > 0;) {
    argument_of[DataOf(arguments[i])] = i;
    entry.arguments[DataOf(arguments[i])->buffer.get()] = i;
  }
  for (TensorData* data : device.LiveTensors()) {
    if (argument_of.contains(data) || data->buffer == nullptr || data->refs() == HeldByCacheEntries(data)) continue;
    entry.owners.emplace(data->buffer.get(), data->id);
    entry.live.insert(data->id);
  }
  entry.first_new = device.next_id();

  std::vector<ExecutionRecord> executions;
  absl::StatusOr<Tensors> traced = Tensors();
  {
    const Replaced<std::vector<ExecutionRecord>*> listener(&device.listener, &executions);
    const Replaced<bool> forbid(&device.forbid_execution, options_.full_graph);
    const ReplacedSourceLocation program;
    traced = function_(arguments);
  }
  if (absl::Status s = tracer_->status(); !s.ok()) return s;
  Tensors results = *std::move(traced);
  for (const Tensor& t : results) {
    if (!t.defined()) return absl::InvalidArgumentError("a captured function gave an undefined tensor");
    RefreshView(t);
  }
  std::vector<bool> keeps_history;
  for (const Tensor& t : results) keeps_history.push_back(options_.differentiable && CanBeDifferentiated(t));
  tracer_->metrics().Add("DynamoExtractCompiledGraph");
  device.SetCollectiveToken(Tensor());  // not a result
  const std::vector<TensorData*> pending = PendingTensors(device);
  if (pending.empty()) {
    RecordReason("it computes nothing");
    return results;
  }

  const SubgraphOptions slice_options{true, tracer_->options().donate};
  PendingSubgraph slice = CollectSubgraph(device, pending, slice_options);
  Candidate found;
  found.guard = guard;
  std::string why = executions.empty() ? "" : StrCat(ToString(executions[0].cause), " of ", executions[0].root);
  if (!why.empty()) {
    const std::string place = LocationOf(executions[0].frames);
    why = StrCat("it runs ", static_cast<int64_t>(executions.size()) + 1, " graphs, the first for the ", why,
                 place.empty() ? "" : StrCat(" at ", place));
  }
  if (why.empty() && std::find(keeps_history.begin(), keeps_history.end(), true) != keeps_history.end()) {
    why = "a result requires a gradient, and the program differentiates outside of it";
  }
  absl::flat_hash_map<uint64_t, TensorData*> live;
  for (TensorData* data : device.LiveTensors()) live.emplace(data->id, data);
  {
    const runtime::TimedSection timed(&tracer_->metrics(), "RunCachedGraphInputData");
    const std::shared_ptr<runtime::DeviceBuffer> seed = device.UsedSeedBuffer();
    for (size_t i = 0; i < slice.inputs.size(); ++i) {
      const std::shared_ptr<runtime::DeviceBuffer>& input = slice.inputs[i];
      Source source{Source::Kind::kNumber, 0, nullptr, nullptr, ""};
      if (const auto a = entry.arguments.find(input.get()); a != entry.arguments.end()) {
        source.kind = Source::Kind::kArgument;
        source.argument = a->second;
      } else if (input == seed) {
        source.kind = Source::Kind::kSeed;
      } else if (const auto o = entry.owners.find(input.get()); o != entry.owners.end() && !input->read_only) {
        source.kind = Source::Kind::kState;
        const auto owner = live.find(o->second);
        if (owner != live.end()) {
          source.state = owner->second;
          if (why.empty() && source.state->follows_base && !options_.views_are_current) {
            why = StrCat("it reads a view that was made outside of it, with ", UseOf(device, slice, i));
          }
        } else if (why.empty()) {
          why = StrCat("it replaces a tensor that it reads, with ", UseOf(device, slice, i));
        }
      } else {
        source.number = input;
        source.use = UseOf(device, slice, i);
      }
      found.sources.push_back(std::move(source));
    }
  }
  // Every replay needs the numbers again.
  std::erase_if(slice.donated,
                [&](int64_t i) { return found.sources[static_cast<size_t>(i)].kind == Source::Kind::kNumber; });

  // Targets of results. Tensors that were created and are not results replace the same number of destroyed ones.
  CacheEntry variant;
  variant.guard = guard;
  absl::flat_hash_set<const TensorData*> is_result;
  for (const Tensor& t : results) is_result.insert(DataOf(t));
  absl::flat_hash_map<const TensorData*, size_t> root_of;
  for (size_t i = 0; i < pending.size(); ++i) {
    TensorData* data = pending[i];
    root_of[data] = i;
    OutputBinding sink;
    if (const auto a = argument_of.find(data); a != argument_of.end()) {
      sink.argument = a->second;
    } else if (data->id < entry.first_new) {
      sink.state = data;
    } else if (!is_result.contains(data)) {
      sink.state = data;
      sink.made = true;
      variant.made.push_back(data);
    }
    variant.output_bindings.push_back(sink);
  }
  // Another tensor in the argument's position may be a view of another base.
  for (const Tensor& t : arguments) {
    for (const TensorImpl* at = t.impl(); at->view != nullptr && why.empty();) {
      at = at->view->parent.impl();
      if (at->data.get() != DataOf(t) && root_of.contains(at->data.get())) {
        why = "it writes to what an argument is a view of";
      }
    }
  }
  const TensorData* captured_upload = nullptr;
  for (const auto& [id, data] : live) {
    if (id >= entry.first_new && data->buffer != nullptr && !is_result.contains(data) &&
        data->buffer != device.UsedSeedBuffer()) {
      captured_upload = data;
    }
  }
  size_t released = 0;
  for (uint64_t id : entry.live) {
    const auto it = live.find(id);
    if (it == live.end() || it->second->refs() == HeldByCacheEntries(it->second)) ++released;
  }
  if (why.empty() && captured_upload != nullptr) why = "it keeps a tensor that it uploads";
  if (why.empty() && variant.made.size() != released) {
    why = variant.made.size() > released ? "it makes tensors that stay, as the first step of an optimizer does"
                                         : "it drops tensors and makes none in their place";
  }
  for (const Tensor& t : results) {
    Result result;
    if (const auto r = root_of.find(DataOf(t)); r != root_of.end()) result.root = r->second;
    if (const auto a = argument_of.find(DataOf(t)); a != argument_of.end()) {
      result.argument = a->second;
    } else if (!result.root || DataOf(t)->id < entry.first_new) {
      result.same = t;
    }
    variant.results.push_back(std::move(result));
  }

  absl::StatusOr<LaunchResult> launched = Launch(device, slice, slice_options, SyncReason::kCapture);
  if (!launched.ok()) return launched.status();
  {
    const runtime::TimedSection timed(&tracer_->metrics(), "RunCachedGraphOutputData");
    for (size_t i = 0; i < pending.size(); ++i) Materialize(pending[i], std::move(launched->results[i]));
    for (size_t i = 0; i < results.size(); ++i) {
      if (keeps_history[i]) continue;
      if (!variant.results[i].argument && !variant.results[i].same.defined()) results[i] = results[i].Detach();
    }
  }
  found.program = launched->program;

  const auto candidate =
      std::find_if(candidates_.begin(), candidates_.end(), [&](const Candidate& c) { return c.guard == guard; });
  const bool has_numbers = std::any_of(found.sources.begin(), found.sources.end(),
                                       [](const Source& s) { return s.kind == Source::Kind::kNumber; });
  if (why.empty() && has_numbers) {
    if (candidate == candidates_.end() || candidate->program != found.program) {
      why = "it holds numbers of the host, and a second trace has to give the same";
    } else {
      for (size_t i = 0; i < found.sources.size() && why.empty(); ++i) {
        const Source& now = found.sources[i];
        const Source& before = candidate->sources[i];
        if (now.kind != before.kind || (now.number != nullptr && !SameValue(*now.number, *before.number))) {
          why = StrCat("a number changes from call to call, that of ", now.use);
        }
      }
    }
  }
  if (candidate != candidates_.end()) candidates_.erase(candidate);
  // Keeps numbers only, for a later trace to be compared with: a reference to a tensor would keep it alive.
  if (has_numbers) {
    if (candidates_.size() >= kMaxCandidates) candidates_.erase(candidates_.begin());
    candidates_.push_back(found);
    for (Source& s : candidates_.back().sources) s.state = nullptr;
  }
  if (why.empty()) {
    variant.program = std::move(found.program);
    variant.sources = std::move(found.sources);
    absl::flat_hash_set<const TensorData*> kept;
    const auto keep = [&](TensorData* data) {
      if (data != nullptr && kept.insert(data).second) variant.state.emplace_back(data);
    };
    for (const Source& s : variant.sources) keep(s.state);
    for (const OutputBinding& s : variant.output_bindings) keep(s.state);
    if (cache_entries_.size() >= kMaxCacheEntries) cache_entries_.erase(cache_entries_.begin());
    cache_entries_.push_back(std::move(variant));
    replayable_ = true;
    RecordReason("its graph was not known");
    return results;
  }
  RecordReason(std::move(why));
  return results;
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
    const OutputBinding& sink = variant.output_bindings[i];
    TensorData* data = sink.argument ? DataOf(arguments[*sink.argument]) : sink.state;
    if (data == nullptr) continue;
    Materialize(data, (*roots)[i]);
    if (!sink.made) ++data->version;  // otherwise it stands for a new tensor
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
