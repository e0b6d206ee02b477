from torchlike.nn.modules.module import Module
