"""An operator, an attribution and a task for ice-eval, a file each."""
