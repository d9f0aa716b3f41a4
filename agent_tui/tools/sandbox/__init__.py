"""The operating system's own means of holding a command: what it may read, write and reach.

``box.probe`` tries what really holds on this machine; the ``Sandbox`` it returns wraps commands. Nothing is claimed
that was not seen to hold.
"""
