"""`python -m torchlike SCRIPT [ARGS]`: run SCRIPT with `import torch` meaning torchlike."""

from torchlike._src.alias.launcher import main

if __name__ == "__main__":
    main()
