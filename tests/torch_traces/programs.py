# SPDX-License-Identifier: Apache-2.0
"""Training steps and layers in calls of aten ops. Each function records one on the device and returns the tensors that
live at its end: the roots of its graph (tools/torch_traces.py)."""

import math

import torch

import hlokit.torch as ht

aten = torch.ops.aten


def values(*sizes):
    return (2 * torch.rand(sizes) - 1).to(ht.device())


def parameters(*shapes):
    return [values(*shape).requires_grad_() for shape in shapes]


def constant(value, dtype=None):
    return torch.tensor(value, dtype=dtype).to(ht.device())


def gradients(leaves):
    return [leaf.grad for leaf in leaves]


# ---- a perceptron of two layers, with updates of one optimizer after the other ----


def perceptron(update=None, buffers=0):
    """Linear, relu, Linear, cross entropy, and an update of each parameter: update(p, *buffers of p)."""
    x, target = values(2, 4), constant([1, 0])
    leaves = parameters((8, 4), (8,), (3, 8), (3,))
    states = [[values(*p.shape) for p in leaves] for _ in range(buffers)]
    w1, b1, w2, b2 = leaves
    hidden = aten.relu(aten.linear(x, w1, b1))
    loss = aten.cross_entropy_loss(aten.linear(hidden, w2, b2), target)
    loss.backward()
    made = []
    with torch.no_grad():
        for p, *state in zip(leaves, *states):
            made.extend(update(p, *state) or ())
    return [loss, *leaves, *gradients(leaves), *(buffer for state in states for buffer in state), *made]


def mlp_sgd_plain():
    """Stochastic gradient descent."""

    def update(p):
        p.add_(p.grad, alpha=-0.1)

    return perceptron(update)


def mlp_sgd_first():
    """With momentum, first step: the buffers are made."""

    def update(p):
        momentum = p.grad.clone()
        p.add_(momentum, alpha=-0.1)
        return [momentum]

    return perceptron(update)


def mlp_sgd():
    """With momentum, second step."""

    def update(p, momentum):
        momentum.mul_(0.9).add_(p.grad, alpha=1)
        p.add_(momentum, alpha=-0.1)

    return perceptron(update, buffers=1)


def mlp_sgd_nesterov_decay():
    """With momentum, weight decay and Nesterov."""

    def update(p, momentum):
        decayed = p.grad.add(p, alpha=0.01)
        momentum.mul_(0.9).add_(decayed, alpha=1)
        p.add_(decayed.add(momentum, alpha=0.9), alpha=-0.1)

    return perceptron(update, buffers=1)


def adam(p, mean, square):
    mean.mul_(0.9).add_(p.grad, alpha=0.1)
    square.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
    p.addcdiv_(mean, square.sqrt().div(0.04470).add_(1e-8), value=-0.005)


def mlp_adam_first():
    """With Adam, first step: the averages are made."""

    def update(p):
        mean, square = torch.zeros_like(p), torch.zeros_like(p)
        adam(p, mean, square)
        return [mean, square]

    return perceptron(update)


def mlp_adam():
    """With Adam, second step."""
    return perceptron(adam, buffers=2)


def mlp_adamw():
    """With AdamW, second step: weights shrink first."""

    def update(p, mean, square):
        p.mul_(0.999)
        adam(p, mean, square)

    return perceptron(update, buffers=2)


# ---- layers ----


def layer_norm_gelu():
    """x + Linear(gelu(Linear(LayerNorm(x)))), forward and backward of the sum."""
    x = values(2, 4)
    leaves = parameters((4,), (4,), (8, 4), (8,), (4, 8), (4,))
    lw, lb, w1, b1, w2, b2 = leaves
    normal = aten.native_layer_norm(x, [4], lw, lb, 1e-5)[0]
    loss = aten.sum(aten.add(x, aten.linear(aten.gelu(aten.linear(normal, w1, b1)), w2, b2)))
    loss.backward()
    return [loss, *leaves, *gradients(leaves)]


