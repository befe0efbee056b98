"""`python -m symdsl`."""

from symdsl.cli import main

if __name__ == "__main__":
    main(prog_name="symdsl")
