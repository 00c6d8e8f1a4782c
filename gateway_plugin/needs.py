"""What serving takes, measured; said by `make up` before it installs and by `gshare doctor`.

Only the standard library: this is read before anything is installed.
"""

from __future__ import annotations

MIN_PYTHON = (3, 11)
SERVING_MEMORY_BYTES = 4_000_000_000
"""All functions of stack.yml and the plugin's processes together."""
STATE_DISK_BYTES = 2_000_000_000
"""`.gshare/`: random weights of all functions, logs, Redis' file."""
