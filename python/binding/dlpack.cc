// SPDX-License-Identifier: Apache-2.0
#include "python/binding/dlpack.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

constexpr const char* kCapsule = "dltensor";
constexpr const char* kUsedCapsule = "used_dltensor";
constexpr int32_t kCpu = 1, kCudaHost = 3, kRocmHost = 11;
constexpr int kMaxRank = 64;

struct TypeCode {
  ElementType type;
  uint8_t code;
  uint8_t bits;
};

// The first row of a type or of a code is the one for it. Codes from 7 on are those of DLPack 1.1.
constexpr TypeCode kTypeCodes[] = {
    {ElementType::kPred, 6, 8},
    {ElementType::kS8, 0, 8},
    {ElementType::kS16, 0, 16},
    {ElementType::kS32, 0, 32},
    {ElementType::kS64, 0, 64},
    {ElementType::kU8, 1, 8},
    {ElementType::kU16, 1, 16},
    {ElementType::kU32, 1, 32},
    {ElementType::kU64, 1, 64},
    {ElementType::kF16, 2, 16},
    {ElementType::kF32, 2, 32},
    {ElementType::kF64, 2, 64},
    {ElementType::kBF16, 4, 16},
    {ElementType::kC64, 5, 64},
    {ElementType::kC128, 5, 128},
    {ElementType::kF8E3M4, 7, 8},
    {ElementType::kF8E4M3, 8, 8},
    {ElementType::kF8E4M3B11FNUZ, 9, 8},
    {ElementType::kF8E4M3FN, 10, 8},
    {ElementType::kF8E4M3FNUZ, 11, 8},
    {ElementType::kF8E5M2, 12, 8},
    {ElementType::kF8E5M2FNUZ, 13, 8},
    {ElementType::kF8E8M0FNU, 14, 8},
    // An element takes a byte, with the value as its bits.
    {ElementType::kS1, 0, 8},
    {ElementType::kS2, 0, 8},
    {ElementType::kS4, 0, 8},
    {ElementType::kU1, 1, 8},
    {ElementType::kU2, 1, 8},
    {ElementType::kU4, 1, 8},
};

std::optional<ElementType> TypeOf(const DLDataType& dtype) {
  for (const TypeCode& row : kTypeCodes) {
    if (dtype.lanes == 1 && row.code == dtype.code && row.bits == dtype.bits) return row.type;
  }
  return std::nullopt;
}

// What an exported array keeps.
struct Exported {
  DLManagedTensor managed;
  std::shared_ptr<void> owner;
  std::vector<int64_t> shape, strides;
};

void DeleteExported(DLManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); }

void DeleteUnused(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kCapsule) == 0) return;  // a consumer has taken it
  auto* const managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (managed->deleter != nullptr) managed->deleter(managed);
}

// Throws unless the memory is the CPU's.
void CheckDevice(py::handle value, const std::string& what) {
  if (!py::hasattr(value, "__dlpack_device__")) return;
  const py::tuple device = value.attr("__dlpack_device__")();
  const auto type = py::int_(device[0]).cast<int64_t>();
  if (type != kCpu && type != kCudaHost && type != kRocmHost) {
    throw py::type_error(StrCat(what, ": the array is in the memory of another device; copy it to the CPU"));
  }
}

}  // namespace

ImportedArray FromDlpack(py::handle value, const std::string& what) {
  CheckDevice(value, what);
  const py::object capsule = value.attr("__dlpack__")();
  if (PyCapsule_IsValid(capsule.ptr(), kCapsule) == 0) {
    throw py::type_error(StrCat(what, ": __dlpack__ gives no array: ", std::string(py::str(py::type::of(capsule)))));
  }
  auto* const managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule));
  const DLTensor& tensor = managed->dl_tensor;
  const std::optional<ElementType> type = TypeOf(tensor.dtype);
  if (!type) {
    throw py::type_error(StrCat(what, ": HLO has no element type for DLPack's code ", int{tensor.dtype.code}, " with ",
                                int{tensor.dtype.bits}, " bits"));
  }
  if (tensor.device.device_type != kCpu && tensor.device.device_type != kCudaHost &&
      tensor.device.device_type != kRocmHost) {
    throw py::type_error(StrCat(what, ": the array is in the memory of another device; copy it to the CPU"));
  }
  if (tensor.ndim < 0 || tensor.ndim > kMaxRank) throw py::value_error(StrCat(what, ": too many dimensions"));
  const int64_t bytes = BytesOf(*type);
  std::vector<py::ssize_t> sizes, strides;
  int64_t dense = bytes;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    const int64_t size = tensor.shape[i];
    if (size < 0) throw py::value_error(StrCat(what, ": a negative dimension"));
    sizes.insert(sizes.begin(), size);
    strides.insert(strides.begin(), tensor.strides == nullptr ? dense : tensor.strides[i] * bytes);
    dense *= size > 0 ? size : 1;
  }
  // From here on the array's base has the tensor.
  PyCapsule_SetName(capsule.ptr(), kUsedCapsule);
  PyCapsule_SetDestructor(capsule.ptr(), nullptr);
  const py::capsule base(managed, [](void* taken) {
    auto* const owned = static_cast<DLManagedTensor*>(taken);
    if (owned->deleter != nullptr) owned->deleter(owned);
  });
  const auto* const data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  return {py::array(DtypeOf(*type), std::move(sizes), std::move(strides), data, base), *type};
}

py::capsule ToDlpack(Shape shape, std::byte* data, std::shared_ptr<void> owner) {
  const ElementType type = shape.element_type();
  const TypeCode* code = nullptr;
  for (const TypeCode& row : kTypeCodes) {
    if (code == nullptr && row.type == type) code = &row;
  }
  if (code == nullptr) {
    throw py::buffer_error(StrCat("DLPack has no arrays of ", ToString(type), " with one element a byte"));
  }
  auto exported = std::make_unique<Exported>();
  exported->owner = std::move(owner);
  exported->shape.assign(shape.dims().begin(), shape.dims().end());
  exported->strides.resize(exported->shape.size());
  int64_t stride = 1;
  for (size_t i = exported->shape.size(); i-- > 0;) {
    exported->strides[i] = stride;
    stride *= exported->shape[i] > 0 ? exported->shape[i] : 1;
  }
  exported->managed = {{data,
                        {kCpu, 0},
                        static_cast<int32_t>(exported->shape.size()),
                        {code->code, code->bits, 1},
                        exported->shape.data(),
                        exported->strides.data(),
                        0},
                       exported.get(),
                       DeleteExported};
  PyObject* capsule = PyCapsule_New(&exported->managed, kCapsule, DeleteUnused);
  if (capsule == nullptr) throw py::error_already_set();
  exported.release();
  return py::reinterpret_steal<py::capsule>(capsule);
}

}  // namespace hlokit::python
