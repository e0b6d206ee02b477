"""torch.utils.benchmark: timing statements, each run waited for."""

from torchlike._src.core.absent import absent as _absent
from torchlike.utils.benchmark.utils.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from torchlike.utils.benchmark.utils.compare import Colorize, Compare
from torchlike.utils.benchmark.utils.timer import Language, Timer, timer

globals().update(_absent(__name__, [
    "CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts", "FuzzedParameter", "FuzzedSparseTensor",
    "FuzzedTensor", "Fuzzer", "ParameterAlias",
]))  # fmt: skip
