"""What the SDK of Claude Code asks about a session, in the shapes that its types promise."""

from __future__ import annotations

from collections.abc import Mapping

from agent_tui import __version__
from agent_tui.engine.agent import Agent
from agent_tui.models.context import ContextRow
from agent_tui.models.messages import Metadata
from agent_tui.models.rows import MESSAGES
from agent_tui.tools.mcp_names import is_mcp_name, split_tool_name

COMPATIBLE = "2.1.248"
"""The version of Claude Code whose options and lines are taken: its SDK warns of older ones."""
_STATES: Mapping[str, str] = {
    "starting": "pending",
    "connected": "connected",
    "failed": "failed",
    "disabled": "disabled",
    "untrusted": "disabled",
}


def introduction(agent: Agent) -> Metadata:
    """The answer to ``initialize``."""
    return {
        "commands": [
            {"name": own.name, "description": own.description, "argumentHint": ""}
            for own in agent.project.user_commands()
        ],
        "agents": [{"name": name, "description": about} for name, about, _ in agent.project.agent_types()],
        "output_style": "default",
        "available_output_styles": ["default"],
        "models": [
            {"value": spec.key, "displayName": spec.key, "description": spec.model} for spec in agent.models.all()
        ],
        "account": {},
        "hook_on_failure_supported": True,
        "version": __version__,
        "session_id": agent.conversation.info.id,
    }


def context_usage(agent: Agent) -> Metadata:
    """The answer to ``get_context_usage``: our rows as its categories, free space and reserve among them."""
    usage, budget = agent.context.usage(), agent.settings.context
    window, limit = usage.window or 0, usage.limit or usage.window or 0
    rest = [("Free space", usage.free), ("Reserved for the answer", usage.reserve)]
    rows = [*((row.label, row.tokens) for row in usage.rows), *rest]
    leaves = [leaf for row in usage.rows if row.id != MESSAGES.id for leaf in _leaves(row)]
    return {
        "categories": [{"name": name, "tokens": tokens, "color": "inactive"} for name, tokens in rows if tokens],
        "totalTokens": usage.total,
        "maxTokens": limit,
        "rawMaxTokens": window,
        "percentage": round(100 * usage.total / window, 1) if window else 0.0,
        "model": usage.model,
        "isAutoCompactEnabled": budget.auto_compact,
        "autoCompactThreshold": limit,
        "memoryFiles": [{"path": leaf.path, "type": "Project", "tokens": leaf.tokens} for leaf in leaves if leaf.path],
        "mcpTools": [
            {"name": leaf.label, "serverName": split_tool_name(leaf.label)[0], "tokens": leaf.tokens, "isLoaded": True}
            for leaf in leaves
            if is_mcp_name(leaf.label)
        ],
        "agents": [],
        "gridRows": [],
    }


def _leaves(row: ContextRow) -> list[ContextRow]:
    return [leaf for child in row.children for leaf in _leaves(child)] if row.children else [row]


def mcp_status(agent: Agent) -> Metadata:
    """The answer to ``mcp_status``: every server with its state, why it failed, and its tools."""
    tools: dict[str, list[Metadata]] = {}
    for tool, server in agent.project.mcp_tools():
        tools.setdefault(server, []).append({"name": tool})
    return {
        "mcpServers": [
            {
                "name": name,
                "status": _STATES[state],
                **({"error": detail} if state in ("failed", "untrusted") and detail else {}),
                **({"tools": tools.get(name, [])} if state == "connected" else {}),
            }
            for name, state, detail in agent.project.mcp_servers()
        ]
    }
