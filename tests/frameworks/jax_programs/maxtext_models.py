# SPDX-License-Identifier: Apache-2.0
"""Training steps of MaxText models on eight devices, with its own configuration files and smaller sizes."""

import json
import os
import pathlib
import tempfile

import jax
import numpy as np

from . import program

# Its default configuration is base.yml; of a model it takes configs/models/NAME.yml. These replace the sizes.
SMALL = {
    "override_model_config": True, "base_emb_dim": 64, "base_num_query_heads": 4, "base_num_kv_heads": 2, "head_dim": 16,
    "base_mlp_dim": 96, "base_moe_mlp_dim": 96, "base_num_decoder_layers": 2, "vocab_size": 256, "max_target_length": 16,
    "per_device_batch_size": 1, "steps": 2, "dataset_type": "synthetic", "dtype": "float32",
    # Without Google's cloud, TPU kernels, checkpoints and a cache of compiled programs.
    "hardware": "cpu", "skip_jax_distributed_system": True, "enable_checkpointing": False, "enable_goodput_recording": False,
    "jax_cache_dir": "", "attention": "dot_product", "megablox": False, "run_name": "small",
}
MEASURES = ("learning/loss", "learning/raw_grad_norm", "learning/param_norm", "learning/moe_lb_loss")


def train(model, repeats=1.0, **overrides):
    """Trains for two steps; returns measures of each and the parameters (and moments) after them, in
    the type of the computations (their rounding is of that type), and on hlokit checks the report.

    `repeats`: how many times the operations that MaxText counts the configuration computes, before what it computes again
    in the backward pass; None: loops whose trip counts depend on data have them.
    """
    os.environ["DECOUPLE_GCLOUD"] = "TRUE"
    from flax import nnx
    from maxtext.configs import pyconfig
    from maxtext.trainers.pre_train import train as trainer

    base = pathlib.Path(pyconfig.__file__).with_name("base.yml")
    reports = reports_now()
    with tempfile.TemporaryDirectory() as folder:
        metrics = pathlib.Path(folder) / "metrics"
        words = {**SMALL, "model_name": model, "base_output_directory": folder, "metrics_file": metrics, **overrides}
        config, recorder = trainer.initialize(["train", str(base), *(f"{key}={value}" for key, value in words.items())])
        state = trainer.train_loop(config, recorder)
        steps = [json.loads(line) for line in metrics.read_text().splitlines()]
    if "HLOKIT_REPORT" in os.environ and jax.devices()[0].platform == "hlokit":
        check_report(reports_now() - reports, steps[0]["perf/per_device_tflops"] * 1e12, repeats)
    # Of rounded gradients, moments are not worth comparing: squares double their errors.
    kept = state if words["dtype"] == "float32" else nnx.filter_state(state, nnx.Param)
    leaves = [leaf for leaf in jax.tree.leaves(kept) if jax.numpy.issubdtype(leaf.dtype, np.floating)]
    parameters = [np.asarray(leaf).astype(words["dtype"]) for leaf in leaves]
    assert len(steps) == words["steps"] and parameters
    return [[np.asarray(step[measure], "f4").astype(words["dtype"]) for measure in MEASURES] for step in steps], parameters


def reports_now():
    folder = os.environ.get("HLOKIT_REPORT", "")
    return set(pathlib.Path(folder).glob("*.jit_train_step.json")) if folder else set()


def check_report(reports, model_flops, repeats):
    """The report of the step has a time, what bounds it, memory, and operations: those of the model and what it repeats."""
    assert len(reports) == 1, f"{len(reports)} reports of the step"
    report = json.loads(reports.pop().read_text())
    assert report["device"] == "v5p" and report["used_devices"] == 8
    assert report["step_time_us"] > 0 and report["bound_by"]
    assert 0 < report["memory"]["peak_bytes"] < report["memory"]["limit_bytes"]
    if repeats is not None:
        ratio = report["flops"] / model_flops
        assert repeats * 0.9 < ratio < repeats * 1.7, f"{ratio:.2f} times the operations that MaxText counts"
        assert not report["unmodeled"], f"not modeled: {report['unmodeled']}"


@program
def llama2():
    return train("llama2-7b")


@program
def llama2_in_bfloat16():
    return train("llama2-7b", dtype="bfloat16")


@program
def llama3_with_tensor_parallelism():
    return train("llama3.1-8b", ici_fsdp_parallelism=4, ici_tensor_parallelism=2)


@program
def llama2_with_context_parallelism():
    return train("llama2-7b", ici_fsdp_parallelism=4, ici_context_parallelism=2)


@program
def llama2_with_pipeline():
    # Two microbatches in two stages take the time of three.
    return train("llama2-7b", repeats=1.5, ici_fsdp_parallelism=4, ici_pipeline_parallelism=2, num_layers_per_pipeline_stage=1,
                 num_pipeline_microbatches=2)


@program
def llama2_with_accumulated_gradients():
    return train("llama2-7b", ici_data_parallelism=2, ici_fsdp_parallelism=4, gradient_accumulation_steps=2)


# Two of eight experts serve a token; unless tokens are sorted and their number is limited, all eight compute it.
@program
def mixtral():
    return train("mixtral-8x7b", repeats=3, sparse_matmul=False)


@program
def mixtral_with_expert_parallelism():
    return train("mixtral-8x7b", repeats=2.5, sparse_matmul=False, capacity_factor=1.5, ici_fsdp_parallelism=2,
                 ici_expert_parallelism=4)


TILES = {f"{matrix}_tile_{kind}_{dimension}": size for matrix in ("wi", "wo") for kind in ("fwd", "dlhs", "drhs")
         for dimension, size in (("batch_seq", 16), ("embed_dim", 64), ("mlp_dim", 96))}


@program
def mixtral_with_ragged_products():
    # Ragged products are computed as products with all experts.
    return train("mixtral-8x7b", repeats=6, sparse_matmul=True, **TILES)


@program
def mixtral_with_interpreted_kernels():
    return train("mixtral-8x7b", repeats=None, sparse_matmul=True, megablox=True, **TILES)
