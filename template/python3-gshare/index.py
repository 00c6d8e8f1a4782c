"""What gunicorn serves: `index:app`, one function's replica."""

from __future__ import annotations

import logging
import os

from gshare.server import create_app

logging.basicConfig(
    level=os.environ.get("GSHARE_LOG_LEVEL", "INFO"),
    format="%(asctime)s %(levelname)s %(name)s: %(message)s",
)
app = create_app(start=False)  # gunicorn.conf.py starts it in the worker: this line may run before the fork
