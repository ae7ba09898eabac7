# SPDX-License-Identifier: Apache-2.0
"""HLO of training steps: a loop over layers forward, one backward, gradients and an optimizer, sharded by hand.

The programs are those of one device. `shard` devices split every weight; a layer's weights are gathered when it
starts and its gradients reduce-scattered when it ends, as in fully sharded data parallelism.
"""
import models
from models import REGIONS, Builder, attention_kernel, commas, norm, typed


class Layer:
    """Shapes of a transformer layer: name -> (rows, columns)."""

    def __init__(self, d, heads, kv, hd, ff, gated, block=512):
        self.d, self.heads, self.kv, self.hd, self.ff, self.gated, self.block = d, heads, kv, hd, ff, gated, block
        self.weights = {"qkv": (d, (heads + 2 * kv) * hd), "o": (heads * hd, d),
                        "up": (d, ff * (2 if gated else 1)), "down": (ff, d)}


def gathered(b, stacked, index, size, shard, kind="bf16"):
    """Layer `index` of weights stacked as [layers, rows / shard, columns], unsharded and in bf16."""
    layers, rows, columns = models.dims(stacked)
    zero = b.scalar(0, "s32")
    piece = b.emit(f"f32[1,{rows},{columns}]", f"dynamic-slice({stacked[0]}, {index[0]}, {zero[0]}, {zero[0]}), dynamic_slice_sizes={{1,{rows},{columns}}}")
    piece = b.convert(b.reshape(piece, f"f32[{rows},{columns}]"), kind)
    if shard == 1:
        return piece
    return b.emit(f"{kind}[{rows * shard},{columns}]", f"all-gather({piece[0]}), dimensions={{0}}, replica_groups={{{{{commas(range(shard))}}}}}")


def attend(b, qkv, layer, batch, seq, kernel, causal, backward=False, given=None):
    tokens = batch * seq
    width, kv_width = layer.heads * layer.hd, layer.kv * layer.hd
    cuts = [0, width, width + kv_width, width + 2 * kv_width]
    q, k, v = [b.emit(f"bf16[{tokens},{cuts[i + 1] - cuts[i]}]", f"slice({qkv[0]}), slice={{[0:{tokens}], [{cuts[i]}:{cuts[i + 1]}]}}") for i in range(3)]
    if kernel:
        scores = batch * layer.heads * seq * seq // (2 if causal else 1)
        name = "splash_mha_dkv_no_residuals" if backward else "splash_mha_fwd_residuals"
        return attention_kernel(b, q, k, v, (10 if backward else 4) * scores * layer.hd, scores, name, layer.block)
    shape = f"bf16[{batch},{seq},{layer.heads},{layer.hd}]"
    q, k, v = [b.reshape(t, shape) for t in (q, k, v)]
    p = (given or {}).get("p")
    if not p:
        s = b.dot(q, k, [3], [3], [0, 2], [0, 2])
        e = b.unary("exponential", b.binary("subtract", s, b.broadcast(b.reduce(s, [3], "max"), s[1], [0, 1, 2])))
        p = b.binary("divide", e, b.broadcast(b.reduce(e, [3]), s[1], [0, 1, 2]))
    if given is not None:
        given["p"] = p
    a = b.dot(p, v, [3], [1], [0, 1], [0, 2])
    if backward:
        # Gradients with respect to the probabilities, the scores, and each operand.
        dp = b.dot(a, v, [3], [3], [0, 1], [0, 2])
        inner = b.reduce(b.binary("multiply", dp, p), [3])
        ds = b.binary("multiply", b.binary("subtract", dp, b.broadcast(inner, dp[1], [0, 1, 2])), p)
        dv = b.dot(p, a, [2], [2], [0, 1], [0, 1])
        dq = b.dot(ds, k, [3], [1], [0, 1], [0, 2])
        dk = b.dot(ds, q, [2], [1], [0, 1], [0, 2])
        a = b.binary("add", dv, b.binary("add", dq, dk))
    return b.reshape(a, f"bf16[{tokens},{width}]")


