// SPDX-License-Identifier: Apache-2.0
// Values of variables and expressions of a script.
#ifndef HLOKIT_TRACER_SCRIPT_SCRIPT_VALUE_H_
#define HLOKIT_TRACER_SCRIPT_SCRIPT_VALUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "tracer/graph/scalar.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy::script {

class Value;

// A value that variables share: a module, an optimizer, a mesh.
class Object {
 public:
  explicit Object(std::string_view type);
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  // Returns the kind of object for messages: "a module".
  std::string_view type() const { return type_; }
  // Appends numbers that determine what a program does with the object, besides values of tensors: which object it is,
  // and its settings.
  virtual void AppendState(std::vector<uint64_t>* state) const { state->push_back(id_); }

 private:
  std::string_view type_;
  uint64_t id_;  // of all objects of the process
};

// A list, or the results of a call, which stand for the first of them where one value is expected.
struct List {
  static constexpr int kMaxDepth = 32;
  static constexpr size_t kMaxSize = size_t{1} << 16;
  static constexpr size_t kMaxTotal = size_t{1} << 20;

  std::vector<Value> values;
  int depth = 1;     // of lists in lists
  size_t total = 0;  // members, with those of lists in the list
  bool results = false;
};

class Value {
 public:
  struct Unset {};  // a variable that has no value
  struct None {};
  struct Word {  // a word without quotes: text or an element type
    std::string text;
  };
  using Storage = std::variant<Unset, None, Tensor, Scalar, std::string, Word, std::shared_ptr<const List>,
                               std::shared_ptr<Object>>;

  Value() = default;
  Value(None) : v_(None()) {}                             // NOLINT: values are written as they are
  Value(Scalar s) : v_(s) {}                              // NOLINT
  Value(int64_t i) : v_(Scalar(i)) {}                     // NOLINT
  Value(double d) : v_(Scalar(d)) {}                      // NOLINT
  Value(bool b) : v_(Scalar(b)) {}                        // NOLINT
  Value(std::string s) : v_(std::move(s)) {}              // NOLINT
  Value(Word w) : v_(std::move(w)) {}                     // NOLINT
  Value(std::shared_ptr<Object> o) : v_(std::move(o)) {}  // NOLINT
  Value(Tensor t) {                                       // NOLINT: a tensor that is not defined is no value
    if (t.defined()) v_ = std::move(t);
  }
  // A list of values; an error if lists are nested too deeply or there are too many.
  static absl::StatusOr<Value> ListOf(std::vector<Value> values, bool results = false);

  template <typename T>
  const T* get() const {
    return std::get_if<T>(&v_);
  }
  const List* list() const {
    const auto* list = get<std::shared_ptr<const List>>();
    return list == nullptr ? nullptr : list->get();
  }
  // Returns the object if it is a T.
  template <typename T>
  std::shared_ptr<T> object() const {
    const auto* object = get<std::shared_ptr<Object>>();
    return object == nullptr ? nullptr : std::dynamic_pointer_cast<T>(*object);
  }
  bool unset() const { return get<Unset>() != nullptr; }
  bool none() const { return get<None>() != nullptr; }
  bool has_results() const { return list() != nullptr && list()->results; }
  // Returns the first of the results of a call, any other value itself.
  const Value& single() const;
  // Returns "a tensor", "a number".
  std::string_view KindName() const;

 private:
  explicit Value(std::shared_ptr<const List> list) : v_(std::move(list)) {}

  Storage v_;
};

// Appends the tensors in a value, in order; results of a call count as a list.
void AppendTensors(const Value& value, Tensors* tensors);

}  // namespace hlokit::lazy::script

#endif  // HLOKIT_TRACER_SCRIPT_SCRIPT_VALUE_H_
