#include "parser/device_list_parser.h"

#include <string>

#include "ir/str_cat.h"

namespace hlokit {
namespace {

// `[16]`, `[2,8]T(1,0)`, as it stands.
bool ParseRawIotaOrder(Reader& in, IotaOrder* order) {
  if (!ParseNumbers(in, '[', ']', "iota dimensions", &order->reshape)) return false;
  if (order->reshape.size() == 1 && !in.PeekWord("T")) {
    order->perm = {0};
    return true;
  }
  if (!in.EatWord("T")) {
    return in.ErrorHere(DiagnosticKind::kUnexpectedToken,
                        StrCat("expected 'T(' and the transposition of the iota, found ", in.DescribeNext()));
  }
  return ParseNumbers(in, '(', ')', "the transposition", &order->perm);
}

// An axis name: in quotes, or bare as older versions printed it.
bool ParseAxisName(Reader& in, std::string* scratch, std::string_view* name) {
  const char next = in.Peek();
  if (next == '\'' || next == '"') {
    bool stable;
    return in.String(name, scratch, &stable);
  }
  *name = in.BareName();
  if (!name->empty()) return true;
  return in.ErrorHere(DiagnosticKind::kUnexpectedToken,
                      StrCat("expected the name of an axis, found ", in.DescribeNext()));
}

}  // namespace

bool ParseNumbers(Reader& in, char open, char close, std::string_view what, std::vector<int64_t>* values) {
  if (!in.Expect(open, StrCat("before ", what))) return false;
  do {
    int64_t value;
    if (!in.Int(&value)) return false;
    values->push_back(value);
  } while (in.Eat(','));
  return in.Expect(close, StrCat("after ", what));
}

bool ParseIotaOrder(Reader& in, DiagnosticKind kind, IotaOrder* order) {
  const uint32_t start = in.Offset();
  if (!ParseRawIotaOrder(in, order)) return false;
  if (!order->Valid()) {
    return in.Error(
        kind, {start, in.Here() - start},
        "iota dimensions must be positive, with a product below 2^63, and their transposition a permutation");
  }
  order->Canonicalize();
  return true;
}

bool AtMesh(Reader& in) { return in.PeekWord("mesh") || in.PeekWord("maximal_mesh"); }

bool ParseMesh(Reader& in, Context* context, DiagnosticKind kind, Mesh* mesh) {
  if (in.EatWord("maximal_mesh")) {
    int64_t device;
    if (!in.Expect('[', "after maximal_mesh")) return false;
    if (!in.EatWord("device_id")) {
      return in.ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected device_id=, found ", in.DescribeNext()));
    }
    if (!in.Expect('=', "after device_id") || !in.Int(&device) || !in.Expect(']', "after the device of a mesh")) {
      return false;
    }
    mesh->devices.devices = {device};
    return true;
  }
  if (!in.EatWord("mesh")) {
    return in.ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected a mesh, found ", in.DescribeNext()));
  }
  if (!in.Expect('[', "after mesh")) return false;
  std::string scratch;
  if (in.Peek() != ']') {
    do {
      std::string_view name;
      int64_t size;
      if (!ParseAxisName(in, &scratch, &name) || !in.Expect('=', "after an axis name") || !in.Int(&size)) return false;
      mesh->names.push_back(context->strings.Intern(name));
      mesh->devices.dims.push_back(size);
    } while (in.Eat(','));
  }
  if (!in.Expect(']', "after the axes of a mesh")) return false;
  // The comma may belong to what follows the mesh.
  const char* before_comma = in.cursor();
  if (!in.Eat(',') || !in.EatWord("device_ids")) {
    in.set_cursor(before_comma);
    if (const std::optional<int64_t> count = DeviceCount(mesh->devices.dims); count && !mesh->names.empty()) {
      mesh->devices.iota = {{*count}, {0}};
    }
    return true;
  }
  if (!in.Expect('=', "after device_ids") || !in.Expect('(', "before device ids")) return false;
  if (in.Peek() == '[') {
    if (!ParseIotaOrder(in, kind, &mesh->devices.iota)) return false;
  } else {
    do {
      int64_t device;
      if (!in.Int(&device)) return false;
      mesh->devices.devices.push_back(device);
    } while (in.Eat(','));
  }
  return in.Expect(')', "after device ids");
}

bool ParseAxis(Reader& in, const Context& context, DiagnosticKind kind, const Mesh& mesh, AxisRef* axis) {
  const SourceRange range = in.Next();
  if (in.AtInt()) {
    if (!in.Int(&axis->axis)) return false;
    if (axis->axis < 0 || axis->axis >= mesh.rank()) {
      return in.Error(kind, range, StrCat("the mesh has ", mesh.rank(), " axes, none is number ", axis->axis));
    }
  } else {
    std::string scratch;
    std::string_view name;
    if (!ParseAxisName(in, &scratch, &name)) return false;
    const StringId id = context.strings.Find(name);
    axis->axis = -1;
    for (size_t i = 0; i < mesh.names.size() && axis->axis < 0; ++i) {
      if (id.valid() && mesh.names[i] == id) axis->axis = static_cast<int64_t>(i);
    }
    if (axis->axis < 0) {
      std::vector<std::string_view> names;
      for (StringId known : mesh.names) names.push_back(context.str(known));
      const std::string_view nearest = Nearest(name, names);
      return in.Error(kind, range, StrCat("the mesh has no axis '", name, "'"),
                      nearest.empty() ? "" : StrCat("did you mean '", nearest, "'?"));
    }
  }
  if (!in.Eat(':')) return true;
  const uint32_t start = in.Offset();
  if (!in.Expect('(', "before the size of what stands before a part of an axis") || !in.Int(&axis->pre_size) ||
      !in.Expect(')', "after the size of what stands before a part of an axis") || !in.Int(&axis->size)) {
    return false;
  }
  // A size of zero would read as the whole axis; the rest is for AxisUses to say.
  if (axis->pre_size >= 1 && axis->size >= 2) return true;
  return in.Error(kind, {start, in.Here() - start},
                  "a part of an axis has a size of at least 2 and comes after at least 1");
}

bool ParseAxes(Reader& in, const Context& context, DiagnosticKind kind, const Mesh& mesh, std::vector<AxisRef>* axes) {
  if (!in.Expect('{', "before axes")) return false;
  if (in.Eat('}')) return true;
  do {
    AxisRef axis;
    if (!ParseAxis(in, context, kind, mesh, &axis)) return false;
    axes->push_back(axis);
  } while (in.Eat(','));
  return in.Expect('}', "after axes");
}

}  // namespace hlokit
