"""The command `ice`: parse, call, print."""

from ice_eval.cli._app import app, main

__all__ = ["app", "main"]
