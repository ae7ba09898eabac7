// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/device_state.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "ir/core/str_cat.h"
#include "tracer/graph/encoded_args.h"
#include "tracer/graph/grad_function.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/lowering/lowering_context.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

constexpr size_t kScalarCacheSize = 128;
constexpr size_t kMinValuesToCompact = 4096;

// Returns the bits of the double or integer.
uint64_t BitsOfNumber(Scalar value) {
  return value.is_float() ? std::bit_cast<uint64_t>(value.ToDouble()) : static_cast<uint64_t>(value.ToInt());
}

// Of a pending node with its tensor, its part of the key and its lowering.
constexpr int64_t kBytesPerNode = 1024;

// Returns the number of pending nodes at which recording is an error.
size_t MaxNodes(const TracerOptions& options) {
  constexpr int64_t kMinNodes = 10000;  // a limit on bytes of values leaves so many
  const int64_t by_bytes = std::max(options.client.evaluator.limits.max_bytes / kBytesPerNode, kMinNodes);
  return static_cast<size_t>(std::clamp<int64_t>(options.max_pending_nodes, 0, by_bytes));
}

}  // namespace

DeviceState::DeviceState(Tracer* tracer, runtime::Device* device)
    : tracer_(tracer),
      device_(device),
      context_(std::make_shared<Context>()),
      no_attrs_(context_->lists.Intern({})),
      warn_at_nodes_(static_cast<size_t>(tracer->options().warn_pending_nodes)),
      max_nodes_(MaxNodes(tracer->options())),
      cache_(static_cast<size_t>(tracer->options().cache_entries)) {}

DeviceState::~DeviceState() {
  seed_tensor_ = Tensor();
  collective_token_ = Tensor();
}

std::string DeviceState::name() const { return device_->name(); }

Shape DeviceState::ArrayShape(ElementType type, absl::Span<const int64_t> dims) {
  DeviceLock lock(mutex_);
  return context_->shapes.Array(type, dims);
}

absl::StatusOr<Shape> DeviceState::InferNode(Op op, ListId attrs, absl::Span<const NodeOutput> operands) {
  std::vector<Shape> shapes;
  for (const NodeOutput& operand : operands) shapes.push_back(ShapeOf(operand));
  absl::StatusOr<std::vector<Shape>> results = InferShapesByLowering(op, context_->list(attrs), shapes, context_);
  if (!results.ok()) return results.status();
  if (results->size() == 1) return (*results)[0];
  return context_->shapes.Tuple(*results);
}

NodeId DeviceState::AddNode(Op op, ListId attrs, absl::Span<const NodeOutput> operands) {
  ++runtime::host_work.nodes;
  const size_t size = operands.size() + 1;
  if (key_.size() < size) key_.resize(size);
  uint64_t* const key = key_.data();
  key[0] = uint64_t{attrs.value} << 32 | static_cast<uint64_t>(op);
  uint64_t hash = MixHash(size, key[0]);
  for (size_t i = 1; i < size; ++i) {
    const NodeOutput& operand = operands[i - 1];
    key[i] = uint64_t{graph_.node(operand.node).shape.value} << 32 | operand.output;
    hash = MixHash(hash, key[i]);
  }
  const auto same = [&](uint32_t id) {
    const ShapeEntry& entry = shape_entries_[id];
    return entry.size == size && std::equal(key, key + size, &shape_words_[entry.begin]);
  };
  uint32_t found = shape_index_.Find(hash, same);
  if (found == 0xffffffffu) {
    absl::StatusOr<Shape> shape = InferNode(op, attrs, operands);
    if (!shape.ok()) {
      tracer_->SetError(shape.status());
      return kNoNode;
    }
    found = shape_index_.FindOrInsert(
        hash, [](uint32_t) { return false; },
        [&] {
          shape_entries_.push_back(
              {static_cast<uint32_t>(shape_words_.size()), static_cast<uint32_t>(size), shape->id()});
          shape_words_.insert(shape_words_.end(), key, key + size);
          return static_cast<uint32_t>(shape_entries_.size() - 1);
        });
  }
  NodeRecord node{op};
  node.attrs = attrs;
  node.shape = shape_entries_[found].shape;
  SetSource(&node);
  if (graph_.size() >= warn_at_nodes_) WarnOfPendingNodes();
  if (absl::Status status = CheckLimits(); !status.ok()) {
    tracer_->SetError(std::move(status));
    return kNoNode;
  }
  const NodeId id = graph_.Add(node, operands);
  if (dynamic_shape_detector != nullptr) {
    if (absl::Status s = dynamic_shape_detector->Add(*this, id); !s.ok()) tracer_->SetError(std::move(s));
  }
  return id;
}

