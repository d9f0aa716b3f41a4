"""The smallest picture that every decoder takes."""

from __future__ import annotations

import base64

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A PNG of one pixel."""
PIXEL_BASE64 = base64.b64encode(PIXEL).decode()
