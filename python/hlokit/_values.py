# SPDX-License-Identifier: Apache-2.0
"""Types of attribute values. Fields are those of HLO text."""

from typing import TYPE_CHECKING, Dict, List, NamedTuple, Optional, Tuple

if TYPE_CHECKING:
    from ._hlokit import Instruction


class WindowDimension(NamedTuple):
    """One dimension of `window={...}`."""

    size: int = 1
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1
    reversal: bool = False


class PaddingDimension(NamedTuple):
    """One dimension of a pad's `padding`."""

    low: int = 0
    high: int = 0
    interior: int = 0


class SliceDimension(NamedTuple):
    """One dimension of a slice."""

    start: int
    limit: int
    stride: int = 1


class ConvolutionDimensions(NamedTuple):
    """`dim_labels` of a convolution: numbers of dimensions."""

    input_batch: int
    input_feature: int
    input_spatial: Tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: Tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: Tuple[int, ...]


class Sharding(NamedTuple):
    """A sharding, or one leaf of a tuple's.

    text is its HLO text. kind is "replicated", "manual", "unknown", "unreduced", "maximal", "tiled", "named" or
    "tuple"; tiles the tiles in each dimension of a tiled one, the subgroups' after those of the data; subgroups their
    types; device that of a maximal one; leaves those of a tuple, as many as it lists.
    """

    text: str
    kind: str
    tiles: Tuple[int, ...] = ()
    subgroups: Tuple[str, ...] = ()
    device: Optional[int] = None
    leaves: Tuple["Sharding", ...] = ()

    def __str__(self) -> str:
        return self.text


class Layout(NamedTuple):
    """A layout: text as after the dimensions of a shape, the order of dimensions, the memory space."""

    text: str
    minor_to_major: Tuple[int, ...]
    memory_space: int

    def __str__(self) -> str:
        return self.text


class Metadata(NamedTuple):
    """Where an instruction comes from. source_line is 0 where it is unknown."""

    op_name: str = ""
    op_type: str = ""
    source_file: str = ""
    source_line: int = 0
    source_end_line: int = 0
    source_column: int = 0
    source_end_column: int = 0
    stack_frame_id: int = 0

    @property
    def scope(self) -> str:
        """The path of op_name without its last part."""
        return self.op_name.rpartition("/")[0]


class Location(NamedTuple):
    """A place in the text a module was read from. Lines and columns count from 1."""

    file: str
    line: int
    column: int


class Match(NamedTuple):
    """An instruction that a pattern matches, and what its variables stand for, by name."""

    root: "Instruction"
    variables: Dict[str, "Instruction"]

    def __getitem__(self, key):  # type: ignore[no-untyped-def, override]
        """The variable of this name, or a field by number."""
        return self.variables[key.lstrip("%")] if isinstance(key, str) else tuple.__getitem__(self, key)


class Cost(NamedTuple):
    """Operations and bytes of instructions, as XLA counts them."""

    flops: int
    transcendentals: int
    bytes_read: int
    bytes_written: int

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


class LiveBuffer(NamedTuple):
    """A buffer that is live at the peak of memory: what writes it first, and which leaf of its shape."""

    instruction: "Instruction"
    leaf: int
    bytes: int
    kind: str


class MemoryUse(NamedTuple):
    """Memory of a run: its peak without constants, and the buffers that are live there, largest first.

    whole_program_devices: for how many devices an unpartitioned module is; the bytes are those of all of them together.
    """

    peak_bytes: int
    argument_bytes: int
    result_bytes: int
    constant_bytes: int
    peak_at: Optional["Instruction"]
    live_at_peak: List[LiveBuffer]
    whole_program_devices: int


class Scope(NamedTuple):
    """A scope of the metadata, such as "net/dense", with what is in it and below; "" is the whole module, of depth 0."""

    name: str
    depth: int
    instructions: int
    flops: int
    bytes: int


class Annotations(NamedTuple):
    """How far the metadata of a module goes.

    annotations counts distinct ones; instructions those of computations that run, without_metadata those of them without
    any, which `missing` has with the reasons; scopes are a tree, parents first.
    """

    annotations: int
    instructions: int
    without_metadata: int
    scopes: List[Scope]
    missing: List[Tuple["Instruction", str]]


class FingerprintDiff(NamedTuple):
    """Why two fingerprints differ, or what they ignore.

    path has (instruction of the first, of the second, text) from the root to the first pair that differs while its
    operands are equal; differences are those of the last pair, header those of the header. str() is a text.
    """

    same: bool
    ignored: List[str]
    header: List[str]
    path: List[Tuple[Optional["Instruction"], Optional["Instruction"], str]]
    differences: List[str]
    text: str

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        """Whether the fingerprints differ."""
        return not self.same


class Diff(NamedTuple):
    """What differs between two modules.

    changed has (instruction of the first, its counterpart, aspects such as "shape" and "operands"); added are
    instructions of the second, removed those of the first. str() is a text in the manner of diff.
    """

    same: bool
    changed: List[Tuple["Instruction", "Instruction", Tuple[str, ...]]]
    added: List["Instruction"]
    removed: List["Instruction"]
    text: str

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return not self.same


class PassStatistics(NamedTuple):
    """One run of one pass in a pipeline."""

    name: str
    place: str
    changed: bool
    seconds: float
    counts: Dict[str, int]