void DeviceState::SetSource(NodeRecord* node) {
  if (!tracer_->options().debug && !tracer_->options().explain_recompiles) return;
  if (!CurrentScope().empty()) node->scope = context_->strings.Intern(CurrentScope()).value;
  node->frame = CurrentFrameIndex();
}

uint32_t DeviceState::CurrentFrameIndex() {
  if (const SourceFrame* const frame = CurrentFrame()) {
    if (frames_.empty() || frames_.back() != *frame) frames_.push_back(*frame);
    return static_cast<uint32_t>(frames_.size());
  }
  const std::source_location& location = call_site.location;
  if (location.line() == 0) return 0;
  const auto [known, is_new] =
      location_frames_.try_emplace({location.file_name(), location.line()}, static_cast<uint32_t>(frames_.size()) + 1);
  if (is_new) frames_.push_back(FrameOf(location));
  return known->second;
}

absl::Status DeviceState::CheckLimits() const {
  constexpr size_t kNodesPerClock = 256;
  if (graph_.size() < max_nodes_) {
    return graph_.size() % kNodesPerClock == 0 ? tracer_->CheckTime() : absl::OkStatus();
  }
  const TracerOptions& options = tracer_->options();
  const bool is_count = static_cast<int64_t>(max_nodes_) == options.max_pending_nodes;
  return absl::ResourceExhaustedError(
      StrCat(graph_.size(), " nodes are pending on ", name(), " and no step was marked since step ", steps,
             is_count ? StrCat(": the limit is ", options.max_pending_nodes, " nodes (--max-nodes)")
                      : StrCat(", about ", graph_.size() * kBytesPerNode, " bytes; ",
                               options.client.evaluator.limits.BytesText())));
}

void DeviceState::WarnOfPendingNodes() {
  tracer_->Warn(StrCat("warning: ", graph_.size(), " nodes are pending on ", name(),
                       " and no step was marked since step ", steps,
                       ": memory grows with every op, and the program with it; mark steps"));
  warn_at_nodes_ = graph_.size() * 2;
}

Shape DeviceState::ShapeOf(NodeOutput ref) {
  const Shape shape = context_->shape(graph_.node(ref.node).shape);
  return shape.IsTuple() ? shape.element(ref.output) : shape;
}

NodeId DeviceState::AddDeviceData(std::shared_ptr<runtime::DeviceBuffer> buffer, Shape shape, ListId sharding) {
  NodeRecord node{Op::device_data};
  node.attrs = sharding.valid() ? sharding : no_attrs_;
  node.shape = shape.id();
  return graph_.AddLeaf(node, std::move(buffer));
}

NodeOutput DeviceState::ConstantNode(Scalar value, ElementType type) {
  NodeRecord node{Op::constant};
  SetSource(&node);
  const uint64_t bits = BitsOfNumber(value);
  for (const RecentConstant& recent : recent_constants_) {
    if (recent.bits != bits || recent.type != type || recent.kind != value.kind()) continue;
    node.attrs = recent.attrs;
    node.shape = recent.shape;
    return {graph_.Add(node, {}), 0};
  }
  ArgEncoder encoder;
  encoder.Number(IsFloat(type) ? Scalar(value.ToDouble()) : Scalar(value.ToInt()));
  node.attrs = context_->lists.Intern(encoder.words());
  node.shape = context_->shapes.Scalar(type).id();
  recent_constants_[next_constant_++ % recent_constants_.size()] = {value.kind(), type, bits, node.attrs, node.shape};
  return {graph_.Add(node, {}), 0};
}

