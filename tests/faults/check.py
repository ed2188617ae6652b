"""Kill and break the program at the calls by which it changes files: `check.py short|long [SEED]`."""

import sys
import tempfile
from pathlib import Path

import faults
import kills
from work import Wrong

def main():
    is_long = sys.argv[1] == "long"
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 2026
    with tempfile.TemporaryDirectory(prefix="mclv-faults-") as folder:
        try:
            kills.check(Path(folder), seed, 600 if is_long else 40, is_long)
            faults.check(Path(folder), seed, 6, is_long)
        except Wrong as problem:
            sys.exit(f"not as promised: {problem}")


if __name__ == "__main__":
    main()