def forward_layer(b, x, weights, layer, batch, seq, kernel, causal, given=None):
    """The values of a layer; those that the backward pass needs by name. Given ones are not recomputed."""
    given = dict(given or {})
    tokens = batch * seq
    scale = b.broadcast(b.scalar(1, "bf16"), f"bf16[{layer.d}]", [])
    h1 = norm(b, x, scale)
    qkv = given.get("qkv") or b.dot(h1, weights["qkv"], [1], [0])
    a = given.get("a") or attend(b, qkv, layer, batch, seq, kernel, causal, given=given)
    x = given.get("x2") or b.binary("add", x, b.dot(a, weights["o"], [1], [0]))
    h2 = norm(b, x, scale)
    up = given.get("up") or b.dot(h2, weights["up"], [1], [0])
    if layer.gated:
        gate, value = [b.emit(f"bf16[{tokens},{layer.ff}]", f"slice({up[0]}), slice={{[0:{tokens}], [{n * layer.ff}:{(n + 1) * layer.ff}]}}") for n in (0, 1)]
        act = b.binary("multiply", b.binary("multiply", gate, b.unary("logistic", gate)), value)
    else:
        act = b.binary("multiply", up, b.unary("tanh", up))
    out = b.binary("add", x, b.dot(act, weights["down"], [1], [0]))
    return out, dict(h1=h1, qkv=qkv, a=a, x2=x, h2=h2, act=act, up=up, **({"p": given["p"]} if "p" in given else {}))


def backward_layer(b, dy, saved, weights, layer, batch, seq, kernel, causal):
    tokens = batch * seq
    grads = {"down": b.dot(saved["act"], dy, [0], [0])}
    dact = b.dot(dy, weights["down"], [1], [1])
    if layer.gated:
        half = b.binary("multiply", dact, b.unary("logistic", dact))
        dup = b.emit(f"bf16[{tokens},{2 * layer.ff}]", f"concatenate({half[0]}, {dact[0]}), dimensions={{1}}")
    else:
        dup = b.binary("multiply", dact, b.unary("tanh", saved["up"]))
    grads["up"] = b.dot(saved["h2"], dup, [0], [0])
    scale = b.broadcast(b.scalar(1, "bf16"), f"bf16[{layer.d}]", [])
    dx = b.binary("add", dy, norm(b, b.dot(dup, weights["up"], [1], [1]), scale))
    grads["o"] = b.dot(saved["a"], dx, [0], [0])
    da = b.dot(dx, weights["o"], [1], [1])
    mixed = b.emit(saved["qkv"][1], f"pad({da[0]}, {b.scalar(0, 'bf16')[0]}), padding=0_0x0_{models.dims(saved['qkv'])[1] - models.dims(da)[1]}")
    dqkv_in = b.binary("add", saved["qkv"], mixed)
    dattention = attend(b, dqkv_in, layer, batch, seq, kernel, causal, backward=True, given={"p": saved["p"]} if "p" in saved else None)
    dqkv = b.emit(saved["qkv"][1], f"pad({dattention[0]}, {b.scalar(0, 'bf16')[0]}), padding=0_0x0_{models.dims(saved['qkv'])[1] - models.dims(dattention)[1]}")
    grads["qkv"] = b.dot(saved["h1"], dqkv, [0], [0])
    dx = b.binary("add", dx, norm(b, b.dot(dqkv, weights["qkv"], [1], [1]), scale))
    return dx, grads


def adam(b, pairs, devices, kind):
    """New moments and weights of each (weight, gradient), after summing the gradients over the devices."""
    outputs = []
    for w, g in pairs:
        if devices > 1:
            g = b.emit(g[1], f"all-reduce({g[0]}), replica_groups={{{{{commas(range(devices))}}}}}, to_apply=sum_{kind}")
        if models.kind(g) != "f32":
            g = b.convert(g, "f32")
        m, v = b.param(w[1]), b.param(w[1])
        decay = b.broadcast(b.scalar(0.9, "f32"), w[1], [])
        m2 = b.binary("add", b.binary("multiply", m, decay), g)
        v2 = b.binary("add", b.binary("multiply", v, decay), b.binary("multiply", g, g))
        outputs += [m2, v2, b.binary("subtract", w, b.binary("multiply", m2, b.unary("rsqrt", v2)))]
    return outputs


