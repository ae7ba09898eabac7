# SPDX-License-Identifier: Apache-2.0
"""The command `python -m hlokit.torch`: runs a program with hlokit's package torch_xla, and reports what it was for a TPU."""

import argparse
import os
import runpy
import sys
import traceback
import types
from typing import Any, List, Optional, Tuple

from hlokit import _errors, _simulate

_EPILOG = """\
The program imports torch_xla as if it were installed, or uses the device "xla". At its end the graphs that it ran, why it
compiled more than once, ops that ran on the CPU, what slows it down, and an estimate for the device are printed on standard
error. The exit code is the program's; 2: wrong options.
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hlokit.torch",
        description="Runs a PyTorch program that knows nothing of hlokit, on devices of type xla.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--device", default="v5p", help="the TPU of the estimate, such as v5p:4x4x4 (default: %(default)s)")
    parser.add_argument("--devices", type=int, default=None, help="devices of this process, xla:0 and on; spawn uses all (default: 1)")
    parser.add_argument("--engine", default="fast", choices=("exact", "fast", "reference"), help="what computes values (default: fast)")
    parser.add_argument("--num-threads", type=int, default=0, help="threads of the engine (default: one for each processor)")
    hosts = "the host of the estimate: recorded, as it was here, or torch_xla, at PyTorch/XLA's costs (default: recorded)"
    parser.add_argument("--host", default="recorded", help=hosts)
    parser.add_argument("--report", metavar="DIR", help="a folder for the report: report.json, a page, the graphs as HLO and lazy IR")
    parser.add_argument("--no-estimate", action="store_true", help="no simulation of the device, and no profile, whose size grows with the steps")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, such as accelerate.commands.launch")
    return parser


def _split(arguments: List[str]) -> Tuple[List[str], Optional[str], List[str]]:
    """The options, the program, and the rest, which is the program's."""
    takes_value = {"--device", "--devices", "--engine", "--num-threads", "--host", "--report"}
    i = 0
    while i < len(arguments):
        argument = arguments[i]
        if argument == "-m":
            return arguments[: i + 2], None, arguments[i + 2 :]
        if not argument.startswith("-"):
            return arguments[:i], argument, arguments[i + 1 :]
        i += 2 if argument in takes_value else 1
    return arguments, None, []


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    print(error.code, file=sys.stderr)
    return 1


def _run_file(path: str) -> None:
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    program = types.ModuleType("__main__")
    program.__dict__.update(__file__=path, __builtins__=__builtins__, __spec__=None)
    sys.modules["__main__"] = program
    exec(code, program.__dict__)


def _run(path: Optional[str], module: Optional[str], rest: List[str]) -> int:
    """Runs the program; its exit code. Prints the error that ends it."""
    sys.argv = [path or module or "", *rest]
    sys.path[0] = os.path.dirname(os.path.abspath(path)) if path else os.getcwd()
    try:
        if path is not None:
            _run_file(os.path.abspath(path))
        else:
            runpy.run_module(str(module), run_name="__main__", alter_sys=True)
    except SystemExit as error:
        return _exit_code(error)
    except KeyboardInterrupt:
        traceback.print_exc()
        return 130
    except BaseException as error:  # noqa: BLE001: as the interpreter does
        sys.last_value = error
        frames: Any = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
            frames = frames.tb_next
        traceback.print_exception(type(error), error, frames)
        return 1
    return 0


def main(arguments: List[str]) -> int:
    parser = _parser()
    given, path, rest = _split(arguments)
    options = parser.parse_args(given)
    if path is None and options.module is None:
        parser.error("expected a program: train.py, or -m MODULE")
    if path is not None and not os.path.isfile(path):
        parser.error(f"{path}: no such file")
    if options.devices is not None and not 1 <= options.devices <= 1024:
        parser.error("--devices: expected 1 to 1024")
    try:
        _simulate.check_device(options.device)
    except (ValueError, _errors.RunError) as error:
        parser.error(f"--device: {error}")
    os.environ.setdefault("PJRT_DEVICE", "TPU")

    import hlokit.torch as ht

    from . import _chip, _run_recording, _run_report

    try:
        ht.provide_torch_xla()
    except RuntimeError as error:
        parser.error(str(error))
    if options.host not in _run_report.HOSTS:
        parser.error(f"--host: expected one of {', '.join(_run_report.HOSTS)}")
    _chip.set_device(options.device)
    recording = _run_recording.Recording(profile=not options.no_estimate)
    ht.configure(options.devices or 1, engine=options.engine, num_threads=options.num_threads)
    code = _run(path, options.module, rest)
    sys.stdout.flush()
    recording.stop()
    _run_report.write(recording, options, path or options.module, sys.stderr)
    return code
