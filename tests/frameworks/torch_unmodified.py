#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs that know nothing of hlokit, on PyTorch's CPU and by `python -m hlokit.torch`, and compares their losses.

  torch_unmodified.py BUILD [--only=NAME,...] [--sources=DIR]

Those of torch_unmodified/ are ours; others are published ones, from a folder with their sources or from GitHub at a commit,
and are left out with a line where that is not reached. Prints `N passed, N failed` as the last line.
"""
import argparse
import array
import ast
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
PROGRAMS = FOLDER / "torch_unmodified"
TOLERANCE = 2e-4
SECONDS = 600
SOURCES = {  # what is fetched, by folder: repository, commit
    "minGPT": ("https://github.com/karpathy/minGPT", "37baab71b9abea1b76ab957409a1cc2fbfba8a26"),
    "nanoGPT": ("https://github.com/karpathy/nanoGPT", "3adf61e154c3fe3fca428ad6bc3818b27a3b8291"),
    "timm": ("https://github.com/huggingface/pytorch-image-models", "aa4b5850c1543fa488abf260f18390eda46cf85d"),
    "xla": ("https://github.com/pytorch/xla", "41398bfff334fc8d3b1c00be6ea8cc5411f6d6bf"),
}


class Skipped(Exception):
    """A program cannot be run here."""


class Failed(Exception):
    """A program did not do what it should."""


class Bench:
    """Runs programs in a folder of their own."""

    def __init__(self, build, sources):
        self.python_path = str(pathlib.Path(build).resolve() / "python")
        self.sources = sources
        self.folder = None

    def source(self, name):
        """The folder of a published program's sources."""
        for folder in (self.sources / name, self.sources / f"{name}-{SOURCES[name][1][:12]}"):
            if folder.is_dir():
                return folder
        address, commit = SOURCES[name]
        self.sources.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.sources) as part:
            for command in (["init", "-q"], ["fetch", "-q", "--depth=1", address, commit], ["checkout", "-q", "FETCH_HEAD"]):
                result = subprocess.run(["git", "-C", part, *command], capture_output=True, text=True, timeout=SECONDS, check=False)
                if result.returncode != 0:
                    raise Skipped(f"{address} is not reached")
            os.rename(part, folder)
            os.mkdir(part)
        return folder

    def run(self, command, code=0, **environment):
        variables = {k: v for k, v in os.environ.items() if k not in ("PJRT_DEVICE", "XLA_USE_SPMD")}
        variables.update(HLOKIT_CODE_CACHE="off", OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [self.python_path, environment.pop("EXTRA_PATH", "")]))
        variables.update(environment)
        result = subprocess.run([sys.executable, *command], cwd=self.folder, env=variables, capture_output=True, text=True,
                                timeout=SECONDS, check=False)
        if result.returncode != code:
            lines = (result.stdout + result.stderr).splitlines()
            raise Failed(f"exit code {result.returncode}\n" + "\n".join(lines[-25:]))
        return result

    def recorded(self, command, options=(), code=0, **environment):
        """Runs a program by python -m hlokit.torch."""
        return self.run(["-m", "hlokit.torch", "--num-threads=1", *options, *map(str, command)], code, **environment)

    def plain(self, command, **environment):
        return self.run([str(part) for part in command], **environment)


def losses(text):
    """Numbers of lines `losses [...]`."""
    found = [value for line in re.findall(r"^losses (\[.*\])$", text, re.MULTILINE) for value in ast.literal_eval(line)]
    if not found:
        raise Failed("no losses were printed\n" + text[-2000:])
    return [float(value) for value in found]


def printed(pattern):
    def find(text):
        found = [float(value) for value in re.findall(pattern, text)]
        if not found:
            raise Failed("no losses were printed\n" + text[-2000:])
        return found

    return find


def compare(recorded, plain, read=losses, tolerance=TOLERANCE, stream="stdout"):
    """Compares the losses of two runs."""
    got, expected = (read(getattr(run, stream)) for run in (recorded, plain))
    if len(got) != len(expected):
        raise Failed(f"{len(got)} losses, expected {len(expected)}")
    for a, b in zip(got, expected):
        if not abs(a - b) <= tolerance * max(1.0, abs(b)):
            raise Failed(f"losses {got}\nexpected {expected}")


def expect(text, *parts):
    for part in parts:
        if not re.search(part, text):
            raise Failed(f"expected {part!r} in\n{text[-6000:]}")


def trainer(kind):
    def check(bench):
        command = [PROGRAMS / "trainer.py", kind]
        got = bench.recorded(command)
        compare(got, bench.plain(command, USE_CPU="1"))
        expect(got.stdout, "device xla", "checkpoint-4.*checkpoint-8")
        expect(got.stderr, r"graphs by step:", r"estimate for v5p:", r"recompilations: \d+")

    return check


