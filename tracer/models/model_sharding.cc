// SPDX-License-Identifier: Apache-2.0
#include "tracer/models/model_sharding.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/sharding/sharding.h"

namespace hlokit::lazy::models {
namespace {

constexpr std::string_view kAxisNames[] = {"data", "fsdp", "model", "sequence"};

// How a weight [outputs, inputs] is divided along `model`.
enum class Role : uint8_t { kNone, kOutputs, kInputs };

struct RoleRow {
  std::string_view module;  // the last component of the module's name
  Role role;
};
constexpr RoleRow kRoles[] = {
    {"q", Role::kOutputs},   {"k", Role::kOutputs},   {"v", Role::kOutputs},      {"qkv", Role::kOutputs},
    {"o", Role::kInputs},    {"proj", Role::kInputs}, {"gate", Role::kOutputs},   {"up", Role::kOutputs},
    {"down", Role::kInputs}, {"fc1", Role::kOutputs}, {"fc2", Role::kInputs},     {"wi", Role::kOutputs},
    {"wo", Role::kInputs},   {"tok", Role::kOutputs}, {"shared", Role::kOutputs}, {"lm", Role::kOutputs},
};

Role RoleOf(std::string_view module) {
  module = module.substr(module.rfind('.') + 1);
  const auto* const row =
      std::find_if(std::begin(kRoles), std::end(kRoles), [&](const RoleRow& r) { return r.module == module; });
  return row == std::end(kRoles) ? Role::kNone : row->role;
}

int64_t SizeOfAxes(const Mesh& mesh, const std::vector<int64_t>& axes) {
  int64_t size = 1;
  for (int64_t axis : axes) size *= mesh.shape[static_cast<size_t>(axis)];
  return size;
}

// Appends the axis to a dimension that it divides equally, or with at most one part in `least_part` of padding; 0: with
// none.
bool Divide(const Mesh& mesh, std::string_view axis, int64_t size, std::vector<int64_t>* axes, int64_t least_part = 0) {
  const std::optional<int64_t> number = mesh.AxisNamed(axis);
  if (!number) return false;
  axes->push_back(*number);
  const int64_t parts = SizeOfAxes(mesh, *axes);
  if (size > 0 && (size % parts == 0 || (least_part > 0 && size / least_part >= parts))) return true;
  axes->pop_back();
  return false;
}

// The sharding of arrays whose first dimension is the batch, and whose second has the tokens if `tokens`.
PartitionSpec ActivationSpec(const Mesh& mesh, Dims sizes, bool tokens) {
  PartitionSpec spec(sizes.size());
  if (sizes.empty()) return spec;
  Divide(mesh, "data", sizes[0], &spec[0]);
  Divide(mesh, "fsdp", sizes[0], &spec[0]);
  if (tokens && sizes.size() > 1) Divide(mesh, "sequence", sizes[1], &spec[1]);
  return spec;
}

}  // namespace

std::vector<std::string_view> MeshAxisNames() { return {std::begin(kAxisNames), std::end(kAxisNames)}; }

int64_t DeviceCount(const Mesh& mesh) {
  int64_t count = 1;
  for (int64_t size : mesh.shape) count *= size;
  return count;
}

absl::StatusOr<Mesh> ParseMesh(std::string_view text) {
  constexpr int64_t kMaxDevices = int64_t{1} << 17;
  Mesh mesh;
  int64_t devices = 1;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t colon = std::min(part.find(':'), part.size());
    const std::string_view name = part.substr(0, colon);
    int64_t size = 0;
    const auto [at, error] =
        std::from_chars(part.data() + std::min(colon + 1, part.size()), part.data() + part.size(), size);
    if (error != std::errc() || at != part.data() + part.size() || size < 1) {
      return absl::InvalidArgumentError(StrCat("expected AXIS:SIZE, as in data:4,model:2; found `", part, "`"));
    }
    if (std::find(std::begin(kAxisNames), std::end(kAxisNames), name) == std::end(kAxisNames)) {
      return absl::InvalidArgumentError(StrCat("there is no axis `", name, "`", DidYouMeanSuffix(name, MeshAxisNames()),
                                               ": the axes are data, fsdp, model and sequence"));
    }
    if (mesh.AxisNamed(name)) return absl::InvalidArgumentError(StrCat("axis `", name, "` is repeated"));
    if (size > kMaxDevices || devices * size > kMaxDevices) {
      return absl::InvalidArgumentError(StrCat("more than ", kMaxDevices, " devices"));
    }
    devices *= size;
    mesh.shape.push_back(size);
    mesh.axis_names.emplace_back(name);
  }
  return mesh;
}

