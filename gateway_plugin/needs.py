"""What serving takes, measured; said by `make up` before it installs and by `gshare doctor`.

Only the standard library: this is read before anything is installed.
"""

from __future__ import annotations

MIN_PYTHON = (3, 11)
SERVING_MEMORY_BYTES = 3_000_000_000
"""resnet50, bert and the plugin together: 2.3 GB resident on a CPU, and room for one replacement of resnet50."""
STATE_DISK_BYTES = 2_000_000_000
"""`.gshare/`: 1.4 GB of random weights for resnet50 and bert, logs, Redis' file."""
