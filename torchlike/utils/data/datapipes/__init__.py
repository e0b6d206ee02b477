"""torch.utils.data.datapipes: pipes of data, iterable (`iter`) and map style (`map`)."""

from torchlike.utils.data.datapipes import iter as iter
from torchlike.utils.data.datapipes import map as map
from torchlike.utils.data.datapipes.datapipe import (
    DataChunk,
    DFIterDataPipe,
    IterDataPipe,
    MapDataPipe,
    argument_validation,
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
    runtime_validation_disabled,
)
