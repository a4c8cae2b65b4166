"""What `make wheel` asks of the installed package, by the Python that has it: python -I tests/wheel.py.

It writes the README's example to the folder in which it is called, and plays it there.
"""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import costbandits

ROOT = Path(__file__).resolve().parents[1]


def main():
    place = Path(costbandits.__file__).parent
    assert place.is_relative_to(sys.prefix), f"costbandits comes from {place}, not from the wheel"
    source = ROOT / "lib/costbandits"
    ours = {path.relative_to(source.parent) for path in (*source.rglob("*.py"), source / "py.typed")}
    files = {Path(file) for file in importlib.metadata.files("costbandits")}
    packed = {file for file in files if ".dist-info" not in file.parts[0] and file.suffix != ".pyc"}
    assert packed == ours, f"the wheel and lib/costbandits differ by {sorted(map(str, packed ^ ours))}"
    examples = re.findall(r"^```python\n(import costbandits as cb\n.*?)^```", (ROOT / "README.md").read_text(),
                          re.MULTILINE | re.DOTALL)
    for example in examples:
        Path("readme.py").write_text(example)
        subprocess.run([sys.executable, "-I", "readme.py"], check=True)
    print(f"costbandits {costbandits.__version__}: {len(packed)} files, on which alone the README's {len(examples)} "
          "examples run")


if __name__ == "__main__":
    main()
