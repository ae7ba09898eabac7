# SPDX-License-Identifier: Apache-2.0
"""Lightning: lightning_models.py fabric|trainer. Knows nothing of hlokit; with USE_CPU=1 it trains on the CPU."""
import os
import sys
import tempfile

import lightning
import torch

ACCELERATOR = "cpu" if os.environ.get("USE_CPU") == "1" else "tpu"


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))


def loader():
    generator = torch.Generator().manual_seed(2)
    data = torch.utils.data.TensorDataset(torch.randn(48, 16, generator=generator), torch.randn(48, 1, generator=generator))
    return torch.utils.data.DataLoader(data, batch_size=8)


def with_fabric():
    fabric = lightning.Fabric(accelerator=ACCELERATOR, devices=1)
    fabric.launch()
    model = fabric.setup_module(network())
    optimizer = fabric.setup_optimizers(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9))
    losses = []
    for inputs, targets in fabric.setup_dataloaders(loader()):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        fabric.backward(loss)
        optimizer.step()
        losses.append(loss.detach())
    print("device", fabric.device.type)
    print("losses", [loss.item() for loss in losses])


class Regression(lightning.LightningModule):

    def __init__(self):
        super().__init__()
        self.network = network()
        self.losses = []

    def training_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.network(batch[0]), batch[1])
        self.losses.append(loss.detach())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


def with_trainer():
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(accelerator=ACCELERATOR, devices=1, max_epochs=1, logger=False, enable_progress_bar=False,
                                    default_root_dir=folder, enable_model_summary=False)
        model = Regression()
        trainer.fit(model, loader())
    print("device", trainer.strategy.root_device.type)
    print("losses", [loss.item() for loss in model.losses])


{"fabric": with_fabric, "trainer": with_trainer}[sys.argv[1]]()
