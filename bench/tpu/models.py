# SPDX-License-Identifier: Apache-2.0
"""HLO of the programs whose measured times tpu_accuracy.py compares with: matmuls, elementwise loops, transformers."""


class Builder:
    """Text of one computation, one instruction per line."""

    def __init__(self, name, entry=False):
        self.lines = [("ENTRY " if entry else "") + name + " {"]
        self.count = 0
        self.parameters = 0

    def emit(self, shape, text, name=None):
        self.count += 1
        name = name or f"v{self.count}"
        self.lines.append(f"  {name} = {shape} {text}")
        return name, shape

    def param(self, shape):
        self.parameters += 1
        return self.emit(shape, f"parameter({self.parameters - 1})")

    def root(self, shape, text):
        self.lines.append(f"  ROOT root = {shape} {text}")

    def text(self):
        return "\n".join(self.lines + ["}"])

    # Values are (name, shape) pairs; shapes are texts.
    def unary(self, op, x):
        return self.emit(x[1], f"{op}({x[0]})")

    def binary(self, op, x, y):
        return self.emit(x[1], f"{op}({x[0]}, {y[0]})")

    def convert(self, x, to):
        return self.emit(typed(to, dims(x)), f"convert({x[0]})")

    def scalar(self, value, to):
        return self.emit(f"{to}[]", f"constant({value})")

    def broadcast(self, x, shape, where):
        return self.emit(shape, f"broadcast({x[0]}), dimensions={{{commas(where)}}}")

    def reshape(self, x, shape):
        return self.emit(shape, f"reshape({x[0]})")

    def reduce(self, x, over, how="sum"):
        d = dims(x)
        left = [n for i, n in enumerate(d) if i not in over]
        zero = self.scalar(0, kind(x))
        return self.emit(typed(kind(x), left), f"reduce({x[0]}, {zero[0]}), dimensions={{{commas(over)}}}, to_apply={how}_{kind(x)}")

    def dot(self, x, y, xc, yc, xb=(), yb=(), to=None):
        dx, dy = dims(x), dims(y)
        out = [dx[i] for i in xb] + [n for i, n in enumerate(dx) if i not in (*xb, *xc)]
        out += [n for i, n in enumerate(dy) if i not in (*yb, *yc)]
        batch = f"lhs_batch_dims={{{commas(xb)}}}, rhs_batch_dims={{{commas(yb)}}}, " if xb else ""
        return self.emit(typed(to or kind(x), out),
                         f"dot({x[0]}, {y[0]}), {batch}lhs_contracting_dims={{{commas(xc)}}}, rhs_contracting_dims={{{commas(yc)}}}")


def commas(values):
    return ",".join(str(v) for v in values)


def dims(x):
    inside = x[1][x[1].index("[") + 1:-1]
    return [int(n) for n in inside.split(",")] if inside else []


def kind(x):
    return x[1][:x[1].index("[")]


def typed(kind_, sizes):
    return f"{kind_}[{commas(sizes)}]"


REGIONS = "".join(f"""
{name}_{t} {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT r = {t}[] {op}(a, b)
}}
""" for t in ("f32", "bf16") for name, op in (("sum", "add"), ("max", "maximum")))


def loop(state, trips, make):
    """A module that runs `make` for `trips` iterations over values of these shapes; `make` returns the next values."""
    shapes = ["s32[]"] + state
    tuple_ = f"({', '.join(shapes)})"
    body = Builder("body")
    p = body.emit(tuple_, "parameter(0)", "p")
    i = body.emit("s32[]", f"get-tuple-element({p[0]}), index=0")
    values = [body.emit(s, f"get-tuple-element({p[0]}), index={k + 1}") for k, s in enumerate(state)]
    one = body.scalar(1, "s32")
    following = body.binary("add", i, one)
    results = make(body, values)
    body.root(tuple_, f"tuple({', '.join(v[0] for v in [following] + results)})")
    entry = Builder("main", True)
    params = [entry.param(s) for s in state]
    zero = entry.scalar(0, "s32")
    init = entry.emit(tuple_, f"tuple({', '.join(v[0] for v in [zero] + params)})")
    entry.root(tuple_, f"while({init[0]}), condition=cond, body=body")
    return f"""HloModule loop
{REGIONS}
cond {{
  p = {tuple_} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant({trips})
  ROOT c = pred[] compare(i, n), direction=LT
}}

{body.text()}

{entry.text()}
"""