def accelerate_one(bench):
    got = bench.recorded([PROGRAMS / "accelerated.py"])
    compare(got, bench.plain([PROGRAMS / "accelerated.py"], ACCELERATE_USE_CPU="true"))
    expect(got.stdout, "device xla 1")


def accelerate_eight(bench):
    launch = ["-m", "accelerate.commands.launch", "--tpu", "--num_processes", "8", "--main_training_function", "main"]
    got = bench.recorded([*launch, PROGRAMS / "accelerated.py"], ["--devices=8"])
    compare(got, bench.plain([PROGRAMS / "accelerated.py"], ACCELERATE_USE_CPU="true"))
    expect(got.stdout, "device xla 8")
    expect(got.stderr, "on 8 devices")


def lightning(kind):
    def check(bench):
        command = [PROGRAMS / "lightning_models.py", kind]
        got = bench.recorded(command)
        compare(got, bench.plain(command, USE_CPU="1"))
        expect(got.stdout, "device xla")

    return check


def mingpt(bench):
    source = bench.source("minGPT")
    command = [source / "projects/adder/adder.py", "--data.ndigit=1", "--trainer.max_iters=21", "--trainer.num_workers=0",
               "--model.embd_pdrop=0.0", "--model.resid_pdrop=0.0", "--model.attn_pdrop=0.0"]
    got = bench.recorded([*command, "--trainer.device=xla"], EXTRA_PATH=str(source))
    plain = bench.plain([*command, "--trainer.device=cpu"], EXTRA_PATH=str(source))
    compare(got, plain, printed(r"train loss ([\d.]+)"))
    expect(got.stderr, "no step was marked")


def nanogpt(bench):
    source = bench.source("nanoGPT")
    data = bench.folder / "data/squares"
    data.mkdir(parents=True)
    for name in ("train.bin", "val.bin"):
        (data / name).write_bytes(array.array("H", [(i * i + 3 * i) % 41 for i in range(4000)]).tobytes())
    (data / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 41}))
    (bench.folder / "configurator.py").write_bytes((source / "configurator.py").read_bytes())
    command = [source / "train.py", "--dataset=squares", "--compile=False", "--eval_iters=2", "--eval_interval=5",
               "--block_size=16", "--batch_size=4", "--n_layer=2", "--n_head=2", "--n_embd=32", "--max_iters=6",
               "--lr_decay_iters=6", "--dropout=0.0", "--dtype=float32", "--gradient_accumulation_steps=1"]
    got = bench.recorded([*command, "--device=xla"], EXTRA_PATH=str(source))
    compare(got, bench.plain([*command, "--device=cpu"], EXTRA_PATH=str(source)), printed(r"loss ([\d.]+)"))
    expect(got.stderr, "a value is read in the loop")


def timm(bench):
    """A small ResNet on images of noise: losses of training and of validation, which runs in inference mode."""
    import numpy
    from PIL import Image

    noise = numpy.random.RandomState(0)
    for part in ("train", "validation"):
        for kind in ("a", "b"):
            folder = bench.folder / "images" / part / kind
            folder.mkdir(parents=True)
            for i in range(4):
                Image.fromarray(noise.randint(0, 255, (40, 40, 3), dtype=numpy.uint8)).save(folder / f"{i}.png")
    command = [bench.source("timm") / "train.py", "--data-dir=images", "--model=test_resnet", "--num-classes=2", "--img-size=32",
               "--epochs=1", "--batch-size=4", "--workers=0", "--no-prefetcher", "--opt=sgd", "--lr=0.01", "--log-interval=1",
               "--no-aug"]
    plain = bench.plain([*command, "--device=cpu", "--output=cpu"])
    for device in ("xla", "tpu"):
        got = bench.recorded([*command, f"--device={device}", f"--output={device}"])
        compare(got, plain, printed(r"Loss: +([\d.]+)"), 2e-3, "stderr")  # three digits are printed


def example(path, *arguments, options=(), ends=(), steps=None):
    """A program of PyTorch/XLA's own examples, which has no device but its own: it runs, and its losses fall to 0 for its data
    of zeros."""

    def check(bench):
        source = bench.source("xla") / "examples"
        copy = bench.folder / "examples"
        subprocess.run(["cp", "-r", source, copy], check=True)
        for name, old, new in steps or ():
            file = copy / name
            text = file.read_text()
            if old not in text:
                raise Failed(f"{name} has no {old!r}")
            file.write_text(text.replace(old, new))
        extra = os.pathsep.join([str(copy), str(copy / "scan")])
        got = bench.recorded([copy / path, *arguments], options, EXTRA_PATH=extra)
        expect(got.stdout, *ends)
        expect(got.stderr, "graphs by step:")

    return check


