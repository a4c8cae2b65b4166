"""What `make all` costs, by chapter and study: REBUILD.md beside this script, from what the last runs left in build.

    PYTHONPATH=lib python benchmarks/rebuild.py      # or: make bench
"""

import sys
from pathlib import Path

from compendium import publication, times

if __name__ == "__main__":
    names = Path("notebooks", "chapters.txt").read_text(encoding="utf-8").split()
    try:
        text = times.table(Path("build"), names)
    except OSError as error:
        sys.exit(f"{error.filename} is not there: {times.TABLE} stays. `make clean all` plays all chapters.")
    publication.replace(times.TABLE, text)
    print(f"{times.TABLE} is written")
