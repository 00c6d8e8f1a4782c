"""What serving takes, measured; said by `make up` before it installs and by `gshare doctor`.

Only the standard library: this is read before anything is installed.
"""

from __future__ import annotations

MIN_PYTHON = (3, 11)
SERVING_MEMORY_BYTES = 6_000_000_000
"""All six functions and the plugin: 5.3 GB resident on a CPU, and room for one replacement of resnet50."""
STATE_DISK_BYTES = 3_000_000_000
"""`.gshare/`: 2.7 GB of random weights for the six functions, logs, Redis' file."""
