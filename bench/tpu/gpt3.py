# SPDX-License-Identifier: Apache-2.0
"""GPT-3 175B training as MaxText ran it for MLPerf on 512 v5p chips: the program of one chip.

Weights are sharded over 64 chips (fsdp) and their columns or rows over 8 (tensor), with 4 sequences of 2048 per
chip, full rematerialization in the backward pass and int8 matmuls. Between blocks activations are sharded over the 8
along the model's width: gathered before the matmuls of a block, reduce-scattered after it. Each group of 8 is a ring
of the torus, each group of 64 the plane across it.
"""
from models import REGIONS, Builder, attention_kernel, commas, norm, typed

LAYERS, WIDTH, HEADS, DEPTH, INNER, VOCAB, SEQ = 96, 12288, 96, 128, 49152, 50304, 2048
TENSOR, FSDP, PER_CHIP = 8, 64, 4
TOKENS = PER_CHIP * TENSOR * SEQ  # of a group of 8


def groups(size, stride):
    """Rings of `size` chips, `stride` apart, of 512."""
    starts = [c for c in range(512) if c // stride % size == 0]
    return "{{" + "},{".join(commas(range(s, s + size * stride, stride)) for s in starts) + "}}"


RING = groups(TENSOR, 1)
PLANE = groups(FSDP, TENSOR)
WEIGHTS = {"qkv": (WIDTH, 3 * HEADS * DEPTH // TENSOR), "o": (HEADS * DEPTH // TENSOR, WIDTH),
           "up": (WIDTH, INNER // TENSOR), "down": (INNER // TENSOR, WIDTH)}


def quantized(b, x, noise=False):
    """Quantizes x to int8 by its largest value, in a separate pass; gradients are rounded stochastically."""
    sizes = x[1][x[1].index("["):]
    most = b.reduce(b.unary("abs", x), [0, 1], "max")
    scaled = b.binary("divide", x, b.broadcast(most, x[1], []))
    if noise:
        seed = b.broadcast(b.scalar(b.count, "u64"), "u64[2]", [])
        drawn = b.emit(f"(u64[2], u16{sizes})", f"rng-bit-generator({seed[0]}), algorithm=rng_default")
        bits = b.emit(f"u16{sizes}", f"get-tuple-element({drawn[0]}), index=1")
        scaled = b.binary("add", scaled, b.emit(x[1], f"convert({bits[0]})"))
    return b.emit("s8" + sizes, f"convert({scaled[0]})")


def product(b, x, y, xc, yc, noise=(False, False)):
    """The matmul of both as int8; `noise`: which of them is a gradient."""
    wide = b.dot(quantized(b, x, noise[0]), quantized(b, y, noise[1]), [xc], [yc], to="s32")
    return b.convert(wide, "bf16")


def weight(b, stacked, index, name):
    rows, columns = WEIGHTS[name]
    zero = b.scalar(0, "s32")
    piece = b.emit(f"f32[1,{rows // FSDP},{columns}]",
                   f"dynamic-slice({stacked[0]}, {index[0]}, {zero[0]}, {zero[0]}), dynamic_slice_sizes={{1,{rows // FSDP},{columns}}}")
    piece = b.convert(b.reshape(piece, f"f32[{rows // FSDP},{columns}]"), "bf16")
    return b.emit(f"bf16[{rows},{columns}]", f"all-gather({piece[0]}), dimensions={{0}}, replica_groups={PLANE}")


def gathered(b, x):
    return b.emit(f"bf16[{TOKENS},{WIDTH}]", f"all-gather({x[0]}), dimensions={{1}}, replica_groups={RING}")


def scattered(b, x):
    return b.emit(f"bf16[{TOKENS},{WIDTH // TENSOR}]", f"reduce-scatter({x[0]}), dimensions={{1}}, replica_groups={RING}, to_apply=sum_bf16")


def attend(b, qkv, times):
    width = HEADS * DEPTH // TENSOR
    q, k, v = [b.emit(f"bf16[{TOKENS},{width}]", f"slice({qkv[0]}), slice={{[0:{TOKENS}], [{n * width}:{(n + 1) * width}]}}") for n in range(3)]
    scores = PER_CHIP * TENSOR * (HEADS // TENSOR) * SEQ * SEQ // 2
    name = "splash_mha_fwd_residuals" if times == 1 else "splash_mha_dkv_no_residuals"
    return attention_kernel(b, q, k, v, int(4 * scores * DEPTH * times), scores, name)


def forward(b, x, w):
    ones = b.broadcast(b.scalar(1, "bf16"), f"bf16[{WIDTH // TENSOR}]", [])
    h1 = gathered(b, norm(b, x, ones))
    qkv = product(b, h1, w["qkv"], 1, 0)
    a = attend(b, qkv, 1)
    x2 = b.binary("add", x, scattered(b, product(b, a, w["o"], 1, 0)))
    h2 = gathered(b, norm(b, x2, ones))
    up = product(b, h2, w["up"], 1, 0)
    act = b.binary("multiply", up, b.unary("tanh", up))
    return b.binary("add", x2, scattered(b, product(b, act, w["down"], 1, 0))), dict(h1=h1, qkv=qkv, a=a, h2=h2, up=up, act=act)


def backward(b, dy, s, w):
    whole = gathered(b, dy)
    grads = {"down": product(b, s["act"], whole, 0, 0, (False, True))}
    dact = product(b, whole, w["down"], 1, 1, (True, False))
    dup = b.binary("multiply", dact, b.unary("tanh", s["up"]))
    grads["up"] = product(b, s["h2"], dup, 0, 0, (False, True))
    dx = b.binary("add", dy, scattered(b, product(b, dup, w["up"], 1, 1, (True, False))))
    whole = gathered(b, dx)
    grads["o"] = product(b, s["a"], whole, 0, 0, (False, True))
    da = product(b, whole, w["o"], 1, 1, (True, False))
    mixed = b.emit(s["qkv"][1], f"pad({da[0]}, {b.scalar(0, 'bf16')[0]}), padding=0_0x0_{2 * HEADS * DEPTH // TENSOR}")
    dqkv = b.emit(s["qkv"][1], f"pad({attend(b, b.binary('add', s['qkv'], mixed), 2.5)[0]}, {b.scalar(0, 'bf16')[0]}), padding=0_0x0_{2 * HEADS * DEPTH // TENSOR}")
    grads["qkv"] = product(b, s["h1"], dqkv, 0, 0, (False, True))
    return b.binary("add", dx, scattered(b, product(b, dqkv, w["qkv"], 1, 1, (True, False)))), grads


def while_loop(name, state, make):
    """A loop over the layers; `make` returns the next values of the state."""
    shape = f"({', '.join(['s32[]'] + state)})"
    b = Builder(name)
    p = b.emit(shape, "parameter(0)", "p")
    i = b.emit("s32[]", f"get-tuple-element({p[0]}), index=0")
    values = [b.emit(s, f"get-tuple-element({p[0]}), index={k + 1}") for k, s in enumerate(state)]
    following = b.binary("add", i, b.scalar(1, "s32"))
    b.root(shape, f"tuple({', '.join(v[0] for v in [following] + make(b, i, values))})")
    return shape, f"""{name}_cond {{
  p = {shape} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant({LAYERS})
  ROOT c = pred[] compare(i, n), direction=LT
}}

{b.text()}
"""


def step():
    names = list(WEIGHTS)
    x_shape = f"bf16[{TOKENS},{WIDTH // TENSOR}]"
    kept = f"bf16[{LAYERS},{TOKENS},{WIDTH // TENSOR}]"
    stack = {n: typed("f32", [LAYERS, WEIGHTS[n][0] // FSDP, WEIGHTS[n][1]]) for n in names}

    def at(b, i, stacked):
        zero = b.scalar(0, "s32")
        return f"{stacked}, {i[0]}, {zero[0]}, {zero[0]}"

    def run_forward(b, i, v):
        w = {n: weight(b, v[2 + k], i, n) for k, n in enumerate(names)}
        piece = b.reshape(v[0], f"bf16[1,{TOKENS},{WIDTH // TENSOR}]")
        zero = b.scalar(0, "s32")
        inputs = b.emit(kept, f"dynamic-update-slice({v[1][0]}, {piece[0]}, {i[0]}, {zero[0]}, {zero[0]})")
        return [forward(b, v[0], w)[0], inputs] + v[2:]

    def run_backward(b, i, v):
        stacked, grads = v[2:2 + len(names)], v[2 + len(names):]
        last = b.binary("subtract", b.scalar(LAYERS - 1, "s32"), i)
        w = {n: weight(b, stacked[k], last, n) for k, n in enumerate(names)}
        x = b.emit(f"bf16[1,{TOKENS},{WIDTH // TENSOR}]", f"dynamic-slice({at(b, last, v[1][0])}), dynamic_slice_sizes={{1,{TOKENS},{WIDTH // TENSOR}}}")
        _, saved = forward(b, b.reshape(x, x_shape), w)
        dx, new = backward(b, v[0], saved, w)
        out = []
        for k, n in enumerate(names):
            rows, columns = WEIGHTS[n]
            g = b.emit(f"bf16[{rows // FSDP},{columns}]", f"reduce-scatter({new[n][0]}), dimensions={{0}}, replica_groups={PLANE}, to_apply=sum_bf16")
            g = b.reshape(b.convert(g, "f32"), f"f32[1,{rows // FSDP},{columns}]")
            zero = b.scalar(0, "s32")
            out.append(b.emit(stack[n], f"dynamic-update-slice({grads[k][0]}, {g[0]}, {last[0]}, {zero[0]}, {zero[0]})"))
        return [dx, v[1]] + stacked + out

    f_shape, f_text = while_loop("forward", [x_shape, kept] + [stack[n] for n in names], run_forward)
    g_shape, g_text = while_loop("backward", [x_shape, kept] + 2 * [stack[n] for n in names], run_backward)
    b = Builder("main", True)
    x = b.param(x_shape)
    weights = [b.param(stack[n]) for n in names]
    head = b.convert(b.param(f"f32[{WIDTH // FSDP},{VOCAB // TENSOR}]"), "bf16")
    zero = b.scalar(0, "s32")
    empty = b.broadcast(b.scalar(0, "bf16"), kept, [])
    start = b.emit(f_shape, f"tuple({', '.join(v[0] for v in [zero, x, empty] + weights)})")
    done = b.emit(f_shape, f"while({start[0]}), condition=forward_cond, body=forward")
    x = gathered(b, b.emit(x_shape, f"get-tuple-element({done[0]}), index=1"))
    inputs = b.emit(kept, f"get-tuple-element({done[0]}), index=2")
    head = b.emit(f"bf16[{WIDTH},{VOCAB // TENSOR}]", f"all-gather({head[0]}), dimensions={{0}}, replica_groups={PLANE}")
    logits = b.convert(b.dot(x, head, [1], [0]), "f32")
    e = b.unary("exponential", logits)
    dlogits = b.convert(b.binary("divide", e, b.broadcast(b.reduce(e, [1]), e[1], [0])), "bf16")
    dhead = b.emit(f"bf16[{WIDTH // FSDP},{VOCAB // TENSOR}]",
                   f"reduce-scatter({b.dot(x, dlogits, [0], [0])[0]}), dimensions={{0}}, replica_groups={PLANE}, to_apply=sum_bf16")
    dx = scattered(b, b.dot(dlogits, head, [1], [1]))
    zeros = [b.broadcast(b.scalar(0, "f32"), stack[n], []) for n in names]
    start = b.emit(g_shape, f"tuple({', '.join(v[0] for v in [zero, dx, inputs] + weights + zeros)})")
    done = b.emit(g_shape, f"while({start[0]}), condition=backward_cond, body=backward")
    outputs = [b.convert(dhead, "f32")]
    for k, n in enumerate(names):
        g = b.emit(stack[n], f"get-tuple-element({done[0]}), index={3 + len(names) + k}")
        m, v = b.param(stack[n]), b.param(stack[n])
        decay = b.broadcast(b.scalar(0.9, "f32"), stack[n], [])
        m2 = b.binary("add", b.binary("multiply", m, decay), g)
        v2 = b.binary("add", b.binary("multiply", v, decay), b.binary("multiply", g, g))
        outputs += [m2, v2, b.binary("subtract", weights[k], b.binary("multiply", m2, b.unary("rsqrt", v2)))]
    b.root(f"({', '.join(v[1] for v in outputs)})", f"tuple({', '.join(v[0] for v in outputs)})")
    return f"HloModule gpt3, num_partitions=512\n{REGIONS}\n{f_text}\n{g_text}\n{b.text()}\n"
