"""torch.onnx.symbolic_opset11: part of an exporter that is not here."""
