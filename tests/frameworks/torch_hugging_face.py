#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains and generates with models of Hugging Face on hlokit's device and on PyTorch's CPU.

  torch_hugging_face.py [NAME...]

Each architecture, small and with random weights: three steps of AdamW, whose losses agree, with at most three compilations
and no op on the CPU; then, where it generates, tokens with a static cache that are the CPU's: on `tpu` with at most four
compilations, as what the ids that grow make new is interpreted; on `xla`, for some, with a compilation for each token and
eight others, as in PyTorch/XLA.
Prints `N passed, N failed` as the last line.
"""
import copy
import sys
import warnings

import torch
import transformers

import hlokit.torch as ht

STEPS, TOLERANCE, MOST_TRAINING, NEW_TOKENS = 3, 1e-4, 3, 8
MOST_GENERATION = {"tpu": 4, "xla": NEW_TOKENS + 8}
SMALL = {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
DECODER = {**SMALL, "num_key_value_heads": 2, "max_position_embeddings": 64}
IDS = torch.randint(3, 96, (2, 12), generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def made(kind, config):
    torch.manual_seed(0)
    model = kind(config)
    for module in model.modules():  # the device draws other numbers
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def bert():
    config = transformers.BertConfig(**SMALL, max_position_embeddings=64)
    return made(transformers.BertForMaskedLM, config), {"input_ids": IDS, "labels": IDS}


def gpt2():
    config = transformers.GPT2Config(vocab_size=96, n_positions=64, n_embd=32, n_layer=2, n_head=4)
    return made(transformers.GPT2LMHeadModel, config), {"input_ids": IDS, "labels": IDS}


def llama():
    return made(transformers.LlamaForCausalLM, transformers.LlamaConfig(**DECODER)), {"input_ids": IDS, "labels": IDS}


def qwen3():
    config = transformers.Qwen3Config(**DECODER, head_dim=8)
    return made(transformers.Qwen3ForCausalLM, config), {"input_ids": IDS, "labels": IDS}


def gemma3():
    config = transformers.Gemma3TextConfig(**DECODER, head_dim=8, sliding_window=8)
    return made(transformers.Gemma3ForCausalLM, config), {"input_ids": IDS, "labels": IDS}


def mixtral():
    config = transformers.MixtralConfig(**DECODER, num_local_experts=4, num_experts_per_tok=2)
    return made(transformers.MixtralForCausalLM, config), {"input_ids": IDS, "labels": IDS}


def qwen3_moe():
    config = transformers.Qwen3MoeConfig(
        **DECODER, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, decoder_sparse_step=1
    )
    return made(transformers.Qwen3MoeForCausalLM, config), {"input_ids": IDS, "labels": IDS}


def t5():
    config = transformers.T5Config(
        vocab_size=96, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0
    )
    return made(transformers.T5ForConditionalGeneration, config), {"input_ids": IDS, "labels": IDS}


def vit():
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8, num_labels=5
    )
    return made(transformers.ViTForImageClassification, config), {"pixel_values": IMAGES, "labels": torch.tensor([1, 3])}


def clip():
    text = {**SMALL, "max_position_embeddings": 32, "eos_token_id": 2}
    vision = {name: value for name, value in SMALL.items() if name != "vocab_size"}
    config = transformers.CLIPConfig(text_config=text, vision_config={**vision, "image_size": 32, "patch_size": 8}, projection_dim=16)
    return made(transformers.CLIPModel, config), {"input_ids": IDS, "pixel_values": IMAGES, "return_loss": True}


def whisper():
    config = transformers.WhisperConfig(
        vocab_size=96, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=8, max_source_positions=16, max_target_positions=64,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None,
    )
    features = torch.randn(2, 8, 32, generator=torch.Generator().manual_seed(2))
    return made(transformers.WhisperForConditionalGeneration, config), {"input_features": features, "labels": IDS}


class Denoiser(torch.nn.Module):
    """The UNet of SDXL with the loss of its training: the noise of a latent image."""

    def __init__(self):
        super().__init__()
        import diffusers

        self.net = diffusers.UNet2DConditionModel(
            sample_size=8, block_out_channels=(16, 32), layers_per_block=1, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), transformer_layers_per_block=(1, 1), attention_head_dim=(2, 4),
            cross_attention_dim=32, norm_num_groups=8, addition_embed_type="text_time", addition_time_embed_dim=8,
            projection_class_embeddings_input_dim=64, use_linear_projection=True,
        )

    def forward(self, noisy, times, text, pooled, ids, noise):
        added = {"text_embeds": pooled, "time_ids": ids}
        predicted = self.net(noisy, times, text, added_cond_kwargs=added).sample
        return type("Output", (), {"loss": torch.nn.functional.mse_loss(predicted, noise)})()


def sdxl_unet():
    draw = torch.Generator().manual_seed(3)
    noise = torch.randn(2, 4, 8, 8, generator=draw)
    torch.manual_seed(0)
    return Denoiser(), {
        "noisy": torch.randn(2, 4, 8, 8, generator=draw), "times": torch.tensor([10, 500]), "noise": noise,
        "text": torch.randn(2, 6, 32, generator=draw), "pooled": torch.randn(2, 16, generator=draw),
        "ids": torch.tensor([[64.0, 64, 0, 0, 64, 64]] * 2),
    }


MODELS = {m.__name__: m for m in (bert, gpt2, llama, qwen3, gemma3, mixtral, qwen3_moe, t5, vit, clip, whisper, sdxl_unet)}
GENERATORS_ON_XLA = ("gpt2", "t5")
GENERATORS = ("gpt2", "llama", "qwen3", "gemma3", "mixtral", "qwen3_moe", "t5", "whisper")


def moved(inputs, device):
    return {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}


def losses(model, inputs, device):
    model = copy.deepcopy(model).to(device).train()
    inputs = moved(inputs, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    result = []
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        loss = model(**inputs).loss
        loss.backward()
        optimizer.step()
        result.append(loss.detach())
        if device != "cpu":
            ht.mark_step()
    return [loss.item() for loss in result]


def tokens(model, inputs, device):
    model = copy.deepcopy(model).to(device).eval()
    given = {name: value for name, value in moved(inputs, device).items() if name != "labels"}
    with torch.no_grad():
        made = model.generate(
            **given, do_sample=False, max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, cache_implementation="static",
            disable_compile=True,
        )
    return made.tolist()


def counted(function, *args):
    """The result, the number of compilations, and the ops that ran on the CPU."""
    before = dict(ht.fallbacks())
    with ht.trace() as trace:
        result = function(*args)
    new = sorted(name for (name, why), count in ht.fallbacks().items() if count > before.get((name, why), 0))
    return result, sum(graph.compiled for graph in trace.graphs), new


def check(name):
    model, inputs = MODELS[name]()
    problems = []
    theirs = losses(model, inputs, "cpu")
    ours, compiled, fallbacks = counted(losses, model, inputs, "xla")
    worst = max(abs(a - b) / max(abs(b), 1e-6) for a, b in zip(ours, theirs))
    print(f"{name:10} losses {' '.join(f'{x:.5f}' for x in ours)}, {worst:.1e} from the CPU's, {compiled} compilations", end="")
    if worst > TOLERANCE:
        problems.append(f"losses {ours}, {theirs} on the CPU")
    if compiled > MOST_TRAINING:
        problems.append(f"{compiled} compilations in training")
    if fallbacks:
        problems.append(f"on the CPU in training: {fallbacks}")
    if name in GENERATORS:
        theirs = tokens(model, inputs, "cpu")
        for device in ("tpu", "xla") if name in GENERATORS_ON_XLA else ("tpu",):
            ours, compiled, fallbacks = counted(tokens, model, inputs, device)
            print(f"; generation on {device}: {compiled} compilations, on the CPU: {', '.join(fallbacks) or 'nothing'}", end="")
            if ours != theirs:
                problems.append(f"tokens {ours} on {device}, {theirs} on the CPU")
            if compiled > MOST_GENERATION[device]:
                problems.append(f"{compiled} compilations in generation on {device}")
    print(flush=True)
    for problem in problems:
        print(f"  FAILED: {problem}")
    return not problems


def main():
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    ht.configure(engine="fast")
    passed = failed = 0
    for name in sys.argv[1:] or MODELS:
        try:
            good = check(name)
        except Exception as error:  # noqa: BLE001: counted
            print(f"\n  FAILED: {name}: {type(error).__name__}: {str(error)[:300]}")
            good = False
        passed, failed = passed + good, failed + (not good)
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