def changed(b, x, y):
    """`x` with an element of `y` instead of its first: iterations depend on each other, at next to no cost."""
    one = typed(kind(x), [1] * len(dims(x)))
    size = commas([1] * len(dims(y)))
    zero = b.scalar(0, "s32")
    starts = ", ".join([zero[0]] * len(dims(y)))
    first = b.emit(typed(kind(y), [1] * len(dims(y))), f"dynamic-slice({y[0]}, {starts}), dynamic_slice_sizes={{{size}}}") if dims(y) else y
    at = ", ".join([zero[0]] * len(dims(x)))
    return b.emit(x[1], f"dynamic-update-slice({x[0]}, {b.reshape(first, one)[0]}, {at})")


def gemm(m, k, n, trips):
    if k == n:  # the product is the next operand
        return loop([f"bf16[{m},{k}]", f"bf16[{k},{n}]"], trips,
                    lambda b, v: [b.dot(v[0], v[1], [1], [0]), v[1]])

    def multiply(b, v):
        product = b.dot(v[0], v[1], [1], [0])
        return [changed(b, v[0], product), v[1], product]

    return loop([f"bf16[{m},{k}]", f"bf16[{k},{n}]", f"bf16[{m},{n}]"], trips, multiply)


def elementwise(op, elements, trips):
    shape = f"bf16[{elements}]"
    if op == "add":
        # Both operands change: the compiler of the measured loop held both in vector memory.
        return loop([shape, shape], trips, lambda b, v: [v[1], b.binary("add", v[0], v[1])])
    if op == "exp":
        return loop([shape], trips, lambda b, v: [b.unary("exponential", b.unary("negate", b.unary("abs", v[0])))])

    def total(b, v):  # reads the array and writes nothing
        shifted = b.binary("add", v[0], b.broadcast(b.convert(v[1], "bf16"), shape, []))
        terms = b.unary("exponential", b.unary("negate", shifted))
        return [v[0], b.reduce(b.convert(terms, "f32"), [0])]

    return loop([shape, "f32[]"], trips, total)


def norm(b, x, scale):
    f = b.convert(x, "f32")
    rows = dims(x)[:-1]
    mean = b.reduce(b.binary("multiply", f, f), [len(rows)])
    spread = b.broadcast(b.unary("rsqrt", mean), f[1], range(len(rows)))
    wide = b.broadcast(b.convert(scale, "f32"), f[1], [len(rows)])
    return b.convert(b.binary("multiply", b.binary("multiply", f, spread), wide), "bf16")


def attention_kernel(b, q, k, v, flops, exponentials, name="splash_mha_fwd_residuals", block=512):
    """A fused attention kernel with the cost estimate, name and block sizes that Pallas writes. Kernels named `splash_...`
    skip blocks that a causal mask hides; `flops` are those of the unmasked half."""
    estimate = f'{{\\"custom_call_config\\":{{\\"cost_estimate\\":{{\\"flops\\":{flops},\\"transcendentals\\":{exponentials}}}}}}}'
    blocks = f"{{'block_q': {block}, 'block_kv': {block}}}"
    return b.emit(q[1], f'custom-call({q[0]}, {k[0]}, {v[0]}), custom_call_target="tpu_custom_call", backend_config="{estimate}", '
                  f'frontend_attributes={{kernel_metadata="{blocks}"}}, metadata={{op_name="jit(step)/{name}"}}')


QWEN3_8B = dict(layers=36, d=4096, heads=32, kv=8, hd=128, ff=12288, vocab=151936)


