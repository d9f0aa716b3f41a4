"""``data:`` URLs, in which the chat format carries pictures and files."""

from __future__ import annotations


def split_data_url(url: str) -> tuple[str, str]:
    """Media type and base64 data of ``data:TYPE;base64,DATA``. Raises ValueError for any other URL."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        raise ValueError("an attachment is no data URL")
    return head.removeprefix("data:").removesuffix(";base64"), data
