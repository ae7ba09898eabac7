// SPDX-License-Identifier: Apache-2.0
// Intrusive reference counts with non-recursive release: objects owned by a destroyed object are deleted from a list
// afterwards, so that a chain of a million objects is destroyed on a small stack.
#ifndef HLOKIT_TRACER_GRAPH_REF_COUNTED_H_
#define HLOKIT_TRACER_GRAPH_REF_COUNTED_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace hlokit::lazy {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void AddRef() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) Dispose(this);
  }
  int64_t refs() const { return refs_.load(std::memory_order_relaxed); }

 private:
  static void Dispose(RefCounted* object) {
    if (draining_) {
      object->refs_.store(reinterpret_cast<intptr_t>(pending_), std::memory_order_relaxed);
      pending_ = object;
      return;
    }
    draining_ = true;
    delete object;
    while (pending_ != nullptr) {
      RefCounted* const next = pending_;
      pending_ = reinterpret_cast<RefCounted*>(next->refs_.load(std::memory_order_relaxed));
      delete next;
    }
    draining_ = false;
  }

  static inline constinit thread_local bool draining_ = false;
  static inline constinit thread_local RefCounted* pending_ = nullptr;

  // For an object pending deletion, the next one in the list.
  std::atomic<intptr_t> refs_{0};
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT: as any pointer
  explicit Ref(T* p) : p_(p) {
    if (p_ != nullptr) p_->AddRef();
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_ != nullptr) p_->Release();
  }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> MakeRef(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_REF_COUNTED_H_
