# SPDX-License-Identifier: Apache-2.0
"""Layers and losses of torch.nn: convolutions, norms, attention, pooling, recurrent layers, sampling."""
import torch
import torch.nn.functional as F

INF = float("inf")


def convolutions(case, t):
    for n in (1, 2, 3):
        size, batch = ([5, 4][:n], 2) if n < 3 else ([3, 3, 3], 1)
        conv, transposed = f"conv{n}d", f"conv_transpose{n}d" + ("" if n == 1 else ".input")
        case(f"{conv}_plain", conv, t.f32(batch, 2, *size), t.f32(3, 2, *[2] * n), grad=True)
        case(f"{conv}_groups_bias", conv, t.f32(1, 4, *size), t.f32(4, 2, *[3] * n), t.f32(4), [2] * n, [1] * n,
             [1] * n, 2, grad=True)
        case(f"{conv}_unbatched_dilated", conv, t.f32(2, *[5, 4, 3][:n]), t.f32(2, 2, *[2] * n), t.f32(2), [1] * n, [1] * n,
             [2] * n, grad=True)
        case(f"{conv}_bf16", conv, t.bf16(1, 2, *size), t.bf16(2, 2, *[2] * n))
        case(f"{conv}_no_batch", conv, t.f32(0, 2, *size), t.f32(3, 2, *[2] * n), grad=[1])
        case(f"{conv}_same_odd", f"{conv}.padding", t.f32(1, 2, *size), t.f32(2, 2, *[3] * n), None, [1] * n, "same",
             grad=True)
        case(f"{conv}_same_even", f"{conv}.padding", t.f32(1, 1, *size), t.f32(2, 1, *[2] * n), t.f32(2), [1] * n,
             "same", [1] * n, grad=True)
        case(f"{conv}_valid", f"{conv}.padding", t.f32(1, 2, *size), t.f32(2, 2, *[2] * n), None, [2] * n, "valid",
             grad=True)
        case(f"conv_transpose{n}d_plain", transposed, t.f32(batch, 2, *size), t.f32(2, batch, *[2] * n), grad=True)
        case(f"conv_transpose{n}d_groups", transposed, t.f32(1, 4, *size[1:], 2), t.f32(4, 1, *[3] * n), t.f32(2), [2] * n,
             [1] * n, [1] * n, 2, [1] * n, grad=True)
        case(f"conv_transpose{n}d_unbatched", transposed, t.f32(2, *size), t.f32(2, 1, *[2] * n), None, [1] * n,
             [0] * n, [0] * n, 1, [2] * n, grad=True)
    x, w = t.f32(1, 3, 4, 4), t.f32(2, 3, 3, 3)
    flags = [False, False, False]
    case("private_convolution", "_convolution", x, w, t.f32(2), [1], [1], [1], False, [0], 1, *flags, False, grad=True)
    case("private_convolution_transposed", "_convolution", t.f32(1, 2, 2, 2), w, None, [2, 1], [0, 1], [1, 1], True,
         [1, 0], 1, *flags, False, grad=True)
    case("private_convolution_old", "_convolution.deprecated", x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1,
         *flags, grad=True)
    case("private_convolution_old_1d", "_convolution.deprecated", t.f32(1, 4, 3), t.f32(2, 2, 2), None, [1], [1], [1],
         False, [0], 2, *flags, grad=True)
    case.error("conv2d_rank", "conv2d", t.f32(4, 4), w)
    case.error("conv2d_channels", "conv2d", t.f32(1, 4, 4, 4), w)
    case.error("conv2d_small_input", "conv2d", t.f32(1, 3, 2, 2), w)
    case.error("conv2d_bias_size", "conv2d", x, w, t.f32(3))
    case.error("conv2d_stride_count", "conv2d", x, w, None, [1, 1, 1])
    case.error("conv2d_stride_zero", "conv2d", x, w, None, [0, 1])
    case.error("conv2d_negative_padding", "conv2d", x, w, None, [1, 1], [-1, 0])
    case.error("conv2d_dilation_zero", "conv2d", x, w, None, [1, 1], [0, 0], [0, 0])
    case.error("conv2d_groups", "conv2d", x, w, None, [1, 1], [0, 0], [1, 1], 0)
    case.error("conv2d_groups_divide", "conv2d", t.f32(1, 6, 4, 4), t.f32(3, 3, 1, 1), None, [1, 1], [0, 0], [1, 1], 2,
               words="Given groups=2, expected weight to be divisible by 2 at dimension 0, but got weight of size")
    case.error("conv2d_types", "conv2d", x, t.f64(2, 3, 3, 3))
    case.error("conv2d_same_strided", "conv2d.padding", x, w, None, [2, 2], "same")
    case.error("conv2d_padding_name", "conv2d.padding", x, w, None, [1, 1], "sam")
    case.error("conv_transpose2d_channels", "conv_transpose2d.input", x, w)
    case.error("conv_transpose2d_bias", "conv_transpose2d.input", t.f32(1, 2, 4, 4), w, t.f32(2))
    case.error("conv_transpose2d_output_padding", "conv_transpose2d.input", t.f32(1, 2, 4, 4), w, None, [1, 1], [0, 0],
               [1, 1], words="output padding must be smaller than either stride or dilation")
    case.error("conv_transpose2d_no_output", "conv_transpose2d.input", t.f32(1, 2, 1, 1), t.f32(2, 3, 1, 1), None,
               [1, 1], [1, 1])