def training(layers, layer, vocab, batch, seq, shard, kept=(), kernel=True, causal=True, data_parallel=1, head_rows=None):
    """A step of one device: `batch` sequences, weights over `shard` devices, gradients summed over `data_parallel`.
    Values of a layer that are not in `kept` are recomputed in the backward pass."""
    tokens = batch * seq
    names = list(layer.weights)
    x_shape = f"bf16[{tokens},{layer.d}]"
    stack = {n: f"f32[{layers},{layer.weights[n][0] // shard},{layer.weights[n][1]}]" for n in names}
    group = f"replica_groups={{{{{commas(range(shard))}}}}}, to_apply=sum_bf16"

    def make_loop(name, state, body_of):
        tuple_ = f"({', '.join(['s32[]'] + state)})"
        b = Builder(name)
        p = b.emit(tuple_, "parameter(0)", "p")
        i = b.emit("s32[]", f"get-tuple-element({p[0]}), index=0")
        values = [b.emit(s, f"get-tuple-element({p[0]}), index={k + 1}") for k, s in enumerate(state)]
        following = b.binary("add", i, b.scalar(1, "s32"))
        results = body_of(b, i, values)
        b.root(tuple_, f"tuple({', '.join(v[0] for v in [following] + results)})")
        condition = f"""{name}_cond {{
  p = {tuple_} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant({layers})
  ROOT c = pred[] compare(i, n), direction=LT
}}
"""
        return tuple_, condition + b.text()

    keep = f"bf16[{layers},{tokens},{layer.d}]"
    sizes = {"qkv": [tokens, layer.weights["qkv"][1]], "a": [tokens, layer.heads * layer.hd], "x2": [tokens, layer.d],
             "up": [tokens, layer.weights["up"][1]], "p": [batch, layer.heads, seq, seq]}
    stacks = [typed("bf16", [layers] + sizes[n]) for n in kept]

    def slot(b, i, rank=3):
        zero = b.scalar(0, "s32")
        return ", ".join([i[0]] + [zero[0]] * (rank - 1))

    def forward(b, i, values):
        x, inputs = values[0], values[1]
        weights = {n: gathered(b, values[2 + k], i, layer, shard) for k, n in enumerate(names)}
        piece = b.reshape(x, f"bf16[1,{tokens},{layer.d}]")
        inputs = b.emit(keep, f"dynamic-update-slice({inputs[0]}, {piece[0]}, {slot(b, i)})")
        out, made = forward_layer(b, x, weights, layer, batch, seq, kernel, causal)
        at = 2 + len(names)
        stored = []
        for k, n in enumerate(kept):
            piece = b.reshape(made[n], typed("bf16", [1] + sizes[n]))
            stored.append(b.emit(stacks[k], f"dynamic-update-slice({values[at + k][0]}, {piece[0]}, {slot(b, i, 1 + len(sizes[n]))})"))
        return [out, inputs] + values[2:at] + stored

    def backward(b, i, values):
        dy, inputs = values[0], values[1]
        stacked = values[2:2 + len(names)]
        grads = values[2 + len(names):2 + 2 * len(names)]
        stored = values[2 + 2 * len(names):]
        last = b.binary("subtract", b.scalar(layers - 1, "s32"), i)
        weights = {n: gathered(b, stacked[k], last, layer, shard) for k, n in enumerate(names)}
        x = b.emit(f"bf16[1,{tokens},{layer.d}]", f"dynamic-slice({inputs[0]}, {slot(b, last)}), dynamic_slice_sizes={{1,{tokens},{layer.d}}}")
        given = {}
        for k, n in enumerate(kept):
            size = [1] + sizes[n]
            piece = b.emit(typed("bf16", size), f"dynamic-slice({stored[k][0]}, {slot(b, last, len(size))}), dynamic_slice_sizes={{{commas(size)}}}")
            given[n] = b.reshape(piece, typed("bf16", sizes[n]))
        _, saved = forward_layer(b, b.reshape(x, x_shape), weights, layer, batch, seq, kernel, causal, given)
        dx, new = backward_layer(b, dy, saved, weights, layer, batch, seq, kernel, causal)
        out = []
        for k, n in enumerate(names):
            g = new[n]
            rows, columns = layer.weights[n]
            if shard > 1:
                g = b.emit(f"bf16[{rows // shard},{columns}]", f"reduce-scatter({g[0]}), dimensions={{0}}, {group}")
            g = b.reshape(b.convert(g, "f32"), f"f32[1,{rows // shard},{columns}]")
            out.append(b.emit(stack[n], f"dynamic-update-slice({grads[k][0]}, {g[0]}, {slot(b, last)})"))
        return [dx, inputs] + stacked + out + stored

    weights_state = [stack[n] for n in names]
    f_tuple, f_text = make_loop("forward", [x_shape, keep] + weights_state + stacks, forward)
    g_tuple, g_text = make_loop("backward", [x_shape, keep] + weights_state + weights_state + stacks, backward)
    b = Builder("main", True)
    x = b.param(x_shape)
    inputs = b.broadcast(b.scalar(0, "bf16"), keep, [])
    stored = [b.broadcast(b.scalar(0, "bf16"), shape, []) for shape in stacks]
    weights = [b.param(stack[n]) for n in names]
    zero = b.scalar(0, "s32")
    init = b.emit(f_tuple, f"tuple({', '.join(v[0] for v in [zero, x, inputs] + weights + stored)})")
    done = b.emit(f_tuple, f"while({init[0]}), condition=forward_cond, body=forward")
    x = b.emit(x_shape, f"get-tuple-element({done[0]}), index=1")
    inputs = b.emit(keep, f"get-tuple-element({done[0]}), index=2")
    stored = [b.emit(shape, f"get-tuple-element({done[0]}), index={3 + len(names) + k}") for k, shape in enumerate(stacks)]
    # Head and loss over the rows that have a label.
    rows = head_rows or tokens
    if rows < tokens:
        x_head = b.emit(f"bf16[{rows},{layer.d}]", f"slice({x[0]}), slice={{[0:{rows}], [0:{layer.d}]}}")
    else:
        x_head = x
    part = b.param(f"f32[{layer.d // shard},{vocab}]")
    head = b.convert(part, "bf16")
    if shard > 1:
        head = b.emit(f"bf16[{layer.d},{vocab}]", f"all-gather({head[0]}), dimensions={{0}}, replica_groups={{{{{commas(range(shard))}}}}}")
    logits = b.dot(x_head, head, [1], [0])
    f = b.convert(logits, "f32")
    e = b.unary("exponential", b.binary("subtract", f, b.broadcast(b.reduce(f, [1], "max"), f[1], [0])))
    dlogits = b.convert(b.binary("divide", e, b.broadcast(b.reduce(e, [1]), f[1], [0])), "bf16")
    dhead = b.dot(x_head, dlogits, [0], [0])
    dx = b.dot(dlogits, head, [1], [1])
    if rows < tokens:
        dx = b.emit(x_shape, f"pad({dx[0]}, {b.scalar(0, 'bf16')[0]}), padding=0_{tokens - rows}x0_0")
    if shard > 1:
        dhead = b.emit(f"bf16[{layer.d // shard},{vocab}]", f"reduce-scatter({dhead[0]}), dimensions={{0}}, {group}")
    empty = [b.broadcast(b.scalar(0, "f32"), stack[n], []) for n in names]
    init = b.emit(g_tuple, f"tuple({', '.join(v[0] for v in [zero, dx, inputs] + weights + empty + stored)})")
    done = b.emit(g_tuple, f"while({init[0]}), condition=backward_cond, body=backward")
    pairs = [(w, b.emit(stack[n], f"get-tuple-element({done[0]}), index={3 + len(names) + k}")) for k, (n, w) in enumerate(zip(names, weights))]
    pairs.append((part, b.convert(dhead, "f32")))
    outputs = adam(b, pairs, data_parallel, "f32")
    b.root(f"({', '.join(v[1] for v in outputs)})", f"tuple({', '.join(v[0] for v in outputs)})")
    return f"HloModule training\n{REGIONS}\n{f_text}\n\n{g_text}\n\n{b.text()}\n"


