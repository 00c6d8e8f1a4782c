"""Open Inference Protocol v2 over HTTP, with the binary-data extension: the second way into every function."""
