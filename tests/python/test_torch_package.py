# SPDX-License-Identifier: Apache-2.0
"""python -m hlokit.torch, and the package torch_xla that it provides."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
from typing import Any, Dict, Tuple

import pytest

torch = pytest.importorskip("torch")
if tuple(int(n) for n in re.findall(r"\d+", torch.__version__)[:2]) < (2, 0):
    pytest.skip("torch_xla 2.9 is for PyTorch 2", allow_module_level=True)
if importlib.util.find_spec("torch_xla") is not None:
    pytest.skip("torch_xla is installed", allow_module_level=True)

PACKAGE = str(pathlib.Path(importlib.util.find_spec("hlokit").origin).absolute().parents[1])  # type: ignore[union-attr, arg-type]


def run(folder: pathlib.Path, program: str, *options: str, arguments: Tuple[str, ...] = (), code: int = 0) -> Tuple[str, str]:
    """What a program prints, and the report, run by python -m hlokit.torch."""
    path = folder / "train.py"
    path.write_text(textwrap.dedent(program))
    variables = {k: v for k, v in os.environ.items() if k not in ("PJRT_DEVICE", "XLA_USE_SPMD")}
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, [PACKAGE, variables.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "hlokit.torch", *options, str(path), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=300, cwd=folder)
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout, result.stderr


def lines(text: str) -> Dict[str, Any]:
    return {name: json.loads(value) for name, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE)}


def test_modules_and_version(tmp_path: pathlib.Path) -> None:
    out, _ = run(
        tmp_path,
        """
        import importlib, importlib.metadata, json, sys
        assert "torch_xla" not in sys.modules
        import torch_xla
        for name in ("core.xla_model core.functions runtime amp amp.syncfree debug.metrics debug.profiler distributed.spmd "
                     "distributed.parallel_loader distributed.xla_multiprocessing distributed.xla_backend distributed.fsdp "
                     "distributed.fsdp.wrap utils.checkpoint utils.serialization utils.utils experimental.scan stablehlo "
                     "experimental.scan_layers experimental.eager experimental.spmd_fully_sharded_data_parallel").split():
            importlib.import_module("torch_xla." + name)
        import torch_xla.core.xla_model as xm, torch_xla.runtime as xr
        import hlokit.torch.xla_model
        assert xm.all_reduce is hlokit.torch.xla_model.all_reduce
        print("version=" + json.dumps([torch_xla.__version__, importlib.metadata.version("torch_xla")]))
        print("device=" + json.dumps([str(torch_xla.device()), torch_xla.device_count(), xr.device_type(), xr.world_size()]))
        try:
            torch_xla.no_such_thing
        except AttributeError as error:
            print("error=" + json.dumps(str(error)))
        """,
        "--no-estimate",
    )
    found = lines(out)
    assert found["version"][0] == found["version"][1] and found["version"][0].startswith("2.9.0")
    assert found["device"] == ["xla:0", 1, "TPU", 1]
    assert "no_such_thing" in found["error"]


def test_not_importable_without_it(tmp_path: pathlib.Path) -> None:
    program = "import hlokit.torch, importlib.util; print(importlib.util.find_spec('torch_xla'))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "None\n"


TRAINING = """
    import sys, torch, torch_xla
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if "early" in sys.argv else None
    model.to("xla")
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        rows = 3 + step if "shapes" in sys.argv else 3
        optimizer.zero_grad()
        loss = model(torch.ones(rows, 4).to("xla")).pow(2).mean()
        loss.backward()
        optimizer.step()
        if "item" in sys.argv:
            print(loss.item())
        if "endless" not in sys.argv:
            torch_xla.sync()
    sys.exit(3 if "fails" in sys.argv else 0)