# The published recipes keep a layer's input, q, k, v and the output of the projection after attention. The attention
# that goes into the gradient of that projection's weights is computed again.
KEPT = ("qkv", "x2")


def llama_8b(batch, shard):
    return training(32, Layer(4096, 32, 8, 128, 14336, True, block=2048), 128256, batch, 8192, shard, kept=KEPT)


def qwen3_8b(batch, seq, shard):
    return training(36, Layer(4096, 32, 8, 128, 12288, True, block=2048), 151936, batch, seq, shard, kept=KEPT)


def encoder_norm(b, x, scale, shift):
    """Layer normalization in f32, and the normalized values that its gradient needs."""
    f = b.convert(x, "f32")
    n = b.broadcast(b.scalar(1 / models.dims(x)[1], "f32"), f"f32[{models.dims(x)[0]}]", [])

    def mean(y):
        return b.broadcast(b.binary("multiply", b.reduce(y, [1]), n), f[1], [0])

    centered = b.binary("subtract", f, mean(f))
    hat = b.binary("multiply", centered, b.unary("rsqrt", mean(b.binary("multiply", centered, centered))))
    wide = [b.broadcast(t, f[1], [1]) for t in (scale, shift)]
    return b.convert(b.binary("add", b.binary("multiply", hat, wide[0]), wide[1]), "bf16"), b.convert(hat, "bf16")


