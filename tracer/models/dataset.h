// SPDX-License-Identifier: Apache-2.0
// Examples of a model in files of arrays (io/arrays/array_file.h), whose first dimension is that of the examples.
#ifndef HLOKIT_TRACER_MODELS_DATASET_H_
#define HLOKIT_TRACER_MODELS_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/arrays/stored_array.h"
#include "ir/graph/context.h"
#include "tracer/models/model.h"

namespace hlokit::lazy::models {

class Dataset {
 public:
  // Opens the files: as many .npy files as the model has arrays, in their order; or .npz and safetensors files that
  // have an array of each name, in any of the files. Returns an error unless all have as many examples, at least a
  // batch, of the model's dimensions, and a type that can be converted: floats and integers to floats, integers and
  // bools to integers. Reads headers only; a deflated array, of at most
  // `max_bytes`, whole.
  static absl::StatusOr<std::shared_ptr<const Dataset>> Open(absl::Span<const std::string> paths,
                                                             absl::Span<const BatchArray> arrays, int64_t max_bytes);

  // Returns the number of examples.
  int64_t size() const { return size_; }
  // Reads examples from number `first` on, which is taken modulo size(), into an array of a batch. Returns an error if
  // they cannot be read, or have integers outside of the model's range. Thread-safe.
  absl::Status Read(size_t array, int64_t first, Literal* out) const;

 private:
  struct Column {
    std::string label;  // for errors: the file, and the name of the array
    interp::StoredArray array;
    Shape stored_batch;  // of a batch, with the type in the file
    int64_t limit = 0;   // of BatchArray
    bool labels = false;
  };

  Dataset() = default;
  absl::Status Add(std::string label, interp::StoredArray array, const BatchArray& batch, bool labels);

  Context context_;  // of stored_batch
  std::vector<Column> columns_;
  int64_t size_ = 0;
};

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_DATASET_H_
