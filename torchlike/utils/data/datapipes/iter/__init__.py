"""Iterable data pipes."""

from torchlike.utils.data.datapipes.iter.combining import (
    ConcaterIterDataPipe as Concater,
)
from torchlike.utils.data.datapipes.iter.combining import (
    DemultiplexerIterDataPipe as Demultiplexer,
)
from torchlike.utils.data.datapipes.iter.combining import (
    ForkerIterDataPipe as Forker,
)
from torchlike.utils.data.datapipes.iter.combining import (
    MultiplexerIterDataPipe as Multiplexer,
)
from torchlike.utils.data.datapipes.iter.combining import (
    ZipperIterDataPipe as Zipper,
)
from torchlike.utils.data.datapipes.iter.files import (
    FileListerIterDataPipe as FileLister,
)
from torchlike.utils.data.datapipes.iter.files import (
    FileOpenerIterDataPipe as FileOpener,
)
from torchlike.utils.data.datapipes.iter.files import (
    RoutedDecoderIterDataPipe as RoutedDecoder,
)
from torchlike.utils.data.datapipes.iter.files import (
    StreamReaderIterDataPipe as StreamReader,
)
from torchlike.utils.data.datapipes.iter.grouping import (
    BatcherIterDataPipe as Batcher,
)
from torchlike.utils.data.datapipes.iter.grouping import (
    GrouperIterDataPipe as Grouper,
)
from torchlike.utils.data.datapipes.iter.grouping import (
    ShardingFilterIterDataPipe as ShardingFilter,
)
from torchlike.utils.data.datapipes.iter.grouping import (
    UnBatcherIterDataPipe as UnBatcher,
)
from torchlike.utils.data.datapipes.iter.single import (
    CollatorIterDataPipe as Collator,
)
from torchlike.utils.data.datapipes.iter.single import (
    FilterIterDataPipe as Filter,
)
from torchlike.utils.data.datapipes.iter.single import (
    IterableWrapperIterDataPipe as IterableWrapper,
)
from torchlike.utils.data.datapipes.iter.single import (
    MapperIterDataPipe as Mapper,
)
from torchlike.utils.data.datapipes.iter.single import (
    SamplerIterDataPipe as Sampler,
)
from torchlike.utils.data.datapipes.iter.single import (
    ShufflerIterDataPipe as Shuffler,
)

__all__ = [
    "Batcher", "Collator", "Concater", "Demultiplexer", "FileLister", "FileOpener", "Filter", "Forker", "Grouper",
    "IterableWrapper", "Mapper", "Multiplexer", "RoutedDecoder", "Sampler", "ShardingFilter", "Shuffler",
    "StreamReader", "UnBatcher", "Zipper",
]  # fmt: skip