NodeOutput DeviceState::ScalarNode(Scalar value, ElementType type) {
  const double d = value.ToDouble();
  const TracerOptions& options = tracer_->options();
  if (options.all_scalars_special || (!options.no_special_scalars && (d == 0 || d == 1 || d == -1))) {
    return ConstantNode(value, type);
  }
  const uint64_t bits = BitsOfNumber(value);
  for (const RecentScalar& recent : recent_scalars_) {
    if (recent.bits != bits || recent.type != type || recent.kind != value.kind()) continue;
    if (recent.place != scalars_.begin()) scalars_.splice(scalars_.begin(), scalars_, recent.place);
    return {AddDeviceData(recent.place->buffer, recent.place->shape), 0};
  }
  ScalarKey key{type, 0};
  std::byte bytes[16] = {};
  StoreScalar(type, value, bytes);
  std::memcpy(&key.bits, bytes, sizeof(key.bits));
  if (const auto it = scalar_index_.find(key); it != scalar_index_.end()) {
    scalars_.splice(scalars_.begin(), scalars_, it->second);
  } else {
    tracer_->metrics().Add("DeviceDataCacheMiss");
    const Shape shape = context_->shapes.Scalar(type);
    scalars_.push_front(
        {key, tracer_->client().TransferToDevice(device_, FilledLiteral(shape, value), context_), shape});
    scalars_.front().buffer->read_only = true;
    scalar_index_[key] = scalars_.begin();
    if (scalars_.size() > kScalarCacheSize) {
      recent_scalars_ = {};
      scalar_index_.erase(scalars_.back().key);
      scalars_.pop_back();
    }
  }
  recent_scalars_[next_scalar_++ % recent_scalars_.size()] = {value.kind(), type, bits, scalars_.begin()};
  return {AddDeviceData(scalars_.front().buffer, scalars_.front().shape), 0};
}

NodeOutput DeviceState::ValueOf(TensorData* data) {
  if (data->ir.valid() && data->ir_epoch == graph_.epoch()) return data->ir;
  // On the device, and not yet used in this graph.
  data->ir = {AddDeviceData(data->buffer, data->shape, data->sharding), 0};
  data->ir_epoch = graph_.epoch();
  return data->ir;
}

Tensor DeviceState::NewTensor(NodeOutput ref, Shape shape) {
  Ref<TensorData> data(new TensorData(this, shape));
  data->ir = ref;
  data->ir_epoch = graph_.epoch();
  return Tensor(new TensorImpl(std::move(data)));
}

Tensor DeviceState::NewTensor(std::shared_ptr<runtime::DeviceBuffer> buffer, Shape shape) {
  Ref<TensorData> data(new TensorData(this, shape));
  data->buffer = std::move(buffer);
  return Tensor(new TensorImpl(std::move(data)));
}

void DeviceState::BeginSeed() {
  if (running_seed_epoch_ == graph_.epoch() && running_seed_.valid()) return;
  SeedBuffer();
  running_seed_ = ValueOf(seed_tensor_.impl()->data.get());
  running_seed_epoch_ = graph_.epoch();
}

Tensor DeviceState::RunningSeed() {
  BeginSeed();
  return NewTensor(running_seed_);
}

void DeviceState::SetRunningSeed(const Tensor& seed) {
  BeginSeed();
  running_seed_ = ValueOf(seed.impl()->data.get());
}

NodeOutput DeviceState::NextSeed() {
  // The first draw uses the seed, each further one of the step b + k * seed.
  constexpr int64_t kMultiplier = 214013, kIncrement = 2531011;
  BeginSeed();
  const NodeOutput seed = running_seed_;
  ArgEncoder two;
  two.Operand();
  two.Operand();
  ArgEncoder three;
  for (int i = 0; i < 3; ++i) three.Operand();
  const ElementType s64 = ElementType::kS64;
  const NodeId product =
      AddNode(Op::mul_Tensor, context_->lists.Intern(two.words()), {ConstantNode(kMultiplier, s64), seed});
  if (product == kNoNode) return seed;  // an error has been set
  const NodeId sum = AddNode(Op::add_Tensor, context_->lists.Intern(three.words()),
                             {ConstantNode(kIncrement, s64), NodeOutput{product, 0}, ConstantNode(1, s64)});
  if (sum != kNoNode) running_seed_ = {sum, 0};
  return seed;
}

