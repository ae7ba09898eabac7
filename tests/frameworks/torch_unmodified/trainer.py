# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer on a small model: trainer.py mlm|clm. Knows nothing of hlokit; with USE_CPU=1 it trains on the CPU."""
import os
import sys
import tempfile

import torch
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

VOCABULARY, LENGTH = 97, 16


class Texts(torch.utils.data.Dataset):
    """Random texts, of which the next token depends on the last one; masked ones have labels at their masks only."""

    def __init__(self, masked):
        generator = torch.Generator().manual_seed(1)
        start = torch.randint(0, VOCABULARY, (64, 1), generator=generator)
        self.texts = (start + 3 * torch.arange(LENGTH)) % VOCABULARY
        self.masks = torch.rand(self.texts.shape, generator=generator) < 0.25 if masked else None

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        text = self.texts[i]
        if self.masks is None:
            return {"input_ids": text, "attention_mask": torch.ones_like(text), "labels": text}
        given = torch.where(self.masks[i], 1, text)
        return {"input_ids": given, "attention_mask": torch.ones_like(text), "labels": torch.where(self.masks[i], text, -100)}


def model(masked):
    if masked:
        config = BertConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                            intermediate_size=64, max_position_embeddings=32, hidden_dropout_prob=0.0,
                            attention_probs_dropout_prob=0.0)
        return BertForMaskedLM(config)
    config = GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=2, n_positions=32, resid_pdrop=0.0,
                        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
    return GPT2LMHeadModel(config)


def main():
    masked = sys.argv[1] == "mlm"
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(output_dir=folder, max_steps=8, per_device_train_batch_size=4, learning_rate=1e-3,
                                      logging_steps=1, save_steps=4, eval_strategy="steps", eval_steps=8, report_to=[],
                                      disable_tqdm=True, use_cpu=os.environ.get("USE_CPU") == "1")
        trainer = Trainer(model=model(masked), args=arguments, train_dataset=Texts(masked), eval_dataset=Texts(masked))
        trainer.train()
        saved = sorted(name for name in os.listdir(folder) if name.startswith("checkpoint-"))
    print("device", trainer.args.device.type)
    print("saved", saved)
    print("losses", [h["loss"] for h in trainer.state.log_history if "loss" in h])
    print("losses", [h["eval_loss"] for h in trainer.state.log_history if "eval_loss" in h])


main()
