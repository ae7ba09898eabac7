# SPDX-License-Identifier: Apache-2.0
"""torch.manual_seed() for the devices: the numbers of random ops are those of a device's seed, a value of its graph."""

import threading
from typing import Any, Optional

_lock = threading.Lock()
_seed: Optional[int] = None  # of torch.manual_seed(), for sessions that start later

_SEEDS = 1 << 63  # a seed is an int64


def seed_session(session: Any) -> None:
    """Gives all devices of a session the seed of the program, if it has set one."""
    if _seed is not None:
        for ordinal in range(session.device_count):
            session.set_seed(ordinal, _seed)


def manual_seed(seed: int, session: Optional[Any], ordinal: Optional[int] = None) -> None:
    """Seeds one device, or all and those of later sessions."""
    global _seed
    seed = int(seed) % _SEEDS
    if ordinal is not None:
        if session is not None:
            session.set_seed(ordinal, seed)
        return
    with _lock:
        _seed = seed
    if session is not None:
        seed_session(session)
