"""torch._subclasses: there are no fake tensors; tensors on the "meta" device have shapes without data."""

from torchlike._subclasses.fake_tensor import *
