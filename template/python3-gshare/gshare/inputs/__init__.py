"""Decoding of what clients send, with limits checked before memory is spent."""