"""


def test_report_of_a_training(tmp_path: pathlib.Path) -> None:
    _, err = run(tmp_path, TRAINING, "--device=v4:2x2x1", f"--report={tmp_path / 'out'}")
    assert re.search(r"steps \d to 6: [0-9a-f]{8} (compiled|cached), .*; step, at <module>@train.py:17", err)
    assert "estimate for v4:2x2x1:" in err and "1 of 4 chips are used" in err
    assert "warnings:" not in err and "recompilations" not in err
    names = os.listdir(tmp_path / "out")
    assert {"report.json", "program.json"} <= set(names) and any(name.endswith(".hlo") for name in names)
    program = json.loads((tmp_path / "out" / "program.json").read_text())
    assert len(program["graphs"]) == 6 and program["warnings"] == []


def test_all_differences_of_shape(tmp_path: pathlib.Path) -> None:
    _, err = run(tmp_path, TRAINING, "--no-estimate", arguments=("shapes",))
    assert "recompilations: 5" in err
    assert re.search(r"input f32\[4,4\] was f32\[3,4\] of aten::\w+, at <module>@train.py:11", err)
    assert "nodes follow from th" in err
    assert re.search(r"step, at <module>@train.py:17: a new graph nearly each time, 5 of 6", err)


def test_warnings_name_the_line(tmp_path: pathlib.Path) -> None:
    _, err = run(tmp_path, TRAINING, "--no-estimate", arguments=("early", "item"))
    assert re.search(r"train.py:13: 2 of 2 parameters of this SGD were replaced", err)
    assert re.search(r"<module>@train.py:15: a value is read in the loop \(item.*\), 6 times", err)


def test_a_program_without_steps(tmp_path: pathlib.Path) -> None:
    _, err = run(tmp_path, TRAINING, arguments=("endless", "item"))
    assert "no step was marked" in err and "no estimate for v5p" in err


def test_exit_codes(tmp_path: pathlib.Path) -> None:
    run(tmp_path, TRAINING, "--no-estimate", arguments=("fails",), code=3)
    _, err = run(tmp_path, "import torch_xla\nraise ValueError('wrong')", code=1)
    assert re.search(r'Traceback .*\n  File ".*train.py", line 2, in <module>\n(?:.*\n)?ValueError: wrong', err)
    assert "_runner.py" not in err
    _, err = run(tmp_path, "", "--device=v44", code=2)
    assert "v44" in err


def test_devices_and_process_groups(tmp_path: pathlib.Path) -> None:
    out, _ = run(
        tmp_path,
        """
        import json, torch, torch.distributed as dist, torch_xla, torch_xla.runtime as xr
        import torch_xla.core.xla_model as xm
        import torch_xla.distributed.xla_backend

        def work(index):
            dist.init_process_group("xla", init_method="xla://")
            assert (dist.get_rank(), dist.get_world_size()) == (index, 4) == (xr.global_ordinal(), xr.world_size())
            value = torch.tensor([index + 1.0], device="xla")
            dist.all_reduce(value)
            parts = [torch.zeros(1, device="xla") for _ in range(4)]
            dist.all_gather(parts, torch.tensor([float(index)], device="xla"))
            dist.barrier()
            result = [value.item(), *(p.item() for p in parts)]
            xm.rendezvous("end")
            if index == 2:
                print("result=" + json.dumps(result))

        torch_xla.launch(work)
        """,
        "--devices=4",
        "--no-estimate",
    )
    assert lines(out)["result"] == [10.0, 0.0, 1.0, 2.0, 3.0]


def test_fully_sharded(tmp_path: pathlib.Path) -> None:
    out, _ = run(
        tmp_path,
        """
        import json, torch, torch_xla, torch_xla.core.xla_model as xm
        from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel as FSDP
        from torch_xla.distributed.fsdp.wrap import always_wrap_policy

        def network():
            torch.manual_seed(0)
            return torch.nn.Sequential(torch.nn.Linear(4, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))

        def losses(model, batch, reduce=lambda value: value):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
            found = []
            for _ in range(4):
                optimizer.zero_grad()
                loss = model(batch).pow(2).mean()
                loss.backward()
                optimizer.step()
                found.append(reduce(loss.detach()).item())
            return found

        data = torch.randn(8, 4, generator=torch.Generator().manual_seed(1))

        def work(index):
            model = FSDP(network(), auto_wrap_policy=always_wrap_policy)
            assert sum(p.numel() for p in model.parameters()) == (28 + 8 + 22 + 4) // 2, [
                p.shape for p in model.parameters()]
            mean = lambda value: xm.all_reduce(xm.REDUCE_SUM, value, 0.5)
            got = losses(model, data[4 * index : 4 * index + 4].to("xla"), mean)
            if index == 0:
                print("got=" + json.dumps(got))

        print("expected=" + json.dumps(losses(network(), data)))
        torch_xla.launch(work)
        """,
        "--devices=2",
        "--no-estimate",
    )
    found = lines(out)
    assert found["got"] == pytest.approx(found["expected"], rel=1e-5)


def test_compile_scan_and_shardings(tmp_path: pathlib.Path) -> None:
    out, err = run(
        tmp_path,
        """
        import json, numpy, torch, torch_xla, torch_xla.runtime as xr, torch_xla.distributed.spmd as xs
        from torch_xla.experimental.scan import scan
        xr.use_spmd()
        mesh = xs.Mesh(numpy.arange(8), (4, 2), ("data", "model"))
        x = torch.ones(8, 6).to("xla")
        xs.mark_sharding(x, mesh, ("data", None))
        print("sharding=" + json.dumps([torch_xla._XLAC._get_xla_sharding_spec(x), mesh.get_op_sharding((("model", "data"), None)),
                                        mesh.get_op_sharding((None, None))]))
        try:
            xs.mark_sharding(x, mesh, ("data", "data"))
        except AssertionError as error:
            print("error=" + json.dumps(str(error)))
        carry, ys = scan(lambda c, v: (c + v, c * v), torch.zeros(2, device="xla"), torch.arange(6.0).reshape(3, 2).to("xla"))
        print("scan=" + json.dumps([carry.tolist(), ys.tolist()]))
        reads = torch_xla.compile(lambda v: v * v.sum().item(), full_graph=True)
        try:
            reads(x)
        except RuntimeError as error:
            print("full=" + json.dumps(str(error)))
        limited = torch_xla.compile(lambda v: v + 1, max_different_graphs=2)
        try:
            for n in range(2, 6):
                limited(torch.ones(n).to("xla"))
        except RuntimeError as error:
            print("limited=" + json.dumps(str(error)))
        """,
        "--devices=8",
        "--no-estimate",
    )
    found = lines(out)
    assert found["sharding"] == ["{devices=[4,1,2]0,1,2,3,4,5,6,7 last_tile_dim_replicate}", "{devices=[8,1]0,2,4,6,1,3,5,7}", "{replicated}"]
    assert "at most once" in found["error"]
    assert found["scan"] == [[6.0, 9.0], [[0.0, 0.0], [0.0, 3.0], [8.0, 20.0]]]
    assert "item" in found["full"] and "train.py:" in found["full"]
    assert "3 different graphs" in found["limited"]


def test_tied_weights(tmp_path: pathlib.Path) -> None:
    program = """
        import sys, torch, torch_xla
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
                self.tie()
            def tie(self):
                self.b.weight = self.a.weight
            def forward(self, x):
                return self.b(self.a(x))
        model = Model().to("xla")
        if "again" in sys.argv:
            model.tie()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(2, 3).to("xla")).sum().backward()
        optimizer.step()
        torch_xla.sync()
    """
    _, err = run(tmp_path, program, "--no-estimate")
    assert re.search(r"train.py:12: Model has weights that are one parameter", err)
    _, err = run(tmp_path, program, "--no-estimate", arguments=("again",))
    assert "one parameter" not in err


def test_host_of_torch_xla(tmp_path: pathlib.Path) -> None:
    steps = []
    for host in ("recorded", "torch_xla"):
        _, err = run(tmp_path, TRAINING, f"--host={host}", f"--report={tmp_path / host}")
        document = json.loads((tmp_path / host / "report.json").read_text())
        phases = {p["phase"]: p["time_per_step_us"] for p in document["host"]["phases"]}
        steps.append((document["bound_by"], phases["execute call"], phases["IR generation"]))
    (_, call, record), (bound, xla_call, xla_record) = steps
    assert bound == "host" and xla_call > 1800 > 10 * call and xla_record > 10 * record


@pytest.mark.parametrize("kind", ["AdamW", "Adam", "SGD", "Adagrad"])
def test_fused_optimizers(kind: str) -> None:
    import hlokit.torch as ht

    found = []
    for device in (torch.device("cpu"), ht.device()):
        torch.manual_seed(0)
        layer = torch.nn.Linear(5, 3).to(device)
        more = {"SGD": {"lr": 0.05, "momentum": 0.9}, "Adam": {"amsgrad": True}, "AdamW": {"weight_decay": 0.1}}.get(kind, {})
        optimizer = getattr(torch.optim, kind)(layer.parameters(), fused=True, **more)
        for step in range(3):
            optimizer.zero_grad()
            layer(torch.full((2, 5), 0.1 * (step + 1)).to(device)).pow(2).sum().backward()
            optimizer.step()
        found.append(layer.weight.detach().cpu())
    torch.testing.assert_close(found[1], found[0])


def test_starved_by_its_loader(tmp_path: pathlib.Path) -> None:
    _, err = run(
        tmp_path,
        """
        import time, torch, torch_xla, torch_xla.distributed.parallel_loader as pl
        def batches():
            for _ in range(20):
                time.sleep(0.1)
                yield torch.ones(4, 4)
        total = torch.zeros(4, 4).to("xla")
        for batch in pl.MpDeviceLoader(batches(), torch_xla.device()):
            total += batch
        """,
    )
    assert re.search(r"train.py:8: the loader is too slow: of [\d.]+ s the loop waited [\d.]+ s for its 20 batches", err)
    assert "the device is idle" in err and "input pipeline" in err


def test_public_names_are_there_or_say_that_they_are_not(tmp_path: pathlib.Path) -> None:
    out, _ = run(
        tmp_path,
        """
        import importlib, json
        from hlokit.torch import _public_names
        absent, wrong = [], []
        for module_name, names in _public_names.NAMES.items():
            module = importlib.import_module(module_name)
            for name in names:
                value = getattr(module, name)
                if not isinstance(value, _public_names.Absent):
                    continue
                absent.append(f"{module_name}.{name}")
                try:
                    value()
                    wrong.append(absent[-1])
                except NotImplementedError as error:
                    if not str(error).startswith(absent[-1]):
                        wrong.append(str(error))
        print("absent=" + json.dumps(absent))
        print("wrong=" + json.dumps(wrong))
        import torch_xla.core.xla_model as xm
        from torch_xla.core.xla_builder import create_placeholder_tensor
        try:
            create_placeholder_tensor([2], 1)
        except NotImplementedError as error:
            print("said=" + json.dumps(str(error)))
        try:
            xm.no_such_thing
        except AttributeError as error:
            print("unknown=" + json.dumps(str(error)))
        try:
            import torch_xla.no_such_module
        except ModuleNotFoundError as error:
            print("module=" + json.dumps(str(error)))
        """,
        "--no-estimate",
    )
    found = lines(out)
    assert found["wrong"] == []
    modules = {"torch_xla", "torch_xla.runtime", "torch_xla.debug.metrics", "torch_xla.amp"}
    assert not {name for name in found["absent"] if name.rpartition(".")[0] in modules}
    assert found["said"].startswith("torch_xla.core.xla_builder.create_placeholder_tensor of torch_xla is not in hlokit's package")
    assert "no_such_thing" in found["unknown"] and "no_such_module" in found["module"]


def test_programs_that_run_nothing(tmp_path: pathlib.Path) -> None:
    _, err = run(tmp_path, "import torch, torch_xla\ntorch.ones(2, device='xla') + 1")
    assert "made tensors on the device, and ran nothing there: it marked no step (torch_xla.sync()) and read no value" in err
    _, err = run(tmp_path, "import torch\ntorch.ones(2) + 1")
    assert "made no tensors on the device, xla or tpu" in err


def test_steps_of_loaders_are_steps(tmp_path: pathlib.Path) -> None:
    program = """
        import torch, torch_xla
        from torch_xla.distributed.parallel_loader import MpDeviceLoader
        data = [torch.full((2,), float(i)) for i in range(3)]
        for batch in MpDeviceLoader(data, torch_xla.device()):
            print((batch * 2).sum().item())
    """
    _, err = run(tmp_path, program, "--no-estimate")
    assert "no step was marked" not in err


def test_programs_of_tpu_mark_no_steps(tmp_path: pathlib.Path) -> None:
    _, err = run(tmp_path, "import torch\nfor i in range(3): print((torch.ones(2, device='tpu') + i).sum().item())", "--no-estimate")
    assert "no step was marked" not in err


def test_a_step_that_runs_nothing_is_none(tmp_path: pathlib.Path) -> None:
    program = """
        import json, torch, torch_xla, hlokit.torch as ht
        x = torch.ones(2, device="xla")
        torch_xla.sync()
        for _ in range(4):
            with torch_xla.step():
                x = x * 2
        print("marks=" + json.dumps(json.loads(ht._session.current().metrics_json())["counters"]["MarkStep"]))
    """
    out, err = run(tmp_path, program, "--no-estimate")
    assert lines(out)["marks"] == 5 and "5 steps, 5 graphs run" in err


def test_times_are_in_the_unit_that_is_named(tmp_path: pathlib.Path) -> None:
    out, _ = run(
        tmp_path,
        """
        import time
        from torch_xla.utils.utils import timed
        timed(lambda: time.sleep(0.02), msg="took=", printfn=lambda text: print(text.replace("ms", "")))
        """,
        "--no-estimate",
    )
    assert lines(out)["took"] >= 20
