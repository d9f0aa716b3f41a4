"""The prompt, in which the user types: the widget, what it proposes, what was typed before, what stands for a paste."""
