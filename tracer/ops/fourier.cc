// SPDX-License-Identifier: Apache-2.0
// Complex tensors and Fourier transforms in terms of _fft_c2c, _fft_r2c and _fft_c2r.
#include <algorithm>
#include <optional>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/dispatch/op_kernel_context.h"
#include "tracer/graph/type_promotion.h"

namespace hlokit::lazy::kernel {

void Polar(OpKernelContext& c) {
  const Tensor &length = c.tensor(0), &angle = c.tensor(1);
  c.Return(InvokeOp(Op::complex, length * InvokeOp(Op::cos, angle), length * InvokeOp(Op::sin, angle)));
}
// The real part; an alias of a tensor that is not complex.
void RealView(OpKernelContext& c) {
  if (!IsComplex(c.tensor(0).dtype())) return c.Return(InvokeOp(Op::alias, c.tensor(0)));
  kernel::Record(c);
}
void ConjView(OpKernelContext& c) {
  c.Return(IsComplex(c.tensor(0).dtype()) ? InvokeOp(Op::conj_physical, c.tensor(0)) : c.tensor(0));
}

// ---- transforms of one dimension: self, n, dim, norm ----

namespace {

// Returns torch's number of a normalization: by default the forward transform is not normalized.
std::optional<int64_t> NormalizationOf(OpKernelContext& c, size_t arg, bool forward) {
  const std::string_view norm = c.has(arg) ? c.str(arg) : "backward";
  if (norm == "ortho") return 1;
  if (norm == "forward") return forward ? 2 : 0;
  if (norm == "backward") return forward ? 0 : 2;
  c.Fail(StrCat("Invalid normalization mode: \"", norm, "\""));
  return std::nullopt;
}

// Pads with zeros or cuts a dimension to `size`.
Tensor Resized(const Tensor& t, int64_t dim, int64_t size) {
  if (!t.defined() || t.size(dim) == size) return t;
  if (t.size(dim) > size) return lazy::Slice(t, dim, 0, size);
  IntList pad(static_cast<size_t>(2 * (t.dim() - dim)), 0);
  pad.back() = size - t.size(dim);
  return InvokeOp(Op::constant_pad_nd, t, pad, 0);
}

struct Transform {
  Tensor input;  // floats or complex
  int64_t dim = 0;
  int64_t size = 0;  // of the signal
  int64_t normalization = 0;
};

// `half`: the input is half of a spectrum.
std::optional<Transform> Prepare(OpKernelContext& c, bool forward, bool half) {
  const Tensor& x = c.tensor(0);
  if (x.dtype() == ElementType::kBF16 || x.dtype() == ElementType::kF16) {
    c.Fail(StrCat("Unsupported dtype ", TorchTypeName(x.dtype())));
    return std::nullopt;
  }
  Transform t;
  t.dim = c.Dim(c.int_arg(2), x.dim());
  if (c.failed()) return std::nullopt;
  if (x.dim() == 0) {
    c.Fail("Dimension specified as -1 but tensor has no dimensions");
    return std::nullopt;
  }
  const int64_t own = half ? 2 * (x.size(t.dim) - 1) : x.size(t.dim);
  t.size = c.has(1) ? c.int_arg(1) : own;
  constexpr int64_t kMaxSize = int64_t{1} << 40;
  if (t.size < 1 || t.size > kMaxSize) {
    c.Fail(StrCat("Invalid number of data points (", t.size, ") specified"));
    return std::nullopt;
  }
  const std::optional<int64_t> normalization = NormalizationOf(c, 3, forward);
  if (!normalization) return std::nullopt;
  t.normalization = *normalization;
  const Tensor floats = ScalarTypeCategory(x.dtype()) < 2 ? lazy::To(x, kDefaultFloat) : x;
  t.input = Resized(floats, t.dim, half ? t.size / 2 + 1 : t.size);
  return t;
}

Tensor AsComplex(const Tensor& t) {
  if (!t.defined() || IsComplex(t.dtype())) return t;
  return InvokeOp(Op::complex, t, lazy::ZerosLike(t));
}

void ComplexTransform(OpKernelContext& c, bool forward) {
  const std::optional<Transform> t = Prepare(c, forward, false);
  if (!t) return;
  // A real signal has the transform of real numbers, with both sides.
  if (forward && t->input.defined() && !IsComplex(t->input.dtype())) {
    return c.Return(InvokeOp(Op::fft_r2c, t->input, IntList{t->dim}, t->normalization, false));
  }
  c.Return(InvokeOp(Op::fft_c2c, AsComplex(t->input), IntList{t->dim}, t->normalization, forward));
}

}  // namespace

void Fft(OpKernelContext& c) { ComplexTransform(c, true); }
void Ifft(OpKernelContext& c) { ComplexTransform(c, false); }
void Rfft(OpKernelContext& c) {
  if (IsComplex(c.tensor(0).dtype())) {
    return c.Fail(StrCat("rfft expects a real input tensor, but got ", TorchTypeName(c.tensor(0).dtype())));
  }
  const std::optional<Transform> t = Prepare(c, true, false);
  if (t) c.Return(InvokeOp(Op::fft_r2c, t->input, IntList{t->dim}, t->normalization, true));
}
void Irfft(OpKernelContext& c) {
  const std::optional<Transform> t = Prepare(c, false, true);
  if (t) c.Return(InvokeOp(Op::fft_c2r, AsComplex(t->input), IntList{t->dim}, t->normalization, t->size));
}

// ---- transforms of several dimensions: self, s, dim, norm ----

namespace {

struct TransformMany {
  Tensor input;
  IntList dims;
  int64_t last_size = 0;  // of the signal
  int64_t normalization = 0;
};

std::optional<TransformMany> PrepareMany(OpKernelContext& c, bool forward, bool half) {
  const Tensor& x = c.tensor(0);
  const auto fail = [&](std::string_view message) {
    c.Fail(message);
    return std::nullopt;
  };
  if (x.dtype() == ElementType::kBF16 || x.dtype() == ElementType::kF16) {
    return fail(StrCat("Unsupported dtype ", TorchTypeName(x.dtype())));
  }
  TransformMany t;
  if (c.has(2)) {
    for (int64_t d : c.ints(2)) t.dims.push_back(c.Dim(d, x.dim()));
    if (c.failed()) return std::nullopt;
    IntList sorted = t.dims;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return fail("FFT dims must be unique");
    if (c.has(1) && c.ints(1).size() != t.dims.size()) {
      return fail("When given, dim and shape arguments must have the same length");
    }
  } else {
    const int64_t count = c.has(1) ? static_cast<int64_t>(c.ints(1).size()) : x.dim();
    if (count > x.dim()) {
      return fail(StrCat("Got shape with ", count, " values but input tensor only has ", x.dim(), " dimensions."));
    }
    for (int64_t d = x.dim() - count; d < x.dim(); ++d) t.dims.push_back(d);
  }
  if (t.dims.empty() || x.dim() == 0) return fail("at least one dimension is transformed");
  const std::optional<int64_t> normalization = NormalizationOf(c, 3, forward);
  if (!normalization) return std::nullopt;
  t.normalization = *normalization;
  t.input = ScalarTypeCategory(x.dtype()) < 2 ? lazy::To(x, kDefaultFloat) : x;
  constexpr int64_t kMaxSize = int64_t{1} << 40;
  for (size_t i = 0; i < t.dims.size(); ++i) {
    const bool halved = half && i + 1 == t.dims.size();
    const int64_t own = halved ? 2 * (x.size(t.dims[i]) - 1) : x.size(t.dims[i]);
    const int64_t size = c.has(1) && c.ints(1)[i] != -1 ? c.ints(1)[i] : own;
    if (size < 1 || size > kMaxSize) return fail(StrCat("Invalid number of data points (", size, ") specified"));
    t.input = Resized(t.input, t.dims[i], halved ? size / 2 + 1 : size);
    t.last_size = size;
  }
  return t;
}

void ComplexTransformMany(OpKernelContext& c, bool forward) {
  const std::optional<TransformMany> t = PrepareMany(c, forward, false);
  if (t) c.Return(InvokeOp(Op::fft_c2c, AsComplex(t->input), t->dims, t->normalization, forward));
}

}  // namespace

void Fftn(OpKernelContext& c) { ComplexTransformMany(c, true); }
void Ifftn(OpKernelContext& c) { ComplexTransformMany(c, false); }
void Rfftn(OpKernelContext& c) {
  if (IsComplex(c.tensor(0).dtype())) {
    return c.Fail(StrCat("rfftn expects a real-valued input tensor, but got ", TorchTypeName(c.tensor(0).dtype())));
  }
  const std::optional<TransformMany> t = PrepareMany(c, true, false);
  if (t) c.Return(InvokeOp(Op::fft_r2c, t->input, t->dims, t->normalization, true));
}
void Irfftn(OpKernelContext& c) {
  const std::optional<TransformMany> t = PrepareMany(c, false, true);
  if (t) c.Return(InvokeOp(Op::fft_c2r, AsComplex(t->input), t->dims, t->normalization, t->last_size));
}

namespace {

// Moves the zero frequency to the center, or back.
void ShiftSpectrum(OpKernelContext& c, bool back) {
  const Tensor& x = c.tensor(0);
  IntList dims, shifts;
  if (c.has(1)) {
    for (int64_t d : c.ints(1)) dims.push_back(c.Dim(d, x.dim()));
    if (c.failed()) return;
  } else {
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  }
  for (int64_t d : dims) shifts.push_back(back ? (x.size(d) + 1) / 2 : x.size(d) / 2);
  c.Return(dims.empty() ? InvokeOp(Op::clone, x) : InvokeOp(Op::roll, x, shifts, dims));
}

}  // namespace

void FftShift(OpKernelContext& c) { ShiftSpectrum(c, false); }
void IfftShift(OpKernelContext& c) { ShiftSpectrum(c, true); }

// ---- short-time transform ----

namespace {

struct ShortTimeArgs {
  size_t normalized, onesided, return_complex;  // positions
};

// signal [T] or [B, T] -> [B?, frequencies, frames]
void ShortTime(OpKernelContext& c, Tensor signal, const ShortTimeArgs& at) {
  const int64_t n_fft = c.int_arg(1);
  const int64_t hop = c.has(2) ? c.int_arg(2) : n_fft / 4, win_length = c.has(3) ? c.int_arg(3) : n_fft;
  const std::string where = StrCat("stft(n_fft=", n_fft, ", hop_length=", hop, ", win_length=", win_length, "): ");
  if (!signal.defined()) return;
  if (!IsFloat(signal.dtype()) && !IsComplex(signal.dtype())) {
    return c.Fail(where + "expected a tensor of floating point or complex values");
  }
  if (signal.dim() != 1 && signal.dim() != 2) return c.Fail(where + "expected a 1D or 2D tensor");
  const bool batched = signal.dim() == 2;
  if (!batched) signal = lazy::Unsqueeze(signal, 0);
  const int64_t length = signal.size(1);
  if (n_fft <= 0 || n_fft > length) {
    return c.Fail(StrCat(where, "expected 0 < n_fft < ", length, ", but got n_fft=", n_fft));
  }
  if (hop <= 0) return c.Fail(StrCat(where, "expected hop_length > 0, but got hop_length=", hop));
  if (win_length <= 0 || win_length > n_fft) {
    return c.Fail(StrCat(where, "expected 0 < win_length <= n_fft, but got win_length=", win_length));
  }
  Tensor window = c.tensor(4);
  if (window.defined() && (window.dim() != 1 || window.size(0) != win_length)) {
    return c.Fail(StrCat(where, "expected a 1D window tensor of size equal to win_length=", win_length,
                         ", but got window with size ", ListToString(window.sizes())));
  }
  const bool complex = IsComplex(signal.dtype()) || (window.defined() && IsComplex(window.dtype()));
  const bool onesided = c.has(at.onesided) ? c.bool_arg(at.onesided) : !complex;
  if (onesided && complex) return c.Fail("Cannot have onesided output if window or input is complex");
  if (win_length < n_fft) {
    const int64_t left = (n_fft - win_length) / 2;
    if (!window.defined()) window = lazy::Full({win_length}, 1, signal.dtype());
    window = InvokeOp(Op::constant_pad_nd, window, IntList{left, n_fft - win_length - left}, 0);
  }
  // Frames as one gather: frame i has the elements from i hop on.
  const int64_t frames = 1 + (length - n_fft) / hop;
  constexpr int64_t kMaxElements = int64_t{1} << 32;
  if (frames > kMaxElements / n_fft) return c.Fail(where + "there are too many frames");
  const Tensor places = lazy::Reshape(lazy::Arange(frames) * Scalar(hop), {frames, 1}) + lazy::Arange(n_fft);
  Tensor parts = lazy::IndexSelect(signal, 1, lazy::Reshape(places, {frames * n_fft}));
  parts = lazy::Reshape(parts, {signal.size(0), frames, n_fft});
  if (window.defined()) parts = parts * window;
  const int64_t normalization = c.bool_arg(at.normalized) ? 1 : 0;
  Tensor spectrum = complex ? InvokeOp(Op::fft_c2c, AsComplex(parts), IntList{2}, normalization, true)
                            : InvokeOp(Op::fft_r2c, parts, IntList{2}, normalization, onesided);
  spectrum = lazy::Transpose(spectrum, 1, 2);
  if (!batched) spectrum = lazy::Squeeze(spectrum, 0);
  const bool return_complex = c.has(at.return_complex) ? c.bool_arg(at.return_complex) : complex;
  c.Return(return_complex ? spectrum : InvokeOp(Op::view_as_real, spectrum));
}

}  // namespace

void Stft(OpKernelContext& c) { ShortTime(c, c.tensor(0), {5, 6, 7}); }
void StftCenter(OpKernelContext& c) {
  Tensor signal = c.tensor(0);
  if (c.bool_arg(5) && signal.dim() >= 1 && signal.dim() <= 2) {
    const int64_t side = c.int_arg(1) / 2;
    if (side < 0 || side >= signal.size(-1)) {
      return c.Fail(
          StrCat("Argument #4: Padding size should be less than the corresponding input dimension, but got: "
                 "padding (",
                 side, ", ", side, ") at dimension ", signal.dim(), " of input"));
    }
    const std::string_view mode = c.str(6);
    const bool batched = signal.dim() == 2;
    Tensor wide = lazy::Unsqueeze(signal, 0);
    if (!batched) wide = lazy::Unsqueeze(wide, 0);
    if (mode == "constant") {
      wide = InvokeOp(Op::constant_pad_nd, wide, IntList{side, side}, 0);
    } else if (mode == "reflect" || mode == "replicate") {
      wide = InvokeOp(mode == "reflect" ? Op::reflection_pad1d : Op::replication_pad1d, wide, IntList{side, side});
    } else {
      return c.Fail(StrCat("Unrecognised padding mode ", mode));
    }
    signal = lazy::Squeeze(wide, 0);
    if (!batched) signal = lazy::Squeeze(signal, 0);
  }
  ShortTime(c, signal, {7, 8, 9});
}

}  // namespace hlokit::lazy::kernel
