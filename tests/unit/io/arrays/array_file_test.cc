// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/array_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/arrays/npy.h"
#include "ir/graph/context.h"
#include "ir/graph/literal_fill.h"
#include "tests/unit/temporary_folder.h"

namespace hlokit::interp {
namespace {

constexpr uint64_t kNoLimit = uint64_t{1} << 40;

std::string BytesOf(const Literal& value) {
  return std::string(reinterpret_cast<const char*>(value.data()), value.size_bytes());
}

std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

class ArrayFileTest : public testing::Test {
 protected:
  Literal Random(ElementType type, const std::vector<int64_t>& dims) {
    return FillElided(context_.shapes.Array(type, dims), FillKind::kRandom, 7);
  }
  // Reads every array with the type that the file says. Returns false after an error.
  bool ReadsAll(const std::string& bytes, ArrayFormat format) {
    const absl::StatusOr<ArrayFile> file = ArrayFile::OpenSource(ByteSource::OfMemory(bytes), format);
    if (!file.ok()) return false;
    for (size_t i = 0; i < file->names().size(); ++i) {
      const absl::StatusOr<StoredArray> array = file->Array(i, kNoLimit);
      if (!array.ok() || array->dims.size() > 8) return false;
      const ElementType type = array->type.value_or(ElementType::kU8);
      if (!BytesOfDims(array->dims, array->element_bytes)) return false;
      if (!ReadArray(*array, context_.shapes.Array(type, array->dims)).ok()) return false;
    }
    return true;
  }

  Context context_;
  TemporaryFolder folder_;
};

TEST_F(ArrayFileTest, EveryTypeReadsBackByName) {
  std::vector<NamedValue> values;
  for (size_t t = 0; t < kElementTypeCount; ++t) {
    const auto type = static_cast<ElementType>(t);
    if (!IsArrayType(type)) continue;
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {5}, {2, 3}, {2, 0, 4}}) {
      values.push_back({"layer." + std::to_string(values.size()), Random(type, dims)});
    }
  }
  const std::string path = folder_.path().string() + "/all.npz";
  ASSERT_TRUE(WriteArrayFile(path, values).ok());
  const absl::StatusOr<ArrayFile> file = ArrayFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->names().size(), values.size());
  for (const NamedValue& value : values) {
    const absl::StatusOr<StoredArray> array = file->Array(file->Find(value.name).value(), kNoLimit);
    ASSERT_TRUE(array.ok());
    const absl::StatusOr<Literal> back = ReadArray(*array, value.value.shape());
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(BytesOf(*back), BytesOf(value.value)) << value.name;
  }
}

TEST_F(ArrayFileTest, NamesOfSafetensorsAreInTheOrderOfTheirNumbers) {
  std::vector<NamedValue> values;
  for (const char* name : {"x10", "x2", "x02", "a", "x2.b", "x"}) {
    values.push_back({name, Random(ElementType::kF32, {})});
  }
  const std::string path = folder_.path().string() + "/order.safetensors";
  ASSERT_TRUE(WriteArrayFile(path, values).ok());
  EXPECT_EQ(ArrayFile::Open(path)->names(), (std::vector<std::string>{"a", "x", "x02", "x2", "x2.b", "x10"}));
}

TEST_F(ArrayFileTest, RowsAreReadAlone) {
  const Literal value = Random(ElementType::kBF16, {7, 3});
  const std::string path = folder_.path().string() + "/rows.npy";
  ASSERT_TRUE(WriteArrayFile(path, {{"", value}}).ok());
  const absl::StatusOr<StoredArray> array = ArrayFile::Open(path)->Array(0, kNoLimit);
  ASSERT_TRUE(array.ok());
  Literal rows = Literal::Zeros(context_.shapes.Array(ElementType::kBF16, {2, 3}));
  ASSERT_TRUE(ReadRows(*array, 4, &rows).ok());
  EXPECT_EQ(BytesOf(rows), BytesOf(value).substr(4 * 6, 2 * 6));
}

TEST_F(ArrayFileTest, AFileThatIsCutOffWhileItIsOpenIsAnError) {
  const std::string path = folder_.path().string() + "/cut.npy";
  const Literal value = Random(ElementType::kF32, {1000});
  ASSERT_TRUE(WriteArrayFile(path, {{"", value}}).ok());
  const absl::StatusOr<StoredArray> array = ArrayFile::Open(path)->Array(0, kNoLimit);
  std::ofstream(path, std::ios::trunc) << "";
  EXPECT_EQ(ReadArray(*array, value.shape()).status().message(), path + ": the file ends early");
}

TEST_F(ArrayFileTest, EveryTruncationIsAnErrorAndNoDamageIsFatal) {
  const std::vector<NamedValue> values = {{"a", Random(ElementType::kF32, {2, 2})},
                                          {"b", Random(ElementType::kPred, {3})}};
  for (const auto& [name, format] :
       {std::pair("x.npz", ArrayFormat::kNpz), std::pair("x.safetensors", ArrayFormat::kSafetensors)}) {
    const std::string path = folder_.path().string() + "/" + name;
    ASSERT_TRUE(WriteArrayFile(path, values).ok());
    const std::string bytes = Contents(path);
    EXPECT_TRUE(ReadsAll(bytes, format));
    for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(ReadsAll(bytes.substr(0, size), format)) << size;
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (char value : {'\0', '\x7f', '\xff'}) {
        std::string damaged = bytes;
        damaged[at] = value;
        (void)ReadsAll(damaged, format);
      }
    }
  }
}

