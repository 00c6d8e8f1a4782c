"""The runtime that rides inside every function, and the facts it shares with the gateway plugin."""

__version__ = "0.1.0"
