"""From what is typed to the agent: the prompt's questions, pastes, drafts, attachments, commands, messages."""