# Examples train large models for hundreds of steps: sizes are replaced.
SMALL_RESNET = (
    ("train_resnet_base.py", "self.img_dim = 224", "self.img_dim = 32"),
    ("train_resnet_base.py", "self.batch_size = 128", "self.batch_size = 2"),
    ("train_resnet_base.py", "self.num_steps = 300", "self.num_steps = 3"),
    ("train_resnet_base.py", "resnet50()", "resnet18()"),
)
SMALL_DECODER = (
    ("train_decoder_only_base.py", "self.batch_size = 16", "self.batch_size = 2"),
    ("train_decoder_only_base.py", "self.seq_len = 512", "self.seq_len = 16"),
    ("train_decoder_only_base.py", "num_steps: int = 200", "num_steps: int = 3"),
    ("train_decoder_only_base.py", "config=DecoderOnlyConfig()",
     "config=DecoderOnlyConfig(hidden_size=64, intermediate_size=128, vocab_size=100)"),
)
DECODER = ["--num-steps=3", "--hidden-size=64", "--intermediate-size=128"]

CHECKS = {
    "Trainer, masked language model": trainer("mlm"),
    "Trainer, causal language model": trainer("clm"),
    "Accelerate": accelerate_one,
    "Accelerate, 8 devices": accelerate_eight,
    "Lightning Fabric": lightning("fabric"),
    "Lightning Trainer": lightning("trainer"),
    "minGPT": mingpt,
    "nanoGPT": nanogpt,
    "timm": timm,
    "examples: ResNet": example("train_resnet_base.py", steps=SMALL_RESNET, ends=[r"step: 0, loss: [\d.]+"]),
    "examples: ResNet with autocast": example("train_resnet_amp.py", steps=SMALL_RESNET, ends=[r"step: 0, loss: [\d.]+"]),
    "examples: data parallel": example("data_parallel/train_resnet_xla_ddp.py", options=["--devices=2"], steps=SMALL_RESNET,
                                       ends=[r"step: 0, loss: [\d.]+"]),
    "examples: DistributedDataParallel": example("data_parallel/train_resnet_ddp.py", options=["--devices=2"],
                                                 # In its second step the reducer reads on the host how it made its buckets.
                                                 steps=(*SMALL_RESNET, ("train_resnet_base.py", "full_graph=True", "full_graph=False")),
                                                 ends=[r"step: 0, loss: [\d.]+"]),
    "examples: SPMD": example("data_parallel/train_resnet_spmd_data_parallel.py", options=["--devices=2"], steps=SMALL_RESNET,
                              ends=[r"step: 0, loss: [\d.]+"]),
    "examples: FSDP": example("fsdp/train_resnet_fsdp_auto_wrap.py", options=["--devices=2"], steps=SMALL_RESNET,
                              ends=[r"step: 0, loss: [\d.]+"]),
    "examples: decoder": example("train_decoder_only_base.py", *DECODER, steps=SMALL_DECODER, ends=[r"Finished training"]),
    "examples: decoder with scan": example("train_decoder_only_base.py", "decoder_with_scan.DecoderWithScan", *DECODER,
                                           steps=SMALL_DECODER, ends=[r"Finished training"]),
    "examples: eager": example("eager/train_decoder_only_eager.py", steps=SMALL_DECODER, ends=[r"step: 0, loss: [\d.]+"]),
    "examples: FSDPv2": example("fsdp/train_decoder_only_fsdp_v2.py", options=["--devices=2"], steps=SMALL_DECODER,
                                ends=[r"step: 0, loss: [\d.]+"]),
    "examples: scan": example("scan/scan_examples.py", ends=[r"History of sums.*\[\[1\.\],\s*\[3\.\],\s*\[6\.\]\]"]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--only", default="", help="names of programs, separated by semicolons; beginnings suffice")
    parser.add_argument("--sources", help="a folder with the sources of published programs, by name")
    flags = parser.parse_args()
    sources = pathlib.Path(flags.sources) if flags.sources else pathlib.Path(flags.build).resolve() / "frameworks/sources"
    bench = Bench(flags.build, sources)
    passed = failed = 0
    for name, check in CHECKS.items():
        if flags.only and not any(name.startswith(part) for part in flags.only.split(";")):
            continue
        with tempfile.TemporaryDirectory() as folder:
            bench.folder = pathlib.Path(folder)
            try:
                check(bench)
            except Skipped as why:
                print(f"skipped {name}: {why}", flush=True)
                continue
            except (Failed, subprocess.TimeoutExpired) as error:
                print(f"FAILED {name}: {error}", flush=True)
                failed += 1
                continue
        print(f"passed {name}", flush=True)
        passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
