# SPDX-License-Identifier: Apache-2.0
"""Hugging Face models and Trainer, with configurations made here: nothing is downloaded."""

import tempfile

import torch
import torch_xla

from torch_xla_cases.common import plain  # noqa: F401: the driver uses plain


def bert_config():
    from transformers import BertConfig

    return BertConfig(vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                      max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def tokens(count, length, seed=0):
    return torch.randint(5, 120, (count, length), generator=torch.Generator().manual_seed(seed))


def bert_forward_and_backward():
    from transformers import BertForMaskedLM

    d = torch_xla.device()
    torch.manual_seed(0)
    model = BertForMaskedLM(bert_config()).to(d)
    x = tokens(4, 16).to(d)
    losses = []
    for _ in range(2):
        out = model(input_ids=x, labels=x)
        out.loss.backward()
        torch_xla.sync()
        losses.append(out.loss.item())
    return [losses, model.bert.embeddings.word_embeddings.weight.grad[:7], out.logits[0, :3]]


def gpt2_generates():
    from transformers import GPT2Config, GPT2LMHeadModel

    d = torch_xla.device()
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=120, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config).eval().to(d)
    with torch.no_grad():
        return model.generate(tokens(2, 4).to(d), max_new_tokens=4, do_sample=False, pad_token_id=0, use_cache=False)


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        x = tokens(1, 16, seed=i)[0]
        return {"input_ids": x, "labels": x, "attention_mask": torch.ones_like(x)}


def trainer():
    """Eight steps, an evaluation and a checkpoint, unmodified."""
    from transformers import BertForMaskedLM, Trainer, TrainingArguments

    torch.manual_seed(0)
    model = BertForMaskedLM(bert_config())
    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(directory, max_steps=8, per_device_train_batch_size=4, logging_steps=1,
                                      eval_strategy="no", save_steps=8, report_to=[], seed=0, learning_rate=1e-3,
                                      disable_tqdm=True, dataloader_drop_last=True,
                                      optim="adamw_torch")
        run = Trainer(model, arguments, train_dataset=Sentences(), eval_dataset=Sentences())
        run.train()
        evaluated = run.evaluate()
        losses = [entry["loss"] for entry in run.state.log_history if "loss" in entry]
        again = BertForMaskedLM.from_pretrained(f"{directory}/checkpoint-8")
    return [losses, evaluated["eval_loss"], again.bert.embeddings.word_embeddings.weight[:4], str(
        next(run.model.parameters()).device)]


PROGRAMS = [bert_forward_and_backward, gpt2_generates, trainer]