def decoder(model, tokens, attend, last):
    """A forward pass over `tokens` rows; `attend` computes [tokens, heads*hd] from the packed q, k, v; the head
    reads `last` rows."""
    m = model
    b = Builder("main", True)
    x = b.param(f"bf16[{tokens},{m['d']}]")
    wide = (m["heads"] + 2 * m["kv"]) * m["hd"]
    caches = []
    for _ in range(m["layers"]):
        h = norm(b, x, b.param(f"bf16[{m['d']}]"))
        qkv = b.dot(h, b.param(f"bf16[{m['d']},{wide}]"), [1], [0])
        a = attend(b, qkv, caches)
        o = b.dot(a, b.param(f"bf16[{m['heads'] * m['hd']},{m['d']}]"), [1], [0])
        x = b.binary("add", x, o)
        h = norm(b, x, b.param(f"bf16[{m['d']}]"))
        both = b.dot(h, b.param(f"bf16[{m['d']},{2 * m['ff']}]"), [1], [0])
        gate = b.emit(f"bf16[{tokens},{m['ff']}]", f"slice({both[0]}), slice={{[0:{tokens}], [0:{m['ff']}]}}")
        up = b.emit(f"bf16[{tokens},{m['ff']}]", f"slice({both[0]}), slice={{[0:{tokens}], [{m['ff']}:{2 * m['ff']}]}}")
        act = b.binary("multiply", b.binary("multiply", gate, b.unary("logistic", gate)), up)
        x = b.binary("add", x, b.dot(act, b.param(f"bf16[{m['ff']},{m['d']}]"), [1], [0]))
    x = norm(b, x, b.param(f"bf16[{m['d']}]"))
    if last < tokens:
        x = b.emit(f"bf16[{last},{m['d']}]", f"slice({x[0]}), slice={{[0:{last}], [0:{m['d']}]}}")
    logits = b.dot(x, b.param(f"bf16[{m['d']},{m['vocab']}]"), [1], [0])
    outputs = [logits] + caches
    b.root(f"({', '.join(v[1] for v in outputs)})", f"tuple({', '.join(v[0] for v in outputs)})")
    return f"HloModule decoder\n{REGIONS}\n{b.text()}\n"


def split_heads(b, qkv, model, tokens):
    m = model
    q_width, kv_width = m["heads"] * m["hd"], m["kv"] * m["hd"]
    cuts = [0, q_width, q_width + kv_width, q_width + 2 * kv_width]
    q, k, v = [b.emit(f"bf16[{tokens},{cuts[i + 1] - cuts[i]}]", f"slice({qkv[0]}), slice={{[0:{tokens}], [{cuts[i]}:{cuts[i + 1]}]}}")
               for i in range(3)]
    return [rotate(b, q, tokens, m["heads"], m["hd"]), rotate(b, k, tokens, m["kv"], m["hd"]), v]