def norms(case, t):
    w, b = t.f32(3), t.f32(3)
    mean, var = t.f32(3), t.f32(3, low=0.5)
    for name, x in (("2d", t.f32(4, 3)), ("3d", t.f32(2, 3, 4)), ("4d", t.f32(2, 3, 2, 2))):
        case(f"batch_norm_train_{name}", "batch_norm", x, w, b, None, None, True, 0.1, 1e-5, False, grad=True)
        case(f"batch_norm_eval_{name}", "batch_norm", x, w, b, mean, var, False, 0.1, 1e-5, False, grad=[0, 1, 2])
        case(f"batch_norm_plain_{name}", "batch_norm", x, None, None, None, None, True, 0.1, 1e-3, False, grad=True)
        if x.dim() > 2:
            case(f"instance_norm_{name}", "instance_norm", x, w, b, None, None, True, 0.1, 1e-5, False, grad=True)
            case(f"instance_norm_plain_{name}", "instance_norm", x, None, None, None, None, True, 0.1, 1e-5, False,
                 grad=True)
            case(f"instance_norm_eval_{name}", "instance_norm", x, w, b, mean, var, False, 0.1, 1e-5, False,
                 grad=[0, 1, 2])
    case("batch_norm_f64", "batch_norm", t.f64(4, 3), t.f64(3), t.f64(3), None, None, True, 0.1, 1e-5, False)
    case.error("batch_norm_no_statistics", "batch_norm", t.f32(2, 3), w, b, None, None, False, 0.1, 1e-5, False)
    case.error("batch_norm_weight", "batch_norm", t.f32(2, 3), t.f32(4), b, None, None, True, 0.1, 1e-5, False)
    case.error("batch_norm_mean", "batch_norm", t.f32(2, 3), w, b, t.f32(4), t.f32(4), True, 0.1, 1e-5, False)
    case.error("batch_norm_s64", "batch_norm", t.s64(2, 3), None, None, None, None, True, 0.1, 1e-5, False)
    case.error("instance_norm_statistics", "instance_norm", t.f32(2, 3, 4), w, b, None, None, False, 0.1, 1e-5, False)
    x = t.f32(2, 3, 2)

    # torch 1.13 has native_batch_norm only.
    def no_stats(input, weight, bias, training, momentum, eps):
        return torch.native_batch_norm(input, weight, bias, None, None, training, momentum, eps)

    def no_training(input, weight, bias, running_mean, running_var, momentum, eps):
        return torch.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)

    def functional(input, weight, bias, running_mean, running_var, training, momentum, eps):
        mean, var = running_mean.clone(), running_var.clone()
        out = torch.native_batch_norm(input, weight, bias, mean, var, training, momentum, eps)
        return (*out, mean, var)

    name = "_native_batch_norm_legit"
    for training in (True, False):
        mode = "train" if training else "eval"
        case(f"batch_norm_legit_{mode}", name, x, w, b, mean, var, training, 0.25, 1e-5, grad=[0, 1, 2],
             python=torch.native_batch_norm)
        case(f"batch_norm_functional_{mode}", f"{name}_functional", x, w, b, mean, var, training, 0.25, 1e-5,
             grad=[0, 1, 2], python=functional)
    case("batch_norm_no_stats", f"{name}.no_stats", x, w, b, True, 0.1, 1e-5, grad=True, python=no_stats)
    case("batch_norm_no_stats_plain", f"{name}.no_stats", t.f32(4, 2), None, None, True, 0.1, 1e-3, grad=True,
         python=no_stats)
    case("batch_norm_no_training", f"{name}_no_training", x, w, b, mean, var, 0.1, 1e-5, grad=[0, 1, 2],
         python=no_training)
    case("batch_norm_no_training_plain", f"{name}_no_training", x, None, None, mean, var, 0.1, 1e-3, grad=[0],
         python=no_training)
    for groups in (1, 2, 4):
        case(f"group_norm_{groups}", "group_norm", t.f32(2, 4, 3), groups, t.f32(4), t.f32(4), grad=True)
    case("group_norm_plain_2d", "group_norm", t.f32(3, 6), 3, grad=True)
    case("group_norm_weight_only", "group_norm", t.f32(2, 4, 2, 2), 2, t.f32(4), None, 1e-3, grad=True)
    case.error("group_norm_divide", "group_norm", t.f32(2, 3), 2)
    case.error("group_norm_weight_size", "group_norm", t.f32(2, 4, 3), 2, t.f32(3))
    for dim in (0, 2):
        case(f"norm_except_dim_{dim}", "norm_except_dim", t.f32(3, 2, 4), 2, dim, grad=True)
        case(f"weight_norm_{dim}", "_weight_norm", t.f32(3, 2, 4), t.f32(*([3, 1, 1] if dim == 0 else [1, 1, 4])), dim,
             grad=True)
    for name, x in (("3d", t.f32(1, 5, 3)), ("4d", t.f32(2, 4, 2, 2)), ("5d", t.f32(1, 3, 2, 1, 2))):
        case(f"local_response_norm_{name}", "local_response_norm", x, 3, 0.5, 0.75, 1.0, grad=True,
             python=F.local_response_norm)
    case("local_response_norm_even", "local_response_norm", t.f32(1, 4, 2), 2, 1e-2, 1.0, 2.0, grad=True,
         python=F.local_response_norm)


