"""torch.distributed._composable: see torch.distributed.fsdp."""
