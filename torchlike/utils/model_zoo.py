"""torch.utils.model_zoo: the older names of functions of torch.hub."""

import importlib.util as _util

from torchlike.hub import load_state_dict_from_url

if _util.find_spec("tqdm") is not None:
    from tqdm.auto import tqdm as tqdm  # other libraries take it from here

__all__ = ["load_state_dict_from_url", "load_url"]

load_url = load_state_dict_from_url