def attention(case, t):
    q, k, v = t.f32(2, 3, 4), t.f32(2, 5, 4), t.f32(2, 5, 6)
    name = "_scaled_dot_product_attention"
    mask = torch.tensor([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 1, 0, 0, 0]], dtype=torch.bool)
    case("attention_plain", name, q, k, v, None, 0.0, True, grad=True)
    case("attention_heads", name, t.f32(1, 2, 3, 4), t.f32(1, 2, 3, 4), t.f32(1, 2, 3, 4), None, 0.0, True, True,
         grad=True)
    case("attention_mask", name, q, k, v, mask, 0.0, True, grad=[0, 1, 2])
    case("attention_bias", name, q, k, v, t.f32(3, 5), 0.0, True, grad=[0, 1, 2, 3])
    case("attention_bf16", name, t.bf16(1, 3, 4), t.bf16(1, 3, 4), t.bf16(1, 3, 4), None, 0.0, True)
    case.error("attention_mask_and_causal", name, q, t.f32(2, 3, 4), t.f32(2, 3, 4), t.f32(3, 3), 0.0, False, True)

    def composed(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        # torch 1.13 has the private op only, which scales by the last size.
        if scale is not None:
            query = query * (scale * query.size(-1) ** 0.5)
        if enable_gqa:
            key, value = (x.repeat_interleave(query.size(-3) // x.size(-3), -3) for x in (key, value))
        return torch.ops.aten._scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, False, is_causal)[0]

    name = "scaled_dot_product_attention"
    case("sdpa_plain", name, q, k, v, grad=True, python=composed)
    case("sdpa_causal", name, t.f32(2, 4, 3), t.f32(2, 4, 3), t.f32(2, 4, 3), None, 0.0, True, grad=True,
         python=composed)
    case("sdpa_scale", name, q, k, v, mask, scale=0.25, grad=[0, 1, 2], python=composed)
    case("sdpa_grouped", name, t.f32(1, 4, 2, 3), t.f32(1, 2, 3, 3), t.f32(1, 2, 3, 3), enable_gqa=True, grad=True,
         python=composed)

    def flash(query, key, value, dropout_p=0.0, is_causal=False, attn_mask=None, scale=None):
        scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
        if is_causal:
            scores = scores + torch.full(scores.shape[-2:], -INF).triu(1)
        return composed(query, key, value, attn_mask, dropout_p, is_causal), scores.logsumexp(-1)

    name = "_scaled_dot_product_flash_attention_for_cpu"
    case("flash_attention_cpu", name, t.f32(1, 2, 3, 4), t.f32(1, 2, 3, 4), t.f32(1, 2, 3, 4), grad=True, python=flash)
    case("flash_attention_cpu_causal", name, t.f32(1, 2, 3, 4), t.f32(1, 2, 3, 4), t.f32(1, 2, 3, 4), 0.0, True,
         grad=True, python=flash)

    def whole_flash(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, scale=None):
        number = lambda n: torch.tensor(n)
        return (*flash(query, key, value, dropout_p, is_causal), None, None, number(query.size(2)), number(key.size(2)),
                number(0), number(0), None)

    name = "_scaled_dot_product_flash_attention"
    case("flash_attention", name, t.f32(1, 2, 2, 4), t.f32(1, 2, 3, 4), t.f32(1, 2, 3, 4), grad=True, python=whole_flash)
    case("flash_attention_causal", name, t.f32(1, 1, 3, 4), t.f32(1, 1, 3, 4), t.f32(1, 1, 3, 4), 0.0, True,
         grad=True, python=whole_flash)

    def efficient(query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, scale=None):
        out, sums = flash(query, key, value, dropout_p, is_causal)
        return out, sums if compute_log_sumexp else None, torch.tensor(0), torch.tensor(0)

    name = "_scaled_dot_product_efficient_attention"
    case("efficient_attention", name, t.f32(1, 2, 2, 4), t.f32(1, 2, 3, 4), t.f32(1, 2, 3, 4), None, True,
         grad=True, python=efficient)
    case("efficient_attention_no_sums", name, t.f32(1, 1, 3, 4), t.f32(1, 1, 3, 4), t.f32(1, 1, 3, 4), None, False, 0.0,
         True, grad=True, python=efficient)


def pooling(case, t):
    for n in (1, 2, 3):
        sizes = [7, 5][:n] if n < 3 else [5, 4, 3]
        x, whole = t.distinct(1, 2, *sizes), t.distinct(2, *[4] * n)
        case(f"adaptive_avg_pool{n}d_uneven", f"adaptive_avg_pool{n}d", x, [3, 2, 2][:n], grad=True)
        case(f"adaptive_avg_pool{n}d_even", f"adaptive_avg_pool{n}d", whole, [2] * n, grad=True)
        case(f"adaptive_avg_pool{n}d_one", f"adaptive_avg_pool{n}d", x, [1] * n, grad=True)
        case(f"adaptive_avg_pool{n}d_larger", f"adaptive_avg_pool{n}d", t.f32(1, 1, *[3] * n), [5] * n, grad=True)
        case(f"adaptive_max_pool{n}d_uneven", f"adaptive_max_pool{n}d", x, [3, 2, 2][:n], grad=True)
        case(f"adaptive_max_pool{n}d_even", f"adaptive_max_pool{n}d", whole, [2] * n, grad=True)
        case(f"adaptive_max_pool{n}d_larger", f"adaptive_max_pool{n}d", t.distinct(1, 1, *[3] * n), [5] * n, grad=True)
        case(f"max_pool{n}d_plain", f"max_pool{n}d", x, [2] * n, grad=True)
        case(f"max_pool{n}d_ceil", f"max_pool{n}d", x, [3] * n, [2] * n, [1] * n, [1] * n, True, grad=True)
        case(f"max_pool{n}d_dilated", f"max_pool{n}d", t.distinct(1, 1, *[6, 4, 3][:n]), [2] * n, [1] * n, [0] * n, [2] * n,
             grad=True)
    case("adaptive_max_pool2d_nan", "adaptive_max_pool2d", t.values([[[1.0, float("nan"), 3.0], [2.0, 2.0, 2.0]]]),
         [1, 2])
    case("adaptive_max_pool2d_empty", "adaptive_max_pool2d", t.f32(1, 3, 3), [2, 0])
    case("adaptive_avg_pool2d_empty", "adaptive_avg_pool2d", t.f32(1, 3, 3), [0, 2])
    case("private_adaptive_avg_pool3d", "_adaptive_avg_pool3d", t.f32(1, 2, 3, 4, 5), [2, 2, 3], grad=True)
    case("private_adaptive_avg_pool3d_one", "_adaptive_avg_pool3d", t.f32(2, 3, 4, 5), [1, 1, 1], grad=True)
    case("adaptive_avg_pool3d_backward", "_adaptive_avg_pool3d_backward", t.f32(1, 2, 2, 2), t.f32(1, 3, 4, 5), grad=[0])
    case("adaptive_avg_pool3d_backward_even", "_adaptive_avg_pool3d_backward", t.f32(1, 2, 2, 1), t.f32(1, 4, 4, 2), grad=[0])
    for n in (2, 3):
        x = t.distinct(2, 2, *[5, 4, 3][:n])
        _, indices = getattr(torch.ops.aten, f"adaptive_max_pool{n}d")(x, [2] * n)
        for kind, index in (("batched", slice(None)), ("unbatched", 0)):
            case(f"adaptive_max_pool{n}d_backward_{kind}", f"adaptive_max_pool{n}d_backward",
                 t.f32(*indices[index].shape), x[index], indices[index], grad=[0])
        x = t.distinct(2, 2, *[4] * n)
        values, indices = getattr(torch.ops.aten, f"max_pool{n}d_with_indices")(x, [2] * n)
        rest = [] if n == 2 else [[2] * n, [0] * n]
        case(f"max_unpool{n}d", f"max_unpool{n}d", values, indices, [4] * n, *rest, grad=[0])
        case(f"max_unpool{n}d_larger", f"max_unpool{n}d", values[0], indices[0], [5] * n, *rest, grad=[0])
    case.error("max_unpool2d_index_type", "max_unpool2d", t.f32(1, 2, 2), t.f32(1, 2, 2), [4, 4])
    case.error("max_unpool2d_sizes", "max_unpool2d", t.f32(1, 2, 2), t.s64(1, 2, 1, low=0), [4, 4])
    x = t.distinct(1, 2, 4, 4, 4)
    for kind, (kernel, stride, padding, dilation) in {"plain": (2, 2, 0, 1), "overlapping": (3, 1, 1, 1),
                                                      "dilated": (2, 1, 0, 2)}.items():
        options = [[kernel] * 3, [stride] * 3, [padding] * 3, [dilation] * 3, False]
        values, indices = torch.ops.aten.max_pool3d_with_indices(x, *options)
        case(f"max_pool3d_backward_{kind}", "max_pool3d_with_indices_backward", t.f32(*values.shape), x, *options,
             indices, grad=[0])
    case("avg_pool3d_backward_plain", "avg_pool3d_backward", t.f32(1, 2, 2, 2, 2), t.f32(1, 2, 4, 4, 4), [2] * 3,
         [2] * 3, [0] * 3, False, True, None, grad=[0])
    case("avg_pool3d_backward_padded", "avg_pool3d_backward", t.f32(1, 3, 3, 3), t.f32(1, 5, 5, 5), [3] * 3, [2] * 3,
         [1] * 3, False, False, None, grad=[0])
    case("avg_pool3d_backward_divisor", "avg_pool3d_backward", t.f32(1, 1, 3, 2, 2), t.f32(1, 1, 4, 3, 3), [2] * 3,
         [1] * 3, [0] * 3, False, True, 5, grad=[0])
    case("avg_pool1d_plain", "avg_pool1d", t.f32(2, 2, 6), [2], grad=True)
    case("avg_pool1d_padded", "avg_pool1d", t.f32(2, 7), [3], [2], [1], True, False, grad=True)
    case.error("avg_pool1d_rank", "avg_pool1d", t.f32(3), [2], words="1")
    case.error("avg_pool1d_too_small", "avg_pool1d", t.f32(1, 3), [5], words="too small")
    case.error("max_pool1d_rank", "max_pool1d", t.f32(3), [2], words="max_pool1d: Expected 2D or 3D (batch mode) tensor")
    case.error("adaptive_avg_pool2d_rank", "adaptive_avg_pool2d", t.f32(3, 3), [2, 2], words="Expected 3D or 4D tensor")
    case.error("adaptive_avg_pool2d_s64", "adaptive_avg_pool2d", t.s64(1, 3, 3), [2, 2])
    case.error("adaptive_max_pool2d_rank", "adaptive_max_pool2d", t.f32(3, 3), [2, 2])
    case.error("adaptive_max_pool2d_no_elements", "adaptive_max_pool2d", t.f32(1, 3, 0), [2, 2])
    samples = t.values([[[0.25, 0.75], [0.5, 0.125]]])
    case("fractional_max_pool2d_batch", "fractional_max_pool2d", t.distinct(1, 2, 6, 5), [2, 2], [3, 3], samples,
         grad=[0])
    case("fractional_max_pool2d_unbatched", "fractional_max_pool2d", t.distinct(2, 7, 7), [2, 3], [4, 3], samples,
         grad=[0])
    case("fractional_max_pool2d_one", "fractional_max_pool2d", t.distinct(1, 2, 4, 4), [3, 2], [1, 2], samples,
         grad=[0])
    case.error("fractional_max_pool2d_large", "fractional_max_pool2d", t.f32(1, 2, 5, 5), [2, 2], [5, 3], samples)
    def lp_pool1d(kernel_size, stride, **rest):
        return F.lp_pool1d(kernel_size=kernel_size[0], stride=stride and stride[0], **rest)

    for n, lp_pool in ((1, lp_pool1d), (2, F.lp_pool2d)):
        x = t.f32(1, 2, *[6] * n, low=0.25)
        case(f"lp_pool{n}d_2", f"lp_pool{n}d", x, 2.0, [2] * n, grad=True, python=lp_pool)
        case(f"lp_pool{n}d_3", f"lp_pool{n}d", x, 3.0, [3] * n, [2] * n, True, grad=True,
             python=lp_pool)


def losses(case, t):
    classes = lambda *shape: t.s64(*shape, low=0, high=3)
    for reduction in (0, 1, 2):
        case(f"nll_loss_{reduction}", "nll_loss", t.f32(5, 4), classes(5), t.f32(4, low=0.5), reduction, 1, grad=[0])
        case(f"nll_loss2d_{reduction}", "nll_loss2d", t.f32(2, 4, 2, 3), classes(2, 2, 3), None, reduction, -100,
             grad=[0])
        for rank, shape in ((1, [4]), (2, [3, 4]), (3, [2, 4, 3]), (4, [2, 4, 2, 2]), (5, [1, 4, 2, 1, 2])):
            target = classes(*(shape[:1] + shape[2:] if rank > 1 else []))
            case(f"nll_loss_nd_{rank}d_{reduction}", "nll_loss_nd", t.f32(*shape), target, t.f32(4, low=0.5), reduction,
                 2, grad=[0])
        for rank, shape in ((3, [2, 4, 3]), (5, [2, 4, 2, 1, 3])):
            target = classes(*shape[:1], *shape[2:])
            case(f"cross_entropy_{rank}d_{reduction}", "cross_entropy_loss", t.f32(*shape), target, None, reduction,
                 grad=[0])
            case(f"cross_entropy_{rank}d_weight_{reduction}", "cross_entropy_loss", t.f32(*shape), target,
                 t.f32(4, low=0.5), reduction, 1, 0.25, grad=[0])
            case(f"cross_entropy_{rank}d_probabilities_{reduction}", "cross_entropy_loss", t.f32(*shape),
                 t.f32(*shape, low=0, high=1), None, reduction, grad=[0])
        x, y, target = t.f32(3, 4), t.f32(3, 4), t.values([1.0, -1.0, 1.0])
        case(f"poisson_nll_loss_log_{reduction}", "poisson_nll_loss", x, t.f32(3, 4, low=0, high=5), True, True, 1e-8,
             reduction, grad=[0])
        case(f"poisson_nll_loss_rate_{reduction}", "poisson_nll_loss", t.f32(3, 4, low=0.5), t.f32(3, 4, low=0), False,
             False, 1e-8, reduction, grad=True)
        case(f"cosine_embedding_loss_{reduction}", "cosine_embedding_loss", x, y, target, 0.25, reduction, grad=[0, 1])
        case(f"hinge_embedding_loss_{reduction}", "hinge_embedding_loss", t.f32(3), target, 1.5, reduction, grad=[0])
        case(f"margin_ranking_loss_{reduction}", "margin_ranking_loss", t.f32(3), t.f32(3), target, 0.5, reduction,
             grad=[0, 1])
        case(f"soft_margin_loss_{reduction}", "soft_margin_loss", t.f32(3), target, reduction, grad=[0])
        case(f"triplet_margin_loss_{reduction}", "triplet_margin_loss", x, y, t.f32(3, 4), 1.0, 2.0, 1e-6, False,
             reduction, grad=True)
        case(f"triplet_margin_loss_swap_{reduction}", "triplet_margin_loss", x, y, t.f32(3, 4), 2.0, 1.0, 1e-6, True,
             reduction, grad=True)
        labels = t.values([[2, 0, -1, 1], [-1, 0, 1, 2], [3, 1, 0, 2]], "s64")
        case(f"multilabel_margin_loss_{reduction}", "multilabel_margin_loss", x, labels, reduction, grad=[0])
        case(f"multilabel_margin_loss_1d_{reduction}", "multilabel_margin_loss", t.f32(4), labels[0], reduction,
             grad=[0])
        case(f"multilabel_margin_loss_forward_{reduction}", "multilabel_margin_loss_forward", x, labels, reduction,
             grad=[0])
        case(f"multi_margin_loss_{reduction}", "multi_margin_loss", x, classes(3), 1, 1, None, reduction, grad=[0])
        case(f"multi_margin_loss_weight_{reduction}", "multi_margin_loss", x, classes(3), 2, 0.5, t.f32(4, low=0.5),
             reduction, grad=[0])

        def gaussian(input, target, var, full=False, eps=1e-6, reduction=1):
            return F.gaussian_nll_loss(input, target, var, full, eps, ["none", "mean", "sum"][reduction])

        name = "gaussian_nll_loss"
        case(f"{name}_{reduction}", name, x, y, t.f32(3, 4, low=0.25), False, 1e-6, reduction, grad=True,
             python=gaussian)
        case(f"{name}_rows_{reduction}", name, x, y, t.values([0.0, 0.5, 2.0]), True, 1e-2, reduction, grad=True,
             python=gaussian)
    case.error("nll_loss_nd_rank0", "nll_loss_nd", t.f32(), classes(2))
    case.error("nll_loss_nd_batch", "nll_loss_nd", t.f32(3, 4), classes(2))
    case.error("nll_loss_nd_target_size", "nll_loss_nd", t.f32(3, 4, 2), classes(3, 3))
    case.error("triplet_margin_loss_ranks", "triplet_margin_loss", t.f32(3, 4), t.f32(3), t.f32(3))
    case.error("multilabel_margin_loss_type", "multilabel_margin_loss", t.f32(3, 4), t.f32(3, 4))
    case.error("multilabel_margin_loss_size", "multilabel_margin_loss", t.f32(3, 4), classes(3, 3))
    case.error("multi_margin_loss_p", "multi_margin_loss", t.f32(3, 4), classes(3), 3)
    case.error("multi_margin_loss_size", "multi_margin_loss", t.f32(3, 4), classes(2))
    for dim in (0, 1, -1):
        case(f"cosine_similarity_{dim}", "cosine_similarity", t.f32(3, 4), t.f32(3, 4), dim, grad=True)
    case("cosine_similarity_zero", "cosine_similarity", t.values([[0.0, 0.0], [1.0, 2.0]]), t.f32(2, 2))
    case("cosine_similarity_broadcast", "cosine_similarity", t.f32(2, 3, 4), t.f32(3, 1), 1, grad=True)
    case.error("cosine_similarity_s64", "cosine_similarity", t.s64(3, 4), t.s64(3, 4))
    case.error("cosine_similarity_dim", "cosine_similarity", t.f32(3, 4), t.f32(3, 4), 5)
    for p in (1.0, 2.0, 3.0, INF):
        case(f"pairwise_distance_{p}", "pairwise_distance", t.f32(3, 4), t.f32(3, 4), p, grad=True)
    case("pairwise_distance_keepdim", "pairwise_distance", t.f32(2, 3, 4), t.f32(4), 2.0, 1e-6, True, grad=True)
    case("bilinear_plain", "bilinear", t.f32(3, 4), t.f32(3, 5), t.f32(2, 4, 5), grad=True)
    case("bilinear_bias_3d", "bilinear", t.f32(2, 3, 2), t.f32(2, 3, 3), t.f32(4, 2, 3), t.f32(4), grad=True)
    case.error("bilinear_weight", "bilinear", t.f32(3, 4), t.f32(3, 5), t.f32(2, 4, 6))
    case.error("bilinear_batch", "bilinear", t.f32(3, 4), t.f32(2, 5), t.f32(2, 4, 5))
    case.error("bilinear_bias", "bilinear", t.f32(3, 4), t.f32(3, 5), t.f32(2, 4, 5), t.f32(3))


def ctc(case, t):
    logp = torch.log_softmax(t.f32(6, 3, 5), -1)
    targets = t.values([[1, 2, 2, 4], [3, 1, 0, 0], [2, 2, 2, 1]], "s64")
    joined = t.values([1, 2, 2, 4, 3, 1, 2], "s64")
    for reduction in (0, 1, 2):
        case(f"ctc_loss_{reduction}", "ctc_loss.IntList", logp, targets, [6, 4, 5], [4, 2, 1], 0, reduction, grad=[0])
        case(f"ctc_loss_joined_{reduction}", "ctc_loss.IntList", logp, joined, [6, 6, 6], [4, 2, 1], 0, reduction,
             grad=[0])
        case(f"ctc_loss_lengths_{reduction}", "ctc_loss.Tensor", logp, targets, t.values([6, 5, 3], "s64"),
             t.values([3, 1, 0], "s64"), 0, reduction, grad=[0])
    case("ctc_loss_blank", "ctc_loss.IntList", logp, targets, [6, 6, 6], [2, 1, 1], 4, 1, grad=[0])
    case("ctc_loss_impossible", "ctc_loss.IntList", logp, targets, [2, 4, 5], [4, 2, 1], 0, 0)
    case("ctc_loss_zero_infinity", "ctc_loss.IntList", logp, targets, [2, 4, 5], [4, 2, 1], 0, 1, True, grad=[0])
    case("ctc_loss_unbatched", "ctc_loss.IntList", logp[:, 0], targets[0, :3], [6], [3], 0, 0, grad=[0])
    case("ctc_loss_one_frame", "ctc_loss.IntList", logp[:1], targets, [1, 1, 1], [1, 1, 0], 0, 0, grad=[0])
    for name, arguments in {"target_size": ([6, 6, 6], [5, 2, 1]), "input_length": ([6, 7, 6], [3, 2, 1]),
                            "lengths": ([6, 6], [4, 2, 1])}.items():
        words = {"target_size": "Expected tensor to have size at least 5 at dimension 1, but got size 4 for argument #2",
                 "input_length": "Expected input_lengths to have value at most 6, but got value 7", "lengths": ""}[name]
        case.error(f"ctc_loss_{name}", "ctc_loss.IntList", logp, targets, *arguments, words=words)
    case.error("ctc_loss_blank_range", "ctc_loss.IntList", logp, targets, [6, 6, 6], [3, 2, 1], 5)


def activations(case, t):
    for op, python in (("log_sigmoid", None), ("logsigmoid", F.logsigmoid), ("softshrink", None), ("hardshrink", None),
                       ("softsign", F.softsign), ("tanhshrink", F.tanhshrink), ("swish", F.silu), ("rrelu", None)):
        case(f"{op}_f32", op, t.f32(3, 4), grad=True, python=python)
        case(f"{op}_rank0", op, t.f32(), grad=True, python=python)
        case(f"{op}_empty", op, t.f32(0, 2), grad=True, python=python)
        case(f"{op}_bf16", op, t.bf16(5), python=python)
        case(f"{op}_edges", op, t.values([0.0, 0.5, -0.5, 30.0, -30.0]), python=python)
    case("softshrink_lambd", "softshrink", t.f32(6), 1, grad=True)
    case("hardshrink_lambd", "hardshrink", t.f32(6), 1, grad=True)
    for op in ("hardshrink_backward", "softshrink_backward"):
        case(f"{op}_half", op, t.f32(6), t.f32(6), 0.5, grad=[0])
        case(f"{op}_one", op, t.f32(2, 3), t.f32(2, 3), 1, grad=[0])
    case("hardshrink_nan", "hardshrink", t.values([float("nan"), INF, -INF]))
    case("rrelu_bounds", "rrelu", t.f32(6), 0.25, 0.5, grad=True)
    case("rrelu_train_one_slope", "rrelu", t.f32(6), 0.25, 0.25, True, grad=True)
    for dim in (0, -1):
        case(f"softmin_{dim}", "softmin", t.f32(3, 4), dim, grad=True, python=F.softmin)
    case("softmin_dtype", "softmin", t.f32(3, 4), 1, dtype=torch.float64, python=F.softmin)
    case.error("softshrink_negative", "softshrink", t.f32(3), -1)
    for op in ("softshrink", "hardshrink", "log_sigmoid"):
        case.error(f"{op}_s64", op, t.s64(3), words="not implemented for 'Long'")
    case.error("rrelu_order", "rrelu", t.f32(3), 0.5, 0.25, True)
    for op in ("alpha_dropout", "feature_dropout", "feature_alpha_dropout"):
        case(f"{op}_eval", op, t.f32(2, 3), 0.5, False, grad=True)
        case(f"{op}_nothing", op, t.f32(2, 3), 0.0, True, grad=True)
        case(f"{op}_all", op, t.f32(2, 3), 1.0, True, grad=True)
        case.error(f"{op}_probability", op, t.f32(2, 3), 1.5, True)
    case.error("feature_dropout_rank", "feature_dropout", t.f32(3), 0.5, True)


def recurrent(case, t):
    for op, gates in (("lstm_cell", 4), ("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1)):
        hx = [t.f32(2, 3), t.f32(2, 3)] if gates == 4 else t.f32(2, 3)
        w = [t.f32(3 * gates, 4), t.f32(3 * gates, 3)]
        case(f"{op}_plain", op, t.f32(2, 4), hx, *w, grad=True)
        case(f"{op}_biases", op, t.f32(2, 4), hx, *w, t.f32(3 * gates), t.f32(3 * gates), grad=True)
        one = [t.f32(3, 3), t.f32(3, 3)] if gates == 4 else t.f32(3, 3)
        case.error(f"{op}_batch", op, t.f32(2, 4), one, *w)
        case.error(f"{op}_input_size", op, t.f32(2, 3), hx, *w)
    case.error("lstm_cell_states", "lstm_cell", t.f32(3, 4), [t.f32(3, 5)], t.f32(20, 4), t.f32(20, 5))
    for op, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
        def weights(layers, directions, biases, hidden=2, projected=0, features=3):
            out = []
            for layer in range(layers):
                for _ in range(directions):
                    state = projected or hidden
                    out += [t.f32(hidden * gates, features if layer == 0 else state * directions),
                            t.f32(hidden * gates, state)]
                    out += [t.f32(hidden * gates), t.f32(hidden * gates)] if biases else []
                    out += [t.f32(projected, hidden)] if projected else []
            return out

        def states(cells, hidden=2, projected=0):
            h = t.f32(cells, 2, projected or hidden)
            return [h, t.f32(cells, 2, hidden)] if gates == 4 else h

        name = f"{op}.input"
        case(f"{op}_one_layer", name, t.f32(4, 2, 3), states(1), weights(1, 1, True), True, 1, 0.0, False, False, False,
             grad=True)
        case(f"{op}_two_layers_both_ways", name, t.f32(3, 2, 3), states(4), weights(2, 2, True), True, 2, 0.0, False,
             True, False, grad=True)
        case(f"{op}_batch_first_no_biases", name, t.f32(2, 3, 3), states(2), weights(2, 1, False), False, 2, 0.5, False,
             False, True, grad=True)
        case(f"{op}_one_step", name, t.f32(1, 2, 3), states(1), weights(1, 1, True), True, 1, 0.0, True, False, False,
             grad=True)
        case.error(f"{op}_parameters", name, t.f32(4, 2, 3), states(1), weights(1, 1, False)[:1], False, 1, 0.0, False,
                   False, False)
        sizes = t.values([3, 2, 2, 1], "s64")
        three = lambda cells: [t.f32(cells, 3, 2), t.f32(cells, 3, 2)] if gates == 4 else t.f32(cells, 3, 2)
        case(f"{op}_packed", f"{op}.data", t.f32(8, 3), sizes, three(1), weights(1, 1, True), True, 1, 0.0, False, False,
             grad=True)
        case(f"{op}_packed_both_ways", f"{op}.data", t.f32(8, 3), sizes, three(4), weights(2, 2, False), False, 2, 0.0,
             False, True, grad=True)
        if gates == 4:
            case("lstm_projected", name, t.f32(3, 2, 3), states(2, 3, 2), weights(1, 2, True, 3, 2), True, 1, 0.0,
                 False, True, False, grad=True)
            case.error("lstm_states", name, t.f32(4, 2, 3), states(1)[:1], weights(1, 1, False), False, 1, 0.0, False,
                       False, False)


def embedding_bags(case, t):
    indices, offsets = t.values([0, 3, 1, 1, 2, 4, 0], "s64"), t.values([0, 2, 2, 5], "s64")
    ends = t.values([0, 2, 2, 5, 7], "s64")
    for mode in (0, 1, 2):
        weight = t.distinct(5, 3)
        case(f"embedding_bag_{mode}", "embedding_bag", weight, indices, offsets, False, mode, grad=[0])
        case(f"embedding_bag_ends_{mode}", "embedding_bag", weight, indices, ends, False, mode, False, None, True,
             grad=[0])
        case(f"embedding_bag_padding_{mode}", "embedding_bag.padding_idx", weight, indices, offsets, False, mode, False,
             None, False, 1, grad=[0])
        case(f"private_embedding_bag_{mode}", "_embedding_bag", weight, indices, offsets, False, mode, grad=[0])
        case(f"private_embedding_bag_s32_{mode}", "_embedding_bag", weight, indices.int(), offsets.int(), False, mode)
        case(f"embedding_bag_forward_only_{mode}", "_embedding_bag_forward_only", weight, indices, offsets, False, mode)
        case(f"embedding_bag_forward_only_padding_{mode}", "_embedding_bag_forward_only", weight, indices, offsets,
             False, mode, False, None, False, 3)
    case("embedding_bag_weighted", "embedding_bag", t.f32(5, 3), indices, offsets, False, 0, False, t.f32(7),
         grad=[0, 3])
    # Equal frequencies: torch 1.13 divides by those of other rows.
    case("embedding_bag_by_frequency", "embedding_bag", t.f32(3, 2), t.values([0, 2, 1, 1, 2, 0], "s64"),
         t.values([0, 2], "s64"), True, 0, grad=[0])
    case.error("embedding_bag_weighted_mean", "embedding_bag", t.f32(5, 3), indices, offsets, False, 1, False, t.f32(7))


def padding_and_resizing(case, t):
    x = t.f32(1, 2, 2, 3, 3)
    for op in ("reflection_pad3d", "replication_pad3d"):
        case(f"{op}_batch", op, x, [1, 2, 0, 1, 1, 1], grad=True)
        case(f"{op}_unbatched", op, x[0], [0, 1, 2, 1, 1, 0], grad=True)
    for mode in ("constant", "reflect", "replicate", "circular"):
        case(f"pad_{mode}_1d", "pad", t.f32(1, 2, 4), [1, 2], mode, None, grad=True)
        case(f"pad_{mode}_2d", "pad", t.f32(1, 2, 3, 4), [1, 2, 0, 1], mode, None, grad=True)
        case(f"pad_{mode}_3d", "pad", x, [1, 1, 0, 2, 1, 0], mode, None, grad=True)
    case("pad_circular_private", "_pad_circular", t.f32(1, 1, 4), [2, 1], grad=True)
    case("pad_circular_private_2d", "_pad_circular", t.f32(1, 1, 3, 3), [1, 0, 0, 3], grad=True)
    case("pad_value", "pad", t.f32(2, 3), [1, -1, 2, 0], "constant", 1.5, grad=True)
    case.error("pad_odd", "pad", t.f32(3, 2), [1, 1, 1], "reflect", None)
    case.error("pad_mode", "pad", t.f32(3, 2), [1, 1], "xx", None)
    case.error("pad_value_of_mode", "pad", t.f32(3, 2), [1, 1], "circular", 1.0)
    for op, n, aligned in (("upsample_nearest1d", 1, False), ("upsample_nearest3d", 3, False),
                           ("_upsample_nearest_exact1d", 1, False), ("_upsample_nearest_exact2d", 2, False),
                           ("_upsample_nearest_exact3d", 3, False), ("upsample_linear1d", 1, True), ("upsample_trilinear3d", 3, True),
                           ("upsample_bicubic2d", 2, True), ("upsample_bilinear2d", 2, True)):
        x = t.f32(1, 3 - (n + 1) // 2, *[4, 3, 2][:n])
        for corners in ([False], [True]) if aligned else ([],):
            name = op + ("_aligned" if corners == [True] else "")
            case(f"{name}_larger", op, x, [7, 4, 3][:n], *corners, grad=True)
            case(f"{name}_smaller", op, x, [2, 2, 1][:n], *corners, grad=True)
            case(f"{name}_scales", op, x, [6, 4, 3][:n], *corners, *[1.6] * n, grad=True)
            case(f"{name}_vec_size", f"{op}.vec", x, [5, 6, 3][:n], *corners, None, grad=True)
            case(f"{name}_vec_factors", f"{op}.vec", x, None, *corners, [2.0, 1.5, 2.5][:n], grad=True)
            case(f"{name}_backward", f"{op}_backward", t.f32(1, x.size(1), *[7, 4, 3][:n]), [7, 4, 3][:n], list(x.shape),
                 *corners, grad=True)
            case(f"{name}_backward_scales", f"{op}_backward", t.f32(1, x.size(1), *[6, 4, 3][:n]), [6, 4, 3][:n],
                 list(x.shape), *corners, *[1.6] * n)
    case.error("upsample_nearest1d_sizes", "upsample_nearest1d", t.f32(3, 2, 2), [4, 4])


def images(case, t):
    options = {"plain": ([2, 2], [1, 1], [0, 0], [1, 1]), "padded": ([3, 2], [1, 1], [1, 2], [2, 1]),
               "dilated": ([2, 2], [2, 1], [1, 0], [1, 2])}
    for name, (kernel, dilation, padding, stride) in options.items():
        x = t.f32(2, 2, 4, 3)
        columns = torch.ops.aten.im2col(x, kernel, dilation, padding, stride)
        case(f"im2col_{name}", "im2col", x, kernel, dilation, padding, stride, grad=True)
        case(f"im2col_{name}_unbatched", "im2col", x[0], kernel, dilation, padding, stride, grad=True)
        case(f"col2im_{name}", "col2im", columns, [4, 3], kernel, dilation, padding, stride, grad=True)
        case(f"col2im_{name}_unbatched", "col2im", columns[0], [4, 3], kernel, dilation, padding, stride, grad=True)
    one, none = [1, 1], [0, 0]
    case.error("im2col_kernel", "im2col", t.f32(1, 1, 4, 4), [5, 2], one, none, one)
    case.error("col2im_channels", "col2im", t.f32(1, 5, 9), [4, 4], [2, 2], one, none, one)
    case.error("col2im_blocks", "col2im", t.f32(1, 4, 8), [4, 4], [2, 2], one, none, one)
    case("pixel_shuffle_2", "pixel_shuffle", t.f32(2, 8, 2, 3), 2, grad=True, exact=True)
    case("pixel_shuffle_5d", "pixel_shuffle", t.f32(1, 2, 9, 1, 2), 3, grad=True, exact=True)
    case("pixel_unshuffle_2", "pixel_unshuffle", t.f32(2, 4, 6), 2, grad=True, exact=True)
    case("pixel_unshuffle_3", "pixel_unshuffle", t.f32(1, 2, 3, 6), 3, grad=True, exact=True)
    case("pixel_shuffle_s64", "pixel_shuffle", t.s64(4, 1, 2), 2)

    def shuffled(self, groups):  # torch 1.13 has no derivative of its own op
        return self.unflatten(1, (groups, self.size(1) // groups)).transpose(1, 2).flatten(1, 2)

    for op in ("channel_shuffle", "native_channel_shuffle"):
        case(f"{op}_2", op, t.f32(2, 6, 2, 2), 2, exact=True)
        case(f"{op}_3", op, t.f32(1, 6, 3), 3, exact=True)
        case(f"{op}_gradient", op, t.f32(1, 4, 3), 2, grad=True, exact=True, python=shuffled)
    case.error("pixel_shuffle_rank", "pixel_shuffle", t.f32(3, 4), 2)
    case.error("pixel_shuffle_divide", "pixel_shuffle", t.f32(3, 4, 4), 2)
    case.error("pixel_shuffle_factor", "pixel_shuffle", t.f32(4, 4, 4), 0)
    case.error("pixel_unshuffle_divide", "pixel_unshuffle", t.f32(4, 5, 4), 2)
    case.error("channel_shuffle_divide", "channel_shuffle", t.f32(1, 5, 4), 2)
    case.error("channel_shuffle_rank", "channel_shuffle", t.f32(1, 5), 2)
    for corners in (False, True):
        suffix = "_aligned" if corners else ""
        case(f"affine_grid_2d{suffix}", "affine_grid_generator", t.f32(2, 2, 3), [2, 1, 3, 4], corners, grad=True)
        case(f"affine_grid_3d{suffix}", "affine_grid_generator", t.f32(1, 3, 4), [1, 1, 2, 3, 2], corners, grad=True)
        case(f"affine_grid_one{suffix}", "affine_grid_generator", t.f32(1, 2, 3), [1, 1, 1, 2], corners, grad=True)
        for padding, kind in enumerate(("zeros", "border", "reflection")):
            for interpolation, how in enumerate(("bilinear", "nearest", "bicubic")):
                name = f"{how}_{kind}{suffix}"
                options = (interpolation, padding, corners)
                x, grid = t.f32(1, 2, 3, 4), t.f32(1, 2, 3, 2, low=-1.5, high=1.5)
                case(f"grid_sampler_2d_{name}", "grid_sampler_2d", x, grid, *options, grad=True)
                if interpolation < 2:
                    case(f"grid_sampler_3d_{name}", "grid_sampler_3d", t.f32(1, 1, 2, 3, 2),
                         t.f32(1, 1, 2, 2, 3, low=-1.5, high=1.5), *options, grad=True)
        case(f"grid_sampler{suffix}", "grid_sampler", t.f32(2, 1, 3, 3), t.f32(2, 2, 2, 2, low=-1, high=1), 0, 0,
             corners, grad=True)
        case(f"grid_sampler_volume{suffix}", "grid_sampler", t.f32(1, 1, 2, 2, 2), t.f32(1, 1, 1, 3, 3), 0, 1, corners,
             grad=True)
    case.error("affine_grid_size", "affine_grid_generator", t.f32(1, 2, 3), [1, 3], True)
    x = t.f32(1, 2, 3, 3)
    case.error("grid_sampler_batch", "grid_sampler", x, t.f32(2, 3, 3, 2), 0, 0, True,
               words="to have same batch size, but got input with sizes [1, 2, 3, 3] and grid with sizes [2, 3, 3, 2]")
    case.error("grid_sampler_last", "grid_sampler", x, t.f32(1, 3, 3, 3), 0, 0, True)
    case.error("grid_sampler_no_pixels", "grid_sampler", t.f32(1, 2, 3, 0), t.f32(1, 3, 3, 2), 0, 0, True)
    case.error("grid_sampler_bicubic_volume", "grid_sampler", t.f32(1, 1, 2, 2, 2), t.f32(1, 1, 1, 1, 3), 2, 0, True)


def quantization(case, t):
    x = t.f32(3, 4)
    case("fake_quantize_tensor", "fake_quantize_per_tensor_affine", x, 0.1, 3, 0, 15, grad=True)
    case("fake_quantize_tensor_signed", "fake_quantize_per_tensor_affine", x, 0.03, 0, -128, 127, grad=True)
    case("fake_quantize_tensor_mask", "fake_quantize_per_tensor_affine_cachemask", x, 0.1, 3, 0, 15, grad=True)
    case("fake_quantize_tensor_mask_signed", "fake_quantize_per_tensor_affine_cachemask", x, 0.25, 0, -4, 3, grad=True)
    for scale, zero in ((0.125, 2), (0.03, 7)):
        case(f"fake_quantize_tensors_{zero}", "fake_quantize_per_tensor_affine.tensor_qparams", x, t.values([scale]),
             t.values([zero], "s32"), 0, 15, grad=[0])
    for axis, zeros in ((0, [1, 0, 5]), (1, [0, 3, 7, 2])):
        arguments = (x, t.f32(len(zeros), low=0.0625, high=0.25), t.values(zeros, "s32"), axis, 0, 15)
        case(f"fake_quantize_channel_{axis}", "fake_quantize_per_channel_affine", *arguments, grad=[0], exact=True)
        case(f"fake_quantize_channel_mask_{axis}", "fake_quantize_per_channel_affine_cachemask", *arguments, grad=[0],
             exact=True)
    case.error("fake_quantize_range", "fake_quantize_per_tensor_affine", x, 0.1, 0, 10, 5,
               words="`quant_min` should be less than or")
    case.error("fake_quantize_zero_point", "fake_quantize_per_tensor_affine", x, 0.1, 20, 0, 5)
    case.error("fake_quantize_channel_sizes", "fake_quantize_per_channel_affine", x, t.f32(2), t.s32(2), 0, 0, 5)
    case.error("fake_quantize_channel_type", "fake_quantize_per_channel_affine", x, t.f32(4), t.s64(4), 1, 0, 5)


def calls(case, t):
    for family in (convolutions, norms, attention, pooling, losses, ctc, activations, recurrent, embedding_bags,
                   padding_and_resizing, images, quantization):
        family(case, t)
