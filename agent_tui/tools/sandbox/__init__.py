"""The operating system's own means of holding a command: what it may read, write and reach.

``probe`` tries what really holds on this machine; the ``Sandbox`` it returns wraps commands. Nothing is claimed that
was not seen to hold.
"""

from agent_tui.tools.sandbox.box import Sandbox, probe
from agent_tui.tools.sandbox.policy import DOMAINS, Domain, Launch, Network, SandboxPolicy, domain_for, free

__all__ = ["DOMAINS", "Domain", "Launch", "Network", "Sandbox", "SandboxPolicy", "domain_for", "free", "probe"]
