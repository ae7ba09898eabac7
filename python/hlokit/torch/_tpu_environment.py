# SPDX-License-Identifier: Apache-2.0
"""What torch_xla._internal.tpu tells of the machine: of the simulated one."""

import re
from typing import Any, Dict, List

from . import _chip, _session


def num_available_chips() -> int:
    return int(_session.current().device_count)


def num_available_devices() -> int:
    return num_available_chips()


def num_expected_global_devices() -> int:
    return num_available_chips()


def num_local_processes() -> int:
    return 1


def num_logical_cores_per_chip() -> int:
    return 1


def version() -> int:
    """The generation of the chip."""
    found = re.search(r"\d+", _chip.device())
    return int(found[0]) if found else 4


def get_tpu_env() -> Dict[str, str]:
    return {"ACCELERATOR_TYPE": f"{_chip.device().partition(':')[0]}-{num_available_chips()}", "WORKER_ID": "0"}


def worker_id() -> int:
    return 0


def get_worker_ips() -> List[str]:
    return ["127.0.0.1"]


def discover_master_worker_ip(use_localhost: bool = True) -> str:
    return "127.0.0.1"


def task_id() -> Any:
    return 0
