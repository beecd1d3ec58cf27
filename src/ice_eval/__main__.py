"""`python -m ice_eval` is the command `ice`."""

from ice_eval.cli import main

if __name__ == "__main__":
    main()
