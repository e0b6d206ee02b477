"""What the DataLoader is made of; the names that PyTorch's users import from here."""

from torchlike.utils.data._utils import collate as collate
from torchlike.utils.data._utils import fetch as fetch
from torchlike.utils.data._utils import pin_memory as pin_memory
from torchlike.utils.data._utils import worker as worker
from torchlike.utils.data._utils.exceptions import ExceptionWrapper as ExceptionWrapper

MP_STATUS_CHECK_INTERVAL = worker.STATUS_INTERVAL
"""Seconds between two looks at whether the other side of a worker's pipes is still alive."""

HAS_NUMPY = True
"""Other libraries ask for it."""
