// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/device_list_parser.h"

#include <string>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"

namespace hlokit {
namespace {

// Parses `[16]`, `[2,8]T(1,0)` verbatim.
bool ParseRawIotaTileAssignment(TextCursor& in, IotaTileAssignment* order) {
  if (!ParseNumbers(in, '[', ']', "iota dimensions", &order->reshape)) return false;
  if (order->reshape.size() == 1 && !in.PeekWord("T")) {
    order->perm = {0};
    return true;
  }
  if (!in.TryConsumeWord("T")) {
    return in.ErrorHere(DiagnosticKind::kUnexpectedToken,
                        StrCat("expected `T(` and the transposition of the iota, found ", in.DescribeNext()));
  }
  return ParseNumbers(in, '(', ')', "the transposition", &order->perm);
}

// Parses an axis name: in quotes, or bare as older versions printed it.
bool ParseAxisName(TextCursor& in, std::string* scratch, std::string_view* name) {
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

bool ParseNumbers(TextCursor& in, char open, char close, std::string_view what, std::vector<int64_t>* values) {
  if (!in.Expect(open, StrCat("before ", what))) return false;
  do {
    int64_t value;
    if (!in.Int(&value)) return false;
    values->push_back(value);
  } while (in.TryConsume(','));
  return in.Expect(close, StrCat("after ", what));
}

bool ParseIotaTileAssignment(TextCursor& in, DiagnosticKind kind, IotaTileAssignment* order) {
  const uint32_t start = in.Offset();
  if (!ParseRawIotaTileAssignment(in, order)) return false;
  if (!order->Valid()) {
    return in.Error(
        kind, {start, in.Here() - start},
        "iota dimensions must be positive, with a product below 2^63, and their transposition a permutation");
  }
  order->Canonicalize();
  return true;
}

bool AtMesh(TextCursor& in) {
  return in.PeekWord("mesh") || in.PeekWord("single_device") || in.PeekWord("maximal_mesh");
}

bool ParseMesh(TextCursor& in, Context* context, DiagnosticKind kind, Mesh* mesh) {
  if (in.TryConsumeWord("single_device") || in.TryConsumeWord("maximal_mesh")) {
    int64_t device;
    if (!in.Expect('[', "before the device of a mesh")) return false;
    if (!in.TryConsumeWord("device_id")) {
      return in.ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected device_id=, found ", in.DescribeNext()));
    }
    if (!in.Expect('=', "after device_id") || !in.Int(&device) || !in.Expect(']', "after the device of a mesh")) {
      return false;
    }
    mesh->devices.devices = {device};
    return true;
  }
  if (!in.TryConsumeWord("mesh")) {
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
    } while (in.TryConsume(','));
  }
  if (!in.Expect(']', "after the axes of a mesh")) return false;
  // The comma may belong to the text after the mesh.
  const char* before_comma = in.cursor();
  if (!in.TryConsume(',') || !in.TryConsumeWord("device_ids")) {
    in.set_cursor(before_comma);
    if (const std::optional<int64_t> count = DeviceCount(mesh->devices.dims)) {
      mesh->devices.iota = {{*count}, {0}};
    }
    return true;
  }
  if (!in.Expect('=', "after device_ids") || !in.Expect('(', "before device ids")) return false;
  if (in.Peek() == '[') {
    if (!ParseIotaTileAssignment(in, kind, &mesh->devices.iota)) return false;
  } else {
    do {
      int64_t device;
      if (!in.Int(&device)) return false;
      mesh->devices.devices.push_back(device);
    } while (in.TryConsume(','));
  }
  return in.Expect(')', "after device ids");
}

AxisReader::AxisReader(TextCursor& in, const Context& context, DiagnosticKind kind, const Mesh& mesh)
    : in_(in), context_(context), kind_(kind), mesh_(mesh) {
  for (size_t i = 0; i < mesh.names.size(); ++i) by_name_.emplace(mesh.names[i].value, static_cast<int64_t>(i));
}

bool AxisReader::Name(int64_t* axis) {
  const SourceRange range = in_.Next();
  if (in_.AtInt()) {
    if (!in_.Int(axis)) return false;
    if (*axis >= 0 && *axis < mesh_.rank()) return true;
    return in_.Error(kind_, range,
                     StrCat("axis number ", *axis, " is out of range: the mesh has ", mesh_.rank(), " axes"));
  }
  std::string_view name;
  if (!ParseAxisName(in_, &scratch_, &name)) return false;
  const auto known = by_name_.find(context_.strings.Find(name).value);
  if (known != by_name_.end()) {
    *axis = known->second;
    return true;
  }
  std::vector<std::string_view> names;
  for (StringId id : mesh_.names) names.push_back(context_.str(id));
  return in_.Error(kind_, range, StrCat("unknown mesh axis `", name, "`"), DidYouMean(name, names));
}

bool AxisReader::One(AxisRef* axis) {
  if (!Name(&axis->axis)) return false;
  if (!in_.TryConsume(':')) return true;
  const uint32_t start = in_.Offset();
  if (!in_.Expect('(', "before the pre-size of a sub-axis") || !in_.Int(&axis->pre_size) ||
      !in_.Expect(')', "after the pre-size of a sub-axis") || !in_.Int(&axis->size)) {
    return false;
  }
  // A size of zero would mean the whole axis; AxisUses checks the rest.
  if (axis->pre_size >= 1 && axis->size >= 2) return true;
  return in_.Error(kind_, {start, in_.Here() - start},
                   "a sub-axis must have a pre-size of at least 1 and a size of at least 2");
}

bool AxisReader::Set(std::vector<AxisRef>* axes) {
  if (!in_.Expect('{', "before axes")) return false;
  if (in_.TryConsume('}')) return true;
  do {
    if (!One(&axes->emplace_back())) return false;
  } while (in_.TryConsume(','));
  return in_.Expect('}', "after axes");
}

}  // namespace hlokit