def rotate(b, x, tokens, heads, depth):
    """Normalizes each head and applies rotary position embeddings."""
    x = b.reshape(x, f"bf16[{tokens},{heads},{depth}]")
    x = norm(b, x, b.param(f"bf16[{depth}]"))
    half = f"bf16[{tokens},{heads},{depth // 2}]"
    low, high = [b.emit(half, f"slice({x[0]}), slice={{[0:{tokens}], [0:{heads}], [{a}:{a + depth // 2}]}}") for a in (0, depth // 2)]
    cos, sin = [b.broadcast(b.param(f"bf16[{tokens},{depth // 2}]"), half, [0, 2]) for _ in range(2)]
    first = b.binary("subtract", b.binary("multiply", low, cos), b.binary("multiply", high, sin))
    second = b.binary("add", b.binary("multiply", high, cos), b.binary("multiply", low, sin))
    both = b.emit(x[1], f"concatenate({first[0]}, {second[0]}), dimensions={{2}}")
    return b.reshape(both, f"bf16[{tokens},{heads * depth}]")


def prefill(model, sequence, batch):
    """Prefill: all tokens of each sequence at once; keys and values are written to the cache for decoding."""
    m = model
    tokens = sequence * batch

    def attend(b, qkv, caches):
        q, k, v = split_heads(b, qkv, m, tokens)
        zero = b.scalar(0, "s32")
        whole = []
        for new in (k, v):
            cache = b.param(f"bf16[{batch},{m['kv']},{sequence},{m['hd']}]")
            heads = b.reshape(new, f"bf16[{batch},{sequence},{m['kv']},{m['hd']}]")
            piece = b.emit(cache[1], f"transpose({heads[0]}), dimensions={{0,2,1,3}}")
            whole.append(b.emit(cache[1], f"dynamic-update-slice({cache[0]}, {piece[0]}, {zero[0]}, {zero[0]}, {zero[0]}, {zero[0]})"))
        caches.extend(whole)
        return b.emit(q[1], f'custom-call({q[0]}, {whole[0][0]}, {whole[1][0]}), custom_call_target="ragged_paged_attention"')

    return decoder(m, tokens, attend, batch)


def decode(model, sequence, batch, rows):
    """Decoding: one token of each sequence, padded to `rows`. The attention kernel is hand-written, as in inference servers."""
    m = model

    def attend(b, qkv, caches):
        q, k, v = split_heads(b, qkv, m, rows)
        if rows > batch:
            q = b.emit(f"bf16[{batch},{m['heads'] * m['hd']}]", f"slice({q[0]}), slice={{[0:{batch}], [0:{m['heads'] * m['hd']}]}}")
            k, v = [b.emit(f"bf16[{batch},{m['kv'] * m['hd']}]", f"slice({t[0]}), slice={{[0:{batch}], [0:{m['kv'] * m['hd']}]}}") for t in (k, v)]
        zero = b.scalar(0, "s32")
        position = b.scalar(sequence - 1, "s32")
        whole = []
        for new in (k, v):
            cache = b.param(f"bf16[{batch},{m['kv']},{sequence},{m['hd']}]")
            piece = b.reshape(new, f"bf16[{batch},{m['kv']},1,{m['hd']}]")
            whole.append(b.emit(cache[1], f"dynamic-update-slice({cache[0]}, {piece[0]}, {zero[0]}, {zero[0]}, {position[0]}, {zero[0]})"))
        caches.extend(whole)
        a = b.emit(q[1], f'custom-call({q[0]}, {whole[0][0]}, {whole[1][0]}), custom_call_target="ragged_paged_attention"')
        if rows > batch:
            pad = b.scalar(0, "bf16")
            a = b.emit(f"bf16[{rows},{m['heads'] * m['hd']}]", f"pad({a[0]}, {pad[0]}), padding=0_{rows - batch}x0_0")
        return a

    return decoder(m, rows, attend, batch)


def gather_loop(shape, groups, dimension, size):
    d = [int(n) for n in shape[shape.index("[") + 1:-1].split(",")]
    d[dimension] *= size
    whole = shape[:shape.index("[") + 1] + commas(d) + "]"
    return f"""HloModule gather
ENTRY main {{
  x = {shape} parameter(0)
  ROOT g = {whole} all-gather(x), dimensions={{{dimension}}}, replica_groups={groups}
}}
"""


def stream(operands, mib):
    """x * 1.5, or x * 1.5 + y, of arrays of so many MiB."""
    shape = f"bf16[{mib << 19}]"
    b = Builder("main", True)
    x = b.param(shape)
    y = b.param(shape) if operands == 2 else None
    factor = b.broadcast(b.scalar(1.5, "bf16"), shape, [])
    if y is None:
        b.root(shape, f"multiply({x[0]}, {factor[0]})")
    else:
        b.root(shape, f"add({b.binary('multiply', x, factor)[0]}, {y[0]})")
    return f"HloModule stream\n{b.text()}\n"


def flash(length, batch, calls):
    """A chain of fused attention kernels, each over the result of the one before: 32 heads of 128, causal.
    The chain runs in a loop whose arrays stay in vector memory if they fit."""
    b = Builder("main", True)
    arrays = 4 * batch * 32 * length * 128 * 2
    layout = "{3,2,1,0:T(8,128)(2,1)S(1)}" if arrays < 112 << 20 else ""
    q, k, v = [b.param(f"bf16[{batch},32,{length},128]{layout}") for _ in range(3)]
    blocks = -(-length // 512)
    scores = batch * 32 * 512 * 512 * blocks * (blocks + 1) // 2
    for _ in range(calls):
        q = attention_kernel(b, q, k, v, 4 * scores * 128, scores, "flash_attention", 512)
    b.root(f"bf16[{batch},32,{length},128]", f"negate({q[0]})")
    return f"HloModule flash\n{b.text()}\n"


def splash(length, batch, backward):
    """The fused attention kernel of training: 32 heads of 128, causal; backward all gradients at once."""
    b = Builder("main", True)
    q, k, v = [b.param(f"bf16[{batch},32,{length},128]") for _ in range(3)]
    scores = batch * 32 * length * length // 2
    attention_kernel(b, q, k, v, (10 if backward else 4) * scores * 128, scores, f"splash_mha_{'dkv_no' if backward else 'fwd'}_residuals", 2048)
    b.lines[-1] = b.lines[-1].replace("  v", "  ROOT v", 1)
    return f"HloModule splash\n{b.text()}\n"


def scatter(size, groups):
    """The sum of an array of that many bytes over groups of two, half of it to each."""
    rows = round(size / 2 / 1024 / 2) * 2
    return f"""HloModule scatter
{REGIONS}
ENTRY main {{
  x = bf16[{rows},1024] parameter(0)
  ROOT s = bf16[{rows // 2},1024] reduce-scatter(x), dimensions={{0}}, replica_groups={groups}, to_apply=sum_bf16
}}
"""