def encoder_norm_gradient(b, dy, hat, scale):
    """Gradients of layer normalization: of its operand, but for the deviation of each row, of scale and of shift."""
    d, h = b.convert(dy, "f32"), b.convert(hat, "f32")
    n = b.broadcast(b.scalar(1 / models.dims(dy)[1], "f32"), f"f32[{models.dims(dy)[0]}]", [])
    along = b.binary("multiply", d, b.broadcast(scale, d[1], [1]))

    def mean(y):
        return b.broadcast(b.binary("multiply", b.reduce(y, [1]), n), d[1], [0])

    inner = b.binary("multiply", h, mean(b.binary("multiply", along, h)))
    dx = b.convert(b.binary("subtract", b.binary("subtract", along, mean(along)), inner), "bf16")
    return dx, b.reduce(b.binary("multiply", d, h), [0]), b.reduce(d, [0])


def gelu(b, x, dy=None):
    """GELU by its approximation with tanh, or its gradient."""
    def all_of(value):
        return b.broadcast(b.scalar(value, "bf16"), x[1], [])

    square = b.binary("multiply", x, x)
    cubic = b.binary("add", b.binary("multiply", square, all_of(0.0357)), all_of(0.798))
    t = b.binary("add", b.unary("tanh", b.binary("multiply", x, cubic)), all_of(1))
    half = b.binary("multiply", t, all_of(0.5))
    if dy is None:
        return b.binary("multiply", x, half)
    slope = b.binary("add", b.binary("multiply", square, all_of(0.107)), all_of(0.798))
    bend = b.binary("multiply", b.binary("multiply", x, half), b.binary("subtract", all_of(2), t))
    return b.binary("multiply", dy, b.binary("add", half, b.binary("multiply", bend, slope)))


def lamb(b, pairs, devices, kind):
    """New moments and weights: Adam's step with weight decay, in proportion to the norm of the weights over its own."""
    outputs = []
    for w, g in pairs:
        g = b.emit(g[1], f"all-reduce({g[0]}), replica_groups={{{{{commas(range(devices))}}}}}, to_apply=sum_{models.kind(g)}")
        if models.kind(g) != "f32":
            g = b.convert(g, "f32")

        def all_of(value):
            return b.broadcast(b.scalar(value, "f32"), w[1], [])

        m, v = b.param(w[1]), b.param(w[1])
        m2 = b.binary("add", b.binary("multiply", m, all_of(0.9)), b.binary("multiply", g, all_of(0.1)))
        v2 = b.binary("add", b.binary("multiply", v, all_of(0.999)), b.binary("multiply", b.binary("multiply", g, g), all_of(0.001)))
        step = b.binary("divide", m2, b.binary("add", b.unary("sqrt", v2), all_of(1e-6)))
        step = b.binary("add", step, b.binary("multiply", w, all_of(0.01)))
        every = list(range(len(models.dims(w))))
        norms = [b.unary("sqrt", b.reduce(b.binary("multiply", t, t), every)) for t in (w, step)]
        ratio = b.broadcast(b.binary("divide", norms[0], norms[1]), w[1], [])
        outputs += [m2, v2, b.binary("subtract", w, b.binary("multiply", step, ratio))]
    return outputs