const std::shared_ptr<runtime::DeviceBuffer>& DeviceState::SeedBuffer() {
  if (!seed_tensor_.defined()) {
    const Shape shape = context_->shapes.Scalar(ElementType::kS64);
    seed_tensor_ = NewTensor(tracer_->client().TransferToDevice(device_, FilledLiteral(shape, seed_), context_), shape);
  }
  return seed_tensor_.impl()->data->buffer;
}

std::shared_ptr<runtime::DeviceBuffer> DeviceState::UsedSeedBuffer() const {
  return seed_tensor_.defined() ? seed_tensor_.impl()->data->buffer : nullptr;
}

void DeviceState::SetSeed(int64_t seed) {
  seed_ = seed;
  seed_tensor_ = Tensor();
  running_seed_ = NodeOutput();
}

void DeviceState::NextStepSeed() { SetSeed(static_cast<int64_t>(1012031u + static_cast<uint64_t>(seed_) * 7012063u)); }

Tensor DeviceState::CollectiveToken() {
  if (!collective_token_.defined()) {
    const Shape shape = context_->shapes.Scalar(ElementType::kF32);
    collective_token_ =
        NewTensor(tracer_->client().TransferToDevice(device_, FilledLiteral(shape, 0), context_), shape);
  }
  return collective_token_;
}

void DeviceState::Register(TensorData* data) {
  DeviceLock lock(mutex_);
  data->id = next_id_++;
  if (live_.size() >= kMinValuesToCompact && live_.size() >= 2 * static_cast<size_t>(live_count())) Compact();
  data->place = static_cast<uint32_t>(live_.size());
  live_.push_back(data);
  live_count_.store(live_count() + 1, std::memory_order_relaxed);
  created_count_.store(created_count() + 1, std::memory_order_relaxed);
}

void DeviceState::Unregister(TensorData* data) {
  DeviceLock lock(mutex_);
  live_[data->place] = nullptr;
  while (!live_.empty() && live_.back() == nullptr) live_.pop_back();
  live_count_.store(live_count() - 1, std::memory_order_relaxed);
  if (data->buffer == nullptr) return;
  dropped_bytes_ += static_cast<size_t>(LiteralBytes(data->shape));
  dropped_.push_back(std::move(data->buffer));
  if (dropped_bytes_ > runtime::DeferredDeallocator::kMaxPendingBytes) TakeDeadBuffers();
}

std::vector<std::shared_ptr<runtime::DeviceBuffer>> DeviceState::TakeDeadBuffers() {
  dropped_bytes_ = 0;
  std::vector<std::shared_ptr<runtime::DeviceBuffer>> dropped;
  dropped.swap(dropped_);
  dropped_.reserve(dropped.size());
  return dropped;
}

void DeviceState::MarkNewest(TensorData* data) {
  DeviceLock lock(mutex_);
  Unregister(data);
  Register(data);
}

std::vector<TensorData*> DeviceState::LiveTensors() {
  Compact();
  return live_;
}

void DeviceState::Compact() {
  // Values before the first gap do not move.
  const auto gap = std::find(live_.begin(), live_.end(), nullptr);
  const auto first = static_cast<size_t>(gap - live_.begin());
  live_.erase(std::remove(gap, live_.end(), nullptr), live_.end());
  for (size_t i = first; i < live_.size(); ++i) live_[i]->place = static_cast<uint32_t>(i);
}

void DeviceState::ClearGraphIfUnused() {
  for (const TensorData* data : live_) {
    if (data != nullptr && data->buffer == nullptr && data->ir_epoch == graph_.epoch()) return;
  }
  graph_.Clear();
  frames_.clear();
  location_frames_.clear();
  warn_at_nodes_ = static_cast<size_t>(tracer_->options().warn_pending_nodes);
}

}  // namespace hlokit::lazy
