"""The console of a control server: pages of all that it knows of its nodes, and forms for what people do there."""

from checkstream.console.control.opening import control_shell, open_control_console

__all__ = ["control_shell", "open_control_console"]
