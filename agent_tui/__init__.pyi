from agent_tui.control.control import Question as Question
from agent_tui.session import Session as Session

__version__: str