class Encoder:
    """A layer of BERT: biases, normalization after each residual, GELU."""

    def __init__(self, b, layer, batch, seq):
        self.b, self.layer, self.batch, self.seq = b, layer, batch, seq
        self.weights = {n: b.param(typed("f32", s)) for n, s in layer.weights.items()}
        vectors = {"qkv": layer.weights["qkv"][1], "o": layer.d, "up": layer.ff, "down": layer.d}
        vectors.update({f"{n}{k}": layer.d for n in ("scale", "shift") for k in (1, 2)})
        self.vectors = {n: b.param(typed("f32", [size])) for n, size in vectors.items()}
        self.whole = {n: b.convert(w, "bf16") for n, w in self.weights.items()}

    def project(self, x, name):
        product = self.b.dot(x, self.whole[name], [1], [0])
        return self.b.binary("add", product, self.b.broadcast(self.b.convert(self.vectors[name], "bf16"), product[1], [1]))

    def forward(self, x):
        b, v = self.b, self.vectors
        self.x = x
        self.qkv = self.project(x, "qkv")
        self.given = {}
        self.a = attend(b, self.qkv, self.layer, self.batch, self.seq, False, False, given=self.given)
        self.middle, self.hat1 = encoder_norm(b, b.binary("add", x, self.project(self.a, "o")), v["scale1"], v["shift1"])
        self.up = self.project(self.middle, "up")
        self.act = gelu(b, self.up)
        out, self.hat2 = encoder_norm(b, b.binary("add", self.middle, self.project(self.act, "down")), v["scale2"], v["shift2"])
        return out

    def backward(self, dy):
        """Returns the gradient of the layer's operand, and pairs of parameters and their gradients."""
        b, pairs = self.b, []

        def through(name, operand, d):
            pairs.append((self.weights[name], b.dot(operand, d, [0], [0])))
            pairs.append((self.vectors[name], b.reduce(b.convert(d, "f32"), [0])))
            return b.dot(d, self.whole[name], [1], [1])

        def norm_gradient(d, hat, k):
            dx, scale, shift = encoder_norm_gradient(b, d, hat, self.vectors[f"scale{k}"])
            pairs.extend([(self.vectors[f"scale{k}"], scale), (self.vectors[f"shift{k}"], shift)])
            return dx

        d2 = norm_gradient(dy, self.hat2, 2)
        dup = gelu(b, self.up, through("down", self.act, d2))
        d1 = norm_gradient(b.binary("add", d2, through("up", self.middle, dup)), self.hat1, 1)
        da = through("o", self.a, d1)
        widths = models.dims(self.qkv)[1] - models.dims(da)[1]
        zero = b.scalar(0, "bf16")
        mixed = b.binary("add", self.qkv, b.emit(self.qkv[1], f"pad({da[0]}, {zero[0]}), padding=0_0x0_{widths}"))
        inner = attend(b, mixed, self.layer, self.batch, self.seq, False, False, backward=True, given={"p": self.given["p"]})
        dqkv = b.emit(self.qkv[1], f"pad({inner[0]}, {zero[0]}), padding=0_0x0_{widths}")
        return b.binary("add", d1, through("qkv", self.x, dqkv)), pairs


def bert_large(batch, devices, layers=24, seq=512, vocab=30522, masked=76):
    """A data-parallel step that keeps all values, with the loss over the masked positions; without dropout, whose random
    numbers the publication does not describe."""
    b = Builder("main", True)
    layer = Layer(1024, 16, 16, 64, 4096, False)
    rows, x_shape = masked * batch, f"bf16[{batch * seq},{layer.d}]"
    x = b.param(x_shape)
    encoders = []
    for _ in range(layers):
        encoders.append(Encoder(b, layer, batch, seq))
        x = encoders[-1].forward(x)
    part = b.param(f"f32[{layer.d},{vocab}]")
    head = b.convert(part, "bf16")
    chosen = b.emit(f"bf16[{rows},{layer.d}]", f"slice({x[0]}), slice={{[0:{rows}], [0:{layer.d}]}}")
    logits = b.dot(chosen, head, [1], [0])
    e = b.unary("exponential", b.binary("subtract", logits, b.broadcast(b.reduce(logits, [1], "max"), logits[1], [0])))
    dlogits = b.binary("divide", e, b.broadcast(b.reduce(e, [1]), logits[1], [0]))
    pairs = [(part, b.dot(chosen, dlogits, [0], [0]))]
    dx = b.dot(dlogits, head, [1], [1])
    dx = b.emit(x_shape, f"pad({dx[0]}, {b.scalar(0, 'bf16')[0]}), padding=0_{batch * seq - rows}x0_0")
    for encoder in reversed(encoders):
        dx, made = encoder.backward(dx)
        pairs += made
    outputs = lamb(b, pairs, devices, "bf16")
    b.root(f"({', '.join(v[1] for v in outputs)})", f"tuple({', '.join(v[0] for v in outputs)})")
    return f"HloModule training\n{REGIONS}\n{b.text()}\n"