def embedding_cross_entropy():
    """Embedding with a padding row, Linear, cross entropy that ignores a label."""
    ids, target = constant([[1, 0, 2], [3, 1, 0]]), constant([[1, -100, 2], [0, 1, -100]])
    leaves = parameters((5, 4), (3, 4), (3,))
    table, w, b = leaves
    logits = aten.linear(aten.embedding(table, ids, 0), w, b)
    loss = aten.cross_entropy_loss(aten.view(logits, [6, 3]), aten.view(target, [6]), None, 1, -100)
    loss.backward()
    return [loss, *leaves, *gradients(leaves)]


def cnn_sgd():
    """Convolution, batch norm, relu, max pool, Linear, cross entropy; descent with momentum."""
    x, target = values(2, 3, 8, 8), constant([1, 0])
    leaves = parameters((4, 3, 3, 3), (4,), (4,), (4,), (3, 64), (3,))
    momenta = [values(*p.shape) for p in leaves]
    mean, variance, count = values(4), values(4), constant(1)
    cw, cb, nw, nb, w, b = leaves
    c = aten.convolution(x, cw, cb, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    count.add_(1)
    n = aten.native_batch_norm(c, nw, nb, mean, variance, True, 0.1, 1e-5)[0]
    pooled = aten.max_pool2d_with_indices(aten.relu(n), [2, 2], [2, 2])[0]
    loss = aten.cross_entropy_loss(aten.linear(aten.view(pooled, [2, 64]), w, b), target)
    loss.backward()
    with torch.no_grad():
        for p, momentum in zip(leaves, momenta):
            momentum.mul_(0.9).add_(p.grad, alpha=1)
            p.add_(momentum, alpha=-0.1)
    return [loss, mean, variance, count, *leaves, *gradients(leaves), *momenta]


def pools_group_norm():
    """Grouped convolution with strides, group norm, silu, average pools, Linear, cross entropy; forward and backward."""
    x, target = values(2, 4, 8, 8), constant([1, 0])
    leaves = parameters((8, 2, 3, 3), (8,), (8,), (8,), (3, 8), (3,))
    cw, cb, nw, nb, w, b = leaves
    c = aten.convolution(x, cw, cb, [2, 2], [1, 1], [1, 1], False, [0, 0], 2)
    n = aten.native_group_norm(c, nw, nb, 2, 8, 16, 2, 1e-5)[0]
    pooled = aten.mean(aten.avg_pool2d(aten.silu(n), [2, 2], [2, 2]), [-1, -2], True)
    loss = aten.cross_entropy_loss(aten.linear(aten.reshape(pooled, [2, 8]), w, b), target)
    loss.backward()
    return [loss, *leaves, *gradients(leaves)]


def inplace_views():
    """A row filled, a strided slice multiplied, a row of the transpose added to; relu of a view."""
    (x,) = parameters((4, 6))
    y = aten.mul(x, 2.5)
    aten.select(y, 0, 1).fill_(3.5)
    aten.slice(aten.slice(y, 0, 0, 4, 2), 1, 1, 6, 2).mul_(0.5)
    aten.select(aten.t(y), 0, 2).add_(1.5)
    loss = aten.sum(aten.relu(aten.view(y, [24])))
    loss.backward()
    return [y, loss, x, x.grad]


# ---- blocks of transformers ----


def attend(q, k, v, masked):
    """Attention of tensors [2, heads, 3, 4], whose scores masked() limits; as [2, 3, 8]."""
    weights = aten._softmax(masked(aten.div(aten.matmul(q, aten.transpose(k, -2, -1)), 2)), -1, False)
    return aten.reshape(aten.transpose(aten.matmul(weights, v), 1, 2), [2, 3, 8])


def heads_of(x, heads=2):
    return aten.transpose(aten.view(x, [2, 3, heads, 4]), 1, 2)


def later_positions():
    return constant([[False, True, True], [False, False, True], [False, False, False]])


def bert_layer():
    """An encoder layer that normalizes behind its sums, with an additive mask; forward and backward of the sum."""
    x, mask = values(2, 3, 8), constant([[[[0.0, 0.0, -1000.0]]], [[[0.0, 0.0, 0.0]]]])
    leaves = parameters(*[(8, 8), (8,)] * 4, (8,), (8,), (16, 8), (16,), (8, 16), (8,), (8,), (8,))
    wq, bq, wk, bk, wv, bv, wo, bo, n1w, n1b, w1, b1, w2, b2, n2w, n2b = leaves
    q, k, v = (heads_of(aten.linear(x, w, b)) for w, b in ((wq, bq), (wk, bk), (wv, bv)))
    attention = aten.linear(attend(q, k, v, lambda scores: aten.add(scores, mask)), wo, bo)
    y1 = aten.native_layer_norm(aten.add(x, attention), [8], n1w, n1b, 1e-5)[0]
    z2 = aten.linear(aten.gelu(aten.linear(y1, w1, b1)), w2, b2)
    loss = aten.sum(aten.native_layer_norm(aten.add(y1, z2), [8], n2w, n2b, 1e-5)[0])
    loss.backward()
    return [loss, *leaves, *gradients(leaves)]


def gpt_block():
    """A causal decoder block that normalizes before its layers, gelu by tanh; forward and backward of the sum."""
    x, later = values(2, 3, 8), later_positions()
    leaves = parameters((8,), (8,), (24, 8), (24,), (8, 8), (8,), (8,), (8,), (32, 8), (32,), (8, 32), (8,))
    n1w, n1b, wa, ba, wo, bo, n2w, n2b, w1, b1, w2, b2 = leaves
    y1 = aten.native_layer_norm(x, [8], n1w, n1b, 1e-5)[0]
    q, k, v = (heads_of(part) for part in aten.split(aten.linear(y1, wa, ba), 8, 2))
    attention = aten.linear(attend(q, k, v, lambda scores: aten.masked_fill(scores, later, -math.inf)), wo, bo)
    sum1 = aten.add(x, attention)
    y2 = aten.native_layer_norm(sum1, [8], n2w, n2b, 1e-5)[0]
    loss = aten.sum(aten.add(sum1, aten.linear(aten.gelu(aten.linear(y2, w1, b1), approximate="tanh"), w2, b2)))
    loss.backward()
    return [loss, *leaves, *gradients(leaves)]


def llama_block():
    """A decoder block with RMS norm, rotated positions, shared key heads and a gated feed-forward; forward and backward of
    the sum."""
    x, cos, sin, later = values(2, 3, 8), values(3, 4), values(3, 4), later_positions()
    leaves = parameters((8,), (8, 8), (4, 8), (4, 8), (8, 8), (8,), (16, 8), (16, 8), (8, 16))
    n1, wq, wk, wv, wo, n2, wg, wu, wd = leaves

    def normal(x, weight):
        scale = aten.rsqrt(aten.add(aten.mean(aten.pow(x, 2), [-1], True), 1e-6))
        return aten.mul(weight, aten.mul(x, scale))

    def rotated(x):
        turned = aten.cat([aten.neg(aten.slice(x, 3, 2, 4)), aten.slice(x, 3, 0, 2)], -1)
        return aten.add(aten.mul(x, cos), aten.mul(turned, sin))

    def shared(x):
        return aten.reshape(aten.expand(aten.unsqueeze(x, 2), [2, 1, 2, 3, 4]), [2, 2, 3, 4])

    y1 = normal(x, n1)
    q, k = rotated(heads_of(aten.linear(y1, wq))), rotated(heads_of(aten.linear(y1, wk), 1))
    v = heads_of(aten.linear(y1, wv), 1)
    joined = attend(q, shared(k), shared(v), lambda scores: aten.masked_fill(scores, later, -math.inf))
    sum1 = aten.add(x, aten.linear(joined, wo))
    y2 = normal(sum1, n2)
    both = aten.mul(aten.silu(aten.linear(y2, wg)), aten.linear(y2, wu))
    loss = aten.sum(aten.add(sum1, aten.linear(both, wd)))
    loss.backward()
    return [loss, *leaves, *gradients(leaves)]


PROGRAMS = {
    f.__name__: f
    for f in (bert_layer, cnn_sgd, embedding_cross_entropy, gpt_block, inplace_views, layer_norm_gelu, llama_block, mlp_adam,
              mlp_adam_first, mlp_adamw, mlp_sgd, mlp_sgd_first, mlp_sgd_nesterov_decay, mlp_sgd_plain, pools_group_norm)
}