PartitionSpec ParameterSpecOf(const Mesh& mesh, std::string_view name, Dims sizes) {
  PartitionSpec spec(sizes.size());
  if (sizes.empty()) return spec;
  const size_t dot = std::min(name.rfind('.'), name.size());
  const Role role = RoleOf(name.substr(0, dot));
  const bool weight = sizes.size() > 1;
  constexpr int64_t kMinPart = 64;
  if (role == Role::kOutputs) Divide(mesh, "model", sizes[0], &spec[0], kMinPart);
  if (role == Role::kInputs && weight) Divide(mesh, "model", sizes[1], &spec[1]);
  if (!weight) return spec;
  // The dimension that `model` leaves, else any; small vectors are replicated.
  const size_t other = role == Role::kOutputs ? 1 : 0;
  if (Divide(mesh, "fsdp", sizes[other], &spec[other])) return spec;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (Divide(mesh, "fsdp", sizes[d], &spec[d])) return spec;
  }
  return spec;
}

absl::Status ShardParameters(const Mesh& mesh, const nn::ParameterRegistry& registry) {
  for (const nn::NamedTensor& p : registry.state()) {
    const PartitionSpec spec = ParameterSpecOf(mesh, p.name, p.tensor.shape().dims());
    if (absl::Status s = MarkSharding(p.tensor, mesh, spec); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status ShardBatch(const Mesh& mesh, const Batch& batch) {
  Tensors arrays = batch.inputs;
  arrays.push_back(batch.labels);
  for (size_t i = 0; i < arrays.size(); ++i) {
    // The labels may be one of the inputs.
    if (!arrays[i].defined() || ShardingOf(arrays[i])) continue;
    const Dims sizes = arrays[i].shape().dims();
    const bool tokens = sizes.size() == 2;
    if (absl::Status s = MarkSharding(arrays[i], mesh, ActivationSpec(mesh, sizes, tokens)); !s.ok()) return s;
  }
  return absl::OkStatus();
}

void ShardActivations(const Mesh& mesh, Model* model) {
  model->OnStage([&mesh, last = model->stage_count() - 1](size_t stage, const Tensors& x) {
    const Tensor& hidden = x[0];
    if (stage == last || !hidden.defined() || hidden.dim() < 2 || ShardingOf(hidden)) return;
    const Dims sizes = hidden.shape().dims();
    const PartitionSpec spec = ActivationSpec(mesh, sizes, sizes.size() == 3);
    // What no axis divides is left to propagation.
    if (std::all_of(spec.begin(), spec.end(), [](const auto& axes) { return axes.empty(); })) return;
    const absl::Status marked = MarkSharding(hidden, mesh, spec);
    (void)marked;  // only data that are annotated already fail
  });
}

void SetPartitions(const Mesh& mesh, Module* module) {
  module->header().num_partitions = DeviceCount(mesh);
  const Instruction root = module->entry().root();
  if (root.has(Attr::kSharding) || DeviceCount(mesh) == 1) return;
  const auto leaf_of = [&](Instruction i) {
    const std::optional<uint32_t> own = i.payload(Attr::kSharding);
    return own && i.shape().IsArray() ? DecodeSharding(module->context(), ListId(*own)).leaf() : ShardingLeaf();
  };
  Sharding sharding = Sharding::Of(leaf_of(root));
  if (root.shape().IsTuple()) {
    if (root.opcode() != Opcode::kTuple) return;
    sharding = {true, {}};
    for (Instruction element : root.operands()) {
      sharding.runs.push_back({leaf_of(element), std::max<int64_t>(element.shape().leaf_count(), 1)});
    }
  }
  module->SetAttr(root.id(), Attr::kSharding, EncodeSharding(&module->context(), sharding).value);
}

}  // namespace hlokit::lazy::models
