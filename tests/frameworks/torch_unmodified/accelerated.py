# SPDX-License-Identifier: Apache-2.0
"""Accelerate in a loop of the program's own. Knows nothing of hlokit; started by `accelerate launch --tpu` with several devices,
each has its part of a batch."""
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

STEPS, BATCH = 6, 32


def main():
    accelerator = Accelerator()
    set_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, STEPS * accelerator.num_processes)
    generator = torch.Generator().manual_seed(3)
    data = torch.utils.data.TensorDataset(torch.randn(STEPS * BATCH, 16, generator=generator),
                                          torch.randint(0, 5, (STEPS * BATCH,), generator=generator))
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH // accelerator.num_processes, shuffle=False)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    losses = []
    for inputs, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(accelerator.gather(loss.detach().reshape(1)).mean().item())
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        print("device", accelerator.device.type, accelerator.num_processes)
        print("losses", losses)


if __name__ == "__main__":
    main()
