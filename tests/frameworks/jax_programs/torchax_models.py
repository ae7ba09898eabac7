# SPDX-License-Identifier: Apache-2.0
"""Hugging Face models through torchax, with configurations made here; values are those of PyTorch's CPU, too."""

import jax
import numpy as np
import optax
import torch
import torchax
import transformers
from torchax import interop, train

from . import program

TOKENS = torch.randint(5, 100, (2, 12), generator=torch.Generator().manual_seed(0))


def close(ours, theirs, limit=2e-5):
    """Raises unless an array is that of PyTorch's CPU within a limit, relative to its largest value."""
    theirs = theirs.detach().numpy()
    worst = np.abs(np.asarray(ours) - theirs).max() / np.abs(theirs).max()
    assert worst < limit, f"differs from PyTorch by {worst:.3g}"
    return ours


def forward(model, **inputs):
    with torch.no_grad():
        expected = model.eval()(**inputs).logits
    states, function = torchax.extract_jax(model)
    arrays = torchax.default_env().t2j_copy(inputs)
    logits = jax.jit(lambda states, arrays: function(states, (), arrays).logits)(states, arrays)
    return close(logits, expected)


def gpt2():
    torch.manual_seed(1)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=100, n_positions=32, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        use_cache=False, tie_word_embeddings=False))


def llama():
    torch.manual_seed(2)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=100, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=32, use_cache=False))


def trained(model, rate=0.1, steps=2):
    """Losses and parameters of steps of gradient descent with momentum, compared with those of PyTorch."""
    env = torchax.default_env()
    states, function = torchax.extract_jax(model)
    names = {name for name, _ in model.named_parameters()}
    weights = {name: states[name] for name in names}
    buffers = {name: value for name, value in states.items() if name not in names}
    tokens = env.t2j_copy(TOKENS)
    tx = optax.sgd(rate, momentum=0.9)

    @jax.jit
    def step(weights, state):
        value, grads = jax.value_and_grad(lambda w: function({**w, **buffers}, (tokens,), {"labels": tokens}).loss)(weights)
        updates, state = tx.update(grads, state)
        return optax.apply_updates(weights, updates), state, value

    state, losses = tx.init(weights), []
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    for _ in range(steps):
        weights, state, value = step(weights, state)
        expected = model(TOKENS, labels=TOKENS).loss
        optimizer.zero_grad()
        expected.backward()
        optimizer.step()
        losses.append(close(value, expected))
    for name, value in model.named_parameters():
        close(weights[name], value, 1e-4)
    return losses, weights


@program
def gpt2_forward():
    return forward(gpt2(), input_ids=TOKENS)


@program
def gpt2_training():
    return trained(gpt2().train())


@program
def llama_forward():
    return forward(llama(), input_ids=TOKENS)


@program
def llama_training():
    return trained(llama().train())


@program
def mixtral_forward():
    torch.manual_seed(3)
    return forward(transformers.MixtralForCausalLM(transformers.MixtralConfig(
        vocab_size=100, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=32, use_cache=False, experts_implementation="batched_mm")), input_ids=TOKENS)


@program
def bert_forward():
    torch.manual_seed(4)
    mask = torch.ones_like(TOKENS)
    mask[0, 8:] = 0
    return forward(transformers.BertForMaskedLM(transformers.BertConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=32)), input_ids=TOKENS, attention_mask=mask)


@program
def t5_forward():
    torch.manual_seed(5)
    return forward(transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False)), input_ids=TOKENS,
        decoder_input_ids=TOKENS[:, :5])


@program
def vit_forward():
    torch.manual_seed(6)
    pixels = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    return forward(transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=16, patch_size=4, num_labels=5)),
        pixel_values=pixels)


@program
def tensors_on_the_device():
    """The eager mode: PyTorch's operations on tensors of the device `jax`."""
    env = torchax.default_env()
    with env:
        a = torch.arange(12, dtype=torch.float32).reshape(3, 4).to("jax")
        b = torch.nn.functional.softmax(a @ a.T / 10, -1)
        values, indices = torch.topk(b, 2)
        c = torch.where(b > 0.1, b, torch.zeros_like(b)).cumsum(0)
        results = [b, values, indices, c, torch.linalg.norm(a), a[:, [0, 2]], torch.sort(-a, 1)[0], torch.einsum("ij,kj->ik", a, a)]
        return [interop.jax_view(value) for value in results]


@program
def training_step_of_torchax():
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4))
    x = torch.randn(6, 8, generator=torch.Generator().manual_seed(2))
    labels = torch.tensor([0, 1, 2, 3, 0, 1])
    env = torchax.default_env()
    with env:
        weights = {name: value.detach().to("jax") for name, value in model.named_parameters()}
        tx = optax.adam(1e-2, eps=1e-3)
        state = interop.call_jax(tx.init, weights)
        step = interop.jax_jit(train.make_train_step(
            lambda w, buffers, args: torch.func.functional_call(model, w, args), torch.nn.functional.cross_entropy, tx))
        losses = []
        for _ in range(3):
            loss, weights, state = step(weights, {}, state, (x.to("jax"),), labels.to("jax"))
            losses.append(interop.jax_view(loss))
        return losses, interop.jax_view(weights)
