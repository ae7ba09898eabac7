# SPDX-License-Identifier: Apache-2.0
"""Runs hlo-run and ir-dump for the TPU benchmarks."""
import json
import os
import subprocess
import tempfile


class Tools:
    def __init__(self, folder, pipeline="tpu"):
        self.folder = folder
        self.pipeline = pipeline

    def _run(self, name, arguments, text=None):
        run = subprocess.run([os.path.join(self.folder, name), *arguments], input=text, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"{name} {' '.join(arguments)}: {run.stderr}")
        return run.stdout

    def dump(self, model, *flags):
        """HLO of a model's training step, as the tracer lowers it."""
        return self._run("ir-dump", [f"--model={model}", "--step=train", "--emit=hlo", *flags])

    def captured(self, model, capture, *flags):
        """HLO of the graphs of a captured training step after the first, in their order."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graphs.ir")
            self._run("ir-dump", [f"--model={model}", f"--capture={capture}", "--steps=2", "--emit=graphs", f"--save-graphs={path}", *flags])
            count = len(self._run("ir-dump", [f"--input={path}", "--as=list"]).splitlines())
            return [self._run("ir-dump", [f"--input={path}", f"--graph={g}", "--emit=hlo"]) for g in range(count // 2 + 1, count + 1)]

    def nodes(self, model, *flags):
        """Nodes of the lazy graph of a training step."""
        text = self._run("ir-dump", [f"--model={model}", "--step=train", "--emit=lazy", *flags])
        return sum(1 for line in text.splitlines() if " = " in line)

    def parameters(self, model, *flags):
        """Number of parameter tensors of a model."""
        return len(self._run("ir-dump", [f"--model={model}", "--emit=params", *flags]).splitlines())

    def simulate(self, text, device, *flags):
        return json.loads(self._run("hlo-run", ["-", f"--device={device}", "--timing-only", "--json", f"--pipeline={self.pipeline}", *flags], text))