TEST_F(ArrayFileTest, WritersNameWhatAFormatLacks) {
  const std::vector<NamedValue> twice = {{"a", Random(ElementType::kF32, {})}, {"a", Random(ElementType::kF32, {})}};
  EXPECT_EQ(WriteArrayFile(folder_.path().string() + "/x.npz", twice).message(), "two arrays named a");
  EXPECT_EQ(WriteArrayFile(folder_.path().string() + "/x.safetensors", twice).message(), "two tensors named a");
  EXPECT_FALSE(WriteArrayFile(folder_.path().string() + "/x.npy", twice).ok());
  EXPECT_FALSE(WriteArrayFile(folder_.path().string() + "/none/x.npz", {twice[0]}).ok());
}

TEST_F(ArrayFileTest, ADeflatedArrayIsInflatedWithinABudget) {
  const std::string bytes = Contents(std::string(HLOKIT_SOURCE_DIR) + "/tests/data/deflated.npz");
  const absl::StatusOr<ArrayFile> file = ArrayFile::OpenSource(ByteSource::OfMemory(bytes), ArrayFormat::kNpz);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(file->Array(0, 4128).ok());
  EXPECT_EQ(file->Array(0, 4127).status().message(),
            "x.npy has 4128 bytes when it is inflated; the limit is 4127 bytes");
}

TEST_F(ArrayFileTest, NamesOfMembersAreInUtf8AndMarkedSo) {
  TemporaryFolder folder;
  const std::string path = (folder.path() / "names.npz").string();
  const Literal value = Random(ElementType::kF32, {2});
  ASSERT_TRUE(WriteArrayFile(path, {{"gr\xc3\xb6\xc3\x9f"
                                     "e",
                                     value},
                                    {"size", value}})
                  .ok());
  std::string bytes = Contents(path);
  EXPECT_EQ(bytes[7] & 8, 8);  // bit 11 of the flags of the first member
  EXPECT_TRUE(ReadsAll(bytes, ArrayFormat::kNpz));
  for (size_t at = bytes.find("\xc3"); at != std::string::npos; at = bytes.find("\xc3", at)) bytes[at] = '\xff';
  EXPECT_EQ(ArrayFile::OpenSource(ByteSource::OfMemory(bytes), ArrayFormat::kNpz).status().message(),
            "not a .npz file: the name of a member is not in UTF-8");
}

TEST_F(ArrayFileTest, AKeyTwiceIsNoHeader) {
  const auto npy = [](std::string header) {
    header.resize(118, ' ');
    return std::string("\x93NUMPY\x01\x00", 8) + std::string("\x76\x00", 2) + header + std::string(8, '\0');
  };
  EXPECT_TRUE(ReadsAll(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"), ArrayFormat::kNpy));
  EXPECT_FALSE(
      ReadsAll(npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"), ArrayFormat::kNpy));
  EXPECT_FALSE(
      ReadsAll(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'shape': (2,)}"), ArrayFormat::kNpy));
}

// Counts what is read.
class CountingSource : public ByteSource {
 public:
  explicit CountingSource(std::string bytes) : bytes_(std::move(bytes)) { size_ = bytes_.size(); }
  absl::Status Read(uint64_t offset, void* to, size_t bytes) const override {
    read += bytes;
    if (offset + bytes > bytes_.size()) return absl::DataLossError("too short");
    std::memcpy(to, bytes_.data() + offset, bytes);
    return absl::OkStatus();
  }
  mutable size_t read = 0;

 private:
  const std::string bytes_;
};

TEST_F(ArrayFileTest, BoxIsReadByItsRows) {
  const Literal whole = Random(ElementType::kF32, {64, 8, 4096});
  const auto source = std::make_shared<CountingSource>(NpyHeader(whole.shape()) + BytesOf(whole));
  const absl::StatusOr<ArrayFile> file = ArrayFile::OpenSource(source, ArrayFormat::kNpy);
  ASSERT_TRUE(file.ok());
  const absl::StatusOr<StoredArray> array = file->Array(0, kNoLimit);
  ASSERT_TRUE(array.ok());
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> boxes = {
      {{0, 0, 0}, {64, 8, 4096}}, {{16, 0, 0}, {8, 8, 4096}}, {{0, 2, 0}, {64, 2, 4096}}, {{0, 0, 1024}, {64, 8, 1024}},
      {{63, 7, 4095}, {1, 1, 1}}, {{5, 1, 9}, {3, 2, 7}},     {{0, 0, 0}, {0, 8, 4096}}};
  for (const auto& [begin, dims] : boxes) {
    Literal box = Literal::Zeros(context_.shapes.Array(ElementType::kF32, dims));
    source->read = 0;
    ASSERT_TRUE(ReadBox(*array, whole.shape(), begin, &box).ok());
    EXPECT_LE(source->read, std::max<size_t>(box.size_bytes(), 3 * 8 * 4096 * sizeof(float)));
    const absl::Span<const float> got = box.values<float>();
    size_t at = 0;
    for (int64_t i = 0; i < dims[0]; ++i) {
      for (int64_t j = 0; j < dims[1]; ++j) {
        for (int64_t k = 0; k < dims[2]; ++k) {
          const int64_t from = ((begin[0] + i) * 8 + begin[1] + j) * 4096 + begin[2] + k;
          ASSERT_EQ(got[at++], whole.values<float>()[static_cast<size_t>(from)]);
        }
      }
    }
  }
  Literal box = Literal::Zeros(context_.shapes.Array(ElementType::kF32, {1, 1, 1}));
  EXPECT_FALSE(ReadBox(*array, context_.shapes.Array(ElementType::kF32, {64, 8, 4095}), {0, 0, 0}, &box).ok());
}

}  // namespace
}  // namespace hlokit::interp
